from pathlib import Path

import click
import pytest

from scenarios import cli
from scenarios.paper_cli import _Seeds


@pytest.mark.parametrize(
    ("text", "seeds"),
    [("3", (3,)), ("1-5", (1, 2, 3, 4, 5)), ("1, 4,7", (1, 4, 7)), ("0-1,9", (0, 1, 9))],
)
def test_seeds_are_written_as_people_do(text: str, seeds: tuple[int, ...]) -> None:
    """Single ones, ranges, lists of both."""
    assert _Seeds().convert(text, None, None) == seeds


@pytest.mark.parametrize("text", ["", "x", "5-1", "1,1", "1-200", "1,,2", "-3", "1.5"])
def test_other_texts_are_no_seeds(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The command says how to write them, before anything runs."""
    with pytest.raises(click.UsageError):
        _Seeds().convert(text, None, None)
    assert cli.run_command(["paper", "decentralized-grid", f"--seeds={text}"]) == 2
    assert "Error" in capsys.readouterr().err


def test_missing_logs_end_with_the_command_that_gets_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Status 2 and no traceback."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HANSE_TRACES", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cli.run_command(["paper", "decentralized-grid", "--shipped"]) == 2
    error = capsys.readouterr().err
    assert "scenario fetch" in error
    assert "Traceback" not in error


def test_help_says_what_it_takes(capsys: pytest.CaptureFixture[str]) -> None:
    """Which logs, how long, and how to see something at once."""
    assert cli.run_command(["paper", "decentralized-grid", "--help"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    for part in ("kth, ctc, sdsc05 and sdsc00", "--shipped", "Ctrl-C"):
        assert part in text
