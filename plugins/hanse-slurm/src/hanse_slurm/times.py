"""Times as Slurm's commands print and read them."""

import os
import re
import time
from typing import Final

from hanse_slurm.options import UsageError

_UNITS_S: Final = {"second": 1, "minute": 60, "hour": 3600, "day": 86400, "week": 7 * 86400}
_FORMS: Final = ("%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%d")


def moment(moment_s: float | None, absent: str = "N/A") -> str:
    """Returns a moment in local time, or as `SLURM_TIME_FORMAT` says; `absent` without one.

    Raises:
        UsageError: that is a form which is not known.
    """
    if moment_s is None:
        return absent
    form = os.environ.get("SLURM_TIME_FORMAT", "standard")
    if form != "standard" and "%" not in form:
        raise UsageError(f"SLURM_TIME_FORMAT={form} is not known for the jobs of a site")
    return time.strftime(_FORMS[0] if form == "standard" else form, time.localtime(moment_s))


def duration(seconds: float) -> str:
    """Returns a duration as `squeue` prints it: `3:07`, `1:03:07`, `2-01:03:07`."""
    minutes, rest = divmod(max(0, int(seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days}-{hours:02}:{minutes:02}:{rest:02}"
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def long_duration(seconds: float) -> str:
    """Returns a duration as `sacct` and `scontrol` print it: `00:03:07`, `2-01:03:07`."""
    hours, rest = divmod(max(0, int(seconds)), 3600)
    days, hours = divmod(hours, 24)
    text = f"{hours:02}:{rest // 60:02}:{rest % 60:02}"
    return f"{days}-{text}" if days else text


def read_moment(text: str, now_s: float) -> float:
    """Returns a moment as `sacct --starttime` takes it, seconds since 1970; `now_s` is the present one.

    Raises:
        UsageError: it is none that is known here.
    """
    word = text.strip().lower()
    found = re.fullmatch(r"now(?:([+-])(\d{1,9})(second|minute|hour|day|week)?s?)?", word)
    if found is not None:
        step_s = int(found[2] or 0) * _UNITS_S[found[3] or "second"]
        return now_s - step_s if found[1] == "-" else now_s + step_s
    today = time.localtime(now_s)
    if word in {"today", "midnight"}:
        return time.mktime((*today[:3], 0, 0, 0, 0, 0, -1))
    found = re.fullmatch(r"(\d{1,2}):(\d{2})(?::(\d{2}))?", word)
    if found is not None:
        clock = (int(found[1]), int(found[2]), int(found[3] or 0))
        return time.mktime((*today[:3], *clock, 0, 0, -1))
    for form in _FORMS:
        try:
            return time.mktime((*time.strptime(text.strip(), form)[:6], 0, 0, -1))
        except (ValueError, OverflowError):
            continue
    raise UsageError(
        f"Invalid time specification {text!r}; known here are YYYY-MM-DD[THH:MM[:SS]], HH:MM[:SS], today, and "
        f"now[-COUNT[seconds|minutes|hours|days|weeks]]"
    )
