"""Stop criteria of a training run, which give their reason.

They depend on the history of generations only, so a resumed run stops as one without a break does.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol, Self


@dataclass(frozen=True, slots=True)
class GenerationRecord:
    """One evaluated generation.

    Attributes:
        generation: its number; 0 is that of founders.
        evaluations: genomes evaluated so far, this generation included.
        best: the best value so far; smaller is better.
        mean: mean value of this generation.
        spread: standard deviation of the values of this generation.
        elapsed_s: seconds of training so far, over all sessions.
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
        """Returns why to stop now, for display; `None` to continue. The history is not empty."""


def _check_count(what: str, value: int) -> None:
    if value < 1:
        raise ValueError(f"{what} is {value}; it must be at least 1")


@dataclass(frozen=True, slots=True)
class GenerationLimit:
    """Stops after so many generations, at least 1; founders do not count."""

    generations: int

    def __post_init__(self) -> None:
        _check_count("the generation limit", self.generations)

    def reason(self, history: Sequence[GenerationRecord]) -> str | None:
        """Returns why to stop now; None for going on."""
        if history[-1].generation < self.generations:
            return None
        return f"generation {history[-1].generation} of {self.generations} is done"


@dataclass(frozen=True, slots=True)
class EvaluationLimit:
    """Stops after the generation in which so many evaluations, at least 1, are reached."""

    evaluations: int

    def __post_init__(self) -> None:
        _check_count("the evaluation limit", self.evaluations)

    def reason(self, history: Sequence[GenerationRecord]) -> str | None:
        """Returns why to stop now; None for going on."""
        if history[-1].evaluations < self.evaluations:
            return None
        return f"{history[-1].evaluations} of {self.evaluations} evaluations are done"


@dataclass(frozen=True, slots=True)
class TimeLimit:
    """Stops after the generation in which so many seconds of training, more than 0, are over."""

    seconds: float

    def __post_init__(self) -> None:
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
    """Stops if the best value has not improved for so many generations.

    Attributes:
        generations: at least 1.
        least_gain: least relative improvement of the best value, from 0, for any, to less than 1.
    """

    generations: int
    least_gain: float = 0.0

    def __post_init__(self) -> None:
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
    """Stops when a finite value is reached."""

    value: float

    def __post_init__(self) -> None:
        if not math.isfinite(self.value):
            raise ValueError(f"the target is {self.value}; it must be a finite number")

    def reason(self, history: Sequence[GenerationRecord]) -> str | None:
        """Returns why to stop now; None for going on."""
        if history[-1].best > self.value:
            return None
        return f"the target {self.value:g} is reached"


@dataclass(frozen=True, slots=True)
class AnyOf:
    """Stops when one of several criteria, at least one, would, with its reason."""

    terminations: tuple[Termination, ...]

    def __post_init__(self) -> None:
        if not self.terminations:
            raise ValueError("any of no terminations would never stop; at least one is needed")

    def reason(self, history: Sequence[GenerationRecord]) -> str | None:
        """Returns why to stop now; None for going on."""
        reasons = (termination.reason(history) for termination in self.terminations)
        return next((reason for reason in reasons if reason is not None), None)
