"""The journal: an append-only file of records, with one writer and concurrent readers.

A daemon may forget everything else. `append` returns when its records are durable: they are one batch, written and
synced once, and present completely or not at all.

The file begins with a plain-text line that gives its kind and version. Batches follow: a head of fixed length
(mark, length of the body, number of records, checksum of the body, checksum of the head) and a body. Body checksums
are chained, so that a batch that was changed, removed or inserted does not fit. A batch without records holds notes
about the journal itself.

A power failure or a killed process can leave the last batch incomplete: it was never acknowledged, and is cut off
when the file is opened for writing. Such a batch is short, or has a sector of zeros where blocks did not reach the
disk. Any other mismatch is damage: the file is refused, with the byte. A batch missing at the very end, as in an
older copy of the file, is not detected here.

Compaction drops obsolete records: a new file is written next to the old one and takes its name.
"""

import errno
import fcntl
import os
import stat
import struct
import time
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import reduce
from itertools import islice
from operator import or_
from pathlib import Path
from typing import IO, Any, Final, Generic, Literal, Protocol, Self, TypeVar

import msgspec

from lrms_sim.util.errors import HanseError
from lrms_sim.util.files import without_links
from lrms_sim.util.version import __version__

VERSION: Final = 1
"""Of the file format; this program cannot read later ones."""

MODE: Final = 0o600
"""Journals contain users' scripts and keys."""

OTHERS: Final = 0o077
"""Permissions that only a journal's user may have."""

WRITTEN_BY: Final = "written_by"
"""Note of the program version that last wrote records."""

RECORDS_AT_ONCE: Final = 4096
"""Most records per batch of a rewritten file."""

BATCH_BYTES: Final = 8 << 20
"""Most bytes of such a batch, if it has more than one record."""

PROGRAM: Final = "program"
"""Note of the program that owns the journal."""

_FIRST = "Hanse journal {}\n"
_FIRST_BYTES: Final = 16
_MARK: Final = b"\xd4HJ\n"
_HEAD: Final = struct.Struct("<4sIIII")
_END: Final = b"\n"  # no zero, so that a last sector which is missing is seen
_SECTOR: Final = 512
_CHUNK_BYTES: Final = 1 << 20
_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})

R = TypeVar("R", bound=msgspec.Struct)

_notes_of = msgspec.json.Decoder(dict[str, str])


class JournalError(HanseError):
    """The journal cannot be used; the text says which file, what is wrong, and what to do."""


class JournalDamagedError(JournalError):
    """The file is not what this program has written."""


class JournalTakenError(JournalError):
    """Another process has the journal."""


class JournalLaterError(JournalError):
    """A later version of this program has written it, and nothing is wrong with it."""


class JournalUnchangedError(JournalError):
    """Something could not be done, and nothing was changed."""


class JournalFullError(JournalUnchangedError):
    """There is no room on the disk. What was to be appended is not in the journal."""


class Codec(Protocol[R]):
    """How the records of one program are written and read."""

    def encode(self, records: list[R]) -> bytes:
        """Returns records as a body."""

    def decode(self, body: bytes) -> list[R]:
        """Returns the records of a body.

        Raises:
            msgspec.DecodeError: one has an unknown kind, or other fields.
        """


class RecordCodec(Generic[R]):
    """A codec for records stored as they are; `kinds` are their classes, each with its tag.

    Optional fields at the end of a record are left out where they have their defaults: a program that does not know
    them yet can read the record as long as they say nothing.
    """

    def __init__(self, kinds: Iterable[type[R]]) -> None:
        classes = list(kinds)
        union: Any = reduce(or_, classes)
        self._encode = msgspec.msgpack.Encoder().encode
        self._decode = msgspec.msgpack.Decoder(list[union]).decode
        self._defaults = {
            kind: kind.__struct_defaults__ for kind in classes if kind.__struct_defaults__
        }

    def encode(self, records: list[R]) -> bytes:
        """Encodes records; half a surrogate pair, as in a file's name, becomes a question mark."""
        try:
            return self._encode([self._short(record) for record in records])
        except UnicodeEncodeError:
            return self._encode([self._short(_as_text(record)) for record in records])

    def _short(self, record: R) -> R | tuple[object, ...]:
        defaults = self._defaults.get(type(record))
        if defaults is None:
            return record
        values = msgspec.structs.astuple(record)
        end = len(values)
        for default in reversed(defaults):
            value = values[end - 1]
            # Minus zero equals zero, and is not the same.
            if value is not default and (value != default or str(value) != str(default)):
                break
            end -= 1
        return (record.__struct_config__.tag, *values[:end])

    def decode(self, body: bytes) -> list[R]:
        """Decodes the records of a body."""
        found: list[R] = self._decode(body)
        return found


def _as_text(record: R) -> R:
    texts = {
        name: value.encode(errors="replace").decode()
        for name in record.__struct_fields__
        if isinstance(value := getattr(record, name), str)
    }
    return msgspec.structs.replace(record, **texts)


@dataclass(frozen=True, slots=True)
class JournalKind(Generic[R]):
    """A kind of journal, with words for its errors.

    Attributes:
        program: the writer: "daemon", "broker".
        only_one: how many may open it: "only one broker may use it".
        cure: what to do about a damaged one.
    """

    program: str
    codec: Codec[R]
    kinds: frozenset[str]
    only_one: str
    cure: str

    def damaged(self, path: Path, what: str) -> JournalDamagedError:
        """Returns the error that says what is wrong with a journal."""
        return JournalDamagedError(
            f"{path}: this journal is damaged: {' '.join(what.split())}; {self.cure}"
        )


@dataclass(frozen=True, slots=True)
class Batch:
    """What was appended together.

    Attributes:
        begin, end: position in the file, bytes.
        count: of records; 0 if it has notes.
        checksum: of the body, chained.
    """

    begin: int
    end: int
    count: int
    body: bytes
    checksum: int


class _TornError(Exception):
    # The end of the file was not written completely; the argument is where that part begins.
    pass


class Scan(Generic[R]):
    """Reads a journal from its beginning; takes over the position of an open file.

    Attributes:
        notes: read so far.
        end: position of the next batch, bytes.
        checksum: of the last batch.
        count: records so far.
    """

    def __init__(self, file: IO[bytes], path: Path, kind: JournalKind[R]) -> None:
        self._file = file
        self._path = path
        self._kind = kind
        self.notes: dict[str, str] = {}  # the first batch has some
        self.end = _FIRST_BYTES
        self.checksum = 0
        self.count = 0
        file.seek(0)
        self._check_first(file.read(_FIRST_BYTES))
        if next(self.batches(), None) is None or not self.notes:
            raise self._damaged(_FIRST_BYTES)
        program = self.notes.get(PROGRAM)
        if program != kind.program:
            raise JournalError(
                f"{path}: this is the journal of a {program}, not of a {kind.program}"
            )

    def _check_first(self, first: bytes) -> None:
        if first == _first(VERSION):
            self.checksum = zlib.crc32(first)
            return
        head, _, version = first.decode("latin-1").rstrip("\n").rpartition(" ")
        if head == _FIRST.partition(" {")[0] and version.isdecimal():
            raise JournalLaterError(
                f"{self._path}: this journal is of version {version}; this program, Hanse {__version__}, reads "
                f"version {VERSION}: use the one that wrote it or a later one, with this journal as it is; "
                "nothing is wrong with it, and nothing in it was changed"
            )
        if first.startswith(b"SQLite format 3"):
            raise JournalError(
                f"{self._path}: this is a journal from before the first release, which this program does not "
                "read; end its jobs with the program that wrote it, and begin a new one"
            )
        raise self._kind.damaged(self._path, "byte 0: it is no journal")

    @property
    def descriptor(self) -> int:
        """Of the open file."""
        return self._file.fileno()

    def batches(self) -> Iterator[Batch]:
        """Yields the batches up to `end`.

        Raises:
            JournalDamagedError: the content is corrupt; the text names the byte.
            OSError: the file cannot be read.
        """
        with suppress(_TornError):
            while (batch := self._next()) is not None:
                self.end, self.checksum = batch.end, batch.checksum
                if batch.count == 0:
                    self.notes |= self._noted(batch)
                self.count += batch.count
                yield batch

    def records(self, kinds: Iterable[type[R]] | None = None) -> Iterator[R]:
        """Yields the records of some kinds (default: all), oldest first.

        Raises:
            JournalDamagedError: as above.
            JournalLaterError: a later version of this program has written one.
        """
        wanted = None if kinds is None else frozenset(kinds)
        for batch in self.batches():
            for record in self.decoded(batch):
                if wanted is None or type(record) in wanted:
                    yield record

    def decoded(self, batch: Batch) -> list[R]:
        """Returns the records of a batch.

        Raises:
            JournalLaterError: a later version of this program has written one.
        """
        if batch.count == 0:
            return []
        try:
            return self._kind.codec.decode(batch.body)
        except msgspec.DecodeError as error:
            by = self.notes.get(WRITTEN_BY)
            who = "a later build" if by in {None, __version__} else f"Hanse {by}"
            use = "that build" if by in {None, __version__} else who
            first = self.count - batch.count + 1
            raise JournalLaterError(
                f"{self._path}: byte {batch.begin}: records {first} to {self.count}: {error}; it is as {who} has "
                f"written it, and this program, Hanse {__version__}, does not know it yet: use {use} or a later one, "
                "with this journal as it is"
            ) from error

    def _next(self) -> Batch | None:
        begin = self.end
        head = self._file.read(_HEAD.size)
        if not head:
            return None
        if len(head) < _HEAD.size:
            if _MARK.startswith(head[:4]) or head.startswith(_MARK) or not any(head):
                raise _TornError(begin)
            raise self._damaged(begin)
        mark, size, count, checksum, _ = _HEAD.unpack(head)
        if mark != _MARK or not _is_head(head):
            raise self._broken(begin, None)
        body = self._file.read(size)
        if len(body) < size:
            raise self._damaged(begin) if self._goes_on(head + body) else _TornError(begin)
        if zlib.crc32(body, self.checksum) != checksum or not body.endswith(_END):
            raise self._broken(begin, begin + _HEAD.size + size)
        return Batch(begin, begin + _HEAD.size + size, count, body[:-1], checksum)

    def _broken(self, begin: int, end: int | None) -> Exception:
        # The length is complete, but the content differs. Only the last batch may lack blocks, which are then zeros.
        self._file.seek(begin)
        rest = self._file.read()
        if end is not None and len(rest) > end - begin:
            return self._damaged(begin)
        if _has_gap(rest, begin) and not self._goes_on(rest):
            return _TornError(begin)
        return self._damaged(begin)

    @staticmethod
    def _goes_on(rest: bytes) -> bool:
        # Whether another batch follows, so that this is not the last.
        at = rest.find(_MARK, 1)
        while at >= 0 and not _is_head(rest[at : at + _HEAD.size]):
            at = rest.find(_MARK, at + 1)
        return at >= 0

    def _noted(self, batch: Batch) -> dict[str, str]:
        try:
            return _notes_of.decode(batch.body)
        except msgspec.DecodeError as error:
            raise self._damaged(batch.begin) from error

    def _damaged(self, begin: int) -> JournalDamagedError:
        what = f"byte {begin}: what stands there is not what was written"
        return self._kind.damaged(self._path, what)


def _first(version: int) -> bytes:
    return _FIRST.format(version).encode()


def _is_head(head: bytes) -> bool:
    if len(head) < _HEAD.size:
        return False
    return bool(zlib.crc32(head[: _HEAD.size - 4]) == _HEAD.unpack(head)[-1])


def _has_gap(data: bytes, begin: int) -> bool:
    # Whether a sector of the file is all zeros, as far as it is in the data.
    at = 0
    while at < len(data):
        end = min(len(data), at + _SECTOR - (begin + at) % _SECTOR)
        if not any(data[at:end]):
            return True
        at = end
    return False


def _batch(count: int, content: bytes, before: int) -> tuple[bytes, int]:
    body = content + _END
    checksum = zlib.crc32(body, before)
    head = _HEAD.pack(_MARK, len(body), count, checksum, 0)[:-4]
    return head + struct.pack("<I", zlib.crc32(head)) + body, checksum


class JournalFile(Generic[R]):
    """A journal open for writing, which only one process can have; others can read it (`reading`).

    After a `JournalFullError` none of the records is in the journal: actions that depend on them must wait until
    they have been appended again, in order. After any other `JournalError` of `append` the process must end, as its
    state is ahead of a journal of unknown content.

    Attributes:
        path: of the file, without symbolic links.
        narrowed: the permissions of others that were removed; `None` if there were none.
        cut_bytes: size of an unacknowledged end that was cut off at opening.
        count: of records.

    Args:
        path: created if missing, in an existing folder, private to its user.
        kind: of journal.
        notes: of a new one, in addition to its epoch, the moment of its creation.
        durability: "power", or "process", which omits the sync: appended records survive any end of
            the process, but no power failure. It is for replays.

    Raises:
        JournalTakenError: another process has it.
        JournalDamagedError: the file is damaged, or no journal.
        JournalLaterError: a later version of this program has written it.
        JournalError: it has several names (hard links), is open to others and not ours to close, or
            cannot be opened.
    """

    def __init__(
        self,
        path: Path,
        kind: JournalKind[R],
        notes: dict[str, str],
        *,
        durability: Literal["power", "process"] = "power",
    ) -> None:
        self.path = path
        self.narrowed: int | None = None
        self.cut_bytes = 0
        self._kind = kind
        self._synced = durability == "power"
        self._own_notes = {
            PROGRAM: kind.program,
            **notes,
            "epoch": str(time.time_ns()),
            WRITTEN_BY: __version__,
        }
        self._notes: dict[str, str] = {}
        self._file: IO[bytes] | None = None
        self._cut_due = False
        self._end = self._checksum = self.count = 0
        try:
            # Resolved, as the lock lies next to the file itself.
            self.path = without_links(path)
            self._lock = self._take()
            self._beside = self.path.with_name(f"{self.path.name}.new")
        except OSError as error:
            raise JournalError(f"{path}: cannot be opened: {error}") from error
        try:
            self._open()
        except BaseException:
            self.close()
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
            self._have(lock)
        except BaseException:
            lock.close()
            raise
        return lock

    def _have(self, file: IO[bytes]) -> None:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise JournalTakenError(
                f"{self.path}: another process has this journal; {self._kind.only_one}"
            ) from error

    def _open(self) -> None:
        try:
            self._beside.unlink(missing_ok=True)  # of a compaction that was cut off
            if not self.path.exists() or self.path.stat().st_size == 0:
                self._notes = dict(self._own_notes)
                self._write_anew([])
                return
            self._file = os.fdopen(os.open(self.path, os.O_RDWR | os.O_CLOEXEC), "r+b", 0)
            self._make_private(self._file.fileno())
            self._have(self._file)  # somebody may have deleted the lock that lies beside it
            with self.path.open("rb", buffering=_CHUNK_BYTES) as file:
                scan = Scan(file, self.path, self._kind)
                for _ in scan.batches():
                    pass
            self._take_on(scan)
            self._cut_off()
        except OSError as error:
            raise self._failed(error) from error

    def _make_private(self, number: int) -> None:
        found = os.fstat(number)
        if found.st_nlink > 1:
            raise JournalError(
                f"{self.path}: this journal has {found.st_nlink} names (hard links), and a lock "
                "protects one of them; remove the others"
            )
        # A file that is no journal is left unchanged.
        if not stat.S_IMODE(found.st_mode) & OTHERS or os.pread(number, _FIRST_BYTES, 0) != _first(
            VERSION
        ):
            return
        try:
            os.fchmod(number, MODE)
        except OSError as error:
            raise JournalError(
                f"{self.path}: others may read this journal (mode {stat.S_IMODE(found.st_mode):04o}), and it is "
                f"another user's: {error.strerror}; scripts and keys are in it; make it its daemon's user's, with "
                "mode 0600"
            ) from error
        self.narrowed = stat.S_IMODE(found.st_mode)

    def _take_on(self, scan: Scan[R]) -> None:
        self._notes, self.count = scan.notes, scan.count
        self._end, self._checksum = scan.end, scan.checksum
        missing = [name for name in self._own_notes if name not in self._notes]
        if missing:
            what = f"byte {_FIRST_BYTES}: it does not say its {missing[0]}"
            raise self._kind.damaged(self.path, what)
        self._check_notes(self._notes)

    def _check_notes(self, notes: dict[str, str]) -> None:
        """Raises by the notes if the journal belongs to another program."""

    def _cut_off(self) -> None:
        assert self._file is not None
        self.cut_bytes = os.fstat(self._file.fileno()).st_size - self._end
        if self.cut_bytes:
            os.ftruncate(self._file.fileno(), self._end)
        # From now on, what a killed process has written or renamed is relied on.
        self._sync(self._file)
        self._sync_folder()

    # --- writing -------------------------------------------------------------------------------

    def append(self, records: Iterable[R]) -> None:
        """Appends records; all of them are durable when it returns.

        It may be called in any thread, but not concurrently.

        Raises:
            JournalFullError: the disk is full. Nothing was appended; it may be retried.
            JournalError: another failure of the disk. It is unknown what was appended.
        """
        some = list(records)
        if some:
            if self._notes[WRITTEN_BY] != __version__:
                self._note(WRITTEN_BY, __version__)
            self._put(len(some), self._kind.codec.encode(some))
            self.count += len(some)

    def replace(self, records: Iterable[R]) -> None:
        """Replaces all records atomically.

        Raises:
            JournalUnchangedError: it was impossible; the disk may be full (`JournalFullError`).
            JournalError: the disk has failed. Either content may be left after a power failure.
        """
        try:
            self._write_anew(records)
        except OSError as error:
            raise self._failed(error, unchanged=True) from error

    def _put(self, count: int, content: bytes) -> None:
        assert self._file is not None
        data, checksum = _batch(count, content, self._checksum)
        try:
            self._cut()
            self._cut_due = True
            _write_all(self._file.fileno(), data, self._end)
            self._sync(self._file)
        except OSError as error:
            with suppress(OSError):  # else before anything is written again
                self._cut()
            raise self._failed(error) from error
        self._cut_due = False
        self._end, self._checksum = self._end + len(data), checksum

    def _cut(self) -> None:
        # Durably removes the rest of a failed append before the next one.
        assert self._file is not None
        if os.fstat(self._file.fileno()).st_nlink == 0:
            raise OSError(errno.ENOENT, "it was deleted while it was used")
        if self._cut_due:
            os.ftruncate(self._file.fileno(), self._end)
            self._sync(self._file)
            self._cut_due = False

    def _write_anew(self, records: Iterable[R]) -> None:
        # In a temporary file until it is complete.
        self._beside.unlink(missing_ok=True)
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        file = os.fdopen(os.open(self._beside, flags, MODE), "r+b", 0)
        notes = self._notes | {WRITTEN_BY: __version__}
        try:
            self._have(file)
            end, checksum, count = 0, zlib.crc32(first := _first(VERSION)), 0
            data, checksum = _batch(0, msgspec.json.encode(notes), checksum)
            _write_all(file.fileno(), first + data, 0)
            end = len(first) + len(data)
            for together, content in self._bodies(records):
                data, checksum = _batch(together, content, checksum)
                _write_all(file.fileno(), data, end)
                end, count = end + len(data), count + together
            self._sync(file)
            self._beside.rename(self.path)
        except BaseException:
            file.close()
            with suppress(OSError):
                self._beside.unlink(missing_ok=True)
            raise
        if self._file is not None:
            self._file.close()
        self._file, self._end, self._checksum, self.count = file, end, checksum, count
        self._notes, self._cut_due = notes, False
        try:
            self._sync_folder()
        except OSError as error:
            raise JournalError(str(self._failed(error))) from error

    def _bodies(self, records: Iterable[R]) -> Iterator[tuple[int, bytes]]:
        some = iter(records)
        while together := list(islice(some, RECORDS_AT_ONCE)):
            parts = [together]
            while parts:
                part = parts.pop()
                body = self._kind.codec.encode(part)
                if len(body) > BATCH_BYTES and len(part) > 1:
                    half = len(part) // 2
                    parts += [part[half:], part[:half]]
                else:
                    yield len(part), body

    def _sync(self, file: IO[bytes]) -> None:
        if self._synced:
            os.fdatasync(file.fileno())

    def _sync_folder(self) -> None:
        if self._synced:
            folder = os.open(self.path.parent, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)

    # --- reading -------------------------------------------------------------------------------

    def records(self, kinds: Iterable[type[R]] | None = None) -> Iterator[R]:
        """Yields records of some kinds (default: all), oldest first; the whole file is checked anyway.

        Raises:
            JournalDamagedError: the content is corrupt; the text names the byte.
            JournalLaterError: a later version of this program has written one.
        """
        try:
            with self.path.open("rb", buffering=_CHUNK_BYTES) as file:
                yield from Scan(file, self.path, self._kind).records(kinds)
        except OSError as error:
            raise self._failed(error) from error

    def note(self, key: str) -> str | None:
        """Returns a note, or `None`; "epoch" and others are the journal's own."""
        return self._notes.get(key)

    def set_note(self, key: str, value: str) -> None:
        """Stores a note about the journal itself, such as which replay it belongs to.

        Raises:
            ValueError: the key is reserved.
            JournalError: as for appending.
        """
        if key in self._own_notes:
            raise ValueError(f"the note {key!r} is the journal's own")
        self._note(key, value)

    def _note(self, key: str, value: str) -> None:
        self._put(0, msgspec.json.encode({key: value}))
        self._notes[key] = value

    @property
    def size_bytes(self) -> int:
        """What the file has, bytes."""
        return self._end

    def close(self) -> None:
        """Ends the use of the journal; twice is nothing."""
        try:
            if self._file is not None:
                self._file.close()
        finally:
            self._lock.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _failed(self, error: OSError, *, unchanged: bool = False) -> JournalError:
        if error.errno in _FULL:
            return JournalFullError(
                f"{self.path}: the disk is full; make room for the journal, it loses nothing"
            )
        kind = JournalUnchangedError if unchanged else JournalError
        return kind(
            f"{self.path}: {error.strerror or error}; check that the folder and the disk are as they should be, "
            f"then start the {self._kind.program} again"
        )


@contextmanager
def reading(path: Path, kind: JournalKind[R]) -> Iterator[Scan[R]]:
    """Opens a journal for reading, while another process may write it.

    A batch being written is not seen. If the file is compacted meanwhile, the old content is read.

    Raises:
        JournalError: there is no such file, it is no such journal, or it cannot be read.
    """
    try:
        with path.open("rb", buffering=_CHUNK_BYTES) as file:
            yield Scan(file, path, kind)
    except OSError as error:
        raise JournalError(f"{path}: cannot be read: {error.strerror}") from error


def _write_all(number: int, data: bytes, at: int) -> None:
    rest = memoryview(data)
    while rest:
        written = os.pwrite(number, rest, at)
        rest, at = rest[written:], at + written
