"""Text, JSON and TOML files, written atomically and read up to a limit.

Every error names the file, the place in it and the problem.
"""

import codecs
import errno
import json
import math
import os
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lrms_sim.util.messages import shown

Mistake = Callable[[str], Exception]
"""Makes an error of its text: the class of the errors that a caller promises."""

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def without_links(path: Path) -> Path:
    """Returns a path with its links resolved; the target need not exist.

    Raises:
        OSError: its links form a circle.
    """
    try:
        found = path.resolve()
    except RuntimeError:  # up to Python 3.12
        found = path
    if found.is_symlink():  # later ones leave a link of the circle
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
    return found


def check_written(
    written: Iterable[Path | None], read: Iterable[Path | None], mistake: Mistake
) -> None:
    """Refuses, before any work, to write over a file that is read, and two outputs in one file.

    `None` is a file that is not asked for. Standard output and input (`-`), devices and pipes may come
    as often as one likes.
    """
    sources = [path for path in read if path is not None and path.exists()]
    before: list[Path] = []
    for path in written:
        if path is None or str(path) == "-" or (path.exists() and not path.is_file()):
            continue
        if any(_is_same(path, source) for source in sources):
            raise mistake(f"{path}: is read here, and would be overwritten")
        if any(_is_same(path, other) for other in before):
            raise mistake(f"{path}: two outputs would be written to this one file")
        before.append(path)


def _is_same(path: Path, other: Path) -> bool:
    # Hard links are the same file by number only, files that are not there yet by path only.
    if path.exists() and other.exists():
        return path.samefile(other)
    return os.path.realpath(path) == os.path.realpath(other)


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yields a temporary path next to `path`, which replaces `path` if the block succeeds.

    If it raises, the temporary file is removed and `path` stays. A path that is no regular file,
    such as `/dev/stdout`, is yielded itself.

    Raises:
        OSError: the file cannot be put in place.
    """
    target = Path(path)
    if target.exists() and not target.is_file():
        yield target
        return
    target = without_links(target)
    # The suffix stays at the end: writers look at it to know whether to compress.
    temporary = target.with_name(f".{os.getpid()}.part.{target.name}")
    try:
        yield temporary
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Writes a file as UTF-8, atomically; `OSError` if it cannot be written."""
    with replacing(path) as draft:
        draft.write_text(text, encoding="utf-8")


def write_new(path: Path, content: bytes, mode: int = 0o600) -> None:
    """Writes a new file durably; nothing is left if that fails.

    `mode` applies from the first moment on, whatever the umask allows.

    Raises:
        FileExistsError: it exists.
        OSError: it cannot be written.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
    number = os.open(path, flags, mode)
    try:
        with os.fdopen(number, "wb") as file:
            os.fchmod(file.fileno(), mode)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    except OSError:
        path.unlink(missing_ok=True)
        raise


def write_secret(path: Path, document: Mapping[str, Any]) -> None:
    """Writes or replaces a JSON file that only its owner may read; `OSError` if that fails."""
    with replacing(path) as draft:
        draft.unlink(missing_ok=True)
        write_new(draft, json.dumps(document).encode())


def write_durable(path: Path, document: object) -> None:
    """Writes or replaces a JSON file that survives a loss of power.

    Its folder is the caller's alone, as `NAME.new` is there meanwhile.

    Raises:
        OSError: it cannot be written; the old file stays.
    """
    new = path.with_suffix(".new")
    with new.open("w", encoding="utf-8") as file:
        json.dump(document, file)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Makes the entries of a folder durable; `OSError` if it cannot."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_json(path: str | os.PathLike[str], document: Mapping[str, Any]) -> None:
    """Writes a document as JSON atomically, with numbers to the last bit.

    Raises:
        OSError: it cannot be written.
        TypeError: it cannot be represented in JSON.
        ValueError: it holds an infinity or nan.
    """
    write_text(path, json.dumps(document, indent=1, allow_nan=False) + "\n")


def read_json(path: Path, bytes_max: int, mistake: Mistake) -> Any:
    """Returns the content of a JSON file.

    `mistake` makes the error if it cannot be read, is larger than `bytes_max`, is no JSON, or has a
    duplicate key.
    """
    text = _text(read_bytes(path, bytes_max, mistake), str(path), mistake)
    try:
        return json.loads(text, parse_constant=_no_number, object_pairs_hook=object_of)
    except json.JSONDecodeError as error:
        raise mistake(f"{path}:{error.lineno}:{error.colno}: no JSON: {error.msg}") from error
    except ValueError as error:
        raise mistake(f"{path}: no JSON: {error}") from error
    except RecursionError as error:
        raise mistake(f"{path}: nested too deeply") from error


def object_of(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Returns the object of a JSON text, for `object_pairs_hook`.

    Raises:
        ValueError: a key comes twice, which is ambiguous. TOML refuses it, too.
    """
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = next(key for key, times in Counter(key for key, _ in pairs).items() if times > 1)
        raise ValueError(f"the key {shown(twice)} comes twice in one object")
    return found


def no_document(kind: str, error: ValueError) -> str:
    """Returns why a text is no TOML or JSON, from what its parser says."""
    if "set_int_max_str_digits" in str(error):
        return (
            f"no {kind}: it has a whole number of more than {sys.get_int_max_str_digits()} digits"
        )
    return f"no {kind}: {error}"


def parse_toml(data: bytes | str, shown: str, mistake: Mistake) -> dict[str, Any]:
    """Parses TOML; `shown` is the file's name in errors, which `mistake` makes."""
    text = data if isinstance(data, str) else _text(data, shown, mistake)
    try:
        return tomllib.loads(text)
    except ValueError as error:
        raise mistake(f"{shown}: {no_document('TOML', error)}") from error
    except RecursionError as error:
        raise mistake(f"{shown}: nested too deeply") from error


def read_bytes(path: Path, bytes_max: int, mistake: Mistake, *, shown: str | None = None) -> bytes:
    """Returns the content of a file; `mistake` makes the error if it is unreadable or too large."""
    shown = shown or str(path)
    try:
        with path.open("rb") as file:
            data = file.read(bytes_max + 1)
    except OSError as error:
        raise mistake(f"{shown}: cannot be read: {error.strerror or error}") from error
    if len(data) > bytes_max:
        raise mistake(f"{shown}: is larger than {bytes_max:,} bytes")
    return data


def _text(data: bytes, shown: str, mistake: Mistake) -> str:
    # Some editors put a byte order mark before the first letter, which neither TOML nor JSON knows.
    data = data.removeprefix(codecs.BOM_UTF8)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise mistake(f"{shown}: byte {error.start} is not UTF-8 text") from error


def _no_number(word: str) -> float:
    raise ValueError(f"{word} is no number")


def to_toml(document: Mapping[str, Any]) -> str:
    """Returns a document as TOML text that `tomllib` reads back the same.

    Equal documents in equal order give equal text. Tables get a header of their own, those in a
    mixed list braces.

    Raises:
        TypeError: a value is no text, integer, float, boolean, list or mapping with text keys.
        ValueError: a number is not finite, or beyond the 64 bits of TOML.
    """
    return "\n".join(_table(document, ())).lstrip("\n") + "\n"


def _table(table: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[str]:
    """Yields the lines of a table: plain values first, since a sub-table ends the table."""
    subtables = {key: value for key, value in table.items() if _is_table(value)}
    for key, value in table.items():
        if key not in subtables:
            yield f"{_key(key)} = {_value(value)}"
    for key, value in subtables.items():
        place = (*path, key)
        header = ".".join(_key(part) for part in place)
        rows = [value] if isinstance(value, Mapping) else value
        for row in rows:
            yield ""
            yield f"[{header}]" if isinstance(value, Mapping) else f"[[{header}]]"
            yield from _table(row, place)


def _is_table(value: object) -> bool:
    if isinstance(value, Mapping):
        return True
    return isinstance(value, list) and bool(value) and all(isinstance(v, Mapping) for v in value)


def _key(key: str) -> str:
    return key if _BARE_KEY.fullmatch(key) else _string(key)


def _value(value: object) -> str:
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        if not -(2**63) <= value < 2**63:
            raise ValueError(f"{value} does not fit the 64 bits of a TOML integer")
        return str(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"{value} is not finite")
        return repr(value)
    if isinstance(value, Sequence):
        return f"[{', '.join(_value(item) for item in value)}]"
    if isinstance(value, Mapping):
        pairs = ", ".join(f"{_key(key)} = {_value(item)}" for key, item in value.items())
        return f"{{ {pairs} }}" if pairs else "{}"
    raise TypeError(f"{value!r} cannot be written as TOML")


def _string(text: str) -> str:
    return '"' + "".join(_character(character) for character in text) + '"'


def _character(character: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    if ord(character) < 32 or ord(character) == 127:
        return f"\\u{ord(character):04x}"
    return character
