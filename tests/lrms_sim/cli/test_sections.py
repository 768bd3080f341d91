"""Commands in sections, and commands of two words."""

import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from broker.cli.main import cli as gorba
from grms.cli.main import cli as grms
from lrms_sim.cli.running import SectionedGroup
from tests.programs import run_program


def every_command(group: click.Group, *names: str) -> list[tuple[str, ...]]:
    """Returns the words of all commands below a group."""
    found: list[tuple[str, ...]] = [names]
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            found += every_command(command, *names, name)
        else:
            found.append((*names, name))
    return found


SECTIONED = {"gorba": (gorba, ("plan show",)), "grms": (grms, ())}
WORDS = [
    *((program, words) for program, (cli, _) in SECTIONED.items() for words in every_command(cli)),
    ("gorba", ("plan", "show")),
]


@pytest.mark.parametrize(("program", "words"), WORDS, ids=[" ".join((p, *w)) for p, w in WORDS])
def test_help_fits_80_columns(program: str, words: tuple[str, ...]) -> None:
    """On any terminal nothing is cut, and no line of an example is broken."""
    cli, _ = SECTIONED[program]
    result = CliRunner().invoke(cli, [*words, "--help"], env={"COLUMNS": "80"})
    assert result.exit_code == 0
    assert max(len(line) for line in result.output.splitlines()) <= 80
    usage, _, rest = result.output.partition("\n\n")
    assert usage.startswith("Usage: ")
    assert "..." not in rest


@pytest.mark.parametrize("program", SECTIONED)
def test_every_command_stands_in_a_section(program: str) -> None:
    """Whoever reads the help sees all there is, once."""
    cli, more = SECTIONED[program]
    text = CliRunner().invoke(cli, ["--help"], env={"COLUMNS": "80"}).output
    lines = [line.strip() for line in text[text.index("Options:") :].splitlines()]
    for name in (*cli.commands, *more):
        assert sum(line.startswith(f"{name}  ") for line in lines) == 1, name


def test_plan_show_is_a_command_and_plan_still_plans(tmp_path: Path) -> None:
    """Two words name the command; a file of that name is planned with its path."""
    runner = CliRunner()
    assert "plan of a broker" in runner.invoke(gorba, ["plan", "show", "--help"]).output
    assert "FILES..." in runner.invoke(gorba, ["plan", "--help"]).output
    result = runner.invoke(gorba, ["plan", str(tmp_path / "show")])
    assert "show: cannot be read" in str(result.exception)


def test_an_unknown_command_is_said_with_what_there_is() -> None:
    """A likely one is named."""
    result = CliRunner().invoke(gorba, ["sumbit"])
    assert result.exit_code == 2
    assert "'sumbit' is no command, did you mean 'submit'?" in result.output
    assert "plan show" in result.output


def test_a_group_without_sections_lists_nothing_twice() -> None:
    """A command of two words is found by both, and by neither alone."""
    group = SectionedGroup("g")
    group.add_command(click.Command("a", callback=lambda: click.echo("one word")))
    two = click.Command("b", callback=lambda: click.echo("two words"))
    group.add_two_words("a", two)
    group.set_sections({"All": ("a", "a b")})
    runner = CliRunner()
    assert runner.invoke(group, ["a", "b"]).output == "two words\n"
    assert runner.invoke(group, ["a"]).output == "one word\n"
    assert runner.invoke(group, ["b"]).exit_code == 2


def test_the_order_of_commands_is_not_that_of_their_loading() -> None:
    """Whoever walks through all of them finds them in the same order in each process."""
    orders = []
    for first in ("submit", "advise"):
        code = (
            f"from grms.cli.main import cli; cli.get_command(None, {first!r}); print(*cli.commands)"
        )
        command = [sys.executable, "-c", code]
        done = run_program(command, check=True)
        orders.append(done.stdout.split())
    assert orders[0] == orders[1] == sorted(orders[0])


def test_a_command_that_is_added_is_the_one_that_counts() -> None:
    """Also where one of its name would have been loaded."""
    group = SectionedGroup()
    group.add_lazily({"jobs": "grms.cli.jobs_cli"})
    mine = click.Command("jobs")
    group.add_command(mine)
    assert group.get_command(None, "jobs") is mine
    assert group.commands["jobs"] is mine
