"""Groups of commands whose help has sections, and commands with names of two words.

`gorba plan FILE…` plans, and `gorba plan show` shows what a broker has planned: the second word
names a command only where it is one, and a file of that name is `./show`.
"""

from collections.abc import Mapping, Sequence

import click
from click.shell_completion import CompletionItem

from lrms_sim.spelling import unknown


class SectionedGroup(click.Group):
    """See the module."""

    def __init__(self, *arguments: object, **options: object) -> None:
        super().__init__(*arguments, **options)  # type: ignore[arg-type]  # click's own
        self._sections: dict[str, tuple[str, ...]] = {}
        self._two_words: dict[tuple[str, str], click.Command] = {}

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
        """Returns name, command and what is left; two words go before one."""
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
) -> list[CompletionItem]:
    """Returns how a shell completes the files of a command that is also the first of two words.

    Args:
        context: of the command, within its group.
        parameter: the argument with the files.
        incomplete: what is typed of the word.
    """
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
