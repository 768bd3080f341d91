"""Tables of any origin, as CSV or Parquet; the user names their columns.

A field of a job is a column, a number, or a product of these: `plan_cpu*instance_num/100`.
Timestamps are numbers in some unit, or dates in ISO 8601 or a given format; durations are numbers
in some unit or written as 1-02:03:04.
"""

import csv
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from itertools import islice
from typing import Any, Final

from lrms_sim.workload.accounting.records import (
    AccountingError,
    Reading,
    Record,
    Unreadable,
    peeked,
    seconds_of,
)
from lrms_sim.workload.request_text import FIELDS as REQUEST_FIELDS
from lrms_sim.workload.request_text import request_of
from lrms_sim.workload.requests import Request, RequestError

MOMENTS: Final = ("submit_time", "start_time", "end_time")
SPANS: Final = ("wait_time", "run_time", "requested_time")
FIELDS: Final = (
    *MOMENTS,
    *SPANS,
    *("processors", "user", "group", "queue", "site", "job_id", "status", "exit_code"),
    *REQUEST_FIELDS,
)
"""What a column can be named for."""

UNITS: Final = {
    "ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0,
}  # fmt: skip
"""Seconds of each unit of time."""

MISSING: Final = frozenset({"", "nan", "nat", "null", "none", "na", "n/a", "unknown", "\\n", "-"})
"""Texts that say nothing, in lower case."""

_DELIMITERS: Final = ",;\t|"
_COMPLETED: Final = (
    "complete",
    "done",
    "success",
    "succeeded",
    "terminated",
    "finished",
    "pass",
    "ok",
)
_CANCELLED: Final = ("cancel", "revoked", "deleted", "removed")
_LONG_SPAN: Final = re.compile(r"(-?\d{1,9}) days?,? (\d{1,2}):(\d\d):(\d\d(?:\.\d+)?)")
_FACTOR: Final = re.compile(r"([*/])")

_WORDS: Final = {
    "memory_per": ("core", "node", "gpu"),
    "gpus_per": ("job", "node", "task"),
    "exclusive": ("yes", "no"),
}
"""What may stand for a column that says the same of every job."""

_LINES_MAX: Final = 200
"""Most lines of one record: a cell in quotes may have line ends."""

UNIX_LEAST: Final = 1e8
"""Times below this one, of 1973, are on a clock of the table's own, with unknown origin."""

Cell = Callable[[Mapping[str, Any]], Any]
"""Returns a value of a row; `None` if it is missing."""


@dataclass(frozen=True, slots=True)
class Layout:
    """What the columns of a table mean.

    Attributes:
        columns: by a word of `FIELDS`, a column, a number, or a product of these; for what memory and
            GPUs are, the word itself.
        names: column names in order, for a CSV without a header.
        delimiter: of a CSV; detected in its first line if `None`.
        units: of numeric times, by the word of the field; seconds by default.
        time_format: of dates, as for `datetime.strptime`; ISO 8601 if `None`.
        optional: words whose column a table may lack; nothing is known of these then.

    Raises:
        ValueError: a word is unknown, or submission, run time or width cannot be known.
    """

    columns: Mapping[str, str]
    names: Sequence[str] = ()
    delimiter: str | None = None
    units: Mapping[str, str] = field(default_factory=dict)
    time_format: str | None = None
    optional: AbstractSet[str] = frozenset()

    def __post_init__(self) -> None:
        for word in self.columns:
            if word not in FIELDS:
                raise ValueError(f"a job has no {word!r}; there are: {', '.join(FIELDS)}")
        for word, unit in self.units.items():
            if word not in (*MOMENTS, *SPANS) or unit not in UNITS:
                raise ValueError(
                    f"unit {unit!r} of {word!r} is not known; units are {', '.join(UNITS)}, of "
                    f"{', '.join((*MOMENTS, *SPANS))}"
                )
        if not {"submit_time", "start_time"} & set(self.columns):
            raise ValueError("name the column of submit_time, or of start_time")
        if "run_time" not in self.columns and not (
            "end_time" in self.columns and {"start_time", "wait_time"} & set(self.columns)
        ):
            raise ValueError("name the column of run_time, or of start_time and end_time")
        if "processors" not in self.columns:
            raise ValueError(
                "name the column of processors; processors=1 is of jobs of one processor"
            )


def read_csv(lines: Iterable[str], layout: Layout, reading: Reading) -> Iterator[Record]:
    """Yields the jobs of a CSV.

    Raises:
        AccountingError: a column is missing, or a line cannot be read, and that is an error.
    """
    yield from _records(csv_rows(lines, layout.names, layout.delimiter, reading), layout, reading)


def csv_rows(
    lines: Iterable[str], names: Sequence[str], delimiter: str | None, reading: Reading
) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yields the rows of a CSV by column name, each with its line number.

    Without `names` the first line has them; lines that repeat them are skipped. The default
    delimiter is the most frequent of `,`, `;`, tab and `|` in the first line.

    Raises:
        AccountingError: a line cannot be read, and that is an error.
    """
    first, lines = peeked(lines)
    common = Counter(character for character in first if character in _DELIMITERS)
    found = delimiter or (common.most_common(1)[0][0] if common else ",")
    heading = [name.strip() for name in names]
    ahead = _Lines(lines)
    for line in ahead:
        number = ahead.number
        try:
            cells = _cells_of(line, ahead, found, len(heading))
        except Unreadable as problem:
            reading.leave_out(number, problem)
            continue
        stripped = [cell.strip() for cell in cells]
        if not any(stripped) or stripped == heading:
            continue
        if not heading:
            heading = stripped
        elif len(cells) != len(heading):
            said = f"{len(cells)} columns, there are {len(heading)} names"
            reading.leave_out(number, Unreadable(said, "columns"))
        else:
            yield number, dict(zip(heading, stripped, strict=True))


class _Lines:
    """Lines of a file with push-back; `number` is that of the last line taken, from 1."""

    def __init__(self, lines: Iterator[str]) -> None:
        self._lines = lines
        self._back: list[str] = []
        self.number = 0

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = self._back.pop() if self._back else next(self._lines)
        self.number += 1
        return line

    def give_back(self, lines: Sequence[str]) -> None:
        """Takes back the lines that were taken last, in their order."""
        self._back += reversed(lines)
        self.number -= len(lines)


def _cells_of(line: str, ahead: _Lines, delimiter: str, width: int) -> list[str]:
    """Returns the cells of a record that begins with a line; quoted cells may span lines.

    A stray quote spoils its own line only: such a record has too many lines, no end, or another
    width.

    Raises:
        Unreadable: it is no record.
    """
    if '"' not in line:
        return line.split(delimiter)
    taken: list[str] = []
    is_open = False

    def parts() -> Iterator[str]:
        nonlocal is_open
        yield f"{line}\n"
        for following in islice(ahead, _LINES_MAX):
            taken.append(following)
            yield f"{following}\n"
        is_open = True

    problem = "a quote is open at the end of the line"
    try:
        cells = next(csv.reader(parts(), delimiter=delimiter))
        if not taken and not is_open:
            return cells
        whole = (f"{one}\n" for one in (line, *taken))
        cells = next(csv.reader(whole, delimiter=delimiter, strict=True))
        if not is_open and len(cells) == (width or len(cells)):
            return cells
    except csv.Error as error:
        problem = problem if taken else str(error)
    ahead.give_back(taken)
    raise Unreadable(problem)


def read_parquet(source: Any, layout: Layout, reading: Reading) -> Iterator[Record]:
    """Yields the jobs of a Parquet file, a path or a seekable file; rows count as lines.

    Raises:
        AccountingError: it is no Parquet file, a column is missing, or a row cannot be read, and
            that is an error.
        ModuleNotFoundError: pyarrow is not installed.
    """
    import pyarrow as pa  # noqa: PLC0415  # optional
    import pyarrow.parquet as pq  # noqa: PLC0415  # same

    try:
        file = pq.ParquetFile(source)
        known = file.schema_arrow.names
        needed = _needed(layout, known, reading.name)
        yield from _records(_parquet_rows(pa, file, needed), layout, reading, known)
    except pa.ArrowException as error:
        raise AccountingError(f"{reading.name}: no Parquet file: {error}") from error


def _parquet_rows(pa: Any, file: Any, needed: list[str]) -> Iterator[tuple[int, Mapping[str, Any]]]:
    line = 0
    for batch in file.iter_batches(columns=needed):
        table = pa.Table.from_batches([batch])
        for place, column in enumerate(table.schema):
            # Objects of Python know microseconds at most.
            if pa.types.is_timestamp(column.type):
                kind = pa.timestamp("us", column.type.tz)
            elif pa.types.is_duration(column.type):
                kind = pa.duration("us")
            else:
                continue
            cast = table.column(place).cast(kind, safe=False)
            table = table.set_column(place, column.name, cast)
        for row in table.to_pylist():
            line += 1
            yield line, row


def _columns(layout: Layout, known: Sequence[str]) -> dict[str, str]:
    """Returns the columns by field, without the optional ones that a table lacks."""

    def is_there(said: str) -> bool:
        parts = [said] if said in known else [part.strip() for part in _FACTOR.split(said)[::2]]
        return all(part in known or _number(part) is not None for part in parts)

    return {
        word: said
        for word, said in layout.columns.items()
        if word not in layout.optional or said in _WORDS.get(word, ()) or is_there(said)
    }


def _needed(layout: Layout, known: Sequence[str], name: str) -> list[str]:
    found: dict[str, None] = {}
    for word, said in _columns(layout, known).items():
        if said in _WORDS.get(word, ()) and said not in known:
            continue
        for part in [said] if said in known else _FACTOR.split(said)[::2]:
            if part.strip() in known:
                found[part.strip()] = None
            elif _number(part) is None:
                raise AccountingError(
                    f"{name}: no column {part.strip()!r} for {word}; there are: {', '.join(known)}"
                )
    return list(found)


def _records(
    rows: Iterable[tuple[int, Mapping[str, Any]]],
    layout: Layout,
    reading: Reading,
    known: Sequence[str] = (),
) -> Iterator[Record]:
    cells: dict[str, Cell] = {}

    def job(row: Mapping[str, Any], reading: Reading) -> Record | None:
        if not cells:
            names = known or list(row)
            _needed(layout, names, reading.name)
            cells.update(
                (word, _cell(said, names)) for word, said in _columns(layout, names).items()
            )
        return job_of(row, cells, layout, reading)

    return reading.records(rows, job)


def _cell(said: str, known: Sequence[str]) -> Cell:
    if said in known:
        return lambda row: _present(row[said])
    first, *others = _FACTOR.split(said)
    if not others:
        return lambda _row: first.strip()

    def product(row: Mapping[str, Any]) -> float | None:
        value = _factor(row, first.strip())
        for sign, part in zip(others[::2], others[1::2], strict=True):
            factor = _factor(row, part.strip())
            if value is None or factor is None:
                return None
            if sign == "/" and factor == 0:
                raise Unreadable(f"{said} divides by 0")
            value = value * factor if sign == "*" else value / factor
        return value

    return product


def _factor(row: Mapping[str, Any], part: str) -> float | None:
    value = _present(row[part]) if part in row else part
    if value is None:
        return None
    number = _number(value)
    if number is None:
        raise Unreadable(f"{part} is {value!r:.40}; a number is expected")
    return number


def _present(value: Any) -> Any:
    if isinstance(value, str):
        return None if value.strip().lower() in MISSING else value
    return None if isinstance(value, float) and math.isnan(value) else value


def _number(value: Any) -> float | None:
    if isinstance(value, bool | date | time | timedelta):
        return None
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def job_of(
    row: Mapping[str, Any], cells: Mapping[str, Cell], layout: Layout, reading: Reading
) -> Record | None:
    """Returns the job of a row; `None` if it is left out, which is counted.

    Raises:
        Unreadable: it is no job.
    """
    found = {word: cell(row) for word, cell in cells.items()}
    times = {word: _moment(word, found.get(word), layout, reading.zone) for word in MOMENTS}
    times |= {word: _span(word, found.get(word), layout) for word in SPANS}
    if (times["submit_time"] or 0.0) >= UNIX_LEAST:
        # By a clock that began long ago its zero, or less, is a moment that never came.
        times |= {word: None for word in ("start_time", "end_time") if (times[word] or 0.0) <= 0.0}
    submit, start, end, is_wait_known = _course(times, cells)
    if end is None:
        reading.counts["open"] += 1
        return None
    processors = _processors(found.get("processors"), reading)
    return Record(
        submit=submit,
        start=start,
        end=end,
        processors=processors,
        requested_time=times["requested_time"] or None,
        status=5 if start is None else _status(found),
        user=_text(found.get("user")),
        group=_text(found.get("group")),
        queue=_text(found.get("queue")),
        site=_text(found.get("site")),
        is_wait_known=is_wait_known,
        job=_text(found.get("job_id")),
        request=_request(found, processors, reading),
    )


def _course(
    times: Mapping[str, float | None], cells: Mapping[str, Cell]
) -> tuple[float, float | None, float | None, bool]:
    """Returns submission, start, end, and whether the wait between the first two is known.

    Raises:
        Unreadable: the submission is unknown.
    """
    submit, start, end = (times[word] for word in MOMENTS)
    wait, run = times["wait_time"], times["run_time"]
    if submit is None and ("submit_time" in cells or start is None):
        raise Unreadable("nothing says when the job was submitted", "moment")
    is_known = submit is not None
    # A column that says when jobs started, and nothing of this one: it never did, or has yet to.
    if start is None and submit is not None and "start_time" not in cells:
        if wait is not None:
            start = submit + wait
        elif end is not None and run is not None:
            start = end - run
        elif end is not None and "run_time" not in cells:
            raise Unreadable("nothing says when the job started", "moment")
        else:
            start, is_known = submit, False
    if submit is None:
        submit = start
    assert submit is not None
    if run is not None and start is not None:
        end = start + run
    return submit, start, end, is_known


def _text(value: Any) -> str:
    return "" if value is None else str(value)


def _processors(value: Any, reading: Reading) -> int:
    number = _number(value) if value is not None else None
    if number is None or number <= 0 or number >= 2**62:
        raise Unreadable(
            f"processors is {value!r:.40}; a number of more than 0 is expected", "width"
        )
    reading.counts["fraction"] += not number.is_integer()
    return math.ceil(number)


_AMOUNTS: Final = frozenset(
    {"tasks", "cores_per_task", "nodes_min", "nodes_max", "tasks_per_node", "memory_mib", "gpus"}
)
_ONE_WORD: Final = re.compile(r"[\w.+-]*")


def _request(found: Mapping[str, Any], processors: int, reading: Reading) -> Request | None:
    said = {word: found[word] for word in REQUEST_FIELDS if found.get(word) is not None}
    if not said:
        return None
    for word in _AMOUNTS & said.keys():
        number = _number(said[word])
        if number is None or number >= 2**62:
            raise Unreadable(f"{word} is {said[word]!r:.40}; a number is expected", "width")
        # Tables write less than nothing, or -1, for what nobody has said.
        said[word] = max(math.ceil(number), 0)
        reading.counts["part"] += word == "gpus" and said[word] > number > 0
    if not said.get("gpus"):
        said = {word: value for word, value in said.items() if not word.startswith("gpu")}
    elif not _ONE_WORD.fullmatch(str(said.get("gpu_type", ""))):
        reading.counts["types"] += 1
        del said["gpu_type"]
    try:
        request = request_of(said, processors)
    except RequestError:
        request = None
    if request is None or request.processors != processors:
        reading.counts["contradiction"] += 1
        return None
    return None if request.processors_alone else request


def _moment(word: str, value: Any, layout: Layout, zone: tzinfo) -> float | None:
    if value is None:
        return None
    if isinstance(value, datetime):
        return (value if value.tzinfo else value.replace(tzinfo=zone)).timestamp()
    if isinstance(value, date):
        return datetime.combine(value, time(), zone).timestamp()
    number = _number(value)
    if number is not None and layout.time_format is None:
        return number * UNITS[layout.units.get(word, "s")]
    text = str(value).strip()
    try:
        if layout.time_format is None:
            found = datetime.fromisoformat(text.removesuffix(" UTC"))
            found = found.replace(tzinfo=UTC) if text.endswith(" UTC") else found
        else:
            found = datetime.strptime(text, layout.time_format)  # noqa: DTZ007  # its zone comes next
        return (found if found.tzinfo else found.replace(tzinfo=zone)).timestamp()
    except (ValueError, OverflowError):
        raise Unreadable(f"{word} is {text!r:.40}; a moment is expected", "moment") from None


def _span(word: str, value: Any, layout: Layout) -> float | None:
    if value is None:
        return None
    if isinstance(value, timedelta):
        seconds: float | None = value.total_seconds()
    elif (number := _number(value)) is not None:
        seconds = number * UNITS[layout.units.get(word, "s")]
        if word == "requested_time" and seconds < 0:
            return None
    elif isinstance(value, str) and (long := _LONG_SPAN.fullmatch(value.strip())):
        days, hours, minutes, rest = (float(part) for part in long.groups())
        seconds = 86400.0 * days + 3600.0 * hours + 60.0 * minutes + rest
    else:
        seconds = seconds_of(value) if isinstance(value, str) else None
        if seconds is None and word == "requested_time":
            return None  # UNLIMITED, and the like
    if seconds is None or seconds < 0:
        raise Unreadable(f"{word} is {value!r:.40}; a span of time is expected", "moment")
    return seconds


def _status(found: Mapping[str, Any]) -> int:
    """Returns the status of the standard, from its number, a word or the exit code.

    Slurm writes the exit code 0:0 for cancelled and timed-out jobs, so a code alone is no success.
    """
    code, status = found.get("exit_code"), found.get("status")
    # Slurm writes code and signal: 0:0.
    is_zero = code is None or all(_number(part) == 0 for part in str(code).split(":"))
    if status is None:
        return -1 if code is None and "status" in found else int(is_zero)
    number = _number(status)
    word = str(status).strip().lower()
    if number is not None:
        said = int(number) if number in {0, 1, 2, 3, 4, 5} else -1
    elif word.startswith(_CANCELLED):
        said = 5
    else:
        said = int(word.startswith(_COMPLETED))
    return int(is_zero) if said == 1 else said
