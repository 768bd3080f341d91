"""A batch machine of `lrms_sim`, stepped, in the terms of the port.

The machine lives in the daemon's memory and dies with it. The daemon's journal has its content: the running jobs
with their starts, and the waiting ones in order. From these an equivalent machine is rebuilt. The same happens on a
cancel, as the simulation kernel cannot remove a job; jobs that are cancelled in a row are removed together. A
conservative queue then makes its promises afresh; the other disciplines have none between two passes.
"""

import math
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

import numpy as np
import numpy.typing as npt

from grms.lrms.base import (
    Ended,
    LrmsEnd,
    LrmsJob,
    LrmsLoad,
    LrmsPhase,
    LrmsRecord,
    LrmsRefusedError,
    Started,
)
from grms.lrms.simulated.followed import FollowedJobs
from grms.util.outcomes import Outcome
from lrms_sim.machine.stepped import SUBMITTED, Machine
from lrms_sim.scheduling.disciplines import Discipline
from lrms_sim.workload.groups import GROUPS
from lrms_sim.workload.requests import Request

FORGOTTEN_AFTER = 4096
"""An ended job is forgotten after this many further ones have ended."""

REBUILT_AFTER = 1_000_000
"""A machine with this many jobs is rebuilt without the ended ones."""


NOT_RUN: Final = "simulated: its script was not run"
"""The end reason of a job with a script."""

CUT_OFF: Final = "ended at the limit of its requested time"
"""The end reason of a job that would have run longer."""

EVICTED: Final = "this site has ended it for another job"
"""The end reason of a guest that has lost its processors."""

MachineEvent = Started | Ended
"""Events of the machine itself, and of `cancel`."""


@dataclass(slots=True)
class LocalJob:
    """A job the machine has had; `number` is its number in the present machine."""

    job: LrmsJob
    run_time: float
    number: int
    submit_time: float | None = None  # None for a job of a machine that is gone
    phase: LrmsPhase = LrmsPhase.WAITING
    start_time: float | None = None
    end: LrmsEnd | None = None
    followed: bool = False

    @property
    def order(self) -> float:
        """Since when it waits, as the queue counts it, seconds."""
        if self.job.place is not None:
            return self.job.place
        return -math.inf if self.submit_time is None else self.submit_time


def run_time_of(job: LrmsJob) -> float:
    """Returns how long a job runs, seconds; a batch system kills what exceeds its request."""
    run = job.simulated
    return job.requested_time if run is None else min(run.run_time, job.requested_time)


def group_of(job: LrmsJob) -> int:
    """Returns the user group of a job, 1 to 5."""
    return (job.simulated.group if job.simulated is not None else None) or GROUPS[-1]


def submitted(jobs: Sequence[LocalJob], time: float) -> npt.NDArray[np.void]:
    """Returns a machine's input for jobs submitted together, one row each.

    Jobs whose machine is gone wait since `time`, seconds.
    """
    rows = (
        (
            known.job.processors,
            known.job.requested_time,
            known.run_time,
            group_of(known.job),
            time if known.submit_time is None else known.submit_time,
        )
        for known in jobs
    )
    return np.fromiter(rows, SUBMITTED, len(jobs))


def end_of(known: LocalJob, time: float) -> LrmsEnd:
    """Returns how a job ends that runs until a moment."""
    job = known.job
    if job.program is not None:
        return LrmsEnd(Outcome.NOT_RUN, time, known.run_time, reason=NOT_RUN)
    if job.simulated is not None and job.simulated.run_time > job.requested_time:
        return LrmsEnd(Outcome.TIMEOUT, time, known.run_time, reason=CUT_OFF)
    return LrmsEnd(Outcome.COMPLETED, time, known.run_time)


def evicted(known: LocalJob, time: float) -> LrmsEnd:
    """Returns how a guest ends that loses its processors to another job at a moment."""
    assert known.start_time is not None
    ran = time - known.start_time
    return LrmsEnd(Outcome.PREEMPTED, time, ran, reason=EVICTED)


def _rank(job: LrmsJob) -> int:
    # The order of local users' jobs that came at one moment, and of guests that started at one.
    if job.simulated is not None and job.simulated.row is not None:
        return job.simulated.row
    return int(job.key.split("/")[2]) if job.key.count("/") >= 2 else 0


class Kind(IntEnum):
    """What it was; of one moment the least comes first."""

    END = 0
    EVICTION = 1
    START = 2
    END_AT_ONCE = 3


def moments(machine: Machine) -> list[tuple[float, Kind, int]]:
    """Returns events since the last call: moment in seconds, kind, and the job's number."""
    started, ended = machine.collect()
    evicted = machine.preempted()
    if not started and not ended:
        return []  # who was evicted has made room for one that started
    # Both are in order of time; merged, ends of a moment come before its starts.
    found: list[tuple[float, Kind, int, int]] = []
    for order, number in enumerate(ended):
        start, end = machine.times_of(number)
        # A job too short for the clock's resolution still starts before it ends.
        found.append((end, Kind.END if end > start else Kind.END_AT_ONCE, order, number))
    for order, number in enumerate(evicted):
        found.append((machine.times_of(number)[1], Kind.EVICTION, order, number))
    for order, number in enumerate(started):
        found.append((machine.times_of(number)[0], Kind.START, order, number))
    found.sort()
    return [(time, kind, number) for time, kind, _, number in found]


class ProcessorsAlone:
    """The nodes of a machine that has none: jobs that ask for more than processors are not run as if they had not.

    See `NodeView`. Names of accounts mean nothing here, and every one is good.
    """

    guarded_features: frozenset[str] = frozenset()

    def __init__(self, machine: "SteppedMachine") -> None:
        self._machine = machine

    def named(self, request: Request, *, guest: bool) -> Request:  # noqa: ARG002  # has no accounts
        """Returns a job as it is."""
        return request

    def lacks(self, request: Request) -> str:
        """Returns what it asks for, if that is more than processors, or an image; whatever else it names is of no account."""
        if request.image:
            return f"a simulated machine runs no container images; it asks for {request.image}"
        alone = request.processors_alone
        return "" if alone else f"a simulated machine has processors alone; it asks for {request}"

    def why_not(self, request: Request) -> str:
        """Returns what it asks for, if that is more than processors, or names what is not here."""
        names = request.partition or request.qos or request.signal
        said = f"a simulated machine has no partitions, QOS or signals; it asks for {request}"
        return self.lacks(request) or (said if names else "")

    def starts_now(self, request: Request, now: float, before: Sequence[Request] = ()) -> bool:  # noqa: ARG002  # all are in its queue
        """Returns whether a job would start at once."""
        if self.why_not(request):
            return False
        return self._machine.starts_now_at(now, request.processors, request.wall_time or 0.0)


class SteppedMachine:
    """A batch machine in memory."""

    def __init__(self, processors: int, discipline: Discipline) -> None:
        self._processors = processors
        self._discipline = discipline
        # A machine that makes a pass per event takes an instant's submissions before its ends.
        self._inclusive = not discipline.per_event
        self._present = Machine(processors, discipline)
        self._stale_since: float | None = None
        self._jobs: dict[str, LocalJob] = {}
        self._by_number: list[str] = []
        self._waiting: dict[str, None] = {}
        self._running: dict[str, None] = {}
        self._ended: deque[str] = deque()
        self._followed = FollowedJobs(self._phase_of)
        self._events: list[MachineEvent] = []
        self._passes_held = self._steps = False
        self._protects = False
        self._nodes = ProcessorsAlone(self)

    @classmethod
    def restored(
        cls,
        processors: int,
        discipline: Discipline,
        *,
        running: Iterable[tuple[LrmsJob, float]],
        waiting: Sequence[LrmsJob],
        moment: float,
        passes_held: bool = False,
        protects: bool = False,
    ) -> "SteppedMachine":
        """Returns a machine that continues with these jobs.

        The first `poll` repeats that the running ones have started.

        Args:
            processors: size of the machine.
            discipline: of its queue.
            running: jobs started and not ended, with their starts, seconds.
            waiting: jobs not started, in order of submission.
            moment: the latest moment of any known event, seconds; -inf for none.
            passes_held: jobs were being taken out of the queue, and `make_pass` is still to come.
            protects: protected guests keep their processors.

        Raises:
            LrmsRefusedError: a job does not fit into the machine.
        """
        lrms = cls(processors, discipline)
        for job, start_time in running:
            lrms._running[job.key] = None
            known = LocalJob(job, run_time_of(job), -1, None, LrmsPhase.RUNNING, start_time)
            lrms._jobs[job.key] = known
        for job in waiting:
            lrms._waiting[job.key] = None
            lrms._jobs[job.key] = LocalJob(job, run_time_of(job), -1)
        lrms._events.extend(
            Started(key, start) for start, key in sorted((start, job.key) for job, start in running)
        )
        lrms._passes_held = passes_held
        lrms._protects = protects
        lrms._build_anew(moment)
        return lrms

    def submit(self, job: LrmsJob, now: float) -> None:
        """Submits a job at `now`, seconds; a known key changes nothing.

        Raises:
            LrmsRefusedError: the job cannot run on this machine, or the moment is past.
        """
        if job.key in self._jobs:
            return
        if len(self._by_number) >= REBUILT_AFTER:
            self._build_anew(max(now, self._machine.now))
        run_time = run_time_of(job)
        if job.at_once and self.preempts:
            self._start_guest(job, run_time, now)
            return
        if job.place is not None:
            self._take_back(job, run_time, now)
            return
        try:
            number = self._machine.submit(
                submit_time=now,
                processors=job.processors,
                requested_time=job.requested_time,
                run_time=run_time,
                group=group_of(job),
            )
        except ValueError as error:
            raise LrmsRefusedError(f"job {job.key}: {error}") from error
        assert number == len(self._by_number)
        self._jobs[job.key] = LocalJob(job, run_time, number, now)
        self._by_number.append(job.key)
        self._waiting[job.key] = None
        if self._steps:
            self.step(now)
        else:
            self.advance(now)

    def _start_guest(self, job: LrmsJob, run_time: float, now: float) -> None:
        # It is seen by the queue as long as it is protected. What is due at this moment comes first.
        self.advance(now)
        try:
            number = self._machine.start_guest(
                now=max(now, self._machine.now),
                processors=job.processors,
                requested_time=job.requested_time,
                run_time=run_time,
                seen=job.protected and self._protects,
                rank=_rank(job),
            )
        except ValueError as error:
            raise LrmsRefusedError(f"job {job.key}: {error}") from error
        assert number == len(self._by_number)
        known = LocalJob(job, run_time, number, now, LrmsPhase.RUNNING, now)
        self._jobs[job.key] = known
        self._by_number.append(job.key)
        self._running[job.key] = None
        self._events.append(Started(job.key, now))

    def _take_back(self, job: LrmsJob, run_time: float, now: float) -> None:
        # Before those who wait, and came after it.
        assert job.place is not None
        mine = job.place, _rank(job)
        behind = [
            key
            for key in self._waiting
            if (self._jobs[key].order, _rank(self._jobs[key].job)) > mine
        ]
        self.advance(now)
        behind = [key for key in behind if key in self._waiting]
        like = {
            "processors": job.processors,
            "requested_time": job.requested_time,
            "run_time": run_time,
            "group": group_of(job),
            "waiting_since": job.place,
        }
        try:
            number, others = self._machine.take_back(
                like, [self._jobs[key].number for key in behind], submit_time=now
            )
        except ValueError as error:
            raise LrmsRefusedError(f"job {job.key}: {error}") from error
        self._jobs[job.key] = LocalJob(job, run_time, number, job.place)
        self._by_number += [job.key, *behind]
        self._waiting[job.key] = None
        for key, other in zip(behind, others, strict=True):
            self._jobs[key].number = other
            del self._waiting[key]
            self._waiting[key] = None
        self.advance(now)

    def protect(self, now: float, *, on: bool) -> None:
        """Has protected guests keep their processors, or lose them to jobs of the queue, whose pass then follows."""
        if on is self._protects:
            return
        self.step(now)
        self._protects = on
        for key in self._running:
            known = self._jobs[key]
            if known.job.at_once and known.job.protected:
                (self._machine.show if on else self._machine.hide)(known.number)
        self.advance(now)

    @property
    def preempts(self) -> bool:
        """Whether its discipline can have guests lose their processors."""
        return self._machine.preempts

    def cancel(self, key: str, now: float) -> bool:
        """Removes a waiting job or kills a running one; returns whether it was there."""
        self._advance_if_due(now)
        known = self._jobs.get(key)
        if known is None or known.phase not in {LrmsPhase.WAITING, LrmsPhase.RUNNING}:
            return False
        if known.phase is LrmsPhase.RUNNING:
            del self._running[key]
        else:
            del self._waiting[key]
        start = now if known.start_time is None else known.start_time
        known.phase = LrmsPhase.ENDED
        known.end = LrmsEnd(Outcome.CANCELLED, now, now - start)
        self._events.append(Ended(key, known.end))
        self._over(key)
        # If nobody waits for its processors, all jobs that are cancelled in a row are removed at once.
        self._stale_since = now
        if self._waiting:
            self._settle()
        return True

    def withdraw(self, key: str, now: float) -> bool:
        """Removes a job from the queue if it waits, and returns whether it did; a started one stays."""
        self.advance(now)
        known = self._jobs.get(key)
        if known is None or known.phase is not LrmsPhase.WAITING:
            return False
        there = self._machine.withdraw(known.number, pass_later=self._passes_held)
        assert there
        del self._waiting[key]
        known.phase, known.end = LrmsPhase.ENDED, LrmsEnd(Outcome.CANCELLED, now, 0.0)
        self._events.append(Ended(key, known.end))
        self._over(key)
        self.advance(now)
        return True

    def hold_passes(self, now: float) -> None:
        """Leaves the pass that follows withdrawals to `make_pass`; until then the clock stands still."""
        self.advance(now)
        self._passes_held = True

    def make_pass(self, now: float) -> None:
        """Makes the pass that is due, if any, and holds no further ones."""
        self._passes_held = False
        self._machine.make_pass()
        self.advance(now)

    def begin_steps(self) -> None:
        """Holds passes for good: from now on it does something when it is to `step`, and when a new job comes."""
        self._passes_held = self._steps = True

    def step(self, now: float) -> None:
        """Does what is due up to a moment, with its passes, though passes are held."""
        held, self._passes_held = self._passes_held, False
        self.advance(now)
        self._passes_held = held

    def move_clock(self, now: float) -> None:
        """Sets the clock, though passes are held; what is due at that very moment does not happen."""
        if now > self._machine.now:
            self._machine.advance(now, inclusive=False)
            self._collect()

    def load_at(self, now: float) -> LrmsLoad:
        """Returns the load at a moment."""
        self.advance(now)
        state = self._machine.state
        counts = state.processors, state.processors_free, state.processors_waiting
        return LrmsLoad(now, *counts, nodes=self._nodes, idle=self._machine.idle)

    def starts_now_at(self, now: float, processors: int, requested_time: float) -> bool:
        """Returns whether a job submitted at `now` would start at once."""
        self.advance(now)
        starts = self._machine.starts_now(processors=processors, requested_time=requested_time)
        # The answer includes a pass that was still due.
        self._collect()
        return starts

    def poll(self, now: float) -> Sequence[MachineEvent]:
        """Returns events up to and including `now` since the last call, ends of a moment before its starts."""
        self._advance_if_due(now)
        events, self._events = self._events, []
        return events

    def advance(self, now: float) -> None:
        """Advances the machine's clock to a moment; a past one changes nothing."""
        if self._passes_held or now < self._machine.now:
            return
        self._machine.advance(now, inclusive=self._inclusive or now == math.inf)
        self._collect()

    def finish(self, moment: float) -> None:
        """Processes everything due up to and including a moment (seconds), after which no submission at it follows."""
        if moment >= self._machine.now:
            self._machine.advance(moment)
            self._collect()

    def look_up(self, key: str) -> LrmsRecord | None:
        """Returns what is known of a job; `None` if it was never submitted."""
        known = self._jobs.get(key)
        if known is None:
            return None
        return LrmsRecord(known.phase, known.start_time, known.end)

    def waits(self, key: str) -> bool:
        """Returns whether a job is in the queue, as `look_up` would say."""
        return key in self._waiting

    @property
    def processors(self) -> int:
        """Its size."""
        return self._processors

    def jobs(self) -> dict[str, LrmsRecord]:
        """Returns what is known of all jobs that are not forgotten, by key."""
        return {
            key: LrmsRecord(known.phase, known.start_time, known.end)
            for key, known in self._jobs.items()
        }

    def follow(self, key: str) -> None:
        """Includes a job in `first_end` until it has ended; an unknown one changes nothing."""
        known = self._jobs.get(key)
        if known is None or known.followed:
            return
        known.followed = True
        if known.phase is LrmsPhase.WAITING:
            self._followed.wait(key, known.run_time)
        elif known.phase is LrmsPhase.RUNNING:
            self._follow_to_end(known)

    def _follow_to_end(self, known: LocalJob) -> None:
        self._followed.run(known.job.key, self._machine.times_of(known.number)[1])

    def first_end(self) -> float:
        """Returns a moment before which no followed job ends, as only a simulation can; infinity without jobs."""
        return self._followed.first_end(self._machine.next_event_time)

    def _phase_of(self, key: str) -> LrmsPhase | None:
        known = self._jobs.get(key)
        return None if known is None else known.phase

    @property
    def next_event_time(self) -> float:
        """When the machine next does something by itself, seconds; infinity for never."""
        return -math.inf if self._events else self._machine.next_event_time

    def _collect(self) -> None:
        for time, kind, number in moments(self._machine):
            key = self._by_number[number]
            known = self._jobs[key]
            if kind is Kind.START and known.phase is LrmsPhase.RUNNING:
                continue  # it did so on the machine before this one
            if kind is not Kind.START:
                known.phase = LrmsPhase.ENDED
                known.end = evicted(known, time) if kind is Kind.EVICTION else end_of(known, time)
                self._running.pop(key, None)
                self._over(key)
                self._events.append(Ended(key, known.end))
            else:
                known.phase, known.start_time = LrmsPhase.RUNNING, time
                self._waiting.pop(key, None)
                self._running[key] = None
                if known.followed:
                    self._follow_to_end(known)
                self._events.append(Started(key, time))

    @property
    def _machine(self) -> Machine:
        self._settle()
        return self._present

    def _settle(self) -> None:
        # Cancelled jobs are still in the present machine.
        if self._stale_since is not None:
            since, self._stale_since = self._stale_since, None
            self._build_anew(since)

    def _advance_if_due(self, now: float) -> None:
        if self._stale_since is None or now >= self._present.next_event_time:
            self.advance(now)

    def _build_anew(self, now: float) -> None:
        history = self._present.history
        self._present = Machine(self._processors, self._discipline)
        self._machine.remember(history)
        self._by_number = []
        running = sorted(self._running, key=self._start_of)
        if any(self._jobs[key].job.at_once for key in running):
            self._resume(running, now)
            running = []
        for key in running:
            known = self._jobs[key]
            assert known.start_time is not None
            self._resubmit(known, known.start_time)
        if running:
            # Each starts when it did: there is room, as the other jobs of that time are gone.
            now = max(now, self._start_of(running[-1]))
        if now > -math.inf:
            self._machine.advance(now, inclusive=self._inclusive)
        for number, key in enumerate(running):
            if self._machine.times_of(number)[0] != self._jobs[key].start_time:
                raise LrmsRefusedError(
                    f"job {key} runs, but there is no room for it on {self._processors} "
                    "processors; was the machine larger before?"
                )
        self._collect()
        self._resubmit_all([self._jobs[key] for key in self._waiting], now)
        self.advance(now)

    def _resume(self, running: Sequence[str], now: float) -> None:
        # Some of them have started past the queue.
        now = max(now, self._start_of(running[-1]))
        for key in running:
            known, job = self._jobs[key], self._jobs[key].job
            assert known.start_time is not None
            seen = not job.at_once or (job.protected and self._protects)
            try:
                known.number = self._machine.resume(
                    now=now,
                    start_time=known.start_time,
                    processors=job.processors,
                    requested_time=job.requested_time,
                    run_time=known.run_time,
                    seen=seen,
                    rank=_rank(job),
                )
            except ValueError as error:
                raise LrmsRefusedError(
                    f"job {key} runs, but there is no room for it: {error}; was the machine larger before?"
                ) from error
            self._by_number.append(key)

    def _start_of(self, key: str) -> float:
        start_time = self._jobs[key].start_time
        assert start_time is not None
        return start_time

    def _over(self, key: str) -> None:
        self._ended.append(key)
        if len(self._ended) > FORGOTTEN_AFTER:
            del self._jobs[self._ended.popleft()]

    def _resubmit_all(self, waiting: list[LocalJob], time: float) -> None:
        # Together, as there may be very many after a restart.
        try:
            first = self._machine.submit_all(time, submitted(waiting, time))
        except ValueError:
            for known in waiting:
                self._resubmit(known, time)  # which says whose it is
            return
        for number, known in enumerate(waiting, first):
            known.number = number
        self._by_number.extend(self._waiting)

    def _resubmit(self, known: LocalJob, time: float) -> None:
        try:
            known.number = self._machine.submit(
                submit_time=time,
                processors=known.job.processors,
                requested_time=known.job.requested_time,
                run_time=known.run_time,
                group=group_of(known.job),
                waiting_since=known.submit_time,
            )
        except ValueError as error:
            raise LrmsRefusedError(
                f"job {known.job.key} is open and does not fit: {error}; let the machine be "
                "as large as before until the job has ended"
            ) from error
        self._by_number.append(known.job.key)
