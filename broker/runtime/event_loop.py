"""The event loop of the broker: hands events to the pure state and carries out its commands.

Nothing that a power failure could take back is told to anyone, and nothing is done before its
records are in the journal (`grms.daemon.loop`).
"""

import asyncio
import itertools
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Protocol

import structlog

from broker.scheduler.commands import (
    Answer,
    Append,
    Book,
    Command,
    Launch,
    LaunchGroup,
    Move,
    PublishPlan,
    PublishWorkflow,
    Release,
    StartPlanning,
    StopPlanning,
    Withdraw,
)
from broker.scheduler.events import Event, Restarted, Tick
from broker.scheduler.invariants import check
from broker.scheduler.state import BrokerState
from grms.daemon.clock import RealClock
from grms.daemon.loop import EngineFailedError, Loop

SiteCommand = Book | Launch | LaunchGroup | Move | Release | Withdraw
Log = structlog.typing.FilteringBoundLogger


class Effects(Protocol):
    """Does what the engine cannot."""

    def site(self, command: SiteCommand) -> None:
        """Has something done at a site."""

    def plan(self, command: StartPlanning | StopPlanning) -> None:
        """Begins or ends a search."""

    def publish(self, command: PublishWorkflow | PublishPlan) -> None:
        """Tells those who watch."""


class Engine(Loop[Event, Command, BrokerState]):
    """Runs the broker's state.

    Args:
        write: makes records durable, all or none.
        checked: whether the whole memory is checked before its records are written.
    """

    append = Append
    answer = Answer

    def __init__(
        self,
        state: BrokerState,
        write: Callable[[list[Any]], None],
        effects: Effects,
        clock: RealClock,
        *,
        log: Log,
        checked: bool = False,
    ) -> None:
        super().__init__(state, write, self.now, log, in_thread=True)
        self._effects = effects
        self._clock = clock
        self._checked = checked
        self._ids = itertools.count(1)
        self._latest = state.memory.latest
        self._begun = False
        self._moved = asyncio.Event()

    def now(self) -> float:
        """Returns the time, seconds; never less than what the journal has."""
        self._latest = max(self._latest, self._clock.now())
        return self._latest

    def new_id(self) -> int:
        """Returns the id of a question; events without an answer have 0."""
        return next(self._ids)

    async def run(self) -> None:
        """Works until it is cancelled.

        Raises:
            JournalError: the disk has failed.
            Exception: the state has met an error of its own, and cannot be relied on.
        """
        self._begun = True
        self._inbox.appendleft(Restarted(0))
        with suppress(EngineFailedError):
            self._run()
        async with asyncio.TaskGroup() as group:
            ticking = group.create_task(self._tick(), name="due")
            await super().run()
            ticking.cancel()
        assert self.failure is not None
        raise self.failure

    async def _tick(self) -> None:
        # Tells the state when the moment has come at which something is due.
        with suppress(EngineFailedError):
            while True:
                self._moved.clear()
                rest_s = self._clock.rest_s(self.state.next_time)
                with suppress(TimeoutError):
                    async with asyncio.timeout(rest_s):
                        await self._moved.wait()
                if self.state.next_time <= self.now():
                    self.tell(Tick(0))
                    await self.settled()

    def _run(self) -> None:
        if self._begun:  # what was taken up comes first
            super()._run()

    def _handled(self, event: Event, commands: Sequence[Command]) -> None:  # noqa: ARG002  # of others
        if self._checked:
            check(self.state.memory)
        self._moved.set()

    def _do(self, command: Command) -> None:
        if isinstance(command, SiteCommand):
            self._effects.site(command)
        elif isinstance(command, StartPlanning | StopPlanning):
            self._effects.plan(command)
        else:
            assert isinstance(command, PublishWorkflow | PublishPlan)
            self._effects.publish(command)
