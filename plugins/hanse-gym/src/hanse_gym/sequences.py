"""Sequences of consecutive jobs, by seed, from parts of a log that have no job in common."""

from dataclasses import dataclass
from typing import Final, Literal, get_args

import numpy as np
import numpy.typing as npt

from lrms_sim.workload.jobs import JobTable

Split = Literal["train", "validation", "test"]

SPLITS: Final[tuple[Split, ...]] = get_args(Split)

SHARES: Final = {"train": (0.0, 0.6), "validation": (0.6, 0.8), "test": (0.8, 1.0)}


@dataclass(frozen=True, slots=True)
class Sequences:
    """The sequences of one part of a log.

    Training has the first 60 % of the jobs, validation the next 20 %, the test the last 20 %. A sequence lies within
    its part, so no job of a test has been seen in training. Sequences of one part may overlap.

    Attributes:
        jobs: the whole log, prepared for its machine.
        processors: size of the machine.
        length: jobs of a sequence.
        split: the part.
    """

    jobs: JobTable
    processors: int
    length: int = 256
    split: Split = "train"

    def __post_init__(self) -> None:
        if self.split not in SPLITS:
            raise ValueError(f"split is {self.split!r}; it must be one of {', '.join(SPLITS)}")
        if self.length < 1:
            raise ValueError(f"length is {self.length}; a sequence has at least 1 job")
        start, stop = self.rows
        if stop - start < self.length:
            raise ValueError(
                f"the {self.split} part has {stop - start} jobs; a sequence needs {self.length}"
            )

    @property
    def rows(self) -> tuple[int, int]:
        """The part's first row, and the one after its last."""
        low, high = SHARES[self.split]
        return round(low * len(self.jobs)), round(high * len(self.jobs))

    def draw(self, random: np.random.Generator) -> int:
        """Returns the first row of a random sequence; every place in the part is as likely."""
        start, stop = self.rows
        return int(random.integers(start, stop - self.length + 1))

    def fixed(self, count: int, seed: int) -> npt.NDArray[np.int64]:
        """Returns the first rows of `count` sequences, the same for the same seed, log, length and split."""
        random = np.random.default_rng(seed)
        return np.array([self.draw(random) for _ in range(count)], np.int64)

    def table(self, first: int) -> JobTable:
        """Returns the jobs of the sequence that begins in a row, with the log's clock."""
        return self.jobs.select(np.arange(first, first + self.length))
