"""Rounds of offers: when a site offers its waiting jobs again, and how it spares questions.

A period alone puts every waiting job to every partner in every round, as docs/disciplines.md has it. Most
of these questions have answers that are known: nothing happens during a round but that jobs find a place,
so that a partner which has declined one job declines every other that is no narrower and no shorter.
"""

import math
from dataclasses import dataclass
from typing import Final, Literal, get_args

PERIOD_MIN: Final = 1.0
"""The shortest period, seconds."""

QUESTIONS_MAX: Final = 2**62
"""A bound that is none."""

RoundOrder = Literal["queue", "widest"]
ROUND_ORDERS: Final[tuple[RoundOrder, ...]] = get_args(RoundOrder)


@dataclass(frozen=True, slots=True)
class Rounds:
    """When waiting jobs are offered again, sparing questions.

    In a round a partner that has declined a job is not asked about those that are at least as wide and
    request at least as much. Where partners take what starts at once, and rails but no policy of their
    own decide besides, jobs go where they would go if every question were put.

    Attributes:
        period: rounds are held at its multiples, seconds, at least 1.
        order: in which jobs are offered: that of the queue; or the widest first, behind the
            narrowest (of these the shortest), as who declines that one is hardly asked further.
        questions: that a site puts to its partners in a round, at most; None: any number.
        pause: the longest pause between two questions about one job to one partner, seconds, at
            least the period. A first no is followed by a pause of one period, each further one by
            twice the last; None: there are no pauses.

    Raises:
        ValueError: a value is out of its bounds.
    """

    period: float
    order: RoundOrder = "queue"
    questions: int | None = None
    pause: float | None = None

    def __post_init__(self) -> None:
        """Checks the values."""
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


def period_of(reoffer: float | Rounds | None) -> float:
    """Returns after how many seconds there is a round again; infinity where there are none.

    Args:
        reoffer: the period alone, or more exactly; None for no rounds.
    """
    if reoffer is None:
        return math.inf
    return reoffer.period if isinstance(reoffer, Rounds) else reoffer
