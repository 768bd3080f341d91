"""The option `--json` of all commands: their output for programs, with a schema each.

`json_option` gives a command the option and its model; `print_json` prints values by that model.
docs/schemas/commands holds the schemas that pydantic makes of the models, so that the output always
matches them. Models are named, not imported, since importing takes longer than many a command.
"""

import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from lrms_sim.util.process_guard import in_unicode

if TYPE_CHECKING:
    from pydantic import BaseModel

_Command = TypeVar("_Command", bound=Callable[..., object])
_MODELS: Final[dict[str, str]] = {}


class JsonOption(click.Option):
    """The option of one command; with `lines` it prints a line for each of many values."""

    def __init__(self, *arguments: Any, schema: str, lines: bool, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self.schema = schema
        self.lines = lines


def json_option(
    schema: str, model: str, *, lines: bool = False, file: str = ""
) -> Callable[[_Command], _Command]:
    """Gives a command the option `--json`, as its argument `as_json`.

    Args:
        schema: name of the file in docs/schemas/commands, without its extension.
        model: the pydantic model, as `package.module:Name`.
        lines: one line of JSON for each value, as they come.
        file: content of the file that the option names, in words; the argument is then `json`.
    """
    _MODELS[schema] = model
    if file:
        words = f"Write {file} as JSON; - for standard output. docs/schemas/commands/{schema}.json."
        path = click.Path(path_type=Path, dir_okay=False)
        return click.option(
            "--json", "json", type=path, cls=JsonOption, schema=schema, lines=False, help=words
        )
    each = ", a line for each" if lines else ""
    words = f"Print JSON{each}, for programs: docs/schemas/commands/{schema}.json."
    return click.option(
        "--json", "as_json", is_flag=True, cls=JsonOption, schema=schema, lines=lines, help=words
    )


def model_of(schema: str) -> "type[BaseModel]":
    """Returns the model of a schema; `KeyError` if no imported command has it."""
    module, _, name = _MODELS[schema].partition(":")
    model: type[BaseModel] = getattr(import_module(module), name)
    return model


def print_json(schema: str, values: object, *, line: bool = False) -> None:
    """Prints a mapping or an object's attributes as JSON; nan is null."""
    import json  # noqa: PLC0415  # help comes at once

    checked = model_of(schema).model_validate(values)
    document = checked.model_dump(mode="json", by_alias=True, exclude_unset=True)
    text = json.dumps(document, indent=None if line else 2, ensure_ascii=False, allow_nan=False)
    click.echo(escaped(text))


def escaped(text: str) -> str:
    """Returns JSON for standard output, in which what could steer a terminal is an escape of the same value.

    So is whatever is not in ASCII where standard output is in another encoding than UTF-8, such as Latin-1.
    """
    plain = in_unicode(sys.stdout)
    if text.replace("\n", "").isprintable() and (plain or text.isascii()):
        return text
    import json  # noqa: PLC0415  # help comes at once

    return "".join(
        c if (c.isprintable() and (plain or c.isascii())) or c == "\n" else json.dumps(c)[1:-1]
        for c in text
    )
