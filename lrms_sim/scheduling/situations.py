"""Situations: the kind of time at a site, by its local clock.

Users submit other jobs at night and at weekends than by day, so priorities may differ. A `Calendar`
says when situations follow each other, on a workload's clock; time zones and daylight saving end
here, and the kernels see sorted numbers.

The situations of Franke, Lepping, Schwiegelshohn 2007 ("Greedy Scheduling with Custom-made
Objectives"), section III: 0 is the weekend, 1 a weekday from 8 h to 18 h, 2 the rest of a weekday.
The weekend is from Saturday 0 h to Monday 0 h. There are no holidays.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
import numpy.typing as npt

from lrms_sim.util.messages import shown, unknown

WEEK_S: Final = 604800.0
"""Seconds of a week without a change of daylight saving."""

KINDS: Final[Mapping[str, int]] = {"week": 3, "hours": 24}
"""How many situations each kind of calendar tells apart: the paper's three, or the local hours."""

OFFSET_MAX_S: Final = 24 * 3600
"""A fixed offset from UTC is less than this many seconds."""

SITUATIONS_MAX: Final = 64

_OFFSET: Final = re.compile(r"(?:UTC)?([+-])(\d{1,2}):([0-5]\d)")
_WEEKDAY: Final = ((0, 2), (8, 1), (18, 2))
_WEEKEND: Final = ((0, 0),)
_HOURS: Final = tuple((hour, hour) for hour in range(24))

# What a calendar holds before the first and after the last moment it is asked for.
_BEFORE: Final = timedelta(days=9)
_AFTER: Final = timedelta(days=400)
_DAYS_MAX: Final = 200_000


@dataclass(frozen=True, slots=True, eq=False)
class Calendar:
    """When situations follow each other, in seconds of one clock.

    Before the first switch the first week repeats, and from the last switch on the last week, so
    that a long replay or daemon always has a situation. The switches span at least a week.

    Attributes:
        switch_time: shape (n,), seconds, strictly ascending; a situation holds from its switch up
            to, not including, the next one.
        situation: shape (n,), which situation begins, 0 … `situations` - 1.
        situations: number of them.
    """

    switch_time: npt.NDArray[np.float64]
    situation: npt.NDArray[np.int32]
    situations: int

    def __post_init__(self) -> None:
        times = np.ascontiguousarray(self.switch_time, np.float64)
        situation = np.ascontiguousarray(self.situation, np.int32)
        if not 1 <= self.situations <= SITUATIONS_MAX:
            raise ValueError(
                f"situations is {self.situations}; from 1 to {SITUATIONS_MAX} are possible"
            )
        if times.ndim != 1 or situation.shape != times.shape:
            raise ValueError(
                f"switch_time has shape {times.shape}, situation {situation.shape}; both need "
                f"one row for each switch"
            )
        if not (np.isfinite(times).all() and (np.diff(times) > 0).all()):
            raise ValueError("switch_time must be finite and strictly ascending")
        if len(times) < 2 or times[-1] - times[0] < WEEK_S:
            raise ValueError("the switches of a calendar must span at least a week")
        if situation.min() < 0 or situation.max() >= self.situations:
            raise ValueError(
                f"situations run from {situation.min()} to {situation.max()}; they must be in "
                f"0..{self.situations - 1}"
            )
        for name, column in (("switch_time", times), ("situation", situation)):
            view = column.view()
            view.flags.writeable = False
            object.__setattr__(self, name, view)

    def at(self, moment: float) -> int:
        """Returns the situation at a time in seconds."""
        first, last = float(self.switch_time[0]), float(self.switch_time[-1])
        if moment >= last:
            moment = last - WEEK_S + (moment - last) % WEEK_S
        elif moment < first:
            moment = first + (moment - first) % WEEK_S
        place = int(np.searchsorted(self.switch_time, moment, side="right")) - 1
        return int(self.situation[place])


def zone_named(name: str | float) -> tzinfo:
    """Returns a time zone.

    `name` is that of the IANA database, as "Europe/Stockholm", with daylight saving, or a fixed
    offset from UTC, east positive: in seconds, as a number or its text, or as "+01:00".

    Raises:
        ValueError: it is unknown.
    """
    if isinstance(name, str):
        if (offset := _offset_of(name.strip())) is not None:
            return zone_named(offset)
        try:
            return ZoneInfo(name)
        except (ZoneInfoNotFoundError, ValueError, OSError) as error:
            raise ValueError(
                f"time zone {shown(name)} is not known; a name of the IANA database is expected, "
                f"such as 'Europe/Stockholm', or an offset from UTC in seconds or as '+01:00'"
            ) from error
    if isinstance(name, bool) or not -OFFSET_MAX_S < name < OFFSET_MAX_S:
        raise ValueError(
            f"time zone offset is {shown(name)}; it must be seconds between {-OFFSET_MAX_S} and "
            f"{OFFSET_MAX_S}"
        )
    return timezone(timedelta(seconds=float(name)))


def _offset_of(text: str) -> float | None:
    """Returns the seconds of an offset; `None` for a name."""
    if found := _OFFSET.fullmatch(text):
        sign, hours, minutes = found.groups()
        return (-1.0 if sign == "-" else 1.0) * (3600.0 * int(hours) + 60.0 * int(minutes))
    try:
        seconds = float(text)
    except ValueError:
        return None
    return seconds if math.isfinite(seconds) else None


def zone_of_header(fields: Mapping[str, str]) -> tuple[tzinfo, float]:
    """Returns time zone and Unix time of second 0 from the header of a log.

    A zone name in `TimeZoneString` takes precedence, since it has daylight saving; `TimeZone` is a
    fixed offset, wrong for half of the year.

    Raises:
        ValueError: the header has no `UnixStartTime`, or neither key names a time zone.
    """
    start = header_start(fields)
    named = fields.get("TimeZoneString", "").strip()
    if named:
        try:
            return zone_named(named), start
        except ValueError:
            pass
    offset = _number(fields, "TimeZone")
    if offset is None:
        found = f"its TimeZoneString is {shown(named)}" if named else "it has no TimeZoneString"
        raise ValueError(
            f"the header of the log names no time zone: {found}, and no TimeZone in seconds"
        )
    return zone_named(offset), start


def header_start(fields: Mapping[str, str]) -> float:
    """Returns the Unix time of second 0 of a log from its header.

    Raises:
        ValueError: the header has no `UnixStartTime`.
    """
    start = _number(fields, "UnixStartTime")
    if start is None:
        raise ValueError(
            "the header of the log does not say UnixStartTime, so its local time is not known; add a "
            "line such as '; UnixStartTime: 1704067200', the Unix time of its second 0"
        )
    return start


def make_calendar(
    kind: str, *, zone: tzinfo, unix_start: float, first: float, last: float
) -> Calendar:
    """Returns the calendar of a site for a span of its clock.

    Args:
        kind: `week`, the three situations of the paper, or `hours`, 24 of them.
        zone: of the site.
        unix_start: Unix time of second 0 of the clock.
        first: start of the span, seconds; usually the first submission.
        last: its end; the calendar goes on for more than a year, for jobs that end late.

    Raises:
        ValueError: there is no such kind, or the span is empty or too long.
    """
    if kind not in KINDS:
        raise ValueError(unknown("kind of calendar", kind, KINDS))
    if not (np.isfinite([unix_start, first, last]).all() and first <= last):
        raise ValueError(f"a calendar from {first} to {last} s is not possible")
    try:
        begin = datetime.fromtimestamp(unix_start + first, UTC) - _BEFORE
        end = datetime.fromtimestamp(unix_start + last, UTC) + _AFTER
    except (OverflowError, ValueError, OSError) as error:
        raise ValueError(
            f"a calendar from {first} to {last} s after Unix time {unix_start} is beyond the "
            f"years that calendars know"
        ) from error
    days = (end.date() - begin.date()).days
    if days > _DAYS_MAX:
        raise ValueError(f"a calendar of {days} days is too long; at most {_DAYS_MAX}")
    times: list[float] = []
    situations: list[int] = []
    for day in range(days):
        for hour, situation in _switches(kind, begin.date() + timedelta(days=day)):
            # An hour that daylight saving leaves out is that of the change itself; of one that
            # comes twice the first counts.
            moment = _local(begin.date() + timedelta(days=day), hour, zone) - unix_start
            if situations and situations[-1] == situation:
                continue
            if times and moment <= times[-1]:
                situations[-1] = situation
                continue
            times.append(moment)
            situations.append(situation)
    return Calendar(np.array(times), np.array(situations, np.int32), KINDS[kind])


def _switches(kind: str, day: date) -> tuple[tuple[int, int], ...]:
    if kind == "hours":
        return _HOURS
    return _WEEKEND if day.weekday() >= 5 else _WEEKDAY


def _local(day: date, hour: int, zone: tzinfo) -> float:
    return datetime(day.year, day.month, day.day, hour, tzinfo=zone).timestamp()


def _number(fields: Mapping[str, str], key: str) -> float | None:
    try:
        value = float(fields.get(key, "").split()[0])
    except (ValueError, IndexError):
        return None
    return value if np.isfinite(value) else None
