"""How sure a mean of a few replays is: confidence intervals after Student."""

import math
from typing import NamedTuple

import numpy.typing as npt

from lrms_sim.util.columns import numbers


class MeanInterval(NamedTuple):
    """A mean and its confidence interval; the ends are nan for fewer than two values."""

    mean: float
    low: float
    high: float


def mean_interval(values: npt.ArrayLike, level: float = 0.95) -> MeanInterval:
    """Returns the mean of independent values and its confidence interval.

    It rests on Student's t distribution, so on values that are roughly normal, as means over the
    jobs of long workloads are. There is one value for each replication, and `level` is between 0
    and 1.

    Raises:
        ValueError: there is no value, one is no number or missing, or the level is out of bounds.
    """
    given: list[float] = numbers("values", values).tolist()
    if not given:
        raise ValueError("no values; at least one is needed for a mean")
    if not 0.0 < level < 1.0:
        raise ValueError(f"level is {level}; it must be between 0 and 1")
    count = len(given)
    mean = math.fsum(given) / count
    if count == 1:
        return MeanInterval(mean, math.nan, math.nan)
    variance = math.fsum((value - mean) ** 2 for value in given) / (count - 1)
    half = t_quantile(0.5 + level / 2.0, count - 1) * math.sqrt(variance / count)
    return MeanInterval(mean, mean - half, mean + half)


def t_quantile(probability: float, freedom: int) -> float:
    """Returns the quantile of Student's t distribution, by bisection; `probability` in [0.5, 1)."""
    low, high = 0.0, 1.0
    while t_probability(high, freedom) < probability and high < 1e300:
        high *= 2.0
    for _ in range(200):
        middle = 0.5 * (low + high)
        if t_probability(middle, freedom) < probability:
            low = middle
        else:
            high = middle
    return 0.5 * (low + high)


def t_probability(t: float, freedom: int) -> float:
    """Returns P(T ≤ t) of Student's t distribution for integer degrees of freedom and t ≥ 0.

    Abramowitz and Stegun, Handbook of Mathematical Functions, 26.7.3 and 26.7.4.
    """
    angle = math.atan(t / math.sqrt(freedom))
    cosine, sine = math.cos(angle), math.sin(angle)
    term = 1.0 if freedom % 2 == 0 else cosine
    total = 0.0 if freedom == 1 else term
    for k in range(2 if freedom % 2 == 0 else 3, freedom, 2):
        term *= cosine * cosine * (k - 1) / k
        total += term
    inside = sine * total if freedom % 2 == 0 else 2.0 / math.pi * (angle + sine * total)
    return 0.5 + inside / 2.0
