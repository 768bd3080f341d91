"""Turns the records of a log into jobs that a machine can run.

Logs hold cancelled jobs, missing numbers and contradictions. Every rule that drops or alters a
record is an option with a name, and every record it touches is counted under a reason. The
defaults are the rules of Fölling, Grimme, Lepping and Papaspyrou, whose job counts they reproduce.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from lrms_sim.workload.jobs import (
    TIME_MAX,
    BoolArray,
    FloatArray,
    Int32Array,
    Int64Array,
    JobTable,
    OverrunTable,
)
from lrms_sim.workload.preparation_report import (
    PreparationEntry,
    PreparationOptions,
    PreparationReport,
    Treatment,
)
from lrms_sim.workload.swf_log import SwfLog

__all__ = ["IntpArray", "PreparationOptions", "Prepared", "prepare"]

IntpArray = npt.NDArray[np.intp]

_PARTIAL_STATUS_MIN: Final = 2
_PARTIAL_STATUS_MAX: Final = 4


@dataclass(frozen=True, slots=True)
class Prepared:
    """Jobs that a machine can run, and how they were prepared.

    Attributes:
        jobs: sorted by `(submit_time, job_id)`.
        report: every dropped or altered record by reason.
        records: shape (n,), the row of the log that each job comes from.
    """

    jobs: JobTable
    report: PreparationReport
    records: IntpArray


class _Tally:
    """Which records are kept, and what happened to the others."""

    def __init__(self, count: int) -> None:
        self.kept: BoolArray = np.ones(count, np.bool_)
        self.entries: list[PreparationEntry] = []

    def drop(self, reason: str, description: str, rows: BoolArray) -> None:
        self._note(reason, description, rows, "dropped")
        self.kept &= ~rows

    def note(
        self, reason: str, description: str, rows: BoolArray, treatment: Treatment = "altered"
    ) -> None:
        self._note(reason, description, rows, treatment)

    def _note(self, reason: str, description: str, rows: BoolArray, treatment: Treatment) -> None:
        count = int(np.count_nonzero(rows & self.kept))
        if count:
            self.entries.append(PreparationEntry(reason, description, count, treatment))


def prepare(
    log: SwfLog,
    machine_processors: int,
    options: PreparationOptions | None = None,
    *,
    dependencies: bool = False,
) -> Prepared:
    """Prepares a log for a machine of a given size.

    Args:
        log: the records.
        machine_processors: the size of the machine; no wider job is prepared.
        options: the rules.
        dependencies: whether jobs will be submitted after their predecessors
            (`lrms_sim.machine.closed_loop`), for the report.

    Raises:
        ValueError: the size is less than 1, an option says `error` and its case occurs, or a
            time is beyond `TIME_MAX`, or an end could be.
    """
    options = options or PreparationOptions()
    if machine_processors < 1:
        raise ValueError(f"machine_processors is {machine_processors}; it must be at least 1")
    tally = _Tally(len(log))
    processors, from_other_field = _processors(log, options)
    run_time = log.run_time
    if options.run_time_zero == "one_second":
        run_time = np.where(run_time == 0, 1.0, run_time)
    requested_time = log.requested_time
    if options.requested_time_missing == "run_time":
        requested_time = np.where(requested_time > 0, requested_time, run_time)

    _drop_unusable(tally, log, (run_time, requested_time, processors), options)
    _drop_too_wide(tally, log, processors, machine_processors, options)
    _check_exact(
        tally,
        log,
        {
            "submit time": log.submit_time,
            "run time": run_time,
            "requested time": requested_time,
        },
    )
    job_id = _distinct_job_ids(tally, log, options)

    overrun = run_time > requested_time
    if options.overrun == "kill":
        run_time = np.minimum(run_time, requested_time)
    elif options.overrun == "extend":
        requested_time = np.maximum(requested_time, run_time)
    _check_ends(tally, log, run_time)
    _note_alterations(tally, log, from_other_field, overrun, options)
    _note_unread(tally, log, dependencies=dependencies)

    rows = _in_order(tally, log.submit_time, job_id)
    jobs = (OverrunTable if options.overrun == "run" else JobTable)(
        job_id[rows],
        log.submit_time[rows],
        processors[rows],
        requested_time[rows],
        run_time[rows],
        log.user[rows],
    )
    report = PreparationReport(log.path, len(log), len(jobs), tuple(tally.entries))
    return Prepared(jobs, report, rows)


def _in_order(tally: _Tally, submit_time: FloatArray, job_id: Int64Array) -> IntpArray:
    rows = np.flatnonzero(tally.kept)
    submit, number = submit_time[rows], job_id[rows]
    # Nearly every log is in order as it is; sorting costs more than all the rest.
    if np.all(
        (submit[1:] > submit[:-1]) | (submit[1:] == submit[:-1]) & (number[1:] > number[:-1])
    ):
        return rows
    return rows[np.lexsort((number, submit))]


def _processors(log: SwfLog, options: PreparationOptions) -> tuple[Int32Array, BoolArray]:
    """Returns the width of each record, and whether it came from the fallback field."""
    first, second = log.processors_allocated, log.processors_requested
    if options.processors_from == "requested":
        first, second = second, first
    missing = first <= 0
    return np.where(missing, second, first).astype(np.int32), missing & (second > 0)


def _drop_unusable(
    tally: _Tally,
    log: SwfLog,
    columns: tuple[FloatArray, FloatArray, Int32Array],
    options: PreparationOptions,
) -> None:
    """Drops records that lack run time, request or width, given as `columns`, even after the options."""
    run_time, requested_time, processors = columns
    if options.partial_execution == "drop":
        partial = _partial(log)
        tally.drop("partial-execution", "line repeats a part of another job", partial)
    if options.submit_time_negative == "drop":
        tally.drop("submit-time-negative", "submit time negative", log.submit_time < 0)
    tally.drop("run-time-unknown", "run time unknown", run_time < 0)
    tally.drop("run-time-zero", "run time 0 s", run_time == 0)
    tally.drop("requested-time-missing", "requested time missing", requested_time <= 0)
    tally.drop("processors-unknown", "number of processors unknown", processors <= 0)


def _says_partial(log: SwfLog) -> BoolArray:
    """Returns which records have a status for a part of a job."""
    return (log.status >= _PARTIAL_STATUS_MIN) & (log.status <= _PARTIAL_STATUS_MAX)


def _partial(log: SwfLog) -> BoolArray:
    """Returns which records are parts of a job whose number has a whole line too.

    Some logs hold exit codes in the status field.
    """
    partial = _says_partial(log)
    if partial.any():
        partial &= np.isin(log.job_id, log.job_id[~partial])
    return partial


def _check_exact(tally: _Tally, log: SwfLog, columns: Mapping[str, FloatArray]) -> None:
    """Checks that kept times are within the exact integer range of a double."""
    for title, column in columns.items():
        beyond = tally.kept & (np.abs(column) > TIME_MAX)
        if beyond.any():
            row = int(np.argmax(beyond))
            raise ValueError(
                f"{log.path}: {title} of job {log.job_id[row]} is {column[row]:g} s; beyond "
                f"2**53 s ({np.count_nonzero(beyond)} such records) seconds cannot be told "
                "apart, correct the log"
            )


def _check_ends(tally: _Tally, log: SwfLog, run_time: FloatArray) -> None:
    """Checks that seconds stay exact even if all jobs run one after the other."""
    latest = float(log.submit_time[tally.kept].max(initial=0.0))
    total = float(run_time[tally.kept].sum())
    if total > TIME_MAX - latest:
        raise ValueError(
            f"{log.path}: submit times up to {latest:g} s and run times of {total:g} s together: "
            "jobs could end beyond 2**53 s, where seconds cannot be told apart, correct the log"
        )


def _drop_too_wide(
    tally: _Tally,
    log: SwfLog,
    processors: Int32Array,
    machine_processors: int,
    options: PreparationOptions,
) -> None:
    too_wide = processors > machine_processors
    found = too_wide & tally.kept
    if options.too_wide == "error" and found.any():
        row = int(np.argmax(found))
        raise ValueError(
            f"{log.path}: job {log.job_id[row]} needs {processors[row]} processors, the machine "
            f"has {machine_processors} ({np.count_nonzero(found)} such jobs; too_wide = 'drop' "
            f"leaves them out)"
        )
    tally.drop("too-wide", f"wider than the machine ({machine_processors})", too_wide)


def _distinct_job_ids(tally: _Tally, log: SwfLog, options: PreparationOptions) -> Int64Array:
    """Returns unique job numbers; of equal ones the first in the file keeps its own."""
    rows = np.flatnonzero(tally.kept)
    if np.all(log.job_id[rows[1:]] > log.job_id[rows[:-1]]):
        return log.job_id
    _, first = np.unique(log.job_id[rows], return_index=True)
    repeated: BoolArray = np.zeros(len(log), np.bool_)
    repeated[rows] = True
    repeated[rows[first]] = False
    count = int(np.count_nonzero(repeated))
    if count == 0:
        return log.job_id
    if options.job_id_repeated == "error":
        row = int(np.argmax(repeated))
        raise ValueError(
            f"{log.path}: job number {log.job_id[row]} stands for more than one job ({count} "
            f"such records; job_id_repeated = 'renumber' gives them new numbers)"
        )
    if options.job_id_repeated == "drop":
        tally.drop("job-id-repeated", "job number repeated", repeated)
        return log.job_id
    largest = int(log.job_id[rows].max())
    if largest > np.iinfo(np.int64).max - count:
        raise ValueError(
            f"{log.path}: job number {largest} leaves no room for {count} new numbers; "
            f"job_id_repeated = 'drop' drops the repeated ones"
        )
    tally.note("job-id-repeated", "job number repeated, renumbered", repeated)
    job_id = log.job_id.copy()
    job_id[repeated] = np.arange(largest + 1, largest + 1 + count)
    return job_id


def _note_alterations(
    tally: _Tally,
    log: SwfLog,
    from_other_field: BoolArray,
    overrun: BoolArray,
    options: PreparationOptions,
) -> None:
    other = "requested" if options.processors_from == "allocated" else "allocated"
    tally.note(
        "processors-from-other-field",
        f"{options.processors_from} processors unknown, {other} taken",
        from_other_field,
    )
    tally.note("run-time-zero", "run time 0 s raised to 1 s", log.run_time == 0)
    tally.note(
        "requested-time-missing",
        "requested time missing, run time taken",
        log.requested_time <= 0,
    )
    if options.overrun == "kill":
        tally.note("overrun", "run time above request, killed at the request", overrun)
    elif options.overrun == "extend":
        tally.note("overrun", "run time above request, request extended", overrun)
    else:
        tally.note("overrun", "run time above request, runs on", overrun, "kept")
    if options.partial_execution == "drop":
        tally.note(
            "partial-without-whole",
            "status of a part, but of no other job",
            _says_partial(log),
            "kept",
        )
    tally.note("submit-time-negative", "submit time negative", log.submit_time < 0, "kept")
    tally.note(
        "unsorted", "submitted before its predecessor in the log, sorted", _unsorted(log, tally)
    )


def _note_unread(tally: _Tally, log: SwfLog, *, dependencies: bool) -> None:
    """Reports what the log says and is not used."""
    follows: BoolArray = np.zeros(len(log), np.bool_)
    if dependencies:
        follows[list(predecessors(log, np.flatnonzero(tally.kept)))] = True
    tally.note("preceding-job", "submitted once the job before it has ended", follows)
    tally.note(
        "preceding-job-unread",
        "names the job before it, submitted as recorded",
        (log.preceding_job > 0) & ~follows,
        "ignored",
    )
    for reason, words, count in (
        ("longer-record", "more than 18 fields, the rest not read", log.longer_records),
        ("title", "title before the first record, not read", log.title_lines),
    ):
        if count:
            tally.entries.append(PreparationEntry(reason, words, count, "ignored"))


def predecessors(log: SwfLog, rows: npt.NDArray[np.integer]) -> dict[int, int]:
    """Returns the rows of a log with an earlier predecessor that is present, with the row of that one.

    A repeated number means its first record; a job that names itself has no predecessor. `rows` are
    those of the jobs present, in any order.
    """
    first: dict[int, int] = {}
    for row in sorted(rows.tolist()):
        first.setdefault(int(log.job_id[row]), row)
    found: dict[int, int] = {}
    for row in rows.tolist():
        number = int(log.preceding_job[row])
        before = first.get(number) if number > 0 else None
        if before is not None and before != row:
            found[row] = before
    return found


def _unsorted(log: SwfLog, tally: _Tally) -> BoolArray:
    """Returns which kept records were submitted before their predecessor in the file."""
    rows = np.flatnonzero(tally.kept)
    early: BoolArray = np.zeros(len(log), np.bool_)
    early[rows[1:]] = np.diff(log.submit_time[rows]) < 0
    return early
