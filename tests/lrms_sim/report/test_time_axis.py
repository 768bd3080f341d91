import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lrms_sim.report.time_axis import Axis, bend_of

MONDAY = 1_772_438_400.0
"""2026-03-02, 8:00 UTC."""


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
    axis = Axis(begin, end, 0.0, 100.0, 0.0 if begin < 1e8 else None)
    assert [label for _, label in axis.ticks(9)][: len(labels)] == labels


@given(st.floats(-1e6, 2e9), st.floats(1e-3, 1e10), st.integers(3, 12))
def test_ticks_are_few_and_inside(begin: float, length: float, most: int) -> None:
    """Whatever the span, there are at most so many ticks and one, all of them on the axis."""
    axis = Axis(begin, begin + length, 10.0, 90.0, begin if begin < 1e8 else None)
    moments = [moment for moment, _ in axis.ticks(most)]
    assert len(moments) <= most + 1
    assert all(begin - 1e-3 <= moment <= axis.end for moment in moments)
    assert all(10.0 <= axis.at(moment) <= 90.0 for moment in moments)


def test_moments_are_said_in_full() -> None:
    """With the date where there is one; a moment that never comes has none."""
    calendar = Axis(MONDAY, MONDAY + 60, 0.0, 1.0, None)
    assert calendar.when(MONDAY + 1.5) == "2 Mar 2026 08:00:01"
    assert calendar.when(math.inf) == "–"
    study = Axis(0.0, 1.0, 0.0, 1.0, 0.0)
    assert study.when(90.0) == "1 min 30 s"
    assert study.when(0.0) == "0"
    assert study.when(math.inf) == "–"


def test_moments_beyond_the_axis_lie_on_its_border() -> None:
    """Nothing is drawn outside of the chart."""
    axis = Axis(0.0, 10.0, 5.0, 25.0, 0.0)
    assert [axis.at(moment) for moment in (-9.0, 5.0, 1e9, math.inf)] == [5.0, 15.0, 25.0, 25.0]


def test_one_long_task_leaves_the_others_their_room() -> None:
    """Nearly all tasks have most of the width; what ends long after them is drawn narrower."""
    ends = [float(n) for n in range(10, 50)] + [5000.0]
    bend = bend_of(0.0, ends)
    assert 49.0 < bend < 60.0
    axis = Axis(0.0, 5000.0, 0.0, 1000.0, 0.0, bend)
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
    axis = Axis(0.0, 100.0, 0.0, 10.0, 0.0)
    assert axis.narrowing == 1.0
    assert axis.at(50.0) == 5.0


def test_times_may_have_words_of_their_own() -> None:
    """Steps of a model are no seconds."""
    axis = Axis(0.0, 20.0, 0.0, 100.0, 0.0, spell="step {:g}".format)
    assert [label for _, label in axis.ticks(4)] == ["0", "step 5", "step 10", "step 15", "step 20"]
