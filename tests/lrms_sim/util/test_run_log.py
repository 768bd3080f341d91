"""Runs that are kept as they end."""

from pathlib import Path

import pytest

from lrms_sim.util.errors import HanseError
from lrms_sim.util.run_log import RunLog

RUNS = "runs.jsonl"


def test_runs_are_found_again(tmp_path: Path) -> None:
    """What was kept under a key is there for the next study, and nothing else is."""
    RunLog(tmp_path / RUNS, HanseError).add("k", {"a & b": 1.5})
    again = RunLog(tmp_path / RUNS, HanseError)
    assert again.known == {"k": {"a & b": 1.5}}
    again.add("other", [1])
    assert len((tmp_path / RUNS).read_text().splitlines()) == 2


def test_a_line_that_was_cut_off_does_not_count(tmp_path: Path) -> None:
    """Nor does one of another version: the run is done again. What comes after it is kept."""
    log = RunLog(tmp_path / RUNS, HanseError)
    log.add("a", 1)
    log.add("b", 2)
    text = (tmp_path / RUNS).read_text()
    other = '{"version": "0.0.9", "key": "c", "found": 3}\n[]\n'
    (tmp_path / RUNS).write_text(other + text[:-5])
    again = RunLog(tmp_path / RUNS, HanseError)
    assert again.known == {"a": 1}
    again.add("b", 4)
    again.add("d", 5)
    assert RunLog(tmp_path / RUNS, HanseError).known == {"a": 1, "b": 4, "d": 5}


def test_runs_that_cannot_be_kept_are_said(tmp_path: Path) -> None:
    """Reading and writing."""
    (tmp_path / RUNS).mkdir()
    with pytest.raises(HanseError, match=r"runs.jsonl cannot be read"):
        RunLog(tmp_path / RUNS, HanseError)
    with pytest.raises(HanseError, match=r"runs.jsonl cannot be written"):
        RunLog(tmp_path / "gone" / RUNS, HanseError).add("k", 1)
