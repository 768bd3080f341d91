"""What the journal holds of the time before a daemon's start, for its dashboard.

The file is read beside the daemon, in small pieces, so that the daemon's own writing is not held up.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from grms.site.model.records import Record
from grms.site.runtime.journal import reading_of

RECORDS_MAX: Final = 100_000
"""The last ones are read."""

RECORDS_AT_ONCE: Final = 500
"""Approximate size of a piece."""


def past_records(
    path: Path, site: str, last: int, most: int = RECORDS_MAX
) -> Iterator[list[Record]]:
    """Yields the last `most` records of a journal up to number `last` in pieces, oldest first.

    A daemon may have the journal open.

    Raises:
        JournalError: the file cannot be read.
    """
    first, piece = max(1, last - most + 1), list[Record]()
    with reading_of(path, site) as scan:
        for batch in scan.batches():
            begin = scan.count - batch.count + 1
            if begin > last:
                break
            if scan.count < first:
                continue
            piece += scan.decoded(batch)[max(0, first - begin) : last + 1 - begin]
            if len(piece) >= RECORDS_AT_ONCE:
                yield piece
                piece = []
    if piece:
        yield piece
