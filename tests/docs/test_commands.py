"""One vocabulary: what several commands call alike is on one page, and old names go on working."""

import re
import sys
from collections import defaultdict
from pathlib import Path

import click
import pytest

from broker.cli.main import cli as gorba
from grms.cli.main import cli as grms
from lrms_sim.cli.main import cli as lrms_sim
from lrms_sim.util.version import __version__
from scenarios.cli.main import cli as scenario
from tests.programs import run_program

PAGE = (Path(__file__).resolve().parents[2] / "docs/commands.md").read_text(encoding="utf-8")
PROGRAMS = {"lrms-sim": lrms_sim, "grms": grms, "gorba": gorba, "scenario": scenario}


def options() -> dict[str, set[str]]:
    """Returns the programs that have each long option that help shows."""
    found: dict[str, set[str]] = defaultdict(set)

    def walk(command: click.Command, program: str) -> None:
        if isinstance(command, click.Group):
            for each in command.commands.values():
                walk(each, program)
        for option in command.params:
            if isinstance(option, click.Option) and not option.hidden:
                for name in option.opts:
                    if name.startswith("--"):
                        found[name].add(program)

    for program, command in PROGRAMS.items():
        walk(command, program)
    return found


def section(title: str) -> str:
    """Returns a section of the page."""
    return PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def named(text: str) -> set[str]:
    """Returns the options in the first column of a table."""
    rows = [line.split("|")[1] for line in text.splitlines() if line.startswith("| `")]
    return set(re.findall(r"--[a-z-]+", " ".join(rows)))


def test_what_several_commands_have_is_explained_once() -> None:
    """Whoever gives two programs an option of one name says what it means in both."""
    shared = {name for name, programs in options().items() if len(programs) > 1}
    explained = named(section("Options that several commands have"))
    assert shared - explained == set()


def test_what_is_explained_is_there() -> None:
    """No option of the page is gone."""
    known = options()
    explained = named(section("Options that several commands have"))
    assert explained - set(known) - {"--help"} == set()


def test_time_to_search_and_money_have_one_name_each() -> None:
    """A search has a time, a workflow a budget."""
    plan, submit = gorba.commands["plan"], gorba.commands["submit"]
    shown = {
        command.name: {name for option in command.params for name in option.opts}
        for command in (plan, submit)
    }
    assert "--search-time" in shown["plan"]
    assert "--budget" in shown["submit"]


def test_every_name_that_is_taken_is_shown() -> None:
    """There are no old names of options."""
    seen = 0

    def walk(command: click.Command) -> None:
        nonlocal seen
        if isinstance(command, click.Group):
            for each in command.commands.values():
                walk(each)
        hidden = [option for option in command.params if getattr(option, "hidden", False)]
        assert hidden == [], command.name
        seen += 1

    for program in PROGRAMS.values():
        walk(program)
    assert seen > 80


PACKAGES = {"lrms_sim": "lrms-sim", "grms": "grms", "broker": "gorba", "scenarios": "scenario"}


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_runs_as_its_command(package: str) -> None:
    """`python -m` needs no scripts on the path; the version is that of the package."""
    command = [sys.executable, "-m", package, "--version"]
    done = run_program(command)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"{PACKAGES[package]}, version {__version__}\n"


def test_numbers_are_finite() -> None:
    """For all commands of all programs, in a range or not."""
    found = []

    def walk(command: click.Command, path: str) -> None:
        if isinstance(command, click.Group):
            for name, each in command.commands.items():
                walk(each, f"{path} {name}")
        for option in command.params:
            if isinstance(option.type, click.types.FloatParamType | click.FloatRange):
                found.append(f"{path} {option.opts[0]}")
                for wrong in ("nan", "inf", "-inf"):
                    with pytest.raises(click.BadParameter, match=wrong):
                        option.type(wrong, option, None)

    for program, command in PROGRAMS.items():
        walk(command, program)
    assert len(found) > 60
