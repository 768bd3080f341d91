"""Files that are brought where a disk is full, or takes only a part of what it is given."""

import errno
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from grms.client.answers import ResultFile
from grms.client.fetching import Bringer

CONTENT = bytes(range(256)) * 40
PIECE = 1000


class Disk:
    """A disk that takes at most `most` bytes of a write, and has room for so many."""

    def __init__(self, room: int, most: int = 700) -> None:
        self.room = room
        self._most = most
        self._pwrite = os.pwrite

    def pwrite(self, number: int, some: bytes, at: int) -> int:
        """See `os.pwrite`."""
        count = min(len(some), self._most, self.room - at)
        if count <= 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return self._pwrite(number, some[:count], at)


def file(**changes: object) -> ResultFile:
    """Returns what the site says of the file."""
    given = {
        "name": "out.bin",
        "size_bytes": len(CONTENT),
        "sha256": hashlib.sha256(CONTENT).digest(),
        "problem": "",
    }
    return ResultFile(**{**given, **changes})  # type: ignore[arg-type]  # of its fields


class Site:
    """A site that hands out the file in pieces, from any byte on."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    def read(self, name: str, begin: int) -> Iterator[bytes]:
        """Yields what comes from a byte on."""
        assert name == "out.bin"
        self.asked.append(begin)
        for at in range(begin, len(CONTENT), PIECE):
            yield CONTENT[at : at + PIECE]


@pytest.mark.parametrize("missing", [1, 100, PIECE, 5000])
def test_what_a_full_disk_has_cut_off_is_not_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: int
) -> None:
    """A write that takes only a part is no error: the rest is tried, and its error told; later it goes on from there."""
    site = Site()
    disk = Disk(len(CONTENT) - missing)
    monkeypatch.setattr(os, "pwrite", disk.pwrite)
    said = Bringer(site.read, tmp_path, force=False)(file())
    assert "No space left on device" in said
    assert not (tmp_path / "out.bin").exists()
    (part,) = tmp_path.iterdir()
    assert part.read_bytes() == CONTENT[:-missing]
    disk.room = len(CONTENT)
    assert Bringer(site.read, tmp_path, force=False)(file()) == ""
    assert (tmp_path / "out.bin").read_bytes() == CONTENT
    assert site.asked == [0, len(CONTENT) - missing]
    assert [path.name for path in tmp_path.iterdir()] == ["out.bin"]


def test_a_disk_that_tells_only_at_the_end_has_no_file(tmp_path: Path) -> None:
    """As one over a network, which takes everything until it is to be durable."""

    def fsync(number: int) -> None:
        os.ftruncate(number, 5000)
        raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT))

    site = Site()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", fsync)
        assert "quota" in Bringer(site.read, tmp_path, force=False)(file()).lower()
    assert not (tmp_path / "out.bin").exists()
    assert Bringer(site.read, tmp_path, force=False)(file()) == ""
    assert (tmp_path / "out.bin").read_bytes() == CONTENT
    assert site.asked == [0, 5000]


def test_a_stream_is_added_once_however_often_the_disk_was_full(tmp_path: Path) -> None:
    """What a failed attempt has added is taken back."""
    log = tmp_path / "log"
    log.write_bytes(b"before\n")
    write, taken = os.write, 0

    def full(number: int, some: bytes) -> int:
        nonlocal taken
        count = min(len(some), 3000 - taken)
        if count <= 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        taken += count
        return write(number, some[:count])

    site = Site()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "write", full)
        said = Bringer(site.read, tmp_path, force=False, append=True)(file(written_as="log"))
    assert "No space left on device" in said
    assert log.read_bytes() == b"before\n"
    said = Bringer(site.read, tmp_path, force=False, append=True)(file(written_as="log"))
    assert (said, log.read_bytes()) == ("", b"before\n" + CONTENT)
    assert site.asked == [0], "it was complete, and had only to be added"
