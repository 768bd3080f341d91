"""Rounds of offers: when a site offers its waiting jobs again, with few questions.

A period alone asks every partner about every waiting job in every round (docs/disciplines.md). Most of
these answers are known: during a round only placements happen, so that a partner which has declined one job
declines every other that is no narrower and no shorter.
"""

import math
from dataclasses import dataclass
from typing import Final, Literal, get_args

PERIOD_MIN: Final = 1.0
QUESTIONS_MAX: Final = 2**62
"""No bound."""

RoundOrder = Literal["queue", "widest"]
ROUND_ORDERS: Final[tuple[RoundOrder, ...]] = get_args(RoundOrder)


@dataclass(frozen=True, slots=True)
class Rebalancing:
    """When waiting jobs are offered again, with fewer questions.

    In a round a partner that has declined a job is not asked about jobs at least as wide and with at least
    its request. If partners take what starts at once and use constraints but no other policy, jobs go where they
    would go if every question were asked.

    Attributes:
        period: rounds are held at its multiples, seconds, at least 1.
        order: of offers: that of the queue; or the widest first, after the narrowest (of these the shortest),
            as a partner that declines that one is hardly asked further.
        questions: most questions of a site in a round; `None`: any number.
        pause: longest pause between two questions about one job to one partner, seconds, at least the
            period. The first refusal is followed by one period, each further one by twice the last;
            `None`: no pauses.
    """

    period: float
    order: RoundOrder = "queue"
    questions: int | None = None
    pause: float | None = None

    def __post_init__(self) -> None:
        if not PERIOD_MIN <= self.period < math.inf:
            raise ValueError(f"the period is {self.period} s; at least {PERIOD_MIN:g} s is needed")
        if self.order not in ROUND_ORDERS:
            raise ValueError(f"order is {self.order!r}; there are: {', '.join(ROUND_ORDERS)}")
        if self.questions is not None and not 1 <= self.questions <= QUESTIONS_MAX:
            raise ValueError(f"questions is {self.questions}; it must be at least 1")
        if self.pause is not None and not self.period <= self.pause < math.inf:
            raise ValueError(
                f"pause is {self.pause} s; it must be at least the period, {self.period:g} s"
            )

    @property
    def bounds(self) -> tuple[int, float, bool]:
        """Questions, longest pause and whether the widest come first, as the kernel takes them."""
        return self.questions or QUESTIONS_MAX, self.pause or 0.0, self.order == "widest"


def period_of(reoffer: float | Rebalancing | None) -> float:
    """Returns the period of rounds in seconds; infinity without rounds."""
    if reoffer is None:
        return math.inf
    return reoffer.period if isinstance(reoffer, Rebalancing) else reoffer
