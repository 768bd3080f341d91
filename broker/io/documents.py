"""TOML and JSON files, plain or gzip-compressed, as decoded documents.

Input is limited after decompression, so that neither a huge file nor a small one that unpacks to a
huge one exhausts memory.
"""

import json
import zlib
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, Final, NoReturn

from broker.util.errors import FileError
from lrms_sim.util.file_errors import Mistake
from lrms_sim.util.files import no_document, object_of, parse_toml

FILE_BYTES_MAX: Final = 256 << 20
"""Largest file, in bytes after decompression."""

_GZIP_MAGIC = b"\x1f\x8b"
_CHUNK = 1 << 20


def read_document(path: Path, *, bytes_max: int = FILE_BYTES_MAX) -> dict[str, Any]:
    """Reads a TOML or JSON file; the format is taken from the name, else from the first bytes.

    Raises:
        FileError: it cannot be read, is too large, damaged, neither TOML nor JSON, or no table.
    """
    data = read_bytes(path, bytes_max=bytes_max)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        _fail(path, f"byte {error.start} is not UTF-8 text")
    name = path.name.removesuffix(".gz")
    is_json = name.endswith(".json") or (not name.endswith(".toml") and text.lstrip()[:1] == "{")
    if not is_json:
        return parse_toml(text, str(path), partial(FileError.of, str(path)))
    document = _json(path, text)
    if not isinstance(document, dict):
        _fail(path, "the outermost value must be an object in braces")
    return document


def read_bytes(path: Path, *, bytes_max: int = FILE_BYTES_MAX) -> bytes:
    """Returns the content of a file, decompressed if it is gzip.

    Raises:
        FileError: it cannot be read, exceeds the limit, or is truncated or damaged.
    """
    try:
        with path.open("rb") as stream:
            begin = stream.read(len(_GZIP_MAGIC))
            if begin == _GZIP_MAGIC:
                data = _decompressed(path, begin, stream, bytes_max)
            else:
                data = begin + stream.read(bytes_max + 1)
    except OSError as error:
        _fail(path, f"cannot be read: {error.strerror or error}")
    if len(data) > bytes_max:
        _fail(path, f"is larger than {bytes_max:,} bytes")
    return data


def _decompressed(path: Path, begin: bytes, stream: BinaryIO, bytes_max: int) -> bytes:
    # The gzip module reads past a limit to find the end; zlib stops where told.
    inflate = zlib.decompressobj(wbits=31)
    parts: list[bytes] = []
    room = bytes_max + 1
    chunk = begin
    try:
        while room > 0:
            part = inflate.decompress(chunk, room)
            parts.append(part)
            room -= len(part)
            if inflate.eof:
                chunk = inflate.unused_data or stream.read(_CHUNK)
                if not chunk.strip(b"\0"):
                    break  # What follows the last member may be padding.
                inflate = zlib.decompressobj(wbits=31)
                continue
            chunk = inflate.unconsumed_tail or stream.read(_CHUNK)
            if not chunk:
                _fail(path, "is cut off: the compressed data ends before its end")
    except zlib.error as error:
        _fail(path, f"is damaged: {error}")
    return b"".join(parts)


def _json(path: Path, text: str) -> object:
    try:
        return json.loads(text, object_pairs_hook=object_of)
    except json.JSONDecodeError as error:
        _fail(path, f"no JSON: {error.msg} (at line {error.lineno}, column {error.colno})")
    except ValueError as error:
        _fail(path, no_document("JSON", error))
    except RecursionError:
        _fail(path, "nested too deeply")


def _fail(path: Path, text: str) -> NoReturn:
    raise FileError(str(path), [Mistake("", text)]) from None
