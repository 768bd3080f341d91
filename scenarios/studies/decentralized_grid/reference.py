"""What the paper prints: Table 1, Table 2, and what its text says of Figures 4 and 5.

The figures themselves are bar charts without numbers; of them only the text can be compared.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final


@dataclass(frozen=True, slots=True)
class WindowFigures:
    """A row of Table 1: one site alone under FCFS.

    Attributes:
        awrt: average weighted response time, seconds.
        utilization: percent.
        makespan: completion of the last job, seconds; from time 0 of the log for the five-month
            windows, from the first submission for the six-month windows.
    """

    jobs: int
    awrt: float
    utilization: float
    makespan: int


TABLE_1: Final[Mapping[str, WindowFigures]] = MappingProxyType(
    {
        "KTH-5": WindowFigures(11780, 488387.49, 64.84, 13765377),
        "CTC-5": WindowFigures(35360, 57897.77, 63.74, 13009718),
        "SDSC05-5": WindowFigures(28184, 56925.10, 45.94, 13078215),
        "KTH-6": WindowFigures(16699, 99236.27, 68.52, 16420782),
        "CTC-6": WindowFigures(41839, 59118.15, 67.05, 16346403),
        "SDSC05-6": WindowFigures(46719, 77463.52, 70.97, 16419455),
        "SDSC00-6": WindowFigures(16316, 413957.04, 73.38, 17002360),
    }
)
"""By site and months."""


@dataclass(frozen=True, slots=True)
class TrainingFigures:
    """A row of Table 2: one site of a training setup.

    Attributes:
        awrt: average weighted response time, seconds.
        awrt_improvement: ΔAWRT against the site alone, percent; positive is better.
        squashed_area_change: ΔSA, percent.
    """

    awrt: float
    awrt_improvement: float
    squashed_area_change: float


@dataclass(frozen=True, slots=True)
class Setup:
    """A training setup of Table 2.

    Attributes:
        number: the paper's, in Roman digits.
        scenario: the bundled scenario of its workloads.
        site: the site that learns.
        partner: the site that accepts when fit.
        paper: the paper's figures of both, by site.
    """

    number: str
    scenario: str
    site: str
    partner: str
    paper: Mapping[str, TrainingFigures]


def _setup(
    number: str, site: str, partner: str, own: TrainingFigures, other: TrainingFigures
) -> Setup:
    order = ("I", "II", "III", "IV", "V", "VI").index(number) + 1
    scenario = f"setup-{order}-{site.lower()}-{partner.lower()}"
    return Setup(number, scenario, site, partner, MappingProxyType({site: own, partner: other}))


SETUPS: Final = (
    _setup(
        "I",
        "KTH",
        "CTC",
        TrainingFigures(66100.77, 86.47, -48.56),
        TrainingFigures(63534.29, -9.74, 12.15),
    ),
    _setup(
        "II",
        "CTC",
        "KTH",
        TrainingFigures(54745.53, 5.44, -1.60),
        TrainingFigures(62884.33, 87.12, 6.40),
    ),
    _setup(
        "III",
        "KTH",
        "SDSC05",
        TrainingFigures(59409.60, 87.84, -34.04),
        TrainingFigures(58799.15, -3.29, 3.04),
    ),
    _setup(
        "IV",
        "SDSC05",
        "KTH",
        TrainingFigures(54773.39, 3.78, 1.94),
        TrainingFigures(70561.62, 85.55, -21.75),
    ),
    _setup(
        "V",
        "CTC",
        "SDSC05",
        TrainingFigures(45997.73, 20.55, -8.15),
        TrainingFigures(57013.44, -0.16, 2.91),
    ),
    _setup(
        "VI",
        "SDSC05",
        "CTC",
        TrainingFigures(49916.01, 12.31, 0.18),
        TrainingFigures(57069.59, 1.43, -0.51),
    ),
)
"""In the paper's order."""

PAIRS: Final = ("kth-ctc-6", "kth-sdsc05-6", "ctc-sdsc05-6")
"""Bundled scenarios of Figure 4: two sites, the six months after the training window."""

THREE_SITES: Final = "three-sites-6"
FOUR_SITES: Final = "four-sites-6"
"""Figure 5(b), where SDSC00 is a partner without a learned policy."""

UNKNOWN_SITE: Final = "SDSC00"

STATEMENTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "pairs": "The paper: “the Evolutionary Fuzzy Systems still decrease the AWRT significantly "
        "in all cases”, and “the rule based transfer policy outperforms AWF in all cases”; AWF "
        "“completely fails for the CTC workload trace” (section 6.2).",
        "three": "The paper: “the AWRT is still significantly improved for all sites while the "
        "utilization decreases for the small partner” (section 7).",
        "four": "The paper: “not only this partner can improve its AWRT but also other participants "
        "are able to improve their AWRT for at least 10%” (section 8).",
    }
)
"""Statements in the text about the figures."""
