"""Reads a site's journal beside its daemon, for what it says of ended jobs."""

from collections.abc import Callable
from pathlib import Path
from typing import Final

from grms.site.care.accounts import Accounts
from grms.site.engine.journal import JournalError, reading_of
from grms.site.engine.upkeep import without_collection

LOOKED_EVERY: Final = 1_000
"""Records between two calls of a progress function."""


def read_accounts(
    path: Path, site: str, progress: Callable[[int], None] = lambda _: None
) -> Accounts:
    """Returns what the journal of a site says of jobs that have ended.

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
    with without_collection(), reading_of(path, site) as scan:
        for count, record in enumerate(scan.records(accounts.kinds), start=1):
            accounts.take(record)
            if count % LOOKED_EVERY == 0:
                progress(count)
    return accounts
