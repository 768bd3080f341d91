"""What is run: the paper's settings, the readings of its text, and what is put beside it."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from lrms_sim.malleable.machine import Learning
from lrms_sim.malleable.options import MachineOptions

RATE: Final = 0.1
"""Arrivals in a step in Figures 2, 3 and 5."""

RATES: Final = (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.7, 1.0)
"""Rates of Figure 4; the paper prints none."""

SHAPES: Final = ("concave", "linear", "convex")
"""Shapes of the utility in Figure 5."""

SHAPE_RATES: Final = (0.1, 0.3)
"""Rates of Figure 5; the paper's is the first."""

POSSIBLE: Final = 480.0
"""P_max, in 1000 utility units: 24 processors for 20,000 steps."""

BEST_FIT: Final = "best-fit"

SEVEN: Final[Mapping[str, str]] = MappingProxyType(
    {
        BEST_FIT: "best fit",
        "over-aggressive": "over, aggressive",
        "pre-aggressive": "pre, aggressive",
        "both-aggressive": "both, aggressive",
        "over-value": "over, learned",
        "pre-value": "pre, learned",
        "both-value": "both, learned",
    }
)
"""The policies of Figures 2 and 3, and what they are called on the page."""

HIGHEST: Final = ("over-highest", "pre-highest", "both-highest")
"""Aggressive policies that take the job of the highest utility, against which the paper chose."""

REACHABLE: Final[Mapping[str, str]] = MappingProxyType(
    {
        "fcfs": "FCFS",
        "easy": "EASY",
        "edf": "EDF",
        BEST_FIT: "best fit",
        "density": "utility density",
        "both-aggressive": "both, aggressive",
        "pre-value": "pre, learned",
        "both-value": "both, learned",
        "both-greedy": "both, greedy",
        "replan-rigid": "replan, no squeezing",
        "replan": "replan",
        "replan-weights": "replan, evolved order",
    }
)
"""What else there is, with growth."""

REACHABLE_RATES: Final = (0.1, 0.2, 0.3, 0.5)
"""Rates of that table."""


@dataclass(frozen=True, slots=True)
class Reading:
    """One way to read what the text leaves open."""

    key: str
    name: str
    options: MachineOptions
    learning: Learning


_NEVER: Final = MachineOptions(grow="never", step=1.0)
_FIRST: Final = MachineOptions(grow="first", step=1.0)

READINGS: Final[Mapping[str, Reading]] = MappingProxyType(
    {
        each.key: each
        for each in (
            Reading("never", "no growth, ρ per step, α 0.003", _NEVER, Learning()),
            Reading("printed", "no growth, ρ per update, α 1/t", _NEVER, Learning(1.0, 0.0, False)),
            Reading(
                "growth", "growth, ρ per update, α 1/(10+t)", _FIRST, Learning(1.0, 10.0, False)
            ),
        )
    }
)
"""The first fits the paper's statements best; the last is how its text describes squeezed jobs."""

LOGS: Final = ("kth", "ctc")
"""Recorded logs on which policies are compared, by the keys of `scenarios.spec.traces`."""

LEARN_DAYS: Final = (150.0, 330.0)
TEST_DAYS: Final = (0.0, 150.0)
"""Training and test days of the logs."""

LOG_SEEDS: Final = 5
"""Training runs on each log."""

LOG_POLICIES: Final = (
    "fcfs",
    "easy",
    "edf",
    "density",
    BEST_FIT,
    "over-aggressive",
    "pre-aggressive",
    "both-aggressive",
    "over-value",
    "pre-value",
    "both-value",
    "both-greedy",
    "replan-rigid",
    "replan-deadline",
    "replan",
)
"""Policies compared on logs."""
