"""Says in words what pydantic found wrong in a document."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails, PydanticCustomError

from broker.errors import Mistake
from lrms_sim.spelling import shown, unknown

WRONG: Final = "wrong"
"""Type of an error whose text is finished: what follows the key and a colon."""

_WORDS: Final[Mapping[str, str]] = {
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
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


def wrong(text: str) -> PydanticCustomError:
    """Returns an error for a validator to raise, whose text is said as it is."""
    return PydanticCustomError(WRONG, "{text}", {"text": text})


def must_be(value: object, what: str) -> PydanticCustomError:
    """Returns an error for a validator to raise on a value that is not what it must be."""
    return wrong(f"is {shown(value)}; it must be {what}")


def mistakes_of(
    error: ValidationError, document: object, model: type[BaseModel], *, by_name: bool = False
) -> list[Mistake]:
    """Translates what pydantic found.

    Args:
        error: the findings.
        document: what was validated.
        model: what it was validated against.
        by_name: whether entries of lists are said by their `name` where they have one of their
            own: `resources.alpha.price`, not `resources[0].price`.
    """
    found = {
        Mistake(path_of(each["loc"], document if by_name else None), _text(each, model)): None
        for each in error.errors(include_url=False)
    }
    return list(found)


def path_of(parts: Sequence[int | str], document: object = None) -> str:
    """Returns the path of a key as people write it.

    Args:
        parts: keys and numbers of list entries, from the outside in.
        document: where the path leads through; entries with a unique name are said by it.
    """
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


def _text(details: ErrorDetails, model: type[BaseModel]) -> str:
    kind = details["type"]
    if kind == WRONG:
        return details["msg"]
    if kind == "missing":
        return "is missing"
    if kind == "extra_forbidden":
        loc = details["loc"]
        return unknown("key here", str(loc[-1]), _keys_beside(loc, model))
    what = _WORDS.get(kind, "").format_map(details.get("ctx", {}))
    what = what or details["msg"].removeprefix("Input should be ")
    return f"is {shown(details['input'])}; it must be {what}"


def _keys_beside(loc: Sequence[int | str], model: type[BaseModel]) -> list[str]:
    """Returns the keys that the table has in which the last part of the path stands."""
    for part in loc[:-1]:
        if isinstance(part, str):
            model = next(_models_in(model.model_fields[part].annotation))
    return list(model.model_fields)


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from _models_in(part)
