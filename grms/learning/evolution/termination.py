"""When to stop a training run, as objects that give their reason.

A termination looks at the history of generations and at nothing else, so a run that is resumed
stops where one without a break does.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol, Self


@dataclass(frozen=True, slots=True)
class GenerationRecord:
    """What is known of one generation once its values are told.

    Attributes:
        generation: its number; 0 is that of founders that nobody bred.
        evaluations: genomes evaluated so far, this generation included.
        best: the best value so far; smaller is better.
        mean: mean value of this generation.
        spread: standard deviation of the values of this generation.
        elapsed_s: seconds of training so far, of all sessions where it was resumed.
    """

    generation: int
    evaluations: int
    best: float
    mean: float
    spread: float
    elapsed_s: float

    def to_state(self) -> dict[str, Any]:
        """Returns the record as plain values, exact to the last bit."""
        return asdict(self)

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Returns the record that `to_state` described."""
        return cls(**state)


class Termination(Protocol):
    """What decides when to stop."""

    def reason(self, history: Sequence[GenerationRecord]) -> str | None:
        """Returns why to stop now, for people; None for going on.

        Args:
            history: all generations so far, at least one.
        """


def _check_count(what: str, value: int) -> None:
    if value < 1:
        raise ValueError(f"{what} is {value}; it must be at least 1")


@dataclass(frozen=True, slots=True)
class GenerationLimit:
    """Stops after so many generations; founders do not count.

    Raises:
        ValueError: the number is less than 1.
    """

    generations: int

    def __post_init__(self) -> None:
        """Checks the bound."""
        _check_count("the generation limit", self.generations)

    def reason(self, history: Sequence[GenerationRecord]) -> str | None:
        """Returns why to stop now; None for going on."""
        if history[-1].generation < self.generations:
            return None
        return f"generation {history[-1].generation} of {self.generations} is done"


@dataclass(frozen=True, slots=True)
class EvaluationLimit:
    """Stops after the generation in which so many evaluations are reached.

    Raises:
        ValueError: the number is less than 1.
    """

    evaluations: int

    def __post_init__(self) -> None:
        """Checks the bound."""
        _check_count("the evaluation limit", self.evaluations)

    def reason(self, history: Sequence[GenerationRecord]) -> str | None:
        """Returns why to stop now; None for going on."""
        if history[-1].evaluations < self.evaluations:
            return None
        return f"{history[-1].evaluations} of {self.evaluations} evaluations are done"


@dataclass(frozen=True, slots=True)
class TimeLimit:
    """Stops after the generation in which so many seconds of training are over.

    Raises:
        ValueError: the number is not more than 0, or not finite.
    """

    seconds: float

    def __post_init__(self) -> None:
        """Checks the bound."""
        if not 0 < self.seconds < math.inf:
            raise ValueError(
                f"the time limit is {self.seconds} s; it must be a finite number above 0"
            )

    def reason(self, history: Sequence[GenerationRecord]) -> str | None:
        """Returns why to stop now; None for going on."""
        if history[-1].elapsed_s < self.seconds:
            return None
        return f"{history[-1].elapsed_s:.1f} of {self.seconds:g} s are over"


@dataclass(frozen=True, slots=True)
class Stagnation:
    """Stops when the best value has not become better for a while.

    Attributes:
        generations: how long that is.
        least_gain: what counts as better: the part of the best value that was gained, such as
            0.001; with 0 any gain counts.

    Raises:
        ValueError: the number is less than 1, or the gain is not from 0 to less than 1.
    """

    generations: int
    least_gain: float = 0.0

    def __post_init__(self) -> None:
        """Checks the bounds."""
        _check_count("the number of generations without gain", self.generations)
        if not 0 <= self.least_gain < 1:
            raise ValueError(f"the least gain is {self.least_gain}; it must be from 0 to below 1")

    def reason(self, history: Sequence[GenerationRecord]) -> str | None:
        """Returns why to stop now; None for going on."""
        if len(history) <= self.generations:
            return None
        before, now = history[-1 - self.generations].best, history[-1].best
        gain = before - now
        if gain > 0 and gain >= self.least_gain * abs(before):
            return None
        return f"no gain in {self.generations} generations"


@dataclass(frozen=True, slots=True)
class TargetValue:
    """Stops when a value is reached.

    Raises:
        ValueError: the value is not a finite number.
    """

    value: float

    def __post_init__(self) -> None:
        """Checks the value."""
        if not math.isfinite(self.value):
            raise ValueError(f"the target is {self.value}; it must be a finite number")

    def reason(self, history: Sequence[GenerationRecord]) -> str | None:
        """Returns why to stop now; None for going on."""
        if history[-1].best > self.value:
            return None
        return f"the target {self.value:g} is reached"


@dataclass(frozen=True, slots=True)
class AnyOf:
    """Stops when one of several would; the first that would gives the reason.

    Raises:
        ValueError: there is none.
    """

    terminations: tuple[Termination, ...]

    def __post_init__(self) -> None:
        """Checks that there is one."""
        if not self.terminations:
            raise ValueError("any of no terminations would never stop; at least one is needed")

    def reason(self, history: Sequence[GenerationRecord]) -> str | None:
        """Returns why to stop now; None for going on."""
        reasons = (termination.reason(history) for termination in self.terminations)
        return next((reason for reason in reasons if reason is not None), None)
