"""The loop of a site: hands events to the pure state and carries out what it commands.

Nothing leaves this place that is not in the journal: answers, messages to partners and commands to the batch
system follow the records that they rest on (`grms.kit.loop`).

A simulated machine in a replay does not leave this place: after a restart the journal makes it anew, and
the conductor's clock moves it as before. So it may be as far as the state is (`ahead`), and what nobody
outside waits for gathers until something is to leave, as one group: arrivals that stay here, say.
"""

import asyncio
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, Protocol

import structlog

from grms.kit.clock import Clock
from grms.kit.loop import Loop
from grms.lrms.slips import Slips
from grms.site.core.state import SiteState
from grms.site.facts.commands import (
    Answer,
    Append,
    Command,
    LrmsCancel,
    LrmsSubmit,
    Publish,
    PublishReservation,
    PublishRound,
    Send,
)
from grms.site.facts.events import Event, LrmsNews, LrmsTold
from grms.site.facts.jobs import HomeJob, Load
from grms.site.facts.reservations import Reservation

HELD_S: Final = 0.05
"""So long at most what nobody waits for is held back from the journal, where it is at all, seconds."""


class Driver(Protocol):
    """Carries out commands to the batch system; what happens there is told through `Engine.tell`."""

    @property
    def load_age(self) -> float | None:
        """How old the load is, seconds; None where there has been none."""

    @property
    def problem(self) -> str:
        """Why no job can be handed in although the batch system answers; empty where that is not so."""

    @property
    def commands_open(self) -> int:
        """How many commands the batch system has not answered."""

    @property
    def slips(self) -> Slips:
        """How often the batch system has not kept what it said."""

    def listen(self, hear: Callable[..., None]) -> None:
        """Sets who receives news that nobody asked for."""

    def load(self) -> Load | None:
        """Returns the load as it is known now; None where it is not."""

    def due(self) -> Iterable[LrmsNews]:
        """Returns what has happened by now, where that can be known at once."""

    def do(self, command: LrmsSubmit | LrmsCancel) -> Iterable[LrmsNews]:
        """Takes a command, and returns what has come of it so far."""


class Outward(Protocol):
    """Says to partners what the state wants said."""

    def send(self, command: Send) -> None:
        """Begins to send; the outcome comes back as an event."""


class Engine(Loop[Event, Command, SiteState]):
    """The pure state with what it needs to act.

    Attributes:
        driver: of the batch system.
        clock: tells the time.

    Args:
        state: of the site.
        write: makes records durable.
        driver: the batch system.
        clock: tells the time.
        log: where it is told that the journal cannot be written.
        in_thread: whether to write in a thread of its own.
        ahead: whether the batch system may be ahead of the journal; see the module.
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
        self._publish: list[Callable[[HomeJob], None]] = []
        self._publish_reservation: list[Callable[[Reservation], None]] = []
        self._publish_round: list[Callable[[PublishRound], None]] = []
        self._seen: list[Callable[[Event, Sequence[Command]], None]] = []
        self._ahead = ahead
        self._held: asyncio.TimerHandle | None = None
        driver.listen(lambda *news: self.tell(*self._told(news)))

    def connect(self, outward: Outward) -> None:
        """Says who speaks to partners; before the first event."""
        self._outward = outward

    def on_publish(self, tell: Callable[[HomeJob], None]) -> None:
        """Calls a function with every job that has changed, once that is durable."""
        self._publish.append(tell)

    def on_reservation(self, tell: Callable[[Reservation], None]) -> None:
        """Calls a function with every reservation that has changed, once that is durable."""
        self._publish_reservation.append(tell)

    def on_round(self, tell: Callable[[PublishRound], None]) -> None:
        """Calls a function with every round of offers that is over, once what came of it is durable."""
        self._publish_round.append(tell)

    def on_event(self, tell: Callable[[Event, Sequence[Command]], None]) -> None:
        """Calls a function with every event and what came of it."""
        self._seen.append(tell)

    # --- what events are made of ---------------------------------------------------------------

    def new_id(self) -> int:
        """Returns the id of a new event."""
        return next(self._new_id)

    def _told(self, news: Iterable[LrmsNews]) -> list[Event]:
        return [LrmsTold(next(self._new_id), one) for one in news]

    def stamp(self) -> tuple[int, Load | None]:
        """Returns the id and the load of a new event that can lead to a decision, to be told at once.

        What has happened in the batch system by now is handled before it.
        """
        self._inbox.extend(self._told(self.driver.due()))
        return next(self._new_id), self.driver.load()

    def load(self) -> Load | None:
        """Returns the batch system's load as it is known now; None where it is not."""
        return self.driver.load()

    def unwritten(self) -> Iterator[HomeJob]:
        """Yields own users' jobs of which the state knows what is not durable."""
        jobs = self.state.memory.jobs
        for record in self._records:
            job = jobs.get(getattr(record, "job", 0))
            if job is not None:
                yield job

    def catch_up(self) -> None:
        """Handles what has happened in the batch system up to now, where that can be known."""
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
        """Writes what has gathered, unless a thread does that."""
        self._leaves = True
        self._run()

    def _do(self, command: Command) -> None:
        if isinstance(command, Publish):
            self._show(command)
        elif isinstance(command, LrmsSubmit | LrmsCancel):
            self._inbox.extend(self._told(self.driver.do(command)))
        elif isinstance(command, Send):
            assert self._outward is not None
            self._outward.send(command)
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
                for tell in self._publish:
                    tell(job)
