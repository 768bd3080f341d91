"""The journal of a site: its records in one append-only file (`grms.daemon.journal`).

A lost journal is replaced by a new one, whose epoch, the moment of its creation, tells partners so. A journal
restored from an older copy goes unnoticed here, and is noticed by partners alone that have had offers since
(docs/protocol.md): `renumber` has its numbers start over in any case.
"""

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Literal

from grms.daemon.journal import (
    JournalDamagedError,
    JournalError,
    JournalFile,
    JournalFullError,
    JournalKind,
    JournalLaterError,
    JournalTakenError,
    JournalUnchangedError,
    RecordCodec,
    Scan,
    reading,
)
from grms.site.model.records import KINDS, EpochBegun, Record
from grms.util.names import check_site_name

__all__ = [
    "KIND",
    "Journal",
    "JournalDamagedError",
    "JournalError",
    "JournalFullError",
    "JournalLaterError",
    "JournalTakenError",
    "JournalUnchangedError",
    "reading_of",
    "renumber",
]

KIND: Final = JournalKind(
    program="daemon",
    codec=RecordCodec(KINDS),
    kinds=frozenset(kind.__name__ for kind in KINDS),
    only_one="only one daemon may run for a site at a time",
    cure="move it away, put back a copy and have its numbers start over (grms journal renumber); where there is none, "
    "begin a new one, after looking into the batch system for jobs that run",
)
"""What the file is known by, and how its records stand there."""


class Journal(JournalFile[Record]):
    """An open journal of a site.

    `epoch` is the moment of its creation, nanoseconds since 1970. The file is created if missing, in an existing
    folder; `durability` is "power" or "process", as for `JournalFile`.

    Raises:
        JournalTakenError: another process has it.
        JournalDamagedError: the file is damaged, or no journal.
        JournalLaterError: a later version of this program has written it.
        JournalError: it is another site's, or cannot be opened.
    """

    def __init__(
        self, path: Path, site: str, *, durability: Literal["power", "process"] = "power"
    ) -> None:
        self.site = check_site_name(site)
        super().__init__(path, KIND, {"site": site}, durability=durability)
        epoch = self.note("epoch") or ""
        if not (epoch.isdecimal() and 1 <= int(epoch) < 2**63):
            self.close()
            raise KIND.damaged(self.path, f"its epoch is {epoch!r}")
        self.epoch = int(epoch)

    def _check_notes(self, notes: dict[str, str]) -> None:
        _check_site(self.path, notes, self.site)


def _check_site(path: Path, notes: dict[str, str], site: str) -> None:
    if notes.get("site") != site:
        raise JournalError(
            f"{path}: this is the journal of site {notes.get('site')!r}, not of {site!r}; name another file in the "
            "site's configuration"
        )


@contextmanager
def reading_of(path: Path, site: str) -> Iterator[Scan[Record]]:
    """Opens a site's journal for reading, while its daemon may run.

    Raises:
        JournalError: there is no such file, it is no journal of this site, or it cannot be read.
    """
    with reading(path, KIND) as scan:
        _check_site(path, scan.notes, site)
        yield scan


def renumber(path: Path) -> tuple[str, int]:
    """Begins a new epoch in a journal that was put back from a copy; returns its site and the epoch.

    Names that jobs have had in the batch system since the copy was made, and numbers that offers have had, are not given
    again. Whoever has an open job keeps its name.

    Raises:
        JournalError: there is no such file, a daemon has it, or it cannot be read or written.
    """
    with reading(path, KIND) as scan:
        site, known, last = scan.notes.get("site", ""), 0, 0.0
        for record in scan.records():
            # By the site's clock, which may be no clock of this machine.
            last = record.time if math.isfinite(record.time) else last
            known = record.epoch if isinstance(record, EpochBegun) else known
    with Journal(path, site) as journal:
        epoch = max(time.time_ns(), journal.epoch + 1, known + 1)
        journal.append([EpochBegun(last, epoch, "an operator has put a copy back")])
    return site, epoch
