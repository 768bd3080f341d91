"""A file is read once, however slow the disk is and whoever gives up meanwhile."""

import asyncio
import errno
import hashlib
import os
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from grms.daemon.job_files import FileLimits, FileProblem, JobFile, WantedFiles
from grms.lrms.job_directories import JobFolder
from grms.site.staging import digests as module
from grms.site.staging.digests import Digests, NotReadYetError, found_files
from tests.waiting import TIME_OUT_S, until

LARGE = FileLimits(1 << 40, 1 << 40)


class Alone(JobFolder):
    """A folder without streams."""

    @property
    def names(self) -> tuple[str, ...]:
        """The declared names."""
        return self.wanted.names


async def files_of(
    digests: Digests, folder: Path, names: Sequence[str], limits: FileLimits, wait_s: float
) -> tuple[JobFile, ...]:
    """Returns files of a folder with their digests."""
    found, left_out = await digests.of(Alone(folder, WantedFiles(tuple(names))), limits, wait_s)
    assert left_out == 0
    return tuple(replace(each, mode=0) for each in found)


class Slow:
    """A disk that gives so many pieces as it is let.

    Attributes:
        read: bytes that were read.
    """

    def __init__(self) -> None:
        self.read = 0
        self._pieces = threading.Semaphore(0)
        self._open = False

    def let(self, pieces: int) -> None:
        """Lets some pieces through."""
        for _ in range(pieces):
            self._pieces.release()

    def open(self) -> None:
        """Lets all through from now on."""
        self._open = True
        self.let(1000)

    def __call__(self, descriptor: int, most: int) -> bytes:
        """Reads as `os.read` does."""
        if not self._open:
            assert self._pieces.acquire(timeout=TIME_OUT_S)
        some = os.read(descriptor, most)
        self.read += len(some)
        return some


def test_files_are_found(tmp_path: Path) -> None:
    """With their sizes; what is missing, or no name, is missing, and what is too large is left, with what came before."""
    for name, size in (("a", 60), ("b", 101), ("c", 60), ("d", 40)):
        (tmp_path / name).write_bytes(b"x" * size)
    (tmp_path / "link").symlink_to("/etc/passwd")
    names = [*"abcd", "link", "none", "../etc/passwd"]
    left = found_files(Alone(tmp_path, WantedFiles(tuple(names))), FileLimits(100, 100))
    found = [replace(each.file, mode=0) for each in left.files]
    assert left.files[0].file.mode == (tmp_path / "a").stat().st_mode & 0o777
    assert found == [
        JobFile("a", 60),
        JobFile("b", 101, problem=FileProblem.TOO_LARGE),
        JobFile("c", 60, problem=FileProblem.TOO_LARGE),
        JobFile("d", 40),
        JobFile("link", problem=FileProblem.NO_FILE),
        JobFile("none", problem=FileProblem.MISSING),
        JobFile("../etc/passwd", problem=FileProblem.MISSING),
    ]


async def test_a_digest_survives_who_has_asked_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is said how far it is; whoever asks again has it, and nothing is read twice, until the file changes."""
    monkeypatch.setattr(module, "PIECE_BYTES", 10)
    content = bytes(range(95))
    (tmp_path / "stdout").write_bytes(content)
    (tmp_path / "empty").touch()
    disk = Slow()
    digests = Digests(disk)
    names = ["stdout", "none", "empty"]
    with pytest.raises(NotReadYetError, match="0 of 95 bytes"):
        await files_of(digests, tmp_path, names, LARGE, 0.001)
    disk.let(4)
    await until(lambda: disk.read == 40)
    asks = asyncio.create_task(files_of(digests, tmp_path, names, LARGE, TIME_OUT_S))
    await asyncio.sleep(0)
    asks.cancel()
    await asyncio.gather(asks, return_exceptions=True)
    with pytest.raises(NotReadYetError) as told:
        await files_of(digests, tmp_path, names, LARGE, 0.001)
    assert (told.value.read, told.value.size) == (40, 95)
    disk.let(6)
    found = await files_of(digests, tmp_path, names, LARGE, TIME_OUT_S)
    assert found == (
        JobFile("stdout", 95, hashlib.sha256(content).digest()),
        JobFile("none", problem=FileProblem.MISSING),
        JobFile("empty", 0, hashlib.sha256().digest()),
    )
    assert await files_of(digests, tmp_path, names, LARGE, 0.0) == found
    assert disk.read == 95
    (tmp_path / "stdout").write_bytes(content[::-1])
    os.utime(tmp_path / "stdout", ns=(0, 1))
    disk.open()
    changed = await files_of(digests, tmp_path, names, LARGE, TIME_OUT_S)
    assert changed[0].sha256 == hashlib.sha256(content[::-1]).digest()


async def test_what_is_too_large_counts_for_nothing_that_was_read(tmp_path: Path) -> None:
    """Nothing of it is read; what is told is how far the others are."""
    (tmp_path / "large").write_bytes(b"x" * 101)
    (tmp_path / "stdout").write_bytes(b"x" * 60)
    disk = Slow()
    digests = Digests(disk)
    with pytest.raises(NotReadYetError) as told:
        await files_of(digests, tmp_path, ["large", "stdout"], FileLimits(100, 100), 0.001)
    disk.open()
    assert (told.value.read, told.value.size) == (0, 60)
    large, stdout = await files_of(
        digests, tmp_path, ["large", "stdout"], FileLimits(100, 100), TIME_OUT_S
    )
    assert large == JobFile("large", 101, problem=FileProblem.TOO_LARGE)
    assert stdout.sha256 == hashlib.sha256(b"x" * 60).digest()


async def test_a_file_that_changes_meanwhile_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its digest is nobody's; cut off, or written on."""
    monkeypatch.setattr(module, "PIECE_BYTES", 10)
    disks: list[Slow] = []
    for number, size in enumerate((5, 50)):
        disks.append(disk := Slow())
        digests = Digests(disk)
        path = tmp_path / f"{number}"
        path.write_bytes(b"x" * 20)
        asks = asyncio.create_task(files_of(digests, tmp_path, [path.name], LARGE, TIME_OUT_S))
        disk.let(1)
        await until(lambda: disks[-1].read > 0)
        path.write_bytes(b"y" * size)
        disk.let(1)
        with pytest.raises(OSError, match="has changed"):
            await asks
        disk.let(5)
        (found,) = await files_of(digests, tmp_path, [path.name], LARGE, TIME_OUT_S)
        assert found == JobFile(path.name, size, hashlib.sha256(b"y" * size).digest())


async def test_small_files_do_not_wait_behind_large_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many there are."""
    monkeypatch.setattr("grms.site.staging.fair_slots.LARGE_BYTES", 100)
    for number in range(6):
        (tmp_path / f"large{number}").write_bytes(b"x" * 101)
    (tmp_path / "small").write_bytes(b"x")
    held = threading.Event()

    def read(descriptor: int, most: int) -> bytes:
        if most > 100:
            assert held.wait(TIME_OUT_S)
        return os.read(descriptor, most)

    digests = Digests(read)
    large = [f"large{number}" for number in range(6)]
    with pytest.raises(NotReadYetError):
        await files_of(digests, tmp_path, large, LARGE, 0.001)
    (found,) = await files_of(digests, tmp_path, ["small"], LARGE, TIME_OUT_S)
    assert found.sha256 == hashlib.sha256(b"x").digest()
    held.set()
    assert len(await files_of(digests, tmp_path, large, LARGE, TIME_OUT_S)) == 6


async def test_a_disk_that_fails_is_asked_again(tmp_path: Path) -> None:
    """Its error is told, and not remembered."""
    (tmp_path / "stdout").write_bytes(b"x")
    fails = [True]

    def read(descriptor: int, most: int) -> bytes:
        if fails.pop() if fails else False:
            raise OSError(errno.EIO, "Input/output error")
        return os.read(descriptor, most)

    digests = Digests(read)
    with pytest.raises(OSError, match="Input/output"):
        await files_of(digests, tmp_path, ["stdout"], LARGE, TIME_OUT_S)
    (found,) = await files_of(digests, tmp_path, ["stdout"], LARGE, TIME_OUT_S)
    assert found.sha256 == hashlib.sha256(b"x").digest()
