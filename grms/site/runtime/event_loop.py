"""The event loop of a site: passes events to the pure state and carries out its commands.

Nothing leaves the site that is not in the journal: answers, messages to partners and commands to the batch system
follow the records that they rest on (`grms.daemon.loop`).

A simulated machine in a replay does not leave the site: after a restart the journal rebuilds it, and the
coordinator's clock moves it as before. So it may be as far as the state is (`ahead`), and what nobody outside waits
for, such as arrivals that stay here, is gathered into one group until something is to leave.
"""

import asyncio
import itertools
import math
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from typing import Any, Final, Protocol

import structlog

from grms.daemon.clock import Clock
from grms.daemon.loop import Loop
from grms.lrms.anomalies import Anomalies
from grms.policy.rebalancing import period_of
from grms.site.model.commands import (
    Answer,
    Append,
    Command,
    LrmsCancel,
    LrmsSubmit,
    PilotCommand,
    ProtectGuests,
    Publish,
    PublishReservation,
    PublishRound,
    Send,
    TellLoad,
)
from grms.site.model.events import (
    Event,
    LoadTold,
    LrmsNews,
    LrmsTold,
    PartnerUp,
    PoliciesChanged,
    RoundDue,
    TimePassed,
)
from grms.site.model.jobs import HomeJob, Load
from grms.site.model.reservations import Reservation
from grms.site.scheduler.state import SiteState

HELD_S: Final = 0.05
"""So long at most what nobody waits for is held back from the journal, where it is at all, seconds."""


class Driver(Protocol):
    """Carries out commands to the batch system; its news arrives through `Engine.tell`."""

    @property
    def load_age(self) -> float | None:
        """Age of the load, seconds; `None` if there has been none."""

    @property
    def problem(self) -> str:
        """Why no job can be submitted although the batch system answers; empty if one can."""

    @property
    def commands_open(self) -> int:
        """Number of commands that the batch system has not answered."""

    @property
    def anomalies(self) -> Anomalies:
        """Number of the batch system's broken statements."""

    def listen(self, hear: Callable[..., None]) -> None:
        """Sets the receiver of unsolicited news."""

    def load(self) -> Load | None:
        """Returns the current load; `None` if it is unknown."""

    def due(self) -> Iterable[LrmsNews]:
        """Returns what has happened by now, if that can be known at once."""

    def do(self, command: LrmsSubmit | LrmsCancel) -> Iterable[LrmsNews]:
        """Takes a command, and returns its consequences so far."""

    def protect(self, *, on: bool) -> Iterable[LrmsNews]:
        """Has the batch system protect the protected guests, or no longer; returns the consequences so far."""


class Outward(Protocol):
    """Sends the state's messages to partners."""

    def send(self, command: Send) -> None:
        """Begins to send; the outcome comes back as an event."""


class Engine(Loop[Event, Command, SiteState]):
    """The pure state with its driver, journal and clock.

    `write` makes records durable, `in_thread` in a thread of its own. `ahead`: the batch system may be ahead of the
    journal; see the module. `log` is told if the journal cannot be written.
    """

    append = Append
    answer = Answer

    def __init__(
        self,
        state: SiteState,
        write: Callable[[list[Any]], None],
        driver: Driver,
        clock: Clock,
        *,
        log: structlog.typing.FilteringBoundLogger,
        in_thread: bool = False,
        ahead: bool = False,
    ) -> None:
        super().__init__(state, write, clock.now, log, in_thread=in_thread)
        self.clock = clock
        self.driver = driver
        self._new_id = itertools.count(1)
        self._outward: Outward | None = None
        self._publish: list[tuple[Callable[[HomeJob], None], Container[int] | None]] = []
        self._publish_reservation: list[Callable[[Reservation], None]] = []
        self._publish_round: list[Callable[[PublishRound], None]] = []
        self._pilots: Callable[[PilotCommand], None] = _no_pilots
        self._seen: list[Callable[[Event, Sequence[Command]], None]] = []
        self._ahead = ahead
        self._held: asyncio.TimerHandle | None = None
        driver.listen(lambda *news: self.tell(*self._told(news)))

    def connect(self, outward: Outward) -> None:
        """Sets the sender to partners; call it before the first event."""
        self._outward = outward

    def on_publish(
        self, tell: Callable[[HomeJob], None], *, among: Container[int] | None = None
    ) -> None:
        """Calls a function with every job that has changed, once the change is durable.

        `among` are numbers of jobs at that moment, of which alone it is to hear; `None`: all.
        """
        self._publish.append((tell, among))

    def on_reservation(self, tell: Callable[[Reservation], None]) -> None:
        """Calls a function with every reservation that has changed, once the change is durable."""
        self._publish_reservation.append(tell)

    def on_round(self, tell: Callable[[PublishRound], None]) -> None:
        """Calls a function after every round of offers, once its outcome is durable."""
        self._publish_round.append(tell)

    def on_pilot(self, do: Callable[[PilotCommand], None]) -> None:
        """Sets who carries out commands about pilots; call it before the first event."""
        self._pilots = do

    def on_event(self, tell: Callable[[Event, Sequence[Command]], None]) -> None:
        """Calls a function with every event and its consequences."""
        self._seen.append(tell)

    # --- what events are made of ---------------------------------------------------------------

    def new_id(self) -> int:
        """Returns the id of a new event."""
        return next(self._new_id)

    def _told(self, news: Iterable[LrmsNews]) -> list[Event]:
        return [LrmsTold(next(self._new_id), one) for one in news]

    def stamp(self) -> tuple[int, Load | None]:
        """Returns id and load for a new event that can lead to a decision; `tell` it at once.

        What has happened in the batch system by now is handled first.
        """
        self._inbox.extend(self._told(self.driver.due()))
        return next(self._new_id), self.driver.load()

    def load(self) -> Load | None:
        """Returns the batch system's current load; `None` if it is unknown."""
        return self.driver.load()

    def unwritten(self) -> Iterator[HomeJob]:
        """Yields local users' jobs whose present state is not durable yet."""
        jobs = self.state.memory.jobs
        for record in self._records:
            job = jobs.get(getattr(record, "job", 0))
            if job is not None:
                yield job

    def catch_up(self) -> None:
        """Handles what has happened in the batch system up to now, if that can be known."""
        self.tell(*self._told(self.driver.due()))

    # --- what comes of them --------------------------------------------------------------------

    def _handled(self, event: Event, commands: Sequence[Command]) -> None:
        for tell in self._seen:
            tell(event, commands)

    def _waits(self, commands: Sequence[Command]) -> Sequence[Command]:
        if not self._ahead:
            return commands
        # The machine of a replay is told at once what it is to do.
        rest: list[Command] = []
        for command in commands:
            if isinstance(command, LrmsSubmit | LrmsCancel):
                self._inbox.extend(self._told(self.driver.do(command)))
                continue
            if isinstance(command, ProtectGuests):
                self._inbox.extend(self._told(self.driver.protect(on=command.on)))
                continue
            rest.append(command)
            asked = isinstance(command, Answer) and command.cause in self._questions
            self._leaves |= asked or isinstance(command, Send | PublishRound)
        return rest

    def _gathers(self) -> bool:
        if not self._ahead or self._leaves:
            return super()._gathers()
        if self._held is None:
            self._held = asyncio.get_running_loop().call_later(HELD_S, self._let_go)
        return True

    def _let_go(self) -> None:
        # Most of it has been written by then, with what was to leave.
        self._held = None
        self.flush()

    def flush(self) -> None:
        """Writes gathered records, unless a thread does."""
        self._leaves = True
        self._run()

    def _do(self, command: Command) -> None:
        if isinstance(command, Publish):
            self._show(command)
        elif isinstance(command, LrmsSubmit | LrmsCancel):
            self._inbox.extend(self._told(self.driver.do(command)))
        elif isinstance(command, ProtectGuests):
            self._inbox.extend(self._told(self.driver.protect(on=command.on)))
        elif isinstance(command, TellLoad):
            self._inbox.append(LoadTold(*self.stamp()))
        elif isinstance(command, Send):
            assert self._outward is not None
            self._outward.send(command)
        elif isinstance(command, PilotCommand):
            self._pilots(command)
        elif isinstance(command, PublishReservation):
            for show in self._publish_reservation:
                show(command.reservation)
        else:
            assert isinstance(command, PublishRound)
            for over in self._publish_round:
                over(command)

    def _show(self, command: Publish) -> None:
        jobs = self.state.memory.jobs
        for number in (command.job, *command.also):
            job = jobs.get(number)
            if job is not None:
                for tell, among in self._publish:
                    if among is None or number in among:
                        tell(job)


def _no_pilots(command: PilotCommand) -> None:
    raise AssertionError(f"this site has no pilots: {command}")


DEADLINES_LOOKED_AT_S: Final = 2.0
"""Interval of checks for overdue jobs."""


async def follow_deadlines(engine: Engine) -> None:
    """Tells a site's engine again and again that time has passed, until cancelled."""
    while True:  # waits for time, not for an event
        await asyncio.sleep(DEADLINES_LOOKED_AT_S)
        engine.tell(TimePassed(*engine.stamp()))


def next_round(now: float, last: float, period: float) -> float:
    """Returns the moment of the next round, seconds; infinity if there is none.

    `last` is that of the last round, minus infinity before the first. The clock (`now`) may be slightly behind it
    when a timer is early, and far behind when it was set back. An infinite period means no rounds.
    """
    if period == math.inf:
        return math.inf
    begin = max(now, last) if last - now < period else now
    moment = period * (1.0 + math.floor(begin / period))
    return moment if moment > begin else moment + period


class RebalanceTimer:
    """Tells a site's engine when a round is due."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._changed = asyncio.Event()
        self._there = asyncio.Event()
        if self._all_there():
            self._there.set()
        engine.on_event(self._look)

    def _look(self, event: Event, _commands: Sequence[Command]) -> None:
        if isinstance(event, PoliciesChanged):
            self._changed.set()
        elif isinstance(event, PartnerUp) and self._all_there():
            self._there.set()

    def _all_there(self) -> bool:
        return all(book.reachable for book in self._engine.state.partners.values() if book.listed)

    async def run(self) -> None:
        """Announces rounds until cancelled."""
        engine, last = self._engine, -math.inf
        if engine.state.memory.rounds.open:
            moment = next_round(engine.clock.now(), last, period_of(engine.state.settings.reoffer))
            if await self._reached(moment, self._there):
                last = moment
            engine.tell(RoundDue(*engine.stamp()))
        while True:
            self._changed.clear()
            moment = next_round(engine.clock.now(), last, period_of(engine.state.settings.reoffer))
            if await self._reached(moment, self._changed):
                last = moment
                engine.tell(RoundDue(*engine.stamp()))

    async def _reached(self, moment: float, before: asyncio.Event) -> bool:
        # Waits for the moment; False where something has happened before.
        async with asyncio.TaskGroup() as group:
            changed = group.create_task(before.wait(), name="before a round")
            waits: list[asyncio.Task[object]] = [changed]
            due = None
            if moment < math.inf:
                sleep = self._engine.clock.sleep_until(moment)
                due = group.create_task(sleep, name="round due")
                waits.append(due)
            done, _ = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            for wait in waits:
                wait.cancel()
        return due in done and changed not in done
