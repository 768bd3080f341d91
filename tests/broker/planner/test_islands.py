import math
from dataclasses import replace

import numpy as np
import pytest

from broker.model.instances import paper_problem
from broker.planner.gleam import GUIDED
from broker.planner.islands import FoundByIslands, Island, Round, search_islands, with_immigrant
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
    moved = with_immigrant(poor.state, good.best)
    values = [fitness for *_, fitness, _ in moved["individuals"]]
    assert max(values) == good.best[2]
    assert len(values) == SMALL.population
    changed = [a != b for a, b in zip(moved["individuals"], poor.state["individuals"], strict=True)]
    assert sum(changed) == 1
    last = min(fitness for *_, fitness, _ in good.state["individuals"])
    assert with_immigrant(good.state, (*poor.best[:2], last - 1, None)) == good.state


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
