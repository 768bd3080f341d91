"""Means with confidence intervals, as the paper gives them: at 99 %, by Student's t."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from lrms_sim.analysis.samples import mean_interval

LEVEL: Final = 0.99
"""Of the intervals."""


@dataclass(frozen=True, slots=True)
class Spread:
    """A figure over some runs.

    Attributes:
        half: half the width of the confidence interval; infinite where there is one run only.
    """

    mean: float
    half: float
    count: int

    @classmethod
    def of(cls, values: Sequence[float]) -> "Spread":
        """Returns mean and confidence interval; `ValueError` if there is no value."""
        mean, _, high = mean_interval(values, LEVEL)
        return cls(mean, high - mean if len(values) > 1 else math.inf, len(values))

    @property
    def low(self) -> float:
        """The lower end of the interval; the mean if that is unknown."""
        return self.mean - self.half if self.half < math.inf else self.mean

    @property
    def high(self) -> float:
        """The upper end of the interval; the mean if that is unknown."""
        return self.mean + self.half if self.half < math.inf else self.mean
