"""Pauses between attempts that fail: longer each time, and not the same for everybody."""

import math
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class BackoffSettings:
    """How long to pause between attempts.

    Attributes:
        first_s: the first pause, seconds, more than 0.
        most_s: the longest, seconds; not less than the first.
        factor: by how much each is longer than the one before, more than 1.

    Raises:
        ValueError: a bound is violated.
    """

    first_s: float = 0.5
    most_s: float = 60.0
    factor: float = 2.0

    def __post_init__(self) -> None:
        """Checks the bounds."""
        if not 0 < self.first_s <= self.most_s < math.inf:
            raise ValueError(
                f"first_s is {self.first_s} and most_s {self.most_s}; the first must be more than "
                "0 and not more than the other, which must be finite"
            )
        if not 1 < self.factor < math.inf:
            raise ValueError(f"factor is {self.factor}; it must be finite and more than 1")


class Backoff:
    """The pauses of one thing that is tried again and again.

    Each pause is drawn between half of its length and all of it, so that many who have lost the
    same server do not come back at the same moment.

    Args:
        settings: how long they are.
        rng: where chance comes from.
    """

    def __init__(self, settings: BackoffSettings, rng: np.random.Generator) -> None:
        self._settings = settings
        self._rng = rng
        self._length_s = settings.first_s

    def next_s(self) -> float:
        """Returns the pause after one more failure, in seconds."""
        length_s = self._length_s
        self._length_s = min(self._settings.most_s, length_s * self._settings.factor)
        return length_s * float(self._rng.uniform(0.5, 1.0))

    def reset(self) -> None:
        """Begins anew with the first pause, after a success."""
        self._length_s = self._settings.first_s
