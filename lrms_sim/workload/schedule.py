"""The result of a replay: when and where every job ran."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from lrms_sim.util import columns
from lrms_sim.workload import frames
from lrms_sim.workload.jobs import FloatArray, Int64Array, JobTable, OverrunTable

Int16Array = npt.NDArray[np.int16]


@dataclass(frozen=True, slots=True)
class MachineInfo:
    """A machine of a schedule; names are unique within it."""

    name: str
    processors: int


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Schedule(frames.Framed):
    """Start, end and place of every job of a replay.

    Attributes:
        jobs: the workload; of several machines merged in order of arrival.
        start_time: shape (n,), seconds.
        end_time: shape (n,), seconds; `start_time + run_time`.
        machines: the machines, in site order.
        submitted_to: shape (n,), index into `machines` of the machine whose user sent the job.
        executed_on: shape (n,), index into `machines` of the machine that ran it.
        log_job_id: shape (n,), the job's number in its own workload, which `jobs.job_id` is
            not once workloads are merged.
        notes: what a discipline written in Python gives back with `notes()`; else `None`. It is of
            the whole replay, also where the schedule is a part of it, and is not saved in files.
    """

    jobs: JobTable
    start_time: FloatArray
    end_time: FloatArray
    machines: tuple[MachineInfo, ...]
    submitted_to: Int16Array
    executed_on: Int16Array
    log_job_id: Int64Array
    notes: Any = None

    def __post_init__(self) -> None:
        if not self.machines:
            raise ValueError("a schedule needs at least one machine")
        for name in ("start_time", "end_time", "submitted_to", "executed_on", "log_job_id"):
            if getattr(self, name).shape != (len(self.jobs),):
                raise ValueError(
                    f"{name} has shape {getattr(self, name).shape} for {len(self.jobs)} jobs"
                )

    @classmethod
    def from_frame(cls, frame: Any, machines: Sequence[MachineInfo] | None = None) -> Self:
        """Builds a schedule, sorted by `(submit_time, job_id)`, from a frame or a mapping of columns.

        Frames of pandas, polars and Arrow will do; an index of pandas with the name of a column is one. With dates the first submission is time 0.

        Args:
            frame: with the columns of a job table, `start_time`, and if known `end_time` (else
                `run_time` later), `executed_on` (else the only machine), `submitted_to` (else where
                it ran) and `log_job_id` (else `job_id`). Others are ignored.
            machines: in site order. Arrow tables and Parquet files of schedules have their own;
                other frames have names without sizes, and need them.

        Raises:
            ValueError: a column is missing or breaks a promise, a machine is not known, or a job
                does not start and end at finite times in this order.
        """
        frame = frames.without_index(frame)
        known = frames.names_in(frame)
        found = _machines_of(frame) if machines is None else tuple(machines)
        names = ["submit_time", "start_time", *({"end_time"} & known)]
        clock = columns.moments({name: frames.column_of(frame, name) for name in names})
        submit = clock["submit_time"].astype(np.float64)
        number = np.arange(len(submit))
        if "job_id" in known:
            number = columns.numbers("job_id", frames.column_of(frame, "job_id"))
        for name, column in [*clock.items(), ("job_id", number)]:
            if len(column) != len(submit):
                raise ValueError(
                    f"column {name} has {len(column)} rows, submit_time has {len(submit)}"
                )
        order = np.lexsort((number, submit))
        jobs = OverrunTable.from_frame(frame)
        start = clock["start_time"].astype(np.float64)[order]
        end = (
            clock["end_time"].astype(np.float64)[order]
            if "end_time" in clock
            else start + jobs.run_time
        )

        def column_named(name: str) -> npt.NDArray[Any]:
            return np.asarray(frames.column_of(frame, name))[order]

        good = np.isfinite(start) & np.isfinite(end) & (end >= start)
        if not good.all():
            row = int(np.argmin(good))
            raise ValueError(
                f"job {jobs.job_id[row]} starts at {start[row]} and ends at {end[row]}; both must be "
                "finite and in this order"
            )
        ran = np.zeros(len(jobs), np.int16)
        if "executed_on" in known:
            ran = _indices(found, column_named("executed_on"))
        elif len(found) > 1:
            raise ValueError(f"the frame has no column 'executed_on', and {len(found)} machines")
        sent = _indices(found, column_named("submitted_to")) if "submitted_to" in known else ran
        of_log = (
            columns.numbers("log_job_id", column_named("log_job_id")).astype(np.int64)
            if "log_job_id" in known
            else jobs.job_id
        )
        return cls(jobs, start, end, found, sent, ran, of_log)

    def __len__(self) -> int:
        return len(self.jobs)

    def metadata(self) -> str:
        """Returns the machines and their sizes as JSON."""
        return json.dumps({"machines": [[m.name, m.processors] for m in self.machines]})

    def columns(self) -> dict[str, npt.NDArray[Any]]:
        """Returns the columns by name: those of the jobs, then its own; machines by theirs."""
        names = np.array([machine.name for machine in self.machines], dtype=object)
        columns = self.jobs.columns()
        for name in frames.SCHEDULE_COLUMNS[len(columns) :]:
            column = getattr(self, name)
            columns[name] = names[column] if name in {"submitted_to", "executed_on"} else column
        return columns

    def title(self) -> str:
        """Returns how many jobs these are, and on which machines."""
        machines = ", ".join(f"{m.name} ({m.processors:,})" for m in self.machines[:5])
        more = f" and {len(self.machines) - 5} more" if len(self.machines) > 5 else ""
        return f"Schedule of {len(self):,} jobs on {machines}{more}"

    def select(self, rows: npt.NDArray[np.int64]) -> "Schedule":
        """Returns the schedule of the jobs of some increasing rows, on the same machines."""
        return Schedule(
            jobs=self.jobs.select(rows),
            start_time=self.start_time[rows],
            end_time=self.end_time[rows],
            machines=self.machines,
            submitted_to=self.submitted_to[rows],
            executed_on=self.executed_on[rows],
            log_job_id=self.log_job_id[rows],
            notes=self.notes,
        )

    @property
    def wait_time(self) -> FloatArray:
        """Seconds between submission and start, shape (n,)."""
        return self.start_time - self.jobs.submit_time

    @property
    def response_time(self) -> FloatArray:
        """Seconds between submission and end, shape (n,)."""
        return self.end_time - self.jobs.submit_time


def _machines_of(frame: Any) -> tuple[MachineInfo, ...]:
    said = frames.metadata_of(frame)
    if not said:
        raise ValueError("the frame does not say the sizes of machines: give `machines`")
    try:
        return tuple(
            MachineInfo(str(name), int(size)) for name, size in json.loads(said)["machines"]
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f"the machines in the frame's metadata cannot be read: {said:.80}"
        ) from error


def _indices(machines: tuple[MachineInfo, ...], names: npt.NDArray[Any]) -> Int16Array:
    """Returns the index of each name; `ValueError` if a name is of no machine."""
    different, place = np.unique(names.astype(np.str_), return_inverse=True)
    index = {machine.name: number for number, machine in enumerate(machines)}
    unknown = [str(name) for name in different if str(name) not in index]
    if unknown:
        raise ValueError(f"there is no machine {unknown[0]!r}; there are: {', '.join(index)}")
    return np.array([index[str(name)] for name in different], np.int16)[place]
