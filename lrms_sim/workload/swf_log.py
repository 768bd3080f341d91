"""Header and columns of a log in the Standard Workload Format.

The format is version 2.2 of the Parallel Workloads Archive (Chapin et al. 1999, "Benchmarks and
standards for the evaluation of parallel job schedulers").
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Final, Self

import numpy as np
import numpy.typing as npt

from lrms_sim.util import columns
from lrms_sim.util.messages import printable
from lrms_sim.workload.jobs import FloatArray, Int32Array, Int64Array, JobTable

REAL, LONG, INT = range(3)
"""Kinds of fields: float64, int64 and int32, in the order of `DTYPES`."""
DTYPES: Final = (np.float64, np.int64, np.int32)
FIELDS: Final = (
    ("job_id", "job number", LONG),
    ("submit_time", "submit time", REAL),
    ("wait_time", "wait time", REAL),
    ("run_time", "run time", REAL),
    ("processors_allocated", "allocated processors", INT),
    ("cpu_time", "average CPU time used", REAL),
    ("memory_used", "used memory", REAL),
    ("processors_requested", "requested processors", INT),
    ("requested_time", "requested time", REAL),
    ("memory_requested", "requested memory", REAL),
    ("status", "status", INT),
    ("user", "user", INT),
    ("group", "group", INT),
    ("executable", "executable", INT),
    ("queue", "queue", INT),
    ("partition", "partition", INT),
    ("preceding_job", "preceding job", LONG),
    ("think_time", "think time", REAL),
)
"""Name, words for people, kind, in the order of the standard's fields 1 … 18."""

FIELD_NAMES: Final = tuple(name for name, _, _ in FIELDS)
"""The columns of a SwfLog, in the order of the standard's fields 1 … 18."""


@dataclass(frozen=True, slots=True)
class SwfHeader:
    """The comment lines of a log, as they stand there, and the fields that they hold.

    Control characters in fields are escaped, for terminals and pages.
    """

    lines: tuple[str, ...] = ()
    _values: Mapping[str, tuple[str, ...]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Finds the `; Key: value` lines.

        Raises:
            ValueError: a line does not begin with a semicolon or is more than one line.
        """
        values: dict[str, tuple[str, ...]] = {}
        for line in self.lines:
            if not line.startswith(";") or "\n" in line or "\r" in line:
                raise ValueError(
                    f"header line {line!r} must be one line that begins with a semicolon"
                )
            # Deeper indentation marks the continuation of the line above.
            found = re.match(r";[ \t]{0,2}([A-Za-z]\w*):(?!//)[ \t]*(.*?)\s*$", line)
            if found:
                key, value = found.groups()
                # Values are shown to people; a log may come from anybody.
                values[key] = (*values.get(key, ()), printable(value))
        object.__setattr__(self, "_values", values)

    @classmethod
    def from_fields(cls, values: Mapping[str, object]) -> Self:
        """Returns a header with `; Key: value` for each entry, in the given order.

        Raises:
            ValueError: a value has more than one line.
        """
        return cls(tuple(f"; {key}: {value}" for key, value in values.items()))

    @property
    def fields(self) -> dict[str, str]:
        """The first value of every key."""
        return {key: values[0] for key, values in self._values.items()}

    def values(self, key: str) -> tuple[str, ...]:
        """Returns all values of a key that may come more than once, such as `Queue`."""
        return self._values.get(key, ())

    def _number(self, key: str) -> int | None:
        # Logs add remarks: "MaxProcs: 1664 (72, 1368, 224)". What else goes on is another number,
        # as "1,024" or "1 024", of which the beginning would be a machine of one processor.
        found = re.match(r"(-?\d{1,18})(?:[,;]?(?:\s+(?!\d{3}\b)|$)|\()", self.fields.get(key, ""))
        return int(found[1]) if found else None

    @property
    def max_procs(self) -> int | None:
        """`MaxProcs`, the processors of the machine, if given."""
        return self._number("MaxProcs")

    @property
    def size_key(self) -> str:
        """Key of the machine's size: `MaxProcs`, or `MaxNodes` of a log that counts in nodes and has no other."""
        return "MaxNodes" if self.values("MaxNodes") and not self.values("MaxProcs") else "MaxProcs"

    @property
    def size(self) -> int | None:
        """Size of the machine, by `size_key`, if given."""
        return self._number(self.size_key)

    @property
    def unix_start_time(self) -> int | None:
        """`UnixStartTime`, time 0 of the log in seconds since 1970 UTC, if given."""
        return self._number("UnixStartTime")

    @property
    def time_zone(self) -> int | None:
        """`TimeZone`, seconds to add to UTC for local time, if given."""
        return self._number("TimeZone")

    @property
    def computer(self) -> str | None:
        """`Computer`, the make of the machine, if given."""
        return self.fields.get("Computer") or None

    @property
    def installation(self) -> str | None:
        """`Installation`, the machine's site, if given."""
        return self.fields.get("Installation") or None


@dataclass(frozen=True, slots=True, eq=False)
class SwfLog:
    """A log as it was read: the header and the standard's 18 fields as columns.

    All columns are read-only and of the same length n, in the order of the file. -1 stands for
    "not known" everywhere. Times are in seconds.

    Attributes:
        path: the log as the user named it.
        job_id: field 1, int64.
        submit_time: field 2, since the log's time 0, float64.
        wait_time: field 3, between submission and start, float64.
        run_time: field 4, between start and end, float64.
        processors_allocated: field 5, int32.
        cpu_time: field 6, average over the processors, float64.
        memory_used: field 7, kilobytes for each processor, float64.
        processors_requested: field 8, int32.
        requested_time: field 9, the user's estimate or limit, float64.
        memory_requested: field 10, kilobytes for each processor, float64.
        status: field 11; 0 failed, 1 completed, 2 to 4 part of a job, 5 cancelled; int32.
        user: field 12, int32.
        group: field 13, int32.
        executable: field 14, int32.
        queue: field 15, int32.
        partition: field 16, int32.
        preceding_job: field 17, the predecessor, int64.
        think_time: field 18, between the predecessor's end and this submission, float64.
        longer_records: number of records with further, ignored fields.
        title_lines: lines before the first record that are none, as a title or column names.
    """

    path: str
    header: SwfHeader
    job_id: Int64Array
    submit_time: FloatArray
    wait_time: FloatArray
    run_time: FloatArray
    processors_allocated: Int32Array
    cpu_time: FloatArray
    memory_used: FloatArray
    processors_requested: Int32Array
    requested_time: FloatArray
    memory_requested: FloatArray
    status: Int32Array
    user: Int32Array
    group: Int32Array
    executable: Int32Array
    queue: Int32Array
    partition: Int32Array
    preceding_job: Int64Array
    think_time: FloatArray
    longer_records: int = field(default=0, kw_only=True)
    title_lines: int = field(default=0, kw_only=True)

    def __post_init__(self) -> None:
        """Checks lengths and values and makes the columns read-only."""
        for name, _, kind in FIELDS:
            column = _as_column(name, getattr(self, name), kind)
            if len(column) != len(self.job_id):
                raise ValueError(
                    f"column {name} has {len(column)} rows, job_id has {len(self.job_id)}"
                )
            object.__setattr__(self, name, column)

    @classmethod
    def from_columns(
        cls,
        columns: Mapping[str, npt.ArrayLike],
        header: SwfHeader | None = None,
        path: str = "<memory>",
    ) -> Self:
        """Builds a log from some of its columns.

        Dates of `submit_time` become seconds after the earliest, durations seconds. `job_id`
        defaults to 1, 2, …, any other column to -1. `path` is the log's name in errors.

        Raises:
            ValueError: a name is not a column, or a column breaks a promise of the class.
        """
        unknown = sorted(set(columns) - set(FIELD_NAMES))
        if unknown:
            raise ValueError(
                f"{unknown[0]!r} is not a column of SWF; there are: {', '.join(FIELD_NAMES)}"
            )
        count = max((np.size(column) for column in columns.values()), default=0)
        # One number seen as a column: a long log costs nothing for what it does not say.
        unsaid: dict[str, npt.ArrayLike] = {
            name: np.broadcast_to(np.array(-1, DTYPES[kind]), count) for name, _, kind in FIELDS
        }
        unsaid["job_id"] = np.arange(1, count + 1)
        return cls(path, header or SwfHeader(), **(unsaid | dict(columns)))  # type: ignore[arg-type]  # __post_init__ converts

    @classmethod
    def from_jobs(cls, jobs: JobTable, header: SwfHeader | None = None) -> Self:
        """Returns a log with the table's columns, and -1 elsewhere."""
        return cls.from_columns(
            {
                "job_id": jobs.job_id,
                "submit_time": jobs.submit_time,
                "run_time": jobs.run_time,
                "processors_allocated": jobs.processors,
                "processors_requested": jobs.processors,
                "requested_time": jobs.requested_time,
                "status": np.ones(len(jobs), np.int32),
                "user": jobs.user,
            },
            header,
        )

    def __len__(self) -> int:
        return len(self.job_id)


def _as_column(name: str, values: npt.ArrayLike, kind: int) -> npt.NDArray[np.generic]:
    """Returns the values as a read-only column of the field's type.

    Raises:
        ValueError: a value is not finite, not whole or too large for the field.
    """
    dtype = DTYPES[kind]
    if kind != REAL:
        given = columns.numbers(name, values)
    elif name == "submit_time":
        given = columns.moments({name: values})[name]
    else:
        given = columns.spans(name, values)
    column = columns.exactly(name, given, dtype, f"; it must be {bound(kind)}")
    if kind == REAL and not np.isfinite(column).all():
        row = int(np.argmin(np.isfinite(column)))
        raise ValueError(f"{name} in row {row} is {given[row]}; it must be {bound(kind)}")
    return column


def bound(kind: int) -> str:
    """Returns what a field of that kind can hold, in words."""
    if kind == REAL:
        return "a finite number"
    info = np.iinfo(np.int32 if kind == INT else np.int64)
    return f"a whole number between {info.min} and {info.max}"


assert tuple(item.name for item in fields(SwfLog))[2:-2] == FIELD_NAMES
