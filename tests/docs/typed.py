"""What pages tell to type: the commands of the four programs on a page, and whether each can be typed."""

import re
import shlex
from pathlib import Path

import click

from broker.cli.main import cli as gorba
from grms.cli.main import cli as grms
from lrms_sim.cli.main import cli as lrms_sim
from scenarios.cli.main import cli as scenario

ROOT = Path(__file__).resolve().parents[2]
HOW_TOS = ROOT / "docs" / "how-to"
PROGRAMS: dict[str, click.Group] = {
    "lrms-sim": lrms_sim,
    "grms": grms,
    "gorba": gorba,
    "scenario": scenario,
}
BLOCK = re.compile(r"^```(?P<kind>\w*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
_LINE = re.compile(
    rf"^    (?:sudo -u hanse /opt/hanse/bin/|HANSE_\w+=\S+ )*(?P<words>(?:{'|'.join(PROGRAMS)}) .*?)(?: &| > \S+)?$",
    re.MULTILINE,
)
_IN_A_CELL = re.compile(rf"`(?P<words>(?:{'|'.join(PROGRAMS)}) [^`]+)`")


def page(name: str) -> str:
    """Returns the text of a how-to."""
    return (HOW_TOS / name).read_text(encoding="utf-8")


def blocks(text: str, kind: str) -> list[str]:
    """Returns the blocks of a kind on a page, in order."""
    return [block["text"] for block in BLOCK.finditer(text) if block["kind"] == kind]


def commands(text: str) -> list[list[str]]:
    """Returns the words of every command that is indented on a page, or stands in a table of commands."""
    outside = BLOCK.sub("", text)
    found = [match["words"] for match in _LINE.finditer(outside)]
    for line in outside.splitlines():
        if line.startswith("| "):
            found += [match["words"] for match in _IN_A_CELL.finditer(line)]
    whole = [words for words in found if "…" not in words]
    return [shlex.split(words.partition("|")[0]) for words in whole]


def parse(words: list[str]) -> None:
    """Takes a command as its program does, and does not run it.

    Raises:
        click.ClickException: it is none, or has options or arguments that it does not take.
    """
    group = PROGRAMS[words[0]]
    # A command keeps the options for help that it was asked with first.
    context = click.Context(group, info_name=words[0], **group.context_settings)
    command: click.Command = group
    left = words[1:]
    while isinstance(command, click.Group):
        _, found, left = command.resolve_command(context, list(left))
        assert found is not None, words
        command = found
    command.make_context(command.name, list(left), parent=context)
