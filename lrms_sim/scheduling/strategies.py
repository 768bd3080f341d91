"""Scheduling strategies: an algorithm on an order of the queue, and the 13 of the paper.

After Franke, Lepping, Schwiegelshohn 2007, "Genetic Fuzzy Systems applied to Online Job
Scheduling". `docs/strategies.md` is for operators, `docs/disciplines.md` has every tie rule;
`lrms_sim.scheduling.selection` has the choice among strategies.
"""

import math
from dataclasses import dataclass, replace
from typing import Final, Literal, NamedTuple, Self, get_args

import numpy as np
import numpy.typing as npt

from lrms_sim.kernel._strategies import StrategyScheduler
from lrms_sim.scheduling.criteria import (
    CRITERION_KINDS,
    GREEDY_DEFAULT,
    KEY_ORDERS,
    ORDER_WORDS,
    STATIC_ORDERS,
    CriterionOrder,
    GroupOrder,
    KeyOrder,
    Order,
    StaticOrder,
)
from lrms_sim.scheduling.situations import Calendar
from lrms_sim.util.messages import unknown

Algorithm = Literal["fcfs", "list", "easy", "conservative"]
"""What is done with the ordered queue."""

ALGORITHMS: Final = get_args(Algorithm)

_IDENTITY: Final = (1, 2, 3, 4, 5)


class Words(NamedTuple):
    """One strategy as the kernel takes it."""

    algorithm: int
    order: int
    backfill: int
    groups: tuple[int, ...]
    criteria: npt.NDArray[np.float64] | None
    switch_time: npt.NDArray[np.float64] | None
    situation: npt.NDArray[np.int32] | None
    needs_groups: bool


@dataclass(frozen=True, slots=True)
class Strategy:
    """An algorithm on an order of the queue.

    Every strategy is without memory: EASY protects the current head of the ordered queue, and
    conservative backfilling plans all waiting jobs anew at every pass. FCFS on the order of a
    criterion is the Greedy of the papers.

    Attributes:
        algorithm: `fcfs`, `list`, `easy` or `conservative`.
        label: default from algorithm and order.
        backfill: the order of EASY's candidates behind the blocked head, a word; default that of
            the queue. `requested_time` is SJBF (Tsafrir, Etsion, Feitelson 2007).
    """

    algorithm: Algorithm
    order: Order = "arrival"
    label: str = ""
    backfill: StaticOrder | KeyOrder | None = None

    def __post_init__(self) -> None:
        if self.algorithm not in ALGORITHMS:
            raise ValueError(unknown("algorithm", str(self.algorithm), ALGORITHMS))
        if isinstance(self.order, str) and self.order not in ORDER_WORDS:
            raise ValueError(unknown("order", self.order, ORDER_WORDS))
        if self.backfill is None:
            return
        if self.backfill not in ORDER_WORDS:
            raise ValueError(unknown("backfill order", str(self.backfill), ORDER_WORDS))
        if self.algorithm != "easy":
            raise ValueError(f"backfill goes with the algorithm easy, not with {self.algorithm}")

    @property
    def name(self) -> str:
        """The word for this strategy in reports: its label, or as "easy-group"."""
        if self.label:
            return self.label
        if self.backfill is not None:
            return f"{self._queue_name}-backfill-{self.backfill.replace('_', '-')}"
        return self._queue_name

    @property
    def _queue_name(self) -> str:
        order = self.order
        if isinstance(order, GroupOrder):
            digits = "" if order == GroupOrder() else "-" + "".join(map(str, order.groups))
            return f"{self.algorithm}-group{digits}"
        if isinstance(order, CriterionOrder):
            kinds = dict.fromkeys(criterion.kind for criterion in order.criteria)
            algorithm = "greedy" if self.algorithm == "fcfs" else self.algorithm
            return f"{algorithm}-{'-'.join(kinds)}"
        between = "-by-" if order in KEY_ORDERS else "-"
        return f"{self.algorithm}{between}{order.replace('_', '-')}"

    @property
    def per_event(self) -> bool:
        """Whether a pass follows every single event; it does not."""
        return False

    @property
    def needs_groups(self) -> bool:
        """Whether the user group of every job has to be known."""
        if isinstance(self.order, CriterionOrder):
            return self.order.tells_groups_apart
        return isinstance(self.order, GroupOrder)

    @property
    def needs_calendar(self) -> bool:
        """Whether the site's local time matters and is still missing."""
        return isinstance(self.order, CriterionOrder) and self.order.needs_calendar

    def at(self, calendar: Calendar) -> Self:
        """Returns the same strategy at a site with this calendar."""
        if isinstance(self.order, CriterionOrder):
            return replace(self, order=self.order.at(calendar))
        return self

    def scheduler(self) -> StrategyScheduler:
        """Returns a new scheduler for one machine; `ValueError` without a calendar."""
        return StrategyScheduler([words_of(self)])


def paper_strategies(
    greedy: CriterionOrder = GREEDY_DEFAULT, groups: GroupOrder | None = None
) -> tuple[Strategy, ...]:
    """Returns the 13 strategies of the paper, in the order of their numbers.

    Number 4·a + s is the algorithm a of FCFS, EASY, conservative on the order s of arrival,
    processors, requested time, group; number 12 is Greedy. Sorted by processors all three
    algorithms are the same, as no job is narrower than a blocked head, so 11 differ. The paper does
    not give the order of Greedy; its groups begin with 1.
    """
    orders: tuple[Order, ...] = ("arrival", "processors", "requested_time", groups or GroupOrder())
    algorithms: tuple[Algorithm, ...] = ("fcfs", "easy", "conservative")
    return (
        *(Strategy(algorithm, order) for algorithm in algorithms for order in orders),
        Strategy("fcfs", greedy),
    )


def words_of(strategy: Strategy) -> Words:
    """Returns a strategy as the kernel takes it; `ValueError` without a calendar."""
    order = strategy.order
    if isinstance(order, GroupOrder):
        return _named(strategy, 3, groups=order.groups)
    if isinstance(order, CriterionOrder):
        if order.needs_calendar:
            raise ValueError(
                f"strategy {strategy.name!r} differs from situation to situation; the site's "
                f"time zone is needed to tell which situation it is"
            )
        criteria = order.criteria if order.calendar is not None else order.criteria[:1]
        rows = [(CRITERION_KINDS.index(c.kind) + 1.0, *c.numbers) for c in criteria]
        # A single criterion holds in every situation and needs no calendar.
        calendar = order.calendar if len(criteria) > 1 else None
        return _named(strategy, 4, criteria=np.array(rows), calendar=calendar)
    return _named(strategy, _order_number(order))


def _order_number(order: StaticOrder | KeyOrder) -> int:
    if order in KEY_ORDERS:
        return 5 + KEY_ORDERS.index(order)
    return STATIC_ORDERS.index(order)


def _named(
    strategy: Strategy,
    order: int,
    *,
    groups: tuple[int, ...] = _IDENTITY,
    criteria: npt.NDArray[np.float64] | None = None,
    calendar: Calendar | None = None,
) -> Words:
    algorithm = strategy.algorithm
    if strategy.order == "processors":
        # Behind a blocked head nobody is narrower: all four algorithms are this one.
        algorithm = "fcfs"
    assert criteria is None or math.isfinite(float(criteria.sum()))
    return Words(
        ALGORITHMS.index(algorithm),
        order,
        order if strategy.backfill is None else _order_number(strategy.backfill),
        groups,
        criteria,
        None if calendar is None else calendar.switch_time,
        None if calendar is None else calendar.situation,
        strategy.needs_groups,
    )
