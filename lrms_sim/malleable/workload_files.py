"""Workloads with utilities, results and allocation logs as CSV files."""

import csv
import math
import os
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import numpy as np

from lrms_sim.malleable.jobs import SHAPES, UtilityJobs
from lrms_sim.malleable.log import AllocationLog
from lrms_sim.malleable.machine import STATUSES, Outcome
from lrms_sim.util.errors import HanseError
from lrms_sim.util.files import replacing
from lrms_sim.util.log_files import rows_of
from lrms_sim.util.messages import shown
from lrms_sim.workload.jobs import JobTable

NEEDED: Final = ("submit_time", "processors", "run_time")
"""Columns without which there is no workload."""

OPTIONAL: Final = {
    "job_id": None,
    "requested_time": None,
    "weight": 1.0,
    "plateau": 1.0,
    "zero": 2.0,
    "floor": 0.0,
    "shape": "linear",
    "processors_min": 1,
}
"""Optional columns with their defaults; also job numbers 1, 2, …, and requests equal to run times."""

_WHOLE: Final = ("job_id", "processors", "processors_min")


class WorkloadError(HanseError, ValueError):
    """A file that cannot be read as a workload; the text says where and why."""


def read_workload(path: str | os.PathLike[str]) -> UtilityJobs:
    """Reads a workload from CSV with a header, plain or packed.

    Columns are `NEEDED` and `OPTIONAL`, times in seconds or in the steps of the paper's model.

    Raises:
        WorkloadError: the file cannot be read, or breaks a rule.
    """
    path = Path(path)
    try:
        with closing(rows_of(path, lambda text: WorkloadError(f"{path}: {text}"))) as rows:
            return _read(csv.reader(rows), str(path))
    except OSError as error:
        raise WorkloadError(f"{path}: cannot be read: {error.strerror or error}") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise WorkloadError(f"{path}: no CSV: {error}") from error


def _read(lines: Iterator[list[str]], source: str) -> UtilityJobs:
    head = next(lines, None)
    _check_head(head, source)
    assert head is not None
    columns: dict[str, list[Any]] = {name: [] for name in head}
    for number, line in enumerate(lines, 2):
        if len(line) != len(head):
            raise WorkloadError(f"{source}:{number}: {len(line)} fields; {len(head)} are expected")
        for name, text in zip(head, line, strict=True):
            columns[name].append(_value(name, text, f"{source}:{number}: {name}"))
    try:
        return _workload(columns)
    except ValueError as error:
        raise WorkloadError(f"{source}: {error}") from error


def _check_head(head: list[str] | None, source: str) -> None:
    if head is None:
        raise WorkloadError(f"{source}: is empty; a line with the names of the columns is expected")
    for name in head:
        if name not in NEEDED and name not in OPTIONAL:
            known = ", ".join((*NEEDED, *OPTIONAL))
            raise WorkloadError(f"{source}:1: {shown(name)} is no column; there are: {known}")
    for name in NEEDED:
        if name not in head:
            raise WorkloadError(f"{source}:1: the column {name} is missing")
    if len(set(head)) != len(head):
        raise WorkloadError(f"{source}:1: a column comes twice")


def _value(name: str, text: str, place: str) -> float | int:
    try:
        if name == "shape":
            return SHAPES.index(text)
        value = float(text)
    except ValueError:
        kind = f"one of {', '.join(SHAPES)}" if name == "shape" else "a number"
        raise WorkloadError(f"{place} is {shown(text)}; {kind} is expected") from None
    if math.isnan(value):
        raise WorkloadError(f"{place} is {text}; a number is expected")
    if name in _WHOLE:
        if not value.is_integer() or abs(value) >= 2**31:
            raise WorkloadError(f"{place} is {text}; a whole number is expected")
        return int(value)
    return value


def _workload(columns: dict[str, list[Any]]) -> UtilityJobs:
    count = len(columns["submit_time"])
    submit = np.array(columns["submit_time"], np.float64)
    job_id = np.array(columns.get("job_id", range(1, count + 1)), np.int64)
    order = np.lexsort((job_id, submit))
    run_time = np.array(columns["run_time"], np.float64)
    request = np.array(columns.get("requested_time", run_time), np.float64)
    jobs = JobTable(
        job_id[order],
        submit[order],
        np.array(columns["processors"], np.int32)[order],
        request[order],
        run_time[order],
        np.full(count, -1, np.int32),
    )
    own = set(OPTIONAL) - {"job_id", "requested_time"}
    return UtilityJobs.of(jobs, **{n: np.array(columns[n])[order] for n in own & set(columns)})


def write_workload(workload: UtilityJobs, path: str | os.PathLike[str]) -> None:
    """Writes a workload without loss; `OSError` if it cannot be written."""
    columns = {name: column.tolist() for name, column in workload.columns().items()}
    del columns["user"]
    columns["shape"] = [SHAPES[number] for number in columns["shape"]]
    _write(path, list(columns), zip(*columns.values(), strict=True))


def write_results(outcome: Outcome, path: str | os.PathLike[str]) -> None:
    """Writes the result of each job; `OSError` if it cannot be written."""
    jobs = outcome.workload.jobs
    names = [
        "job_id",
        "submit_time",
        "processors",
        "status",
        "start_time",
        "end_time",
        "utility",
        "possible_utility",
        "processor_seconds",
        "extra_time",
        "suspensions",
        "resizes",
        "machine",
    ]
    rows = zip(
        jobs.job_id.tolist(),
        jobs.submit_time.tolist(),
        jobs.processors.tolist(),
        [STATUSES[status] for status in outcome.status],
        map(_shown, outcome.start.tolist()),
        map(_shown, outcome.end.tolist()),
        outcome.utility.tolist(),
        outcome.workload.possible.tolist(),
        outcome.busy.tolist(),
        outcome.extra.tolist(),
        outcome.suspensions.tolist(),
        outcome.resizes.tolist(),
        outcome.machine.tolist(),
        strict=True,
    )
    _write(path, names, rows)


def write_log(log: AllocationLog, path: str | os.PathLike[str], until: float | None = None) -> None:
    """Writes the stretches of an allocation log as CSV; those of running jobs end at `until`, seconds.

    Raises:
        OSError: it cannot be written.
    """
    ids = log.workload.jobs.job_id
    widths = log.workload.jobs.processors
    rows = (
        (ids[each.job], each.machine, each.start, each.end, each.processors, widths[each.job],
         each.ending or "open")
        for each in log.allocations(until)
    )  # fmt: skip
    names = ["job_id", "machine", "from", "to", "processors", "processors_asked", "ended_by"]
    _write(path, names, rows)


def _shown(value: float) -> float | str:
    return "" if math.isnan(value) else value


def _write(path: str | os.PathLike[str], names: list[str], rows: Iterable[Iterable[Any]]) -> None:
    with replacing(path) as draft, draft.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(names)
        writer.writerows(rows)
