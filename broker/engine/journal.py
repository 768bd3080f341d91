"""The journal: the broker's records in one SQLite file.

The broker may forget everything but this. `append` returns when its records are on the disk: the
file is in write-ahead mode and every commit is synced (`synchronous=FULL`). What has no meaning any
more goes: a plan with the next one, a workflow's records when it is forgotten; so the file grows
with what is open and not with time.

Each row carries a checksum over itself and its number, and beside the rows stands the tally of all of
them, changed in the same commit: so a changed, missing or foreign row is noticed at the next start.
(The rows of a site's journal are a chain instead. Here rows go from the middle, which breaks a
chain.) A journal must never be put back from an older copy: the broker would give names of bookings a second time, and
sites would answer for the first. Begin a new one instead.
"""

import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from broker.core.codec import Row, decode, encode
from broker.core.records import BookingRecord, Record, TaskFixed, WorkflowForgotten
from grms.kit.journal import (
    JournalDamagedError,
    JournalError,
    JournalFile,
    JournalFullError,
    JournalKind,
    JournalTakenError,
    row_checksum,
)

__all__ = [
    "SCHEMA_VERSION",
    "Journal",
    "JournalDamagedError",
    "JournalError",
    "JournalFullError",
    "JournalTakenError",
]

SCHEMA_VERSION: Final = 2
"""Of the tables and of the records in them; a later one may not be readable by this program."""

UNTALLIED_VERSION: Final = 1
"""Of a journal whose rows have checksums without their numbers, and no tally; opening it gives both."""

TALLY: Final = "tally"
"""The note that says how many rows there are, and the sum of their checksums."""

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
    cure="move it away and begin a new one (never an older copy of it), after looking at the sites for tasks that run",
    versions_read=frozenset({UNTALLIED_VERSION}),
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
        super().__init__(path, _KIND, {TALLY: str(_Tally())})
        self.epoch = self.note("epoch") or ""

    def _prepare(self) -> None:
        super()._prepare()
        if self._pragma("user_version") == UNTALLIED_VERSION:
            self._add_tally()

    def _add_tally(self) -> None:
        with self._transaction() as connection:
            tally = _Tally()
            rows = connection.execute("SELECT number, time, kind, body, checksum FROM records")
            for number, *row, written in rows.fetchall():
                if _untallied_checksum(Row(*row)) != written:
                    raise self.damaged(f"record {number} is not what was written")
                checksum = row_checksum(0, number, row)
                tally = tally.plus(1, checksum)
                connection.execute(
                    "UPDATE records SET checksum = ? WHERE number = ?", (checksum, number)
                )
            connection.execute("INSERT INTO notes VALUES (?, ?)", (TALLY, str(tally)))
            connection.execute(f"PRAGMA user_version={SCHEMA_VERSION}")

    def append(self, records: Iterable[Record]) -> None:
        """Puts records at the end; when it returns they are durable, all of them.

        It may be called in any thread, but not in two at once.

        Raises:
            JournalFullError: the disk is full. Nothing was appended.
            JournalError: the disk has failed otherwise. What was appended is not known.
        """
        with self._transaction() as connection:
            tally = self._tally()
            # SQLite's own count: no number is given twice, also of a row that is gone.
            last = connection.execute("SELECT seq FROM sqlite_sequence").fetchone()
            number = last[0] if last else 0
            for record in records:
                tally = self._make_room(record, tally)
                if not isinstance(record, WorkflowForgotten):
                    number += 1
                    row = encode(record)
                    checksum = row_checksum(0, number, row)
                    connection.execute(
                        "INSERT INTO records VALUES (?, ?, ?, ?, ?, ?)",
                        (number, *row[:2], self._owner(record), row.body, checksum),
                    )
                    tally = tally.plus(1, checksum)
            connection.execute("UPDATE notes SET value = ? WHERE key = ?", (str(tally), TALLY))

    def _make_room(self, record: Record, tally: "_Tally") -> "_Tally":
        """Deletes what has no meaning any more with this record; returns the tally of the rest."""
        execute = self._connection.execute
        kind = type(record).__name__
        if isinstance(record, WorkflowForgotten):
            workflow = record.workflow_id
            where, values = "workflow = ?", (workflow,)
            self._workflows = {b: w for b, w in self._workflows.items() if w != workflow}
        elif kind in REPLACED:
            where, values = "workflow = '' AND kind = ?", (kind,)
        else:
            return tally
        gone = execute(
            f"DELETE FROM records WHERE {where} RETURNING checksum",  # noqa: S608  # one of the two above
            values,
        ).fetchall()
        return tally.plus(-len(gone), -sum(checksum for (checksum,) in gone))

    def _tally(self) -> "_Tally":
        return _Tally(*map(int, (self.note(TALLY) or "-1 0").split()))

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
            tally, found = self._tally(), _Tally()
            rows = self._connection.execute(
                "SELECT number, time, kind, body, checksum FROM records ORDER BY number"
            )
            for number, moment, kind, body, written in rows:
                row = Row(moment, kind, body)
                found = found.plus(1, written)
                if row_checksum(0, number, row) != written:
                    raise self.damaged(f"record {number} is not what was written")
                try:
                    record = decode(row)
                except ValueError as error:
                    raise self.later(f"record {number}: {error}") from error
                if isinstance(record, TaskFixed):
                    self._workflows[record.booking] = record.workflow_id
                yield record
            if found != tally:
                raise self.damaged(
                    f"it has {found.rows} records, and they are not the {tally.rows} that were written"
                )


class _Tally(NamedTuple):
    # Of all rows: how many, and the sum of their checksums.
    rows: int = 0
    checksums: int = 0

    def plus(self, rows: int, checksums: int) -> "_Tally":
        return _Tally(self.rows + rows, self.checksums + checksums)

    def __str__(self) -> str:
        return f"{self.rows} {self.checksums}"


def _untallied_checksum(row: Row) -> int:
    return zlib.crc32(f"{row.time!r} {row.kind} {row.body}".encode())
