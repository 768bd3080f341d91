"""Reads and writes logs in the Standard Workload Format (SWF), plain or gzip-compressed.

A file holds comment lines that begin with `;`, which are the header, and one line of 18 numbers
for each job, -1 standing for "not known" (see lrms_sim.swf_log).

A log is read as it is; what becomes of incomplete or contradictory records is decided by
lrms_sim.preparation. Reading holds the 18 columns (112 bytes a job) and one block of text, never
the whole text, so that logs of tens of millions of jobs fit an ordinary machine.
"""

import gzip
import os
import re
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, Final

import numpy as np
import numpy.typing as npt

from lrms_sim import _swf
from lrms_sim.jobs import JobTable
from lrms_sim.swf_log import DTYPES, FIELD_NAMES, FIELDS, INT, LONG, REAL, SwfHeader, SwfLog, bound

__all__ = ["FIELD_NAMES", "SwfError", "SwfHeader", "SwfLog", "read_swf", "write_swf"]

BLOCK_BYTES: Final = 1 << 21
"""Text parsed at a time."""

PACKED_BYTES: Final = 1 << 18
"""Compressed data unpacked at a time."""

LINE_BYTES_MAX: Final = 1 << 20
"""Longest line; anything longer is no SWF, and is refused rather than gathered in memory."""

WRITE_ROWS: Final = 1 << 14
"""Jobs formatted at a time."""

_GZIP_MAGIC: Final = b"\x1f\x8b"
_OTHER_FORMATS: Final = {
    b"BZh": "a bzip2 file",
    b"\xfd7zXZ": "an xz file",
    b"(\xb5/\xfd": "a zstd file",
    b"PK\x03\x04": "a zip file",
    b"\x1f\x9d": "a compress (.Z) file",
}
_MAGIC_BYTES_MAX: Final = max(len(magic) for magic in [_GZIP_MAGIC, *_OTHER_FORMATS])
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
_WIDE_TEXT: Final = re.compile(rb"\xff\xfe|\xfe\xff|\0\0\xfe\xff|[ -~]\0[\t -~]\0|\0[ -~]\0[\t -~]")
"""How UTF-16 and UTF-32 begin, with a byte order mark or without."""
_ZLIB_FAULTS: Final = {
    "incorrect data check": "its checksum (CRC) is not that of its content",
    "incorrect length check": "its length is not that of its content",
}

_KINDS: Final = bytes(kind for _, _, kind in FIELDS)
_SLOTS: Final = bytes(_KINDS[:at].count(kind) for at, kind in enumerate(_KINDS))
# The writer treats all whole numbers alike.
_WHOLE: Final = bytes(min(kind, 1) for kind in _KINDS)
_WHOLE_SLOTS: Final = bytes(_WHOLE[:at].count(kind) for at, kind in enumerate(_WHOLE))


class SwfError(ValueError):
    """A log that cannot be read; the text says where, what was found and what was expected.

    Attributes:
        path: the log as the user named it.
        line: number of the line from 1; None where the fault is not in one line.
    """

    def __init__(self, path: str, line: int | None, problem: str) -> None:
        super().__init__(f"{path}: {problem}" if line is None else f"{path}:{line}: {problem}")
        self.path = path
        self.line = line


def read_swf(source: str | os.PathLike[str] | BinaryIO) -> SwfLog:
    """Reads a log, plain or gzip-compressed; which of the two is seen from its first bytes.

    A file with comments only is a log without jobs. Blank lines and comments may stand
    anywhere, lines may end as on Unix or Windows, and what follows a semicolon is a comment.

    Args:
        source: a path, or a file opened for reading bytes.

    Returns:
        The log.

    Raises:
        SwfError: the file cannot be opened or read, is cut off, is not SWF, or a line is
            malformed.
    """
    path = str(getattr(source, "name", "<stream>"))
    try:
        if not isinstance(source, (str, os.PathLike)):
            return _read(source, path)
        path = os.fspath(source)
        with Path(path).open("rb") as file:
            return _read(file, path)
    except OSError as error:
        raise SwfError(path, None, f"cannot be read: {error.strerror or error}") from error


def _read(file: BinaryIO, path: str) -> SwfLog:
    columns: list[npt.NDArray[Any]] = [np.empty(0, DTYPES[kind]) for kind in _KINDS]
    count = 0
    comments: list[bytes] = []
    line = 0
    for text in _whole_lines(_text(file, path), path):
        # One line in the text is one row at most.
        rows_max = text.count(b"\n")
        reals = np.empty((_KINDS.count(REAL), rows_max), np.float64)
        longs = np.empty((_KINDS.count(LONG), rows_max), np.int64)
        ints = np.empty((_KINDS.count(INT), rows_max), np.int32)
        rows, line, fault = _swf.parse_block(
            text, line, _KINDS, _SLOTS, reals, longs, ints, comments
        )
        if fault is not None:
            raise SwfError(path, fault[1], _describe(fault))
        if count + rows > len(columns[0]):
            _resize(columns, count + rows + count // 4)
        for column, kind, slot in zip(columns, _KINDS, _SLOTS, strict=True):
            column[count : count + rows] = (reals, longs, ints)[kind][slot, :rows]
        count += rows
    if line == 0:
        raise SwfError(path, None, "is empty; expected a log in the Standard Workload Format")
    _resize(columns, count)
    comments = [comment.rstrip(b"\r") for comment in comments]
    if any(b"\r" in comment for comment in comments):
        # Line ends of that kind hide whole lines in a comment.
        raise SwfError(
            path, None, "has lone carriage returns in a comment; end lines by line feeds"
        )
    header = SwfHeader(tuple(_decode(comment) for comment in comments))
    return SwfLog(path, header, *columns)


def _resize(columns: list[npt.NDArray[Any]], rows: int) -> None:
    """Lengthens or shortens columns in place: nothing is copied, unlike in a concatenation."""
    for column in columns:
        # Nobody else refers to the columns while a log is being read.
        column.resize(rows, refcheck=False)


def _decode(comment: bytes) -> str:
    try:
        return comment.decode()
    except UnicodeDecodeError:
        return comment.decode("latin-1")


def _describe(fault: tuple[int, int, int, bytes | int]) -> str:
    """Says in words what a fault of the parser is."""
    code, _, at, found = fault
    if isinstance(found, int):
        count = "1 field" if found == 1 else f"{found} fields"
        return f"{count}; expected {len(FIELDS)} numbers apart by blanks"
    _, title, kind = FIELDS[at]
    shown = repr(found[:40].decode("ascii", "backslashreplace"))
    if len(found) > 40:
        shown += f" and {len(found) - 40} more bytes"
    expected = "a number" if kind == REAL else "a whole number"
    if code == _swf.TOO_LARGE:
        expected = bound(kind)
    text = f"field {at + 1} ({title}) is {shown}; expected {expected}"
    if any(byte < 32 or byte > 126 for byte in found):
        text += ". This does not look like a text file"
    return text


def _whole_lines(pieces: Iterator[bytes], path: str) -> Iterator[bytes]:
    """Cuts a stream of bytes at line ends; adds a line end to the last line where it lacks one."""
    rest = b""
    first = True
    for piece in pieces:
        text = rest + piece
        if first:
            text = text.removeprefix(_BYTE_ORDER_MARK)
            if _WIDE_TEXT.match(text):
                raise SwfError(
                    path,
                    None,
                    "is UTF-16 or UTF-32 text; a log is ASCII or UTF-8, convert it: "
                    "iconv -f UTF-16 -t UTF-8",
                )
        first = False
        cut = text.rfind(b"\n") + 1
        rest = text[cut:]
        if len(rest) > LINE_BYTES_MAX:
            raise SwfError(
                path,
                None,
                f"has a line of more than {LINE_BYTES_MAX} bytes; this is not a log in the "
                "Standard Workload Format",
            )
        if cut:
            yield text[:cut]
    if rest:
        yield rest + b"\n"


def _text(file: BinaryIO, path: str) -> Iterator[bytes]:
    """Yields the unpacked bytes of a file, piece by piece."""
    head = piece = file.read(PACKED_BYTES)
    # A pipe may hand over a byte or two at first.
    while piece and len(head) < _MAGIC_BYTES_MAX:
        piece = file.read(PACKED_BYTES)
        head += piece
    if head.startswith(_GZIP_MAGIC):
        yield from _unpack(file, head, path)
        return
    for magic, what in _OTHER_FORMATS.items():
        if head.startswith(magic):
            raise SwfError(path, None, f"is {what}; only plain and gzip files are read, unpack it")
    while head:
        yield head
        head = file.read(BLOCK_BYTES)


def _unpack(file: BinaryIO, packed: bytes, path: str) -> Iterator[bytes]:
    """Yields the content of a gzip file, which may be several members one after the other."""
    member = zlib.decompressobj(wbits=31)
    unpacked = 0
    while True:
        try:
            piece = member.decompress(packed, BLOCK_BYTES)
        except zlib.error as error:
            known = (words for fault, words in _ZLIB_FAULTS.items() if fault in str(error))
            raise SwfError(
                path,
                None,
                f"is damaged: {next(known, error)} ({unpacked} bytes could be unpacked), "
                "fetch or copy the file again",
            ) from error
        unpacked += len(piece)
        if piece:
            yield piece
        packed = member.unconsumed_tail
        if member.eof:
            # Padding with zeros is allowed after a member; anything else must be another one.
            packed = member.unused_data.lstrip(b"\0") or file.read(PACKED_BYTES).lstrip(b"\0")
            if not packed:
                return
            member = zlib.decompressobj(wbits=31)
        elif not packed:
            packed = file.read(PACKED_BYTES)
            if not packed and not piece:
                raise SwfError(
                    path,
                    None,
                    f"is cut off: the gzip data end after {unpacked} unpacked bytes, "
                    "fetch or copy the file again",
                )


def write_swf(
    path: str | os.PathLike[str],
    jobs: SwfLog | JobTable | Mapping[str, npt.ArrayLike],
    header: SwfHeader | None = None,
) -> None:
    """Writes a log that `read_swf` reads back the same; gzip-compressed if the name ends in .gz.

    The same jobs and header always give the same bytes. Numbers that are whole are written
    without decimals, others with the fewest digits that read back the same.

    Args:
        path: the file; one that is there is replaced.
        jobs: a log, a table of jobs, or columns by the names of SwfLog.
        header: where left out, that of the log, or version and number of jobs.

    Raises:
        OSError: the file cannot be written.
        ValueError: a column is unknown, or holds what the format cannot say.
    """
    if isinstance(jobs, JobTable):
        log = SwfLog.from_jobs(jobs)
    elif isinstance(jobs, SwfLog):
        log = jobs
        header = log.header if header is None else header
    else:
        log = SwfLog.from_columns(jobs)
    if header is None:
        header = SwfHeader.from_fields(
            {"Version": 2.2, "MaxJobs": len(log), "MaxRecords": len(log)}
        )
    with Path(path).open("wb") as file:
        if os.fspath(path).endswith(".gz"):
            # Neither name nor time of writing, so that the bytes depend on the jobs alone.
            with gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as packed:
                _write(packed, log, header)
        else:
            _write(file, log, header)


def _write(file: BinaryIO | gzip.GzipFile, log: SwfLog, header: SwfHeader) -> None:
    # An empty comment keeps a log without header and jobs apart from an empty file.
    lines = header.lines or ((";",) if len(log) == 0 else ())
    file.write("".join(f"{line}\n" for line in lines).encode())
    reals = [name for name, _, kind in FIELDS if kind == REAL]
    wholes = [name for name, _, kind in FIELDS if kind != REAL]
    for first in range(0, len(log), WRITE_ROWS):
        rows = slice(first, first + WRITE_ROWS)
        text = _swf.format_block(
            _WHOLE,
            _WHOLE_SLOTS,
            np.stack([getattr(log, name)[rows] for name in reals]),
            np.stack([getattr(log, name)[rows].astype(np.int64) for name in wholes]),
        )
        file.write(text)
