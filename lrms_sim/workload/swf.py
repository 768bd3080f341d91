"""Reads and writes logs in the Standard Workload Format (SWF), plain or packed.

A file holds comment lines that begin with `;`, the header, and one line of 18 numbers for each job,
-1 standing for "not known" (see lrms_sim.workload.swf_log). Fields after the 18th and title lines are
counted and ignored.

A log is read as it is; lrms_sim.workload.preparation handles incomplete or contradictory records. Reading
holds the 18 columns (112 bytes a job) and one block of text, never the whole text, so that logs of
tens of millions of jobs fit an ordinary machine.
"""

import gzip
import os
import re
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO, Final

import numpy as np
import numpy.typing as npt

from lrms_sim.kernel import _swf
from lrms_sim.util.errors import HanseError
from lrms_sim.util.files import replacing
from lrms_sim.util.log_files import pieces_of, shown_name
from lrms_sim.workload.jobs import JobTable
from lrms_sim.workload.schedule import Schedule
from lrms_sim.workload.schedule_files import schedule_log
from lrms_sim.workload.swf_log import (
    DTYPES,
    FIELD_NAMES,
    FIELDS,
    INT,
    LONG,
    REAL,
    SwfHeader,
    SwfLog,
    bound,
)

__all__ = ["FIELD_NAMES", "SwfError", "SwfHeader", "SwfLog", "read_swf", "write_swf"]

LINE_BYTES_MAX: Final = 1 << 20
"""Longest line; anything longer is no SWF, and is refused rather than gathered in memory."""

WRITE_ROWS: Final = 1 << 14

TITLE_LINES_MAX: Final = 20
"""Most lines before the first job that may be a title or names of columns."""

_TITLE: Final = re.compile(
    rb"\s*(?:[^\s;\d.+-]|[-=+.]{2,}\s|[+-]?[\d.]\S*\s+(?!nan|inf)[a-z(])", re.IGNORECASE
)
"""How a line begins that is no job: by a word, a rule, or a number and a word."""

_KINDS: Final = bytes(kind for _, _, kind in FIELDS)
_SLOTS: Final = bytes(_KINDS[:at].count(kind) for at, kind in enumerate(_KINDS))
# The writer treats all whole numbers alike.
_WHOLE: Final = bytes(min(kind, 1) for kind in _KINDS)
_WHOLE_SLOTS: Final = bytes(_WHOLE[:at].count(kind) for at, kind in enumerate(_WHOLE))


_Fault = tuple[int, int, int, bytes | int]


class SwfError(HanseError, ValueError):
    """A log that cannot be read; the text says where, what was found and what was expected.

    Attributes:
        path: the log as the user named it.
        line: from 1; `None` if the fault is not in one line.
    """

    def __init__(self, path: str, line: int | None, problem: str) -> None:
        super().__init__(f"{path}: {problem}" if line is None else f"{path}:{line}: {problem}")
        self.path = path
        self.line = line


def read_swf(source: str | os.PathLike[str] | BinaryIO) -> SwfLog:
    """Reads a log, plain or packed with gzip, bzip2, xz or zip, as its first bytes show.

    A file with comments only is a log without jobs. Blank lines and comments may stand anywhere,
    lines may end as on Unix or Windows, and text after a semicolon is a comment. Fields after the
    18th, and up to `TITLE_LINES_MAX` lines before the first job that do not begin as one, are
    counted and ignored.

    `source` is a path, `-` for standard input, or a binary file.

    Raises:
        SwfError: the file cannot be opened or read, is cut off, is not SWF, or a line is
            malformed.
    """
    path = shown_name(source)
    try:
        return _read(pieces_of(source, lambda text: SwfError(path, None, text)), path)
    except OSError as error:
        raise SwfError(path, None, f"cannot be read: {error.strerror or error}") from error


def _read(pieces: Iterator[bytes], path: str) -> SwfLog:
    columns: list[npt.NDArray[Any]] = [np.empty(0, DTYPES[kind]) for kind in _KINDS]
    count = 0
    comments: list[bytes] = []
    line = longer = 0
    titles: list[tuple[int, bytes]] = []
    for lines in _whole_lines(pieces, path):
        text = lines if count else _without_titles(lines, line, titles)
        # One line in the text is one row at most.
        rows_max = text.count(b"\n")
        reals = np.empty((_KINDS.count(REAL), rows_max), np.float64)
        longs = np.empty((_KINDS.count(LONG), rows_max), np.int64)
        ints = np.empty((_KINDS.count(INT), rows_max), np.int32)
        rows, line, fault, longer_here = _swf.parse_block(
            text, line, _KINDS, _SLOTS, reals, longs, ints, comments
        )
        if fault is not None:
            # Where no job was read, what was passed over was no title.
            fault = fault if count + rows or not titles else _fault_of(*titles[0])
            raise SwfError(path, fault[1], _describe(fault))
        longer += longer_here
        if count + rows > len(columns[0]):
            _resize(columns, count + rows + count // 4)
        for column, kind, slot in zip(columns, _KINDS, _SLOTS, strict=True):
            column[count : count + rows] = (reals, longs, ints)[kind][slot, :rows]
        count += rows
    if line == 0:
        raise SwfError(path, None, "is empty; expected a log in the Standard Workload Format")
    if titles and count == 0:
        fault = _fault_of(*titles[0])
        raise SwfError(path, fault[1], _describe(fault))
    _resize(columns, count)
    comments = [comment.rstrip(b"\r") for comment in comments]
    if any(b"\r" in comment for comment in comments):
        # Line ends of that kind hide whole lines in a comment.
        raise SwfError(
            path, None, "has lone carriage returns in a comment; end lines by line feeds"
        )
    header = SwfHeader(tuple(_decode(comment) for comment in comments))
    return SwfLog(path, header, *columns, longer_records=longer, title_lines=len(titles))


def _without_titles(text: bytes, line: int, titles: list[tuple[int, bytes]]) -> bytes:
    """Returns whole lines with titles before the first job blanked, and adds those to `titles`."""
    kept: list[bytes] = []
    lines = [content + b"\n" for content in text.split(b"\n")[:-1]]
    for number, content in enumerate(lines, line + 1):
        if _TITLE.match(content) and len(titles) < TITLE_LINES_MAX:
            titles.append((number, content))
            kept.append(b"\n")
        elif content.strip() and not content.lstrip().startswith(b";"):
            break
        else:
            kept.append(content)
    return b"".join([*kept, *lines[len(kept) :]])


def _fault_of(number: int, content: bytes) -> _Fault:
    """Returns why a line, given by its number and content, is no job."""
    reals = np.empty((_KINDS.count(REAL), 1), np.float64)
    longs = np.empty((_KINDS.count(LONG), 1), np.int64)
    ints = np.empty((_KINDS.count(INT), 1), np.int32)
    _, _, found, _ = _swf.parse_block(content, number - 1, _KINDS, _SLOTS, reals, longs, ints, [])
    assert found is not None
    return found


def _resize(columns: list[npt.NDArray[Any]], rows: int) -> None:
    """Lengthens or shortens columns in place, without the copies of a concatenation."""
    for column in columns:
        # Nobody else refers to the columns while a log is being read.
        column.resize(rows, refcheck=False)


def _decode(comment: bytes) -> str:
    try:
        return comment.decode()
    except UnicodeDecodeError:
        return comment.decode("latin-1")


def _describe(fault: _Fault) -> str:
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
    """Cuts a stream of bytes at line ends; adds a missing last one."""
    rest = b""
    for piece in pieces:
        text = rest + piece
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


def write_swf(
    path: str | os.PathLike[str],
    jobs: SwfLog | JobTable | Schedule | Mapping[str, npt.ArrayLike],
    header: SwfHeader | None = None,
) -> None:
    """Writes a log that `read_swf` reads back the same; gzip-compressed if the name ends in .gz.

    The same jobs and header always give the same bytes. Whole numbers are written without decimals,
    others with the fewest digits that read back the same. The file is replaced atomically.

    Args:
        path: the file.
        jobs: a log, a table of jobs, a schedule (as by `lrms_sim.workload.schedule_files.schedule_log`), or
            columns by the names of SwfLog.
        header: default that of the log, or version and number of jobs.

    Raises:
        OSError: the file cannot be written.
        TypeError: path and jobs are swapped.
        ValueError: a column is unknown, or cannot be written in the format.
    """
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"the path comes first, then the jobs; the path is {path!r:.60}")
    if isinstance(jobs, Schedule):
        jobs = schedule_log(jobs)
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
    with replacing(path) as temporary, temporary.open("wb") as file:
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
