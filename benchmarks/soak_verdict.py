"""What samples of daemons over a long time say: slopes with intervals, and whether they keep to their bounds."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt

DRAWS: Final = 1_000
SAMPLES_MIN: Final = 12
"""Fewer say nothing about a slope."""

Says = Literal["kept", "broken", "unclear"]


@dataclass(frozen=True, slots=True)
class Slope:
    """By how much y grows with x: least squares, and an interval that holds it in 95 of 100 cases."""

    estimate: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a figure keeps to its bound.

    Attributes:
        what: in words, with its unit.
        most: the bound.
        says: "kept" where the whole interval is at most `most`, "broken" where all of it is above, else "unclear".
    """

    what: str
    estimate: float
    low: float
    high: float
    most: float
    says: Says

    def document(self) -> dict[str, Any]:
        """Returns it as it is kept, with four digits."""
        rounded = {
            name: float(f"{value:.4g}")
            for name, value in asdict(self).items()
            if not isinstance(value, str)
        }
        return asdict(self) | rounded


def slope(x: Sequence[float], y: Sequence[float], seed: int = 1) -> Slope:
    """Returns the slope of y over x.

    Samples that follow each other are alike, which least squares alone would take for certainty. So the interval is
    that of a bootstrap of the residuals in blocks of about the square root of the number of samples (moving blocks,
    H. R. Künsch, Annals of Statistics 17, 1989).

    Raises:
        ValueError: there are fewer than `SAMPLES_MIN` samples, or all have the same x.
    """
    xs, ys = np.asarray(x, np.float64), np.asarray(y, np.float64)
    if len(xs) < SAMPLES_MIN or len(xs) != len(ys) or np.ptp(xs) == 0:
        raise ValueError(f"{len(xs)} samples say nothing about a slope")
    centred = xs - xs.mean()

    def fitted(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        found: npt.NDArray[np.float64] = values @ centred / (centred @ centred)
        return found

    estimate = float(fitted(ys))
    line = ys.mean() + estimate * centred
    residuals = ys - line
    block = max(2, round(len(xs) ** 0.5))
    blocks = -(-len(xs) // block)
    starts = np.random.default_rng(seed).integers(0, len(xs) - block + 1, (DRAWS, blocks))
    rows = (starts[:, :, None] + np.arange(block)).reshape(DRAWS, -1)[:, : len(xs)]
    low, high = np.percentile(fitted(line + residuals[rows]), [2.5, 97.5])
    return Slope(estimate, float(low), float(high))


def judged(what: str, found: Slope, most: float, per: float = 1.0) -> Verdict:
    """Returns whether a slope, times `per`, keeps to a bound."""
    estimate, low, high = (per * value for value in (found.estimate, found.low, found.high))
    says: Says = "kept" if high <= most else "broken" if low > most else "unclear"
    return Verdict(what, estimate, low, high, most, says)


def counted(what: str, value: float, most: float) -> Verdict:
    """Returns whether a figure that was counted, and not estimated, keeps to a bound."""
    return Verdict(what, value, value, value, most, "kept" if value <= most else "broken")
