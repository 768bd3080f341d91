"""Reads a site's journal beside its daemon, for what it says of ended jobs.

The file is opened for reading alone. A daemon may have it open: in write-ahead mode who reads holds up
nobody who writes, and sees one moment of the file from the first row to the last.
"""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Final

from grms.site.care.accounts import Accounts
from grms.site.engine.journal import JournalError, check_to_read
from grms.site.engine.upkeep import without_collection
from grms.site.facts.codec import Row, decode

LOOKED_EVERY: Final = 1_000
"""Records between two calls of a progress function."""

_ROWS: Final = (
    "SELECT number, time, kind, body, payload IS NOT NULL FROM records "
    "WHERE instr(?, ' ' || kind || ' ') ORDER BY number"
)
"""Records of some kinds, whose names stand between spaces."""


def read_accounts(
    path: Path, site: str, progress: Callable[[int], None] = lambda _: None
) -> Accounts:
    """Returns what the journal of a site says of jobs that have ended.

    What runs is not read, and checksums are not looked at: the daemon does that at its start.

    Args:
        path: of the journal.
        site: whose it is to be.
        progress: called now and then with the number of records that were taken.

    Raises:
        JournalError: there is no such file, it is no journal of this site, or it cannot be read.
    """
    if not path.is_file():
        raise JournalError(f"{path}: there is no such journal; has the site's daemon ever run?")
    accounts = Accounts()
    kinds = f" {' '.join(accounts.kinds)} "
    try:
        with (
            without_collection(),
            closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as connection,
        ):
            connection.execute("BEGIN")
            check_to_read(connection, path, site)
            for count, (number, moment, kind, body, runs) in enumerate(
                connection.execute(_ROWS, (kinds,)), start=1
            ):
                try:
                    accounts.take(decode(Row(moment, kind, body, b"" if runs else None)))
                except ValueError as error:
                    raise JournalError(f"{path}: record {number}: {error}") from error
                if count % LOOKED_EVERY == 0:
                    progress(count)
    except sqlite3.Error as error:
        raise JournalError(f"{path}: cannot be read: {error}") from error
    return accounts
