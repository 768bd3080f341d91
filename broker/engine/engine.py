"""Hands events to the pure state, makes its records durable, and has its commands carried out.

One loop does it all in order: it takes what has come in, lets the state handle it, writes all
records in one commit, and then does what waited for that. Meanwhile the next events gather. Whoever
looks at the state does it in the same loop, so that nobody is told what a power failure could take
back.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, Protocol, TypeVar

import structlog

from broker.core.commands import (
    Answer,
    Append,
    Book,
    Command,
    Extend,
    Launch,
    PublishPlan,
    PublishWorkflow,
    Release,
    StartPlanning,
    StopPlanning,
)
from broker.core.events import Event, Restarted, Tick
from broker.core.invariants import check
from broker.core.records import Record
from broker.core.state import BrokerState
from broker.engine.clock import Clock
from broker.engine.journal import Journal, JournalFullError

BATCH_MAX: Final = 1000
"""Most events between two commits."""

FULL_PAUSE_S: Final = 1.0
"""Pause before a write is tried again that found the disk full, real seconds."""

SiteCommand = Book | Launch | Extend | Release
"""What is done at sites."""

Log = structlog.typing.FilteringBoundLogger
_T = TypeVar("_T")


class Hands(Protocol):
    """Does what the engine cannot."""

    def site(self, command: SiteCommand) -> None:
        """Has something done at a site."""

    def plan(self, command: StartPlanning | StopPlanning) -> None:
        """Begins or ends a search."""

    def publish(self, command: PublishWorkflow | PublishPlan) -> None:
        """Tells those who watch."""


class Engine:
    """See the module.

    Attributes:
        state: of the broker; to be looked at through `look` only.
        problem: why nothing can be written now; empty where all is well.

    Args:
        state: of the broker.
        journal: keeps its records.
        clock: tells the time.
        log: where events go.
        checked: whether the state's memory is checked as a whole before its records are written.
    """

    def __init__(
        self,
        state: BrokerState,
        journal: Journal,
        clock: Clock,
        log: Log,
        *,
        checked: bool = False,
    ) -> None:
        self.state = state
        self._checked = checked
        self.problem = ""
        self._journal = journal
        self._clock = clock
        self._log = log
        self._inbox: deque[Event | Callable[[], None]] = deque()
        self._wanted = asyncio.Event()
        self._idle = asyncio.Event()
        self._questions: dict[int, asyncio.Future[Answer]] = {}
        self._hands: Hands | None = None
        self._last_id = 0
        self._now = state.memory.latest

    def connect(self, hands: Hands) -> None:
        """Says who does what the engine cannot; before it runs."""
        self._hands = hands

    def now(self) -> float:
        """Returns the time, seconds; never less than what the journal has."""
        self._now = max(self._now, self._clock.now())
        return self._now

    def tell(self, event: Event) -> None:
        """Hands over an event that nobody waits for."""
        self._put(event)

    async def ask(self, make: Callable[[int], Event]) -> Answer:
        """Hands over a question and returns its answer, once what it says is durable.

        Args:
            make: makes the event of its id.
        """
        self._last_id += 1
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._questions[self._last_id] = future
        event = make(self._last_id)
        self._put(event)
        try:
            return await future
        finally:
            self._questions.pop(event.id, None)

    async def look(self, at: Callable[[BrokerState], _T]) -> _T:
        """Returns what somebody finds in the state, once all of that is durable."""
        future: asyncio.Future[_T] = asyncio.get_running_loop().create_future()

        def reading() -> None:
            if not future.done():
                try:
                    future.set_result(at(self.state))
                except Exception as error:  # noqa: BLE001  # it belongs to who looks
                    future.set_exception(error)

        self._put(reading)
        return await future

    def _put(self, entry: Event | Callable[[], None]) -> None:
        self._inbox.append(entry)
        self._idle.clear()
        self._wanted.set()

    async def settled(self) -> None:
        """Returns when everything handed over is done."""
        while self._inbox or not self._idle.is_set():
            await self._idle.wait()

    async def run(self) -> None:
        """Works until it is cancelled.

        Raises:
            JournalError: the disk has failed.
            Exception: the state has met an error of its own, and cannot be relied on.
        """
        self._inbox.appendleft(Restarted(0))
        with ThreadPoolExecutor(1, "journal") as pool:
            while True:
                if not self._inbox:
                    self._idle.set()
                    await self._rest()
                self._idle.clear()
                await self._batch(pool)

    async def _rest(self) -> None:
        self._wanted.clear()
        try:
            async with asyncio.timeout(self._clock.rest_s(self.state.next_time)):
                await self._wanted.wait()
        except TimeoutError:
            pass

    async def _batch(self, pool: ThreadPoolExecutor) -> None:
        looks: list[Callable[[], None]] = []
        records: list[Record] = []
        commands: list[Command] = []
        count = min(len(self._inbox), BATCH_MAX)
        events: list[Event] = [] if count else [Tick(0)]
        for _ in range(count):
            entry = self._inbox.popleft()
            if isinstance(entry, Event):
                events.append(entry)
            else:
                looks.append(entry)
        for event in events:
            for command in self.state.handle(event, self.now()):
                if isinstance(command, Append):
                    records += command.records
                else:
                    commands.append(command)
        if self._checked:
            check(self.state.memory)
        if records:
            await self._write(pool, records)
        for command in commands:
            self._carry_out(command)
        for look in looks:
            look()

    async def _write(self, pool: ThreadPoolExecutor, records: list[Record]) -> None:
        loop = asyncio.get_running_loop()
        while True:
            writing = loop.run_in_executor(pool, self._journal.append, records)
            try:
                await asyncio.shield(writing)
            except JournalFullError as error:
                if not self.problem:
                    self._log.error(
                        "journal_full", problem=str(error)
                    )  # no traceback: it is no error of this program
                self.problem = str(error)
                await asyncio.sleep(FULL_PAUSE_S)
                continue
            except asyncio.CancelledError:
                await asyncio.wait([writing])
                raise
            if self.problem:
                self._log.info("journal_can_be_written_again")
                self.problem = ""
            return

    def _carry_out(self, command: Command) -> None:
        hands: Any = self._hands
        if isinstance(command, Answer):
            future = self._questions.get(command.cause)
            if future is not None and not future.done():
                future.set_result(command)
        elif isinstance(command, SiteCommand):
            hands.site(command)
        elif isinstance(command, StartPlanning | StopPlanning):
            hands.plan(command)
        else:
            assert isinstance(command, PublishWorkflow | PublishPlan)
            hands.publish(command)
