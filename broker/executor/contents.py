"""Files that programs are given, and outputs that others are given, at the broker: each content once."""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable, Collection, Iterable
from contextlib import aclosing
from pathlib import Path
from typing import Final

from broker.model.program import Input, Output
from grms.daemon.file_store import ResultStore
from grms.daemon.job_files import FileLimits, JobFile
from grms.daemon.uploads import Uploads, user_input

UNUSED_KEPT_S: Final = 3600.0
"""How long a content waits for its workflow, seconds."""

FILES_HELD: Final = 1_000_000

_OWNER: Final = "broker"


class Contents:
    """The store; `file_bytes` is the most of one file, `total_bytes` that of all."""

    def __init__(self, folder: Path, *, file_bytes: int, total_bytes: int) -> None:
        self._folder = folder
        self._store = ResultStore(folder)
        self._uploads = Uploads(
            self._store,
            FileLimits(file_bytes, total_bytes),
            bytes_held=total_bytes,
            files_held=FILES_HELD,
        )
        self._bringing: dict[bytes, asyncio.Lock] = {}

    @property
    def problem(self) -> str:
        """Why nothing can be kept in the folder, or it cannot be made; empty where it can. Nothing is written."""
        place = self._folder.absolute()
        while not os.path.lexists(place):
            place = place.parent
        if not place.is_dir():
            return f"{place} is no folder"
        return "" if os.access(place, os.W_OK | os.X_OK) else f"{place} cannot be written"

    def path(self, file: Input | Output) -> Path:
        """Returns where a content is, if it is there."""
        return self._store.path(user_input(_OWNER, _job_file(file)), 0)

    async def put(self, file: JobFile, begin: int, content: bytes) -> int:
        """Appends bytes to a content if `begin` is its present size; returns the new size.

        Raises:
            NoRoomError: there is no room for it now.
            ValueError: it is too large, or not the announced one.
            OSError: it cannot be stored.
        """
        return await self._uploads.put(_OWNER, file, begin, content)

    async def lacking(self, inputs: Iterable[Input]) -> str:
        """Returns which content of these is not here, in words; empty for none."""
        files = tuple(_job_file(each) for each in inputs if each.sha256)
        return await self._uploads.lacking(_OWNER, files)

    async def bring(self, file: Output, read: Callable[[int], AsyncIterator[bytes]]) -> None:
        """Returns once a content is here; `read` yields its bytes from a byte on.

        Raises:
            NoRoomError: there is no room for it now.
            ValueError: it is too large, or not the announced one.
            OSError: it cannot be stored.
        """
        said = _job_file(file)
        lock = self._bringing.setdefault(file.sha256, asyncio.Lock())
        try:
            async with lock:
                held = await self.put(said, 0, b"")
                if held < file.size:
                    async with aclosing(read(held)) as pieces:  # type: ignore[type-var]  # generators
                        async for some in pieces:
                            held = await self.put(said, held, some)
                if held != file.size:
                    raise ValueError(f"{file.name} ends after {held} of {file.size} bytes")
        finally:
            if not lock.locked():
                self._bringing.pop(file.sha256, None)

    async def sweep(self, needed: Collection[bytes]) -> int:
        """Deletes contents that were not used for an hour, but for those needed; returns how many."""
        return await asyncio.to_thread(self._swept, {sha256.hex() for sha256 in needed})

    def _swept(self, needed: set[str]) -> int:
        count = 0
        for name in self._store.stale(time.time() - UNUSED_KEPT_S):
            if name.rpartition("-")[2] not in needed:
                self._store.remove(name)
                count += 1
        return count


def _job_file(file: Input | Output) -> JobFile:
    return JobFile(file.name, file.size, file.sha256)
