"""What has come home, on the disk."""

import hashlib
import os
from pathlib import Path

import pytest

from grms.daemon import file_store as module
from grms.daemon.file_store import Manifest, ResultStore, WrongContentError, digest_of
from grms.daemon.job_files import FileProblem, JobFile


def file_of(content: bytes, name: str = "a/b") -> JobFile:
    """Returns what a partner says of a content."""
    return JobFile(name, len(content), hashlib.sha256(content).digest())


def test_a_content_comes_in_pieces_and_over_a_restart(tmp_path: Path) -> None:
    """What is there need not come again; the list is there when all is."""
    file, missing = file_of(b"abcdef"), JobFile("c", problem=FileProblem.MISSING)
    store = ResultStore(tmp_path / "results")
    assert store.begun("home-1", 0, file) == 0
    store.append("home-1", 0, b"abc")
    assert store.manifest("home-1") is None
    store = ResultStore(tmp_path / "results")
    assert store.begun("home-1", 0, file) == 3
    store.append("home-1", 0, b"def")
    store.check("home-1", 0, file)
    store.finish("home-1", Manifest((file, missing)))
    assert ResultStore(tmp_path / "results").manifest("home-1") == Manifest((file, missing))
    place, name = store.content("home-1", 0)
    assert (place / name).read_bytes() == b"abcdef"


def test_another_content_begins_anew(tmp_path: Path) -> None:
    """The partner says something else of it than before, or more is there than it has."""
    store = ResultStore(tmp_path)
    store.begun("home-1", 0, file_of(b"abc"))
    store.append("home-1", 0, b"ab")
    assert store.begun("home-1", 0, file_of(b"abd")) == 0
    store.append("home-1", 0, b"abde")
    assert store.begun("home-1", 0, file_of(b"abd")) == 0


def test_a_wrong_content_is_not_kept(tmp_path: Path) -> None:
    """It is found out, and asked for again from its beginning."""
    store, file = ResultStore(tmp_path), file_of(b"abc")
    for wrong in (b"abx", b"ab"):
        store.begun("home-1", 0, file)
        store.append("home-1", 0, wrong)
        with pytest.raises(WrongContentError, match="a/b"):
            store.check("home-1", 0, file)
        assert store.begun("home-1", 0, file) == 0


def test_a_list_that_cannot_be_read_counts_as_none(tmp_path: Path) -> None:
    """It is got anew."""
    store = ResultStore(tmp_path)
    store.finish("home-1", Manifest(problem="none"))
    assert store.manifest("home-1") == Manifest(problem="none")
    for text in ("{", "[]", '{"files": [1], "problem": ""}'):
        (tmp_path / "home-1/list.json").write_text(text)
        assert store.manifest("home-1") is None


def test_old_ones_are_named_and_removed(tmp_path: Path) -> None:
    """By the last change of their folder."""
    assert ResultStore(tmp_path / "none").stale(1.0) == []
    store = ResultStore(tmp_path)
    for number in (1, 2):
        store.finish(f"home-{number}", Manifest())
    os.utime(tmp_path / "home-1", (1000.0, 1000.0))
    assert store.stale(2000.0) == ["home-1"]
    store.remove("home-1")
    assert store.manifest("home-1") is None
    assert store.manifest("home-2") == Manifest()


async def test_a_digest_is_that_of_the_whole_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Read in pieces; one that ends with a whole piece, and an empty one."""
    monkeypatch.setattr(module, "PIECE_BYTES", 10)
    for size in (0, 9, 10, 20, 25):
        content = bytes(range(size))
        (tmp_path / "content").write_bytes(content)
        assert await digest_of(tmp_path / "content") == hashlib.sha256(content).digest()
