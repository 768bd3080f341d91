import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.model.resources import DAY, EPOCH_IN_WEEK, WEEK, Calendar, Resource
from broker.planner._timetable import ResourceTimetable
from tests.broker.random_problems import HOUR, NOW, WINDOWS
from tests.oracles.plan_checker import is_open

Asked = tuple[int, int, int]
"""Earliest start and duration, in hours, and units."""


@given(
    st.integers(1, 4),
    st.lists(st.tuples(st.integers(0, 40), st.integers(1, 9), st.integers(1, 4)), max_size=40),
    st.sampled_from(((), (WINDOWS[1],), (WINDOWS[2],), WINDOWS[3:])),
)
def test_the_earliest_gap_is_found(
    capacity: int, asked: list[Asked], windows: tuple[object, ...]
) -> None:
    """What is booked one after another is free, open, and nowhere free earlier, hour by hour."""
    calendar = Calendar(windows)  # type: ignore[arg-type]  # windows of the sampled tuples
    resource = Resource("a", calendar=calendar)
    table = ResourceTimetable(capacity, resource.opening_spans(), EPOCH_IN_WEEK)
    used: dict[int, int] = {}
    for hour, duration, wanted in asked:
        units = min(wanted, capacity)
        start = table.fit(NOW + hour * HOUR, duration * HOUR, units)
        if start == math.inf:
            assert duration > 8  # the shortest of the openings above
            continue
        begin = round((start - NOW) / HOUR)

        def fits(first: int, duration: int = duration, units: int = units) -> bool:
            """Returns whether the task could start there."""
            hours = range(first, first + duration)
            free = all(used.get(each, 0) + units <= capacity for each in hours)
            return free and is_open(resource, NOW + first * HOUR, NOW + (first + duration) * HOUR)

        assert fits(begin)
        assert not any(fits(earlier) for earlier in range(hour, begin))
        table.occupy(start, start + duration * HOUR, units)
        for each in range(begin, begin + duration):
            used[each] = used.get(each, 0) + units


def test_the_fully_taken_span_is_told() -> None:
    """It grows as spans touch, and is empty where a unit is left."""
    exclusive = ResourceTimetable(1)
    assert exclusive.occupy(0, 2) == (0, 2)
    assert exclusive.occupy(4, 6) == (4, 6)
    assert exclusive.occupy(2, 4) == (0, 6)
    shared = ResourceTimetable(2)
    begin, end = shared.occupy(0, 4)
    assert begin == end
    assert shared.occupy(1, 2) == (1, 2)
    assert shared.occupy(2, 3) == (1, 3)


def test_a_week_that_is_never_open_long_enough_is_told() -> None:
    """Infinity, rather than a search without end."""
    table = ResourceTimetable(1, [(0.0, HOUR)], 0.0)
    assert table.fit(5 * HOUR, HOUR, 1) == WEEK
    assert table.fit(0.0, 2 * HOUR, 1) == math.inf


def test_many_rows_are_no_trouble() -> None:
    """Tables grow; a gap between thousands of spans is found."""
    table = ResourceTimetable(1)
    for day in range(3000):
        table.occupy(day * DAY, day * DAY + 20 * HOUR)
    assert table.fit(100 * DAY, 4 * HOUR) == 100 * DAY + 20 * HOUR
    assert table.fit(100 * DAY, 5 * HOUR) == 2999 * DAY + 20 * HOUR


def test_arguments_are_checked() -> None:
    """Capacities, units, durations and spans out of bounds are errors of the caller."""
    with pytest.raises(ValueError, match="capacity is 0"):
        ResourceTimetable(0)
    table = ResourceTimetable(2)
    for duration in (0.0, -1.0, math.nan):
        with pytest.raises(ValueError, match="duration"):
            table.fit(0, duration)
    for units in (0, 3):
        with pytest.raises(ValueError, match="units of 2"):
            table.fit(0, 1, units)
        with pytest.raises(ValueError, match="units of 2"):
            table.occupy(0, 1, units)
    with pytest.raises(ValueError, match="from 1"):
        table.occupy(1, 1)
