import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.instances import paper_problem, paper_workflows
from broker.plan import Placement
from broker.planner.gleam import GleamSettings
from broker.planner.memetic import Memetic, Searcher
from broker.planner.search import Budget, Progress, Search, search
from broker.problem import Problem
from broker.resources import Calendar, Resource
from broker.workflow import Alternative, Task, Workflow
from tests.broker.random_problems import problems
from tests.oracles.plan_checker import plan_violations

SMALL = GleamSettings(population=12)


def problem(tasks: int = 60) -> Problem:
    """Returns a problem of one of the paper's classes."""
    return paper_problem("sRlD", tasks, np.random.default_rng(1))


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
