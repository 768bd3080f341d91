"""Looks for phrases that a reader of plain English stumbles over: `make lint` runs it.

It reads the pages of the documentation, README and CONTRIBUTING, those of the distributions in plugins/, and the help of all commands; code is left out.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from broker.cli.main import cli as gorba
from grms.cli.main import cli as grms
from lrms_sim.cli.main import cli as lrms_sim
from scenarios.cli.main import cli as scenario

ROOT = Path(__file__).resolve().parents[2]

INSTEAD = {
    r"that which": "a noun",
    r"(?:is|are|was|were|be) told(?! apart)": "is notified, learns, is logged, gets the request",
    r"(?:no|some|any|every)body(?!-)": "no site, a user, any partner, all jobs; or the passive",
    r"beside": "next to, with, compared with, in addition to",
    r"of before": "older, earlier",
    r"(?:is|are) none": "say what it is",
    r"such a one": "the noun",
    r"comes? along|coming along": "is included",
    r"(?:is|are) said": "is stated, is shown; by default",
    r"(?:comes?|came) of": "follows from, is due to",
    r"so long (?:what|a|after|that)|for so long": "for this time, this many seconds after",
}
"""Phrases, and what to write instead."""

_CODE = re.compile(r"```.*?```|`[^`\n]*`|\]\([^)]*\)|<!--.*?-->", re.DOTALL)
_EITHER = (f"(?P<p{at}>{each})" for at, each in enumerate(INSTEAD))
_PHRASES = re.compile(rf"(?<![-\w])(?:{'|'.join(_EITHER)})\b".replace(" ", r"\s+"), re.IGNORECASE)


def mistakes(name: str, text: str) -> list[str]:
    """Returns a line for each phrase in a text, with its place and what to write instead."""
    # Code is replaced by as many line ends as it had, so that lines keep their numbers.
    prose = _CODE.sub(lambda code: "X" + "\n" * code[0].count("\n"), text)
    found = []
    for phrase in _PHRASES.finditer(prose):
        line = prose.count("\n", 0, phrase.start()) + 1
        instead = list(INSTEAD.values())[int((phrase.lastgroup or "p0")[1:])]
        words = " ".join(phrase[0].split())
        found.append(f"{name}:{line}: {words!r}; better: {instead}")
    return found


def helps(name: str, command: click.Command) -> Iterator[tuple[str, str]]:
    """Yields the help of a command and of its options, and of all commands below it."""
    options = [each.help or "" for each in command.params if isinstance(each, click.Option)]
    yield f"{name} --help", "\n".join([command.help or "", command.short_help or "", *options])
    if isinstance(command, click.Group):
        context = click.Context(command, info_name=name)
        for each in command.list_commands(context):
            if (below := command.get_command(context, each)) is not None:
                yield from helps(f"{name} {each}", below)


def texts() -> Iterator[tuple[str, str]]:
    """Yields all texts, each with its name."""
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
    pages += sorted((ROOT / "plugins").glob("*/README.md"))
    for path in pages:
        yield str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")
    for name, command in {"gorba": gorba, "grms": grms, "scenario": scenario}.items():
        yield from helps(name, command)
    yield from helps("lrms-sim", lrms_sim)


if __name__ == "__main__":
    problems = [line for name, text in texts() for line in mistakes(name, text)]
    print("\n".join(problems) or "the prose is plain")
    sys.exit(bool(problems))
