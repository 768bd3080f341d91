"""Files that programs are given, at the broker."""

import hashlib
import os
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from broker.executor.contents import Contents
from broker.model.program import Input, Output
from grms.daemon.job_files import JobFile
from grms.daemon.uploads import NoRoomError


def made(folder: Path, total: int = 100) -> Contents:
    """Returns a store of files of at most 50 bytes."""
    return Contents(folder / "files", file_bytes=50, total_bytes=total)


def output(content: bytes, name: str = "x") -> Output:
    """Returns what a site says of a file."""
    return Output(name, len(content), hashlib.sha256(content).digest())


class Source:
    """A file at a site; `calls` are from which bytes on it was read."""

    def __init__(self, content: bytes, *, fails_after: int | None = None) -> None:
        self.calls: list[int] = []
        self._content = content
        self._fails_after = fails_after

    async def read(self, begin: int) -> AsyncIterator[bytes]:
        """Yields two bytes at a time."""
        self.calls.append(begin)
        for at in range(begin, len(self._content), 2):
            if self._fails_after is not None and at >= self._fails_after:
                raise ConnectionError
            yield self._content[at : at + 2]


async def test_an_output_is_brought_once(tmp_path: Path) -> None:
    """And from where it was, after a connection that was lost."""
    contents, file = made(tmp_path), output(b"0123456789")
    broken = Source(b"0123456789", fails_after=4)
    with pytest.raises(ConnectionError):
        await contents.bring(file, broken.read)
    source = Source(b"0123456789")
    await contents.bring(file, source.read)
    assert source.calls == [4]
    await contents.bring(file, source.read)
    assert source.calls == [4]
    assert contents.path(file).read_bytes() == b"0123456789"
    empty = output(b"")
    await contents.bring(empty, source.read)
    assert contents.path(empty).read_bytes() == b""


@pytest.mark.parametrize(
    ("said", "sent", "word"),
    [
        (b"abcd", b"abce", "SHA-256"),
        (b"abcd", b"ab", "ends after 2 of 4 bytes"),
        (b"x" * 51, b"x" * 51, "at most 50"),
    ],
)
async def test_what_is_not_as_was_said_is_refused(
    tmp_path: Path, said: bytes, sent: bytes, word: str
) -> None:
    """It has changed after its program had ended, or is too large."""
    with pytest.raises(ValueError, match=word):
        await made(tmp_path).bring(output(said), Source(sent).read)


async def test_where_there_is_no_room_it_may_be_later(tmp_path: Path) -> None:
    """Once other files are gone."""
    contents = made(tmp_path, total=60)
    await contents.bring(output(b"a" * 40), Source(b"a" * 40).read)
    with pytest.raises(NoRoomError):
        await contents.bring(output(b"b" * 40), Source(b"b" * 40).read)


async def test_what_no_workflow_needs_is_deleted_after_an_hour(tmp_path: Path) -> None:
    """What is needed, or was handed over a moment ago, stays."""
    contents = made(tmp_path)
    files = [output(content) for content in (b"old", b"needed", b"new")]
    for file, content in zip(files, (b"old", b"needed", b"new"), strict=True):
        said = JobFile(file.name, file.size, file.sha256)
        assert await contents.put(said, 0, content) == file.size
    for file in files[:2]:
        moment = time.time() - 3700
        os.utime(contents.path(file).parent, (moment, moment))
    assert await contents.sweep({files[1].sha256}) == 1
    there = [contents.path(file).exists() for file in files]
    assert there == [False, True, True]
    inputs = [Input("in", file.size, file.sha256) for file in files]
    assert await contents.lacking(inputs[1:]) == ""
    assert await contents.lacking(inputs) == "in"
    assert await contents.lacking([Input("in", task="t", output="x")]) == ""
