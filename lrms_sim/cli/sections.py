"""Command groups with help sections, lazily imported commands, and names of two words.

`gorba plan FILE…` plans, and `gorba plan show` shows what a broker has planned: the second word
names a command only if there is such a command, and a file of that name is `./show`.
"""

from collections.abc import Mapping, MutableMapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING

import click

from lrms_sim.util.messages import unknown

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


class SectionedGroup(click.Group):
    """See the module."""

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
