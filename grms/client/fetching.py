"""Bringing the files that a job has left to where its user wants them.

A file is written under another name, which follows from its digest, and gets its own when it is complete and its
content is what the site has said. So an interrupted transfer goes on where it stopped, and no file is seen half.
"""

import fcntl
import hashlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from grms.daemon.job_files import CHUNK_BYTES, FileProblemError, check_name, folders_below
from lrms_sim.util.messages import printable

if TYPE_CHECKING:
    from grms.client.answers import ResultFile

PROBLEMS: Final = {
    "missing": "the job has left no such file",
    "no_file": "it is no plain file, or behind a link",
    "too_large": "it is larger than the site hands out",
}
"""Why there is no content of a file, in words."""

MODE: Final = 0o644
"""Permissions of a file of which nobody has said them."""

_ADDED: Final = os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
_WRONG: Final = "its content is not what the site has said"


class Bringer:
    """Brings files of one job, one after the other, into a folder.

    `read` yields a file of the job by its name, from a byte on; with `force` files that are there are replaced, and with
    `append` streams are added to files of the name that their user has given them.
    """

    def __init__(
        self,
        read: Callable[[str, int], Iterator[bytes]],
        folder: Path,
        *,
        force: bool,
        append: bool = False,
    ) -> None:
        self._append = append
        self._read = read
        self._folder = folder
        self._force = force
        self._brought: dict[tuple[int, int], str] = {}

    def __call__(self, file: "ResultFile") -> str:
        """Returns what went wrong with a file; empty if nothing did."""
        if file.problem:
            return PROBLEMS.get(file.problem, file.problem)
        name = file.written_as or file.name
        try:
            check_name(name)
            problem = self._in_the_way(file, name) or self._bring(file, name)
            if not problem:
                status = (self._folder / name).lstat()
                self._brought[status.st_dev, status.st_ino] = name
        except (FileProblemError, ValueError, OSError) as error:
            return printable(str(error))
        return problem

    def _in_the_way(self, file: "ResultFile", name: str) -> str:
        path = self._folder / name
        if not os.path.lexists(path):
            return ""
        status = path.lstat()
        other = self._brought.get((status.st_dev, status.st_ino))
        if other is not None:  # as where upper and lower case are the same
            return (
                f"this file system takes it for {printable(other)}, which is another of its files"
            )
        if self._force or self._appends(file) or _is_here(path, file):
            return ""
        return "it is there already; --force replaces it"

    def _appends(self, file: "ResultFile") -> bool:
        return self._append and bool(file.written_as)

    def _bring(self, file: "ResultFile", name: str) -> str:
        path = self._folder / name
        if _is_here(path, file, at_end=self._appends(file)):
            return ""
        part = self._folder / f".{file.sha256.hex()[:32]}.part"
        target = folders_below(self._folder, name)  # before anything comes
        try:
            flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            with os.fdopen(os.open(part, flags, 0o600), "rb+") as content:
                try:
                    fcntl.flock(content, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    return "another command brings it just now"
                if not self._completed(file, content.fileno()):
                    part.unlink()
                    return _WRONG
                last = name.rpartition("/")[2]
                if self._appends(file) and os.path.lexists(path):
                    stream = os.open(last, _ADDED, dir_fd=target)
                    try:
                        _added(content.fileno(), stream)
                    finally:
                        os.close(stream)
                    part.unlink()
                else:
                    os.fchmod(content.fileno(), (file.mode or MODE) & ~_umask())
                    os.rename(part, last, dst_dir_fd=target)
        finally:
            os.close(target)
        return ""

    def _completed(self, file: "ResultFile", content: int) -> bool:
        """Goes on where a file stopped; if that comes to another content, once more from its begin."""
        for _ in range(2):
            digest, there = hashlib.sha256(), 0
            while some := os.pread(content, CHUNK_BYTES, there):
                digest.update(some)
                there += len(some)
            goes_on = there > 0
            for some in self._read(file.name, there) if there < file.size_bytes else ():
                digest.update(some)
                _written(content, some, there)
                there += len(some)
            if there == file.size_bytes and digest.digest() == file.sha256:
                os.fsync(content)  # some file systems tell no sooner that there was no room
                return os.fstat(content).st_size == there
            os.ftruncate(content, 0)
            if not goes_on:
                break
        return False


def _is_here(path: Path, file: "ResultFile", *, at_end: bool = False) -> bool:
    """Returns whether a file has a content already; with `at_end` others may stand before it."""
    if path.is_symlink() or not path.is_file():
        return False
    size = path.stat().st_size
    if size != file.size_bytes and not (at_end and size > file.size_bytes):
        return False
    with path.open("rb") as content:
        content.seek(size - file.size_bytes)
        return hashlib.file_digest(content, "sha256").digest() == file.sha256


def _written(content: int, some: bytes, at: int) -> None:
    # A disk that is nearly full takes a part, and says so only when it is to take the rest.
    rest = memoryview(some)
    while rest:
        count = os.pwrite(content, rest, at)
        rest, at = rest[count:], at + count


def _added(content: int, target: int) -> None:
    # A part of it would be in the way of the next attempt, which adds all of it.
    before, there = os.fstat(target).st_size, 0
    try:
        while some := os.pread(content, CHUNK_BYTES, there):
            there += os.write(target, some)
    except OSError:
        os.ftruncate(target, before)
        raise


def _umask() -> int:
    now = os.umask(0o077)
    os.umask(now)
    return now
