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

from grms.daemon.file_names import check_name
from grms.daemon.job_files import CHUNK_BYTES, FileProblemError, folders_below
from lrms_sim.util.messages import printable

if TYPE_CHECKING:
    from grms.client import ResultFile

MODE: Final = 0o644
"""Permissions of a file of which nobody has said them."""

_WRONG: Final = "its content is not what the site has said"


class Bringer:
    """Brings files of one job, one after the other, into a folder.

    `read` yields a file of the job by its name, from a byte on; with `force` files that are there are replaced.
    """

    def __init__(
        self, read: Callable[[str, int], Iterator[bytes]], folder: Path, *, force: bool
    ) -> None:
        self._read = read
        self._folder = folder
        self._force = force
        self._brought: dict[tuple[int, int], str] = {}

    def __call__(self, file: "ResultFile") -> str:
        """Returns what went wrong with a file; empty if nothing did."""
        try:
            check_name(file.name)
            if not (problem := self._in_the_way(file)):
                problem = self._bring(file)
            if not problem:
                status = (self._folder / file.name).lstat()
                self._brought[status.st_dev, status.st_ino] = file.name
        except (FileProblemError, ValueError, OSError) as error:
            return printable(str(error))
        return problem

    def _in_the_way(self, file: "ResultFile") -> str:
        path = self._folder / file.name
        if not os.path.lexists(path):
            return ""
        status = path.lstat()
        other = self._brought.get((status.st_dev, status.st_ino))
        if other is not None:  # as where upper and lower case are the same
            return (
                f"this file system takes it for {printable(other)}, which is another of its files"
            )
        return (
            "" if self._force or self._is_here(file) else "it is there already; --force replaces it"
        )

    def _is_here(self, file: "ResultFile") -> bool:
        path = self._folder / file.name
        if path.is_symlink() or not path.is_file() or path.stat().st_size != file.size_bytes:
            return False
        with path.open("rb") as content:
            return hashlib.file_digest(content, "sha256").digest() == file.sha256

    def _bring(self, file: "ResultFile") -> str:
        if self._is_here(file):
            return ""
        part = self._folder / f".{file.sha256.hex()[:32]}.part"
        target = folders_below(self._folder, file.name)  # before anything comes
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
                os.fchmod(content.fileno(), (file.mode or MODE) & ~_umask())
                os.rename(part, file.name.rpartition("/")[2], dst_dir_fd=target)
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
                os.pwrite(content, some, there)
                there += len(some)
            if there == file.size_bytes and digest.digest() == file.sha256:
                return True
            os.ftruncate(content, 0)
            if not goes_on:
                break
        return False


def _umask() -> int:
    now = os.umask(0o077)
    os.umask(now)
    return now
