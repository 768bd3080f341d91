"""How alike the users of a machine are served."""

import math
from dataclasses import dataclass

import numpy as np

from lrms_sim.analysis.metrics import BOUNDED_SLOWDOWN_THRESHOLD_S, check_threshold, submitted
from lrms_sim.workload.schedule import Schedule


@dataclass(frozen=True, slots=True)
class UserFairness:
    """How evenly a machine serves its users, by the mean bounded slowdown of each one's jobs.

    A figure is nan without users. A mean over jobs hides this: a user with many jobs outweighs the
    others.

    Attributes:
        users: number of them; jobs of unknown users are ignored.
        jain: Jain's index, (Σx)² / (n Σx²): 1 if all are served alike, 1/n if one has all the
            delay.
        median: of the users' slowdowns.
        worst: the largest of them.
        worst_user: the smallest number among the worst served; -1 without users.
    """

    users: int
    jain: float
    median: float
    worst: float
    worst_user: int


def user_fairness(
    schedule: Schedule,
    submitted_to: int | None = None,
    *,
    threshold: float = BOUNDED_SLOWDOWN_THRESHOLD_S,
) -> UserFairness:
    """Returns how evenly users are served.

    The index is that of Jain, Chiu and Hawe, "A Quantitative Measure of Fairness and Discrimination
    for Resource Allocation in Shared Computer Systems" (1984), equation 1.

    Args:
        schedule: the result of a replay.
        submitted_to: index of the machine; default all.
        threshold: of the bounded slowdown, seconds, more than 0.

    Raises:
        ValueError: there is no such machine, or the threshold is not more than 0.
    """
    check_threshold(threshold)
    chosen = submitted(schedule, submitted_to, None) & (schedule.jobs.user >= 0)
    users, place = np.unique(schedule.jobs.user[chosen], return_inverse=True)
    if not len(users):
        return UserFairness(0, math.nan, math.nan, math.nan, -1)
    run_time = np.maximum(schedule.jobs.run_time[chosen], threshold)
    slowdown = np.maximum(schedule.response_time[chosen] / run_time, 1.0)
    mean = np.bincount(place, weights=slowdown) / np.bincount(place)
    return UserFairness(
        users=len(users),
        jain=float(mean.sum() ** 2 / (len(users) * np.square(mean).sum())),
        median=float(np.median(mean)),
        worst=float(mean.max()),
        worst_user=int(users[mean.argmax()]),
    )
