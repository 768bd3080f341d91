"""What is done to a journal at a start of the daemon, before it is read."""

from typing import Final

import structlog

from grms.site.compaction import compacted
from grms.site.journal import Journal, JournalFullError
from grms.site.settings import SiteSettings

COMPACTED_FROM: Final = 10_000
"""Records from which on a journal is compacted."""


def compact(
    journal: Journal,
    settings: SiteSettings,
    log: structlog.typing.FilteringBoundLogger,
    compacted_from: int = COMPACTED_FROM,
) -> None:
    """Lets a journal forget what its site has forgotten, where that makes it half as long.

    Args:
        journal: of the site.
        settings: of the site.
        log: where it is told.
        compacted_from: records from which on it is worth looking.

    Raises:
        JournalError: the journal cannot be read, or the disk has failed; a full one is none.
    """
    before = journal.count
    if before < compacted_from:
        return
    records = compacted(settings, journal.records)
    if records is None or 2 * len(records) > before:
        return
    try:
        journal.replace(records)
    except JournalFullError as error:
        log.warning("journal_not_compacted", problem=str(error))
    else:
        log.info("journal_compacted", before=before, after=journal.count)
