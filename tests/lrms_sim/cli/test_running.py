"""How a command ends, whatever becomes of it."""

import io
import sys

import click
import pytest

from lrms_sim.cli.running import EXIT_ERROR, EXIT_INTERRUPTED, EXIT_PIPE, open_console, run_group
from lrms_sim.util.errors import HanseError


class _BadLuckError(HanseError):
    pass


def ended(error: BaseException | None, status: int | None = None) -> int:
    """Returns the status of a command that raises or returns something."""

    @click.group()
    def cli() -> None:
        pass

    @cli.command()
    def work() -> int | None:
        if error is not None:
            raise error
        return status

    return run_group(cli, "try", ["work"], no_memory="try less")


def _encoded(text: str) -> UnicodeEncodeError:
    with pytest.raises(UnicodeEncodeError) as met:
        text.encode()
    return met.value


@pytest.mark.parametrize(
    ("error", "status", "said"),
    [
        (None, 0, ""),
        (click.ClickException("no such thing"), EXIT_ERROR, "Error: no such thing\n"),
        (_BadLuckError("one\n\x1b[2Jtwo"), EXIT_ERROR, "Error: one\nError: \\x1b[2Jtwo\n"),
        (OSError(2, "No such file", "x"), EXIT_ERROR, "Error: x: No such file\n"),
        (OSError(28, "No space left on device"), EXIT_ERROR, "Error: No space left on device\n"),
        (OSError("nobody is there"), EXIT_ERROR, "Error: nobody is there\n"),
        (MemoryError(), EXIT_ERROR, "Error: not enough memory; try less\n"),
        (MemoryError("the table is too wide"), EXIT_ERROR, "Error: the table is too wide\n"),
        (_encoded("a\udcff"), EXIT_ERROR, "Error: a\\udcff is not UTF-8\n"),
        (KeyboardInterrupt(), EXIT_INTERRUPTED, "\ninterrupted\n"),
        (click.Abort(), EXIT_INTERRUPTED, "interrupted\n"),
    ],
)
def test_ends(
    error: BaseException | None, status: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each has its status, and what a user can put right is told without a traceback."""
    assert ended(error) == status
    assert capsys.readouterr().err == said


def test_a_locale_of_few_letters_has_marks_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where a workflow's name is no Latin-1."""

    @click.group()
    def group() -> None:
        """Say it."""

    @group.command()
    def say() -> None:
        click.echo("Ü☃")

    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, "latin-1", write_through=True))
    assert run_group(group, "program", ["say"], no_memory="") == 0
    assert written.getvalue() == b"\xdc?\n"


def test_a_command_gives_its_own_status() -> None:
    """As `lrms-sim run` does where no job is left."""
    assert ended(None, 1) == 1


@pytest.mark.parametrize("arguments", [(), ("more",)])
def test_without_a_command_the_help_is_on_standard_error(
    arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    """As it stands, also that of a group within the group: with status 2, and nothing before it."""
    cli = click.Group("try", commands=[click.Group("more", commands=[click.Command("work")])])
    status = run_group(cli, "try", arguments, no_memory="")
    out, err = capsys.readouterr()
    assert (status, out) == (EXIT_ERROR, "")
    assert err.startswith(f"Usage: {' '.join(('try', *arguments))} [OPTIONS] COMMAND")


def test_shells_ask_for_completions_without_a_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are answered by click, and not with the help."""
    cli = click.Group("to-try")
    monkeypatch.setattr(cli, "main", lambda *_, **__: 7)
    for variable, status in (("_TRY_COMPLETE", EXIT_ERROR), ("_TO_TRY_COMPLETE", 7)):
        monkeypatch.setenv(variable, "bash_source")
        assert run_group(cli, "to-try", (), no_memory="") == status


def test_what_nobody_can_put_right_is_raised() -> None:
    """A mistake of the program shows its traceback."""
    with pytest.raises(ZeroDivisionError):
        ended(ZeroDivisionError())


def test_a_table_that_goes_to_a_file_has_its_width() -> None:
    """It does not depend on a terminal that is not there."""
    assert open_console(pipe_width=97).width == 97
    assert open_console(stderr=True).stderr
    assert EXIT_PIPE == 141
