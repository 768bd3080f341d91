"""The simulated batch system: a machine of `lrms_sim` behind the port, on the site's clock."""

import asyncio
import math
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from grms.kit.models import FilePath, wrong
from grms.lrms.adapter import Adapter, LrmsSettings, LrmsSite, Timekeeper
from grms.lrms.machine import SteppedMachine
from grms.lrms.port import (
    Accepted,
    Ended,
    LrmsEnd,
    LrmsEvent,
    LrmsJob,
    LrmsLoad,
    LrmsPhase,
    LrmsRecord,
    LrmsRefusedError,
    LrmsSnapshot,
    Tell,
)
from grms.lrms.queue import configured_queue
from grms.outcomes import Outcome
from lrms_sim.disciplines import DISCIPLINES, Discipline
from lrms_sim.plugins import DISCIPLINE_GROUP
from lrms_sim.written import names_written


def _discipline(value: str) -> str:
    if value not in DISCIPLINES:
        if names_written(DISCIPLINE_GROUP, value):
            return value
        raise wrong(f"{value!r} is no discipline; there are: {', '.join(DISCIPLINES)}")
    if value == "easy-plus-plus":
        raise wrong(
            f"{value!r} predicts by user, and a site's machine is not told whose job it is; "
            "'easy-sjbf-per-event' does the same without predictions"
        )
    return value


class SimulatedSettings(LrmsSettings):
    """The table of a simulated batch system.

    Attributes:
        kind: `simulated`.
        discipline: of the machine's queue.
        strategy: a strategy file instead of a discipline.
        group_order: for a discipline by group: the groups, the one served first in front.
        time_zone: of the site, for strategies that ask what time it is.
        time_origin: Unix time of second 0 of the site's clock; of a replay.
    """

    kind: Literal["simulated"] = "simulated"
    discipline: Annotated[str, AfterValidator(_discipline)] = "fcfs"
    strategy: FilePath | None = None
    group_order: list[int] | None = None
    time_zone: str | float | int | None = None
    time_origin: Annotated[float, Field(allow_inf_nan=False)] = 0.0

    @property
    def queue(self) -> Discipline:
        """The discipline; its file is read anew.

        Raises:
            ValueError: the file cannot be used, or a key is missing.
        """
        return configured_queue(
            discipline=self.discipline,
            strategy=self.strategy,
            group_order=None if self.group_order is None else tuple(self.group_order),
            time_zone=self.time_zone,
            time_origin=self.time_origin,
        )

    @model_validator(mode="after")
    def _check_queue(self) -> Self:
        if self.strategy is not None and self.discipline != "fcfs":
            raise wrong("lrms.strategy and lrms.discipline exclude each other")
        try:
            _ = self.queue
        except ValueError as error:
            raise wrong(f"lrms: {error}") from error
        return self


class SimulatedLrms:
    """A machine in memory as an `Lrms`; it answers at once, and can be replayed.

    Held jobs wait beside the machine. The journal does not know them: they are gone after a restart.

    Args:
        machine: what it stands on.
        clock: the site's.
    """

    def __init__(self, machine: SteppedMachine, clock: Timekeeper) -> None:
        self._machine = machine
        self._clock = clock
        self._tell: Tell = lambda _: None
        self._wanted = asyncio.Event()
        self._held: dict[str, LrmsJob] = {}

    # --- the port ------------------------------------------------------------------------------

    @property
    def remembers(self) -> float:
        """See `Lrms.remembers`: what is in the journal is on the machine."""
        return math.inf

    def listen(self, tell: Tell) -> None:
        """See `Lrms.listen`."""
        self._tell = tell

    async def open(self) -> None:
        """See `Lrms.open`; there is nothing to open."""

    async def run(self) -> None:
        """Tells what happens when it happens; not on a virtual clock, where a conductor asks."""
        while True:
            self.tell_now()
            self._wanted.clear()
            moment = self.next_event_time
            async with asyncio.TaskGroup() as group:
                wanted = group.create_task(self._wanted.wait(), name="lrms wanted")
                if moment < math.inf:
                    due = group.create_task(self._clock.sleep_until(moment), name="lrms due")
                    await asyncio.wait([wanted, due], return_when=asyncio.FIRST_COMPLETED)
                    due.cancel()
                else:
                    await wanted
                wanted.cancel()

    async def close(self) -> None:
        """See `Lrms.close`; its jobs are in the journal."""

    def encode(self, key: str) -> str:
        """See `Lrms.encode`: the key itself."""
        return key

    async def submit(self, job: LrmsJob, *, held: bool = False) -> None:
        """See `Lrms.submit`."""
        if job.key in self._held or self._machine.look_up(job.key) is not None:
            return
        if not held:
            self.submit_now(job)
            return
        size = self._machine.processors
        if job.processors > size:
            text = f"job {job.key}: processors is {job.processors}; this machine has {size}"
            raise LrmsRefusedError(text)
        self._held[job.key] = job
        self._tell([Accepted(job.key)])

    async def release(self, key: str) -> None:
        """See `Lrms.release`."""
        job = self._held.pop(key, None)
        if job is not None:
            self._machine.submit(job, self._clock.now())
            self._wanted.set()
        elif self._machine.look_up(key) is None:
            raise LrmsRefusedError(f"there is no job {key}")

    async def cancel(self, key: str, *, only_waiting: bool = False) -> bool:
        """See `Lrms.cancel`."""
        if self._held.pop(key, None) is not None:
            end = LrmsEnd(Outcome.CANCELLED, self._clock.now(), 0.0)
            self._tell([Ended(key, end)])
            return True
        return self.cancel_now(key, only_waiting=only_waiting)

    async def look_up(self, key: str) -> LrmsRecord | None:
        """See `Lrms.look_up`."""
        return self.look_up_now(key)

    async def snapshot(self) -> LrmsSnapshot:
        """See `Lrms.snapshot`."""
        load = self.load_now()
        held = dict.fromkeys(self._held, LrmsRecord(LrmsPhase.HELD))
        jobs = self._machine.jobs() | held
        return LrmsSnapshot(load.taken_at, load.processors, load.free, load.waiting, jobs)

    # --- at once -------------------------------------------------------------------------------

    def submit_now(self, job: LrmsJob) -> None:
        """See `ImmediateLrms.submit_now`; a start at this moment is reported with the next events."""
        self._machine.submit(job, self._clock.now())
        self._tell([Accepted(job.key)])
        self._wanted.set()

    def cancel_now(self, key: str, *, only_waiting: bool = False) -> bool:
        """See `ImmediateLrms.cancel_now`."""
        machine = self._machine
        done = (machine.withdraw if only_waiting else machine.cancel)(key, self._clock.now())
        self.tell_now()
        self._wanted.set()
        return done

    def look_up_now(self, key: str) -> LrmsRecord | None:
        """See `ImmediateLrms.look_up_now`."""
        if key in self._held:
            return LrmsRecord(LrmsPhase.HELD)
        return self._machine.look_up(key)

    def waits_now(self, key: str) -> bool:
        """See `ImmediateLrms.waits_now`."""
        return self._machine.waits(key)

    def load_now(self) -> LrmsLoad:
        """See `ImmediateLrms.load_now`."""
        return self._machine.load_at(self._clock.now())

    def starts_now(self, processors: int, requested_time: float) -> bool:
        """See `ImmediateLrms.starts_now`."""
        return self._machine.starts_now_at(self._clock.now(), processors, requested_time)

    def tell_now(self) -> None:
        """See `ImmediateLrms.tell_now`."""
        events: list[LrmsEvent] = [*self._machine.poll(self._clock.now())]
        if events:
            self._tell(events)

    # --- replays -------------------------------------------------------------------------------

    @property
    def next_event_time(self) -> float:
        """See `ReplayableLrms.next_event_time`."""
        return self._machine.next_event_time

    def finish(self, moment: float) -> None:
        """See `ReplayableLrms.finish`."""
        self._machine.finish(moment)

    def hold_passes(self) -> None:
        """See `ReplayableLrms.hold_passes`."""
        self._machine.hold_passes(self._clock.now())

    def make_pass(self) -> None:
        """See `ReplayableLrms.make_pass`."""
        self._machine.make_pass(self._clock.now())

    def follow(self, key: str) -> None:
        """See `ReplayableLrms.follow`."""
        self._machine.follow(key)

    def first_end(self) -> float:
        """See `ReplayableLrms.first_end`."""
        return self._machine.first_end()


def _make(settings: SimulatedSettings, site: LrmsSite) -> SimulatedLrms:
    machine = SteppedMachine.restored(
        site.processors,
        settings.queue,
        running=site.running,
        waiting=site.waiting,
        moment=site.moment,
        passes_held=site.passes_held,
    )
    return SimulatedLrms(machine, site.clock)


ADAPTER = Adapter(SimulatedSettings, _make)
