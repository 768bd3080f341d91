"""Means with confidence intervals, as the paper gives them: at 99 %, by Student's t."""

import math
import statistics
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

_T_995: Final = (
    *(63.657, 9.925, 5.841, 4.604, 4.032, 3.707, 3.499, 3.355, 3.250, 3.169),
    *(3.106, 3.055, 3.012, 2.977, 2.947, 2.921, 2.898, 2.878, 2.861, 2.845),
    *(2.831, 2.819, 2.807, 2.797, 2.787, 2.779, 2.771, 2.763, 2.756, 2.750),
)
"""Quantiles at 0.995 for 1 to 30 degrees of freedom."""

_BEYOND: Final = ((40, 2.704), (60, 2.660), (120, 2.617), (math.inf, 2.576))
"""The same further on; between them the smaller number of degrees counts."""


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
        if not values:
            raise ValueError("a mean of no values")
        mean = math.fsum(values) / len(values)
        if len(values) < 2:
            return cls(mean, math.inf, 1)
        error = statistics.stdev(values, mean) / math.sqrt(len(values))
        return cls(mean, quantile(len(values) - 1) * error, len(values))

    @property
    def low(self) -> float:
        """The lower end of the interval; the mean if that is unknown."""
        return self.mean - self.half if self.half < math.inf else self.mean

    @property
    def high(self) -> float:
        """The upper end of the interval; the mean if that is unknown."""
        return self.mean + self.half if self.half < math.inf else self.mean


def quantile(degrees: int) -> float:
    """Returns what so many degrees of freedom multiply the standard error by.

    Raises:
        ValueError: there is less than one degree.
    """
    if degrees < 1:
        raise ValueError(f"{degrees} degrees of freedom; at least 1")
    if degrees <= len(_T_995):
        return _T_995[degrees - 1]
    bounds = [bound for bound, _ in _BEYOND]
    place = bisect_left(bounds, degrees)
    if bounds[place] == degrees:
        return _BEYOND[place][1]
    return _BEYOND[place - 1][1] if place else _T_995[-1]
