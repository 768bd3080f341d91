"""Options of commands that evaluate much."""

from collections.abc import Sequence
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from grms.learning.evolution.termination import Limits
from grms.learning.run_options import end_interrupted, workers_of
from grms.learning.training import TrainingInterrupted
from lrms_sim.cli.running import EXIT_INTERRUPTED
from lrms_sim.util.option_fields import field_options, taken
from lrms_sim.util.workers import Workers


def run(arguments: Sequence[str]) -> tuple[Result, list[Any]]:
    """Runs a command with all options.

    Returns:
        the result, and what was said: the limits, the workers; nothing after an error.
    """
    said: list[Any] = []

    @click.command()
    @field_options(Limits, target={"help": "Stop at this height."})
    @field_options(Workers, executor={"default": "processes"})
    def command(**chosen: Any) -> None:
        said.extend((Limits(**taken(Limits, chosen)), workers_of(chosen)))

    return CliRunner().invoke(command, arguments), said


def test_what_is_said_is_what_comes() -> None:
    """Each option has its place in limits and workers."""
    arguments = (
        "--generations 4 --evaluations 50 --time-limit 1.5 --stagnation 6 --target 0.25 "
        "--executor dask --workers 2 --scheduler tcp://localhost:8786"
    )
    result, said = run(arguments.split())
    assert result.exit_code == 0, result.output
    assert said == [
        Limits(generations=4, evaluations=50, seconds=1.5, stagnation=6, target=0.25),
        Workers("dask", 2, "tcp://localhost:8786"),
    ]


def test_nothing_said_leaves_the_defaults() -> None:
    """The executor is the one that the command named."""
    result, said = run([])
    assert result.exit_code == 0, result.output
    assert said == [Limits(), Workers("processes")]


def test_the_help_has_the_words_of_the_command() -> None:
    """Where it has its own; else those of the fields."""
    result, _ = run(["--help"])
    assert "Stop at this height." in result.output
    assert "Who evaluates; the result is the same." in result.output


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("--scheduler tcp://localhost:8786", "--scheduler goes with --executor dask"),
        ("--workers 0", "workers"),
        ("--executor none", "--executor"),
    ],
)
def test_what_cannot_be_is_refused(arguments: str, says: str) -> None:
    """In one line and with the status of a wrong use."""
    result, said = run(arguments.split())
    assert (result.exit_code, said) == (2, [])
    assert says in result.output


@pytest.mark.parametrize("resumable", [False, True])
def test_an_interrupted_command_says_how_to_go_on(*, resumable: bool) -> None:
    """Where there is something to go on with."""

    @click.command()
    def command() -> None:
        end_interrupted(TrainingInterrupted("interrupted", resumable=resumable))

    result = CliRunner().invoke(command, obj=("train", "a b", "--output", "there"))
    assert result.exit_code == EXIT_INTERRUPTED
    assert "interrupted" in result.output
    again = "go on with: grms train 'a b' --output there --resume"
    assert (again in result.output) is resumable
