"""Fields of dataclasses that are options of commands: name, kind, default and help stand there once; and kinds of values, finite numbers and spans of days."""

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import MISSING, Field, field, fields
from pathlib import Path
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args, get_origin

import click

if TYPE_CHECKING:
    ParamType = click.ParamType
else:

    class ParamType(click.ParamType):
        """`click.ParamType`, generic as from click 8.4 on; older versions work as well."""

        def __class_getitem__(cls, _: object) -> type:
            return cls


class Finite(click.types.FloatParamType):
    """A finite number; `float` and `click.FLOAT` take nan and infinity as well."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:  # as click has it
        """Returns the number, or fails with a message for the user."""
        found = float(super().convert(value, param, ctx))
        if not math.isfinite(found):
            self.fail(f"{found} is no finite number.", param, ctx)
        return found


FINITE = Finite()


class FloatRange(click.FloatRange):
    """A finite number in a range.

    `click.FloatRange` lets nan through, as no comparison with it holds, and infinity where a side has no bound.
    """

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:  # as click has it
        """Returns the number, or fails with a message for the user."""
        found = float(super().convert(value, param, ctx))
        if not math.isfinite(found):
            self.fail(f"{found} is no finite number.", param, ctx)
        return found


def two_days(
    text: str | None, hint: str = "--window-days", *, upward: bool = True
) -> tuple[float | None, float | None]:
    """Returns the two days of `A:B`, as `0:150`, `150:` or `:150`; `None` for a missing side.

    `hint` is the option. `upward` requires the second to be after the first.

    Raises:
        click.BadParameter: it is not two days, or they are not `upward`.
    """
    if text is None:
        return None, None
    first, colon, last = text.partition(":")
    # Without a colon a part is left over that is no number.
    parts = (first, last) if colon else (":", "")
    try:
        begin, end = (float(part) if part else None for part in parts)
    except ValueError:
        raise click.BadParameter(
            f"{text!r} is not two days A:B, such as 0:150, 150: or :150", param_hint=hint
        ) from None
    if upward and begin is not None and end is not None and end <= begin:
        raise click.BadParameter(
            f"{text!r} ends on day {end:g}, which is not after day {begin:g}, where it begins; say "
            "the earlier day first, such as 0:150",
            param_hint=hint,
        )
    return begin, end


def option(help: str = "", *, default: Any = MISSING, flag: str = "", **more: Any) -> Any:  # noqa: A002  # click's word
    """Returns a dataclass field that is also an option of a command.

    `flag` is the option's name, by default the field's; `more` goes to `click.option`, where `type`
    replaces the field's.
    """
    told = {"help": help} if help else {}
    return field(default=default, metadata=told | {"flag": flag} | more)


_Command = TypeVar("_Command", bound=Callable[..., object])


def field_options(
    cls: type[Any], names: Collection[str] = (), **changes: Mapping[str, Any]
) -> Callable[[_Command], _Command]:
    """Gives a command an option for each field of a dataclass made by `lrms_sim.util.option_fields.option`.

    The command gets each as an argument of the field's name. A `bool` field is a flag that inverts
    its default, `Literal` a choice, `tuple[X, ...]` may be given several times, `float` is finite; any other has its
    type. Defaults are shown, except of flags and tuples.

    Args:
        cls: the dataclass; the annotations of these fields are types.
        names: fields of the command, in its order; all if empty.
        changes: by field, what this command passes to `click.option` instead.
    """
    known = {each.name: each for each in fields(cls) if each.metadata}

    def given(command: _Command) -> _Command:
        for name in reversed(tuple(names or known)):
            command = _option(known[name], changes.get(name, {}))(command)
        return command

    return given


def taken(cls: type[Any], chosen: dict[str, Any]) -> dict[str, Any]:
    """Returns what a command was given for fields of a dataclass, and takes it out of `chosen`."""
    return {each.name: chosen.pop(each.name) for each in fields(cls) if each.name in chosen}


def _option(each: "Field[Any]", changes: Mapping[str, Any]) -> Callable[[_Command], _Command]:
    more = {**each.metadata, **changes}
    name = more.pop("flag") or f"--{each.name.replace('_', '-')}"
    if each.type is bool and each.default is True:
        # Not every version of click has a default that differs from a flag's value.
        more = {"callback": _negated} | more
    elif each.default is not MISSING and each.default not in {None, ()}:
        shown = each.type is not bool and not isinstance(each.default, tuple)
        more = {"default": each.default, "show_default": shown} | more
    return click.option(name, each.name, **(_kind(each.type) | more))


def _negated(
    _context: click.Context, _option: click.Parameter, value: bool
) -> bool:  # as click has it
    return not value


def _kind(hint: Any) -> dict[str, Any]:
    if isinstance(hint, UnionType):
        (hint,) = (part for part in get_args(hint) if part is not NoneType)
    if hint is bool:
        return {"is_flag": True}
    if hint is float:
        return {"type": FINITE}
    if get_origin(hint) is tuple:
        return _kind(get_args(hint)[0]) | {"multiple": True}
    if get_origin(hint) is Literal:
        return {"type": click.Choice(get_args(hint))}
    return {"type": click.Path(path_type=Path, dir_okay=False) if hint is Path else hint}
