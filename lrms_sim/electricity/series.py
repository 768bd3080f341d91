"""A price or a carbon intensity over time: a step function with exact sums over intervals."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from lrms_sim.workload.jobs import FloatArray


@dataclass(frozen=True, eq=False)
class Series:
    """A value that holds from each moment until the next, and repeats itself.

    Before the first moment and from `end` on the same steps come again, so that a replay may be longer than
    what is known; `covers` says whether one was.

    Attributes:
        time: shape (n,), when each step begins, seconds of one clock, strictly ascending; at least one.
        value: shape (n,), in any unit.
        end: when the last step ends, seconds; more than the last of `time`.

    Raises:
        ValueError: one of these is not as said.
    """

    time: FloatArray
    value: FloatArray
    end: float

    def __post_init__(self) -> None:
        for name in ("time", "value"):
            column = np.array(getattr(self, name), np.float64)
            column.flags.writeable = False
            object.__setattr__(self, name, column)
        if self.time.ndim != 1 or self.time.shape != self.value.shape or not len(self.time):
            raise ValueError(
                f"time has shape {self.time.shape}, value {self.value.shape}; both need one row for each "
                "step, and there must be a step"
            )
        if not np.isfinite(self.value).all():
            raise ValueError("a value is not finite")
        edges = np.append(self.time, self.end)
        if not (np.isfinite(edges).all() and (np.diff(edges) > 0).all()):
            raise ValueError(
                "moments must be finite and strictly ascending, the end after the last of them"
            )

    @classmethod
    def constant(cls, value: float) -> "Series":
        """Returns a series that is the same at all times."""
        return cls(np.zeros(1), np.array([value]), 3600.0)

    @property
    def first(self) -> float:
        """When the first step begins, seconds."""
        return float(self.time[0])

    @property
    def period(self) -> float:
        """After how many seconds the steps come again."""
        return self.end - self.first

    @cached_property
    def offset(self) -> FloatArray:
        """Of each step its beginning after the first one, seconds, shape (n,)."""
        return self.time - self.first

    @cached_property
    def before(self) -> FloatArray:
        """Integral of the steps before each, and of all of them, shape (n + 1,)."""
        lengths = np.diff(np.append(self.offset, self.period))
        return np.concatenate([[0.0], np.cumsum(lengths * self.value)])

    @property
    def mean(self) -> float:
        """Mean over one period, weighted by time."""
        return float(self.before[-1]) / self.period

    @property
    def scale(self) -> float:
        """The greatest absolute value."""
        return float(np.abs(self.value).max())

    def at(self, moments: npt.ArrayLike) -> FloatArray:
        """Returns the value at each moment, seconds."""
        _, _, step = self._placed(moments)
        return self.value[step]

    def integral(self, begin: npt.ArrayLike, end: npt.ArrayLike) -> FloatArray:
        """Returns the integral over each interval, in the unit of the value times seconds.

        It is exact but for rounding; an interval that ends before it begins counts with the other sign.
        """
        difference: FloatArray = self._until(end) - self._until(begin)
        return difference

    def covers(self, begin: float, end: float) -> bool:
        """Returns whether the steps need not come again for this interval; a single one is the same at all times."""
        return len(self.time) == 1 or (self.first <= begin and end <= self.end)

    def scaled(self, factor: float) -> "Series":
        """Returns the series with every value times a finite factor."""
        if not math.isfinite(factor):
            raise ValueError(f"the factor is {factor}; it must be finite")
        return Series(self.time, self.value * factor, self.end)

    def shifted(self, seconds: float) -> "Series":
        """Returns the series so many seconds later on the clock."""
        return Series(self.time + seconds, self.value, self.end + seconds)

    def _placed(
        self, moments: npt.ArrayLike
    ) -> tuple[FloatArray, FloatArray, npt.NDArray[np.intp]]:
        since = np.asarray(moments, np.float64) - self.first
        cycles = np.floor(since / self.period)
        offset = since - cycles * self.period
        step = np.maximum(np.searchsorted(self.offset, offset, side="right") - 1, 0)
        return cycles, offset, step

    def _until(self, moments: npt.ArrayLike) -> FloatArray:
        cycles, offset, step = self._placed(moments)
        whole: FloatArray = cycles * self.before[-1] + self.before[step]
        return whole + self.value[step] * (offset - self.offset[step])
