"""The journal: the broker's records in one SQLite file.

The broker may forget everything but this. `append` returns when its records are on the disk: the
file is in write-ahead mode and every commit is synced (`synchronous=FULL`). What has no meaning any
more goes: a plan with the next one, a workflow's records when it is forgotten; so the file grows
with what is open and not with time.

Each row carries a checksum, so that a changed row is noticed at the next start. A journal must
never be put back from an older copy: the broker would give names of bookings a second time, and
sites would answer for the first. Begin a new one instead.
"""

import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from broker.codec import Row, decode, encode
from broker.records import BookingRecord, Record, TaskFixed, WorkflowForgotten
from grms.journal import (
    JournalDamagedError,
    JournalError,
    JournalFile,
    JournalFullError,
    JournalKind,
    JournalTakenError,
)

__all__ = [
    "SCHEMA_VERSION",
    "Journal",
    "JournalDamagedError",
    "JournalError",
    "JournalFullError",
    "JournalTakenError",
]

SCHEMA_VERSION: Final = 1
"""Of the tables and of the records in them; a later one may not be readable by this program."""

REPLACED = frozenset({"PlanAdopted", "Counted"})
"""Kinds of which only the last record counts."""

_SCHEMA = """
CREATE TABLE records (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    time REAL NOT NULL,
    kind TEXT NOT NULL,
    workflow TEXT NOT NULL,
    body TEXT NOT NULL,
    checksum INTEGER NOT NULL
);
CREATE INDEX by_workflow ON records (workflow);
"""
_KIND = JournalKind(
    application_id=0x48414E42,  # "HANB"
    version=SCHEMA_VERSION,
    schema=_SCHEMA,
    tables=frozenset({"records"}),
    program="broker",
    only_one="only one broker may use it",
    look="looking at the sites for tasks that run",
)


class Journal(JournalFile):
    """An open journal; nobody else can open it meanwhile.

    Attributes:
        path: of the file.
        epoch: begins the names of bookings; no two journals have the same.

    Args:
        path: of the file; made where it does not exist, in an existing folder.

    Raises:
        JournalError: another process has it, it is damaged or no journal, it is of a later
            version, or it cannot be opened.
    """

    def __init__(self, path: Path) -> None:
        self._workflows: dict[str, str] = {}
        super().__init__(path, _KIND, {})
        self.epoch = self.note("epoch") or ""

    def append(self, records: Iterable[Record]) -> None:
        """Puts records at the end; when it returns they are durable, all of them.

        It may be called in any thread, but not in two at once.

        Raises:
            JournalFullError: the disk is full. Nothing was appended.
            JournalError: the disk has failed otherwise. What was appended is not known.
        """
        with self._transaction():
            for record in records:
                self._write(record)

    def _write(self, record: Record) -> None:
        execute = self._connection.execute
        workflow = self._owner(record)
        if isinstance(record, WorkflowForgotten):
            execute("DELETE FROM records WHERE workflow = ?", (workflow,))
            self._workflows = {b: w for b, w in self._workflows.items() if w != workflow}
            return
        row = encode(record)
        if row.kind in REPLACED:
            execute("DELETE FROM records WHERE workflow = '' AND kind = ?", (row.kind,))
        execute(
            "INSERT INTO records (time, kind, workflow, body, checksum) VALUES (?, ?, ?, ?, ?)",
            (*row[:2], workflow, row.body, _checksum(row)),
        )

    def _owner(self, record: Record) -> str:
        if isinstance(record, TaskFixed):
            self._workflows[record.booking] = record.workflow_id
        if isinstance(record, BookingRecord):
            return self._workflows[record.booking]
        return str(getattr(record, "workflow_id", ""))

    def records(self) -> Iterator[Record]:
        """Yields all records, oldest first.

        Raises:
            JournalError: a row is not what was written; the text names it.
        """
        with self._explaining():
            rows = self._connection.execute(
                "SELECT number, time, kind, body, checksum FROM records ORDER BY number"
            )
            for number, moment, kind, body, written in rows:
                row = Row(moment, kind, body)
                if _checksum(row) != written:
                    raise self._damaged(f"record {number} is not what was written")
                try:
                    record = decode(row)
                except ValueError as error:
                    raise self._damaged(f"record {number}: {error}") from error
                if isinstance(record, TaskFixed):
                    self._workflows[record.booking] = record.workflow_id
                yield record


def _checksum(row: Row) -> int:
    return zlib.crc32(f"{row.time!r} {row.kind} {row.body}".encode())
