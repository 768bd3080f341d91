from pathlib import Path

import pytest

from scenarios import cli


def test_missing_logs_end_with_the_command_that_gets_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Status 2 and no traceback."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HANSE_TRACES", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cli.run_command(["study", "nobody-loses", "--part", "adoption"]) == 2
    error = capsys.readouterr().err
    assert "scenario fetch kth" in error
    assert "Traceback" not in error


def test_an_unknown_part_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    """With those that there are."""
    assert cli.run_command(["study", "nobody-loses", "--part", "x"]) == 2
    assert "headroom" in capsys.readouterr().err


def test_help_says_what_it_takes(capsys: pytest.CaptureFixture[str]) -> None:
    """Which logs, how long, and that it goes on."""
    assert cli.run_command(["study", "nobody-loses", "--help"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    for part in ("kth, ctc, sdsc05 and sdsc00", "ten minutes", "--complete", "Ctrl-C"):
        assert part in text
