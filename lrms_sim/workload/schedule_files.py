"""Schedules as files: CSV that evalys and Batsim's tools read, and SWF.

docs/schedule-format.md describes the columns. The same schedule always gives the same bytes, and
files are written atomically.
"""

import csv
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, Final

import numpy as np
import numpy.typing as npt

from lrms_sim.kernel import _schedule_csv
from lrms_sim.util.errors import HanseError
from lrms_sim.util.files import replacing
from lrms_sim.util.log_files import rows_of
from lrms_sim.workload.jobs import OverrunTable
from lrms_sim.workload.schedule import MachineInfo, Schedule
from lrms_sim.workload.swf_log import SwfHeader, SwfLog

COLUMNS: Final = (
    "job_id",
    "workload_name",
    "profile",
    "submission_time",
    "requested_number_of_resources",
    "requested_time",
    "success",
    "final_state",
    "starting_time",
    "execution_time",
    "finish_time",
    "waiting_time",
    "turnaround_time",
    "stretch",
    "allocated_resources",
    "consumed_energy",
    "metadata",
    "submitted_to",
    "executed_on",
    "user",
)
"""The columns of the CSV file: those of Batsim's `_jobs.csv` in its order, then our own."""

_LONG: Final = ("job_id",)
_INT: Final = ("requested_number_of_resources", "user")
_SECONDS: Final = (
    "submission_time",
    "requested_time",
    "starting_time",
    "execution_time",
    "finish_time",
)
_MACHINE: Final = ("submitted_to", "executed_on")
_READ_ROWS: Final = 1 << 16


class ScheduleFileError(HanseError, ValueError):
    """A schedule file that cannot be read; the text says where and what was expected."""


def write_csv(
    schedule: Schedule,
    path: str | os.PathLike[str],
    *,
    progress: Callable[[int], None] | None = None,
) -> None:
    """Writes a schedule as CSV, gzip-compressed if the name ends in .gz; an old file is replaced.

    Rows are written about 1 MiB at a time; in addition to the schedule 16 bytes for each job are
    held, and the intervals of the jobs that run or wait for an earlier row. `progress` is called
    now and then with the number of rows written.

    Raises:
        OSError: the file cannot be written.
        ValueError: a time is not finite, a job ends before it starts, a machine does not exist,
            or its jobs need more processors at one time than it has.
    """
    _check(schedule)
    with replacing(path) as temporary, _open_to_write(temporary) as file:
        file.write((",".join(COLUMNS) + "\n").encode())
        _schedule_csv.write_rows(
            file.write,
            [_csv_field(machine.name) for machine in schedule.machines],
            np.array([machine.processors for machine in schedule.machines], np.int64),
            # Stable: jobs that start at one instant take processors in the order of the rows.
            np.argsort(schedule.start_time, kind="stable").astype(np.int64, copy=False),
            {
                "log_job_id": schedule.log_job_id,
                "submit_time": schedule.jobs.submit_time,
                "processors": schedule.jobs.processors,
                "requested_time": schedule.jobs.requested_time,
                "run_time": schedule.jobs.run_time,
                "user": schedule.jobs.user,
                "start_time": schedule.start_time,
                "end_time": schedule.end_time,
                "submitted_to": schedule.submitted_to,
                "executed_on": schedule.executed_on,
            },
            progress,
        )


def _check(schedule: Schedule) -> None:
    """Checks the promises that the compiled writer relies on.

    Raises:
        ValueError: one is broken; the text names the first job.
    """
    for name in ("submitted_to", "executed_on"):
        machine = getattr(schedule, name)
        good = (machine >= 0) & (machine < len(schedule.machines))
        if not good.all():
            row = int(np.argmin(good))
            raise ValueError(
                f"{name} of job {schedule.log_job_id[row]} is {machine[row]}; there are "
                f"{len(schedule.machines)} machines, counted from 0"
            )
    start_time, end_time = schedule.start_time, schedule.end_time
    good = np.isfinite(start_time) & np.isfinite(end_time) & (end_time >= start_time)
    if not good.all():
        row = int(np.argmin(good))
        raise ValueError(
            f"job {schedule.log_job_id[row]} starts at {start_time[row]} and ends at "
            f"{end_time[row]}; both must be finite and in this order"
        )


def _csv_field(text: str) -> bytes:
    if any(character in text for character in ',"\r\n'):
        text = '"' + text.replace('"', '""') + '"'
    return text.encode()


@contextmanager
def _open_to_write(path: Path) -> Iterator[BinaryIO]:
    with path.open("wb") as file:
        if path.suffix != ".gz":
            yield file
            return
        import gzip  # noqa: PLC0415  # a few milliseconds that plain files need not wait for

        # Neither name nor time of writing, so that the bytes depend on the schedule alone.
        with gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as packed:
            yield packed  # type: ignore[misc]  # has the same write()


def read_csv(path: str | os.PathLike[str], machines: Sequence[MachineInfo]) -> Schedule:
    """Reads a schedule that `write_csv` wrote, plain or packed, with its rows in file order.

    The file has machine names without sizes and order, and lacks idle machines, so `machines` must
    be given in site order. Columns are found by name; unneeded ones may be missing. `jobs.job_id`
    is the log's number if the jobs come from one workload, else 1, 2, … in the order of the rows.

    Raises:
        ScheduleFileError: the file cannot be read, a column is missing, or a value is malformed.
    """
    try:
        with closing(rows_of(path, lambda text: ScheduleFileError(f"{path}: {text}"))) as lines:
            columns = _read_columns(lines, str(path), [machine.name for machine in machines])
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        reason = getattr(error, "strerror", None) or error
        raise ScheduleFileError(f"{path}: cannot be read: {reason}") from error
    log_job_id = columns["job_id"].astype(np.int64)
    submitted_to = columns["submitted_to"].astype(np.int16)
    one_workload = len(submitted_to) == 0 or bool((submitted_to == submitted_to[0]).all())
    try:
        jobs = OverrunTable(
            job_id=log_job_id if one_workload else np.arange(1, len(log_job_id) + 1),
            submit_time=columns["submission_time"],
            processors=columns["requested_number_of_resources"].astype(np.int32),
            requested_time=columns["requested_time"],
            run_time=columns["execution_time"],
            user=columns["user"].astype(np.int32),
        )
        schedule = Schedule(
            jobs=jobs,
            start_time=columns["starting_time"],
            end_time=columns["finish_time"],
            machines=tuple(machines),
            submitted_to=submitted_to,
            executed_on=columns["executed_on"].astype(np.int16),
            log_job_id=log_job_id,
        )
        _check(schedule)
    except ValueError as error:
        raise ScheduleFileError(f"{path}: {error}") from error
    return schedule


def _read_columns(
    file: Iterator[str], path: str, names: Sequence[str]
) -> dict[str, npt.NDArray[Any]]:
    """Returns the needed columns, machines as indices into `names`."""
    reader = csv.reader(file)
    header = next(reader, None)
    needed = (*_LONG, *_INT, *_SECONDS, *_MACHINE)
    missing = [name for name in needed if name not in (header or ())]
    if header is None or missing:
        found = "the file is empty" if header is None else f"column {missing[0]} is missing"
        raise ScheduleFileError(f"{path}: {found}; expected a header with {', '.join(needed)}")
    places = {name: header.index(name) for name in needed}
    index = {name: number for number, name in enumerate(names)}
    convert: dict[str, Callable[[str], float]] = dict.fromkeys(_SECONDS, float)
    convert |= dict.fromkeys(_LONG, int) | dict.fromkeys(_INT, _to_int32)
    convert |= dict.fromkeys(_MACHINE, index.__getitem__)
    parts: dict[str, list[npt.NDArray[Any]]] = {name: [] for name in needed}
    first_line = reader.line_num + 1
    while rows := list(islice(reader, _READ_ROWS)):
        for name, place in places.items():
            dtype = np.float64 if name in _SECONDS else np.int64
            try:
                part = np.array([convert[name](row[place]) for row in rows], dtype)
            except (ValueError, KeyError, IndexError, OverflowError):
                raise _fault(path, first_line, rows, name, (place, convert[name])) from None
            parts[name].append(part)
        first_line += len(rows)
    empty = np.empty(0, np.float64)
    return {name: np.concatenate(part) if part else empty for name, part in parts.items()}


def _to_int32(text: str) -> int:
    value = int(text)
    if not -(2**31) <= value < 2**31:
        raise OverflowError
    return value


def _fault(
    path: str,
    first_line: int,
    rows: list[list[str]],
    name: str,
    how: tuple[int, Callable[[str], float]],
) -> ScheduleFileError:
    """Returns the error for the first row with an invalid value in a column."""
    place, convert = how
    for line, row in enumerate(rows, first_line):
        if place >= len(row):
            return ScheduleFileError(
                f"{path}:{line}: {len(row)} fields, column {name} is number {place + 1}; the "
                f"line is cut off"
            )
        try:
            np.int64(convert(row[place]))
        except (ValueError, KeyError, OverflowError):
            expected = {_MACHINE: "the name of a given machine", _SECONDS: "seconds"}
            words = next((text for key, text in expected.items() if name in key), "a whole number")
            return ScheduleFileError(
                f"{path}:{line}: {name} is {row[place][:40]!r}; expected {words}"
            )
    raise AssertionError("only called when a row is at fault")


def schedule_log(
    schedule: Schedule,
    *,
    executed_on: int | None = None,
    header: Mapping[str, object] | None = None,
) -> SwfLog:
    """Returns a schedule as a log with wait times, for `lrms_sim.write_swf`.

    Partition number i + 1 is machine i. Jobs of one workload keep their log's numbers; those of
    several have the numbers of `schedule.jobs`, since two logs may use the same number. Every job
    counts as completed (status 1).

    Args:
        schedule: the result of a replay.
        executed_on: index of a machine, for its jobs only.
        header: `Key: value` entries to put first, such as `UnixStartTime`. Version, counts,
            processors and partitions are always those of this schedule.

    Raises:
        ValueError: there is no such machine, or a header value has more than one line.
    """
    count = len(schedule.machines)
    if executed_on is not None and not 0 <= executed_on < count:
        raise ValueError(f"machine {executed_on} does not exist; there are {count}, from 0")
    chosen = (
        np.ones(len(schedule), np.bool_)
        if executed_on is None
        else schedule.executed_on == executed_on
    )
    jobs = schedule.jobs
    one_workload = len(np.unique(schedule.submitted_to[chosen])) <= 1
    job_id = (schedule.log_job_id if one_workload else jobs.job_id)[chosen]
    machines = [
        (number + 1, machine)
        for number, machine in enumerate(schedule.machines)
        if executed_on in {None, number}
    ]
    fields: dict[str, object] = {"Version": 2.2} | dict(header or {})
    fields |= {
        "MaxJobs": len(job_id),
        "MaxRecords": len(job_id),
        "MaxProcs": sum(machine.processors for _, machine in machines),
        "MaxPartitions": len(machines),
    }
    lines = SwfHeader.from_fields(fields).lines + tuple(
        f"; Partition: {number} {machine.name} ({machine.processors} processors)"
        for number, machine in machines
    )
    return SwfLog.from_columns(
        {
            "job_id": job_id,
            "submit_time": jobs.submit_time[chosen],
            "wait_time": schedule.wait_time[chosen],
            "run_time": jobs.run_time[chosen],
            "processors_allocated": jobs.processors[chosen],
            "processors_requested": jobs.processors[chosen],
            "requested_time": jobs.requested_time[chosen],
            "status": np.ones(len(job_id), np.int32),
            "user": jobs.user[chosen],
            "partition": schedule.executed_on[chosen].astype(np.int32) + 1,
        },
        SwfHeader(lines),
    )
