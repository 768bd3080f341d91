"""Files that users hand over before what they are for: jobs at a site, workflows at a broker.

Each is stored under its SHA-256, per user, so that a repeated upload is stored once and a partial one resumes.
"""

import asyncio
import hashlib
import time
from collections import defaultdict
from dataclasses import dataclass
from typing import Final

from grms.daemon.file_store import Manifest, ResultStore, WrongContentError, digest_of
from grms.daemon.job_files import FileLimits, JobFile

SHA256_BYTES: Final = 32

JOBS_HELD: Final = 16
"""Quota of one user, as a multiple of the limit of one job."""

FILES_HELD: Final = 10_000
"""Most files of one user, including partial ones."""

COUNTED_S: Final = 10.0
"""How long the size of what a user has here is not counted anew, seconds."""


@dataclass(slots=True)
class _Held:
    # What a user has here: files, and their bytes; to be counted anew from a moment (`time.monotonic`) on.
    files: int
    size: int
    until: float


class NoRoomError(ValueError):
    """There are as many files of a user, or bytes, as may be; later there may be room."""


class Uploads:
    """Takes files, beyond `limits` none.

    Attributes:
        store: where they are.
        limits: of one file, and of all that one job is given.

    Args:
        bytes_held: quota of one user; by default `JOBS_HELD` times the limit of one job.
        files_held: most files of one user, including partial ones.
    """

    def __init__(
        self,
        store: ResultStore,
        limits: FileLimits,
        *,
        bytes_held: int | None = None,
        files_held: int = FILES_HELD,
    ) -> None:
        self.store = store
        self.limits = limits
        self._bytes_held = JOBS_HELD * limits.job_bytes if bytes_held is None else bytes_held
        self._files_held = files_held
        self._held: dict[str, _Held] = {}
        self._taking: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def put(self, user: str, file: JobFile, begin: int, content: bytes) -> int:
        """Appends bytes to a user's file if `begin` is its present size; returns the new size.

        Raises:
            NoRoomError: there is no room for it now.
            ValueError: it is too large, or not the announced one.
            OSError: it cannot be stored.
        """
        if len(file.sha256) != SHA256_BYTES:
            raise ValueError(f"sha256 has {len(file.sha256)} bytes; it must have {SHA256_BYTES}")
        check_size([file], self.limits)
        lock = self._taking[user]
        await lock.acquire()  # who is gone before its turn leaves nothing behind
        # The digest may take longer than the client waits, which then asks again.
        task = asyncio.get_running_loop().create_task(self._taken(user, file, begin, content))

        def ended(done: asyncio.Task[int]) -> None:
            lock.release()
            if not done.cancelled():
                done.exception()  # it may be that nobody asks for it any more

        task.add_done_callback(ended)
        return await asyncio.shield(task)

    async def _taken(self, user: str, file: JobFile, begin: int, content: bytes) -> int:
        there, whole = await asyncio.to_thread(self._appended, user, file, begin, content)
        if whole:
            name = user_input(user, file)
            # An empty file must be created by an append before it is checked.
            digest = await digest_of(self.store.path(name, 0)) if file.size else b""
            await asyncio.to_thread(self._finish, name, file, digest)
        return there

    def _appended(self, user: str, file: JobFile, begin: int, content: bytes) -> tuple[int, bool]:
        """Returns the size, and whether the file is complete but not yet checked."""
        name = user_input(user, file)
        if self.store.manifest(name) is not None:
            self.store.touch(name)
            return file.size, False
        there = self.store.begun(name, 0, file)
        if begin == there:
            piece = content[: file.size - there]
            try:
                self._check_room(user, len(piece) if there else file.size, begins=there == 0)
            except ValueError:
                if there == 0:
                    self.store.remove(name)
                    del self._held[user]
                raise
            self.store.append(name, 0, piece)
            self.store.touch(name)  # a large file may take longer than unused ones are kept
            there += len(piece)
            self._held[user].size += len(piece)
        elif there == 0 and file.size:
            self.store.remove(name)  # it begins with its first byte, and then counts
        return there, there == file.size

    def _finish(self, name: str, file: JobFile, digest: bytes) -> None:
        try:
            self.store.check(name, 0, file, digest)
        except WrongContentError as error:
            raise ValueError(f"{error}: its SHA-256 is not what was said") from error
        self.store.finish(name, Manifest((file,)))

    def _check_room(self, user: str, size: int, *, begins: bool) -> None:
        # Checked for each piece, so that beginning many files first gains no room.
        held = self._held.get(user)
        is_fresh = held is not None and time.monotonic() < held.until
        if held is None or not is_fresh:
            held = self._count(user)
        elif begins:
            held.files += 1
        if (problem := self._no_room(held, size, begins=begins)) and is_fresh:
            problem = self._no_room(self._count(user), size, begins=begins)
        if problem:
            raise NoRoomError(problem)

    def _no_room(self, held: _Held, size: int, *, begins: bool) -> str:
        if held.size + size > self._bytes_held:
            return f"you have files of {self._bytes_held} bytes here; jobs have to end first"
        if begins and held.files > self._files_held:
            return f"you have {self._files_held} files here; jobs have to end first"
        return ""

    def _count(self, user: str) -> _Held:
        files, size = self.store.held(_prefix(user))
        held = self._held[user] = _Held(files, size, time.monotonic() + COUNTED_S)
        return held

    async def no_room_for(self, user: str, files: int, size: int) -> str:
        """Returns why so many more files, of so many bytes, are not kept for a user's jobs; empty if they are."""
        held = await asyncio.to_thread(self._count, user)
        if held.size + size > self._bytes_held:
            return f"{held.size} bytes of this user's are here; at most {self._bytes_held} are kept"
        if held.files + files > self._files_held:
            return (
                f"{held.files} files of this user's are here; at most {self._files_held} are kept"
            )
        return ""

    async def lacking(self, user: str, files: tuple[JobFile, ...]) -> str:
        """Returns which of these files a user has not handed over, in words; empty for none."""
        try:
            check_size(files, self.limits)
        except ValueError as error:
            return f"{files[0].name} ({error})"
        return await asyncio.to_thread(self._lacking, user, files)

    def _lacking(self, user: str, files: tuple[JobFile, ...]) -> str:
        for file in files:
            # Marked as new, so that it is not swept before the job is known.
            self.store.touch(name := user_input(user, file))
            manifest = self.store.manifest(name)
            if manifest is None or manifest.files[0].size != file.size:
                return file.name
        return ""


def check_size(files: tuple[JobFile, ...] | list[JobFile], limits: FileLimits) -> None:
    """Checks the size of a job's input files; `ValueError` if they are too large."""
    for file in files:
        if file.size > limits.file_bytes:
            text = f"{file.name!r} has {file.size} bytes; at most {limits.file_bytes} are taken"
            raise ValueError(text)
    if (size := sum(file.size for file in files)) > limits.job_bytes:
        raise ValueError(f"they have {size} bytes; a job is given at most {limits.job_bytes}")


def _prefix(user: str) -> str:
    # A user's name may have any character.
    return f"user-{hashlib.sha256(user.encode('utf-8', 'surrogateescape')).hexdigest()[:32]}-"


def user_input(user: str, file: JobFile) -> str:
    """Returns by which name the store has a file that a user has handed over."""
    return f"{_prefix(user)}{file.sha256.hex()}"
