"""What the journal holds of the time before a daemon's start, for its dashboard.

The file is read beside the daemon, in small pieces, so that the daemon's own writing is not held up.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

from grms.site.facts.codec import Row, decode
from grms.site.facts.records import Record

RECORDS_MAX: Final = 100_000
"""Most records that are read: the last ones."""

RECORDS_AT_ONCE: Final = 500
"""Records of one piece."""


def past_records(path: Path, last: int, most: int = RECORDS_MAX) -> Iterator[list[Record]]:
    """Yields the records of a journal in pieces, oldest first, without their payloads.

    Args:
        path: of the journal, which a daemon may have open.
        last: number of the last record that is wanted.
        most: so many at most, the last ones.

    Raises:
        sqlite3.Error: the file cannot be read.
        ValueError: a record is none.
    """
    address = f"file:{path.as_posix()}?mode=ro"
    with closing(sqlite3.connect(address, uri=True, check_same_thread=False)) as connection:
        begin = max(1, last - most + 1)
        while begin <= last:
            end = min(last, begin + RECORDS_AT_ONCE - 1)
            rows = connection.execute(
                "SELECT time, kind, body, payload IS NOT NULL FROM records "
                "WHERE number BETWEEN ? AND ? ORDER BY number",
                (begin, end),
            ).fetchall()
            yield [
                decode(Row(moment, kind, body, b"" if runs else None))
                for moment, kind, body, runs in rows
            ]
            begin = end + 1
