"""Fitness of a local strategy: a provider's objective on recorded workloads.

The objective is f = Σ θ_g·AWRT_g, seconds, over the user groups (papers 000 and 001). Several
workloads count by the sum of f, as in paper 001 (section IV-C), or by the mean of f relative to
EASY's, so that the busiest does not dominate.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from grms.learning.evolution.genes import Genome
from grms.learning.evolution.strategies import Evaluation
from grms.learning.queueing.encoding import Encoding
from lrms_sim.analysis.objectives import Objectives
from lrms_sim.analysis.trial import Trial, TrialResult
from lrms_sim.scheduling.disciplines import Easy
from lrms_sim.scheduling.selection import Policy
from lrms_sim.scheduling.situations import Calendar

Combination = Literal["sum", "relative"]
"""How several workloads count: the sum of f, or the mean of f / f of EASY."""

COMBINATIONS: Final[tuple[Combination, ...]] = ("sum", "relative")

LIMIT_FACTOR: Final = 20.0
"""A replay is stopped at this multiple of EASY's f: orders that let a queue grow to thousands of
jobs would take most of the time, without useful information.
"""


_ROUNDING: Final = 1e-12


@dataclass(frozen=True)
class TuningCase:
    """A workload that strategies are evaluated on.

    Attributes:
        trial: the workload, the machine, the groups and θ.
        calendar: of the site's situations; `None` if its local time is not known.
        easy: result of EASY, the baseline.
    """

    name: str
    trial: Trial
    calendar: Calendar | None
    easy: Objectives

    @property
    def easy_value(self) -> float:
        """F of EASY, seconds."""
        return self.easy.value(self.trial.theta)

    def run(self, policy: Policy, bound: float = math.inf) -> TrialResult:
        """Returns the result of a policy, which gets the site's calendar if it has none.

        Above `bound`, of f, the replay may stop.

        Raises:
            ValueError: the policy needs a calendar, and there is none.
        """
        if policy.needs_calendar and self.calendar is not None:
            policy = policy.at(self.calendar)
        return self.trial.run(policy, bound)


def tuning_case(name: str, trial: Trial, calendar: Calendar | None = None) -> TuningCase:
    """Returns a case with the result of EASY.

    Raises:
        ValueError: no job of the workload counts in the objective.
    """
    objectives = trial.run(Easy()).objectives
    assert objectives is not None
    if not objectives.value(trial.theta) > 0:
        raise ValueError(f"{name}: no job of a user group with a weight in θ; nothing to improve")
    return TuningCase(name, trial, calendar, objectives)


class TuningFitness:
    """Evaluates genomes by replay; thread-safe.

    The figures of an evaluation are three rows: the seven objectives of each case in turn; how many
    passes found the machine in each class, all cases together; how many passes each strategy made.
    The last two are empty for policies that do not choose.

    Args:
        cases: at least one.
        encoding: meaning of the genes.
        combination: of several cases.

    Raises:
        ValueError: there is no case, or no such combination.
    """

    def __init__(
        self, cases: Sequence[TuningCase], encoding: Encoding, combination: Combination = "sum"
    ) -> None:
        if not cases:
            raise ValueError("a fitness needs at least one workload")
        if combination not in COMBINATIONS:
            raise ValueError(
                f"there is no combination {combination!r}; there are: {', '.join(COMBINATIONS)}"
            )
        self.cases = tuple(cases)
        self.encoding = encoding
        self.combination: Combination = combination
        self._weights = [
            1.0 if combination == "sum" else 1.0 / (len(cases) * case.easy_value) for case in cases
        ]

    def __call__(self, genome: Genome, bound: float = math.inf) -> Evaluation:
        """Replays every case with the genome's policy; stops once the bound is exceeded.

        A stopped evaluation's value is the least number above the bound or above the limit relative
        to EASY, whichever comes first: it does not depend on when it stopped.
        """
        return self.judge(self.encoding.decode(genome), bound)

    def judge(self, policy: Policy, bound: float = math.inf) -> Evaluation:
        """Returns what comes of a policy; see `__call__`."""
        limit = min(bound, self.limit)
        value, results = 0.0, []
        for case, weight in zip(self.cases, self._weights, strict=True):
            # Rounding must not give up what is just within: whether it is, the sum decides. What
            # the cases still to come add at the least is left out: simple, and hardly later.
            result = case.run(policy, (limit - value) / weight * (1.0 + _ROUNDING))
            if result.objectives is None:
                return Evaluation(math.nextafter(limit, math.inf))
            value += weight * result.value
            results.append(result)
        if value > limit:
            return Evaluation(math.nextafter(limit, math.inf))
        seven = tuple(
            number for one in results if one.objectives for number in one.objectives.seven
        )
        visits = _sums([one.visits for one in results])
        passes = _sums([one.passes for one in results])
        return Evaluation(value, (seven, visits, passes))

    @property
    def easy_value(self) -> float:
        """The value of EASY itself."""
        return sum(
            weight * case.easy_value for case, weight in zip(self.cases, self._weights, strict=True)
        )

    @property
    def limit(self) -> float:
        """The value at which a replay is given up."""
        return LIMIT_FACTOR * self.easy_value

    def gain(self, value: float) -> float:
        """Returns how much smaller a value is than EASY's, percent; more than 0 is better."""
        return (self.easy_value - value) / self.easy_value * 100.0


def _sums(rows: Sequence[tuple[int, ...] | None]) -> tuple[float, ...]:
    counted = [row for row in rows if row is not None]
    return tuple(float(sum(column)) for column in zip(*counted, strict=True))
