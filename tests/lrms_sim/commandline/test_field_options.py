"""The options of a command, as the fields of a dataclass say."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import click
from click.testing import CliRunner

from lrms_sim.commandline.field_options import field_options


@dataclass(frozen=True)
class Wanted:
    """One of each kind."""

    way: Literal["fast", "slow"] = field(default="fast", metadata={"help": "How."})
    limit_s: float | None = field(
        default=None,
        metadata={"option": "--limit", "type": click.FloatRange(0), "help": "How long."},
    )
    words: tuple[str, ...] = field(default=(), metadata={"help": "What."})
    target: Path | None = field(default=None, metadata={"help": "Where."})
    quiet: bool = field(default=False, metadata={"help": "Say nothing."})
    inner: int = 3


def ran(*arguments: str) -> tuple[int, str, list[Wanted]]:
    """Returns status and output of a command with these options, and what it was given."""
    found: list[Wanted] = []

    @click.command()
    @field_options(Wanted)
    def command(**given: Any) -> None:
        found.append(Wanted(**given))

    done = CliRunner().invoke(command, arguments)
    return done.exit_code, done.output, found


def test_defaults_are_those_of_the_fields() -> None:
    """The command is given what the dataclass has."""
    assert ran() == (0, "", [Wanted()])


def test_each_kind_is_read() -> None:
    """A choice, a number under another name, several words, a path and a flag."""
    words = [
        "--way",
        "slow",
        "--limit",
        "2.5",
        "--words",
        "a",
        "--words",
        "b",
        "--target",
        "x",
        "--quiet",
    ]
    assert ran(*words)[2] == [Wanted("slow", 2.5, ("a", "b"), Path("x"), quiet=True)]


def test_what_a_field_does_not_take_is_refused() -> None:
    """By click, with its own words."""
    for words in (("--way", "other"), ("--limit", "-1"), ("--inner", "4")):
        assert ran(*words)[0] == 2


def test_the_help_is_the_metadata() -> None:
    """With the default, and without what has no metadata."""
    status, text, _ = ran("--help")
    assert status == 0
    assert "How.  [default: fast]" in text
    assert "How long." in text
    assert "inner" not in text


@dataclass(frozen=True)
class Turned:
    """A flag that leaves something out."""

    logs: bool = field(default=True, metadata={"option": "--no-logs", "help": "Leave logs out."})


def test_a_flag_turns_its_default_around() -> None:
    """Whatever version of click there is."""
    given: list[bool] = []

    @click.command()
    @field_options(Turned)
    def command(logs: bool) -> None:
        given.append(logs)

    for words in ([], ["--no-logs"]):
        assert CliRunner().invoke(command, words).exit_code == 0
    assert given == [True, False]
