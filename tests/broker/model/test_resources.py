import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.model.resources import (
    DAY,
    PRICE_MAX,
    WEEK,
    Calendar,
    PriceRule,
    Resource,
    WeeklyWindow,
    gaps,
    join,
    join_weekly,
)
from tests.broker.random_problems import HOUR, NOW, WINDOWS
from tests.oracles.plan_checker import price_between

MOMENTS = st.integers(-100, 400).map(lambda hours: NOW + hours * HOUR / 2)


@given(
    MOMENTS,
    st.integers(1, 500),
    st.lists(st.tuples(st.integers(0, 5), st.sampled_from(WINDOWS)), max_size=3),
    st.sampled_from((0.0, HOUR, -5 * HOUR)),
    st.integers(1, 3),
)
def test_a_cost_is_the_integral_of_the_price(
    start: float,
    hours: int,
    rules: list[tuple[int, WeeklyWindow]],
    utc_offset: float,
    units: int,
) -> None:
    """Prices by the week are summed over any span, as a walk from step to step does it."""
    resource = Resource(
        "a",
        price=2.0,
        price_rules=tuple(PriceRule(price, window) for price, window in rules),
        utc_offset=utc_offset,
    )
    end = start + hours * HOUR / 2
    expected = units * price_between(resource, start, end)
    assert resource.cost(start, end, units) == pytest.approx(expected, abs=1e-3)


def test_a_later_price_rule_wins() -> None:
    """Two rules for the same hour: the second one's price holds."""
    night = WeeklyWindow(0, 6 * HOUR)
    resource = Resource("a", price=3, price_rules=(PriceRule(2, night), PriceRule(1, night)))
    assert resource.cost(NOW, NOW + 12 * HOUR) == (6 * 1 + 6 * 3) * HOUR
    assert resource.mean_price() == pytest.approx(2.5)


def test_prices_follow_the_resources_own_time() -> None:
    """A resource five hours behind UTC has its morning five hours later."""
    rule = PriceRule(0, WeeklyWindow(0, 6 * HOUR))
    resource = Resource("a", price=1, price_rules=(rule,), utc_offset=-5 * HOUR)
    assert resource.cost(NOW, NOW + 5 * HOUR) == 5 * HOUR
    assert resource.cost(NOW + 5 * HOUR, NOW + 11 * HOUR) == 0


def test_the_last_price_step_holds_to_the_end_of_the_week() -> None:
    """No step begins where the week ends: that is second 0 again."""
    sunday = PriceRule(2, WeeklyWindow(weekdays=(6,)))
    resource = Resource("a", price=3, price_rules=(sunday,))
    assert resource.price_steps() == [(0, 3), (6 * DAY, 2)]
    assert resource.mean_price() == pytest.approx(20 / 7)


def test_duration_is_work_over_performance() -> None:
    """A resource of performance 2 needs half the time."""
    assert Resource("a", performance=2).duration(10) == 5


def test_hours_over_midnight_and_over_the_week_are_joined() -> None:
    """Monday to Sunday from 20 to 24 and from 0 to 6 are seven spans of ten hours."""
    night = (WeeklyWindow(20 * HOUR, DAY), WeeklyWindow(0, 6 * HOUR))
    spans = Resource("a", calendar=Calendar(night)).opening_spans()
    assert [end - begin for begin, end in spans] == [10 * HOUR] * 7
    assert spans[-1] == (6 * DAY + 20 * HOUR, WEEK + 6 * HOUR)
    always = Resource("a", calendar=Calendar((WeeklyWindow(0, DAY),)))
    assert always.opening_spans() == []


def test_closures_are_joined() -> None:
    """Spans that overlap or touch are one."""
    calendar = Calendar(closures=((5, 7), (1, 3), (3, 4), (6, math.inf)))
    assert Resource("a", calendar=calendar).closure_spans() == [(1, 4), (5, math.inf)]


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(1, 6)), max_size=6))
def test_joined_spans_and_gaps_cover_everything_once(draws: list[tuple[int, int]]) -> None:
    """Every moment is in a joined span iff it is in a span, else in a gap."""
    spans = [(float(begin), float(begin + length)) for begin, length in draws]
    joined = join(spans)
    free = gaps(joined, 0, 30)
    for step in range(60):
        moment = step / 2 + 0.25
        inside = any(begin <= moment < end for begin, end in spans)
        assert inside == any(begin <= moment < end for begin, end in joined)
        assert inside != any(begin <= moment < end for begin, end in free)


def test_gaps_have_a_length() -> None:
    """Where a span begins with the stretch, or ends with it, nothing is left free there."""
    assert gaps([(0, 5), (8, 30)], 0, 30) == [(5, 8)]
    assert gaps([(0, 30)], 0, 30) == []
    assert gaps([], 0, 30) == [(0, 30)]


def test_a_whole_week_is_always() -> None:
    """Seven days that touch are no opening hours at all."""
    assert join_weekly([(day * DAY, (day + 1) * DAY) for day in range(7)]) == []


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: WeeklyWindow(5, 5),
            "a window from second 5 to 5 of the day; 0 ≤ begin < end ≤ 86400",
        ),
        (
            lambda: WeeklyWindow(-1, 5),
            "a window from second -1 to 5 of the day; 0 ≤ begin < end ≤ 86400",
        ),
        (
            lambda: WeeklyWindow(0, DAY + 1),
            "a window from second 0 to 86401.0 of the day; 0 ≤ begin < end ≤ 86400",
        ),
        (lambda: WeeklyWindow(weekdays=()), "weekdays are (); from 0, Monday, to 6, Sunday"),
        (lambda: WeeklyWindow(weekdays=(7,)), "weekdays are (7,); from 0, Monday, to 6, Sunday"),
        (
            lambda: PriceRule(-1, WeeklyWindow()),
            "the price is -1; it must be a finite number of at least 0",
        ),
        (
            lambda: Calendar(closures=((3, 3),)),
            "a closure from 3 to 3; it must end after its begin",
        ),
        (
            lambda: Resource("a", performance=0),
            "resource 'a': performance is 0; it must be more than 0",
        ),
        (
            lambda: Resource("a", performance=math.inf),
            "resource 'a': performance is inf; it must be more than 0",
        ),
        (
            lambda: Resource("a", performance=5e-324),
            "resource 'a': performance is 4.94066e-324; at least 1e-06",
        ),
        (
            lambda: Resource("a", price=1e300),
            "resource 'a': the price is 1e+300; at most 1e+09 for a second",
        ),
        (lambda: Resource("a", capacity=0), "resource 'a': capacity is 0; it must be at least 1"),
        (
            lambda: Resource("a", price=math.nan),
            "resource 'a': the price is nan; it must be a finite number of at least 0",
        ),
        (lambda: Resource(""), "a resource has no name"),
        (
            lambda: Resource("a", utc_offset=2 * DAY),
            "resource 'a': the offset to UTC is 172800.0 s; at most a day",
        ),
    ],
)
def test_numbers_out_of_bounds_are_refused(make: Any, message: str) -> None:
    """Every bound is checked; the error has the value, and the resource where it knows it."""
    with pytest.raises(ValueError, match=r".") as error:
        make()
    assert str(error.value) == message


@pytest.mark.parametrize("offset", [-DAY, DAY])
def test_the_bounds_themselves_are_allowed(offset: float) -> None:
    """An offset of a day, either way, and the highest price, of a resource or a rule."""
    rule = PriceRule(PRICE_MAX, WeeklyWindow())
    resource = Resource("a", price=PRICE_MAX, price_rules=(rule,), utc_offset=offset)
    assert resource.utc_offset == offset
    assert resource.price_steps() == [(0, PRICE_MAX)]
