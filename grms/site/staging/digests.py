"""Digests of results: each file is read once, however long it takes and whoever waits.

A file is identified by its inode, size and modification time; a changed one is read again. A reader may give
up: the computation continues, and a later request gets its progress or the digest. Files are read in pieces,
so that a slow disk does not occupy a thread, and small files do not wait for large ones.
"""

import asyncio
import hashlib
import os
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from grms.daemon.job_files import (
    FileLimits,
    FileProblem,
    FileProblemError,
    JobFile,
    matching,
    mode_of,
    opened,
)
from grms.lrms.job_directories import JobFolder
from grms.site.staging.fair_slots import FairSlots

PIECE_BYTES: Final = 1 << 20
"""Bytes read at a time."""

AT_ONCE: Final = 4
"""Files read concurrently."""

KNOWN_MAX: Final = 20_000
"""Most digests remembered."""

Identity = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file of a job as found on disk, without its digest; `identity` is that of the content, if any."""

    file: JobFile
    identity: Identity | None


@dataclass(frozen=True, slots=True)
class Found:
    """The files of a job that it declares; of `left_out` others that it wants no list can have the names."""

    files: tuple[FoundFile, ...]
    left_out: int = 0


class NotReadYetError(Exception):
    """Digests are not known yet, but will be; so far `read` of `size` bytes were read."""

    def __init__(self, read: int, size: int) -> None:
        self.read, self.size = read, size
        super().__init__(f"its files are being read: {read} of {size} bytes so far")


@dataclass(slots=True)
class _Reading:
    task: asyncio.Task[bytes]
    read: int = 0


class Digests:
    """Reads files in threads, and remembers their digests; `read` is called as `os.read`."""

    def __init__(self, read: Callable[[int, int], bytes] = os.read) -> None:
        self._read = read
        self._known: OrderedDict[Identity, bytes] = OrderedDict()
        self._readings: dict[Identity, _Reading] = {}
        self._turns = FairSlots(AT_ONCE)

    async def of(
        self, folder: JobFolder, limits: FileLimits, wait_s: float
    ) -> tuple[tuple[JobFile, ...], int]:
        """Returns a job's files with their digests, and how many others no list can have.

        A name that is invalid counts as a missing file; files beyond `limits` are not served. Digests are awaited for
        `wait_s` real seconds.

        Raises:
            NotReadYetError: they take longer; reading continues.
            OSError: a file cannot be read.
        """
        found = await asyncio.to_thread(found_files, folder, limits)
        tasks = [
            self._begun(folder.path, each) for each in found.files if each.identity is not None
        ]
        waits = {task for task in tasks if task is not None}
        if waits:
            await asyncio.wait(waits, timeout=wait_s)
        files, read, size = [], 0, 0
        for each in found.files:
            digest = b""
            if each.identity is not None:  # what is not handed out is not read either
                digest = self._known.get(each.identity, b"")
                reading = self._readings.get(each.identity)
                size += each.file.size
                read += each.file.size if reading is None else reading.read
            files.append(replace(each.file, sha256=digest))
        for task in waits:
            if task.done() and (error := task.exception()) is not None:
                raise error
        if any(not file.sha256 for file in files if file.problem is None):
            raise NotReadYetError(read, size)
        return tuple(files), found.left_out

    def _begun(self, folder: Path, found: FoundFile) -> asyncio.Task[bytes] | None:
        identity = found.identity
        assert identity is not None
        if identity in self._known:
            self._known.move_to_end(identity)
            return None
        if identity not in self._readings:
            task = asyncio.get_running_loop().create_task(
                self._digest(folder, found), name=f"digest of {found.file.name}"
            )
            self._readings[identity] = _Reading(task)
            task.add_done_callback(lambda done: self._ended(identity, done))
        return self._readings[identity].task

    def _ended(self, identity: Identity, task: asyncio.Task[bytes]) -> None:
        del self._readings[identity]
        if task.cancelled() or task.exception() is not None:
            return  # whoever waits is told, or asks again
        self._known[identity] = task.result()
        if len(self._known) > KNOWN_MAX:
            self._known.popitem(last=False)

    async def _digest(self, folder: Path, found: FoundFile) -> bytes:
        identity, size = found.identity, found.file.size
        assert identity is not None
        digest = hashlib.sha256()
        async with self._turns.turn(size):
            try:
                descriptor = await asyncio.to_thread(opened, folder, found.file.name)
            except FileProblemError as error:
                raise OSError(f"{error}: it was there a moment ago") from error
            try:
                reading = self._readings[identity]
                while reading.read < size:
                    most = min(PIECE_BYTES, size - reading.read)
                    piece = asyncio.ensure_future(
                        asyncio.to_thread(self._piece, descriptor, most, digest)
                    )
                    try:
                        some = await asyncio.shield(piece)
                    except asyncio.CancelledError:
                        await asyncio.wait([piece])  # the descriptor is its own until then
                        raise
                    if not some:
                        break
                    reading.read += some
                if reading.read < size or _identity(os.fstat(descriptor)) != identity:
                    raise OSError(f"{found.file.name} has changed while it was read")
            finally:
                os.close(descriptor)
        return digest.digest()

    def _piece(self, descriptor: int, most: int, digest: "hashlib._Hash") -> int:
        some = self._read(descriptor, most)
        digest.update(some)
        return len(some)


def found_files(folder: JobFolder, limits: FileLimits) -> Found:
    """Returns a job's files without their digests; an invalid name counts as a missing file.

    A folder or a pattern without a file is missing, too.

    Raises:
        OSError: the folder cannot be read.
    """
    more = matching(folder.path, folder.wanted, folder.given)
    found, left = [], limits.job_bytes
    for name in (*folder.names, *more.names):
        each = _found(folder.path, name, min(limits.file_bytes, left))
        if each.identity is not None:
            left -= each.file.size
        found.append(each)
    found += [
        FoundFile(JobFile(each, problem=FileProblem.MISSING), None) for each in more.unmatched
    ]
    return Found(tuple(found), more.left_out)


def _found(folder: Path, name: str, most: int) -> FoundFile:
    try:
        descriptor = opened(folder, name)
    except FileProblemError as error:
        return FoundFile(JobFile(name, problem=error.problem), None)
    except ValueError:
        return FoundFile(JobFile(name, problem=FileProblem.MISSING), None)
    try:
        status = os.fstat(descriptor)
    finally:
        os.close(descriptor)
    file = JobFile(name, status.st_size, mode=mode_of(status))
    if status.st_size > most:
        return FoundFile(replace(file, problem=FileProblem.TOO_LARGE), None)
    return FoundFile(file, _identity(status))


def _identity(status: os.stat_result) -> Identity:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
