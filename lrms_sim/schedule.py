"""The result of a replay: when and where every job ran."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from lrms_sim import frames
from lrms_sim.jobs import FloatArray, Int64Array, JobTable

Int16Array = npt.NDArray[np.int16]


@dataclass(frozen=True, slots=True)
class MachineInfo:
    """What a schedule says of a machine.

    Attributes:
        name: unique within the schedule.
        processors: its size.
    """

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
    """

    jobs: JobTable
    start_time: FloatArray
    end_time: FloatArray
    machines: tuple[MachineInfo, ...]
    submitted_to: Int16Array
    executed_on: Int16Array
    log_job_id: Int64Array

    def __post_init__(self) -> None:
        """Checks shapes.

        Raises:
            ValueError: a column has not one row for each job, or there is no machine.
        """
        if not self.machines:
            raise ValueError("a schedule needs at least one machine")
        for name in ("start_time", "end_time", "submitted_to", "executed_on", "log_job_id"):
            if getattr(self, name).shape != (len(self.jobs),):
                raise ValueError(
                    f"{name} has shape {getattr(self, name).shape} for {len(self.jobs)} jobs"
                )

    def __len__(self) -> int:
        return len(self.jobs)

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
        """Returns the schedule of some jobs alone, on the same machines.

        Args:
            rows: increasing row numbers.
        """
        return Schedule(
            jobs=self.jobs.select(rows),
            start_time=self.start_time[rows],
            end_time=self.end_time[rows],
            machines=self.machines,
            submitted_to=self.submitted_to[rows],
            executed_on=self.executed_on[rows],
            log_job_id=self.log_job_id[rows],
        )

    @property
    def wait_time(self) -> FloatArray:
        """Seconds between submission and start, shape (n,)."""
        return self.start_time - self.jobs.submit_time

    @property
    def response_time(self) -> FloatArray:
        """Seconds between submission and end, shape (n,)."""
        return self.end_time - self.jobs.submit_time
