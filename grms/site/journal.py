"""The journal: a site's records in one SQLite file.

A site may forget everything but this. `append` returns when its records are on the disk: the file
is in write-ahead mode and every commit is synced (`synchronous=FULL`). One commit takes some
milliseconds on an ordinary disk however many records it has, so the daemon puts the records of
all events that have come meanwhile into one.

`durability="process"` leaves the sync out: what was appended survives the end of the process in
any way, `kill -9` as well, but not a power failure. It is for replays, which a power failure ends
anyway.

Each row carries a checksum over itself and the row before, so that a changed, missing or foreign
row is noticed at the next start. A journal must never be put back from an older copy: the site
would give numbers of offers a second time (docs/protocol.md). Begin a new one instead; its epoch,
the moment of its creation, tells partners that it is another.
"""

import fcntl
import sqlite3
import time
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import IO, Literal, Self

from grms.names import check_site_name
from grms.site.codec import Row, decode, encode
from grms.site.records import Record

SCHEMA_VERSION = 1
"""Of the tables and of the records in them; a later one may not be readable by this program."""

_APPLICATION_ID = 0x48414E53  # "HANS": what `file` and SQLite can tell such a file by
_BUSY_S = 5.0

_SCHEMA = """
CREATE TABLE notes (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE records (
    number INTEGER PRIMARY KEY,
    time REAL NOT NULL,
    kind TEXT NOT NULL,
    body TEXT NOT NULL,
    payload BLOB,
    checksum INTEGER NOT NULL
);
"""


class JournalError(Exception):
    """The journal cannot be used; the text says which file, what is wrong, and what to do."""


class JournalDamagedError(JournalError):
    """The file is not what this program has written."""


class JournalTakenError(JournalError):
    """Another process has the journal."""


class JournalFullError(JournalError):
    """There is no room on the disk. What was to be appended is not in the journal."""


class Journal:
    """An open journal; nobody else can open it meanwhile, but read it.

    After a `JournalFullError` of `append` none of the records is in the journal: whatever waits for
    them must not be done before they have been appended again, in order. After any other
    `JournalError` the process has to end: its state is ahead of a journal that nobody knows.

    Args:
        path: of the file; made where it does not exist, in an existing folder.
        site: whose journal it is.
        durability: "power" or "process"; see the module.

    Raises:
        JournalTakenError: another process has it.
        JournalDamagedError: the file is damaged, or no journal.
        JournalError: it is another site's, of a later version, or cannot be opened.
    """

    def __init__(
        self, path: Path, site: str, *, durability: Literal["power", "process"] = "power"
    ) -> None:
        check_site_name(site)
        self.path = path
        self.site = site
        self._lock = self._take()
        try:
            self._connection = self._open(durability)
            try:
                self._prepare()
            except BaseException:
                self._connection.close()
                raise
        except BaseException:
            self._lock.close()
            raise

    # --- opening -------------------------------------------------------------------------------

    def _take(self) -> IO[bytes]:
        # A lock beside the file: it leaves the file readable for whoever looks at it, and goes
        # with the process, however that ends.
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
            raise JournalTakenError(
                f"{self.path}: another process has this journal; only one daemon may run for a "
                f"site at a time"
            ) from error
        return lock

    def _open(self, durability: str) -> sqlite3.Connection:
        try:
            connection = sqlite3.connect(
                self.path, timeout=_BUSY_S, isolation_level=None, check_same_thread=False
            )
            try:
                connection.execute("PRAGMA journal_mode=WAL")
                level = {"power": "FULL", "process": "NORMAL"}[durability]
                connection.execute(f"PRAGMA synchronous={level}")
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
            self._check_header()
            found = self._connection.execute("PRAGMA quick_check(1)").fetchone()[0]
            if found != "ok":
                raise self._damaged(str(found))
            last = self._connection.execute(
                "SELECT number, checksum FROM records ORDER BY number DESC LIMIT 1"
            ).fetchone()
        except sqlite3.Error as error:
            raise self._explained(error) from error
        self._count = int(last[0]) if last else 0
        self._checksum = int(last[1]) if last else 0

    def _create(self) -> None:
        execute = self._connection.execute
        execute("BEGIN IMMEDIATE")
        for statement in _SCHEMA.split(";"):
            execute(statement)
        execute(
            "INSERT INTO notes VALUES ('site', ?), ('epoch', ?)",
            (self.site, str(time.time_ns())),
        )
        execute(f"PRAGMA user_version={SCHEMA_VERSION}")
        execute(f"PRAGMA application_id={_APPLICATION_ID}")
        execute("COMMIT")

    def _check_header(self) -> None:
        if self._pragma("application_id") != _APPLICATION_ID or self._tables() != {
            "notes",
            "records",
        }:
            raise self._damaged("it is a database, but no journal")
        version = self._pragma("user_version")
        if version != SCHEMA_VERSION:
            raise JournalError(
                f"{self.path}: this journal is of version {version}, and this program writes "
                f"version {SCHEMA_VERSION}; use the program that wrote it, or a later one"
            )
        site = self.note("site")
        if site != self.site:
            raise JournalError(
                f"{self.path}: this is the journal of site {site!r}, not of {self.site!r}; name "
                f"another file in the site's configuration"
            )
        self.epoch = int(self.note("epoch") or 0)
        if self.epoch < 1:
            raise self._damaged("it has no epoch")

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
            JournalFullError: the disk is full. Nothing was appended; it may be tried again.
            JournalError: the disk has failed otherwise. What was appended is not known.
        """
        number, checksum = self._count, self._checksum
        rows = []
        for record in records:
            row = encode(record)
            number += 1
            checksum = _checksum(checksum, number, row)
            rows.append((number, *row, checksum))
        if not rows:
            return
        connection = self._connection
        try:
            connection.execute("BEGIN IMMEDIATE")
            try:
                connection.executemany("INSERT INTO records VALUES (?, ?, ?, ?, ?, ?)", rows)
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
        except sqlite3.Error as error:
            raise self._explained(error) from error
        self._count, self._checksum = number, checksum

    def records(self) -> Iterator[Record]:
        """Yields all records, oldest first.

        Raises:
            JournalDamagedError: a row is missing or not what was written; the text names it.
        """
        expected, checksum = 1, 0
        try:
            rows = self._connection.execute("SELECT * FROM records ORDER BY number")
            for number, moment, kind, body, payload, written in rows:
                row = Row(moment, kind, body, payload)
                if number != expected:
                    raise self._damaged(f"record {expected} is missing")
                checksum = _checksum(checksum, number, row)
                if checksum != written:
                    raise self._damaged(f"record {number} is not what was written")
                try:
                    yield decode(row)
                except ValueError as error:
                    raise self._damaged(f"record {number}: {error}") from error
                expected += 1
        except sqlite3.Error as error:
            raise self._explained(error) from error

    def note(self, key: str) -> str | None:
        """Returns a note that was set, or None; "site" and "epoch" are the journal's own."""
        found = self._connection.execute("SELECT value FROM notes WHERE key = ?", (key,)).fetchone()
        return None if found is None else str(found[0])

    def set_note(self, key: str, value: str) -> None:
        """Keeps a word about the journal itself, such as which replay it belongs to.

        Raises:
            ValueError: the note is one of the journal's own.
            JournalError: as for `append`.
        """
        if key in {"site", "epoch"}:
            raise ValueError(f"the note {key!r} is the journal's own")
        try:
            self._connection.execute("INSERT OR REPLACE INTO notes VALUES (?, ?)", (key, value))
        except sqlite3.Error as error:
            raise self._explained(error) from error

    @property
    def count(self) -> int:
        """How many records it holds."""
        return self._count

    @property
    def size_bytes(self) -> int:
        """What its files take on the disk, bytes."""
        files = (self.path, self.path.with_name(self.path.name + "-wal"))
        return sum(file.stat().st_size for file in files if file.exists())

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

    def _damaged(self, what: str) -> JournalDamagedError:
        return JournalDamagedError(
            f"{self.path}: this journal is damaged: {what}; move it away and begin a new one "
            f"(never an older copy of it), after looking into the batch system for jobs that run"
        )

    def _explained(self, error: sqlite3.Error) -> JournalError:
        extended = int(getattr(error, "sqlite_errorcode", 0))
        code = extended & 0xFF
        # The second: no room for the file by which readers find their way in the log.
        if code == sqlite3.SQLITE_FULL or extended == sqlite3.SQLITE_IOERR_SHMSIZE:
            return JournalFullError(
                f"{self.path}: the disk is full; make room for the journal, it loses nothing"
            )
        if code in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}:
            return self._damaged(str(error))
        return JournalError(
            f"{self.path}: {error}; check that the folder and the disk are as they should be, "
            f"then start the daemon again"
        )


def _checksum(before: int, number: int, row: Row) -> int:
    head = f"{number} {row.time!r} {row.kind} {row.body} "
    return zlib.crc32(row.payload or b"", zlib.crc32(head.encode(), before))
