"""Fields of dataclasses that are options of commands; commands read them by `lrms_sim.cli.field_options`."""

from dataclasses import MISSING, field
from typing import Any


def option(help: str = "", *, default: Any = MISSING, flag: str = "", **more: Any) -> Any:  # noqa: A002  # click's word
    """Returns a dataclass field that is also an option of a command.

    `flag` is the option's name, by default the field's; `more` goes to `click.option`, where `type`
    replaces the field's.
    """
    told = {"help": help} if help else {}
    return field(default=default, metadata=told | {"flag": flag} | more)
