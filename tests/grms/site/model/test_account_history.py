"""The last 30 days of the account that a site keeps of itself."""

import json
import math

from hypothesis import given
from hypothesis import strategies as st

from grms.site.model.account_history import (
    HISTORY_S,
    POINT_S,
    POINTS_MAX,
    AccountHistory,
    RunningGuests,
)

NOBODY = RunningGuests()


def noted(*times: float, in_credit: bool = True) -> AccountHistory:
    """Returns the history of looks at some moments."""
    history = AccountHistory()
    for time in times:
        history.note(time, in_credit=in_credit, late=False, balance=time, guests=NOBODY)
    return history


def test_the_looks_of_two_hours_are_one_point() -> None:
    history = noted(0.0, 900.0)
    history.note(6300.0, in_credit=False, late=True, balance=-1.0, guests=RunningGuests(1, 2, 3))
    history.note(7200.0, in_credit=True, late=False, balance=2.0, guests=NOBODY)
    first, second = history.points
    assert (first.time, first.looks, first.in_credit, first.late) == (6300.0, 3, 2, 1)
    assert (first.balance, first.protected, first.preemptible, first.staying) == (-1.0, 1, 2, 3)
    assert (second.time, second.looks) == (7200.0, 1)


@given(st.lists(st.integers(0, 5000), min_size=1, max_size=40), st.integers(1, 9))
def test_it_has_a_bound_and_knows_nothing_older(steps: list[int], period: int) -> None:
    """However often, and after whatever pauses, somebody looks."""
    times, now = [], 0.0
    for step in steps:
        now += (step + 1) * period * 900.0
        times.append(now)
    points = noted(*times).points
    assert len(points) <= POINTS_MAX
    assert points[-1].time == now
    assert all(now - HISTORY_S < point.time <= now for point in points)
    assert len({point.time // POINT_S for point in points}) == len(points)


def test_a_month_is_bounded_by_its_points() -> None:
    points = noted(*(900.0 * number for number in range(96 * 40))).points
    assert len(points) == POINTS_MAX
    assert points[-1].time == 900.0 * (96 * 40 - 1)
    assert {point.looks for point in points} == {8}


def test_a_point_of_just_a_month_ago_is_gone() -> None:
    """One that is a moment younger is not."""
    assert len(noted(0.0, HISTORY_S).points) == 1
    assert len(noted(0.5, HISTORY_S).points) == 2


def test_after_a_clock_that_was_set_back_it_begins_anew() -> None:
    assert [point.time for point in noted(90_000.0, 99_000.0, 1800.0).points] == [1800.0]


def test_its_record_is_plain_and_brings_it_back() -> None:
    history = noted(0.0, 8000.0)
    history.note(16_000.0, in_credit=False, late=True, balance=math.nan, guests=NOBODY)
    again = AccountHistory.of_record(json.loads(json.dumps(history.record())))
    assert repr(again.points) == repr(history.points)
    assert noted().points == ()
