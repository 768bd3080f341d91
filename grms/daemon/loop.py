"""The loop of a daemon: events go into its pure state, records to the disk, and what follows from them outside.

Everything happens on the event loop, in order. An event is handled at once, unless records are being written: then
it waits. So whenever something is done, answered or shown, the state is what the journal says, and nobody is told
what a power failure could take back. What has gathered meanwhile is handled together, and written together: a disk
needs a thousandth of a second to promise that something will survive, and can promise many things at once.

The disk is waited for in a thread of its own. A journal that need not survive a power failure does not wait for the
disk; then writing at once costs less than a thread.

When the disk is full nothing is given up: the records stay in order in memory, writing them is tried again every
second, and `problem` says what is wrong; whoever asks or looks meanwhile is told so. When the disk fails in any other
way, or the state meets an error of its own, the process has to end: what is in the journal is good, so the way on is
a restart.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Generic, Protocol, TypeVar

import structlog

from grms.daemon.journal import JournalFullError

BATCH_MAX: Final = 1000
"""Most events that are handled before what they have led to is written."""

RETRY_S: Final = 1.0
"""Pause before a write is tried again that found the disk full, real seconds."""

Log = structlog.typing.FilteringBoundLogger


class Event(Protocol):
    """Something that has happened."""

    @property
    def id(self) -> int:
        """By which its answer is known."""


E = TypeVar("E", bound=Event)
C = TypeVar("C")
S = TypeVar("S", bound="State[Any, Any]")
T = TypeVar("T")
E_contra = TypeVar("E_contra", contravariant=True)
C_co = TypeVar("C_co", covariant=True)


class State(Protocol[E_contra, C_co]):
    """What takes events, and says what is to be done."""

    def handle(self, event: E_contra, now: float) -> Sequence[C_co]:
        """Returns commands; the one with the records that the others rest on comes first."""


class EngineFailedError(Exception):
    """The state cannot be relied on any more; the cause says why."""


class NotWrittenError(Exception):
    """The journal cannot be written now; the text says why.

    What was asked is not forgotten: it is done when the journal can be written again.
    """


@dataclass(slots=True, eq=False)
class _Look:
    # Somebody who waits to read something; of an answer, or of the state.
    future: asyncio.Future[Any]
    read: Callable[[Any], Any]

    def give(self, found: object) -> None:
        # Whoever asked may have gone, or been told that it takes too long.
        if self.future.done():
            return
        try:
            self.future.set_result(self.read(found))
        except Exception as error:  # noqa: BLE001  # it belongs to who looks
            self.future.set_exception(error)


class Loop(Generic[E, C, S]):
    """See the module.

    Attributes:
        append: the kind of command that has `records` to be written.
        answer: the kind of command that answers the event whose id is its `cause`.
        state: of the daemon; what is shown to anybody is read through `look`.
        problem: why nothing can be written now; empty where all is well.
        failed: set when nothing can be relied on any more: the process has to end.
        failure: why.
        groups: groups of records written so far.
        records: records written so far.

    Args:
        state: of the daemon.
        write: makes records durable, all or none; raises `JournalFullError` where there is no room.
        now: returns the time, seconds.
        log: where it is told that the journal cannot be written.
        in_thread: whether to write in a thread of its own.
    """

    append: ClassVar[type[Any]]
    answer: ClassVar[type[Any]]

    def __init__(
        self,
        state: S,
        write: Callable[[list[Any]], None],
        now: Callable[[], float],
        log: Log,
        *,
        in_thread: bool,
    ) -> None:
        self.state = state
        self.problem = ""
        self.failure: Exception | None = None
        self.failed = asyncio.Event()
        self.groups = 0
        self.records = 0
        self._write = write
        self._now = now
        self._log = log
        self._in_thread = in_thread
        self._inbox: deque[E] = deque()
        self._looking: list[_Look] = []
        self._records: list[Any] = []
        self._waiting: list[C | _Look | Callable[[], None]] = []
        self._questions: dict[int, _Look] = {}
        self._looks: set[_Look] = set()
        self._busy = False
        self._writing = False
        self._leaves = False  # somebody waits for what is to be written
        self._wanted = asyncio.Event()
        self._idle = asyncio.Event()

    # --- what comes in -------------------------------------------------------------------------

    def tell(self, *events: E) -> None:
        """Hands over events that nobody waits for."""
        self._inbox.extend(events)
        self._run()

    async def ask(self, event: E, read: Callable[[Any], T]) -> T:
        """Hands over a question, and returns what somebody reads in its answer, which is durable.

        Args:
            event: the question.
            read: is given the answer, at a moment at which the state is what the journal says.

        Raises:
            NotWrittenError: the journal cannot be written; the question may be repeated.
        """
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._questions[event.id] = _Look(future, read)
        try:
            self.tell(event)
            if self.problem:
                self._hold_back()
            return await future
        finally:
            self._questions.pop(event.id, None)

    async def look(self, read: Callable[[S], T]) -> T:
        """Returns what somebody reads in the state, all of which is durable.

        Raises:
            NotWrittenError: the journal cannot be written, and the state is ahead of it.
        """
        if self.failure is not None:
            raise EngineFailedError from self.failure
        if not self.pending:
            return read(self.state)
        if self.problem:
            raise NotWrittenError(self.problem)
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        look = _Look(future, read)
        self._looks.add(look)
        self._looking.append(look)
        try:
            self._run()
            return await future
        finally:
            self._looks.discard(look)

    async def durable(self) -> bool:
        """Returns whether everything that is known now is durable, as soon as that is clear.

        False while the journal cannot be written.
        """
        try:
            await self.look(lambda _: None)
        except NotWrittenError:
            return False
        return True

    def after(self, action: Callable[[], None]) -> None:
        """Does something when all that the state has noted so far is durable, at once if it is."""
        if self._records or self._writing:
            self._waiting.append(action)
        else:
            action()

    @property
    def pending(self) -> bool:
        """Whether something was handed over that is not done, or not durable."""
        return self._writing or bool(self._records or self._inbox or self._looking)

    async def settled(self) -> None:
        """Returns when everything handed over is done."""
        while self.pending:
            self._idle.clear()
            await self._idle.wait()

    # --- what comes of it ----------------------------------------------------------------------

    def _do(self, command: C) -> None:
        """Has something done outside, once all that the state has noted before it is durable."""
        raise NotImplementedError

    def _handled(self, event: E, commands: Sequence[C]) -> None:
        """Sees what an event has led to, before it is durable (`after`)."""

    def _waits(self, commands: Sequence[C]) -> Sequence[C]:
        """Returns those of an event's commands that wait for the journal, which is all of them as a rule."""
        return commands

    def _gathers(self) -> bool:
        """Returns whether what there is to be written waits for more, or for somebody else to write it."""
        return self._in_thread

    def _run(self) -> None:
        if self._busy or self._writing:
            return  # further up the stack, or when the writing is over
        self._guarded(self._turns)

    def _guarded(self, work: Callable[[], None]) -> None:
        # The state may be half way through an event, or ahead of its journal.
        if self.failure is not None:
            raise EngineFailedError from self.failure
        self._busy = True
        try:
            work()
        except Exception as error:
            self.fail(error)
            raise EngineFailedError from error
        finally:
            self._busy = False

    def _turns(self) -> None:
        # Whatever is done may hand over further events; they are handled after all that is here.
        while self._inbox or self._records or self._looking:
            count = 0
            while self._inbox and count < BATCH_MAX:
                self._handle(self._inbox.popleft())
                count += 1
            if self._looking and not self._inbox:
                # Whoever looks sees all that has come in before.
                self._waiting += self._looking
                self._looking.clear()
                self._leaves = True
            if not self._records:
                self._act()
                continue
            if self.problem or self._gathers():
                if self._in_thread or self.problem:
                    self._wanted.set()
                    return
                if not self._inbox:
                    return
                continue
            try:
                self._write(self._records)
            except JournalFullError as error:
                self._full(error)
                return
            self._written()
        self._leaves = False
        self._idle.set()

    def _handle(self, event: E) -> None:
        commands = self.state.handle(event, self._now())
        noted = bool(commands) and isinstance(commands[0], self.append)
        if noted:
            first: Any = commands[0]
            self._records += first.records
        self._waiting += self._waits(commands[1:] if noted else commands)
        self._handled(event, commands)
        if not self._records:
            self._act()

    def _act(self) -> None:
        waiting, self._waiting = self._waiting, []
        for one in waiting:
            if isinstance(one, _Look):
                one.give(self.state)
            elif isinstance(one, self.answer):
                question = self._questions.get(one.cause)
                if question is not None:
                    question.give(one)
            elif callable(one):
                one()
            else:
                self._do(one)

    # --- the disk ------------------------------------------------------------------------------

    async def run(self) -> None:
        """Writes what has gathered, and tries again what failed, until it is cancelled.

        It ends when nothing can be relied on any more; `failure` says why.
        """
        with ThreadPoolExecutor(1, "journal") as pool:
            while True:
                await self._wanted.wait()
                self._wanted.clear()
                while self._records and self.failure is None:
                    try:
                        await self._write_group(pool)
                    except EngineFailedError:
                        pass
                    except Exception as error:  # noqa: BLE001  # a group is durable or nothing can be relied on
                        self.fail(error)
                if self.failure is not None:
                    return

    async def _write_group(self, pool: ThreadPoolExecutor) -> None:
        try:
            if self._in_thread:
                await self._write_aside(pool)
            else:
                self._write(self._records)
        except JournalFullError as error:
            self._full(error)
            self._run()
            await asyncio.sleep(RETRY_S)
        else:
            self._guarded(self._written)
            self._run()

    async def _write_aside(self, pool: ThreadPoolExecutor) -> None:
        self._writing = True
        writing = asyncio.get_running_loop().run_in_executor(pool, self._write, self._records)
        try:
            await asyncio.shield(writing)
        except asyncio.CancelledError:
            # A group that has been begun is finished, so that nobody writes it a second time.
            await asyncio.wait([writing])
            error = writing.exception()
            if error is None:
                self._records = []
            elif isinstance(error, Exception) and not isinstance(error, JournalFullError):
                self.fail(error)
            raise
        finally:
            self._writing = False

    def _written(self) -> None:
        self.groups += 1
        self.records += len(self._records)
        self._records = []
        self._leaves = False
        if self.problem:
            self.problem = ""
            self._log.info("journal_can_be_written_again")
        self._act()

    def _full(self, error: JournalFullError) -> None:
        if not self.problem:
            self._log.error("journal_cannot_be_written", problem=str(error))  # no fault of ours
        self.problem = str(error)
        self._wanted.set()
        self._hold_back()

    def _hold_back(self) -> None:
        # Whoever waits for the journal is told why, and asks again.
        for waits in (*self._questions.values(), *self._looks):
            if not waits.future.done():
                waits.future.set_exception(NotWrittenError(self.problem))

    def fail(self, error: Exception) -> None:
        """Notes that nothing can be relied on any more; the first reason counts."""
        self.failure = self.failure or error
        self.failed.set()
        self._wanted.set()

    def close(self) -> None:
        """Writes the rest, as far as it can be written; nothing that waits for it is done.

        Raises:
            JournalError: the rest could not be written.
        """
        records, self._records = self._records, []
        if records and self.failure is None:
            self._write(records)


def timed(
    write: Callable[[list[Any]], None], took: Callable[[float], None]
) -> Callable[[list[Any]], None]:
    """Returns a writer that tells after each success how long it took, in seconds."""

    def timed_write(records: list[Any]) -> None:
        begin = time.perf_counter()
        write(records)
        took(time.perf_counter() - begin)

    return timed_write
