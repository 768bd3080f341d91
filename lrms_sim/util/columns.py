"""Columns of numbers from what programs pass: arrays, series of data frames, lists, dates and durations.

numpy silently turns a date into nanoseconds, a boolean into 1 and a text into a number, and ignores
masks. Here each value is converted by its meaning, or refused with the name of its column and row.
Dates without a zone are taken as they are; those with one are converted to UTC.
"""

from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta
from numbers import Integral, Number
from typing import Any, Final, cast

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

_SECONDS: Final = {"W": 604800, "D": 86400, "h": 3600, "m": 60, "s": 1}
_PARTS: Final = {"ms": 10**3, "us": 10**6, "ns": 10**9, "ps": 10**12, "fs": 10**15, "as": 10**18}
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_TAKEN: Final = (Number, date, timedelta, np.generic)
_OTHERS: Final = (bool, str, bytes, time)
_KINDS: Final = {"b": "a truth value", "U": "a text", "S": "a text", "T": "a text", "c": "complex"}


def is_whole(value: object, least: int, most: int) -> bool:
    """Returns whether a value is a whole number, of Python or numpy, within two bounds; so is 8.0, and `True` is not."""
    whole = isinstance(value, Integral) or (isinstance(value, float) and value.is_integer())
    return whole and not isinstance(value, bool) and least <= int(cast("float", value)) <= most


def numbers(name: str, values: Any) -> Array:
    """Returns a column of plain numbers.

    Raises:
        ValueError: it holds anything else than numbers, has several dimensions, or something is
            missing.
    """
    column = plain(name, values)
    if column.dtype.kind == "M":
        raise ValueError(f"{name} is of dates; numbers are expected")
    if column.dtype.kind == "m":
        raise ValueError(f"{name} is of spans of time; numbers are expected")
    return column


def spans(name: str, values: Any) -> Array:
    """Returns a column of seconds; durations are converted.

    Raises:
        ValueError: it is of dates, or as of `numbers`.
    """
    column = plain(name, values)
    if column.dtype.kind == "M":
        raise ValueError(f"{name} is of dates; seconds or spans of time are expected")
    return _in_seconds(name, column) if column.dtype.kind == "m" else column


def moments(columns: dict[str, Any]) -> dict[str, Array]:
    """Returns columns of times as seconds of one clock; the first column sets its origin.

    Numbers stay as they are, and durations are seconds after second 0. Second 0 of dates is the
    earliest of the first column: a workload begins with its first submission.

    Raises:
        ValueError: dates are mixed with numbers or durations, or as of `numbers`.
    """
    found = {name: plain(name, values) for name, values in columns.items()}
    dated = [name for name, column in found.items() if column.dtype.kind == "M"]
    if not dated:
        return {
            name: _in_seconds(name, column) if column.dtype.kind == "m" else column
            for name, column in found.items()
        }
    if len(dated) < len(found):
        other = next(name for name in found if name not in dated)
        raise ValueError(f"{dated[0]} is of dates and {other} is not; both or none can be")
    first = next(iter(found.values()))
    zero = first.min() if len(first) else np.datetime64(0, "s")
    return {name: _in_seconds(name, column - zero) for name, column in found.items()}


def plain(name: str, values: Any) -> Array:
    """Returns a column as an array of numbers, dates (UTC) or durations, without missing values.

    Raises:
        ValueError: as of `numbers`, but dates and durations are allowed.
    """
    if isinstance(values, np.ma.MaskedArray):
        hidden = np.ma.getmaskarray(values)
        if hidden.any():
            raise ValueError(
                f"{name} in row {int(np.argmax(hidden))} is masked; it is missing there"
            )
        values = values.data
    if getattr(getattr(values, "dtype", None), "tz", None) is not None:
        # Of pandas, with a time zone: as dates these are UTC, as objects they would be slow.
        values = np.asarray(values, dtype="datetime64[ns]")
    column = np.asarray(values)
    if column.ndim != 1:
        raise ValueError(f"{name} has shape {column.shape}; it must have one dimension")
    if column.dtype == object:
        column = _of_objects(name, column.tolist())
    kind = column.dtype.kind
    if kind in "iuf" or (kind in _KINDS and not len(column)):
        return column if kind in "iuf" else column.astype(np.float64)
    if kind not in "mM":
        what = _KINDS.get(kind, "no number")
        raise ValueError(
            f"{name} in row 0 is {column[:1].tolist()[0]!r}, {what}; numbers are expected"
        )
    missing = np.isnat(column)
    if missing.any():
        raise ValueError(f"{name} in row {int(np.argmax(missing))} is missing (NaT)")
    if kind == "M" and np.datetime_data(column.dtype)[0] in {"Y", "M"}:
        column = column.astype("datetime64[D]")
    return column


def exactly(name: str, given: Array, dtype: type[np.generic], bound: str) -> Array:
    """Returns a column of numbers as a read-only one of a type, without changing any value.

    numpy would silently turn 2.5 processors into 2 and wrap large numbers. Floating types keep nan.

    Args:
        name: of the column, for errors.
        given: numbers.
        dtype: the type.
        bound: the end of the error, after the value.

    Raises:
        ValueError: a value does not fit the type.
    """
    column = given
    if given.dtype != dtype:
        with np.errstate(invalid="ignore", over="ignore"):
            column = given.astype(dtype)
        same = column == given
        if np.issubdtype(dtype, np.floating):
            same |= np.isnan(given)
        if not same.all():
            row = int(np.argmin(same))
            raise ValueError(f"{name} in row {row} is {given[row]}{bound}")
    column = column.view()
    column.flags.writeable = False
    return column


def _in_seconds(name: str, column: Array) -> npt.NDArray[np.float64]:
    """Returns durations in any unit as exact seconds."""
    unit, count = np.datetime_data(column.dtype)
    whole = column.astype(np.int64)
    if unit in _SECONDS:
        return whole.astype(np.float64) * (_SECONDS[unit] * count)
    if unit not in _PARTS:
        raise ValueError(f"{name} is of spans in the unit {unit!r}, which has no fixed length")
    per = _PARTS[unit]
    if per % count:
        return whole.astype(np.float64) * count / per
    # Nanoseconds of a century are more than a double can tell apart, its seconds and their parts are not.
    seconds, rest = np.divmod(whole, per // count)
    return seconds + rest / (per // count)


def _of_objects(name: str, values: Sequence[Any]) -> Array:
    """Returns Python objects as an array of one of the kinds of `plain`."""
    for row, value in enumerate(values):
        if value is None or type(value).__name__ in {"NAType", "NaTType"}:
            raise ValueError(f"{name} in row {row} is missing")
        if isinstance(value, _OTHERS) or not isinstance(value, _TAKEN):
            raise ValueError(f"{name} in row {row} is {value!r:.60}; numbers are expected")  # noqa: TRY004  # a column's content
    dates, times = (sum(isinstance(value, kind) for value in values) for kind in (date, timedelta))
    if dates and dates == len(values):
        return _of_dates(name, values)
    if times and times == len(values):
        return np.array([value // _MICROSECOND for value in values], "timedelta64[us]")
    if dates or times:
        raise ValueError(f"{name} has dates, spans of time or numbers in one column")
    wholes = all(isinstance(value, Integral) for value in values)
    kinds = (value if isinstance(value, np.generic) else float(value) for value in values)
    column = np.array([int(value) for value in values] if wholes else list(kinds))
    if column.dtype == object:
        raise ValueError(f"{name} has values of several kinds, or beyond 64 bits, in one column")
    return column if len(values) else np.empty(0)


def _of_dates(name: str, values: Sequence[Any]) -> Array:
    zoned = [isinstance(value, datetime) and value.tzinfo is not None for value in values]
    if any(zoned) and not all(zoned):
        raise ValueError(f"{name} has dates with a time zone and dates without in one column")
    found = []
    for value in values:
        moment = value if isinstance(value, datetime) else datetime.combine(value, time(), UTC)
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        found.append((moment - _EPOCH) // _MICROSECOND)
    return np.array(found, "datetime64[us]")
