"""What a study leaves in its folder."""

from pathlib import Path

import pytest

from scenarios.studies.common.study_folder import (
    PAGE,
    RESULT,
    RUNS,
    RunLog,
    in_threads,
    make_folder,
    write_study,
)
from scenarios.util.errors import OutputError


def test_figures_and_page_lie_in_the_folder(tmp_path: Path) -> None:
    """The folder is made with those above it, and a second study replaces the first."""
    folder = tmp_path / "a" / "b"
    make_folder(folder)
    for turn in ("one", "two"):
        assert write_study(folder, f"{turn} figures", f"{turn} page") == folder / PAGE
        assert (folder / RESULT).read_text() == f"{turn} figures"
        assert (folder / PAGE).read_text() == f"{turn} page"
    assert sorted(path.name for path in folder.iterdir()) == [PAGE, RESULT]


def test_what_cannot_be_written_is_named(tmp_path: Path) -> None:
    """A file in the folder's place, and a folder in a file's."""
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match=r"file cannot be made: File exists"):
        make_folder(tmp_path / "file")
    (tmp_path / RESULT).mkdir()
    with pytest.raises(OutputError, match=r"study\.json cannot be written"):
        write_study(tmp_path, "figures", "page")


def test_runs_are_found_again(tmp_path: Path) -> None:
    """What was kept under a key is there for the next study, and nothing else is."""
    RunLog(tmp_path).add("k", {"a & b": 1.5})
    again = RunLog(tmp_path)
    assert again.known == {"k": {"a & b": 1.5}}
    again.add("other", [1])
    assert len((tmp_path / RUNS).read_text().splitlines()) == 2


def test_a_line_that_was_cut_off_does_not_count(tmp_path: Path) -> None:
    """Nor does one of another version: the run is done again."""
    log = RunLog(tmp_path)
    log.add("a", 1)
    log.add("b", 2)
    text = (tmp_path / RUNS).read_text()
    other = '{"version": "0.0.9", "key": "c", "found": 3}\n[]\n'
    (tmp_path / RUNS).write_text(other + text[:-5])
    assert RunLog(tmp_path).known == {"a": 1}


def test_runs_that_cannot_be_kept_are_said(tmp_path: Path) -> None:
    """Reading and writing."""
    (tmp_path / RUNS).mkdir()
    with pytest.raises(OutputError, match=r"runs.jsonl cannot be read"):
        RunLog(tmp_path)
    with pytest.raises(OutputError, match=r"runs.jsonl cannot be written"):
        RunLog(tmp_path / "gone").add("k", 1)


def test_cases_come_as_they_end_and_each_once() -> None:
    """Every case with what came of it; more cases than threads."""
    found = dict(in_threads(range(20), lambda number: number * number, 3))
    assert found == {number: number * number for number in range(20)}


def test_a_case_that_fails_ends_the_others() -> None:
    """What it raised is raised."""

    def fails(number: int) -> int:
        if number == 3:
            raise OutputError("no room")
        return number

    with pytest.raises(OutputError, match="no room"):
        list(in_threads(range(9), fails, 2))
