"""What the papers print, and which of their workloads are measured here.

Gains are percent against EASY on the same jobs, positive being better.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

GREEDY: Final = "greedy-criteria"
FUZZY: Final = "genetic-fuzzy"
"""By the word of their command."""

TITLES: Final[Mapping[str, str]] = MappingProxyType(
    {
        GREEDY: "Greedy Scheduling with Custom-made Objectives, measured again",
        FUZZY: "Genetic Fuzzy Systems applied to Online Job Scheduling, measured again",
    }
)

ROWS: Final = ("f", "AWRT1", "AWRT2", "AWRT3", "AWRT4", "AWRT5")
"""Rows of tables: the objective, and the response times of the groups."""

Gains = tuple[float, ...]
"""One number for each of `ROWS`."""


@dataclass(frozen=True, slots=True)
class StudyLog:
    """A recorded log as the studies use it.

    Attributes:
        factor: by which the papers scale its workload to 1024 processors.
        first_jobs: so many are tuned on where nothing is scaled; all later ones are unseen.
    """

    key: str
    processors: int
    factor: float
    first_jobs: int


LOGS: Final = (
    StudyLog("ctc", 430, 2.44, 10_000),
    StudyLog("kth", 100, 10.75, 8_000),
    StudyLog("sdsc00", 128, 8.19, 10_000),
)
"""The one that the papers train on first."""

SCALED: Final = 1024
"""Processors of every machine in the papers."""

TABLE_III: Final[Mapping[str, tuple[float, ...]]] = MappingProxyType(
    {
        "GREEDY": (52755.80, 61947.65, 56275.18, 54017.23, 35085.84),
        "EASY": (59681.28, 64976.07, 50317.47, 46120.02, 31855.68),
    }
)
"""Table III of the paper on criteria: AWRT₁ … AWRT₅ on CTC, seconds."""


def table_iii_gains() -> Gains:
    """Returns Table III as gains over its EASY, f first."""
    greedy, easy = TABLE_III["GREEDY"], TABLE_III["EASY"]
    ours, theirs = (10 * row[0] + 4 * row[1] for row in (greedy, easy))
    pairs = [(theirs, ours), *zip(easy, greedy, strict=True)]
    return tuple(100 * (base - value) / base for base, value in pairs)


TABLE_3: Final[Mapping[str, Gains]] = MappingProxyType(
    {
        "ctc": (12.78, 14.59, 8.65, -6.46, -17.77, -40.43),
        # The paper prints +5.32; with that its f would be -1.67. The sign is lost.
        "kth": (-8.83, -5.32, -16.05, -29.76, -20.42, -60.39),
        "sdsc00": (-130.39, 5.34, -492.24, -718.14, -1370.1, -1824.85),
    }
)
"""Table 3 of the paper on fuzzy rules: the iterative method."""

TABLE_4: Final[Mapping[str, Gains]] = MappingProxyType(
    {
        "ctc": (15.45, 16.64, 12.73, 1.99, -26.36, -153.63),
        "kth": (19.94, 25.67, 8.15, -51.32, -189.05, -1095.83),
        "sdsc00": (55.21, 60.32, 41.58, -5.15, -2562.25, -16162.14),
    }
)
"""Table 4: symbiotic evolution."""

METHODS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        GREEDY: ("f1", "f2", "f3", "f4", "easy-f3"),
        FUZZY: ("iterative", "iterative-group", "symbiotic"),
    }
)
"""What each study learns: with `easy-` by EASY in the order of the criterion, with `-group` from the
constant order of groups; neither is in the papers."""


def printed(method: str, log: str) -> Gains | None:
    """Returns what a paper prints for a method on a log; `None` if it prints no numbers."""
    if method == "iterative":
        return TABLE_3.get(log)
    if method == "symbiotic":
        return TABLE_4.get(log)
    return table_iii_gains() if log == "ctc" and method == "f2" else None
