"""Writes TOML: the standard library reads it only."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def dumps(document: Mapping[str, Any]) -> str:
    """Returns a document as TOML text that `tomllib` reads back the same.

    Equal documents in equal order give equal text. Tables get a header of their own, those in a
    list beside other values braces.

    Args:
        document: texts, whole numbers, finite floats, booleans, lists and mappings with text
            keys.

    Raises:
        TypeError: a value is of another type.
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
