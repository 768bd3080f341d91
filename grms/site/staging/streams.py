"""Transfers one file from a partner into a store, resuming partial ones."""

import asyncio
from collections.abc import Callable
from typing import Any, Final

from grms.daemon.file_store import ResultStore, digest_of
from grms.daemon.job_files import JobFile
from grms.site.peers.replies import SenselessError, answers_to

FILE_TIMEOUT_S: Final = 600.0
"""A transfer that takes longer is resumed by a new call."""


async def bring(
    store: ResultStore, job_id: str, number: int, file: JobFile, call: Callable[[int], Any]
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
    else:
        await asyncio.to_thread(store.append, job_id, number, b"")
    digest = await digest_of(store.path(job_id, number))
    await asyncio.to_thread(store.check, job_id, number, file, digest)
