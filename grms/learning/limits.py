"""Limits of a training run; also options of commands, so nothing here is slow to import."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from grms.learning.evolution.termination import (
    AnyOf,
    EvaluationLimit,
    GenerationLimit,
    Stagnation,
    TargetValue,
    Termination,
    TimeLimit,
)
from lrms_sim.util.option_fields import option

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
