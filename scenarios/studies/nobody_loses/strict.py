"""Strict exchange in the study: its rules, what is said of them, and whether they keep to what is expected."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from grms.federation.sites import Checkpoints
from grms.policy.constraints import STRICT_EXCHANGE, AccountRules, ExchangeConstraints
from grms.policy.transfer import Constrained, TransferPolicy

HOURLY: Final = 3600.0
"""Between two checkpoints, seconds."""


@dataclass(frozen=True, slots=True)
class StrictRule:
    """A rule of strict exchange.

    Attributes:
        words: for people.
        policy: of all sites.
        checkpoint: which jobs keep their state.
    """

    words: str
    policy: TransferPolicy
    checkpoint: Checkpoints | None = None


_PREEMPT: Final = Constrained(STRICT_EXCHANGE, name="strict-exchange")
_RUN: Final = Constrained(
    ExchangeConstraints(account=AccountRules(guests="run")), name="strict-exchange, guests run"
)

NO_CHECKPOINTS: Final = "strict-exchange"

STRICT: Final[Mapping[str, StrictRule]] = MappingProxyType(
    {
        "strict-exchange run": StrictRule("strict, guests run on", _RUN),
        NO_CHECKPOINTS: StrictRule("strict, no checkpoints", _PREEMPT),
        "strict-exchange half": StrictRule(
            "strict, every second job", _PREEMPT, Checkpoints(HOURLY, 2)
        ),
        "strict-exchange all": StrictRule("strict, every job", _PREEMPT, Checkpoints(HOURLY)),
    }
)
"""By word: guests that run to their end, and guests that go home, where no, every second or every job of a site keeps
its state hourly."""

HALF_YEAR_WORST: Final = -0.5
MONTH_WORST: Final = -5.0
"""Percent below which no half year and no full month is expected."""

OWN: Final[Mapping[str, Mapping[str, tuple[float, float]]]] = MappingProxyType(
    {
        "strict-exchange run": {"5": (28.48, 0.99), "6": (27.78, 0.83), "stress": (20.26, -0.44)},
        NO_CHECKPOINTS: {"5": (28.92, 1.27), "6": (29.21, 1.31), "stress": (25.50, -0.07)},
        "strict-exchange half": {"5": (30.34, 1.55), "6": (31.12, 0.90), "stress": (26.94, 0.14)},
        "strict-exchange all": {"5": (31.43, 1.56), "6": (32.55, 1.90), "stress": (27.80, -0.05)},
    }
)
"""The independent program's figures: mean and worst site of all grids and disciplines, percent."""
