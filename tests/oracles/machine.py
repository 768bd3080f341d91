"""One batch machine with its queue, as plainly as it can be written.

A second, independent reading of docs/disciplines.md: lists and loops, nothing kept that can be
counted again, no thought of speed. The compiled kernels must give the same start times to the
last bit. Disciplines are in `tests/oracles/disciplines.py`.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from lrms_sim.workload.jobs import JobTable
from tests.oracles.overruns import longer


@dataclass(frozen=True, slots=True)
class PlainJob:
    """A job; `row` is its place in the order of arrival, `group` that of its `user`, -1 for unknown."""

    row: int
    submit_time: float
    processors: int
    requested_time: float
    run_time: float
    group: int = 5
    user: int = -1


@dataclass(slots=True)
class Running:
    """A job that holds its processors; `estimate` is how long it runs, as far as is known."""

    job: PlainJob
    start_time: float
    estimate: float

    @property
    def end_time(self) -> float:
        """When it will really end, which no discipline may look at."""
        return self.start_time + self.job.run_time

    @property
    def estimated_end(self) -> float:
        """When it will end at the latest, as far as is known."""
        return self.start_time + self.estimate


@dataclass(slots=True)
class PlainMachine:
    """A machine's state, and what became of every job it was given.

    Attributes:
        processors: its size.
        per_event: whether a pass follows every single event.
        running: jobs that have started and whose end was not handled yet, in the order in which
            they were started.
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
    per_event: bool = False
    running: list[Running] = field(default_factory=list)
    waiting: list[PlainJob] = field(default_factory=list)
    reservation: dict[int, float] = field(default_factory=dict)
    ended_early: bool = False
    start_time: dict[int, float] = field(default_factory=dict)
    end_time: dict[int, float] = field(default_factory=dict)
    first_reservation: dict[int, float] = field(default_factory=dict)
    first_shadow: dict[int, float] = field(default_factory=dict)

    def processors_free(self, now: float) -> int:
        """Returns how many processors nobody holds now.

        On a machine with a pass for every event a job whose estimated end has come holds none,
        even if its end has not been handled yet.
        """
        holding = self.running
        if self.per_event:
            holding = [running for running in holding if running.estimated_end > now]
        return self.processors - sum([running.job.processors for running in holding])

    @property
    def processors_waiting(self) -> int:
        """Processors the waiting jobs ask for together."""
        return sum([job.processors for job in self.waiting])

    @property
    def next_event_time(self) -> float:
        """When the machine must be looked at again if nobody submits anything."""
        ends = [min(running.end_time, running.estimated_end) for running in self.running]
        return min([*ends, *self.reservation.values()], default=math.inf)

    def fits(self, job: PlainJob, now: float) -> bool:
        """Returns whether the job could start now."""
        return job.processors <= self.processors_free(now)

    def come_to(self, now: float) -> None:
        """Has those run for longer whose estimate is over and who have not ended; all promises are off then."""
        for running in self.running:
            if running.estimated_end <= now < running.end_time:
                request = running.job.requested_time
                running.estimate = longer(request, running.start_time, now)
                self.reservation.clear()

    def submit(self, job: PlainJob) -> None:
        """Puts a job into the queue."""
        self.waiting.append(job)

    def start(self, job: PlainJob, now: float) -> None:
        """Starts a waiting job."""
        assert self.fits(job, now)
        assert job.submit_time <= now
        assert job.row not in self.start_time
        self.waiting.remove(job)
        self.reservation.pop(job.row, None)
        self.running.append(Running(job, now, job.requested_time))
        self.start_time[job.row] = now

    def due(self, now: float) -> list[Running]:
        """Returns the running jobs that end by `now`, in the order in which that is handled.

        That is (end time, row); with a pass for every event it is (end time, order of starts).
        """
        ending = [running for running in self.running if running.end_time <= now]
        if self.per_event:
            return sorted(ending, key=lambda running: running.end_time)
        return sorted(ending, key=lambda running: (running.end_time, running.job.row))

    def end(self, running: Running) -> None:
        """Frees the processors of a job whose end has come."""
        assert running.job.row not in self.end_time
        self.running.remove(running)
        self.end_time[running.job.row] = running.end_time
        if running.end_time < running.estimated_end:
            self.ended_early = True


def plain_jobs(jobs: JobTable, groups: Sequence[int] | None = None) -> list[PlainJob]:
    """Returns the rows of a job table, of users of these groups."""
    columns: Iterable[tuple[float, int, float, float]] = zip(
        jobs.submit_time.tolist(),
        jobs.processors.tolist(),
        jobs.requested_time.tolist(),
        jobs.run_time.tolist(),
        strict=True,
    )
    groups = [5] * len(jobs) if groups is None else list(groups)
    return [
        PlainJob(row, *values, group, user)
        for row, (values, group, user) in enumerate(
            zip(columns, groups, jobs.user.tolist(), strict=True)
        )
    ]
