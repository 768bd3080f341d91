"""Makes records durable, many at a time, and lets what depends on them wait.

A disk needs a thousandth of a second to promise that something will survive, and can promise many
things at once. So while one group of records is being written the next one gathers, and everything
that must not happen before its records are durable waits with its group, in order.

The disk is waited for in a thread of its own, so that the event loop goes on. A journal that need
not survive a power failure does not wait for the disk; then writing at once costs less than a
thread.

When the disk is full nothing is given up: the records stay in order in memory, writing them is
tried again every second, and `problem` says what is wrong, so that new work can be refused
meanwhile. When the disk fails in any other way the process has to end, as nobody knows what is on
it.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from grms.site.engine.journal import JournalFullError
from grms.site.facts.records import Record

RETRY_S: Final = 1.0
"""Pause before a failed write is tried again, seconds."""


Action = Callable[[], None]
Write = Callable[[Sequence[Record]], None]
"""Makes records durable, all or none; raises JournalFullError where there is no room."""


class GroupCommit:
    """Writes records in groups, and does in order what waits for them.

    Attributes:
        problem: why nothing can be written now; empty where all is well.
        groups: groups written so far.
        records: records written so far.

    Args:
        write: makes records durable, all or none.
        in_thread: whether to write in a thread of its own.
        on_problem: called when `problem` changes.
    """

    def __init__(
        self, write: Write, *, in_thread: bool, on_problem: Callable[[str], None] | None = None
    ) -> None:
        self._write = write
        self._pool = ThreadPoolExecutor(1, "journal") if in_thread else None
        self._on_problem = on_problem
        self._records: list[Record] = []
        self._waiting: deque[Action] = deque()
        self._written_with: deque[Action] = deque()
        self._writing = False
        self._wanted = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self.problem = ""
        self.groups = 0
        self.records = 0

    @property
    def pending(self) -> bool:
        """Whether something is not durable yet."""
        return self._writing or bool(self._records)

    def append(self, records: Sequence[Record]) -> None:
        """Adds records to the group that gathers."""
        self._records.extend(records)
        self._idle.clear()
        if self._pool is not None:
            self._wanted.set()

    def after(self, action: Action) -> None:
        """Does something when everything appended so far is durable, at once if it is now.

        Actions are done in the order in which they were handed in.
        """
        if self._records:
            self._waiting.append(action)
        elif self._writing:
            self._written_with.append(action)
        else:
            action()

    def flush(self) -> None:
        """Writes now what has gathered, unless a thread does that."""
        # While actions are done the loop below, further up the stack, goes on with what they want.
        if self._pool is not None or self.problem or self._writing:
            return
        while self._records:
            records = self._take()
            try:
                self._write(records)
            except JournalFullError as error:
                self._failed(records, error)
                return
            self._done(len(records))

    async def run(self) -> None:
        """Writes groups, and tries again what failed, until it is cancelled."""
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            while self._records:
                records = self._take()
                try:
                    await self._write_aside(records)
                except JournalFullError as error:
                    self._failed(records, error)
                    await asyncio.sleep(RETRY_S)
                    continue
                self._done(len(records))

    async def _write_aside(self, records: list[Record]) -> None:
        if self._pool is None:
            self._write(records)
            return
        writing = asyncio.get_running_loop().run_in_executor(self._pool, self._write, records)
        try:
            await asyncio.shield(writing)
        except asyncio.CancelledError:
            # A group that has been begun is finished, so that nobody writes it a second time.
            await asyncio.wait([writing])
            if (error := writing.exception()) is None:
                self._done(len(records))
            elif isinstance(error, JournalFullError):
                self._failed(records, error)
            raise

    async def settled(self) -> None:
        """Returns when everything appended so far is durable and what waited is done."""
        while self.pending:
            await self._idle.wait()

    def close(self) -> None:
        """Writes the rest, as far as it can be written, and ends the thread.

        Raises:
            JournalError: the rest could not be written.
        """
        if self._pool is not None:
            self._pool.shutdown()
        if self._records:
            records, self._records = self._records, []
            self._write(records)

    def _take(self) -> list[Record]:
        assert not self._writing
        records, self._records = self._records, []
        self._written_with, self._waiting = self._waiting, deque()
        self._writing = True
        return records

    def _done(self, count: int) -> None:
        self.groups += 1
        self.records += count
        self._report("")
        # Whatever an action appends belongs to the next group; what it wants after nothing new
        # is done right away, behind the actions that are still here.
        while self._written_with:
            self._written_with.popleft()()
        self._writing = False
        if not self._records:
            self._idle.set()

    def _failed(self, records: list[Record], error: JournalFullError) -> None:
        self._records[:0] = records
        self._written_with.extend(self._waiting)
        self._waiting, self._written_with = self._written_with, deque()
        self._writing = False
        self._wanted.set()
        self._report(str(error))

    def _report(self, problem: str) -> None:
        if problem != self.problem:
            self.problem = problem
            if self._on_problem is not None:
                self._on_problem(problem)


def timed(write: Write, took: Callable[[float], None]) -> Write:
    """Returns a writer that tells after each success how long it took, in seconds."""

    def timed_write(records: Sequence[Record]) -> None:
        begin = time.perf_counter()
        write(records)
        took(time.perf_counter() - begin)

    return timed_write
