from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

from broker.model.instances import paper_problem
from broker.model.plan import Placement
from broker.model.problem import Problem
from broker.model.resources import Resource
from broker.model.workflow import Alternative, Task, Workflow
from broker.planner.gleam import GleamSettings
from broker.planner.heuristics import own_heuristics
from broker.planner.planning import Planner
from tests.broker.random_problems import problems
from tests.examples import FEW
from tests.oracles.plan_checker import plan_violations


@FEW
@given(problems(fixed=False))
def test_heuristics_come_best_first(problem: Problem) -> None:
    """Nine valid plans, sorted by fitness, each as good as what is said of it."""
    planner = Planner(problem)
    fitness = [each.worth.fitness for each in planner.heuristics]
    assert len(fitness) == 9
    assert fitness == sorted(fitness, reverse=True)
    for each in planner.heuristics:
        plan, worth = planner.plan(each.heuristic.genes, each.heuristic.strategy)
        assert plan_violations(problem, plan) == []
        assert worth == each.worth


def test_an_old_plan_adds_nine_heuristics() -> None:
    """Those of replanning, whose sequences are that of the old plan's starts."""
    problem = paper_problem("lRlD", 30, np.random.default_rng(1))
    first = Planner(problem)
    best = first.heuristics[-1].heuristic
    old, _ = first.plan(best.genes, best.strategy)
    again = Planner(problem, old=old)
    assert len(again.heuristics) == 18
    replanned = [h for h in again.heuristics if h.heuristic.name.startswith("replanning")]
    order = [(placement.workflow, placement.task) for placement in old]
    rows = {(w.name, t.name): row for row, (w, t) in enumerate(again.compilation.tasks)}
    assert len(replanned) == 9
    for each in replanned:
        starts = [old.placement(*key) for key in order]
        found = {gene: place for place, gene in enumerate(each.heuristic.genes)}
        by_gene = sorted(zip(order, starts, strict=True), key=lambda e: found[rows[e[0]]])
        times = [placement.start for _, placement in by_gene if placement is not None]
        assert times == sorted(times)


def test_the_population_begins_with_the_heuristics() -> None:
    """Spread over the ring; where there are fewer places, the best of them."""
    planner = Planner(paper_problem("lRlD", 30, np.random.default_rng(1)))
    worker = planner.worker()
    large = planner.run(GleamSettings(population=40), 1, worker)
    values = list(large.core.values)
    for each in planner.heuristics:
        assert each.worth.fitness in values
    small = planner.run(GleamSettings(population=4), 1, worker)
    best = sorted((each.worth.fitness for each in planner.heuristics), reverse=True)[:4]
    assert sorted(small.core.values, reverse=True) == best


def test_there_has_to_be_something_to_plan() -> None:
    """A problem whose tasks are all fixed has no search."""
    on = Alternative.of("a")
    flow = Workflow("w", (Task("t", 5.0, (on,)),))
    fixed = (Placement("w", "t", on.demands, 0, 5, 0),)
    with pytest.raises(ValueError, match="every task is fixed"):
        Planner(Problem((flow,), (Resource("a"),), 0, fixed))


@given(problems(fixed=False))
@settings(max_examples=20)
def test_plans_from_elsewhere_are_judged_as_the_planners_own(problem: Problem) -> None:
    """The worth of a heuristic's plan is that which the planner itself found."""
    planner = Planner(problem)
    for each in planner.heuristics[:3]:
        plan, worth = planner.plan(each.heuristic.genes, each.heuristic.strategy)
        if not plan.unplanned:
            judged = planner.judge(plan)
            assert judged is not None
            assert judged.fitness == pytest.approx(worth.fitness, rel=1e-9)
            assert (judged.late, judged.over_budget) == (worth.late, worth.over_budget)


def test_all_strategies_bring_our_own_heuristics() -> None:
    """The population is no worse than the best of them; the paper's three know nothing of them."""
    planner = Planner(paper_problem("lRlD", 30, np.random.default_rng(1)))
    worker = planner.worker()
    own = [
        worker.evaluate(each.genes, each.strategy) for each in own_heuristics(planner.compilation)
    ]
    paper = GleamSettings(population=40)
    assert max(own) in planner.run(replace(paper, strategies=5), 1, worker).core.values
    assert max(own) not in planner.run(paper, 1, worker).core.values
