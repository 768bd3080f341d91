import math
import pickle
import threading
import time
from dataclasses import replace

import numpy as np
import pytest

from broker.model.instances import paper_problem
from broker.model.problem import Problem
from broker.planner.gleam import GUIDED
from broker.planner.islands import (
    FoundByIslands,
    Island,
    IslandSearch,
    Round,
    search_islands,
)
from broker.planner.search import Budget, Progress
from lrms_sim.util.executors import DaskExecutor, Executor, ThreadExecutor
from tests.oracles.plan_checker import plan_violations

PROBLEM = paper_problem("sRlD", 40, np.random.default_rng(1))
SMALL = replace(GUIDED, population=8)


def found(executor: Executor, islands: int = 2, seed: int = 1) -> FoundByIslands:
    """Returns what a few rounds come to."""
    return search_islands(
        PROBLEM, executor, islands=islands, rounds=3, evaluations=300, settings=SMALL, seed=seed
    )


def test_who_does_the_work_makes_no_difference() -> None:
    """One thread, two, or workers of dask: the seed decides; another one finds another plan."""
    with ThreadExecutor(1) as one, ThreadExecutor(2) as two:
        first = found(one)
        assert plan_violations(PROBLEM, first.plan) == []
        assert first.evaluations >= 2 * 3 * 300
        assert found(two) == first
        assert found(one, seed=2).plan != first.plan
    with DaskExecutor(workers=2, processes=False) as cluster:
        assert found(cluster) == first


def test_the_best_of_an_island_reaches_the_next_one() -> None:
    """It takes the place of the worst there; one that is no better takes none."""
    island = Island(PROBLEM, SMALL)
    good = island(Round(1, None, None, 2000), math.inf)
    poor = island(Round(2, None, None, 50), math.inf)
    assert good.best[2] > poor.best[2]
    before = poor.kept.state
    moved = island(Round(2, poor.kept, good.best, 0), math.inf).kept.state
    values = [fitness for *_, fitness, _ in moved["individuals"]]
    assert max(values) == good.best[2]
    assert len(values) == SMALL.population
    changed = [a != b for a, b in zip(moved["individuals"], before["individuals"], strict=True)]
    assert sum(changed) == 1
    before = good.kept.state
    last = min(fitness for *_, fitness, _ in before["individuals"])
    worse = island(Round(1, good.kept, (*poor.best[:2], last - 1, None), 0), math.inf)
    assert worse.kept.state == before


@pytest.mark.parametrize(("islands", "rounds", "evaluations"), [(0, 1, 1), (1, 0, 1), (1, 1, 0)])
def test_there_is_at_least_one_of_each(islands: int, rounds: int, evaluations: int) -> None:
    """Nothing comes of none."""
    with ThreadExecutor(1) as one, pytest.raises(ValueError, match="at least 1"):
        search_islands(PROBLEM, one, islands=islands, rounds=rounds, evaluations=evaluations)


def test_it_can_be_stopped_between_two_rounds() -> None:
    """What has been found by then is a plan."""
    with ThreadExecutor(1) as one:
        found = search_islands(
            PROBLEM, one, islands=2, rounds=9, evaluations=50, settings=SMALL, stopped=lambda: True
        )
    assert found.evaluations < 2 * 2 * 50 + 200
    assert plan_violations(PROBLEM, found.plan) == []


def searched(
    islands: int, budget: Budget, problem: Problem = PROBLEM, workers: int = 2
) -> IslandSearch:
    """Returns a search on islands within a budget."""
    return IslandSearch(
        problem, islands=islands, budget=budget, settings=SMALL, seed=1, workers=workers
    )


def test_islands_share_a_budget_of_schedules() -> None:
    """As many as one population has, but for a step of each; threads make no difference, the number of islands does."""
    budget = Budget(math.inf, 4000)
    seen: list[Progress] = []
    found = searched(2, budget, workers=2).run(seen.append)
    assert searched(2, budget, workers=5).run() == found
    assert found.worth is not None
    counted = [each.evaluations for each in seen]
    assert counted == sorted(counted)
    assert found.evaluations >= counted[-1] > budget.evaluations / 2
    assert found.worth.fitness >= max(each.fitness for each in seen)
    step = 60 * SMALL.population
    assert 3900 <= found.evaluations <= 4000 + 2 * step
    assert plan_violations(PROBLEM, found.plan) == []
    assert searched(3, budget).run().plan != found.plan
    # It is what `gorba plan --islands` does with the schedules of each island.
    with ThreadExecutor(1) as one:
        same = search_islands(
            PROBLEM, one, islands=2, rounds=10, evaluations=200, settings=SMALL, seed=1
        )
    assert same == found


def test_islands_share_a_budget_of_seconds() -> None:
    """They end with it, however large a step is, and the plan is whole."""
    problem = paper_problem("lRsD", 300, np.random.default_rng(2))
    began = time.monotonic()
    found = searched(2, Budget(0.6), problem).run()
    assert 0.5 < time.monotonic() - began < 30
    assert plan_violations(problem, found.plan) == []
    assert found.worth is not None
    # Even where there is no time.
    assert plan_violations(problem, searched(2, Budget(0.0), problem).run().plan) == []


def test_islands_can_be_stopped_within_a_round() -> None:
    """From another thread, and before they have begun."""
    search = searched(2, Budget(60.0))
    begun = threading.Event()

    def stop() -> None:
        begun.wait()
        search.stop()

    threading.Thread(target=stop, daemon=True).start()
    began = time.monotonic()
    found = search.run(lambda _progress: begun.set())
    assert time.monotonic() - began < 30
    assert plan_violations(PROBLEM, found.plan) == []
    search = searched(2, Budget(60.0))
    search.stop()
    assert plan_violations(PROBLEM, search.run().plan) == []


def test_where_all_is_fixed_nothing_is_searched() -> None:
    """What is fixed is the plan."""
    plan = searched(2, Budget(math.inf, 10)).run().plan
    fixed = replace(PROBLEM, fixed=tuple(plan))
    found = searched(2, Budget(math.inf, 10), fixed).run()
    assert (found.plan, found.worth, found.evaluations) == (plan, None, 0)


def test_an_island_can_be_sent() -> None:
    """Without what belongs to its process."""
    island = Island(PROBLEM, SMALL)
    first = island(Round(1, None, None, 100), math.inf)
    sent = pickle.loads(pickle.dumps(island))  # noqa: S301  # the test's own
    again = sent(Round(1, None, None, 100), math.inf)
    assert again.kept.state == first.kept.state
    # A run that is sent on goes on as it would have here.
    twice = pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(first))))  # noqa: S301  # same
    there = sent(Round(1, twice.kept, None, 200), math.inf)
    here = island(Round(1, first.kept, None, 200), math.inf)
    assert there.kept.state == here.kept.state


def test_something_has_to_end_them() -> None:
    """A bound of seconds or of schedules."""
    with ThreadExecutor(1) as one, pytest.raises(ValueError, match="bound of seconds"):
        search_islands(PROBLEM, one, islands=2, rounds=1, evaluations=math.inf)
