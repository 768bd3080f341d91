"""Hands events to the pure state and carries out what it commands.

Everything happens on the event loop, one event after the other; nothing here waits. What has to
wait for the disk waits in the group commit, what has to wait for a partner in the partner links.

The state is ahead of the journal while records are being written, or cannot be written. Nothing
leaves this place that is not in the journal: answers, messages to partners and commands to the
batch system follow the records that they rest on, and `job` and `jobs` show own users' jobs as the
journal has them.

A simulated machine in a replay does not leave this place: after a restart the journal makes it anew, and
the conductor's clock moves it as before. So it may be as far as the state is (`ahead`), and what nobody
outside waits for gathers until something is to leave, as one group: arrivals that stay here, say.
"""

import asyncio
import itertools
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, Final, ParamSpec, TypeVar, get_args

from grms.site.core.state import SiteState
from grms.site.engine.clock import Clock
from grms.site.engine.group_commit import GroupCommit
from grms.site.engine.outside import REPLIES, TO_LRMS, WAITED_FOR, Driver, Outward, Reply, Send
from grms.site.facts.commands import (
    Append,
    Command,
    LrmsCancel,
    LrmsSubmit,
    Publish,
    PublishReservation,
    PublishRound,
    Refusal,
    Refuse,
)
from grms.site.facts.events import Event, Kind, LoadedEvent
from grms.site.facts.jobs import HomeJob, Load
from grms.site.facts.lifecycle import SHOWN, JobState
from grms.site.facts.reservations import Reservation

HELD_S: Final = 0.05
"""So long at most what nobody waits for is held back from the journal, where it is at all, seconds."""

T = TypeVar("T")
P = ParamSpec("P")


class EngineFailedError(Exception):
    """The site's state cannot be relied on any more; its cause says why."""


class Engine:
    """The pure state with what it needs to act.

    Attributes:
        state: of the site.
        commit: makes records durable.
        driver: of the batch system.
        clock: tells the time.
        new_id: gives each event its id.
        failed: set when nothing can be relied on any more: the process has to end.
        failure: why.

    Args:
        state: of the site.
        commit: makes records durable.
        driver: the batch system.
        clock: tells the time.
        new_id: gives each event its id; shared with the driver.
        ahead: whether the batch system may be ahead of the journal; see the module.
    """

    def __init__(
        self,
        state: SiteState,
        commit: GroupCommit,
        driver: Driver,
        clock: Clock,
        new_id: "itertools.count[int]",
        *,
        ahead: bool = False,
    ) -> None:
        self.state = state
        self.commit = commit
        self.clock = clock
        self.new_id = new_id
        self.driver = driver
        self._outward: Outward | None = None
        self._publish: list[Callable[[HomeJob], None]] = []
        self._publish_reservation: list[Callable[[Reservation], None]] = []
        self._publish_round: list[Callable[[PublishRound], None]] = []
        self._seen: list[Callable[[Event, list[Command]], None]] = []
        self._events: deque[Event] = deque()
        self._questions: dict[int, asyncio.Future[Reply]] = {}
        self._waiting: set[asyncio.Future[bool]] = set()
        # Of a job, what it was before each event whose records are not written yet.
        self._behind: dict[int, list[HomeJob | None]] = {}
        self._busy = False
        self._ahead = ahead
        self._leaves = False
        self._held: asyncio.TimerHandle | None = None
        self._ways: dict[type[Command], Callable[[Any], None]] = {
            Append: self._written,
            LrmsSubmit: self._drive,
            LrmsCancel: self._drive,
            Publish: self._show,
            PublishReservation: self._show_reservation,
            PublishRound: self._show_round,
            **dict.fromkeys(get_args(Reply), self._reply),
            **dict.fromkeys(get_args(Send), self._send),
        }
        self.failure: Exception | None = None
        self.failed = asyncio.Event()

    def connect(self, outward: Outward) -> None:
        """Says who speaks to partners; before the first event."""
        self._outward = outward

    def on_publish(self, tell: Callable[[HomeJob], None]) -> None:
        """Calls a function with every job that has changed, as the journal has it, once it does."""
        self._publish.append(tell)

    def on_reservation(self, tell: Callable[[Reservation], None]) -> None:
        """Calls a function with every reservation that has changed, once that is durable."""
        self._publish_reservation.append(tell)

    def on_round(self, tell: Callable[[PublishRound], None]) -> None:
        """Calls a function with every round of offers that is over, once what came of it is durable."""
        self._publish_round.append(tell)

    def on_event(self, tell: Callable[[Event, list[Command]], None]) -> None:
        """Calls a function with every event and what came of it."""
        self._seen.append(tell)

    def load(self) -> Load | None:
        """Returns the batch system's load as it is known now; None where it is not."""
        return self.driver.load()

    def tell(self, kind: Kind[P], *values: P.args, **named: P.kwargs) -> int:
        """Hands over an event that is no question.

        Args:
            kind: of the event.
            values: its fields behind the id, and the load where it has one.
            named: same.

        Returns:
            The id that it was given.
        """
        event = self._stamped(kind, values, named)
        self._events.append(event)
        self._run()
        return event.id

    async def ask(self, kind: Kind[P], *values: P.args, **named: P.kwargs) -> Reply:
        """Hands over a question, as `tell` does, and returns its answer, which is durable.

        While the journal cannot be written that is `Refuse`. What was asked is not forgotten: it
        is done when the journal can be written again, so the question may be repeated.
        """
        event = self._stamped(kind, values, named)
        future: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._questions[event.id] = future
        try:
            self._events.append(event)
            self._run()
            self.hold_back(self.commit.problem)
            return await future
        finally:
            self._questions.pop(event.id, None)

    def _stamped(self, kind: Any, values: tuple[Any, ...], named: dict[str, Any]) -> Event:
        # The one place where an event gets its id and its load. What has happened in the batch
        # system by now is handled before it.
        event: Event
        if issubclass(kind, LoadedEvent):
            self._events.extend(self.driver.due())
            event = kind(next(self.new_id), self.driver.load(), *values, **named)
        else:
            event = kind(next(self.new_id), *values, **named)
        return event

    def hear(self, events: Iterable[Event]) -> None:
        """Handles what has happened in the batch system, as its driver tells it."""
        self._events.extend(events)
        self._run()

    def catch_up(self) -> None:
        """Handles what has happened in the batch system up to now, where that can be known."""
        self.hear(self.driver.due())

    async def durable(self) -> bool:
        """Returns whether everything that is known now is durable, as soon as that is clear.

        False while the journal cannot be written.
        """
        if self._ahead:
            self.flush()
        if not self.commit.pending:
            return True
        if self.commit.problem:
            return False
        future: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiting.add(future)
        self.commit.after(lambda: _answer(future, value=True))
        try:
            return await future
        finally:
            self._waiting.discard(future)

    def hold_back(self, problem: str) -> None:
        """Tells those who wait for the journal that it cannot be written.

        Args:
            problem: why; nothing where it can.
        """
        if not problem:
            return
        for cause, question in self._questions.items():
            reason = (
                f"the journal cannot be written ({problem}); this is done when it can be: ask "
                "again then, with the same key"
            )
            _answer(question, value=Refuse(cause, Refusal.UNAVAILABLE, reason))
        for future in self._waiting:
            _answer(future, value=False)

    def job(self, job_id: str) -> HomeJob | None:
        """Returns an own user's job as the journal has it, to be looked at only; None for none."""
        job = self.state.job(job_id)
        return None if job is None else self.written(job)

    def jobs(self) -> Iterator[HomeJob]:
        """Yields own users' jobs as the journal has them, in the order of their arrival."""
        for job in self.state.jobs():
            written = self.written(job)
            if written is not None:
                yield written

    def job_counts(self) -> dict[JobState, int]:
        """Returns how many own users' jobs are in each state, as the journal has them."""
        counts = dict.fromkeys(SHOWN, 0)
        for job in self.jobs():
            counts[job.shown] += 1
        return counts

    def written(self, job: HomeJob) -> HomeJob | None:
        """Returns a job as the journal has it, None where it has not been received there."""
        behind = self._behind.get(job.job)
        return behind[0] if behind else job

    def _run(self) -> None:
        self._guarded(self._drain)
        if self._leaves or not self._ahead:
            self.flush()
        elif self._held is None and self.commit.pending:
            self._held = asyncio.get_running_loop().call_later(HELD_S, self._let_go)

    def _let_go(self) -> None:
        # Most of it has been written by then, with what was to leave.
        self._held = None
        self.flush()

    def flush(self) -> None:
        """Writes what has gathered, unless a thread does that."""
        self._leaves = False
        self._guarded(self.commit.flush)

    def _guarded(self, action: Callable[[], None]) -> None:
        # The state may be half way through an event, or ahead of its journal: what is in the
        # journal is good, so the way on is a restart.
        if self.failure is not None:
            raise EngineFailedError from self.failure
        try:
            action()
        except Exception as error:
            self.fail(error)
            raise EngineFailedError from error

    def fail(self, error: Exception) -> None:
        """Notes that nothing can be relied on any more; the first reason counts."""
        self.failure = self.failure or error
        self.failed.set()

    def _drain(self) -> None:
        # An action may hand over a further event; it is handled after this one.
        if self._busy:
            return
        self._busy = True
        try:
            events, handle, now = self._events, self.state.handle, self.clock.now
            while events:
                event = events.popleft()
                commands = handle(event, now())
                if commands:
                    self._carry_out(commands)
                for tell in self._seen:
                    tell(event, commands)
        finally:
            self._busy = False

    def _carry_out(self, commands: list[Command]) -> None:
        # All that one event has led to waits for its records together, in order.
        first = commands[0]
        if isinstance(first, Append):
            self.commit.append(first.records)
            for number, job in first.before.items():
                self._behind.setdefault(number, []).append(job)
        if self._ahead:
            self._act_ahead(commands)
        self.commit.after(partial(self._do, commands))

    def _act_ahead(self, commands: list[Command]) -> None:
        for command in commands:
            kind = type(command)
            if kind in TO_LRMS:
                self._events.extend(self.driver.do(command))  # type: ignore[arg-type]  # it is one
            elif kind in WAITED_FOR or (kind in REPLIES and command.cause in self._questions):
                self._leaves = True

    def _written(self, command: Append) -> None:
        for number in command.before:
            behind = self._behind[number]
            del behind[0]
            if not behind:
                del self._behind[number]

    def _do(self, commands: list[Command]) -> None:
        for command in commands:
            self._ways[type(command)](command)

    def _reply(self, command: Reply) -> None:
        future = self._questions.get(command.cause)
        if future is not None:
            _answer(future, value=command)

    def _drive(self, command: LrmsSubmit | LrmsCancel) -> None:
        if self._ahead:
            return  # it was told at once
        self._events.extend(self.driver.do(command))
        self._guarded(self._drain)

    def _show(self, command: Publish) -> None:
        jobs = self.state.memory.jobs
        for number in (command.job, *command.also):
            job = jobs.get(number)
            job = None if job is None else self.written(job)
            if job is not None:
                for tell in self._publish:
                    tell(job)

    def _show_reservation(self, command: PublishReservation) -> None:
        for tell in self._publish_reservation:
            tell(command.reservation)

    def _show_round(self, command: PublishRound) -> None:
        for tell in self._publish_round:
            tell(command)

    def _send(self, command: Send) -> None:
        assert self._outward is not None
        self._outward.send(command)


def _answer(future: asyncio.Future[T], *, value: T) -> None:
    # Whoever asked may have gone, or been told that it takes too long.
    if not future.done():
        future.set_result(value)
