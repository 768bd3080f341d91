"""The simulated batch system: a machine of `lrms_sim` behind the port, on the site's clock."""

import asyncio
import math
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from grms.daemon.config_base import FilePath, wrong
from grms.lrms.adapter import Adapter, LrmsSettings, LrmsSite, Timekeeper
from grms.lrms.base import (
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
    QueuePlace,
    Tell,
)
from grms.lrms.preemption import CANNOT, EndedBy, Preemption
from grms.lrms.simulated.machine import SteppedMachine
from grms.lrms.simulated.queue import configured_queue
from grms.util.outcomes import Outcome
from lrms_sim.scheduling.disciplines import DISCIPLINES, Discipline, scheduler_of
from lrms_sim.scheduling.user_defined import names_user_defined
from lrms_sim.util.plugins import DISCIPLINE_GROUP


def _discipline(value: str) -> str:
    if value not in DISCIPLINES:
        if names_user_defined(DISCIPLINE_GROUP, value):
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
        group_order: for a discipline by group: the groups in the order in which they are served.
        time_zone: of the site, for strategies that use the time of day.
        time_origin: Unix time of second 0 of the site's clock; for replays.
    """

    kind: Literal["simulated"] = "simulated"
    discipline: Annotated[str, AfterValidator(_discipline)] = "fcfs"
    strategy: FilePath | None = None
    group_order: list[int] | None = None
    time_zone: str | float | int | None = None
    time_origin: Annotated[float, Field(allow_inf_nan=False)] = 0.0

    @property
    def as_users(self) -> bool:
        """Whether own users' jobs run as these users: they are not run at all."""
        return True

    @property
    def queue(self) -> Discipline:
        """The discipline; its file is read again.

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

    @property
    def ends_no_guests(self) -> str:
        """Why guests are never ended: its discipline has promised starts, or keeps an order of its own; empty if they may be."""
        can = scheduler_of(self.queue, []).preempts
        return "" if can else f"lrms.discipline = {self.discipline!r} cannot lose jobs to others"

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

    Held jobs wait outside the machine and the journal: they are gone after a restart.
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
        """Infinity: the machine has every job of the journal."""
        return math.inf

    @property
    def queue_place(self) -> QueuePlace:
        """A job that comes back stands by its place (`LrmsJob.place`)."""
        return QueuePlace.AS_SUBMITTED

    def listen(self, tell: Tell) -> None:
        """Sets the receiver of events."""
        self._tell = tell

    async def open(self) -> None:
        """Does nothing."""

    async def run(self) -> None:
        """Emits events when they happen; not on a virtual clock, where a coordinator polls."""
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
        """Does nothing: its jobs are in the journal."""

    def encode(self, key: str) -> str:
        """Returns the key itself."""
        return key

    async def submit(self, job: LrmsJob, *, held: bool = False) -> None:
        """Submits a job."""
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
        """Releases a held job."""
        job = self._held.pop(key, None)
        if job is not None:
            self._machine.submit(job, self._clock.now())
            self._wanted.set()
        elif self._machine.look_up(key) is None:
            raise LrmsRefusedError(f"there is no job {key}")

    async def cancel(self, key: str, *, only_waiting: bool = False) -> bool:
        """Ends a job."""
        if self._held.pop(key, None) is not None:
            end = LrmsEnd(Outcome.CANCELLED, self._clock.now(), 0.0)
            self._tell([Ended(key, end)])
            return True
        return self.cancel_now(key, only_waiting=only_waiting)

    async def look_up(self, key: str) -> LrmsRecord | None:
        """Returns what is known of a job."""
        return self.look_up_now(key)

    async def snapshot(self) -> LrmsSnapshot:
        """Returns the present state."""
        load = self.load_now()
        held = dict.fromkeys(self._held, LrmsRecord(LrmsPhase.HELD))
        jobs = self._machine.jobs() | held
        return LrmsSnapshot(load.taken_at, load.processors, load.free, load.waiting, jobs)

    @property
    def preemption(self) -> Preemption:
        """Guests that were taken to start at once lose their processors to jobs of the queue, where its discipline can."""
        if not self._machine.preempts:
            return CANNOT
        return Preemption(EndedBy.BATCH_SYSTEM, protects=True)

    def protect(self, *, on: bool) -> None:
        """Protects the protected guests, or no longer, at this moment."""
        self._machine.protect(self._clock.now(), on=on)
        self.tell_now()
        self._wanted.set()

    # --- at once -------------------------------------------------------------------------------

    def submit_now(self, job: LrmsJob) -> None:
        """Submits a job at once; a start at this moment is reported with the next events."""
        self._machine.submit(job, self._clock.now())
        self._tell([Accepted(job.key)])
        self._wanted.set()

    def cancel_now(self, key: str, *, only_waiting: bool = False) -> bool:
        """Ends a job at once."""
        machine = self._machine
        done = (machine.withdraw if only_waiting else machine.cancel)(key, self._clock.now())
        self.tell_now()
        self._wanted.set()
        return done

    def look_up_now(self, key: str) -> LrmsRecord | None:
        """Returns what is known of a job now."""
        if key in self._held:
            return LrmsRecord(LrmsPhase.HELD)
        return self._machine.look_up(key)

    def waits_now(self, key: str) -> bool:
        """Returns whether a job waits."""
        return self._machine.waits(key)

    def load_now(self) -> LrmsLoad:
        """Returns the present load."""
        return self._machine.load_at(self._clock.now())

    def starts_now(self, processors: int, requested_time: float) -> bool:
        """Returns whether a job would start at once."""
        return self._machine.starts_now_at(self._clock.now(), processors, requested_time)

    def tell_now(self) -> None:
        """Emits due events at once."""
        events: list[LrmsEvent] = [*self._machine.poll(self._clock.now())]
        if events:
            self._tell(events)

    # --- replays -------------------------------------------------------------------------------

    @property
    def next_event_time(self) -> float:
        """When the next event is due, seconds."""
        return self._machine.next_event_time

    def finish(self, moment: float) -> None:
        """Processes everything due at a moment."""
        self._machine.finish(moment)

    def begin_steps(self) -> None:
        """Holds passes for good, but that of a new job."""
        self._machine.begin_steps()

    def step(self) -> None:
        """Does what is due by now, with its passes, though these are held."""
        self._machine.step(self._clock.now())

    def move_clock(self) -> None:
        """Has the machine's clock show the present moment, at which nothing has happened yet."""
        self._machine.move_clock(self._clock.now())

    def hold_passes(self) -> None:
        """Leaves the pass after withdrawals to `make_pass`."""
        self._machine.hold_passes(self._clock.now())

    def make_pass(self) -> None:
        """Makes the pass that is due."""
        self._machine.make_pass(self._clock.now())

    def follow(self, key: str) -> None:
        """Includes a job in `first_end`."""
        self._machine.follow(key)

    def first_end(self) -> float:
        """Returns a moment before which no followed job ends, seconds."""
        return self._machine.first_end()


def _make(settings: SimulatedSettings, site: LrmsSite) -> SimulatedLrms:
    machine = SteppedMachine.restored(
        site.processors,
        settings.queue,
        running=site.running,
        waiting=site.waiting,
        moment=site.moment,
        passes_held=site.passes_held,
        protects=site.protects,
    )
    return SimulatedLrms(machine, site.clock)


ADAPTER = Adapter(SimulatedSettings, _make)
