"""Resources that can be reserved: how fast, at what price, when open, and how many at once.

Moments are seconds since 1970-01-01 UTC. Weekly patterns are in the resource's own time, which is UTC
plus a fixed offset; daylight saving is not modelled.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from broker.model.names import check_name

DAY = 86_400.0
WEEK = 7 * DAY
"""A week begins on Monday at 0:00."""

EPOCH_IN_WEEK = 3 * DAY
"""Where 1970-01-01, a Thursday, lies in its week; seconds."""

WEEKDAYS = tuple(range(7))
PERFORMANCE_MIN = 1e-6
"""With slower ones, the longest tasks would exceed what floats resolve to the second."""

PRICE_MAX = 1e9
"""Per second and unit; higher ones are mistakes, and sums could become infinite."""


@dataclass(frozen=True, slots=True)
class WeeklyWindow:
    """A span of the day on some weekdays.

    Attributes:
        begin: seconds since midnight.
        end: seconds since midnight, after `begin`, at most 86,400. A span across midnight is two.
        weekdays: Monday is 0, Sunday 6.

    Raises:
        ValueError: the span or a weekday is out of bounds, or there is no weekday.
    """

    begin: float = 0.0
    end: float = DAY
    weekdays: tuple[int, ...] = WEEKDAYS

    def __post_init__(self) -> None:
        if not 0 <= self.begin < self.end <= DAY:
            raise ValueError(
                f"a window from second {self.begin} to {self.end} of the day; "
                f"0 ≤ begin < end ≤ {DAY:.0f}"
            )
        if not self.weekdays or any(day not in WEEKDAYS for day in self.weekdays):
            raise ValueError(f"weekdays are {self.weekdays}; from 0, Monday, to 6, Sunday")

    def spans(self) -> list[tuple[float, float]]:
        """Returns begin and end in seconds of the week, in order."""
        return [
            (day * DAY + self.begin, day * DAY + self.end) for day in sorted(set(self.weekdays))
        ]


@dataclass(frozen=True, slots=True)
class PriceRule:
    """A different price at certain times of the week, per second and unit, from 0 to `PRICE_MAX`."""

    price: float
    window: WeeklyWindow

    def __post_init__(self) -> None:
        _check_price(self.price)


@dataclass(frozen=True, slots=True)
class Calendar:
    """When a resource can be used.

    Attributes:
        opening: weekly hours; none means always. A task must fit into the opening in which it
            starts.
        closures: begin and end of additional closed spans, in seconds; an infinite end means for
            good.

    Raises:
        ValueError: a closure ends before it begins.
    """

    opening: tuple[WeeklyWindow, ...] = ()
    closures: tuple[tuple[float, float], ...] = ()

    def __post_init__(self) -> None:
        for begin, end in self.closures:
            if not begin < end:
                raise ValueError(f"a closure from {begin} to {end}; it must end after its begin")


@dataclass(frozen=True, slots=True)
class Resource:
    """One thing that tasks reserve: a processor, a cluster, a licence, a disk.

    Attributes:
        name: unique.
        kind: what it is, such as "cpu" or "licence".
        performance: seconds of work done in one second; at least `PERFORMANCE_MIN`.
        price: per second and unit, from 0 to `PRICE_MAX`.
        price_rules: other prices by time of day and weekday; a later rule wins.
        capacity: units that can be in use at once, at least 1.
        utc_offset: seconds that the resource's own time is ahead of UTC.

    Raises:
        ValueError: a number is out of bounds; the text names the resource.
    """

    name: str
    kind: str = "cpu"
    performance: float = 1.0
    price: float = 0.0
    price_rules: tuple[PriceRule, ...] = ()
    calendar: Calendar = Calendar()
    capacity: int = 1
    utc_offset: float = 0.0

    def __post_init__(self) -> None:
        check_name("resource", self.name)
        where = f"resource {self.name!r}"
        if not (math.isfinite(self.performance) and self.performance > 0):
            raise ValueError(f"{where}: performance is {self.performance}; it must be more than 0")
        if self.performance < PERFORMANCE_MIN:
            raise ValueError(
                f"{where}: performance is {self.performance:g}; at least {PERFORMANCE_MIN:g}"
            )
        if self.capacity < 1:
            raise ValueError(f"{where}: capacity is {self.capacity}; it must be at least 1")
        if not abs(self.utc_offset) <= DAY:
            raise ValueError(f"{where}: the offset to UTC is {self.utc_offset} s; at most a day")
        try:
            _check_price(self.price)
        except ValueError as error:
            raise ValueError(f"{where}: {error}") from None

    def duration(self, work: float) -> float:
        """Returns the seconds that a task of that work takes here."""
        return work / self.performance

    def price_steps(self) -> list[tuple[float, float]]:
        """Returns the price over the week as (second of the week, price from there on).

        The first step is at second 0; the last holds to the end of the week.
        """
        spans = [
            (begin, end, rule.price)
            for rule in self.price_rules
            for begin, end in rule.window.spans()
        ]
        bounds = sorted({0.0, *(begin for begin, _, _ in spans), *(end for _, end, _ in spans)})
        steps: list[tuple[float, float]] = []
        for bound in bounds:
            if bound >= WEEK:
                break
            price = self.price
            for begin, end, other in spans:
                if begin <= bound < end:
                    price = other
            if not steps or steps[-1][1] != price:
                steps.append((bound, price))
        return steps

    def cost(self, start: float, end: float, units: int = 1) -> float:
        """Returns the price of some units from start to end: the integral in equation 2.3."""
        return self.cost_for(start, end - start, units)

    def cost_for(self, start: float, duration: float, units: int = 1) -> float:
        """Returns the price of some units from a start on.

        Use this if the duration is known: a moment since 1970 is rounded to a quarter of a microsecond, which
        exceeds the tolerance of budgets.
        """
        second = (start + self._shift()) % WEEK
        return units * (self._cost_until(second + duration) - self._cost_until(second))

    def mean_price(self) -> float:
        """Returns the price for a second of one unit, averaged over the week."""
        return self._cost_until(WEEK) / WEEK

    def opening_spans(self) -> list[tuple[float, float]]:
        """Returns the opening hours as spans of the week, joined, in order; none means always.

        Begins are in [0, WEEK). A span across the turn of the week ends after WEEK.
        """
        return join_weekly([span for window in self.calendar.opening for span in window.spans()])

    def closure_spans(self) -> list[tuple[float, float]]:
        """Returns the closures as disjoint spans in order."""
        return join(self.calendar.closures)

    def _shift(self) -> float:
        return EPOCH_IN_WEEK + self.utc_offset

    def _cost_until(self, seconds: float) -> float:
        # Per unit, from the beginning of a week on.
        steps = self.price_steps()
        if len(steps) == 1:
            return seconds * steps[0][1]
        weeks = math.floor(seconds / WEEK)
        second = seconds - weeks * WEEK
        ends = [begin for begin, _ in steps[1:]] + [WEEK]
        parts = list(zip(steps, ends, strict=True))
        week = sum((end - begin) * price for (begin, price), end in parts)
        spent = sum(
            (min(second, end) - begin) * price for (begin, price), end in parts if begin < second
        )
        return weeks * week + spent


def join(spans: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Returns spans in order, those that overlap or touch made one."""
    joined: list[tuple[float, float]] = []
    for begin, end in sorted(spans):
        if joined and begin <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], end))
        else:
            joined.append((begin, end))
    return joined


def join_weekly(spans: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Returns spans of the week in order, touching ones joined, also across its turn.

    Returns none if they cover the whole week, as for no spans: always open.
    """
    joined = join(spans)
    if joined == [(0.0, WEEK)]:
        return []
    if joined and joined[0][0] == 0 and joined[-1][1] == WEEK:
        joined = [*joined[1:-1], (joined[-1][0], WEEK + joined[0][1])]
    return joined


def gaps(
    spans: Sequence[tuple[float, float]], begin: float, end: float
) -> list[tuple[float, float]]:
    """Returns what joined spans leave free between begin and end."""
    edges = [begin, *(moment for span in spans for moment in span), end]
    pairs = list(pairwise(edges))[::2]
    return [(max(a, begin), min(b, end)) for a, b in pairs if max(a, begin) < min(b, end)]


def _check_price(price: float) -> None:
    if not (math.isfinite(price) and price >= 0):
        raise ValueError(f"the price is {price}; it must be a finite number of at least 0")
    if price > PRICE_MAX:
        raise ValueError(f"the price is {price:g}; at most {PRICE_MAX:g} for a second")
