"""The option `--json`: what is printed, and what is refused."""

import json
import math
from dataclasses import dataclass

import click
import pytest
from click.testing import CliRunner
from pydantic import ValidationError

from lrms_sim.cli.output_models import NamedWord
from lrms_sim.util.json_output import json_option, model_of, print_json


@dataclass(frozen=True)
class Word:
    """As `NamedWord` has it."""

    name: str
    description: object


def shows(value: object) -> click.Command:
    """Returns a command that shows a value in two lines."""

    @click.command()
    @json_option("test-words", "lrms_sim.cli.output_models:NamedWord", lines=True)
    def command(*, as_json: bool) -> None:
        for _ in range(2):
            if as_json:
                print_json("test-words", value, line=True)
            else:
                click.echo("words")

    return command


def test_values_are_printed_as_the_model_has_them() -> None:
    """A dataclass, one a line; what could steer a terminal is an escape."""
    runner = CliRunner()
    assert runner.invoke(shows(None), []).output == "words\nwords\n"
    done = runner.invoke(shows(Word("é", "a\x1b[2J")), ["--json"])
    assert done.output == '{"name": "é", "description": "a\\u001b[2J"}\n' * 2
    assert model_of("test-words") is NamedWord


def test_in_a_locale_of_few_letters_they_are_escapes() -> None:
    """JSON is in UTF-8 wherever it is read; in ASCII it is that, too. What is in ASCII is turned into UTF-8 by click."""
    word = Word("Ü☃", "\U0001f600")
    done = CliRunner(charset="latin-1").invoke(shows(word), ["--json"])
    assert done.exception is None
    assert done.output == '{"name": "\\u00dc\\u2603", "description": "\\ud83d\\ude00"}\n' * 2
    for charset in ("utf-8", "ascii"):
        done = CliRunner(charset=charset).invoke(shows(word), ["--json"])
        assert done.exception is None
        assert done.stdout_bytes.decode() == '{"name": "Ü☃", "description": "\U0001f600"}\n' * 2


@pytest.mark.parametrize("bad", [{"name": "a"}, Word("a", math.nan), Word("a", 3)])
def test_what_the_schema_does_not_know_is_not_printed(bad: object) -> None:
    """A program would not know what to do with it."""
    done = CliRunner().invoke(shows(bad), ["--json"])
    assert isinstance(done.exception, ValidationError)
    assert done.output == ""


def test_the_help_names_the_schema() -> None:
    """Of what is printed, and of what is written to a file."""

    @click.command()
    @json_option("test-plan", "lrms_sim.cli.output_models:NamedWord", file="the plan")
    def command(json: object) -> None:
        click.echo(f"{json}")

    runner = CliRunner()
    words = " ".join(runner.invoke(command, ["--help"]).output.split())
    assert "Write the plan as JSON; - for standard output." in words
    assert runner.invoke(command, ["--json", "x"]).output == "x\n"
    assert "a line for each" in " ".join(runner.invoke(shows(None), ["--help"]).output.split())


def test_a_whole_document_has_a_line_for_each_value(capsys: pytest.CaptureFixture[str]) -> None:
    """So that people can read it too."""
    json_option("test-words", "lrms_sim.cli.output_models:NamedWord")
    print_json("test-words", {"name": "a", "description": "b"})
    text = capsys.readouterr().out
    assert text.count("\n") == 4
    assert json.loads(text) == {"name": "a", "description": "b"}
