"""What the four commands have in common: groups, statuses, ends, consoles and progress bars.

Groups have help sections, lazily imported commands, and names of two words: `gorba plan FILE…` plans, and
`gorba plan show` shows what a broker has planned. The second word names a command only if there is such a command,
and a file of that name is `./show`.
"""

import io
import os
import sys
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Final

import click

from lrms_sim.util.errors import HanseError
from lrms_sim.util.messages import printable, system_words, unknown
from lrms_sim.util.process_guard import EXIT_INTERRUPTED, in_unicode

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem
    from rich.console import Console

__all__ = [
    "EXIT_ERROR",
    "EXIT_INTERRUPTED",
    "EXIT_PIPE",
    "PIPE_WIDTH",
    "SEED_MAX",
    "SectionedGroup",
    "file_or_second_word",
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


class SectionedGroup(click.Group):
    """A group with sections, commands that are imported on use, and commands of two words; see the module."""

    def __init__(self, *arguments: object, **options: object) -> None:
        self._lazy: dict[str, str] = {}
        self._loaded: MutableMapping[str, click.Command] = {}
        super().__init__(*arguments, **options)  # type: ignore[arg-type]  # click's own
        self._sections: dict[str, tuple[str, ...]] = {}
        self._two_words: dict[tuple[str, str], click.Command] = {}

    @property  # click's attribute; a command may not be loaded yet
    def commands(self) -> MutableMapping[str, click.Command]:
        """All commands by name, in the order of the names, whenever each was loaded; those that are not are."""
        for name in tuple(self._lazy):
            self.get_command(None, name)
        if list(self._loaded) != sorted(self._loaded):
            self._loaded = dict(sorted(self._loaded.items()))
        return self._loaded

    @commands.setter
    def commands(self, found: MutableMapping[str, click.Command]) -> None:
        """Sets those that are loaded, as click does."""
        self._loaded = found

    def add_command(self, cmd: click.Command, name: str | None = None) -> None:
        """Adds a command that is loaded; no other is for it."""
        found = name or cmd.name
        assert found is not None
        self._lazy.pop(found, None)
        self._loaded[found] = cmd

    def add_lazily(self, commands: Mapping[str, str]) -> None:
        """Adds commands that are imported on use.

        `commands` maps names to modules, in which the command has its name with `_` for `-`.
        """
        self._lazy |= commands

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  # click's
        """Returns the names of all commands; nothing is loaded."""
        return sorted({*self._loaded, *self._lazy})

    def get_command(
        self,
        ctx: click.Context | None,  # noqa: ARG002  # click's
        cmd_name: str,
    ) -> click.Command | None:
        """Returns a loaded command; `None` if there is none of that name."""
        if cmd_name in self._lazy:
            module = import_module(self._lazy[cmd_name])
            self._loaded[cmd_name] = getattr(module, cmd_name.replace("-", "_"))
            del self._lazy[cmd_name]
        return self._loaded.get(cmd_name)

    def add_two_words(self, first: str, command: click.Command) -> None:
        """Adds a command whose name is another one's name and its own."""
        assert command.name is not None
        self._two_words[first, command.name] = command

    def two_words(self) -> dict[str, click.Command]:
        """Returns the commands of two words, by both."""
        return {" ".join(words): command for words, command in self._two_words.items()}

    def set_sections(self, sections: Mapping[str, Sequence[str]]) -> None:
        """Says which commands stand together in the help, under which title."""
        self._sections = {title: tuple(names) for title, names in sections.items()}

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Returns name, command and the remaining arguments; two words take precedence over one."""
        two = self._two_words.get((args[0], args[1])) if len(args) > 1 else None
        if two is not None:
            return f"{args[0]} {args[1]}", two, args[2:]
        if args and self.get_command(ctx, args[0]) is None and not args[0].startswith("-"):
            names = [name for some in self._sections.values() for name in some]
            ctx.fail(unknown("command", args[0], names or self.list_commands(ctx)))
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the commands in their sections."""
        there = {name: self.get_command(ctx, name) for name in self.list_commands(ctx)}
        there |= self.two_words()
        limit = formatter.width - 6 - max(len(name) for name in there)
        for title, names in self._sections.items():
            rows = [
                (name, command.get_short_help_str(limit))
                for name in names
                if (command := there[name]) is not None
            ]
            with formatter.section(title):
                formatter.write_dl(rows, col_max=20)


def file_or_second_word(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> "list[CompletionItem]":
    """Completes the files of a command that is also the first of two words."""
    from click.shell_completion import CompletionItem  # noqa: PLC0415  # shells alone ask for it

    files = CompletionItem(incomplete, type="file")
    group = context.parent.command if context.parent is not None else None
    if not isinstance(group, SectionedGroup) or context.params.get(parameter.name or ""):
        return [files]
    known = (
        [*words.split(" "), command.get_short_help_str(60)]
        for words, command in group.two_words().items()
    )
    return [
        files,
        *(
            CompletionItem(second, help=help_text)
            for first, second, help_text in known
            if first == context.info_name and second.startswith(incomplete)
        ),
    ]


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
    _take_all_letters()
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
            if not isinstance(error, HanseError):
                raise
            said = str(error)
        for line in said.splitlines():
            click.echo(f"Error: {printable(line)}", err=True)
        return getattr(error, "exit_status", EXIT_ERROR)
    return status if isinstance(status, int) else 0


def _take_all_letters() -> None:
    # Text for people in a locale such as Latin-1 has "?" for what that lacks.
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and not in_unicode(stream):
            stream.reconfigure(errors="replace")


def _said(error: Exception, no_memory: str) -> str | None:
    """Returns the message for an error that any command can meet, `None` for any other."""
    if isinstance(error, MemoryError):
        return str(error) or f"not enough memory; {no_memory}"
    if isinstance(error, UnicodeEncodeError) and error.reason == _SURROGATES:
        return f"{error.object[:WORD_MAX]} is not UTF-8"
    return system_words(error) if isinstance(error, OSError) else None


def open_console(*, stderr: bool = False, pipe_width: int = PIPE_WIDTH) -> "Console":
    """Returns a console on standard output or error, `pipe_width` columns wide if it is no terminal."""
    from rich.console import Console  # noqa: PLC0415  # slow to import; help and errors come at once

    console = Console(stderr=stderr)
    return console if console.is_terminal else Console(stderr=stderr, width=pipe_width)


@contextmanager
def bar(words: str, total: int, *, least: int = 2) -> Iterator[Callable[[int], None] | None]:
    """Yields a function that is called with the amount done.

    Nothing is shown if the total is below `least`, or if standard error is no terminal.
    """
    if total < least or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console  # noqa: PLC0415  # help and errors come at once
    from rich.progress import Progress  # noqa: PLC0415  # same

    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(words, total=total)
        yield lambda done: progress.update(task, completed=done)
