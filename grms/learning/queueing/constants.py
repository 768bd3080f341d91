"""The trivial constants that a learned strategy has to beat.

The objective f = Σ θ_g·AWRT_g gives every job of a user group one ratio of weight to work, θ_g /
RC_g. Serving the groups in the order of that ratio needs no learning, and on recorded workloads it
achieves most of what the learned strategies of papers 000 and 001 do.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from grms.learning.queueing.fitness import LIMIT_FACTOR, TuningCase
from lrms_sim.analysis.objectives import Objectives
from lrms_sim.scheduling.criteria import GroupOrder, smith_order
from lrms_sim.scheduling.selection import Policy
from lrms_sim.scheduling.strategies import Strategy


@dataclass(frozen=True, slots=True)
class Judged:
    """A policy on a workload.

    Attributes:
        value: f, seconds; infinite if the replay was stopped.
        gain: how much smaller f is than EASY's, percent; more than 0 is better.
        objectives: all seven; `None` if the replay was stopped.
    """

    name: str
    value: float
    gain: float
    objectives: Objectives | None

    def group_gains(self, case: TuningCase) -> tuple[float, ...]:
        """Returns how much smaller each of the seven objectives is than EASY's, percent."""
        if self.objectives is None:
            return (float("nan"),) * 7
        return self.objectives.relative_to(case.easy)


def group_order(case: TuningCase) -> GroupOrder:
    """Returns the order of groups by falling θ_g / RC_g on a workload."""
    jobs, groups = case.trial.jobs, case.trial.groups
    consumption = np.bincount(groups, weights=jobs.resource_consumption, minlength=6)[1:]
    return smith_order(case.trial.theta, consumption.tolist())


def constants(case: TuningCase) -> tuple[Strategy, ...]:
    """Returns the constants of a workload: FCFS and EASY, and three algorithms on group orders.

    The orders are the papers', heaviest users first, and that by θ_g / RC_g if it differs.
    """
    orders = dict.fromkeys((GroupOrder(), group_order(case)))
    return (
        Strategy("fcfs"),
        Strategy("easy"),
        *(
            Strategy(algorithm, order)
            for order in orders
            for algorithm in ("fcfs", "easy", "conservative")
        ),
    )


def judge(case: TuningCase, policies: Sequence[tuple[str, Policy]]) -> tuple[Judged, ...]:
    """Returns what comes of policies on a workload."""
    judged = []
    for name, policy in policies:
        easy = case.easy_value
        result = case.run(policy, LIMIT_FACTOR * easy)
        gain = (easy - result.value) / easy * 100.0
        judged.append(Judged(name, result.value, gain, result.objectives))
    return tuple(judged)
