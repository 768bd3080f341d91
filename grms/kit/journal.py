"""What every journal has in common: one SQLite file that one process may write.

The file is in write-ahead mode and every commit is synced (`synchronous=FULL`), so what was
committed has survived whatever happens next. A lock beside the file keeps a second process away,
and goes with the process, however that ends; whoever only looks may read the file meanwhile.

What stands in the file is the affair of those who derive from `JournalFile`: the records of a site
(`grms.site.engine.journal`) and those of a broker (`broker.engine.journal`).
"""

import fcntl
import os
import sqlite3
import stat
import struct
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Final, Literal, Self

from grms.kit.write_ahead import log_problem
from lrms_sim.errors import HanseError
from lrms_sim.version import __version__

BUSY_S: Final = 5.0
"""How long is waited for somebody who reads."""

MODE: Final = 0o600
"""Of a journal: scripts and keys of users are in it."""

OTHERS: Final = 0o077
"""The permissions that nobody but a journal's user has."""

WRITTEN_BY: Final = "written_by"
"""The note that says which version of this program has opened a journal last, to write it."""

_HEADER: Final = struct.Struct(">60xi4xi")
"""Of the file, from its first byte: `user_version` and `application_id` (SQLite's file format, section 1.3)."""

_MAGIC: Final = b"SQLite format 3\0"

_NO_UTF8: Final = "Could not decode to UTF-8"

_NOTES = "CREATE TABLE notes (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;"


def row_checksum(before: int, number: int, row: Sequence[Any]) -> int:
    """Returns the checksum of a row of records, 32 bits: a change of any of it changes it.

    Args:
        before: the checksum of the row before, where rows are a chain; else 0.
        number: of the row.
        row: moment in seconds, kind and text of the record; then its bytes, if it has any.
    """
    moment = row[0] + 0.0  # SQLite keeps zero without its sign
    head = f"{number} {moment!r} {row[1]} {row[2]} "
    checksum = zlib.crc32(head.encode(), before)
    payload = row[3] if len(row) > 3 else None  # what is behind the three of the text
    return zlib.crc32(payload, checksum) if payload else checksum


class JournalError(HanseError):
    """The journal cannot be used; the text says which file, what is wrong, and what to do."""


class JournalDamagedError(JournalError):
    """The file is not what this program has written."""


class JournalTakenError(JournalError):
    """Another process has the journal."""


class JournalLaterError(JournalError):
    """A later version of this program has written it, and nothing is wrong with it."""


class JournalFullError(JournalError):
    """There is no room on the disk. What was to be appended is not in the journal."""


@dataclass(frozen=True, slots=True)
class JournalKind:
    """What tells the journals of one program from others, and the words of their errors.

    Attributes:
        application_id: what `file` and SQLite can tell such a file by.
        version: of the tables and of what is in them; a later one may not be readable.
        schema: the statements that make the tables, but the notes.
        tables: that there are then, but the notes.
        program: who writes it: "daemon", "broker".
        only_one: how many may have it: "only one broker may use it".
        cure: what to do about one that is damaged.
        versions_read: others that this program reads as well.
    """

    application_id: int
    version: int
    schema: str
    tables: frozenset[str]
    program: str
    only_one: str
    cure: str
    versions_read: frozenset[int] = frozenset()


class JournalFile:
    """An open journal; nobody else can open it meanwhile, but read it.

    Attributes:
        path: of the file, without symbolic links.
        narrowed: the permissions that the file had and others had use of, which were taken away;
            None where it was as it should be.

    Args:
        path: of the file; made where it does not exist, in an existing folder, for its user alone.
        kind: what it is a journal of.
        notes: what a new one is told about itself, beside its epoch, the moment of its creation.
        durability: "power", or "process", which leaves the sync out: what was appended survives
            the end of the process in any way, but not a power failure.

    Raises:
        JournalTakenError: another process has it.
        JournalDamagedError: the file is damaged, or no journal.
        JournalLaterError: a later version of this program has written it.
        JournalError: it is reached by several names (hard links), is open to
            others and not ours to close, or cannot be opened.
    """

    def __init__(
        self,
        path: Path,
        kind: JournalKind,
        notes: dict[str, str],
        *,
        durability: Literal["power", "process"] = "power",
    ) -> None:
        # By whatever way it is named: the lock lies beside the file itself.
        self.path = path.resolve()
        self._kind = kind
        self._own_notes = {**notes, "epoch": str(time.time_ns()), WRITTEN_BY: __version__}
        self.narrowed: int | None = None
        self._lock = self._take()
        try:
            self._make_private()
            self._check_file()
            self._check_log()
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
        if self.path.exists() and not self.path.is_file():  # a folder, a device, a pipe
            raise JournalError(f"{self.path}: this is no file; name one for the journal")
        beside = self.path.with_name(self.path.name + ".lock")
        try:
            number = os.open(beside, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, MODE)
            lock = os.fdopen(number, "ab")
        except OSError as error:
            raise JournalError(
                f"{beside}: {error.strerror}; the journal's folder must exist and be writable"
            ) from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            lock.close()
            raise JournalTakenError(
                f"{self.path}: another process has this journal; {self._kind.only_one}"
            ) from error
        return lock

    def _make_private(self) -> None:
        """Makes the file where it is missing, and takes from others what they could read of it.

        SQLite gives the files beside it (`-wal`, `-shm`) the permissions of the file itself.
        """
        try:
            number = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, MODE)
        except OSError as error:
            raise JournalError(f"{self.path}: cannot be opened: {error.strerror}") from error
        try:
            found = os.fstat(number)
            if found.st_nlink > 1:
                raise JournalError(
                    f"{self.path}: this journal has {found.st_nlink} names (hard links), and a lock "
                    "protects one of them; remove the others"
                )
            # Of what is no journal nothing is changed.
            ours = os.pread(number, len(_MAGIC), 0) in {b"", _MAGIC}
            if ours and stat.S_IMODE(found.st_mode) & OTHERS:
                os.fchmod(number, MODE)
                self.narrowed = stat.S_IMODE(found.st_mode)
        except OSError as error:
            raise JournalError(
                f"{self.path}: others may read this journal (mode "
                f"{stat.S_IMODE(found.st_mode):04o}), and it is another user's: {error.strerror}; "
                "scripts and keys are in it; make it its daemon's user's, with mode 0600"
            ) from error
        finally:
            os.close(number)
        for name in ("-wal", "-shm"):
            beside = self.path.with_name(self.path.name + name)
            with suppress(OSError):
                if stat.S_IMODE(beside.stat().st_mode) & OTHERS:
                    beside.chmod(MODE)

    def _check_file(self) -> None:
        # What a later version has written is not judged by the rules of this one, nor opened to be written.
        with self.path.open("rb") as file:
            head = file.read(_HEADER.size)
        if len(head) == _HEADER.size and head.startswith(_MAGIC):
            version, application = _HEADER.unpack(head)
            if application == self._kind.application_id:
                self._check_version(version)

    def _check_version(self, version: int) -> None:
        readable = {self._kind.version, *self._kind.versions_read}
        if version > max(readable):
            by = written_by(self.path)
            raise JournalLaterError(later_version(self.path, version, max(readable), by))
        if version not in readable:
            raise JournalError(
                f"{self.path}: this journal is of version {version}, and this program, Hanse "
                f"{__version__}, reads versions {min(readable)} to {max(readable)}; use the one that wrote it"
            )

    def _check_log(self) -> None:
        # Before SQLite looks at it, which would take what is damaged for the end, and delete the rest.
        try:
            problem = log_problem(self.path.with_name(self.path.name + "-wal"))
        except OSError as error:
            raise JournalError(f"{self.path}: its log cannot be read: {error.strerror}") from error
        if problem:
            raise self.damaged(problem)

    def _open(self, durability: str) -> sqlite3.Connection:
        level = {"power": "FULL", "process": "NORMAL"}[durability]
        with self._explaining():
            connection = sqlite3.connect(
                self.path, timeout=BUSY_S, isolation_level=None, check_same_thread=False
            )
            try:
                connection.execute("PRAGMA journal_mode=WAL")
                connection.execute(f"PRAGMA synchronous={level}")
            except BaseException:
                connection.close()
                raise
        return connection

    def _prepare(self) -> None:
        with self._explaining():
            if self._pragma("application_id") == 0 and not self._tables():
                self._create()
            self._check_header()
            found = self._connection.execute("PRAGMA quick_check(1)").fetchone()[0]
            if found != "ok":
                raise self.damaged(str(found))
            if self.note(WRITTEN_BY) != __version__:
                with suppress(
                    sqlite3.Error
                ):  # it is for people, and a full disk is told where it matters
                    self._connection.execute(
                        "INSERT OR REPLACE INTO notes VALUES (?, ?)", (WRITTEN_BY, __version__)
                    )

    def _create(self) -> None:
        execute = self._connection.execute
        execute("BEGIN IMMEDIATE")
        for statement in (_NOTES + self._kind.schema).split(";"):
            execute(statement)
        self._connection.executemany("INSERT INTO notes VALUES (?, ?)", self._own_notes.items())
        execute(f"PRAGMA user_version={self._kind.version}")
        execute(f"PRAGMA application_id={self._kind.application_id}")
        execute("COMMIT")
        # From the log into the file: where the log is lost, nobody takes the file for a new one.
        execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()

    def _check_header(self) -> None:
        kind = self._kind
        known = {"notes", *kind.tables}
        foreign = f"it is a database, but no journal of a {kind.program}"
        if self._pragma("application_id") != kind.application_id:
            raise self.damaged(foreign)
        # Before anything else: a later version may have other tables, and notes of other words.
        self._check_version(self._pragma("user_version"))
        # SQLite's own tables, as the one for AUTOINCREMENT, do not count.
        if self._tables() != known:
            raise self.damaged(foreign)
        if not self.note("epoch"):
            raise self.damaged("it has no epoch")

    def _pragma(self, name: str) -> int:
        return int(self._connection.execute(f"PRAGMA {name}").fetchone()[0])

    def _tables(self) -> set[str]:
        rows = self._connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
        return {name for (name,) in rows if not name.startswith("sqlite_")}

    # --- use -----------------------------------------------------------------------------------

    def _transaction(self) -> "_Transaction":
        """Makes all that is written within durable at its end, or nothing where it raises."""
        return _Transaction(self._connection, self._explained)

    @contextmanager
    def _explaining(self) -> Iterator[None]:
        """Makes errors of the database those of a journal, and of what cannot be read of it."""
        try:
            yield
        except sqlite3.Error as error:
            raise self._explained(error) from error
        except (TypeError, ValueError) as error:
            # One flipped bit makes a text of a number, and of a text what is no UTF-8; also in
            # what SQLite says of it.
            raise self.damaged(f"something in it is not what was written ({error})") from error

    def note(self, key: str) -> str | None:
        """Returns a note that was set, or None; "epoch" and others are the journal's own."""
        found = self._connection.execute("SELECT value FROM notes WHERE key = ?", (key,)).fetchone()
        return None if found is None else str(found[0])

    def set_note(self, key: str, value: str) -> None:
        """Keeps a word about the journal itself, such as which replay it belongs to.

        Raises:
            ValueError: the note is one of the journal's own.
            JournalError: as for writing anything else.
        """
        if key in self._own_notes:
            raise ValueError(f"the note {key!r} is the journal's own")
        with self._explaining():
            self._connection.execute("INSERT OR REPLACE INTO notes VALUES (?, ?)", (key, value))

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

    def later(self, what: str) -> JournalLaterError:
        """Returns the error for what was written whole, as its checksum proves, and cannot be read here."""
        by = self.note(WRITTEN_BY)
        who = "a later version" if by in {None, __version__} else f"Hanse {by}"
        return JournalLaterError(
            f"{self.path}: {' '.join(what.split())}; it is as {who} has written it, and this program, Hanse "
            f"{__version__}, does not know it yet: use {who} or a later one, with this journal as it is"
        )

    def damaged(self, what: str) -> JournalDamagedError:
        """Returns the error that says what is wrong with what the journal holds."""
        return JournalDamagedError(
            f"{self.path}: this journal is damaged: {' '.join(what.split())}; {self._kind.cure}"
        )

    def _explained(self, error: sqlite3.Error) -> JournalError:
        if _NO_UTF8 in str(error):  # what follows is all of the text, which is not to be shown
            return self.damaged("a text in it is not UTF-8")
        extended = int(getattr(error, "sqlite_errorcode", 0))
        code = extended & 0xFF
        # The second: no room for the file by which readers find their way in the log.
        if code == sqlite3.SQLITE_FULL or extended == sqlite3.SQLITE_IOERR_SHMSIZE:
            return JournalFullError(
                f"{self.path}: the disk is full; make room for the journal, it loses nothing"
            )
        if code in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}:
            return self.damaged(str(error))
        return JournalError(
            f"{self.path}: {error}; check that the folder and the disk are as they should be, "
            f"then start the {self._kind.program} again"
        )


def written_by(path: Path) -> str | None:
    """Returns which version of this program has opened a journal last to write it; None where it does not say.

    Args:
        path: of the file, which is not changed.
    """
    with suppress(sqlite3.Error, OSError):
        connection = sqlite3.connect(
            f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=BUSY_S
        )
        with closing(connection):
            found = connection.execute("SELECT value FROM notes WHERE key = ?", (WRITTEN_BY,))
            row = found.fetchone()
            return None if row is None else str(row[0])
    return None


def later_version(path: Path, version: int, readable: int, by: str | None) -> str:
    """Returns what is said of a journal of a later version: who wrote it, and who can read it.

    Args:
        path: of the file.
        version: of the journal.
        readable: the latest that this program reads.
        by: as `written_by` has it.
    """
    known = by not in {None, __version__}
    who = f"Hanse {by}" if known else "a later version of this program"
    reader = f"Hanse {by}" if known else "the one that wrote it"
    return (
        f"{path}: this journal is of version {version}, written by {who}; this program, Hanse "
        f"{__version__}, reads journals up to version {readable}: use {reader} or a later one, with this "
        "journal as it is; nothing is wrong with it, and nothing in it was changed"
    )


class _Transaction:
    # A class, and no generator: a daemon that works on many jobs makes thousands a second.
    __slots__ = ("_connection", "_explained")

    def __init__(
        self, connection: sqlite3.Connection, explained: Callable[[sqlite3.Error], JournalError]
    ) -> None:
        self._connection = connection
        self._explained = explained

    def __enter__(self) -> sqlite3.Connection:
        try:
            self._connection.execute("BEGIN IMMEDIATE")
        except sqlite3.Error as error:
            raise self._explained(error) from error
        return self._connection

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        connection = self._connection
        try:
            if error is None:
                connection.execute("COMMIT")
        except sqlite3.Error as failed:
            error = failed
        if error is None:
            return
        try:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        except sqlite3.Error as failed:
            raise self._explained(failed) from error
        if isinstance(error, sqlite3.Error):
            raise self._explained(error) from error
