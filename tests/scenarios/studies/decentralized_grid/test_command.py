import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from scenarios.studies.decentralized_grid.command import print_study, run_command
from scenarios.studies.decentralized_grid.options import StudyOptions
from tests.scenarios.studies.decentralized_grid.made_up import made_up


def printed(width: int) -> str:
    """Returns what is printed of a study on a terminal of that width."""
    console = Console(width=width, record=True, file=io.StringIO())
    print_study(console, made_up({1: 1.0, 2: 1.1, 3: 0.9}))
    return console.export_text()


def test_the_tables_fit_a_terminal_of_80_columns() -> None:
    """No figure is cut."""
    text = printed(80)
    assert max(len(line) for line in text.splitlines()) <= 80
    assert "66,101" in text
    assert "+20.0 (12.0…28.0)" in text
    assert "four-sites-6" in text


@pytest.mark.traces
def test_the_shipped_study_writes_page_and_figures(
    tmp_path: Path, traces_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Everything replayed with the rule bases that come with the program."""
    monkeypatch.setenv("HANSE_TRACES", str(traces_folder))
    options = StudyOptions(tmp_path, seeds=(), more_generations=0)
    page = run_command(options, Console(quiet=True), Console(quiet=True))
    assert page.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    study = json.loads((tmp_path / "study.json").read_text(encoding="utf-8"))
    assert study["trainings"] == []
    assert {run["policies"] for run in study["runs"]} == {"awf", "fcfs-egoistic"}
