"""One batch machine with its queue, as plainly as it can be written.

A second, independent reading of docs/disciplines.md: lists and loops, nothing kept that can be
counted again, no thought of speed. The compiled kernels must give the same start times to the
last bit. Disciplines are in `tests/oracles/disciplines.py`.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

from lrms_sim.jobs import JobTable


@dataclass(frozen=True, slots=True)
class PlainJob:
    """A job; `row` is its place in the order of arrival."""

    row: int
    submit_time: float
    processors: int
    requested_time: float
    run_time: float


@dataclass(frozen=True, slots=True)
class Running:
    """A job that holds its processors."""

    job: PlainJob
    start_time: float

    @property
    def end_time(self) -> float:
        """When it will really end, which no discipline may look at."""
        return self.start_time + self.job.run_time

    @property
    def estimated_end(self) -> float:
        """When it will end at the latest."""
        return self.start_time + self.job.requested_time


@dataclass(slots=True)
class PlainMachine:
    """A machine's state, and what became of every job it was given.

    Attributes:
        processors: its size.
        running: jobs that hold processors now.
        waiting: jobs in the queue, in order of arrival.
        reservation: of each waiting job its reserved start (conservative backfilling only).
        ended_early: whether a job has ended before its estimated end since the last pass.
        start_time: of each job that ever started, by row.
        end_time: of each job that ever ended, by row.
        first_reservation: of each job the start it was promised on arrival (conservative).
        first_shadow: of each job that was ever the blocked head the shadow time it had when it
            first was (EASY).
    """

    processors: int
    running: list[Running] = field(default_factory=list)
    waiting: list[PlainJob] = field(default_factory=list)
    reservation: dict[int, float] = field(default_factory=dict)
    ended_early: bool = False
    start_time: dict[int, float] = field(default_factory=dict)
    end_time: dict[int, float] = field(default_factory=dict)
    first_reservation: dict[int, float] = field(default_factory=dict)
    first_shadow: dict[int, float] = field(default_factory=dict)

    @property
    def processors_free(self) -> int:
        """Processors nobody holds now."""
        return self.processors - sum(running.job.processors for running in self.running)

    @property
    def processors_waiting(self) -> int:
        """Processors the waiting jobs ask for together."""
        return sum(job.processors for job in self.waiting)

    @property
    def next_event_time(self) -> float:
        """When the machine must be looked at again if nobody submits anything."""
        ends = [running.end_time for running in self.running]
        return min([*ends, *self.reservation.values()], default=math.inf)

    def fits_now(self, job: PlainJob) -> bool:
        """Returns whether the job could start now."""
        return job.processors <= self.processors_free

    def start(self, job: PlainJob, now: float) -> None:
        """Starts a waiting job."""
        assert self.fits_now(job)
        assert job.submit_time <= now
        assert job.row not in self.start_time
        self.waiting.remove(job)
        self.reservation.pop(job.row, None)
        self.running.append(Running(job, now))
        self.start_time[job.row] = now

    def due(self, now: float) -> list[Running]:
        """Returns the running jobs that end at `now`, in order of (end time, row)."""
        ending = [running for running in self.running if running.end_time <= now]
        return sorted(ending, key=lambda running: (running.end_time, running.job.row))

    def end(self, running: Running) -> None:
        """Frees the processors of a job whose end has come."""
        assert running.job.row not in self.end_time
        self.running.remove(running)
        self.end_time[running.job.row] = running.end_time
        if running.end_time < running.estimated_end:
            self.ended_early = True


def plain_jobs(jobs: JobTable) -> list[PlainJob]:
    """Returns the rows of a job table."""
    columns: Iterable[tuple[float, int, float, float]] = zip(
        jobs.submit_time.tolist(),
        jobs.processors.tolist(),
        jobs.requested_time.tolist(),
        jobs.run_time.tolist(),
        strict=True,
    )
    return [PlainJob(row, *values) for row, values in enumerate(columns)]
