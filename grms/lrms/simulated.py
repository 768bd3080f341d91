"""The simulated LRMS: a machine of `lrms_sim` that is moved step by step.

The machine lives in the daemon's memory and dies with it. What it holds is in the daemon's journal:
the jobs that run, each with its start, and those that wait, in order. Of these a machine is built
that goes on as the old one would have. The same is done on a cancel, as the simulation kernel
cannot take a job back. Promises of a conservative queue are made afresh on that occasion; the
other disciplines hold none between two passes.
"""

import heapq
import math
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from grms.lrms.port import LrmsError
from grms.lrms.stepped import (
    LrmsEnded,
    LrmsStarted,
    SteppedEvent,
    SteppedJob,
    SteppedLoad,
    SteppedPhase,
    SteppedRecord,
)
from lrms_sim.disciplines import Discipline
from lrms_sim.groups import GROUPS
from lrms_sim.machine import Machine

_END, _START, _END_AT_ONCE = range(3)
"""What happens first at one moment."""


FORGOTTEN_AFTER = 4096
"""Jobs that have ended are looked up no more when so many further ones have ended."""

REBUILT_AFTER = 1_000_000
"""A machine that has had so many jobs is built anew, without those that have ended."""


@dataclass(slots=True)
class _Known:
    # A job the machine has had; `number` is its number in the present machine.
    job: SteppedJob
    run_time: float
    number: int
    submit_time: float | None = None  # None for a job of a machine that is gone
    phase: SteppedPhase = SteppedPhase.WAITING
    start_time: float | None = None
    end_time: float | None = None
    followed: bool = False


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
        self._inclusive = not discipline.per_event
        self._machine = Machine(processors, discipline)
        self._jobs: dict[str, _Known] = {}
        self._by_number: list[str] = []
        self._waiting: dict[str, None] = {}
        self._running: dict[str, None] = {}
        self._ended: deque[str] = deque()
        self._followed_waiting: list[tuple[float, str]] = []
        self._followed_running: list[tuple[float, str]] = []
        self._events: list[SteppedEvent] = []

    @classmethod
    def restored(
        cls,
        processors: int,
        discipline: Discipline,
        *,
        running: Iterable[tuple[SteppedJob, float]],
        waiting: Sequence[SteppedJob],
        moment: float,
    ) -> "SimulatedLrms":
        """Returns a machine that holds these jobs and goes on from there.

        The first `poll` says again that the running ones have started.

        Args:
            processors: size of the machine.
            discipline: of its queue.
            running: jobs that have started and not ended, with their starts, seconds.
            waiting: jobs that have not started, in the order in which they were submitted.
            moment: the last moment at which anything is known to have happened, seconds; minus
                infinity where nothing has.

        Raises:
            LrmsError: a job does not fit into the machine.
        """
        lrms = cls(processors, discipline)
        for job, start_time in running:
            lrms._running[job.job_id] = None
            known = _Known(job, _run_time(job), -1, None, SteppedPhase.RUNNING, start_time)
            lrms._jobs[job.job_id] = known
        for job in waiting:
            lrms._waiting[job.job_id] = None
            lrms._jobs[job.job_id] = _Known(job, _run_time(job), -1)
        lrms._events.extend(
            LrmsStarted(job_id, start)
            for start, job_id in sorted((start, job.job_id) for job, start in running)
        )
        lrms._build_anew(moment)
        return lrms

    def submit_now(self, job: SteppedJob, now: float) -> None:
        """Puts a job into the queue; a job id that is already known changes nothing.

        Args:
            job: what to run.
            now: seconds.

        Raises:
            LrmsError: the job cannot run on this machine, or the moment is past.
        """
        if job.job_id in self._jobs:
            return
        if len(self._by_number) >= REBUILT_AFTER:
            self._build_anew(max(now, self._machine.now))
        run_time = _run_time(job)
        try:
            number = self._machine.submit(
                submit_time=now,
                processors=job.processors,
                requested_time=job.requested_time,
                run_time=run_time,
                group=job.group or GROUPS[-1],
            )
        except ValueError as error:
            raise LrmsError(f"job {job.job_id}: {error}") from error
        assert number == len(self._by_number)
        self._jobs[job.job_id] = _Known(job, run_time, number, now)
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
        if known is None or known.phase not in {SteppedPhase.WAITING, SteppedPhase.RUNNING}:
            return False
        known.end_time = now
        if known.phase is SteppedPhase.RUNNING:
            del self._running[job_id]
        else:
            del self._waiting[job_id]
        known.phase = SteppedPhase.CANCELLED
        self._over(job_id)
        self._build_anew(now)
        return True

    def state_now(self, now: float) -> SteppedLoad:
        """Returns the three numbers as they are now.

        Args:
            now: seconds.
        """
        self.advance(now)
        state = self._machine.state
        return SteppedLoad(state.processors, state.processors_free, state.processors_waiting)

    def poll_now(self, now: float) -> Sequence[SteppedEvent]:
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
        if now < self._machine.now:
            return
        self._machine.advance(now, inclusive=self._inclusive or now == math.inf)
        self._collect()

    def finish(self, moment: float) -> None:
        """Does everything due up to and including a moment after which no submission of it comes.

        Args:
            moment: seconds.
        """
        if moment >= self._machine.now:
            self._machine.advance(moment)
            self._collect()

    def lookup_now(self, job_id: str) -> SteppedRecord | None:
        """Returns what is known of a job; None for an id that was never submitted."""
        known = self._jobs.get(job_id)
        return None if known is None else _record(known)

    def phase_now(self, job_id: str) -> SteppedPhase | None:
        """Returns where a job stands, None for an id that was never submitted."""
        known = self._jobs.get(job_id)
        return None if known is None else known.phase

    def follow(self, job_id: str) -> None:
        """Counts a job in `first_end`, until it has ended; one that is not known changes nothing.

        Args:
            job_id: which.
        """
        known = self._jobs.get(job_id)
        if known is None or known.followed:
            return
        known.followed = True
        if known.phase is SteppedPhase.WAITING:
            heapq.heappush(self._followed_waiting, (known.run_time, job_id))
        elif known.phase is SteppedPhase.RUNNING:
            self._follow_to_end(known)

    def _follow_to_end(self, known: _Known) -> None:
        end_time = self._machine.times_of(known.number)[1]
        heapq.heappush(self._followed_running, (end_time, known.job.job_id))

    def first_end(self) -> float:
        """Returns a moment before which no job that is followed ends, as only a simulation can.

        Returns:
            The earliest end of those that run; one that waits starts no sooner than anything
            else happens. Infinity for no job.
        """
        # What has left a heap's phase is still in it until it comes to the top.
        waiting, running = self._followed_waiting, self._followed_running
        while waiting and not self._is(waiting[0][1], SteppedPhase.WAITING):
            heapq.heappop(waiting)
        while running and not self._is(running[0][1], SteppedPhase.RUNNING):
            heapq.heappop(running)
        first = running[0][0] if running else math.inf
        if waiting:
            first = min(first, self._machine.next_event_time + waiting[0][0])
        return first

    def _is(self, job_id: str, phase: SteppedPhase) -> bool:
        known = self._jobs.get(job_id)
        return known is not None and known.phase is phase

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
            if kind == _START and known.phase is SteppedPhase.RUNNING:
                continue  # it did so on the machine before this one
            if kind != _START:
                known.phase, known.end_time = SteppedPhase.ENDED, time
                self._running.pop(job_id, None)
                self._over(job_id)
                self._events.append(LrmsEnded(job_id, time, known.run_time, _cut(known.job)))
            else:
                known.phase, known.start_time = SteppedPhase.RUNNING, time
                self._waiting.pop(job_id, None)
                self._running[job_id] = None
                if known.followed:
                    self._follow_to_end(known)
                self._events.append(LrmsStarted(job_id, time))

    def _build_anew(self, now: float) -> None:
        history = self._machine.history
        self._machine = Machine(self._processors, self._discipline)
        self._machine.remember(history)
        self._by_number = []
        running = sorted(self._running, key=self._start_of)
        for job_id in running:
            known = self._jobs[job_id]
            assert known.start_time is not None
            self._resubmit(known, known.start_time)
        if running:
            # Each starts when it did: there is room, as the others of then are gone.
            now = max(now, self._start_of(running[-1]))
        if now > -math.inf:
            self._machine.advance(now, inclusive=self._inclusive)
        for number, job_id in enumerate(running):
            if self._machine.times_of(number)[0] != self._jobs[job_id].start_time:
                raise LrmsError(
                    f"job {job_id} runs, but there is no room for it on {self._processors} "
                    "processors; was the machine larger before?"
                )
        self._collect()
        for job_id in self._waiting:
            self._resubmit(self._jobs[job_id], now)
        self.advance(now)

    def _start_of(self, job_id: str) -> float:
        start_time = self._jobs[job_id].start_time
        assert start_time is not None
        return start_time

    def _over(self, job_id: str) -> None:
        self._ended.append(job_id)
        if len(self._ended) > FORGOTTEN_AFTER:
            del self._jobs[self._ended.popleft()]

    def _resubmit(self, known: _Known, time: float) -> None:
        try:
            known.number = self._machine.submit(
                submit_time=time,
                processors=known.job.processors,
                requested_time=known.job.requested_time,
                run_time=known.run_time,
                group=known.job.group or GROUPS[-1],
                waiting_since=known.submit_time,
            )
        except ValueError as error:
            raise LrmsError(
                f"job {known.job.job_id} is open and does not fit: {error}; let the machine be "
                "as large as before until the job has ended"
            ) from error
        self._by_number.append(known.job.job_id)


def _run_time(job: SteppedJob) -> float:
    # A batch system kills what exceeds its request.
    return job.requested_time if job.run_time is None else min(job.run_time, job.requested_time)


def _cut(job: SteppedJob) -> bool:
    return job.run_time is not None and job.run_time > job.requested_time


def _record(known: _Known) -> SteppedRecord:
    start, end = known.start_time, known.end_time
    run_time = None
    if known.phase is SteppedPhase.ENDED:
        run_time = known.run_time
    elif known.phase is SteppedPhase.CANCELLED:
        run_time = 0.0 if start is None or end is None else end - start
    return SteppedRecord(known.phase, start, end, run_time)
