"""What a study leaves in its folder."""

from pathlib import Path

import pytest

from scenarios.studies.common.study_folder import (
    PAGE,
    RESULT,
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
