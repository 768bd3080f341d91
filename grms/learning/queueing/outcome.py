"""Results of a tuning run, and the trivial constants that it must beat.

The objective f = Σ θ_g·AWRT_g gives every job of a user group one ratio of weight to work, θ_g /
RC_g. Serving the groups in the order of that ratio needs no learning, and on recorded workloads it
achieves most of what the learned strategies of papers 000 and 001 do.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from grms.learning.queueing.fitness import LIMIT_FACTOR, TuningCase
from grms.learning.queueing.problem import Workload
from grms.learning.training import TrainingResult
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


LEARNED: Final = "learned"
"""Name of the learned policy among the constants."""

RESULT_FORMAT: Final = 1
_SEVEN: Final = ("utilization", "awrt", "awrt_1", "awrt_2", "awrt_3", "awrt_4", "awrt_5")


@dataclass(frozen=True)
class Comparison:
    """One workload: the constants and the learned policy, on both its parts.

    Attributes:
        training: all policies on the training jobs; the learned one last.
        unseen: the same on the others, with the orders of groups of the training jobs; empty
            without such jobs.
    """

    workload: Workload
    training: tuple[Judged, ...]
    unseen: tuple[Judged, ...]

    @property
    def parts(self) -> tuple[tuple[str, TuningCase, tuple[Judged, ...]], ...]:
        """The word for each part, its case, and the policies on it."""
        found = [("training", self.workload.training, self.training)]
        if self.workload.unseen is not None:
            found.append(("unseen", self.workload.unseen, self.unseen))
        return tuple(found)

    def warnings(self) -> tuple[str, ...]:
        """Returns where a constant is as good as what was learned, for people."""
        said = []
        for word, _, judged in self.parts:
            best = best_constant(judged)
            learned = judged[-1]
            if not learned.value < best.value:
                jobs = "the jobs it was tuned on" if word == "training" else "unseen jobs"
                said.append(
                    f"{self.workload.name}: on {jobs} what was learned ({gain_words(learned)}) does not "
                    f"beat the constant {best.name} ({gain_words(best)}); use the constant"
                )
        return tuple(said)


def best_constant(judged: Sequence[Judged]) -> Judged:
    """Returns the constant with the least value; of equal ones the first."""
    return min((one for one in judged if one.name != LEARNED), key=lambda one: one.value)


def compare(workload: Workload, policy: Policy) -> Comparison:
    """Returns the constants and a policy on both parts of a workload.

    The orders of groups are those of the training jobs in both parts, as only these are known to a
    provider.
    """
    policies: list[tuple[str, Policy]] = [(one.name, one) for one in constants(workload.training)]
    policies.append((LEARNED, policy))
    return Comparison(
        workload,
        judge(workload.training, policies),
        () if workload.unseen is None else judge(workload.unseen, policies),
    )


@dataclass(frozen=True)
class Tuning:
    """Result of a tuning run.

    Attributes:
        policy: what was learned, without a site's calendar.
        comparisons: one for each workload.
        easy_value: the value of EASY, in the unit of the fitness.
        unit: of a value, for display.
        passes: number of passes made by each strategy; empty for criteria.
        visits: number of passes in each class; empty except for tables.
        judged: the seven objectives of each fully evaluated individual, if recorded.
    """

    policy: Policy
    provenance: Mapping[str, Any]
    comparisons: tuple[Comparison, ...]
    result: TrainingResult
    easy_value: float
    unit: str
    passes: tuple[float, ...] = ()
    visits: tuple[float, ...] = ()
    judged: tuple[tuple[float, ...], ...] = ()

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a user should know before using the policy."""
        return tuple(
            text for one in self.comparisons for text in (*one.workload.warnings, *one.warnings())
        )

    def to_document(self) -> dict[str, Any]:
        """Returns every figure as plain values that JSON can say."""
        result = self.result
        return {
            "format": RESULT_FORMAT,
            "policy": self.policy.name,
            "value": result.best.evaluation.value,
            "easy_value": self.easy_value,
            "evaluations": result.evaluations,
            "elapsed_s": result.elapsed_s,
            "generations": result.history[-1].generation,
            "found_in_generation": result.best.generation,
            "stopped": result.reason,
            "warnings": list(self.warnings),
            "workloads": [_comparison_document(one) for one in self.comparisons],
            "provenance": dict(self.provenance),
        }


def _comparison_document(one: Comparison) -> dict[str, Any]:
    return {
        "name": one.workload.name,
        **{
            word: [_judged_document(judged, case) for judged in found]
            for word, case, found in one.parts
        },
    }


def _judged_document(judged: Judged, case: TuningCase) -> dict[str, Any]:
    seven = (math.nan,) * 7 if judged.objectives is None else judged.objectives.seven
    return {
        "name": judged.name,
        "value": _or_none(judged.value),
        "gain_percent": _or_none(judged.gain),
        "objectives": dict(zip(_SEVEN, map(_or_none, seven), strict=True)),
        "gains_percent": dict(zip(_SEVEN, map(_or_none, judged.group_gains(case)), strict=True)),
    }


def gain_words(judged: Judged) -> str:
    """Returns how much better than EASY a policy is, as text."""
    return "given up" if math.isinf(judged.value) else f"{judged.gain:+.2f} %"


def value_words(judged: Judged) -> str:
    """Returns the value of a policy as text."""
    return "given up" if math.isinf(judged.value) else f"{judged.value:,.0f}"


def group_words(judged: Judged, case: TuningCase) -> tuple[str, ...]:
    """Returns the gain of each group's AWRT over EASY as text, percent."""
    return tuple("–" if math.isnan(x) else f"{x:+.1f}" for x in judged.group_gains(case)[2:])


def _or_none(number: float) -> float | None:
    return number if math.isfinite(number) else None
