"""A file that another program appends to."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from grms.lrms.batch import log_file
from grms.lrms.batch.log_file import FollowedFile, FollowedRecords


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


def test_records_are_kept_by_whoever_has_read_them(tmp_path: Path) -> None:
    """Once each, in their order, by the job that each is of; the oldest jobs' go first."""
    path = tmp_path / "log"
    fails = [ValueError("not now")]

    def parse(lines: list[str]) -> Iterator[tuple[str, str]]:
        for line in lines:
            yield line[0], line
        if fails:
            raise fails.pop()

    records = FollowedRecords(str(path), parse, most=2)
    append(path, "a1\nb1\n")
    with pytest.raises(ValueError, match="not now"):
        records.read()
    assert records.of("a") == ()
    append(path, "a2\n")
    records.read()
    records.read()
    assert (records.of("a"), records.of("b"), records.of("c")) == (("a1", "a2"), ("b1",), ())
    append(path, "c1\n")
    records.read()
    assert (records.of("a"), records.of("c")) == ((), ("c1",))


def test_two_readers_at_once_lose_nothing(tmp_path: Path) -> None:
    """Nor have they anything twice, in whichever thread each reads."""
    path = tmp_path / "log"
    lines = [f"a{number}" for number in range(2000)]
    records = FollowedRecords(str(path), lambda some: [("a", line) for line in some], most=2)
    with ThreadPoolExecutor(4) as threads:
        for line in lines:
            append(path, f"{line}\n")
            threads.submit(records.read)
    records.read()
    assert records.of("a") == tuple(lines)


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
