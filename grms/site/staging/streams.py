"""Transfers one file from a partner into a store, resuming partial ones."""

import asyncio
import math
from collections.abc import Callable
from typing import Any, Final

from grms.daemon.file_store import ResultStore, digest_of
from grms.daemon.job_files import JobFile
from grms.site.peers.peer import SenselessError, answers_to

FILE_TIMEOUT_S: Final = 600.0
"""A transfer that takes longer is resumed by a new call."""

PROGRESS_BYTES: Final = 1 << 20
"""An attempt that was cut off, but has brought so much, was no failure: a file of any size comes in the end."""


class Progress:
    """Counts what has come by attempts; `most` bytes count, more would be the same ones again and again."""

    def __init__(self, most: float = math.inf) -> None:
        self._bytes = 0
        self._left = most

    def note(self, size: int) -> None:
        """Notes that so many bytes more have come."""
        self._bytes += size
        self._left -= size

    def taken(self) -> bool:
        """Returns whether enough has come since the last time that it was."""
        is_enough = self._bytes >= PROGRESS_BYTES and self._left > 0
        if is_enough:
            self._bytes = 0
        return is_enough


async def bring(
    store: ResultStore,
    job_id: str,
    number: int,
    file: JobFile,
    call: Callable[[int], Any],
    *,
    progress: Progress,
) -> None:
    """Returns once a file is complete and durable; `call` requests its chunks from a byte on.

    Raises:
        AioRpcError: the call ended before the file did.
        ConnectionError: the connection is lost, or there is none.
        SenselessError: it is longer than announced.
        WrongContentError: its content differs.
        OSError: it cannot be stored.
    """
    there = await asyncio.to_thread(store.begun, job_id, number, file)
    if there < file.size:
        asked = call(there)
        async for chunk in answers_to(asked):
            there += len(chunk.content)
            if there > file.size:
                asked.cancel()
                raise SenselessError(f"{file.name} is longer than it has said")
            await asyncio.to_thread(store.append, job_id, number, chunk.content)
            progress.note(len(chunk.content))
    else:
        await asyncio.to_thread(store.append, job_id, number, b"")
    digest = await digest_of(store.path(job_id, number))
    await asyncio.to_thread(store.check, job_id, number, file, digest)
