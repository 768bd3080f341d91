"""The cloud of schedules between AWRT₁ and AWRT₂, and the place of learned policies in it.

The papers compare with a Pareto front that an offline search found, and do not say how. Here it is
all 120 orders of five groups, by FCFS, by EASY, and by EASY with true run times, which no provider
has; with all individuals that a search has fully judged, NSGA-II on a key for each user among them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import permutations

import numpy as np

from grms.learning.evolution.nsga2 import not_dominated as lowest
from grms.learning.queueing.front import SIGNS
from lrms_sim.analysis.trial import Trial
from lrms_sim.scheduling.criteria import GroupOrder
from lrms_sim.scheduling.strategies import Strategy


@dataclass(frozen=True, slots=True)
class Point:
    """One schedule.

    Attributes:
        kind: `fcfs`, `easy`, `clairvoyant`; `learned`, the best of a search; `judged`, any individual of
            one; `users`, any of NSGA-II.
        groups: the order; empty of what was searched.
        seven: U, AWRT, AWRT₁ … AWRT₅.
        front: whether no other point of the cloud is as good in all seven and better in one.
    """

    kind: str
    groups: tuple[int, ...]
    seven: tuple[float, ...]
    front: bool = False


def cloud(
    trial: Trial,
    learned: Sequence[Sequence[float]] = (),
    judged: Sequence[Sequence[float]] = (),
    users: Sequence[Sequence[float]] = (),
) -> list[Point]:
    """Returns 360 schedules of a workload, and those of searches on it."""
    points = [
        *_points(trial),
        *_searched("users", users),
        *_searched("judged", judged),
        *_searched("learned", learned),
    ]
    front = not_dominated([one.seven for one in points])
    return [replace(one, front=bool(best)) for one, best in zip(points, front, strict=True)]


def _searched(kind: str, rows: Sequence[Sequence[float]]) -> list[Point]:
    # Searches come back to what they know already.
    return [Point(kind, (), seven) for seven in dict.fromkeys(tuple(row) for row in rows)]


def _points(trial: Trial) -> Iterator[Point]:
    jobs = trial.jobs
    knowing = Trial(
        replace(jobs, requested_time=jobs.run_time),
        trial.processors,
        groups=trial.groups,
        theta=trial.theta,
    )
    for first, second, third, fourth, fifth in permutations((1, 2, 3, 4, 5)):
        order = GroupOrder((first, second, third, fourth, fifth))
        for kind, on, strategy in (
            ("fcfs", trial, Strategy("fcfs", order)),
            ("easy", trial, Strategy("easy", order)),
            ("clairvoyant", knowing, Strategy("easy", order)),
        ):
            found = on.run(strategy).objectives
            assert found is not None  # no bound, so nothing is given up
            yield Point(kind, order.groups, found.seven)


def not_dominated(seven: Sequence[Sequence[float]]) -> np.ndarray:
    """Returns which rows no other dominates: a large U is good, every AWRT is better small.

    `seven` has shape (n, 7), U first; NaN, for a group without jobs, counts as 0.
    """
    return lowest(np.nan_to_num(np.array(seven, np.float64)) * np.array(SIGNS))
