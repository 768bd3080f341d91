"""Moments, times of day and weekdays as people write them in files.

A moment is an ISO 8601 date and time with an offset, or a number of seconds since 1970-01-01 UTC;
studies begin at second 0. Times of day are "08:30" or "08:30:15", or seconds since midnight.
"""

import math
import re
import sys
from collections.abc import Sequence
from datetime import UTC, datetime, time
from typing import Final, TypeGuard

from broker.model.resources import DAY, WEEKDAYS
from grms.daemon.config_base import wrong
from grms.daemon.config_errors import must_be
from lrms_sim.util.messages import unknown

DAY_NAMES: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
"""0 is Monday."""

CALENDAR_BEGINS: Final = 1e8
"""Earlier moments, before 1973, are times of a study rather than dates."""

_TIME_OF_DAY = re.compile(r"(\d\d):([0-5]\d)(?::([0-5]\d(?:\.\d+)?))?")
_OFFSET = re.compile(r"([+-])(\d\d):([0-5]\d)")
_MOMENT_WORDS = 'a number of seconds, or date and time with offset as "2026-03-02T08:00:00Z"'
_TIME_WORDS = '"HH:MM", "HH:MM:SS" or seconds since midnight, up to "24:00"'


def moment(value: object) -> float:
    """Returns a moment in seconds; `PydanticCustomError` if the value is no moment."""
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            raise must_be(value, _MOMENT_WORDS) from None
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise wrong(f"is {value.isoformat()!r}; it needs an offset, such as Z or +01:00")
        return value.timestamp()
    # A whole number may have more digits than a float can hold.
    if _is_number(value) and abs(value) <= sys.float_info.max:
        return float(value)
    raise must_be(value, _MOMENT_WORDS)


def time_of_day(value: object) -> float:
    """Returns seconds since midnight; `PydanticCustomError` if the value is no time of day."""
    if isinstance(value, time) and value.tzinfo is None:
        return value.hour * 3600 + value.minute * 60 + value.second + value.microsecond / 1e6
    if isinstance(value, str) and (match := _TIME_OF_DAY.fullmatch(value)):
        hours, minutes, seconds = match.groups(default="0")
        value = int(hours) * 3600 + int(minutes) * 60 + float(seconds)
    if _is_number(value) and 0 <= value <= DAY:
        return float(value)
    raise must_be(value, _TIME_WORDS)


def weekdays(value: object) -> tuple[int, ...]:
    """Returns weekdays in order without duplicates, from words such as `["mon-fri", "sun"]`.

    Raises:
        PydanticCustomError: the value is no list of weekdays.
    """
    words = [value] if isinstance(value, str) else value
    if not isinstance(words, list) or not words or not all(isinstance(w, str) for w in words):
        raise must_be(value, 'a list such as ["mon-fri", "sun"]')
    days: set[int] = set()
    for word in words:
        first, dash, last = word.partition("-")
        last = last if dash else first
        for name in (first, last):
            if name not in DAY_NAMES:
                raise wrong(unknown("weekday", name, DAY_NAMES))
        begin, end = DAY_NAMES.index(first), DAY_NAMES.index(last)
        # "sat-mon" wraps around the week.
        days.update((begin + step) % 7 for step in range((end - begin) % 7 + 1))
    return tuple(sorted(days))


def utc_offset(value: object) -> float:
    """Returns the seconds that a place is ahead of UTC; `PydanticCustomError` if the value is no offset."""
    if value == "Z":
        return 0.0
    if isinstance(value, str) and (match := _OFFSET.fullmatch(value)):
        sign, hours, minutes = match.groups()
        value = (int(hours) * 3600 + int(minutes) * 60) * (-1 if sign == "-" else 1)
    if _is_number(value) and abs(value) <= DAY:
        return float(value)
    raise must_be(value, '"+01:00", "-05:30", "Z", or seconds, at most a day')


def written_moment(seconds: float) -> str | float:
    """Returns a moment for `moment` to read, without loss: a date if it is one."""
    if seconds >= CALENDAR_BEGINS and seconds == math.floor(seconds):
        try:
            return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        except (OverflowError, ValueError, OSError):
            return seconds
    return seconds


def written_time_of_day(seconds: float) -> str | float:
    """Returns a time of day as `time_of_day` reads it, to the last bit."""
    if seconds != math.floor(seconds):
        return seconds
    minutes, second = divmod(int(seconds), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours:02}:{minute:02}" + (f":{second:02}" if second else "")


def written_weekdays(days: Sequence[int]) -> list[str]:
    """Returns weekdays as `weekdays` reads them, neighbours as "mon-fri"."""
    runs: list[list[int]] = []
    for day in sorted(set(days)):
        if runs and runs[-1][-1] == day - 1:
            runs[-1].append(day)
        else:
            runs.append([day])
    names = [(DAY_NAMES[run[0]], DAY_NAMES[run[-1]]) for run in runs]
    return [first if first == last else f"{first}-{last}" for first, last in names]


def written_offset(seconds: float) -> str | float:
    """Returns an offset as `utc_offset` reads it, to the last bit."""
    minutes, rest = divmod(abs(seconds), 60)
    if rest:
        return seconds
    hours, minute = divmod(int(minutes), 60)
    return f"{'-' if seconds < 0 else '+'}{hours:02}:{minute:02}"


def is_every_day(days: Sequence[int]) -> bool:
    """Returns whether all weekdays are there."""
    return set(days) == set(WEEKDAYS)


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)
