"""The journal of the broker: its records in one append-only file (`grms.daemon.journal`).

Obsolete records are dropped: a plan with the next one, a workflow's when it is forgotten, a measured run when
enough have come after it. So the
file grows with open work rather than with time.

Never restore a journal from an older copy: the broker would reuse names of bookings, and sites
would answer for the first. Begin a new one instead.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import structlog

from broker.model.estimates import LastRuns
from broker.runtime.codec import BrokerCodec
from broker.scheduler.records import (
    KINDS,
    BookingRecord,
    Counted,
    PlanAdopted,
    Record,
    RunMeasured,
    TaskFixed,
    WorkflowForgotten,
)
from grms.daemon.journal import (
    JournalDamagedError,
    JournalError,
    JournalFile,
    JournalFullError,
    JournalKind,
    JournalTakenError,
    JournalUnchangedError,
)

__all__ = [
    "KIND",
    "Journal",
    "JournalDamagedError",
    "JournalError",
    "JournalFullError",
    "JournalTakenError",
    "needed",
]

_log = structlog.get_logger()

COMPACTED_FROM: Final = 16 << 20
"""A file of this size, in bytes, is compacted, and again whenever it has doubled since."""

REPLACED: Final = (PlanAdopted, Counted)
"""Kinds of which only the last record counts."""

KIND: Final = JournalKind(
    program="broker",
    codec=BrokerCodec(),
    kinds=frozenset(kind.__name__ for kind in KINDS),
    only_one="only one broker may use it",
    cure="move it away and begin a new one (never an older copy of it), after looking at the sites for tasks that run",
)
"""What the file is known by, and how its records stand there."""


class Journal(JournalFile[Record]):
    """An open journal of the broker.

    Attributes:
        epoch: begins the names of bookings; no two journals have the same.

    Args:
        path: of the file; made if it does not exist, in an existing folder.

    Raises:
        JournalError: another process has it, it is damaged or no journal, it is of a later version,
            or it cannot be opened.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path, KIND, {})
        self.epoch = self.note("epoch") or ""
        self._compact_at = COMPACTED_FROM

    def append(self, records: Iterable[Record]) -> None:
        """Appends records durably; a file that has grown much is compacted first."""
        if self.size_bytes >= self._compact_at:
            self._compact()
        super().append(records)

    def records(self, kinds: Iterable[type[Record]] | None = None) -> Iterator[Record]:
        """Yields the records, oldest first, without obsolete ones."""
        yield from needed(super().records(kinds))

    def _compact(self) -> None:
        try:
            self.replace(self.records())
        except (JournalUnchangedError, JournalDamagedError) as error:
            # What is appended may have room, and what was there is as it was.
            _log.warning("journal_not_compacted", problem=str(error))
        self._compact_at = max(COMPACTED_FROM, 2 * self.size_bytes)


def needed(records: Iterable[Record]) -> list[Record]:
    """Returns the records that still count, oldest first."""
    some = list(records)
    forgotten = {each.workflow_id for each in some if isinstance(each, WorkflowForgotten)}
    last: dict[type[Record], int] = {
        type(each): at for at, each in enumerate(some) if isinstance(each, REPLACED)
    }
    gone: set[str] = set()  # bookings of forgotten workflows
    kept: list[Record] = []
    measured = _still_known(some)
    for at, each in enumerate(some):
        workflow = getattr(each, "workflow_id", None)
        if isinstance(each, TaskFixed) and workflow in forgotten:
            gone.add(each.booking)
        if workflow in forgotten or (isinstance(each, BookingRecord) and each.booking in gone):
            continue
        if isinstance(each, RunMeasured) and at not in measured:
            continue
        if last.get(type(each), at) == at:
            kept.append(each)
    return kept


def _still_known(records: list[Record]) -> frozenset[int]:
    # Places of the runs from which estimates come.
    last = LastRuns[int]()
    for at, each in enumerate(records):
        if isinstance(each, RunMeasured):
            last.add(each.program, at)
    return frozenset(at for places in last.by_program.values() for at in places)
