from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.cli.benchmark import benchmark_problem
from broker.model.instances import paper_problem, with_limits
from broker.model.problem import Problem
from broker.model.resources import Resource
from broker.model.workflow import Alternative, Task, Workflow
from broker.planner.gleam import GUIDED, Gleam, GleamSettings
from broker.planner.heuristics import Heuristic
from broker.planner.memetic import Memetic, Searcher
from broker.planner.planning import Planner
from broker.planner.search import Budget, Search
from tests.broker.random_problems import problems
from tests.oracles.plan_checker import plan_violations


def limited(tasks: int, seed: int, reduction: float = 0.1) -> Problem:
    """Returns a problem whose limits the heuristics miss."""
    problem = paper_problem("sRlD", tasks, np.random.default_rng(seed))
    planner = Planner(problem)
    plans = [
        planner.plan(each.heuristic.genes, each.heuristic.strategy)[0]
        for each in planner.heuristics
    ]
    return with_limits(problem, plans, reduction)


def fitness(problem: Problem, memetic: Memetic | None, evaluations: int, seed: int = 1) -> float:
    """Returns the best fitness found."""
    settings = GleamSettings(population=10, memetic=memetic)
    found = Search(
        problem, budget=Budget(evaluations=evaluations), settings=settings, seed=seed, workers=1
    ).run()
    assert found.worth is not None
    assert plan_violations(problem, found.plan) == []
    return found.worth.fitness


@pytest.mark.parametrize("searcher", [Searcher.STRATEGY, Searcher.SHIFT])
@pytest.mark.parametrize("best_only", [True, False])
def test_local_search_makes_one_generation_better(searcher: Searcher, best_only: bool) -> None:
    """The same population, one generation: with local search the best is at least as good."""
    problem = limited(60, 4)
    planner = Planner(problem)
    results = []
    for memetic in (None, Memetic(searcher, best_only=best_only, trials=10)):
        gleam = planner.run(GleamSettings(population=12, memetic=memetic), 3, planner.worker())
        worker = planner.worker()
        while gleam.generation < 1:
            gleam.begin()
            gleam.breed(worker)
            gleam.commit()
        results.append((gleam.core.values.mean(), gleam.evaluations))
    assert results[1][0] > results[0][0]
    assert results[1][1] > results[0][1]


@given(problems(), st.sampled_from(list(Searcher)), st.booleans(), st.integers(0, 3))
def test_every_plan_is_valid(
    problem: Problem, searcher: Searcher, best_only: bool, seed: int
) -> None:
    """Whatever local search moves, on any problem."""
    memetic = Memetic(searcher, best_only=best_only, trials=4)
    settings = GleamSettings(population=5, memetic=memetic, strategies=3 + 2 * (seed % 2))
    found = Search(
        problem, budget=Budget(evaluations=60), settings=settings, seed=seed, workers=1
    ).run()
    assert plan_violations(problem, found.plan, complete=False) == []


def test_missed_limits_get_fewer() -> None:
    """From the best heuristic's, by shifting tasks of the workflows that miss them."""
    problem = limited(60, 5, 0.05)
    first = fitness(problem, Memetic(Searcher.SHIFT, best_only=True, trials=20), 0)
    assert fitness(problem, Memetic(Searcher.SHIFT, best_only=True, trials=20), 6000) > 1.5 * first


@pytest.mark.parametrize("name", ["sRlD", "lRsD"])
def test_our_own_search_keeps_limits_that_heuristics_miss(name: str) -> None:
    """All of them, on a problem whose limits are tighter than the best of eighteen plans keeps."""
    problem = benchmark_problem(name, 200)
    best = Planner(problem).heuristics[0].worth
    assert not best.keeps_all_limits
    settings = replace(GUIDED, population=20)
    found = Search(
        problem, budget=Budget(evaluations=1500), settings=settings, seed=1, workers=1
    ).run()
    assert found.worth is not None
    assert found.worth.keeps_all_limits
    assert plan_violations(problem, found.plan) == []


def test_late_workflows_go_forward_together() -> None:
    """One resource, those that are due first planned last, five too late: ten moves mend four."""
    on = (Alternative.of("r"),)
    flows = tuple(
        Workflow(f"w{n}", (Task("t", 10.0, on),), due_date=10.0 * (n + 1) + 95.0) for n in range(20)
    )
    problem = Problem(flows, (Resource("r"),), 0.0)
    planner = Planner(problem)
    worker = planner.worker()
    gleam = Gleam(20, GleamSettings(population=3, memetic=Memetic(Searcher.SHIFT, trials=10)), 1)
    reverse = np.arange(20, dtype=np.int32)[::-1].copy()
    gleam.start(worker, [Heuristic("reverse", reverse, 0)])
    assert planner.plan(reverse, 0)[1].late == 5
    gleam.begin()
    gleam.breed(worker)
    gleam.commit()
    plan, worth = planner.plan(gleam.best[0], gleam.best[1])
    assert worth.late <= 1
    assert plan_violations(problem, plan) == []
