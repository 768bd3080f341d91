"""Fields of dataclasses that are options of commands; commands read them by `lrms_sim.commandline.field_options`."""

from dataclasses import MISSING, field
from typing import Any


def option(help: str = "", *, default: Any = MISSING, flag: str = "", **more: Any) -> Any:  # noqa: A002  # click's word
    """Returns a field that is also an option of a command.

    Args:
        help: of the option.
        default: of field and option.
        flag: the option's name; the field's where empty.
        more: what else `click.option` takes; `type` stands for the field's.
    """
    told = {"help": help} if help else {}
    return field(default=default, metadata=told | {"flag": flag} | more)
