"""The job table: one workload as a struct of arrays; workloads are cut to days, merged and scaled."""

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final, Literal, Self, get_args

import numpy as np
import numpy.typing as npt

from lrms_sim.util import columns
from lrms_sim.workload import frames

FloatArray = npt.NDArray[np.float64]
Int32Array = npt.NDArray[np.int32]
Int64Array = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
IndexArray = npt.NDArray[np.integer] | npt.NDArray[np.bool_]
JOBS_MAX = 2**31 - 2
"""Largest number of jobs in one table: the kernels index jobs with 32 bits."""

TIME_MAX = 2.0**53
"""Latest time a log may say, and a job may end, seconds: up to here every whole second is a number of its own."""

_COLUMNS = (
    ("job_id", np.int64),
    ("submit_time", np.float64),
    ("processors", np.int32),
    ("requested_time", np.float64),
    ("run_time", np.float64),
    ("user", np.int32),
)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class JobTable(frames.Framed):
    """The jobs of one workload, in the order in which they arrive.

    Rows are sorted by `(submit_time, job_id)`; a row's number is the job's index everywhere
    else. All arrays are one-dimensional, contiguous, read-only and of the same length n.

    Attributes:
        job_id: shape (n,), the number of the job in its log; unique within the table, which is checked.
        submit_time: shape (n,), seconds since the workload's time 0; finite, may be negative.
        processors: shape (n,), processors held from start to end; at least 1.
        requested_time: shape (n,), seconds the user asked for; at least `run_time`.
        run_time: shape (n,), seconds the job really runs; more than 0. A queue discipline
            cannot see it.
        user: shape (n,), number of the user; -1 where it is unknown.
        overruns: whether jobs may run for longer than they have requested; only in an `OverrunTable`.
    """

    job_id: Int64Array
    submit_time: FloatArray
    processors: Int32Array
    requested_time: FloatArray
    run_time: FloatArray
    user: Int32Array
    overruns: ClassVar[bool] = False

    def __post_init__(self) -> None:
        count = len(self.job_id)
        if count > JOBS_MAX:
            raise ValueError(f"{count} jobs in one table; at most {JOBS_MAX} are possible")
        for name, dtype in _COLUMNS:
            given = np.ascontiguousarray(columns.numbers(name, getattr(self, name)))
            if given.shape != (count,):
                raise ValueError(
                    f"column {name} has shape {given.shape}, but job_id has {count} rows"
                )
            column = columns.exactly(name, given, dtype, f", which is no {dtype.__name__}")
            object.__setattr__(self, name, column)
        self._check("submit_time", np.isfinite(self.submit_time), "finite")
        self._check("processors", self.processors >= 1, "at least 1")
        run_time_good = np.isfinite(self.run_time) & (self.run_time > 0)
        self._check("run_time", run_time_good, "finite and more than 0")
        request_good = np.isfinite(self.requested_time)
        if self.overruns:
            request_good &= self.requested_time > 0
            self._check("requested_time", request_good, "finite and more than 0")
            # A job is started before its estimated end, whatever the clock shows by then.
            latest = float(np.sum(self.run_time) + np.max(self.submit_time, initial=0.0))
            seen = self.requested_time >= np.spacing(
                max(latest, -np.min(self.submit_time, initial=0.0))
            )
            self._check(
                "requested_time", seen, f"long enough for a clock that may come to {latest:g} s"
            )
        else:
            request_good &= self.requested_time >= self.run_time
            self._check("requested_time", request_good, "finite and at least the job's run_time")
        if count > 1:
            step = np.diff(self.submit_time)
            ordered = (step > 0) | ((step == 0) & (np.diff(self.job_id) > 0))
            if not ordered.all():
                row = int(np.argmin(ordered)) + 1
                raise ValueError(
                    f"rows must be sorted by (submit_time, job_id) without repeats: job "
                    f"{self.job_id[row]} in row {row} comes after job {self.job_id[row - 1]}; "
                    f"JobTable.from_columns sorts"
                )
            self._check_unique()

    def _check_unique(self) -> None:
        # Nearly every table is in the order of its ids; sorting costs more than all the rest.
        if bool((np.diff(self.job_id) > 0).all()):
            return
        order = np.argsort(self.job_id, kind="stable")
        same = np.flatnonzero(np.diff(self.job_id[order]) == 0)
        if len(same):
            first, second = order[same[0] : same[0] + 2]
            raise ValueError(
                f"job_id {self.job_id[first]} stands in rows {first} and {second}; an id is of one job"
            )

    def _check(self, name: str, good: BoolArray, bound: str) -> None:
        if not good.all():
            row = int(np.argmin(good))
            raise ValueError(
                f"{name} of job {self.job_id[row]} (row {row}) is {getattr(self, name)[row]}; "
                f"it must be {bound}"
            )

    @classmethod
    def from_columns(
        cls,
        *,
        submit_time: npt.ArrayLike,
        processors: npt.ArrayLike,
        run_time: npt.ArrayLike,
        requested_time: npt.ArrayLike | None = None,
        job_id: npt.ArrayLike | None = None,
        user: npt.ArrayLike | None = None,
    ) -> Self:
        """Builds a table, sorted by `(submit_time, job_id)`, from columns in any order.

        Args:
            submit_time: seconds, or durations since time 0; or dates, of which the earliest becomes
                time 0 (`shifted` brings tables of several sites to one clock).
            processors: count.
            run_time: seconds, or durations.
            requested_time: same; default the run time.
            job_id: unique numbers; default 1, 2, … in the given order.
            user: numbers; default -1.

        Raises:
            ValueError: a column breaks a promise of the class, is of texts or booleans, or has
                gaps.
        """
        submit = columns.moments({"submit_time": submit_time})["submit_time"].astype(np.float64)
        run = columns.spans("run_time", run_time).astype(np.float64)
        count = len(submit)
        known: dict[str, npt.NDArray[Any]] = {
            "job_id": np.arange(1, count + 1),
            "submit_time": submit,
            "processors": columns.numbers("processors", processors),
            "requested_time": run,
            "run_time": run,
            "user": np.full(count, -1),
        }
        if requested_time is not None:
            known["requested_time"] = columns.spans("requested_time", requested_time)
        for name, given in (("job_id", job_id), ("user", user)):
            if given is not None:
                known[name] = columns.numbers(name, given)
        for name, column in known.items():
            if len(column) != count:
                raise ValueError(f"column {name} has {len(column)} rows, submit_time has {count}")
        order = np.lexsort((known["job_id"], submit))
        return cls(**{name: column[order] for name, column in known.items()})

    @classmethod
    def empty(cls) -> Self:
        """Returns a table without jobs."""
        return cls.from_columns(submit_time=[], processors=[], run_time=[])

    def __len__(self) -> int:
        return len(self.job_id)

    @classmethod
    def from_frame(cls, frame: Any) -> Self:
        """Builds a table from a frame of pandas, polars or Arrow, or a mapping of columns.

        Columns are `submit_time`, `processors`, `run_time`, and if known `requested_time`,
        `job_id`, `user`; others are ignored. An index of pandas with such a name is a column. Dates and durations are taken as by `from_columns`.

        Raises:
            ValueError: a column is missing or breaks a promise of the class.
        """
        frame = frames.without_index(frame)
        known = frames.names_in(frame)
        optional = {
            name: frames.column_of(frame, name)
            for name in ("requested_time", "job_id", "user")
            if name in known
        }
        return cls.from_columns(
            submit_time=frames.column_of(frame, "submit_time"),
            processors=frames.column_of(frame, "processors"),
            run_time=frames.column_of(frame, "run_time"),
            **optional,
        )

    def columns(self) -> dict[str, npt.NDArray[Any]]:
        """Returns the columns by name, without copying them."""
        return {name: getattr(self, name) for name in frames.JOB_COLUMNS}

    def title(self) -> str:
        """Returns how many jobs these are, of what span of time and how many users."""
        if not len(self):
            return "JobTable of 0 jobs"
        days = (self.submit_time[-1] - self.submit_time[0]) / 86400.0
        users = len(np.unique(self.user[self.user >= 0]))
        return (
            f"JobTable of {len(self):,} jobs in {days:,.1f} days, up to "
            f"{self.processors.max():,} processors, {users:,} users known"
        )

    def select(self, rows: IndexArray) -> Self:
        """Returns the rows of a boolean mask of shape (n,), or of increasing row numbers."""
        return type(self)(*(getattr(self, name)[rows] for name, _ in _COLUMNS))

    def shifted(self, seconds: float) -> Self:
        """Returns the same jobs with every submission `seconds` later."""
        return replace(self, submit_time=self.submit_time + seconds)

    @property
    def outlives_requests(self) -> bool:
        """Whether some job runs for longer than it has requested."""
        return self.overruns and bool((self.run_time > self.requested_time).any())

    def refuse_overruns(self, reason: str) -> None:
        """Refuses jobs that outlive their requests, where `reason` says why.

        Raises:
            ValueError: one does; the text names it.
        """
        if self.outlives_requests:
            row = int(np.argmax(self.run_time > self.requested_time))
            raise ValueError(
                f"job {self.job_id[row]} runs for {self.run_time[row]:g} s and has requested "
                f"{self.requested_time[row]:g} s; {reason}: prepare the log with overrun kill or extend"
            )

    @property
    def resource_consumption(self) -> FloatArray:
        """Processor-seconds of each job, `run_time · processors`, shape (n,)."""
        return self.run_time * self.processors


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class OverrunTable(JobTable):
    """Jobs that may run for longer than they have requested, which no discipline knows before it happens.

    A `requested_time` is more than 0 then. Only machines of `lrms_sim` replay such tables.
    """

    overruns: ClassVar[bool] = True


def concatenate(tables: Sequence[JobTable]) -> tuple[JobTable, Int32Array, Int64Array]:
    """Merges the workloads of several machines into one order of arrival.

    The order is `(submit_time, table, row)`: at one instant the first table comes first. Job ids
    are renumbered 1, 2, … in that order, since two logs may use the same number.

    Returns:
        The merged table; for each of its rows the number of the original table, shape (n,); and the
        row
        there, shape (n,).
    """
    if not tables:
        return JobTable.empty(), np.zeros(0, np.int32), np.zeros(0, np.int64)
    sizes = [len(table) for table in tables]
    origin = np.repeat(np.arange(len(tables), dtype=np.int32), sizes)
    rows = np.concatenate([np.arange(size, dtype=np.int64) for size in sizes])
    submit = np.concatenate([table.submit_time for table in tables])
    # A stable sort keeps (table, row) order among equal instants.
    order = np.argsort(submit, kind="stable")
    merged = {
        name: np.concatenate([getattr(table, name) for table in tables])[order]
        for name in frames.JOB_COLUMNS
    }
    made = OverrunTable if any(each.overruns for each in tables) else JobTable
    table = made(**merged | {"job_id": np.arange(1, len(submit) + 1)})
    return table, origin[order], rows[order]


SECONDS_PER_DAY: Final = 86400.0
Shift = Literal["none", "window", "first_job"]
"""Where time 0 lies after cutting: as before, at the start of the window, at its first job."""


def window_by_days(
    jobs: JobTable,
    first_day: float | None = None,
    last_day: float | None = None,
    *,
    first_jobs: int | None = None,
    shift: Shift = "none",
) -> JobTable:
    """Returns the jobs submitted in a span of days, a day being 86,400 s from time 0; possibly none.

    Args:
        jobs: the workload.
        first_day: the span begins at `first_day · 86400` s, included; default at the first job.
            Fractions are allowed.
        last_day: the span ends at `last_day · 86400` s, not included; default after the last job.
        first_jobs: keep at most so many jobs, the earliest of the span.
        shift: `none` keeps submission times, `window` makes the start of the span time 0,
            `first_job` makes the first submission of the span time 0.

    Raises:
        ValueError: the span ends before it begins, a day is not finite, `first_jobs` is
            negative, or `shift` is not a choice.
    """
    _check_window(first_day, last_day, first_jobs, shift)
    count = len(jobs)
    first, last = 0, count
    if first_day is not None:
        first = int(np.searchsorted(jobs.submit_time, first_day * SECONDS_PER_DAY))
    if last_day is not None:
        last = int(np.searchsorted(jobs.submit_time, last_day * SECONDS_PER_DAY))
    if first_jobs is not None:
        last = min(last, first + first_jobs)
    window = jobs.select(np.arange(first, max(first, last)))
    if shift == "window" and first_day is not None:
        return window.shifted(-first_day * SECONDS_PER_DAY)
    if shift == "first_job" and len(window):
        return window.shifted(-float(window.submit_time[0]))
    return window


def _check_window(
    first_day: float | None, last_day: float | None, first_jobs: int | None, shift: Shift
) -> None:
    for name, day in (("first_day", first_day), ("last_day", last_day)):
        if day is not None and not math.isfinite(day):
            raise ValueError(f"{name} is {day}; it must be finite")
    if first_day is not None and last_day is not None and last_day <= first_day:
        raise ValueError(f"last_day is {last_day}; it must be more than first_day, {first_day}")
    if first_jobs is not None and first_jobs < 0:
        raise ValueError(f"first_jobs is {first_jobs}; it must not be negative")
    if shift not in get_args(Shift):
        raise ValueError(f"shift is {shift!r}; it must be one of {', '.join(get_args(Shift))}")


def scale_to(
    jobs: JobTable,
    *,
    processors_from: int,
    processors_to: int,
    rng: np.random.Generator,
    factor: float | None = None,
) -> JobTable:
    """Returns the workload as a larger machine would have seen it.

    After Ernemann, Song, Yahyapour 2003, "Scaling of workload traces": with probability ½ a job
    is copied f times, else it becomes f times as wide. Either keeps the load, and together they
    keep the mixture of many jobs and wide jobs; n jobs become about n (1 + f)/2.

    The paper leaves fractions open. Here a job is copied ⌊f⌋ times, and once more with a
    probability of the rest; a width is rounded to the nearest whole number, halves up, and capped
    at the new machine; copies have the same submission time and user. Run time and requested time
    stay. Jobs are numbered 1, 2, … in order of arrival, copies of one job side by side.

    Args:
        jobs: the workload, no job wider than `processors_from`.
        processors_from: size of the original machine.
        processors_to: size of the new machine.
        rng: two numbers are drawn for each job, whatever they decide.
        factor: f; default `processors_to / processors_from`. The papers' job counts imply
            slightly more, such as 2.44 for CTC, 10.75 for KTH and 8.19 for SDSC00 at 1024
            processors.

    Raises:
        ValueError: a size or the factor is less than 1, a job is wider than its machine, or
            there would be too many jobs.
    """
    if processors_from < 1:
        raise ValueError(f"processors_from is {processors_from}; it must be at least 1")
    if processors_to < processors_from:
        raise ValueError(
            f"processors_to is {processors_to}; it must be at least processors_from, "
            f"{processors_from}"
        )
    if factor is None:
        factor = processors_to / processors_from
    if not (math.isfinite(factor) and factor >= 1):
        raise ValueError(f"factor is {factor}; it must be finite and at least 1")
    too_wide = jobs.processors > processors_from
    if too_wide.any():
        row = int(np.argmax(too_wide))
        raise ValueError(
            f"processors of job {jobs.job_id[row]} is {jobs.processors[row]}; it must be at most "
            f"processors_from, {processors_from}"
        )
    if len(jobs) * (factor + 1) > JOBS_MAX:
        raise ValueError(
            f"{len(jobs)} jobs scaled by {factor} may be more than {JOBS_MAX}, the most in a table"
        )
    copied = rng.random(len(jobs)) < 0.5
    whole = math.floor(factor)
    copies = whole + (rng.random(len(jobs)) < factor - whole).astype(np.int64)
    widened = np.minimum(np.floor(jobs.processors * factor + 0.5), processors_to)
    processors = np.where(copied, jobs.processors, widened).astype(np.int32)
    rows = np.repeat(np.arange(len(jobs)), np.where(copied, copies, 1))
    columns = {name: column[rows] for name, column in jobs.columns().items()}
    columns |= {"job_id": np.arange(1, len(rows) + 1), "processors": processors[rows]}
    return JobTable(**columns)


_REPLAYED = ("submit_time", "processors", "requested_time", "run_time")
"""What of a job a replay looks at."""


def jobs_sha256(jobs: JobTable) -> str:
    """Returns a checksum of all that a replay sees of a workload, hexadecimal."""
    digest = hashlib.sha256()
    for name in _REPLAYED:
        column = getattr(jobs, name)
        little_endian = column.astype(column.dtype.newbyteorder("<"), copy=False)
        digest.update(np.ascontiguousarray(little_endian).tobytes())
    return digest.hexdigest()
