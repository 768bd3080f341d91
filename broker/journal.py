"""The journal: the broker's records in one SQLite file.

The broker may forget everything but this. `append` returns when its records are on the disk: the
file is in write-ahead mode and every commit is synced (`synchronous=FULL`). What has no meaning any
more goes: a plan with the next one, a workflow's records when it is forgotten; so the file grows
with what is open and not with time.

Each row carries a checksum, so that a changed row is noticed at the next start. A journal must
never be put back from an older copy: the broker would give names of bookings a second time, and
sites would answer for the first. Begin a new one instead.
"""

import fcntl
import sqlite3
import time
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from broker.codec import Row, decode, encode
from broker.errors import BrokerError
from broker.records import BookingRecord, Record, TaskFixed, WorkflowForgotten

SCHEMA_VERSION = 1
"""Of the tables and of the records in them; a later one may not be readable by this program."""

REPLACED = frozenset({"PlanAdopted", "Counted"})
"""Kinds of which only the last record counts."""

_APPLICATION_ID = 0x48414E42  # "HANB": what `file` and SQLite can tell such a file by
_BUSY_S = 5.0
_SCHEMA = """
CREATE TABLE notes (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
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


class JournalError(BrokerError):
    """The journal cannot be used; the text says which file, what is wrong, and what to do."""


class JournalFullError(JournalError):
    """There is no room on the disk. What was to be appended is not in the journal."""


class Journal:
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
        self.path = path
        self.epoch = ""
        self._workflows: dict[str, str] = {}
        self._lock = self._take()
        try:
            self._connection = self._open()
            try:
                self._prepare()
            except BaseException:
                self._connection.close()
                raise
        except BaseException:
            self._lock.close()
            raise

    def _take(self) -> IO[bytes]:
        # A lock beside the file goes with the process, however that ends.
        beside = self.path.with_name(self.path.name + ".lock")
        try:
            lock = beside.open("ab")
        except OSError as error:
            raise JournalError(
                f"{beside}: {error.strerror}; the journal's folder must exist and be writable"
            ) from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            lock.close()
            raise JournalError(
                f"{self.path}: another process has this journal; only one broker may use it"
            ) from error
        return lock

    def _open(self) -> sqlite3.Connection:
        try:
            connection = sqlite3.connect(
                self.path, timeout=_BUSY_S, isolation_level=None, check_same_thread=False
            )
            try:
                connection.execute("PRAGMA journal_mode=WAL")
                connection.execute("PRAGMA synchronous=FULL")
            except BaseException:
                connection.close()
                raise
        except sqlite3.Error as error:
            raise self._explained(error) from error
        return connection

    def _prepare(self) -> None:
        try:
            if self._pragma("application_id") == 0 and not self._tables():
                self._create()
            if self._pragma("application_id") != _APPLICATION_ID:
                raise self._damaged("it is a database, but no journal of a broker")
            version = self._pragma("user_version")
            if version != SCHEMA_VERSION:
                raise JournalError(
                    f"{self.path}: this journal is of version {version}, and this program writes "
                    f"version {SCHEMA_VERSION}; use the program that wrote it, or a later one"
                )
            found = self._connection.execute("PRAGMA quick_check(1)").fetchone()[0]
            if found != "ok":
                raise self._damaged(str(found))
            row = self._connection.execute("SELECT value FROM notes WHERE key = 'epoch'").fetchone()
        except sqlite3.Error as error:
            raise self._explained(error) from error
        if row is None:
            raise self._damaged("it has no epoch")
        self.epoch = str(row[0])

    def _create(self) -> None:
        execute = self._connection.execute
        execute("BEGIN IMMEDIATE")
        for statement in _SCHEMA.split(";"):
            execute(statement)
        execute("INSERT INTO notes VALUES ('epoch', ?)", (f"{time.time_ns():x}",))
        execute(f"PRAGMA user_version={SCHEMA_VERSION}")
        execute(f"PRAGMA application_id={_APPLICATION_ID}")
        execute("COMMIT")

    def _pragma(self, name: str) -> int:
        return int(self._connection.execute(f"PRAGMA {name}").fetchone()[0])

    def _tables(self) -> set[str]:
        rows = self._connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
        return {name for (name,) in rows}

    # --- use -----------------------------------------------------------------------------------

    def append(self, records: Iterable[Record]) -> None:
        """Puts records at the end; when it returns they are durable, all of them.

        It may be called in any thread, but not in two at once.

        Raises:
            JournalFullError: the disk is full. Nothing was appended.
            JournalError: the disk has failed otherwise. What was appended is not known.
        """
        connection = self._connection
        try:
            connection.execute("BEGIN IMMEDIATE")
            try:
                for record in records:
                    self._write(record)
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
        except sqlite3.Error as error:
            raise self._explained(error) from error

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
        try:
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
        except sqlite3.Error as error:
            raise self._explained(error) from error

    def close(self) -> None:
        """Ends the use of the journal; twice is nothing."""
        try:
            self._connection.close()
        finally:
            self._lock.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # --- errors --------------------------------------------------------------------------------

    def _damaged(self, what: str) -> JournalError:
        return JournalError(
            f"{self.path}: this journal is damaged: {what}; move it away and begin a new one "
            f"(never an older copy of it), after looking at the sites for tasks that run"
        )

    def _explained(self, error: sqlite3.Error) -> JournalError:
        code = int(getattr(error, "sqlite_errorcode", 0)) & 0xFF
        if code == sqlite3.SQLITE_FULL:
            return JournalFullError(f"{self.path}: the disk is full; make room")
        if code in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}:
            return self._damaged(str(error))
        return JournalError(
            f"{self.path}: {error}; check that the folder and the disk are as they should be, "
            f"then start the broker again"
        )


def _checksum(row: Row) -> int:
    return zlib.crc32(f"{row.time!r} {row.kind} {row.body}".encode())
