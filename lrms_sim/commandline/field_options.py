"""Options of a command that are the fields of a dataclass: name, kind, default and help stand there once."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import MISSING, Field, fields
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import click

_Command = TypeVar("_Command", bound=Callable[..., object])


def field_options(cls: type[Any], names: Collection[str] = ()) -> Callable[[_Command], _Command]:
    """Gives a command an option for each field of a dataclass that has metadata.

    The command gets each as an argument of the field's name. A field of `bool` is a flag that turns its default around, one of `Literal`
    a choice, one of `tuple[X, ...]` may be given several times; any other has its type. Metadata are what
    `click.option` takes; `type` there stands for the field's, and `option` for its name.

    Args:
        cls: the dataclass.
        names: of the fields that the command has; all where empty.
    """
    hints = get_type_hints(cls)
    found = [
        field_option(each, hints[each.name], each.metadata)
        for each in fields(cls)
        if each.metadata and (not names or each.name in names)
    ]

    def given(command: _Command) -> _Command:
        for option in reversed(found):
            command = option(command)
        return command

    return given


def field_option(
    each: Field[Any], hint: Any, metadata: Mapping[str, Any]
) -> Callable[[_Command], _Command]:
    """Returns the option of one field.

    Args:
        each: the field, with its name and default.
        hint: its type.
        metadata: as for `field_options`.
    """
    more = dict(metadata)
    name = more.pop("option", f"--{each.name.replace('_', '-')}")
    if hint is bool and each.default is True:
        # Not every version of click has a default that differs from a flag's value.
        more = {"callback": _negated} | more
    elif each.default is not MISSING and each.default not in {None, ()}:
        more = {"default": each.default, "show_default": hint is not bool} | more
    return click.option(name, each.name, **(_kind(hint) | more))


def _negated(
    _context: click.Context, _option: click.Parameter, value: bool
) -> bool:  # as click has it
    return not value


def _kind(hint: Any) -> dict[str, Any]:
    """Returns what click takes for values of a type."""
    if isinstance(hint, UnionType):
        (hint,) = (part for part in get_args(hint) if part is not NoneType)
    if hint is bool:
        return {"is_flag": True}
    if get_origin(hint) is tuple:
        return _kind(get_args(hint)[0]) | {"multiple": True}
    if get_origin(hint) is Literal:
        return {"type": click.Choice(get_args(hint))}
    return {"type": click.Path(path_type=Path, dir_okay=False) if hint is Path else hint}
