"""Opens logs: plain text or packed, in UTF-8 or UTF-16, a file or standard input.

Compression and encoding are detected by the first bytes, never by the name. Output is UTF-8 without
a byte order mark, in pieces, so that a log of any length takes little memory. A truncated file is
an error that says how far it could be read.
"""

import bz2
import codecs
import io
import lzma
import os
import re
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO, Final, Protocol

BLOCK_BYTES: Final = 1 << 21
"""Most bytes that are unpacked, or read plain, at a time."""

PACKED_BYTES: Final = 1 << 18
"""Packed bytes that are read at a time."""

LINE_BYTES_MAX: Final = 1 << 24
"""Longest line of text; anything longer is no log, and is refused rather than gathered in memory."""

STANDARD_INPUT: Final = "-"

Mistake = Callable[[str], Exception]
"""Makes an error from a problem with the file, as "is cut off: …"."""

_PARQUET: Final = b"PAR1"
_UNREAD: Final = {
    b"(\xb5/\xfd": "a zstd file; unpack it: zstd -d",
    b"\x1f\x9d": "a compress (.Z) file; unpack it: uncompress",
    b"7z\xbc\xaf'\x1c": "a 7z file; unpack it",
    b"LZIP": "an lzip file; unpack it: lzip -d",
    _PARQUET: "a Parquet file, a table of columns: lrms-sim import table reads it",
    b"SQLite format 3\0": "an SQLite database; write its table as CSV",
    b"\x89HDF": "an HDF5 file; write its table as CSV",
}
"""Binary file kinds that are named in errors, by their first bytes."""

_GZIP: Final = b"\x1f\x8b"
_BZIP2: Final = b"BZh"
_XZ: Final = b"\xfd7zXZ"
_ZIP: Final = b"PK\x03\x04"
_HEAD_BYTES: Final = 512
_TAR: Final = (257, b"ustar")
_UTF8_MARK: Final = codecs.BOM_UTF8
_WIDE: Final = (
    ("utf-32", re.compile(rb"\xff\xfe\0\0|\0\0\xfe\xff")),
    ("utf-16", re.compile(rb"\xff\xfe|\xfe\xff")),
    ("utf-16-le", re.compile(rb"[\t -~]\0[\t\r\n -~]\0")),
    ("utf-16-be", re.compile(rb"\0[\t -~]\0[\t\r\n -~]")),
)
"""How text in letters of two or four bytes begins, with a byte order mark or without."""

_ZLIB_FAULTS: Final = {
    "incorrect data check": "its checksum (CRC) is not that of its content",
    "incorrect length check": "its length is not that of its content",
}


class _Unpacker(Protocol):
    # As bz2 and lzma have it.
    @property
    def eof(self) -> bool: ...

    @property
    def needs_input(self) -> bool: ...

    @property
    def unused_data(self) -> bytes: ...

    def decompress(self, data: bytes, max_length: int = -1, /) -> bytes: ...


class _Gzip:
    """One member of a gzip file, with the interface of bz2 and lzma decompressors."""

    def __init__(self) -> None:
        self._inner = zlib.decompressobj(wbits=31)

    def decompress(self, data: bytes, max_length: int = -1, /) -> bytes:
        return self._inner.decompress(self._inner.unconsumed_tail + data, max_length)

    @property
    def eof(self) -> bool:
        return self._inner.eof

    @property
    def needs_input(self) -> bool:
        return not self._inner.eof and not self._inner.unconsumed_tail

    @property
    def unused_data(self) -> bytes:
        return self._inner.unused_data


_PACKED: Final[dict[bytes, tuple[str, Callable[[], _Unpacker]]]] = {
    _GZIP: ("gzip", _Gzip),
    _BZIP2: ("bzip2", bz2.BZ2Decompressor),
    _XZ: ("xz", lzma.LZMADecompressor),
}


def pieces_of(source: str | os.PathLike[str] | BinaryIO, mistake: Mistake) -> Iterator[bytes]:
    """Yields the text of a log as UTF-8, in pieces, unpacked if it is packed.

    Args:
        source: a path, `-` for standard input, or a binary file.
        mistake: makes the errors for files that are truncated, damaged, or of a kind that is not
            read; their text names the kind and a remedy.

    Raises:
        OSError: the file cannot be opened or read.
    """
    with ExitStack() as stack:
        if not isinstance(source, str | os.PathLike):
            file = source
        elif os.fspath(source) == STANDARD_INPUT:
            file = sys.stdin.buffer
        else:
            file = stack.enter_context(Path(source).open("rb"))
        yield from _as_utf8(_unpacked(file, stack, mistake), mistake)


def lines_of(source: str | os.PathLike[str] | BinaryIO, mistake: Mistake) -> Iterator[str]:
    """Yields the lines of a log without their ends, as `pieces_of` reads it.

    Bytes that are no UTF-8 become U+FFFD, the replacement character. Lines end as on Unix or
    Windows. `mistake` also makes the error for a line longer than `LINE_BYTES_MAX`.

    Raises:
        OSError: the file cannot be opened or read.
    """
    rest = b""
    for piece in pieces_of(source, mistake):
        *whole, rest = (rest + piece).split(b"\n")
        for line in whole:
            yield line.removesuffix(b"\r").decode("utf-8", "replace")
        if len(rest) > LINE_BYTES_MAX:
            raise mistake(
                f"has a line of more than {LINE_BYTES_MAX:,} bytes; this is no log "
                "(JSON that is one line: break it up with `jq .`)"
            )
    if rest:
        yield rest.removesuffix(b"\r").decode("utf-8", "replace")


def rows_of(
    source: str | os.PathLike[str] | BinaryIO, mistake: Mistake
) -> Generator[str, None, None]:
    """Yields the lines of a table with their ends, for `csv.reader`, as `pieces_of` reads it.

    Raises:
        OSError: the file cannot be opened or read.
        UnicodeDecodeError: it is no text.
    """
    rest = b""
    for piece in pieces_of(source, mistake):
        *whole, rest = (rest + piece).split(b"\n")
        yield from (f"{line.decode()}\n" for line in whole)
    if rest:
        yield rest.decode()


def parquet_file(source: str | os.PathLike[str]) -> BinaryIO | None:
    """Returns an open Parquet file; `None` for any other kind, of which standard input (`-`) loses nothing.

    Raises:
        OSError: the file cannot be opened or read.
    """
    if os.fspath(source) != STANDARD_INPUT:
        with ExitStack() as stack:
            file = stack.enter_context(Path(source).open("rb"))
            if file.read(len(_PARQUET)) != _PARQUET:
                return None
            file.seek(0)
            stack.pop_all()
            return file
    # What a pipe holds is needed whole: a table's index is at its end.
    head = sys.stdin.buffer.peek(len(_PARQUET)) if hasattr(sys.stdin.buffer, "peek") else b""
    return io.BytesIO(sys.stdin.buffer.read()) if head.startswith(_PARQUET) else None


def shown_name(source: str | os.PathLike[str] | BinaryIO) -> str:
    """Returns what errors call a file: its path, or that it is standard input."""
    if isinstance(source, str | os.PathLike):
        path = os.fspath(source)
        return "<stdin>" if path == STANDARD_INPUT else path
    return str(getattr(source, "name", "<stream>"))


def _unpacked(file: BinaryIO, stack: ExitStack, mistake: Mistake) -> Iterator[bytes]:
    head = piece = file.read(PACKED_BYTES)
    # A pipe may hand over a byte or two at first.
    while piece and len(head) < _HEAD_BYTES:
        piece = file.read(PACKED_BYTES)
        head += piece
    for magic, words in _UNREAD.items():
        if head.startswith(magic):
            raise mistake(f"is {words}")
    for magic, (name, new) in _PACKED.items():
        if head.startswith(magic):
            yield from _checked(_unpack(file, head, name, new, mistake), mistake)
            return
    if head.startswith(_ZIP):
        yield from _checked(_unzip(file, head, stack, mistake), mistake)
        return
    while head:
        yield head
        head = file.read(BLOCK_BYTES)


def _checked(pieces: Iterator[bytes], mistake: Mistake) -> Iterator[bytes]:
    """Yields unpacked content; refuses nested archives."""
    head = b""
    for piece in pieces:
        head += piece
        if len(head) >= _HEAD_BYTES:
            break
    place, magic = _TAR
    if head[place:].startswith(magic):
        raise mistake("holds a tar archive; unpack it: tar -xf, and take the log within")
    if head.startswith((*_PACKED, _ZIP, *_UNREAD)):
        raise mistake("is packed twice; unpack it once")
    if head:
        yield head
    yield from pieces


def _unpack(
    file: BinaryIO, packed: bytes, name: str, new: Callable[[], _Unpacker], mistake: Mistake
) -> Iterator[bytes]:
    """Yields the content of a packed file, which may have several members."""
    member = new()
    unpacked = 0
    while True:
        try:
            piece = member.decompress(packed, BLOCK_BYTES)
        except (zlib.error, OSError, EOFError, lzma.LZMAError) as error:
            known = (words for fault, words in _ZLIB_FAULTS.items() if fault in str(error))
            raise mistake(
                f"is damaged: {next(known, error)} ({unpacked} bytes could be unpacked), "
                "fetch or copy the file again"
            ) from error
        unpacked += len(piece)
        if piece:
            yield piece
        packed = b""
        if member.eof:
            # Padding with zeros is allowed after a member; anything else must be another one.
            packed = member.unused_data.lstrip(b"\0")
            while not packed and (read := file.read(PACKED_BYTES)):
                packed = read.lstrip(b"\0")
            if not packed:
                return
            member = new()
        elif member.needs_input:
            packed = file.read(PACKED_BYTES)
            if not packed and not piece:
                raise mistake(
                    f"is cut off: the {name} data end after {unpacked} unpacked bytes, "
                    "fetch or copy the file again"
                )


def _unzip(file: BinaryIO, head: bytes, stack: ExitStack, mistake: Mistake) -> Iterator[bytes]:
    # Where its files lie stands at its end, and a pipe cannot go back.
    copy = tempfile.SpooledTemporaryFile(max_size=BLOCK_BYTES)  # noqa: SIM115  # the stack closes it
    stack.enter_context(copy)
    while head:
        copy.write(head)
        head = file.read(BLOCK_BYTES)
    unpacked = 0
    try:
        archive = stack.enter_context(zipfile.ZipFile(copy))
        inside = [entry for entry in archive.infolist() if not entry.is_dir()]
        if len(inside) != 1:
            names = ", ".join(entry.filename for entry in inside[:5])
            raise mistake(
                f"is a zip archive of {len(inside)} files ({names or 'none'}); unpack it and name one"
            )
        content = stack.enter_context(archive.open(inside[0]))
        while piece := content.read(BLOCK_BYTES):
            unpacked += len(piece)
            yield piece
    except (zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise mistake(
            f"is a zip archive that is cut off or damaged: {error} ({unpacked} bytes could be "
            "unpacked), fetch or copy the file again"
        ) from error
    except (NotImplementedError, RuntimeError) as error:  # an unknown method; a password
        raise mistake(f"is a zip archive that cannot be unpacked here: {error}") from error


def _as_utf8(pieces: Iterator[bytes], mistake: Mistake) -> Iterator[bytes]:
    head = b""
    for piece in pieces:
        head += piece
        if len(head) >= 4:
            break
    if head.startswith(_UTF8_MARK):
        head = head.removeprefix(_UTF8_MARK)
    for encoding, begin in _WIDE:
        if begin.match(head):
            decoder = codecs.getincrementaldecoder(encoding)()
            try:
                yield decoder.decode(head).encode()
                for piece in pieces:
                    yield decoder.decode(piece).encode()
                yield decoder.decode(b"", final=True).encode()
            except UnicodeError as error:
                raise mistake(f"is no text in {encoding.upper()}: {error}") from error
            return
    if head:
        yield head
    yield from pieces
