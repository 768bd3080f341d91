from pathlib import Path

import pytest

from scenarios.errors import OutputError
from scenarios.papers.gorba_rescheduling.records import RUNS, RunLog
from tests.scenarios.papers.gorba_rescheduling.measured import record


def test_runs_are_found_again(tmp_path: Path) -> None:
    """What was kept under a key is there for the next study, and nothing else is."""
    log = RunLog(tmp_path)
    first = record("sweep", "gleam", each={"a & b": 1.5})
    log.add("k", first)
    assert log.get("k") == first
    again = RunLog(tmp_path)
    assert again.get("k") == first
    assert again.get("other") is None
    again.add("other", record("settings", "asma"))
    assert len((tmp_path / RUNS).read_text().splitlines()) == 2


def test_a_line_that_was_cut_off_does_not_count(tmp_path: Path) -> None:
    """Nor does one of another version: the run is done again."""
    log = RunLog(tmp_path)
    log.add("a", record("sweep", "gleam"))
    log.add("b", record("sweep", "gleam"))
    text = (tmp_path / RUNS).read_text()
    (tmp_path / RUNS).write_text('{"key": "c", "part": "sweep"}\n[]\n' + text[:-20])
    log = RunLog(tmp_path)
    assert [log.get(key) is None for key in "abc"] == [False, True, True]


def test_files_that_cannot_be_used_are_said(tmp_path: Path) -> None:
    """Reading and writing."""
    (tmp_path / RUNS).mkdir()
    with pytest.raises(OutputError, match=r"runs.jsonl cannot be read"):
        RunLog(tmp_path)
    with pytest.raises(OutputError, match=r"runs.jsonl cannot be written"):
        RunLog(tmp_path / "gone").add("k", record("sweep", "gleam"))


def test_success_is_a_plan_without_violations() -> None:
    """Late, too dear and unplanned each spoil it; the factor is against the best heuristic."""
    assert record("sweep", "gleam").keeps_all_limits
    for word in ("late", "over_budget", "unplanned"):
        assert not record("sweep", "gleam", **{word: 1}).keeps_all_limits
    assert record("sweep", "gleam", fitness=30.0, heuristic=20.0).factor == 1.5
    assert record("sweep", "gleam", fitness=30.0, heuristic=0.0).factor == 1.0
