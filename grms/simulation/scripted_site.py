"""A simulated site above a batch system with moods: commands go through the queue of a real one."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from grms.lrms.base import (
    LoadSeen,
    LrmsEvent,
    LrmsJob,
    LrmsLoad,
    LrmsRefusedError,
    LrmsUnavailableError,
    Program,
)
from grms.simulation.batch_system import FakeLrms, FakeLrmsJob
from grms.simulation.clock import sleep
from grms.simulation.random_source import RandomSource
from grms.simulation.scripted_executor import LrmsFaults, ScriptedLrms
from grms.simulation.simulated_site import SimulatedSite
from grms.site.model.commands import LrmsCancel, LrmsSubmit
from grms.site.model.events import LrmsNews
from grms.site.model.jobs import HomeJob, Load
from grms.site.model.lifecycle import Outcome
from grms.site.runtime.executor_queue import Call, LrmsQueue, LrmsStep

COMMANDS = 2
TIMEOUT_S = 1.0
"""Seconds after which a command counts as unanswered."""

LOAD_AGE_S = 5.0
"""Age at which a load is unknown."""


@dataclass
class ScriptedSite(SimulatedSite):
    """A site whose batch system is behind the port.

    `queue` makes the queue of commands; a test of the fault test makes a wrong one.
    """

    lrms_faults: LrmsFaults = field(default_factory=LrmsFaults)
    moody: RandomSource = field(default_factory=lambda: RandomSource(0))
    queue: type[LrmsQueue] = LrmsQueue
    batch: ScriptedLrms = field(init=False)
    _commands: LrmsQueue = field(init=False)
    _seen: LrmsLoad | None = None
    _looking: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        self.batch = ScriptedLrms(
            self.lrms, self.lrms_faults, self.moody, sleep, offset=self.clock_offset
        )
        self._look()

    def _look(self) -> None:
        # For as long as anybody looks at anything, and until nothing is left to be heard of: a Byzantine partner
        # may give a site a job when all others are done.
        self.batch.look()
        memory = self.state.memory if self.up else None
        self._looking = bool(
            self.timing.probe_interval or (memory and (memory.at_lrms or memory.unconfirmed))
        )
        if self._looking:
            self.clock.after(self.lrms_faults.look_s, self._look)

    def load(self) -> Load | None:
        """Returns the load that was told last; `None` if it is too old."""
        seen = self._seen
        if seen is None or self.now - seen.taken_at > LOAD_AGE_S:
            return None
        return Load(seen.processors, seen.free, seen.waiting)

    def _lrms_begin(self) -> None:
        life, self._seen = self._life, None
        self._commands = self.queue(COMMANDS, self.batch.remembers)

        def told(happened: "tuple[LrmsEvent, ...] | Any") -> None:
            if self._life != life:
                return
            for one in happened:
                if isinstance(one, LoadSeen):
                    self._seen = one.load
            self._hand_over(self._commands.told(happened), life)

        self.batch.listen(told)
        self._compare(life)

    def _lrms_leave(self) -> None:
        self.batch.listen(None)

    def _compare(self, life: int) -> None:
        # The first look, until it has an answer.
        def done(snapshot: Any, error: Exception | None) -> None:
            if self._life != life:
                return
            if error is not None:
                self.clock.after(TIMEOUT_S, self._compare, life)
            else:
                self._seen = snapshot.load
                self._hand_over(self._commands.seen_first(snapshot.jobs.items()), life)

        if self._life == life:
            self.clock.run(self.batch.snapshot(), done)

    def _hand_over(self, news: list[LrmsNews], life: int) -> None:
        for one in news:
            if self._life == life:
                self.lrms_told(one)
        self._carry_on(life)

    def _lrms_submit(self, command: LrmsSubmit) -> None:
        self._take(command)

    def _lrms_cancel(self, command: LrmsCancel) -> None:
        self._take(command)

    def _take(self, command: LrmsSubmit | LrmsCancel) -> None:
        job = _leaves(self.lrms, command)
        if job is not None:
            job.told_to_leave += 1
        self._commands.add(command)
        if not self._looking:
            self._looking = True
            self.clock.after(self.lrms_faults.look_s, self._look)
        self._carry_on(self._life)

    def _carry_on(self, life: int) -> None:
        if self._life == life:
            for call in self._commands.calls():
                self._tell_lrms(call, life)

    def _tell_lrms(self, call: Call, life: int) -> None:
        answered, began = False, self.now

        def done(answer: Any, error: Exception | None) -> None:
            nonlocal answered
            if answered or self._life != life:
                return
            answered = True
            self._note_answer(call, answer, error)
            if error is None:
                self._hand_over(self._commands.answered(call, answer, self.now), life)
            elif isinstance(error, LrmsRefusedError):
                self._refused(call, error, life)
            elif isinstance(error, LrmsUnavailableError):
                pause, news = self._commands.unanswered(call, began)
                self.clock.after(pause, again)
                self._hand_over(news, life)
            else:
                raise error

        def again() -> None:
            if self._life == life:
                self._commands.again(call)
                self._carry_on(life)

        self.clock.after(TIMEOUT_S, done, None, LrmsUnavailableError("no answer in time"))
        self.clock.run(self._ask(call), done)

    def _note_answer(self, call: Call, answer: Any, error: Exception | None) -> None:
        # For those who judge the run: what the site knows of its cancels of a job that waits.
        job = _leaves(self.lrms, call.command)
        if job is not None:
            job.unanswered |= isinstance(error, LrmsUnavailableError)
            job.kept |= isinstance(error, LrmsRefusedError) or answer is False

    def _refused(self, call: Call, error: LrmsRefusedError, life: int) -> None:
        def resume() -> None:
            if self._life == life:
                self._hand_over(self._commands.resume(call), life)

        if self._commands.asks_again(call, passing=error.passing):
            pause, news = self._commands.put_off(call, error.reason)
            self.clock.after(pause, resume)
        else:
            news = self._commands.refused(call, error.reason)
        self._hand_over(news, life)

    async def _ask(self, call: Call) -> Any:
        command = call.command
        if call.step is LrmsStep.LOOK_UP:
            return await self.batch.look_up(call.key)
        if isinstance(command, LrmsCancel):
            return await self.batch.cancel(call.key, only_waiting=command.only_waiting)
        program = Program(command.payload.decode())
        request = command.request
        await self.batch.submit(
            LrmsJob(
                call.key,
                request.processors,
                request.requested_time,
                command.user,
                command.partner,
                program,
                preemptible=command.preemptible,
            )
        )
        if self.draws.chance(self.crashes.probability):
            self.crash()
        return None


def _leaves(lrms: FakeLrms, command: LrmsSubmit | LrmsCancel) -> FakeLrmsJob | None:
    # The job that a batch system is told to let go by a command, if any.
    if isinstance(command, LrmsCancel) and command.only_waiting:
        return lrms.find(command.lrms_key)
    return None


def excused(job: HomeJob, runs: list[FakeLrmsJob], sites: Iterable[SimulatedSite]) -> bool:
    """Returns whether the batch system itself caused an end, and it is reported correctly."""
    above = [site for site in sites if isinstance(site, ScriptedSite)]
    lost = [count for site in above for count in site.batch.lost.values()]
    if job.outcome is Outcome.UNKNOWN:
        forgets = any(site.lrms.forget_after < math.inf for site in above)
        return len(runs) <= 1 and (forgets or bool(lost))
    if job.outcome is Outcome.LOST:
        # What was said to be lost twice may come back all the same; it is ended then, not run.
        ran = [run for run in runs if run.runs]
        return max(lost, default=0) > 1 and all(
            run.runs == 1 and run.outcome is Outcome.CANCELLED for run in ran
        )
    return job.outcome is Outcome.CANCELLED and bool(runs) and runs[0].by_others
