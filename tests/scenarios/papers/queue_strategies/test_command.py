import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from scenarios.errors import OutputError, TraceMissingError
from scenarios.papers.queue_strategies.command import print_study, run_command
from scenarios.papers.queue_strategies.options import StudyOptions
from tests.scenarios.papers.queue_strategies.made_up import made_up


def test_the_table_fits_a_terminal_of_80_columns() -> None:
    """No figure is cut."""
    console = Console(width=80, record=True, file=io.StringIO())
    print_study(console, made_up("genetic-fuzzy", {"iterative": -30.0, "symbiotic": 15.0}))
    text = console.export_text()
    assert max(len(line) for line in text.splitlines()) <= 80
    assert "-31.0 … -29.0" in text
    assert "-130.4" in text


def test_a_folder_that_cannot_be_made_is_said_before_anything_runs(tmp_path: Path) -> None:
    """Nobody waits for that."""
    (tmp_path / "file").write_text("")
    options = StudyOptions("genetic-fuzzy", tmp_path / "file" / "study")
    with pytest.raises(OutputError, match="cannot be made"):
        run_command(options, Console(quiet=True), Console(quiet=True))


def test_missing_logs_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before anything is learned."""
    monkeypatch.setenv("HANSE_TRACES", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    options = StudyOptions("greedy-criteria", tmp_path / "study")
    with pytest.raises(TraceMissingError, match="ctc"):
        run_command(options, Console(quiet=True), Console(quiet=True))


def test_figures_go_through_json() -> None:
    """No number that JSON has not."""
    study = made_up("genetic-fuzzy", {"iterative": -3.0, "symbiotic": 5.0}, moved=None)
    document = json.loads(study.to_json())
    assert document["runs"][0]["method"] == "iterative"
    assert document["transfers"][0]["gain"] is None
