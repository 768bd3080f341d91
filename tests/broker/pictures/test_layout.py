import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.model.plan import Placement
from broker.pictures.layout import axis_of, bend_of, lane_height, lanes

MONDAY = 1_772_438_400.0
"""2026-03-02, 8:00 UTC."""


@given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(1, 9)), max_size=40).map(
        lambda spans: sorted((float(a), float(a + d)) for a, d in spans)
    )
)
def test_bars_of_one_lane_do_not_overlap(spans: list[tuple[float, float]]) -> None:
    """And there are no more lanes than bars that overlap at some moment."""
    found = lanes([Placement("w", str(n), (), a, b, 0.0) for n, (a, b) in enumerate(spans)])
    for lane in set(found):
        mine = [span for span, number in zip(spans, found, strict=True) if number == lane]
        assert all(a[1] <= b[0] for a, b in pairwise(mine))
    most = max((sum(a <= at < b for a, b in spans) for at, _ in spans), default=0)
    assert len(set(found)) == max([-1, *found]) + 1 == most


def test_lanes_shrink_until_they_would_vanish() -> None:
    """A few share the room; many make the row higher."""
    assert lane_height(1) == 15.0
    assert lane_height(7) == 8.0
    assert lane_height(300) == 3.5


@pytest.mark.parametrize(
    ("begin", "end", "labels"),
    [
        (0.0, 55.0, ["0", "10 s", "20 s", "30 s", "40 s", "50 s"]),
        (0.0, 3 * 3600.0, ["0", "30 min", "1 h", "1 h 30 min", "2 h", "2 h 30 min", "3 h"]),
        (-5.0, 12.0, ["−4 s", "−2 s", "0", "2 s", "4 s", "6 s", "8 s", "10 s", "12 s"]),
        (MONDAY, MONDAY + 7300.0, ["08:00", "08:15", "08:30", "08:45"]),
        (MONDAY, MONDAY + 20.0, ["08:00:00", "08:00:05", "08:00:10", "08:00:15", "08:00:20"]),
        (MONDAY + 43_200, MONDAY + 86_400.0, ["20:00", "22:00", "3 Mar", "02:00", "04:00"]),
        (MONDAY, MONDAY + 30 * 86_400.0, ["5 Mar", "12 Mar", "19 Mar", "26 Mar"]),
    ],
)
def test_ticks_are_round(begin: float, end: float, labels: list[str]) -> None:
    """Times of a study count from its beginning, those of the calendar are times of day in UTC."""
    axis = axis_of(begin, end, left=0.0, right=100.0, now=0.0 if begin < 1e8 else begin)
    assert [label for _, label in axis.ticks(9)][: len(labels)] == labels


@given(st.floats(-1e6, 2e9), st.floats(1e-3, 1e10), st.integers(3, 12))
def test_ticks_are_few_and_inside(begin: float, length: float, most: int) -> None:
    """Whatever the span, there are at most so many ticks and one, all of them on the axis."""
    axis = axis_of(begin, begin + length, left=10.0, right=90.0, now=begin)
    moments = [moment for moment, _ in axis.ticks(most)]
    assert len(moments) <= most + 1
    assert all(begin - 1e-3 <= moment <= axis.end for moment in moments)
    assert all(10.0 <= axis.at(moment) <= 90.0 for moment in moments)


def test_moments_are_said_in_full() -> None:
    """With the date where there is one; a moment that never comes has none."""
    calendar = axis_of(MONDAY, MONDAY + 60, left=0, right=1, now=MONDAY)
    assert calendar.when(MONDAY + 1.5) == "2 Mar 2026 08:00:01"
    assert calendar.when(math.inf) == "–"
    study = axis_of(0.0, 0.0, left=0, right=1, now=0.0)
    assert study.when(90.0) == "1 min 30 s"
    assert study.when(0.0) == "0"
    assert study.when(math.inf) == "–"
    assert study.end > study.begin


def test_moments_beyond_the_axis_lie_on_its_border() -> None:
    """Nothing is drawn outside of the chart."""
    axis = axis_of(0.0, 10.0, left=5.0, right=25.0, now=0.0)
    assert [axis.at(moment) for moment in (-9.0, 5.0, 1e9, math.inf)] == [5.0, 15.0, 25.0, 25.0]


def test_one_long_task_leaves_the_others_their_room() -> None:
    """Nearly all tasks have most of the width; what ends long after them is drawn narrower."""
    ends = [float(n) for n in range(10, 50)] + [5000.0]
    bend = bend_of(0.0, ends)
    assert 49.0 < bend < 60.0
    axis = axis_of(0.0, 5000.0, left=0.0, right=1000.0, now=0.0, bend=bend)
    assert axis.at(0.0) == 0.0
    assert axis.at(49.0) > 800.0
    assert axis.at(bend) == pytest.approx(850.0)
    assert axis.at(5000.0) == 1000.0
    assert axis.narrowing == pytest.approx((850 / bend) / (150 / (5000 - bend)))
    moments = [moment for moment, _ in axis.ticks(9)]
    assert moments == sorted(moments)
    assert moments[-1] == 5000.0
    assert all(moment <= bend for moment in moments[:-1])
    assert 4 <= len(moments) <= 10


@pytest.mark.parametrize(
    "ends",
    [
        [1.0, 2.0, 1000.0],  # few tasks need no bend
        [float(n) for n in range(1, 100)],
        [10.0] * 50 + [1000.0] * 50,  # those that end late are no exception
        [10.0] * 50 + [40.0],
        [0.0] * 50 + [40.0],
    ],
)
def test_charts_are_straight_where_nothing_is_squeezed(ends: list[float]) -> None:
    """Time is drawn evenly."""
    assert bend_of(0.0, ends) == math.inf
    axis = axis_of(0.0, 100.0, left=0.0, right=10.0, now=0.0)
    assert axis.narrowing == 1.0
    assert axis.at(50.0) == 5.0
