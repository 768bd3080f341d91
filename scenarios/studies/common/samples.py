"""What studies say of their figures: a sample's middle and ends, and the machine it was taken on."""

import os
import statistics
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Spread:
    """A sample of one figure: its median and its ends.

    Attributes:
        median: of an even number of values the mean of the two in the middle.
        low: the least value.
    """

    median: float
    low: float
    high: float
    count: int

    @classmethod
    def of(cls, values: Iterable[float]) -> "Spread":
        """Returns the spread of at least one value."""
        found = list(values)
        return cls(statistics.median(found), min(found), max(found), len(found))


def machine_words() -> str:
    """Returns the processor's name and how many of them this process may use."""
    name = "an unnamed processor"
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                name = line.partition(":")[2].strip()
                break
    except OSError:
        pass
    return f"{name}, {len(os.sched_getaffinity(0))} processors"
