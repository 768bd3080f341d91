"""Writes the usage of jobs that end while the daemon runs.

The ends of jobs are in the journal before; what is not written here when the process is killed is written by the next
one, at its start. So records are gathered for a second, and written aside.
"""

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Final

import structlog

from grms.daemon.journal import JournalError, JournalFullError
from grms.site.model.commands import Command
from grms.site.model.events import Event
from grms.site.model.usage import UsageRecord
from grms.site.runtime.event_loop import Engine
from grms.site.runtime.usage_log import UsageLog

GATHERED_S: Final = 1.0
"""How long records are gathered, seconds."""

RETRY_S: Final = 10.0
"""Pause after the disk was full, seconds."""


class UsageWriter:
    """Hears of jobs that end, and writes their records to a log."""

    def __init__(
        self, engine: Engine, log: UsageLog, out: structlog.typing.FilteringBoundLogger
    ) -> None:
        self.log = log
        self._engine = engine
        self._out = out
        self._ended: list[UsageRecord] = []  # perhaps not yet in the journal
        self._due: list[UsageRecord] = []
        self._wanted = asyncio.Event()
        engine.state.memory.on_usage = self._ended.append
        engine.on_event(self._seen)

    def _seen(self, _event: Event, _commands: Sequence[Command]) -> None:
        if self._ended:
            records = self._ended.copy()
            self._ended.clear()
            self._engine.after(partial(self._is_due, records))

    def _is_due(self, records: Sequence[UsageRecord]) -> None:
        self._due += records
        self._wanted.set()

    async def run(self) -> None:
        """Writes until it is cancelled."""
        while True:
            await self._wanted.wait()
            await asyncio.sleep(GATHERED_S)
            self._wanted.clear()
            records = self._due.copy()
            writing = asyncio.ensure_future(asyncio.to_thread(self._write, records))
            try:
                await asyncio.shield(writing)
            except asyncio.CancelledError:
                # What has been begun is finished, so that it is not written a second time.
                await asyncio.wait([writing])
                if writing.exception() is None:
                    del self._due[: len(records)]
                raise
            except JournalFullError as error:
                self._out.error("usage_cannot_be_written", problem=str(error))  # no fault of ours
                self._wanted.set()
                await asyncio.sleep(RETRY_S)
            except JournalError as error:
                self._engine.fail(error)
                return
            else:
                del self._due[: len(records)]

    def _write(self, records: Sequence[UsageRecord]) -> None:
        self.log.append(records, self._engine.clock.now())

    def close(self) -> None:
        """Writes the rest, as far as it can be written; the next start does what is left."""
        try:
            if self._due and self._engine.failure is None:
                self._write(self._due)
                self._due = []
        except JournalError as error:
            self._out.error("usage_cannot_be_written", problem=str(error))  # same
        finally:
            self.log.close()
