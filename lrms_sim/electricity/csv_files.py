"""Files of prices and carbon intensities: a CSV with a heading, and in it the columns `time` and `value`.

docs/how-to/electricity.md describes them.
"""

import csv
import math
import os
from contextlib import closing
from datetime import UTC, datetime, tzinfo
from typing import Final

import numpy as np

from lrms_sim.electricity.series import Series
from lrms_sim.scheduling.situations import zone_named
from lrms_sim.util.errors import HanseError
from lrms_sim.util.log_files import rows_of, shown_name
from lrms_sim.util.messages import shown

COLUMNS: Final = ("time", "value")

GAP_MAX_S: Final = 86400.0
"""A value holds until the next row, at most so many seconds: more is a gap in the file."""

STEP_MIN_S: Final = 1.0
"""At least so long does it hold: who waits for a cheap hour looks at every step."""


class SeriesFileError(HanseError, ValueError):
    """A file of prices or carbon intensities that cannot be used; the text names file, line and problem."""


def moment_of(text: str, zone: tzinfo | None, after: float | None = None) -> float:
    """Returns the Unix time that a text names.

    Args:
        text: seconds of Unix time, or a date and time in ISO 8601, with an offset from UTC or without.
        zone: where times without an offset are local.
        after: of an hour that comes twice when daylight saving ends, the second one is meant where the
            first is not after this moment.

    Raises:
        ValueError: it is none of these, the zone is missing, or the time does not exist there.
    """
    try:
        seconds = float(text)
    except ValueError:
        pass
    else:
        if math.isfinite(seconds):
            return seconds
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(
            f"time is {shown(text)}; a date and time as 2024-03-31T01:00, with an offset as +01:00 or Z or "
            "without, or seconds of Unix time are expected"
        ) from None
    if moment.tzinfo is not None:
        return moment.timestamp()
    if zone is None:
        raise ValueError(
            f"time {shown(text)} has no offset from UTC; write one, as +01:00 or Z, or give the time zone"
        )
    first = moment.replace(tzinfo=zone, fold=0).timestamp()
    if datetime.fromtimestamp(first, UTC).astimezone(zone).replace(tzinfo=None) != moment:
        raise ValueError(
            f"time {shown(text)} does not exist in {zone}: daylight saving begins and skips it"
        )
    if after is not None and first <= after:
        return moment.replace(tzinfo=zone, fold=1).timestamp()
    return first


def read_series(
    source: str | os.PathLike[str],
    *,
    time_zone: str | float | None = None,
    least: float = -math.inf,
) -> Series:
    """Reads a series, plain or packed; `-` is standard input.

    A value holds until the next row, the last one as long as the one before it. A local time that comes twice
    when daylight saving ends is in the file twice, in this order.

    Args:
        source: the file.
        time_zone: where times without an offset are local: a name of the IANA database, or an offset as
            `zone_named` takes it.
        least: the least possible value.

    Returns:
        The series, in seconds of Unix time.

    Raises:
        SeriesFileError: it is no such file, or a row is wrong.
        ValueError: there is no such time zone.
        OSError: the file cannot be read.
    """
    name = shown_name(source)
    zone = None if time_zone is None else zone_named(time_zone)
    lines = rows_of(source, lambda text: SeriesFileError(f"{name}: {text}"))
    rows = csv.reader(lines)
    heading: list[str] = []
    moments: list[float] = []
    values: list[float] = []
    try:
        with closing(lines):
            for cells in rows:
                if not heading:
                    heading = _heading(cells)
                elif any(cells):
                    said = _row(cells, heading)
                    before = moments[-1] if moments else None
                    moments.append(_next_moment(said["time"], zone, before))
                    values.append(_value(said["value"], least))
    except (ValueError, csv.Error) as error:
        if isinstance(error, SeriesFileError):
            raise
        raise SeriesFileError(f"{name}:{rows.line_num}: {error}") from error
    if len(moments) < 2:
        raise SeriesFileError(
            f"{name}: {len(moments)} rows of values; at least two are needed, as a value holds until the next row"
        )
    return Series(np.array(moments), np.array(values), 2 * moments[-1] - moments[-2])


def _heading(cells: list[str]) -> list[str]:
    names = [cell.strip() for cell in cells]
    for column in COLUMNS:
        if names.count(column) != 1:
            raise ValueError(
                f"the heading is {shown(','.join(cells))}; the columns time and value are needed, each once"
            )
    return names


def _row(cells: list[str], heading: list[str]) -> dict[str, str]:
    if len(cells) != len(heading):
        raise ValueError(f"{len(cells)} columns, there are {len(heading)} names")
    return dict(zip(heading, (cell.strip() for cell in cells), strict=True))


def _next_moment(text: str, zone: tzinfo | None, before: float | None) -> float:
    moment = moment_of(text, zone, before)
    if before is None:
        return moment
    if moment <= before:
        raise ValueError(f"time {shown(text)} is not after that of the row before")
    if moment - before < STEP_MIN_S:
        raise ValueError(
            f"time {shown(text)} is {moment - before:.4g} s after the row before; a value holds for "
            f"{STEP_MIN_S:g} s at least"
        )
    if moment - before > GAP_MAX_S:
        raise ValueError(
            f"time {shown(text)} is {(moment - before) / 3600:.4g} h after the row before; a value holds for "
            f"{GAP_MAX_S / 3600:g} h at most, so rows are missing"
        )
    return moment


def _value(text: str, least: float) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value >= least):
        bound = f" of at least {least:g}" if least > -math.inf else ""
        raise ValueError(f"value is {shown(text)}; a finite number{bound} is needed")
    return value
