"""Writes the manual pages and the shells' completions of the four commands, as the commands are.

`make dist` and `make man` run it. Git ignores what it writes; the sdist has it, and a wheel puts it below `share`
of where it is installed, where `man`, bash, zsh and fish look.
"""

import inspect
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import click
from click.shell_completion import BashComplete, FishComplete, ShellComplete, ZshComplete

from broker.cli.main import cli as gorba
from grms.cli.main import cli as grms
from lrms_sim.cli.main import cli as lrms_sim
from lrms_sim.cli.running import SectionedGroup
from scenarios.cli.main import cli as scenario

FOLDER = Path(__file__).resolve().parent
PROGRAMS: dict[str, click.Group] = {
    "lrms-sim": lrms_sim,
    "grms": grms,
    "gorba": gorba,
    "scenario": scenario,
}
SHELLS: dict[str, tuple[type[ShellComplete], str]] = {
    "bash-completion/completions": (BashComplete, "{}"),
    "zsh/site-functions": (ZshComplete, "_{}"),
    "fish/vendor_completions.d": (FishComplete, "{}.fish"),
}
"""Where each shell looks, what writes for it, and how a file is called."""
BASH_FILES = """COMPREPLY=()
            compopt -o default"""
BASH_FILES_TOO = """compopt -o filenames -o default
            COMPREPLY+=($(compgen -f -- "${COMP_WORDS[COMP_CWORD]}"))"""


def roff(text: str) -> str:
    """Returns text as troff prints it: no character of it is a command."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-").replace("’", "'")
    return re.sub(r"(?m)^([.'])", r"\\&\1", escaped)


def paragraphs(text: str) -> Iterator[str]:
    """Yields the help of a command as lines of troff; a part after a backspace keeps its lines."""
    for part in re.split(r"\n\s*\n", inspect.cleandoc(text).partition("\f")[0].strip()):
        if part.startswith("\b"):
            lines = roff(part.lstrip("\b").strip("\n"))
            yield f".PP\n.nf\n{lines}\n.fi"
        elif part:
            yield f".PP\n{roff(' '.join(part.split()))}"


def page(context: click.Context) -> str:
    """Returns the manual page of a command.

    Args:
        context: of the command; its path is what is typed.
    """
    command, path = context.command, context.command_path
    name = path.replace(" ", "-")
    usage = " ".join(command.collect_usage_pieces(context))
    parts = [
        f'.TH {roff(name.upper())} 1 "" Hanse "Hanse"',
        f".SH NAME\n{roff(name)} \\- {roff(command.get_short_help_str(limit=200).rstrip('.'))}",
        f".SH SYNOPSIS\n.B {roff(path)}\n{roff(usage)}",
        ".SH DESCRIPTION",
        *paragraphs(command.help or ""),
    ]
    options = [
        record for each in command.get_params(context) if (record := each.get_help_record(context))
    ]
    if options:
        parts.append(".SH OPTIONS")
        parts += [
            f".TP\n.B {roff(names)}\n{roff(' '.join(words.split()))}" for names, words in options
        ]
    below = [each.command_path for each in contexts(context)]
    if below:
        parts.append(".SH COMMANDS")
        for each in contexts(context):
            words = each.command.get_short_help_str(limit=200)
            parts.append(f".TP\n.BR {roff(each.command_path.replace(' ', '-'))} (1)\n{roff(words)}")
    above = context.parent
    if above is not None:
        parts.append(f".SH SEE ALSO\n.BR {roff(above.command_path.replace(' ', '-'))} (1)")
    return "\n".join(parts) + "\n"


def contexts(context: click.Context) -> Iterator[click.Context]:
    """Yields a context of every command of a group."""
    group = context.command
    if isinstance(group, click.Group):
        for name in group.list_commands(context):
            command = group.get_command(context, name)
            if command is not None and not command.hidden:
                # With the settings of the group, as when it is run.
                yield click.Context(command, parent=context, info_name=name)
    if isinstance(group, SectionedGroup):
        for name, command in group.two_words().items():
            yield click.Context(command, parent=context, info_name=name)


def pages() -> dict[str, str]:
    """Returns the text of every manual page, by the name of its file."""
    found: dict[str, str] = {}

    def add(context: click.Context) -> None:
        found[f"{context.command_path.replace(' ', '-')}.1"] = page(context)
        for each in contexts(context):
            add(each)

    for name, group in PROGRAMS.items():
        add(click.Context(group, info_name=name, **group.context_settings))
    return found


def completions() -> dict[str, str]:
    """Returns the script of every shell for every program, by its path."""
    found = {}
    for folder, (shell, form) in SHELLS.items():
        for name, group in PROGRAMS.items():
            variable = f"_{name.replace('-', '_').upper()}_COMPLETE"
            # Not `source`: bash's looks for a bash of its own first.
            script = ShellComplete.source(shell(group, {}, name, variable))
            # A help text may have commas: only the first one parts it from the kind of word.
            script = script.replace('(string split "," ', '(string split --max 1 "," ')
            # zsh drops empty words, and the beginning of a file's name may be one.
            script = script.replace("in ${response}; do", 'in "${(@)response}"; do')
            # bash's own completion comes only where there is no word; some words are files or commands.
            script = script.replace(BASH_FILES, BASH_FILES_TOO)
            found[f"{folder}/{form.format(name)}"] = script.strip() + "\n"
    return found


def main(folder: Path = FOLDER) -> int:
    """Writes everything anew below a folder."""
    for name in ("man", *{path.partition("/")[0] for path in SHELLS}):
        shutil.rmtree(folder / name, ignore_errors=True)
    texts = {f"man/man1/{name}": text for name, text in pages().items()} | completions()
    for name, text in texts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    print(f"{len(texts)} files in {folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
