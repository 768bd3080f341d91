"""The options of a command, as the fields of a dataclass say."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import click
from click.testing import CliRunner

from lrms_sim.util.option_fields import field_options, option, taken


@dataclass(frozen=True)
class Wanted:
    """One of each kind."""

    way: Literal["fast", "slow"] = option("How.", default="fast")
    limit_s: float | None = option(
        "How long.", default=None, flag="--limit", type=click.FloatRange(0)
    )
    words: tuple[str, ...] = option("What.", default=())
    target: Path | None = option("Where.", default=None)
    quiet: bool = option("Say nothing.", default=False)
    logs: bool = option("Leave logs out.", default=True, flag="--no-logs")
    inner: int = 3


def ran(*arguments: str) -> tuple[int, str, list[Wanted]]:
    """Returns status and output of a command with these options, and what it was given."""
    found: list[Wanted] = []

    @click.command()
    @field_options(Wanted, ("limit_s", "way"), way={"help": "By which way."})
    @click.option("--own", is_flag=True)
    @field_options(Wanted, ("words", "target", "quiet", "logs"))
    def command(**given: Any) -> None:
        found.append(Wanted(**taken(Wanted, given)))
        assert set(given) == {"own"}

    done = CliRunner().invoke(command, arguments)
    return done.exit_code, done.output, found


def test_defaults_are_those_of_the_fields() -> None:
    """The command is given what the dataclass has."""
    assert ran() == (0, "", [Wanted()])


def test_each_kind_is_read() -> None:
    """A choice, a number under another name, several words, a path, a flag and one that leaves something out."""
    words = ["--way", "slow", "--limit", "2.5", "--words", "a", "--words", "b", "--own"]
    words += ["--target", "x", "--quiet", "--no-logs"]
    wanted = Wanted("slow", 2.5, ("a", "b"), Path("x"), quiet=True, logs=False)
    assert ran(*words)[2] == [wanted]


def test_what_a_field_does_not_take_is_refused() -> None:
    """By click, with its own words."""
    for words in (("--way", "other"), ("--limit", "-1"), ("--inner", "4")):
        assert ran(*words)[0] == 2


def test_the_help_is_that_of_the_fields() -> None:
    """In the order asked for, with defaults, without what is no option; a command may have its own words."""
    status, text, _ = ran("--help")
    assert status == 0
    assert "By which way.  [default: fast]" in text
    assert "inner" not in text
    flags = ("--limit", "--way", "--own", "--words", "--target", "--quiet", "--no-logs")
    places = [text.index(flag) for flag in flags]
    assert places == sorted(places)


def test_without_names_all_options_are_given() -> None:
    """In the order of the fields."""

    @click.command()
    @field_options(Wanted)
    def command(**given: Any) -> None:
        click.echo(" ".join(given))

    assert set(CliRunner().invoke(command).output.split()) == set(Wanted.__annotations__) - {
        "inner"
    }
