from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lrms_sim.scheduling.situations import (
    WEEK_S,
    Calendar,
    make_calendar,
    zone_named,
    zone_of_header,
)

# Monday, 1 January 2024, 0 h UTC.
MONDAY = 1_704_067_200.0
HOUR = 3600.0
DAY = 86400.0


def week(zone: str | float = 0.0, kind: str = "week", days: float = 30.0) -> Calendar:
    """Returns the calendar of some weeks from that Monday on."""
    return make_calendar(kind, zone=zone_named(zone), unix_start=MONDAY, first=0.0, last=days * DAY)


@pytest.mark.parametrize(
    ("hours", "situation"),
    [
        (0, 2), (7.999, 2), (8, 1), (17.999, 1), (18, 2), (24, 2), (32, 1),
        (4 * 24 + 17, 1), (4 * 24 + 18, 2), (5 * 24 - 0.001, 2), (5 * 24, 0), (6 * 24 + 12, 0),
        (7 * 24 - 0.001, 0), (7 * 24, 2), (7 * 24 + 8, 1),
    ],
)  # fmt: skip
def test_borders_of_the_week(hours: float, situation: int) -> None:
    """A situation begins at its hour; Monday night and Friday evening are no weekend."""
    assert week().at(hours * HOUR) == situation


def test_daylight_saving_moves_the_switches() -> None:
    """Office hours begin at 8 h local time in winter and in summer; a fixed offset is an hour off."""
    zone = ZoneInfo("Europe/Berlin")
    named = week("Europe/Berlin", days=200)
    fixed = week(3600.0, days=200)
    for month in (2, 7):
        eight = datetime(2024, month, 10 if month == 7 else 14, 8, tzinfo=zone).timestamp() - MONDAY
        assert named.at(eight - 1) == 2
        assert named.at(eight) == 1
        # In summer 8 h there is 7 h by the clock that never changes.
        assert fixed.at(eight) == (1 if month == 2 else 2)


@given(
    moment=st.floats(-30 * DAY, 500 * DAY, allow_nan=False),
    zone=st.sampled_from(("America/New_York", "Australia/Lord_Howe", "America/Sao_Paulo", 20700)),
)
def test_every_moment_has_the_situation_of_its_local_time(moment: float, zone: str | float) -> None:
    """However clocks are changed, the calendar agrees with the local time of the moment."""
    moment = float(np.floor(moment))
    calendar = make_calendar(
        "week", zone=zone_named(zone), unix_start=MONDAY, first=moment - DAY, last=moment + DAY
    )
    local = datetime.fromtimestamp(MONDAY + moment, UTC).astimezone(zone_named(zone))
    expected = 0 if local.weekday() >= 5 else 1 if 8 <= local.hour < 18 else 2
    assert calendar.at(moment) == expected


def test_hours_are_situations_too() -> None:
    """Twenty-four situations, one for each local hour, on every day."""
    calendar = week(3600.0, kind="hours")
    assert calendar.situations == 24
    assert [calendar.at(hour * HOUR) for hour in range(50)] == [(h + 1) % 24 for h in range(50)]


def test_weeks_repeat_beyond_the_calendar() -> None:
    """What lies before the first switch and after the last one repeats the nearest week."""
    calendar = week()
    last, first = float(calendar.switch_time[-1]), float(calendar.switch_time[0])
    for offset in (0.0, 5 * HOUR, 3 * DAY, WEEK_S - 1):
        assert calendar.at(last + 10 * WEEK_S + offset) == calendar.at(last - WEEK_S + offset)
        assert calendar.at(first - 10 * WEEK_S + offset) == calendar.at(first + offset)


def test_a_header_tells_zone_and_start() -> None:
    """A named zone counts before the fixed offset, which counts where the name says nothing."""
    fields = {"UnixStartTime": "843480031 (local)", "TimeZone": "3600"}
    zone, start = zone_of_header(fields)
    assert start == 843480031.0
    assert zone.utcoffset(None).total_seconds() == 3600  # type: ignore[union-attr]  # a fixed one
    zone, _ = zone_of_header(fields | {"TimeZoneString": "Europe/Stockholm"})
    assert zone == ZoneInfo("Europe/Stockholm")
    zone, _ = zone_of_header(fields | {"TimeZoneString": "somewhere"})
    assert zone.utcoffset(None).total_seconds() == 3600  # type: ignore[union-attr]  # as above


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"TimeZone": "0"}, "does not say UnixStartTime"),
        ({"UnixStartTime": "0"}, "no TimeZoneString, and no TimeZone"),
        ({"UnixStartTime": "0", "TimeZoneString": "Atlantis"}, "TimeZoneString is 'Atlantis'"),
        ({"UnixStartTime": "0", "TimeZone": "1e9"}, "offset is"),
    ],
)
def test_a_header_without_local_time_is_refused(fields: dict[str, str], said: str) -> None:
    """The error names the key that is missing."""
    with pytest.raises(ValueError, match=said):
        zone_of_header(fields)


@pytest.mark.parametrize(
    ("name", "seconds"),
    [("3600", 3600), ("-18000", -18000), ("+05:30", 19800), ("UTC-9:30", -34200)],
)
def test_an_offset_may_be_text(name: str, seconds: float) -> None:
    """Seconds, or hours and minutes, east positive."""
    assert zone_named(name).utcoffset(None) == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    "name", ["Europe/Atlantis", "90000", "+25:00", "", "../../etc/passwd", 86400, float("nan")]
)
def test_a_zone_nobody_knows_is_refused(name: str | float) -> None:
    """The error repeats the name and says what is expected."""
    with pytest.raises(ValueError, match="time zone"):
        zone_named(name)


@pytest.mark.parametrize(
    ("times", "situations", "count", "said"),
    [
        ([0.0, 1.0], [0, 1], 2, "at least a week"),
        ([0.0, WEEK_S, WEEK_S], [0, 1, 0], 2, "strictly ascending"),
        ([0.0, np.nan], [0, 1], 2, "finite"),
        ([0.0, WEEK_S], [0, 2], 2, r"run from 0 to 2; they must be in 0\.\.1"),
        ([0.0, WEEK_S], [0], 2, "one row for each switch"),
        ([0.0, WEEK_S], [0, 0], 65, "situations is 65"),
    ],
)
def test_a_calendar_that_is_none_is_refused(
    times: list[float], situations: list[int], count: int, said: str
) -> None:
    """Each promise of the class is checked."""
    with pytest.raises(ValueError, match=said):
        Calendar(np.array(times), np.array(situations, np.int32), count)


@pytest.mark.parametrize(
    ("kind", "first", "last", "said"),
    [
        ("day", 0.0, 1.0, "'day' is no kind of calendar"),
        ("week", 1.0, 0.0, "from 1.0 to 0.0 s is not possible"),
        ("week", 0.0, float("inf"), "is not possible"),
        ("week", 0.0, 1e300, "beyond the years"),
        ("week", 0.0, 2e11, "is too long"),
    ],
)
def test_a_span_that_is_none_is_refused(kind: str, first: float, last: float, said: str) -> None:
    """The error says which span."""
    with pytest.raises(ValueError, match=said):
        make_calendar(kind, zone=UTC, unix_start=0.0, first=first, last=last)
