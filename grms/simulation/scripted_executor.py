"""A batch system behind the port that misbehaves as real ones do.

It answers late, or not at all; a command without an answer may have been carried out, or be carried out when nobody
waits for its answer any more. It forgets what it has acknowledged, restarts jobs, lets others hold and cancel them, and forgets those that
have ended. The truth happens on a `FakeLrms`; the port reports it at intervals, in order.
"""

from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass

from grms.lrms.base import (
    Accepted,
    Appeared,
    Away,
    Back,
    Ended,
    Hindered,
    LoadSeen,
    Lost,
    LrmsEnd,
    LrmsEvent,
    LrmsJob,
    LrmsLoad,
    LrmsPhase,
    LrmsRecord,
    LrmsRefusedError,
    LrmsSnapshot,
    LrmsUnavailableError,
    Requeued,
    Started,
    Tell,
)
from grms.simulation.batch_system import FakeLrms, FakeLrmsJob
from grms.simulation.random_source import RandomSource
from grms.site.model.jobs import Request
from grms.util.outcomes import Outcome


@dataclass(slots=True)
class LrmsFaults:
    """How bad a batch system is.

    Attributes:
        latency: of an answer, seconds on average.
        silence: probability that a command has no answer; it was carried out in half of these.
        late: probability that a submission that was not carried out then comes later.
        late_mean: by how much later, seconds on average.
        away: probability that it goes away between two looks.
        away_mean: for how long, seconds on average.
        loss: probability that it forgets a job that waits, between two looks.
        requeue: probability that it starts a running one anew.
        others: probability that somebody else cancels one.
        refusal: probability that it does not let go one that waits.
        hold: probability that somebody else holds one that waits, for `hold_mean` seconds.
        hold_mean: seconds.
        shut: probability that it is shut between two looks: it refuses what is handed in, or starts nothing; in either
            case it says of what waits that nothing starts it.
        shut_mean: for how long, seconds on average.
        look_s: between two looks.
    """

    latency: float = 0.05
    silence: float = 0.0
    late: float = 0.0
    late_mean: float = 1.0
    away: float = 0.0
    away_mean: float = 4.0
    loss: float = 0.0
    requeue: float = 0.0
    others: float = 0.0
    refusal: float = 0.0
    hold: float = 0.0
    hold_mean: float = 5.0
    shut: float = 0.0
    shut_mean: float = 3.0
    look_s: float = 0.5

    def calm(self) -> None:
        """Ends all misfortunes; answers are late for good."""
        self.silence = self.away = self.loss = self.requeue = self.others = self.hold = 0.0
        self.refusal = self.shut = self.late = 0.0


class ScriptedLrms:
    """A batch system that misbehaves.

    Args:
        machine: the true machine; its listener is this.
        sleep: waits on the machine's clock, seconds.
        offset: how far the clock of the site above is ahead, seconds.
    """

    def __init__(
        self,
        machine: FakeLrms,
        lrms_faults: LrmsFaults,
        draws: RandomSource,
        sleep: Callable[[float], Awaitable[None]],
        offset: float = 0.0,
    ) -> None:
        self.machine = machine
        self.lrms_faults = lrms_faults
        self.lost: dict[str, int] = {}
        self._draws = draws
        self._sleep = sleep
        self._offset = offset
        self._tell: Tell | None = None
        self._untold: deque[LrmsEvent] = deque()
        self._away_until = 0.0
        self._told_away = False
        self._shut_until = 0.0
        self._hindered: set[str] = set()
        self._unwanted: set[str] = set()
        machine.listener = self._happened

    # --- the port ------------------------------------------------------------------------------

    @property
    def remembers(self) -> float:
        """Returns how long ended jobs are remembered, seconds."""
        return self.machine.forget_after

    def listen(self, tell: Tell | None) -> None:
        """Sets the listener; `None` for none."""
        self._tell = tell
        self._untold.clear()
        self._told_away = False
        self._hindered.clear()

    async def open(self) -> None:
        """Does nothing."""

    async def run(self) -> None:
        """Reports at intervals."""
        while True:
            self.look()
            await self._sleep(self.lrms_faults.look_s)

    async def close(self) -> None:
        """Does nothing."""

    def encode(self, key: str) -> str:
        """Encodes a payload."""
        return f"scripted:{key}"

    async def submit(self, job: LrmsJob, *, held: bool = False) -> None:
        """Submits a job."""

        def do() -> None:
            if job.key in self.machine.jobs:
                return
            if self._is_shut and not self.machine.stopped:
                if job.partner:
                    self._unwanted.add(job.key)
                raise LrmsRefusedError("it is shut", passing=True)
            self._unwanted.discard(job.key)
            self._take(job, held=held)
            self._untold.append(Accepted(job.key))

        await self._asked(do, late=lambda: self._comes_late(job, held=held))

    def _take(self, job: LrmsJob, *, held: bool) -> None:
        assert job.program is not None
        request = Request(job.processors, job.requested_time)
        try:
            self.machine.submit(
                job.key,
                request,
                job.program.script.encode(),
                held=held,
                preemptible=job.preemptible,
            )
        except ValueError as error:
            self._unwanted.add(job.key)
            raise LrmsRefusedError(str(error)) from error

    def _comes_late(self, job: LrmsJob, *, held: bool) -> None:
        # A second copy is useless. One that was refused since, or cancelled, or that has ended meanwhile and been
        # forgotten, stays held as the port says, and whoever has given it up is told.
        if job.key in self.machine.jobs or self._is_shut:
            return
        unwanted = job.key in self.machine.forgotten or job.key in self._unwanted
        with suppress(LrmsRefusedError):
            self._take(job, held=held or unwanted)
            came = self.machine.jobs[job.key]
            came.unwanted = unwanted
            self._untold.append(
                Appeared(job.key, self._record(came)) if unwanted else Accepted(job.key)
            )

    async def release(self, key: str) -> None:
        """Releases a held job."""

        def do() -> None:
            if key not in self.machine.jobs:
                raise LrmsRefusedError(f"there is no job {key}")
            self.machine.release(key)

        await self._asked(do)

    async def cancel(self, key: str, *, only_waiting: bool = False) -> bool:
        """Cancels a job."""
        done = refused = False

        def do() -> None:
            nonlocal done, refused
            refused = (
                only_waiting and self._waits(key) and self._draws.chance(self.lrms_faults.refusal)
            )
            if not refused:
                done = self.machine.cancel(key, only_waiting=only_waiting)
                if not (done or only_waiting or key in self.machine.jobs):
                    self._unwanted.add(key)

        await self._asked(do)
        if refused:
            raise LrmsRefusedError("this job is not to be cancelled")
        return done

    def _waits(self, key: str) -> bool:
        job = self.machine.find(key)
        return job is not None and job.start_time is None and job.outcome is None

    async def look_up(self, key: str) -> LrmsRecord | None:
        """Looks up jobs."""
        await self._asked(lambda: None)
        job = self.machine.find(key)
        return None if job is None or self._is_copy(job) else self._record(job)

    async def snapshot(self) -> LrmsSnapshot:
        """Returns the latest snapshot."""
        await self._asked(lambda: None)
        jobs = {key: self._record(job) for key, job in self.machine.jobs.items()}
        load = self._load()
        return LrmsSnapshot(load.taken_at, load.processors, load.free, load.waiting, jobs)

    # --- how it answers ------------------------------------------------------------------------

    @property
    def _is_away(self) -> bool:
        return self.machine.clock.now < self._away_until

    @property
    def _is_shut(self) -> bool:
        return self.machine.clock.now < self._shut_until

    async def _asked(self, do: Callable[[], None], late: Callable[[], None] | None = None) -> None:
        # What is done, is done in the middle of the time that it takes; or afterwards, where that is possible.
        draws, latency = self._draws, self.lrms_faults.latency
        await self._sleep(draws.exponential(latency))
        silent = self._is_away or draws.chance(self.lrms_faults.silence)
        if not silent or draws.chance(0.5):
            do()
        elif late is not None and self.lrms_faults.late and draws.chance(self.lrms_faults.late):
            after = draws.exponential(self.lrms_faults.late_mean)
            self.machine.clock.after(latency + after, late)
        await self._sleep(draws.exponential(latency))
        if silent:
            raise LrmsUnavailableError("the controller does not answer")

    def _load(self) -> LrmsLoad:
        load = self.machine.load()
        now = self.machine.clock.now + self._offset
        return LrmsLoad(now, load.processors, load.processors_free, load.processors_waiting)

    def _record(self, job: FakeLrmsJob) -> LrmsRecord:
        start = None if job.start_time is None else job.start_time + self._offset
        end = self._end(job)
        phase = LrmsPhase.WAITING if start is None else LrmsPhase.RUNNING
        if job.held:
            phase = LrmsPhase.HELD
        again = start is None and job.runs > 0
        return LrmsRecord(phase if end is None else LrmsPhase.ENDED, start, end, restarted=again)

    def _end(self, job: FakeLrmsJob) -> LrmsEnd | None:
        if job.end_time is None or job.outcome is None:
            return None
        run_time = 0.0 if job.start_time is None else job.end_time - job.start_time
        reason = "cancelled by root" if job.by_others else ""
        outcome = Outcome[job.outcome.name]
        return LrmsEnd(outcome, job.end_time + self._offset, run_time, reason=reason)

    # --- what it tells -------------------------------------------------------------------------

    def _is_copy(self, job: FakeLrmsJob) -> bool:
        # Of one that has run, and is forgotten: it says nothing of that one, as the port says.
        return job.unwanted and job.key in self.machine.forgotten

    def _happened(self, job: FakeLrmsJob) -> None:
        if self._is_copy(job):
            return
        end = self._end(job)
        if end is not None:
            if job.start_time is None and job.runs:
                self._untold.append(
                    Requeued(job.key)
                )  # who follows it since then has not heard of that
            self._untold.append(Ended(job.key, end))
        elif job.start_time is not None:
            self._untold.append(Started(job.key, job.start_time + self._offset))

    def look(self) -> None:
        """Tells what has happened, unless it is away; and lets something happen."""
        self._misfortune()
        self._say_what_waits()
        told, self._untold = self._untold, deque()
        if self._is_away:
            self._untold = told
            if not self._told_away and self._tell is not None:
                self._told_away = True
                self._tell([Away("the controller does not answer")])
            return
        if self._tell is not None:
            back = [Back()] if self._told_away else []
            self._told_away = False
            self._tell([*back, *told, LoadSeen(self._load())])

    def _say_what_waits(self) -> None:
        # As a look shows it: of what is told already nothing more.
        waits = {key for key in self.machine.jobs if self._is_shut and self._waits(key)}
        for key in sorted(waits ^ self._hindered):
            self._untold.append(Hindered(key, "it is shut" if key in waits else ""))
        self._hindered = waits

    def _shut(self) -> None:
        draws, clock = self._draws, self.machine.clock
        if self._is_shut or not draws.chance(self.lrms_faults.shut):
            return
        duration = draws.exponential(self.lrms_faults.shut_mean)
        self._shut_until = clock.now + duration
        if draws.chance(0.5):
            self.machine.stopped = True
            clock.after(duration, self.machine.go_on)

    def _misfortune(self) -> None:
        draws, lrms_faults, clock = self._draws, self.lrms_faults, self.machine.clock
        self._shut()
        if not self._is_away and draws.chance(lrms_faults.away):
            self._away_until = clock.now + draws.exponential(lrms_faults.away_mean)
        for job in list(self.machine.jobs.values()):
            if job.outcome is not None:
                continue
            if job.start_time is None:
                if draws.chance(lrms_faults.loss):
                    self.machine.lose(job.key)
                    self.lost[job.key] = self.lost.get(job.key, 0) + 1
                    self._untold.append(Lost(job.key, "the controller was restored"))
                    continue
                if not job.held and draws.chance(lrms_faults.hold):
                    self.machine.hold(job.key)
                    clock.after(
                        draws.exponential(lrms_faults.hold_mean), self.machine.release, job.key
                    )
            elif draws.chance(lrms_faults.requeue):
                self.machine.requeue(job.key)
                self._untold.append(Requeued(job.key, "node down"))
            if draws.chance(lrms_faults.others):
                job.by_others = True
                self.machine.cancel(job.key)


def drawn_lrms_faults(draws: RandomSource, *, always: bool) -> LrmsFaults | None:
    """Returns how a run's batch systems misbehave; `None` if they do not.

    With `always` they do in every run, else in half of the runs.
    """
    if not (always or draws.chance(0.5)):
        return None
    return LrmsFaults(
        latency=(0.02, 0.2)[draws.integer(0, 1)],
        silence=(0.0, 0.1, 0.3)[draws.integer(0, 2)],
        away=(0.0, 0.01)[draws.integer(0, 1)],
        loss=(0.0, 0.02)[draws.integer(0, 1)],
        requeue=(0.0, 0.01)[draws.integer(0, 1)],
        others=(others := (0.0, 0.005)[draws.integer(0, 1)]),
        refusal=60.0 * others,
        hold=(0.0, 0.05)[draws.integer(0, 1)],
        shut=(0.0, 0.03, 0.1)[draws.integer(0, 2)],
        late=(0.0, 0.5)[draws.integer(0, 1)],
    )
