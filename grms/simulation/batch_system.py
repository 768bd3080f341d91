"""A fake batch system: first come, first served, and an eye on what runs twice."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from grms.simulation.clock import ManualClock
from grms.site.model.jobs import Load, Request
from grms.site.model.lifecycle import Outcome


@dataclass(slots=True)
class FakeLrmsJob:
    """A job in a fake batch system.

    Attributes:
        submit_time: seconds.
        start_time: `None` before the start.
        end_time: `None` before the end.
        outcome: `None` before the end.
        held: it does not start before it is released.
        lost: the batch system has forgotten it; it never ran.
        by_others: somebody else has cancelled it.
        preemptible: it may be ended for another job.
        done: how long it had run elsewhere when it wrote the state that it goes on from, seconds.
        written: how long it has run here when it last wrote its state, seconds; 0 if it has not.
        dropped: that state is not there any more.
        unwanted: a submission that came late: of a job that has ended and been forgotten, or that was refused or cancelled since; it is held.
        let_go: it was cancelled as it waited, by whoever wanted no more than that.
        told_to_leave: how often the batch system was to be told to let it go.
        unanswered: such an attempt had no answer in time.
        kept: it has answered that it does not: it refuses, or there was nothing to let go.
    """

    key: str
    request: Request
    payload: bytes
    submit_time: float = 0.0
    start_time: float | None = None
    end_time: float | None = None
    outcome: Outcome | None = None
    held: bool = False
    lost: bool = False
    by_others: bool = False
    preemptible: bool = False
    done: float = 0.0
    written: float = 0.0
    dropped: bool = False
    unwanted: bool = False
    let_go: bool = False
    runs: int = 0
    told_to_leave: int = 0
    unanswered: bool = False
    kept: bool = False


GOES_ON: Final = b"\0"
"""Between what a job runs and how long it had run before, where it goes on from its state."""

LEFT_LEAST_S: Final = 0.001
"""So long a job runs at least that goes on from its state, seconds."""


@dataclass(slots=True)
class FakeLrms:
    """A batch system that outlives the daemon above it, as real ones do.

    Attributes:
        run_time: gives the true run time of a payload, seconds.
        forget_after: so many seconds after the end of a job that somebody was told of it is
            forgotten; infinity for never.
        history: all that were ever submitted, in order.
        forgotten: keys of those that have ended and are forgotten.
        listener: told of each job that starts or ends; None while the daemon is down.
        free: processors no running job holds.
        stopped: nothing starts.
    """

    clock: ManualClock
    processors: int
    run_time: Callable[[bytes], float]
    jobs: dict[str, FakeLrmsJob] = field(default_factory=dict)
    listener: Callable[[FakeLrmsJob], None] | None = None
    forget_after: float = math.inf
    history: list[FakeLrmsJob] = field(default_factory=list)
    forgotten: set[str] = field(default_factory=set)
    heard_since: float = 0.0
    free: int = field(init=False)
    stopped: bool = False
    _waiting: list[FakeLrmsJob] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.free = self.processors

    def load(self) -> Load:
        """Returns size, free processors and waiting parallelism."""
        waiting = sum(job.request.processors for job in self._waiting if not job.held)
        return Load(self.processors, self.free, waiting)

    def find(self, key: str) -> FakeLrmsJob | None:
        """Returns a job by its key, an ended one as well; `None` if there is none."""
        return self.jobs.get(key)

    def submit(
        self,
        key: str,
        request: Request,
        payload: bytes,
        *,
        held: bool = False,
        preemptible: bool = False,
    ) -> None:
        """Puts a job into the queue.

        Raises:
            ValueError: there was a job of that key, or it can never fit.
        """
        if key in self.jobs:
            raise ValueError(f"{key} was submitted before")
        if request.processors > self.processors:
            raise ValueError(f"{key} needs {request.processors} of {self.processors} processors")
        payload, _, done = payload.partition(GOES_ON)
        job = self.jobs[key] = FakeLrmsJob(
            key,
            request,
            payload,
            self.clock.now,
            held=held,
            preemptible=preemptible,
            done=float(done or 0.0),
        )
        self.history.append(job)
        self._waiting.append(job)
        self.clock.after(0.0, self._start)

    def cancel(self, key: str, *, only_waiting: bool = False) -> bool:
        """Ends a job where it stands and returns whether it did; ended or unknown jobs are left alone.

        With `only_waiting` a job that has started is left alone, too, also if it waits again since.
        """
        job = self.jobs.get(key)
        if job is None or job.outcome is not None:
            return False
        if only_waiting and job.runs:
            return False
        if job.start_time is None:
            self._waiting.remove(job)
            job.let_go = only_waiting
        else:
            self.free += job.request.processors
        self._end(job, Outcome.CANCELLED)
        return True

    def preempt(self, key: str, kept: float = 0.0) -> None:
        """Ends a job that runs and that may be ended for another one; it has written that share of its state."""
        job = self.jobs[key]
        assert job.preemptible
        assert job.start_time is not None
        job.written = kept * (self.clock.now - job.start_time)
        self.free += job.request.processors
        self._end(job, Outcome.PREEMPTED)

    def lose(self, key: str) -> None:
        """Forgets a job that waits, as if it had never been submitted."""
        job = self.jobs.pop(key)
        assert job.start_time is None
        job.lost = True
        self._waiting.remove(job)
        self.clock.after(0.0, self._start)

    def requeue(self, key: str) -> None:
        """Puts a job that runs back to the end of the queue; what it has done is lost."""
        job = self.jobs[key]
        assert job.start_time is not None
        self.free += job.request.processors
        job.start_time = None
        self._waiting.append(job)
        self.clock.after(0.0, self._start)

    def hold(self, key: str) -> None:
        """Keeps a job that waits from starting."""
        self.jobs[key].held = True
        self.clock.after(0.0, self._start)

    def release(self, key: str) -> None:
        """Lets a job start that is held; of any other, or of none, it changes nothing."""
        job = self.jobs.get(key)
        if job is not None:
            job.held = False
            self.clock.after(0.0, self._start)

    def go_on(self) -> None:
        """Lets jobs start again."""
        self.stopped = False
        self.clock.after(0.0, self._start)

    def _start(self) -> None:
        # Held ones do not stand in the way.
        while ready := [job for job in self._waiting if not (job.held or self.stopped)]:
            job = ready[0]
            if job.request.processors > self.free:
                return
            self._waiting.remove(job)
            self.free -= job.request.processors
            job.start_time = self.clock.now
            job.runs += 1
            left = max(LEFT_LEAST_S, self.run_time(job.payload) - job.done)
            self.clock.after(left, self._complete, job, job.runs)
            if self.listener is not None:
                self.listener(job)

    def _complete(self, job: FakeLrmsJob, run: int) -> None:
        if job.outcome is None and job.start_time is not None and job.runs == run:
            self.free += job.request.processors
            self._end(job, Outcome.COMPLETED)

    def _end(self, job: FakeLrmsJob, outcome: Outcome) -> None:
        job.end_time = self.clock.now
        job.outcome = outcome
        if self.listener is not None:
            self.listener(job)
        if self.forget_after < math.inf:
            self.clock.after(self.forget_after, self._forget, job)
        self._start()

    def _forget(self, job: FakeLrmsJob) -> None:
        # Only what whoever is above has had the time to note.
        if self.listener is None or self.clock.now - self.heard_since < self.forget_after:
            self.clock.after(self.forget_after, self._forget, job)
        else:
            del self.jobs[job.key]
            self.forgotten.add(job.key)
