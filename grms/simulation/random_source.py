"""Chance from one seed: streams of random numbers, one for each purpose."""

import math

import numpy as np

_BLOCK = 512


class RandomSource:
    """A stream of random draws, quick for one number at a time.

    `purpose` numbers the streams of one seed; an extra draw in one does not shift another.
    """

    def __init__(self, seed: int, purpose: int = 0) -> None:
        self._generator = np.random.Generator(np.random.PCG64([purpose, seed]))
        self._block: list[float] = []

    def uniform(self) -> float:
        """Returns a number in [0, 1)."""
        if not self._block:
            self._block = self._generator.random(_BLOCK).tolist()
        return self._block.pop()

    def chance(self, probability: float) -> bool:
        """Returns True with a probability; nothing is drawn if it is 0."""
        return probability > 0 and self.uniform() < probability

    def between(self, least: float, most: float) -> float:
        """Returns a number in [least, most)."""
        return least + (most - least) * self.uniform()

    def integer(self, least: int, most: int) -> int:
        """Returns a whole number from `least` to `most`, both possible."""
        return least + int((most - least + 1) * self.uniform())

    def exponential(self, mean: float) -> float:
        """Returns an exponentially distributed number."""
        return -mean * math.log1p(-self.uniform())
