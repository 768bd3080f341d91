"""Values from decoded JSON and TOML; a wrong kind is a ValueError with place, value and kind."""

import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

from lrms_sim.util.messages import shown, unknown

_Kind = TypeVar("_Kind")


@contextmanager
def reading(source: str, mistake: type[Exception]) -> Iterator[None]:
    """Turns each ValueError of the block into an error of another class that names a file, or a place in it."""
    try:
        yield
    except ValueError as error:
        raise mistake(f"{source}: {error}") from error


def schema_in(document: object, *schemas: str) -> tuple[str, Mapping[str, Any]]:
    """Returns which of the schemas that are read a document names, and all its keys."""
    top = table(document, "the document")
    schema = top.get("schema")
    if schema not in schemas:
        known = " and ".join(map(repr, schemas))
        raise ValueError(f"schema is {shown(schema)}; this version reads {known}")
    return str(schema), top


def known_keys(keys: Iterable[str], known: Iterable[str], place: str) -> None:
    """Checks that all keys are known ones; the error names these."""
    known = list(known)
    wrong = sorted(set(keys).difference(known))
    if wrong:
        raise ValueError(f"{place}: {unknown('key', wrong[0], known)}")


def table(value: object, place: str, expected: str = "an object {…}") -> Mapping[str, Any]:
    """Returns an object of JSON, or a table of TOML."""
    return _of(value, dict, place, expected)


def listed(value: object, place: str) -> list[Any]:
    """Returns a list."""
    return _of(value, list, place, "a list […]")


def text(value: object, place: str, expected: str = "a text") -> str:
    """Returns a text."""
    return _of(value, str, place, expected)


def whole(value: object, place: str) -> int:
    """Returns a whole number; a truth value is none."""
    return _of(value, int, place, "a whole number")


def number(value: object, place: str) -> float:
    """Returns a finite number; a truth value is none."""
    given: float = _of(value, (int, float), place, "a number")
    try:
        if math.isfinite(given):
            return float(given)
    except OverflowError as error:
        raise ValueError(f"{place} is too large a number") from error
    raise ValueError(f"{place} is {shown(value)}; a finite number is expected")


def numbers(value: object, place: str) -> tuple[float, ...]:
    """Returns a list of finite numbers."""
    return tuple(number(each, f"{place}[{i}]") for i, each in enumerate(listed(value, place)))


def _of(
    value: object, kind: type[_Kind] | tuple[type[_Kind], ...], place: str, expected: str
) -> _Kind:
    if isinstance(value, bool) or not isinstance(value, kind):
        raise ValueError(f"{place} is {shown(value)}; {expected} is expected")  # noqa: TRY004  # a file's content
    return value
