"""The simulated LRMS: a machine of `lrms_sim` behind the port.

The machine lives in the daemon's memory and dies with it. What makes it again is the list of
operations on it, submissions and cancels in order, which the daemon has in its journal: a machine
to which the same operations are done at the same moments makes the same schedule.

The simulation kernel cannot take a job back. On a cancel the machine is therefore built anew from
what it is at that moment: running jobs with their original starts, then the waiting ones in queue
order. Promises of a conservative queue are made afresh on that occasion, which is what its
compression would do.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from grms.lrms.port import (
    LrmsEnded,
    LrmsError,
    LrmsEvent,
    LrmsJob,
    LrmsPhase,
    LrmsRecord,
    LrmsStarted,
    LrmsState,
)
from lrms_sim.disciplines import Discipline
from lrms_sim.machine import Machine


@dataclass(frozen=True, slots=True)
class Submission:
    """An operation on the machine: a job was put into the queue.

    Attributes:
        job: what was submitted.
        time: when, seconds.
    """

    job: LrmsJob
    time: float


@dataclass(frozen=True, slots=True)
class Cancellation:
    """An operation on the machine: a job was taken out of the queue, or killed.

    Attributes:
        job_id: which.
        time: when, seconds.
    """

    job_id: str
    time: float


Operation = Submission | Cancellation

_END, _START, _END_AT_ONCE = range(3)
"""What happens first at one moment."""


@dataclass(slots=True)
class _Known:
    # A job the machine has had; `number` is its number in the present machine.
    job: LrmsJob
    run_time: float
    number: int
    phase: LrmsPhase = LrmsPhase.WAITING
    start_time: float | None = None
    end_time: float | None = None


class SimulatedLrms:
    """A batch machine in memory.

    Args:
        processors: size of the machine.
        discipline: of its queue.
    """

    def __init__(self, processors: int, discipline: Discipline) -> None:
        self._processors = processors
        self._discipline = discipline
        # A machine that makes a pass per event takes an instant's submissions before its ends.
        self._inclusive = not getattr(discipline, "per_event", False)
        self._machine = Machine(processors, discipline)
        self._jobs: dict[str, _Known] = {}
        self._by_number: list[str] = []
        self._waiting: dict[str, None] = {}
        self._running: dict[str, None] = {}
        self._events: list[LrmsEvent] = []

    @classmethod
    def rebuilt(
        cls, processors: int, discipline: Discipline, operations: Iterable[Operation]
    ) -> "SimulatedLrms":
        """Returns the machine to which all this was done.

        Starts and ends that the operations imply are returned by the first `poll` again: whoever
        rebuilds knows which of them it has seen.

        Args:
            processors: size of the machine.
            discipline: of its queue.
            operations: in the order in which they were made.

        Raises:
            LrmsError: an operation is impossible.
        """
        lrms = cls(processors, discipline)
        for operation in operations:
            if isinstance(operation, Submission):
                lrms.submit_now(operation.job, operation.time)
            else:
                lrms.cancel_now(operation.job_id, operation.time)
        return lrms

    def submit_now(self, job: LrmsJob, now: float) -> None:
        """Puts a job into the queue; a job id that is already known changes nothing.

        Args:
            job: what to run.
            now: seconds.

        Raises:
            LrmsError: the job cannot run on this machine, or the moment is past.
        """
        if job.job_id in self._jobs:
            return
        run_time = job.requested_time if job.run_time is None else job.run_time
        run_time = min(run_time, job.requested_time)
        try:
            number = self._machine.submit(
                submit_time=now,
                processors=job.processors,
                requested_time=job.requested_time,
                run_time=run_time,
            )
        except ValueError as error:
            raise LrmsError(f"job {job.job_id}: {error}") from error
        assert number == len(self._by_number)
        self._jobs[job.job_id] = _Known(job, run_time, number)
        self._by_number.append(job.job_id)
        self._waiting[job.job_id] = None
        self.advance(now)

    def cancel_now(self, job_id: str, now: float) -> bool:
        """Removes a waiting job or kills a running one.

        Args:
            job_id: which.
            now: seconds.

        Returns:
            Whether it was there to be cancelled.
        """
        self.advance(now)
        known = self._jobs.get(job_id)
        if known is None or known.phase not in {LrmsPhase.WAITING, LrmsPhase.RUNNING}:
            return False
        if known.phase is LrmsPhase.RUNNING:
            known.end_time = now
            del self._running[job_id]
        else:
            del self._waiting[job_id]
        known.phase = LrmsPhase.CANCELLED
        self._build_anew(now)
        return True

    def state_now(self, now: float) -> LrmsState:
        """Returns the three numbers as they are now.

        Args:
            now: seconds.
        """
        self.advance(now)
        state = self._machine.state
        return LrmsState(state.processors, state.processors_free, state.processors_waiting)

    def poll_now(self, now: float) -> Sequence[LrmsEvent]:
        """Returns what has happened since the last call, ends of a moment before its starts.

        Args:
            now: seconds; events up to and including this moment are due.
        """
        self.advance(now)
        events, self._events = self._events, []
        return events

    def advance(self, now: float) -> None:
        """Brings the machine's clock to a moment; one that is past changes nothing.

        Args:
            now: seconds.
        """
        if now < self._machine.state.now:
            return
        self._machine.advance(now, inclusive=self._inclusive or now == math.inf)
        self._collect()

    async def submit(self, job: LrmsJob, now: float) -> None:
        """See `Lrms.submit` and `submit_now`."""
        self.submit_now(job, now)

    async def cancel(self, job_id: str, now: float) -> bool:
        """See `Lrms.cancel` and `cancel_now`."""
        return self.cancel_now(job_id, now)

    async def lookup(self, job_id: str) -> LrmsRecord | None:
        """See `Lrms.lookup`."""
        known = self._jobs.get(job_id)
        if known is None:
            return None
        return LrmsRecord(known.phase, known.start_time, known.end_time)

    async def state(self, now: float) -> LrmsState:
        """See `Lrms.state` and `state_now`."""
        return self.state_now(now)

    async def poll(self, now: float) -> Sequence[LrmsEvent]:
        """See `Lrms.poll` and `poll_now`."""
        return self.poll_now(now)

    @property
    def next_event_time(self) -> float:
        """When the machine next does something by itself, seconds; infinity for never."""
        return -math.inf if self._events else self._machine.next_event_time

    def _collect(self) -> None:
        started, ended = self._machine.collect()
        if not started and not ended:
            return
        # Both are in order of time; merged, ends of a moment come before its starts.
        moments: list[tuple[float, int, int, str]] = []
        for order, number in enumerate(ended):
            start, end = self._machine.times_of(number)
            # A job too short for the clock's resolution still starts before it ends.
            kind = _END if end > start else _END_AT_ONCE
            moments.append((end, kind, order, self._by_number[number]))
        for order, number in enumerate(started):
            start, _ = self._machine.times_of(number)
            moments.append((start, _START, order, self._by_number[number]))
        moments.sort()
        for time, kind, _, job_id in moments:
            known = self._jobs[job_id]
            if kind != _START:
                known.phase, known.end_time = LrmsPhase.ENDED, time
                self._running.pop(job_id, None)
                self._events.append(LrmsEnded(job_id, time))
            else:
                known.phase, known.start_time = LrmsPhase.RUNNING, time
                self._waiting.pop(job_id, None)
                self._running[job_id] = None
                self._events.append(LrmsStarted(job_id, time))

    def _build_anew(self, now: float) -> None:
        self._machine = Machine(self._processors, self._discipline)
        self._by_number = []
        running = sorted(self._running, key=self._start_key)
        for job_id in running:
            known = self._jobs[job_id]
            assert known.start_time is not None
            self._resubmit(known, known.start_time)
        self._machine.advance(now, inclusive=self._inclusive)
        started, ended = self._machine.collect()
        assert len(started) == len(running)
        assert not ended
        for job_id in self._waiting:
            self._resubmit(self._jobs[job_id], now)
        self.advance(now)

    def _start_key(self, job_id: str) -> tuple[float, int]:
        known = self._jobs[job_id]
        assert known.start_time is not None
        return known.start_time, known.number

    def _resubmit(self, known: _Known, time: float) -> None:
        known.number = self._machine.submit(
            submit_time=time,
            processors=known.job.processors,
            requested_time=known.job.requested_time,
            run_time=known.run_time,
        )
        self._by_number.append(known.job.job_id)
