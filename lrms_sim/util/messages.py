"""Numbers, values and likely words as programs say them to people."""

import math
import re
import time
from collections.abc import Iterable, Sequence
from typing import Final

NOTHING: Final = "–"
"""Stands where a figure has no meaning."""

WIDTH: Final = 79
"""Columns of text that commands print."""

CHOICES_MAX: Final = 60
"""Most choices that are told where a word is none of them."""

SHOWN_MAX: Final = 60
"""Longest value that an error repeats, in characters."""

_UNITS = (("d", 86400), ("h", 3600), ("min", 60), ("s", 1))
_SECONDS: Final = {**dict(_UNITS), "m": 60, "": 1}
_DURATION: Final = r"([0-9]{1,12}(?:\.[0-9]{1,9})?) *(d|h|min|m|s|)"


_MONTHS: Final = [
    "Jan",
    "Feb",
    "Mar",
    "Apr",
    "May",
    "Jun",
    "Jul",
    "Aug",
    "Sep",
    "Oct",
    "Nov",
    "Dec",
]
_UNIX_FROM: Final = 1e9
_UNIX_TO: Final = 253_370_764_800.0  # the year 9999
_HALF_A_YEAR_S: Final = 182 * 86400


def count(number: int) -> str:
    """Returns a whole number with commas between thousands."""
    return f"{number:,}"


def seconds(value: float, digits: int = 2) -> str:
    """Returns seconds with commas between thousands, without a unit."""
    return f"{value:,.{digits}f}" if math.isfinite(value) else NOTHING


def factor(value: float) -> str:
    """Returns a ratio such as a slowdown, with fewer digits the larger it is."""
    if not math.isfinite(value):
        return NOTHING
    return f"{value:,.0f}" if value >= 1000 else f"{value:,.1f}" if value >= 10 else f"{value:.2f}"


def share(value: float) -> str:
    """Returns a share of 1 as percent with one digit."""
    return f"{100 * value:,.1f}%" if math.isfinite(value) else NOTHING


def change(value: float) -> str:
    """Returns a share of 1 as percent with its sign, "±0.0%" if it rounds to nothing."""
    if not math.isfinite(value):
        return NOTHING
    digits = f"{abs(100 * value):,.1f}%"
    sign = "±" if digits == "0.0%" else "+" if value > 0 else "\N{MINUS SIGN}"
    return sign + digits


def duration(value: float) -> str:
    """Returns seconds as people say them: the two largest units that matter, down to ms."""
    if not math.isfinite(value):
        return NOTHING
    sign = "\N{MINUS SIGN}" if value < 0 else ""
    rest = abs(value)
    # Each bound is where rounding reaches the next unit: 59.96 s is 1 min, not 60.0 s.
    if 0 < rest < 0.9995:
        return f"{sign}{1000 * rest:.0f} ms"
    if rest < 59.95:
        return f"{sign}{rest:.1f} s".replace(".0 s", " s")
    rest = max(rest, 60.0)
    first = next(i for i, (_, size) in enumerate(_UNITS) if rest >= size)
    (big_name, big), (small_name, small) = _UNITS[first], _UNITS[first + 1]
    # Round first, carry afterwards: 3599.9 s is 1 h, not 59 min 60 s.
    steps = round(rest / small)
    if first > 0 and steps * small >= _UNITS[first - 1][1]:
        return sign + f"1 {_UNITS[first - 1][0]}"
    whole, left = divmod(steps, big // small)
    return sign + (f"{whole} {big_name} {left} {small_name}" if left else f"{whole} {big_name}")


def duration_of(text: str) -> float | None:
    """Returns the seconds of a time as people write it, "90", "10s", "3min" or "1.5h"; None of any other text."""
    found = re.fullmatch(_DURATION, text.strip())
    return None if found is None else float(found[1]) * _SECONDS[found[2]]


def moment(second: float, *, wall: bool) -> str:
    """Returns a time on a site's clock in words; with `wall` it is Unix time."""
    if wall:
        from datetime import UTC, datetime  # noqa: PLC0415  # help and errors come at once

        try:
            return f"{datetime.fromtimestamp(second, UTC):%Y-%m-%d %H:%M:%S} UTC"
        except (OverflowError, ValueError):
            pass
    return f"{second:,.0f} s"


def day_and_time(second: float) -> str:
    """Returns a moment as `ls -l` writes it, in local time and 12 characters.

    That is "Nov 26 18:43", or "Nov 26  2025" if it is half a year ago or ahead. A clock that began with 0, as those of
    simulations do, is not Unix time: its seconds are written as a duration.
    """
    if not _UNIX_FROM <= second < _UNIX_TO:
        return duration(second)
    at = time.localtime(second)
    day = f"{_MONTHS[at.tm_mon - 1]} {at.tm_mday:2}"
    if abs(time.time() - second) < _HALF_A_YEAR_S:
        return f"{day} {at.tm_hour:02}:{at.tm_min:02}"
    return f"{day}  {at.tm_year}"


def shorten(text: str, length: int) -> str:
    """Returns the text, cut to `length` characters with an ellipsis if needed."""
    return text if len(text) <= length else text[: length - 1].rstrip() + "…"


def printable(text: str) -> str:
    """Returns untrusted text without anything that could control a terminal or hide other text.

    Control and format characters become escape sequences of Python, tabs blanks.
    """
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() else _spelled(character) for character in text
    )


def _spelled(character: str) -> str:
    return " " if character == "\t" else character.encode("unicode_escape").decode("ascii")


def listed(parts: Sequence[str]) -> str:
    """Returns "a", "a and b", "a, b and c"."""
    if len(parts) < 2:
        return "".join(parts)
    return f"{', '.join(parts[:-1])} and {parts[-1]}"


def unknown(what: str, value: object, choices: Iterable[str]) -> str:
    """Returns a sentence on a word that is none of the choices, with the likeliest one meant."""
    choices = list(choices)
    folded = {choice.casefold(): choice for choice in choices}
    from difflib import get_close_matches  # noqa: PLC0415  # for a mistake alone

    close = get_close_matches(str(value).casefold(), folded, n=1)
    meant = f", did you mean {folded[close[0]]!r}?" if close else ";"
    more = f" and {len(choices) - CHOICES_MAX:,} more" if len(choices) > CHOICES_MAX else ""
    told = ", ".join(choices[:CHOICES_MAX]) or "none"
    return f"{shown(value)} is no {what}{meant} there are: {told}{more}"


def system_words(error: OSError) -> str:
    """Returns what the system says, with the file or folder if there is one, and without numbers: "a/b: Not a directory"."""
    if not error.strerror:
        return str(error)
    return error.strerror if error.filename is None else f"{error.filename}: {error.strerror}"


def shown(value: object) -> str:
    """Returns a value as an error repeats it."""
    text = repr(value)
    return text if len(text) <= SHOWN_MAX else text[: SHOWN_MAX - 3] + "..."
