"""What a study leaves in its folder."""

from pathlib import Path

import pytest

from scenarios.errors import OutputError
from scenarios.papers.study_folder import PAGE, RESULT, make_folder, write_study


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
