"""What is done to a journal at a start of the daemon: it is read, once, and made shorter."""

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

import structlog

from grms.site.engine.journal import Journal, JournalUnchangedError
from grms.site.facts.compaction import Reading
from grms.site.facts.settings import SiteSettings

COMPACTED_FROM: Final = 10_000
"""A journal of so many records is compacted."""

LOOKED_EVERY: Final = 4096
"""Records between two looks at how far the reading is."""

PROGRESS_S: Final = 2.0
"""How often it is told how far the reading is, seconds."""

Log = structlog.typing.FilteringBoundLogger


class StoppedError(Exception):
    """The daemon was told to stop before it had read its journal."""


class Progress:
    """Tells how far the reading of a journal is, and lets it be stopped.

    Args:
        log: where it is told.
        total: records that there are.
        stopped: whether to go on no further.
        tell: is told in words, too.
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
        """Takes note of so many records; seldom enough to call it for every few thousand.

        Raises:
            StoppedError: there is no need to go on.
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
    """Keeps Python from looking for garbage while very many things are made that all stay."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def read(journal: Journal, settings: SiteSettings, progress: Progress) -> Reading:
    """Returns what a journal's records make.

    Args:
        journal: of the site.
        settings: of the site.
        progress: is told how far it is.

    Raises:
        JournalError: the journal cannot be read.
        StoppedError: there is no need to go on.
    """
    reading = Reading(settings)
    for count, record in enumerate(journal.records(), start=1):
        reading.apply(record)
        if count % LOOKED_EVERY == 0:
            progress.look(count)
    return reading


def compact(
    journal: Journal, reading: Reading, log: Log, compacted_from: int = COMPACTED_FROM
) -> None:
    """Lets a journal forget what its site has forgotten, where that makes it half as long.

    Args:
        journal: of the site.
        reading: of all its records.
        log: where it is told.
        compacted_from: so many records make it worth looking.

    Raises:
        JournalError: the journal cannot be read, or the disk has failed; a full one is none.
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
