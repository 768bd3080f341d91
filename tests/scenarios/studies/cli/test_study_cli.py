from pathlib import Path
from typing import Any

import pytest

from scenarios.cli import main


def test_an_unknown_part_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    """With those that there are."""
    assert main.run_command(["study", "nobody-loses", "--part", "x"]) == 2
    assert "headroom" in capsys.readouterr().err


def test_a_scheduler_needs_dask(capsys: pytest.CaptureFixture[str]) -> None:
    """As with `grms train`."""
    words = ["study", "questions-and-delays", "--scheduler", "tcp://127.0.0.1:9"]
    assert main.run_command(words) == 2
    assert "--executor dask" in capsys.readouterr().err


def test_the_options_reach_the_study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A complete one has half a year, and five draws at least."""
    from scenarios.studies.questions_and_delays import command  # noqa: PLC0415  # as the command does

    taken: list[Any] = []

    def keep(options: object, *_: object) -> Path:
        taken.append(options)
        return tmp_path / "study.html"

    monkeypatch.setattr(command, "run_command", keep)
    words = ["study", "questions-and-delays", "--output", str(tmp_path), "--workers", "3"]
    assert main.run_command([*words, "--draws", "2"]) == 0
    assert main.run_command([*words, "--complete", "--executor", "dask"]) == 0
    short, whole = taken
    assert (short.folder, short.draws, short.half_year_draws) == (tmp_path, 2, 0)
    assert (short.workers.executor, short.workers.count) == ("processes", 3)
    assert (whole.draws, whole.half_year_draws, whole.workers.executor) == (5, 2, "dask")
