"""Reading and compaction of a journal at the start of the daemon."""

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

import structlog

from grms.site.model.compaction import Reading
from grms.site.model.settings import SiteSettings
from grms.site.model.usage import UsageRecord
from grms.site.runtime.journal import Journal, JournalUnchangedError

COMPACTED_FROM: Final = 10_000
"""A journal of so many records is compacted."""

LOOKED_EVERY: Final = 4096
"""Records between two looks at how far the reading is."""

PROGRESS_S: Final = 2.0
"""How often it is told how far the reading is, seconds."""

Log = structlog.typing.FilteringBoundLogger


class StoppedError(Exception):
    """The daemon was stopped before it had read its journal."""


class Progress:
    """Logs the progress of reading a journal, and lets it be stopped.

    `total` is the number of records; `stopped` returns whether to stop; `tell` also gets the progress in words.
    """

    def __init__(
        self,
        log: Log,
        total: int,
        stopped: Callable[[], bool] = lambda: False,
        tell: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._log = log
        self._total = total
        self._stopped = stopped
        self._tell = tell
        self._begin = self._told = time.monotonic()

    def look(self, count: int) -> None:
        """Notes the number of records read; called every few thousand records.

        Raises:
            StoppedError: the daemon is to stop.
        """
        if self._stopped():
            raise StoppedError
        now = time.monotonic()
        if now - self._told < PROGRESS_S:
            return
        self._told = now
        percent = 100 * count // max(1, self._total)
        self._log.info("reading_journal", records=count, of=self._total, percent=percent)
        self._tell(f"reading the journal: {count} of {self._total} records, {percent} %")


@contextmanager
def without_collection() -> Iterator[None]:
    """Suspends garbage collection while very many permanent objects are created."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def read(
    journal: Journal,
    settings: SiteSettings,
    progress: Progress,
    on_usage: Callable[[UsageRecord], None] | None = None,
) -> Reading:
    """Reads a journal's records; `on_usage` is given the record of each job that has ended.

    Raises:
        JournalError: the journal cannot be read.
        StoppedError: the daemon is to stop.
    """
    reading = Reading(settings)
    reading.memory.on_usage = on_usage
    for count, record in enumerate(journal.records(), start=1):
        reading.apply(record)
        if count % LOOKED_EVERY == 0:
            progress.look(count)
    reading.memory.on_usage = None
    return reading


def compact(
    journal: Journal, reading: Reading, log: Log, compacted_from: int = COMPACTED_FROM
) -> None:
    """Compacts a journal, if that halves its length at least.

    It is tried from `compacted_from` records on.

    Raises:
        JournalError: the journal cannot be read, or the disk has failed; a full disk is no error.
    """
    before = journal.count
    if before < compacted_from or 2 * reading.needed_about() > before:
        return
    records = reading.compacted(journal.records())
    if records is None or 2 * len(records) > before:
        return
    try:
        journal.replace(records)
    except JournalUnchangedError as error:
        log.warning("journal_not_compacted", problem=str(error))
    else:
        log.info("journal_compacted", before=before, after=journal.count)
