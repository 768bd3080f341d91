"""The article, and the recipes that make its figures."""

import re
import shlex
import tomllib

import click
import pytest

from scenarios.cli.main import cli as scenario
from tests.source_imports import ROOT

PAPER = ROOT / "paper"


def test_every_citation_has_its_entry_and_the_other_way_round() -> None:
    cited = re.findall(r"@(\w+)", (PAPER / "paper.md").read_text(encoding="utf-8"))
    entries = re.findall(
        r"^@\w+\{(\w+),", (PAPER / "paper.bib").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert sorted(set(cited)) == sorted(entries)


def commands() -> list[list[str]]:
    text = (PAPER / "reproduce.sh").read_text(encoding="utf-8")
    return [
        shlex.split(line)[2:] for line in text.splitlines() if line.strip().startswith("study ")
    ]


@pytest.mark.parametrize("words", commands(), ids=" ".join)
def test_a_study_is_run_by_a_command_that_there_is(words: list[str]) -> None:
    program, *rest = words
    assert program == "scenario"
    command: click.Command = scenario
    while isinstance(command, click.Group):
        command = command.commands[rest.pop(0)]
    known = {
        option
        for parameter in command.params
        for option in (*parameter.opts, *parameter.secondary_opts)
    }
    asked = {word for word in rest if word.startswith("-")}
    assert asked | {"--output"} <= known


def test_both_containers_install_the_same() -> None:
    packages = {
        found.strip()
        for name in ("Containerfile", "hanse.def")
        for found in re.findall(
            r"--no-install-recommends ([^\n\\]+)", (PAPER / name).read_text(encoding="utf-8")
        )
    }
    assert len(packages) == 1
    python = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
        "requires-python"
    ]
    assert python == ">=3.11"  # what Debian 12 has
