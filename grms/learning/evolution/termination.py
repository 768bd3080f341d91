"""Limits of a training run, as options and as stop criteria, which give their reason.

Criteria depend on the history of generations only, so a resumed run stops as one without a break does. Nothing here
is slow to import: commands take options from it.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol, Self

from lrms_sim.util.option_fields import option


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


GENERATIONS = 150
"""Default limit: the number of paper 003 (section 4.5)."""


@dataclass(frozen=True, slots=True)
class Limits:
    """When to stop; the first limit reached counts.

    Attributes:
        generations: default `GENERATIONS`, if no limit at all is set.
        evaluations: stops after the generation in which so many are reached.
        seconds: stops after the generation in which so much time is over.
        stagnation: generations without gain.
    """

    generations: int | None = option(default=None)
    evaluations: int | None = option("Stop after so many.", default=None)
    seconds: float | None = option(
        "Stop after so much time.", default=None, flag="--time-limit", metavar="SECONDS"
    )
    stagnation: int | None = option("Stop after so many generations without gain.", default=None)
    target: float | None = option(default=None)

    @property
    def generations_max(self) -> int | None:
        """The generation limit in force."""
        others = (self.evaluations, self.seconds, self.stagnation, self.target)
        if self.generations is None and all(other is None for other in others):
            return GENERATIONS
        return self.generations

    def termination(self) -> Termination:
        """Returns the limits as a termination; `ValueError` if a limit is out of its bounds."""
        kinds: tuple[tuple[Any, Callable[[Any], Termination]], ...] = (
            (self.target, TargetValue),
            (self.generations_max, GenerationLimit),
            (self.evaluations, EvaluationLimit),
            (self.seconds, TimeLimit),
            (self.stagnation, Stagnation),
        )
        return AnyOf(tuple(kind(value) for value, kind in kinds if value is not None))
