"""What the commands of studies have in common."""

from pathlib import Path
from types import SimpleNamespace

import click
import pytest

from grms.learning.training import TrainingInterrupted
from scenarios.studies.common import options
from scenarios.studies.common.options import run_and_tell


def test_the_page_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """When the study is over; of one that was interrupted how to go on."""

    def run_command(name: str, *_: object) -> Path:
        if not name:
            raise TrainingInterrupted("interrupted", resumable=True)
        return tmp_path / name

    command = SimpleNamespace(run_command=run_command)
    monkeypatch.setattr(options, "import_module", lambda _: command)
    run_and_tell("some", "page")
    assert capsys.readouterr().out == f"\nWritten to {tmp_path / 'page'}\n"
    with pytest.raises(click.Abort):
        run_and_tell("some", "")
    assert capsys.readouterr().err == "\ninterrupted; the same command goes on from there\n"
