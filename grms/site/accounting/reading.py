"""Reads ended jobs from a site's journal while its daemon runs."""

from collections.abc import Callable
from pathlib import Path
from typing import Final

from grms.site.accounting.accounts import Accounts
from grms.site.runtime.journal import JournalError, reading_of
from grms.site.runtime.recovery import without_collection

LOOKED_EVERY: Final = 1_000
"""Records between two progress calls."""


def read_accounts(
    path: Path, site: str, progress: Callable[[int], None] = lambda _: None
) -> Accounts:
    """Returns what the journal of a site says of ended jobs; `progress` gets the records read.

    Raises:
        JournalError: the file is missing, unreadable, or no journal of this site.
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
