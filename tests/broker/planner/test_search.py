import json
import math
import threading
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.cli.benchmark import benchmark_problem
from broker.model.instances import paper_problem, paper_workflows
from broker.model.plan import Placement
from broker.model.problem import Problem
from broker.model.resources import Calendar, Resource
from broker.model.workflow import Alternative, Task, Workflow
from broker.planner.gleam import GUIDED, GleamSettings
from broker.planner.goals import Goals
from broker.planner.memetic import Memetic, Searcher
from broker.planner.search import Budget, Progress, Search, search
from tests.broker.random_problems import problems
from tests.examples import FEW
from tests.oracles.plan_checker import plan_violations

SMALL = GleamSettings(population=12)


def problem(tasks: int = 60) -> Problem:
    """Returns a problem of one of the paper's classes."""
    return paper_problem("sRlD", tasks, np.random.default_rng(1))


@FEW
@given(problems(), st.integers(0, 5))
def test_whatever_is_found_is_valid(planned: Problem, seed: int) -> None:
    """With calendars, capacities, co-allocation and fixed tasks, after some generations."""
    found = search(
        planned,
        budget=Budget(evaluations=100),
        settings=GleamSettings(population=5),
        seed=seed,
        workers=1,
    )
    assert plan_violations(planned, found.plan, complete=False) == []
    assert found.plan.unplanned == ()


@pytest.mark.parametrize("memetic", [None, Memetic(Searcher.STRATEGY | Searcher.SHIFT)])
def test_one_worker_or_four_the_same_plan(memetic: Memetic | None) -> None:
    """Problem, seed and budget of evaluations decide; the number of threads does not."""
    settings = replace(SMALL, memetic=memetic)
    plans = [
        search(
            problem(), budget=Budget(evaluations=2000), settings=settings, seed=4, workers=workers
        )
        for workers in (1, 2, 4)
    ]
    assert plans[0].plan == plans[1].plan == plans[2].plan
    assert plans[0].state == plans[1].state == plans[2].state
    other = search(problem(), budget=Budget(evaluations=2000), settings=settings, seed=5)
    assert other.state["individuals"] != plans[0].state["individuals"]


def test_a_search_can_be_continued() -> None:
    """Two thousand evaluations, and two thousand more from what was saved, are four thousand."""
    whole = search(problem(), budget=Budget(evaluations=4000), settings=SMALL, seed=2)
    half = search(problem(), budget=Budget(evaluations=2000), settings=SMALL, seed=2)
    saved = json.loads(json.dumps(half.state))
    rest = search(problem(), budget=Budget(evaluations=4000), resume=saved)
    assert rest.plan == whole.plan
    assert rest.state == whole.state


def test_it_says_why_it_ended() -> None:
    """Seconds, evaluations, a fitness, a word from outside, or nothing to do."""
    assert search(problem(), budget=Budget(seconds=0)).reason == "seconds"
    assert search(problem(), budget=Budget(evaluations=0)).reason == "evaluations"
    assert search(problem(), budget=Budget(evaluations=1e6, fitness=1.0)).reason == "fitness"
    one = Search(problem(), budget=Budget(evaluations=1e9), settings=SMALL)
    seen: list[Progress] = []

    def stop_soon(progress: Progress) -> None:
        """Stops after the third generation."""
        seen.append(progress)
        if len(seen) == 3:
            one.stop()

    found = one.run(stop_soon)
    assert found.reason == "stopped"
    assert [progress.generation for progress in seen] == [1, 2, 3]
    assert found.progress.generation == 3
    assert [p.fitness for p in seen] == sorted(p.fitness for p in seen)
    on = Alternative.of("a")
    flow = Workflow("w", (Task("t", 5.0, (on,)),))
    fixed = Placement("w", "t", on.demands, 0, 5, 0)
    nothing = search(Problem((flow,), (Resource("a"),), 0, (fixed,)))
    assert nothing.reason == "fixed"
    assert list(nothing.plan) == [fixed]


def test_replanning_keeps_what_is_fixed_and_starts_from_the_old_plan() -> None:
    """Ten percent done, ten percent new, one resource broken: valid, and better than heuristics."""
    first = paper_problem("lRlD", 100, np.random.default_rng(1))
    old = search(first, budget=Budget(evaluations=500), settings=SMALL, seed=1).plan
    ends = sorted(placement.end for placement in old)
    now = ends[10]
    fixed = tuple(placement for placement in old if placement.start < now)
    free = first.resources[3]
    ends = [each.end for each in fixed if free.name in each.resources]
    end = max([now, *ends])
    broken = replace(free, calendar=Calendar(closures=((end, math.inf),)))
    resources = tuple(broken if each == free else each for each in first.resources)
    new = paper_workflows(
        "lRlD",
        10,
        [each for each in resources if each != broken],
        np.random.default_rng(2),
        earliest_start=now,
        prefix="new",
    )
    again = Problem((*first.workflows, *new), resources, now, fixed)
    found = search(again, budget=Budget(evaluations=1500), settings=SMALL, seed=1, old=old)
    assert plan_violations(again, found.plan) == []
    assert set(fixed) <= set(found.plan)
    assert not any(
        broken.name in placement.resources for placement in found.plan if placement.start >= end
    )
    assert len(found.heuristics) == 18
    assert found.worth is not None
    assert found.worth.fitness >= found.heuristics[0].worth.fitness


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Budget(seconds=-1), "-1 seconds"),
        (lambda: Budget(seconds=math.nan), "nan seconds"),
        (lambda: Budget(evaluations=-1), "-1 evaluations"),
        (lambda: Budget(seconds=math.inf), "a bound of seconds or of evaluations"),
        (lambda: Search(problem(), workers=0), "0 workers; from 1"),
    ],
)
def test_budgets_have_bounds(make: Any, message: str) -> None:
    """A search that would never end is refused."""
    with pytest.raises(ValueError, match=message):
        make()


def without_dates(problem: Problem) -> Problem:
    """Returns the problem without due dates."""
    flows = tuple(replace(each, due_date=math.inf) for each in problem.workflows)
    return replace(problem, workflows=flows)


@pytest.mark.parametrize("settings", [GleamSettings(), GUIDED])
def test_planning_goes_on_where_everything_is_overdue(settings: GleamSettings) -> None:
    """It improves on the heuristics, and ends about as soon as without due dates."""
    overdue = replace(benchmark_problem("sRlD", 200, seed=991), now=10_000.0)
    ends = {}
    for problem in (overdue, without_dates(overdue)):
        found = Search(
            problem, budget=Budget(evaluations=4000), settings=settings, seed=1, workers=1
        ).run()
        assert found.worth is not None
        best = found.heuristics[0].worth
        assert found.worth.fitness > 1.04 * best.fitness > 0
        ends[problem is overdue] = found.worth.mean_completion
    assert ends[True] < 1.1 * ends[False]


def test_overdue_workflows_cost_the_others_nothing() -> None:
    """Ten of forty are overdue by a day: none of the thirty is late or too dear for that."""
    problem = benchmark_problem("sRlD", 200, seed=5)
    workflows = tuple(
        replace(each, due_date=-86_400.0) if number % 4 == 0 else each
        for number, each in enumerate(problem.workflows)
    )
    found = search(
        replace(problem, workflows=workflows),
        budget=Budget(evaluations=4000),
        settings=GUIDED,
        seed=1,
        workers=1,
    )
    others = [each for n, each in enumerate(found.plan.outcomes(workflows)) if n % 4]
    assert all(each.keeps_its_limits for each in others)


def test_stability_keeps_tasks_where_they_were() -> None:
    """A third of the way, nothing has changed: most tasks move without it, few with it."""
    first = benchmark_problem("lRsD", 100, seed=1)
    budget = Budget(evaluations=2000)
    old = search(first, budget=budget, settings=GUIDED, seed=1, workers=1).plan
    now = sorted(each.start for each in old)[33] + 1e-3
    fixed = tuple(each for each in old if each.start < now)
    again = replace(first, now=now, fixed=fixed)
    moved, worth = {}, {}
    for stability in (0.0, 0.2):
        goals = Goals(stability=stability)
        found = search(
            again, budget=budget, settings=GUIDED, seed=1, workers=1, old=old, goals=goals
        )
        assert plan_violations(again, found.plan) == []
        waiting = [each for each in found.plan if each.start >= now]
        moved[stability] = sum(
            each.demands != getattr(old.placement(*each.key), "demands", None) for each in waiting
        )
        plain = Search(again, budget=Budget(evaluations=0), old=old, workers=1).planner
        judged = plain.judge(found.plan)
        assert judged is not None
        worth[stability] = judged.fitness
        if stability:
            assert found.worth is not None
            assert found.worth.moved == moved[stability]
            assert found.worth.fitness == pytest.approx(
                judged.fitness * (1 - stability * moved[stability] / len(waiting))
            )
    assert moved[0.0] > 30
    assert moved[0.2] < 0.3 * moved[0.0]
    assert worth[0.2] > 0.85 * worth[0.0]


def test_a_search_for_stability_is_the_same_with_any_threads_and_continued() -> None:
    """Bit for bit, as without."""
    first = benchmark_problem("sRlD", 60, seed=1)
    old = search(first, budget=Budget(evaluations=300), settings=GUIDED, workers=1).plan
    case: dict[str, Any] = {
        "settings": replace(GUIDED, population=12),
        "seed": 4,
        "old": old,
        "goals": Goals(stability=0.2),
    }
    one = search(first, budget=Budget(evaluations=900), workers=1, **case)
    three = search(first, budget=Budget(evaluations=900), workers=3, **case)
    half = search(first, budget=Budget(evaluations=400), workers=2, **case)
    rest = search(first, budget=Budget(evaluations=900), workers=1, resume=half.state, **case)
    assert one.state == three.state == rest.state
    assert one.plan == three.plan == rest.plan


def test_little_time_makes_a_small_population_and_ends_within_a_step() -> None:
    """The search ends with the schedules at hand, and what it returns is a plan all the same."""
    found = search(problem(400), budget=Budget(0.0), settings=GUIDED, seed=1, workers=1)
    assert found.reason == "seconds"
    assert found.state["settings"]["population"] == 6
    assert found.progress.generation == 0
    assert found.plan.unplanned == ()
    wanted = search(
        problem(20), budget=Budget(0.0), settings=GUIDED, seed=1, workers=1, shrinking=False
    )
    assert wanted.state["settings"]["population"] == GUIDED.population


def test_stopping_does_not_wait_for_a_step() -> None:
    """A step of this search is tens of thousands of schedules."""
    planned = problem(400)
    slow = replace(GUIDED, memetic=Memetic(Searcher.SHIFT, trials=10_000))
    one = Search(planned, budget=Budget(evaluations=1e9), settings=slow, workers=1)
    timer = threading.Timer(0.05, one.stop)
    timer.start()
    found = one.run()
    timer.join()
    assert found.reason == "stopped"
    assert found.progress.generation == 0
    assert 0 < found.progress.evaluations < 5000
    assert plan_violations(planned, found.plan) == []


def test_heuristics_are_judged_as_they_are_when_built_anew() -> None:
    """Their schedules are kept while the bounds that judge them come about."""
    planner = Search(problem(), budget=Budget(evaluations=0), workers=1).planner
    worker = planner.worker()
    for each in planner.heuristics:
        built = worker.evaluate(each.heuristic.genes, each.heuristic.strategy)
        assert built == each.worth.fitness
