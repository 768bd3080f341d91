import math
from contextlib import suppress
from datetime import UTC, datetime, time, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_core import PydanticCustomError

from broker.io import moments
from broker.model.resources import DAY


@given(st.floats(allow_nan=False, allow_infinity=False) | st.integers(0, 2**40).map(float))
def test_moments_survive_being_written(seconds: float) -> None:
    """A date, or a number of seconds, is the same moment again, to the last bit."""
    assert moments.moment(moments.written_moment(seconds)) == seconds


@given(st.floats(0, DAY) | st.integers(0, 86_400).map(float))
def test_times_of_day_survive_being_written(seconds: float) -> None:
    """Whole seconds are written as people do, others as a number."""
    assert moments.time_of_day(moments.written_time_of_day(seconds)) == seconds


@given(st.floats(-DAY, DAY) | st.integers(-1440, 1440).map(lambda minutes: minutes * 60.0))
def test_offsets_survive_being_written(seconds: float) -> None:
    """Whole minutes are written as people do, others as a number."""
    assert moments.utc_offset(moments.written_offset(seconds)) == seconds


@given(st.sets(st.integers(0, 6), min_size=1))
def test_weekdays_survive_being_written(days: set[int]) -> None:
    """Neighbours are joined, and read apart again."""
    assert moments.weekdays(moments.written_weekdays(sorted(days))) == tuple(sorted(days))


def test_dates_are_read_in_every_form() -> None:
    """Text with an offset, a date of TOML and a number mean the same."""
    seconds = 1_772_438_400.0
    berlin = timezone(timedelta(hours=1))
    assert moments.written_moment(seconds) == "2026-03-02T08:00:00Z"
    for value in (
        seconds,
        int(seconds),
        "2026-03-02T08:00:00Z",
        "2026-03-02 09:00+01:00",
        datetime(2026, 3, 2, 9, tzinfo=berlin),
        datetime(2026, 3, 2, 8, tzinfo=UTC),
    ):
        assert moments.moment(value) == seconds
    assert moments.written_moment(0.0) == 0.0
    assert moments.written_moment(1e300) == 1e300


def test_times_of_day_are_read_in_every_form() -> None:
    """Text, a time of TOML and seconds mean the same; the day ends at 24:00."""
    for value in ("08:30", "08:30:00", time(8, 30), 30_600, 30_600.0):
        assert moments.time_of_day(value) == 30_600.0
    assert moments.time_of_day("08:30:15.5") == 30_615.5
    assert moments.time_of_day("24:00") == DAY


def test_weekdays_are_read_in_every_form() -> None:
    """A span may go over the turn of the week; each day counts once."""
    assert moments.weekdays(["mon-fri"]) == (0, 1, 2, 3, 4)
    assert moments.weekdays("sun") == (6,)
    assert moments.weekdays(["sat-mon", "mon"]) == (0, 5, 6)
    assert moments.is_every_day(moments.weekdays(["mon-sun"]))
    assert not moments.is_every_day((0, 1))


@pytest.mark.parametrize(
    ("read", "value", "said"),
    [
        (moments.moment, "tomorrow", "is 'tomorrow'; it must be a number of seconds, or date and"),
        (moments.moment, "2026-03-02T08:00:00", "is '2026-03-02T08:00:00'; it needs an offset"),
        (moments.moment, math.nan, "is nan; it must be"),
        (moments.moment, math.inf, "is inf; it must be"),
        (moments.moment, True, "is True; it must be"),
        (moments.moment, None, "is None; it must be"),
        (moments.time_of_day, "8:30", 'is \'8:30\'; it must be "HH:MM", "HH:MM:SS" or seconds'),
        (moments.time_of_day, "24:01", "must be"),
        (moments.time_of_day, "12:60", "must be"),
        (moments.time_of_day, -1, "is -1; it must be"),
        (moments.time_of_day, 86_401, "must be"),
        (moments.time_of_day, time(8, tzinfo=UTC), "must be"),
        (moments.weekdays, ["monday"], "'monday' is no weekday, did you mean 'mon'?"),
        (moments.weekdays, ["mon-"], "'' is no weekday; there are: mon, tue"),
        (moments.weekdays, ["-fri"], "'' is no weekday; there are: mon, tue"),
        (moments.weekdays, [], "is []; it must be a list such as"),
        (moments.weekdays, [1], "is [1]; it must be a list such as"),
        (moments.weekdays, 3, "is 3; it must be a list such as"),
        (moments.utc_offset, "+1", "is '+1'; it must be \"+01:00\""),
        (moments.utc_offset, "CET", "must be"),
        (moments.utc_offset, 86_401, "must be"),
        (moments.utc_offset, False, "must be"),
    ],
)
def test_what_cannot_be_read_is_said(read: object, value: object, said: str) -> None:
    """The value and what is allowed are in the text."""
    assert callable(read)
    with pytest.raises(PydanticCustomError) as caught:
        read(value)
    assert said in str(caught.value)


@given(st.text() | st.floats() | st.integers() | st.none() | st.lists(st.text()) | st.datetimes())
def test_any_value_is_read_or_said_to_be_wrong(value: object) -> None:
    """No value ends in another exception."""
    for read in (moments.moment, moments.time_of_day, moments.weekdays, moments.utc_offset):
        with suppress(PydanticCustomError):
            read(value)
