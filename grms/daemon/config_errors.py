"""Explains pydantic's findings in a file."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails, PydanticCustomError

from grms.daemon.config_base import WRONG, wrong
from lrms_sim.util.file_errors import Mistake
from lrms_sim.util.messages import shown, unknown

Places = tuple[int | str, ...]
"""Keys and list indices, from the outside in."""

_WORDS: Final[Mapping[str, str]] = {
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "string_type": "a text in quotes",
    "list_type": "a list",
    "dict_type": "a table",
    "model_type": "a table",
    "model_attributes_type": "a table",
    "finite_number": "a finite number",
    "greater_than": "more than {gt:g}",
    "greater_than_equal": "at least {ge:g}",
    "less_than_equal": "at most {le:g}",
    "string_too_short": "a text of at least {min_length} characters",
    "string_too_long": "a text of at most {max_length} characters",
    "too_long": "a list of at most {max_length} entries",
    "too_short": "a list of at least {min_length} entries",
}


@dataclass(frozen=True, slots=True)
class Peculiarities:
    """How errors in one kind of files differ from pydantic's findings.

    Attributes:
        adapted: changes path and value of a finding first.
        place: path of a key as shown, without parts that pydantic inserts.
        said: text of a finding, given its path; `None` for the default.
        narrowed: actual model of a table.
    """

    adapted: Callable[[ErrorDetails], ErrorDetails] = lambda details: details
    place: Callable[[Places], Places] = lambda loc: loc
    said: Callable[[ErrorDetails], str | None] = lambda _: None
    narrowed: Callable[[type[BaseModel]], type[BaseModel]] = lambda model: model


_NONE: Final = Peculiarities()


def must_be(value: object, what: str) -> PydanticCustomError:
    """Returns an error for a validator to raise on a value that is not what it must be."""
    return wrong(must_be_text(value, what))


def mistakes_of(
    error: ValidationError,
    document: object,
    model: type[BaseModel],
    *,
    by_name: bool = False,
    kind: Peculiarities = _NONE,
) -> list[Mistake]:
    """Translates pydantic's findings, without duplicates.

    With `by_name`, list entries are shown by their unique `name`, if they have one: `resources.alpha.price`, not
    `resources[0].price`.
    """
    found: dict[Mistake, None] = {}
    for each in map(kind.adapted, error.errors(include_url=False)):
        text = kind.said(each)
        if text is None:
            text = _text(each, model, kind)
        key = path_of(kind.place(each["loc"]), document if by_name else None)
        found[Mistake(key, text)] = None
    return list(found)


def path_of(parts: Sequence[int | str], document: object = None) -> str:
    """Returns the path of a key as people write it; with `document`, entries with a unique name are shown by it."""
    path = ""
    value = document
    for part in parts:
        if isinstance(part, int):
            name = _own_name(value, part)
            path += f".{name}" if name else f"[{part}]"
            value = value[part] if isinstance(value, list) and part < len(value) else None
        else:
            path += f".{part}" if path else part
            value = value.get(part) if isinstance(value, dict) else None
    return path


def _own_name(rows: object, index: int) -> str:
    if not isinstance(rows, list) or index >= len(rows):
        return ""
    names = [row.get("name") if isinstance(row, dict) else None for row in rows]
    name = names[index]
    good = isinstance(name, str) and name and len(name) <= 64 and names.count(name) == 1
    return name if good and isinstance(name, str) else ""


def _text(details: ErrorDetails, model: type[BaseModel], kind: Peculiarities) -> str:
    if details["type"] == WRONG:
        return details["msg"]
    if details["type"] == "missing":
        return "is missing"
    if details["type"] == "extra_forbidden":
        loc = details["loc"]
        return unknown("key here", str(loc[-1]), _keys_beside(loc, model, kind))
    what = _WORDS.get(details["type"], "").format_map(details.get("ctx", {}))
    what = what or details["msg"].removeprefix("Input should be ")
    if details["type"] == "float_type" and type(details["input"]) is int:
        what = _WORDS["finite_number"]  # more digits than a float has
    return must_be_text(details["input"], what)


def must_be_text(value: object, what: str) -> str:
    """Returns what is said of a value that is not what it must be."""
    return f"is {shown(value)}; it must be {what}"


def _keys_beside(loc: Places, model: type[BaseModel], kind: Peculiarities) -> list[str]:
    """Returns the keys of the table that contains the last part of the path."""
    models = [model]
    for part in loc[:-1]:
        holding = [one for one in models if isinstance(part, str) and part in one.model_fields]
        if len(models) > 1:
            # If there are several, pydantic says which of them it tried.
            models = holding or models
        elif holding:
            inner = _models_in(holding[0].model_fields[str(part)].annotation)
            models = [kind.narrowed(one) for one in inner] or models
    return list(models[0].model_fields)


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from _models_in(part)
