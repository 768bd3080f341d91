"""Values on the command line: times, moments and preferences.

Each function is the type of a click option. It is called with text, or with a default that has been
converted already.
"""

from contextlib import suppress
from typing import Final

import click

from lrms_sim.util.messages import duration_of

_PREFERENCES: Final = {"fast": 0.0, "cheap": 1.0}


def duration(text: str) -> float:
    """Returns the seconds of a time such as "10s", "3min" or "1.5h"."""
    seconds = duration_of(text)
    if seconds is None:
        raise click.BadParameter(f"{text!r} is no time; write 10s, 3min or 2h")
    return seconds


def moment(text: str) -> float:
    """Returns a date and time with offset, or a number of seconds, in seconds."""
    from pydantic_core import PydanticCustomError  # noqa: PLC0415  # help should come at once

    from broker.io import moments  # noqa: PLC0415  # same

    value: str | float = text
    with suppress(ValueError):
        value = float(text)
    try:
        return moments.moment(value)
    except PydanticCustomError as error:
        raise click.BadParameter(error.message()) from None


def preference(text: str) -> float:
    """Returns a preference from 0, fast, to 1, cheap, said as a word or a number."""
    try:
        number = _PREFERENCES[text] if text in _PREFERENCES else float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number <= 1:
        raise click.BadParameter(f"{text!r} is neither fast nor cheap nor from 0 to 1")
    return number
