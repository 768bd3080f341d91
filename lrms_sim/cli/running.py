"""What the four commands have in common: their statuses, their ends and their consoles."""

import os
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

import click

from lrms_sim.util.errors import HanseError
from lrms_sim.util.messages import printable
from lrms_sim.util.process_guard import EXIT_INTERRUPTED

if TYPE_CHECKING:
    from rich.console import Console

__all__ = [
    "EXIT_ERROR",
    "EXIT_INTERRUPTED",
    "EXIT_PIPE",
    "PIPE_WIDTH",
    "SEED_MAX",
    "open_console",
    "run_group",
]

EXIT_ERROR: Final = 2
"""Status of the process where something is wrong that the user can put right."""

EXIT_PIPE: Final = 141
"""Exit status after a broken pipe, as in shells."""

SEED_MAX: Final = 2**63 - 1

WORD_MAX: Final = 200
"""Characters of a command-line word that are repeated if it is undecodable."""

_SURROGATES: Final = "surrogates not allowed"
# What Python says where bytes of the command line that are not UTF-8 are to be sent as text.

PIPE_WIDTH: Final = 120
"""Columns of a table that goes to a file or another program."""


def run_group(
    group: click.Group,
    name: str,
    arguments: Sequence[str],
    *,
    no_memory: str,
    show: Callable[[click.ClickException], None] = click.ClickException.show,
    obj: object = None,
) -> int:
    """Runs a command line and returns the exit status: that of the command, 0, or one of the `EXIT_…` values.

    Without arguments that is `EXIT_ERROR`, with the help on standard error.

    Args:
        group: the command.
        name: of the program.
        arguments: what follows the program's name.
        no_memory: message if memory runs out.
        show: writes errors found by click.
        obj: for click's context.
    """
    # Shells ask for completions without arguments.
    if not arguments and f"_{name.replace('-', '_').upper()}_COMPLETE" not in os.environ:
        with click.Context(group, info_name=name) as context:
            click.echo(context.get_help(), err=True)
        return EXIT_ERROR
    try:
        status = group.main(list(arguments), prog_name=name, standalone_mode=False, obj=obj)
        # Output that is still in the buffer fails here, where it is caught.
        sys.stdout.flush()
    except click.ClickException as error:
        # The help of a group within the group is no mistake to be told; click has it from 8.2 on.
        if isinstance(error, getattr(click.exceptions, "NoArgsIsHelpError", ())):
            error.show()
        else:
            show(error)
        return EXIT_ERROR
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        return EXIT_INTERRUPTED
    except (BrokenPipeError, SystemExit):
        # Nothing here ends the process, but click and rich do where nobody reads on. Python flushes
        # once more at its end and would complain again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_PIPE
    except Exception as error:
        said = _said(error, no_memory)
        if said is None:
            if not isinstance(error, HanseError | OSError):
                raise
            said = str(error)
        for line in said.splitlines():
            click.echo(f"Error: {printable(line)}", err=True)
        return EXIT_ERROR
    return status if isinstance(status, int) else 0


def _said(error: Exception, no_memory: str) -> str | None:
    """Returns the message for an error that any command can meet, `None` for any other."""
    if isinstance(error, MemoryError):
        return str(error) or f"not enough memory; {no_memory}"
    if isinstance(error, UnicodeEncodeError) and error.reason == _SURROGATES:
        return f"{error.object[:WORD_MAX]} is not UTF-8"
    return None


def open_console(*, stderr: bool = False, pipe_width: int = PIPE_WIDTH) -> "Console":
    """Returns a console on standard output or error, `pipe_width` columns wide if it is no terminal."""
    from rich.console import Console  # noqa: PLC0415  # slow to import; help and errors come at once

    console = Console(stderr=stderr)
    return console if console.is_terminal else Console(stderr=stderr, width=pipe_width)
