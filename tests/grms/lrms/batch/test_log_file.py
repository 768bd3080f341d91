"""A file that another program appends to."""

from pathlib import Path

import pytest

from grms.lrms.batch import log_file
from grms.lrms.batch.log_file import FollowedFile


def append(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


def test_each_line_comes_once_and_whole(tmp_path: Path) -> None:
    """Half a line waits for its other half."""
    path = tmp_path / "log"
    followed = FollowedFile(str(path))
    assert followed.new_lines() == []
    append(path, "one\ntw")
    assert followed.new_lines() == ["one"]
    assert followed.new_lines() == []
    append(path, "o\nthree\n")
    assert followed.new_lines() == ["two", "three"]


def test_rotation_loses_nothing_of_the_new_file(tmp_path: Path) -> None:
    """A new file, and one that was made empty, are read from their beginning."""
    path = tmp_path / "log"
    followed = FollowedFile(str(path))
    append(path, "one\n")
    assert followed.new_lines() == ["one"]
    path.rename(tmp_path / "log.1")
    append(path, "two, longer\n")
    assert followed.new_lines() == ["two, longer"]
    path.write_text("3\n")
    assert followed.new_lines() == ["3"]


def test_only_the_end_of_a_long_file_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log of years does not fill the memory."""
    monkeypatch.setattr(log_file, "FIRST_BYTES_MAX", 8)
    path = tmp_path / "log"
    append(path, "old\n" * 100 + "new\n")
    assert FollowedFile(str(path)).new_lines()[-1] == "new"
    assert len(FollowedFile(str(path)).new_lines()) == 2


def test_a_line_without_end_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor does it."""
    monkeypatch.setattr(log_file, "LINE_BYTES_MAX", 10)
    path = tmp_path / "log"
    followed = FollowedFile(str(path))
    append(path, "x" * 50)
    assert followed.new_lines() == []
    append(path, "\nnext\n")
    assert followed.new_lines() == ["", "next"]
