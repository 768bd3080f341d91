"""What an independent program has measured of the same rules, and who was in it."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

LOGS: Final = ("kth", "ctc", "sdsc05", "sdsc00")
"""In site order, by the keys of their logs."""

DISCIPLINES: Final = ("fcfs", "easy", "mixed")
"""Of all sites; mixed: FCFS at the smaller half, EASY at the others."""

ROUNDS: Final = "fair-exchange+rounds"
POLICIES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "awf": "accept when fit",
        "start-now": "start now",
        "short-guests": "short guests",
        "fair-exchange": "fair exchange",
        ROUNDS: "fair exchange, rounds",
    }
)
"""What is measured, by its word; with rounds waiting jobs are offered again every 15 minutes."""

SETS: Final[Mapping[str, str]] = MappingProxyType(
    {"5": "days 0–150", "6": "from day 150", "stress": "stress"}
)
"""Windows. Under stress one site of a pair has four times as much to do, on 75 days."""

Pair = tuple[float, float]
"""Mean and worst change of AWRT, percent of alone; positive is better than alone."""

TABLE: Final[Mapping[str, Mapping[str, Pair]]] = MappingProxyType(
    {
        "awf": {"5": (18.24, -126.27), "6": (20.88, -51.69), "stress": (5.61, -313.90)},
        "start-now": {"5": (27.13, -1.98), "6": (26.49, -0.28), "stress": (22.72, -12.75)},
        "short-guests": {"5": (26.86, 0.61), "6": (26.06, -0.28), "stress": (20.34, -1.09)},
        "fair-exchange": {"5": (26.54, 0.61), "6": (25.91, -0.23), "stress": (15.93, -0.75)},
        ROUNDS: {"5": (29.42, 0.89), "6": (30.16, 1.74), "stress": (20.57, -2.17)},
    }
)
"""The independent program's figures: mean and worst site of all grids and disciplines."""

CENTRAL: Final[Mapping[str, Mapping[str, Pair]]] = MappingProxyType(
    {
        "central, by requested times": {
            "5": (28.97, -3.14),
            "6": (27.78, -16.38),
            "stress": (26.19, -11.48),
        },
        "central, knows run times": {
            "5": (30.45, 0.80),
            "6": (30.28, 1.80),
            "stress": (27.69, -3.47),
        },
    }
)
"""Of a scheduler that sees all sites; not measured here."""

MONTHS: Final[Mapping[str, tuple[float, float, float]]] = MappingProxyType(
    {"awf": (30.4, 12.8, -543.0), "fair-exchange": (10.4, 2.6, -17.2), ROUNDS: (6.5, 2.2, -32.3)}
)
"""Of months from day 150: percent below 0, percent below −5 %, the worst."""

JITTER: Final = (29.80, -0.41)
"""Mean and worst of federations whose arrivals come up to ten minutes later."""

ADOPTION: Final[Mapping[str, Pair]] = MappingProxyType(
    {
        "all accept when fit": (23.7, -14.4),
        "one fair among accept when fit": (17.1, -1.1),
        "all fair": (29.5, 5.0),
    }
)
"""What the one who adopts has, or everybody."""

BYZANTINE_PARTNERS: Final[Mapping[str, Mapping[str, tuple[float, float, float | None]]]] = (
    MappingProxyType(
        {
            "fair-exchange": {
                "": (26.5, 3.0, 25.8),
                "black-hole": (23.5, -0.4, 19.5),
                "takes-all": (24.1, 0.6, -22.6),
                "free-rider-all": (22.8, 0.6, 6.4),
                "free-rider": (22.9, 0.5, 15.9),
                "awf-taker": (23.4, -0.2, 23.0),
                "awf": (23.9, 0.7, 22.4),
                "overloaded": (25.0, -1.7, None),
            },
            ROUNDS: {
                "": (30.2, 5.0, 29.5),
                "black-hole": (26.2, 0.4, 22.2),
                "takes-all": (26.2, -0.4, 23.0),
                "free-rider-all": (26.4, 1.1, 6.3),
                "free-rider": (26.4, 1.0, 14.9),
                "awf-taker": (26.5, 0.4, 25.6),
                "awf": (26.5, 0.5, 24.6),
                "overloaded": (30.3, 0.0, None),
            },
            "start-now": {"black-hole": (-928.0, -6428.0, None), "awf": (7.5, -298.0, None)},
            "awf": {"black-hole": (-62.0, -623.0, None), "free-rider": (-99.0, -2823.0, None)},
        }
    )
)
"""By policy and Byzantine partner: mean and worst honest site, and what the Byzantine partner itself gains; percent."""

SAME: Final = 0.05
"""Percentage points within which two figures are the same: as they were rounded."""

NEAR: Final = 1.0
"""Percentage points within which they are near each other."""
