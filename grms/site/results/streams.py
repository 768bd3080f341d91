"""Brings one file over from a partner into a store: what is there stays, and the rest is asked for."""

import asyncio
from collections.abc import Callable
from typing import Any, Final

from grms.kit.job_files import JobFile
from grms.site.links.calls import SenselessError, answers_to
from grms.site.results.digests import digest_of
from grms.site.results.store import ResultStore

FILE_TIMEOUT_S: Final = 600.0
"""A file that has not come whole by then is asked for again, from where it is."""


async def bring(
    store: ResultStore, job_id: str, number: int, file: JobFile, call: Callable[[int], Any]
) -> None:
    """Returns when a file is whole and durable.

    Args:
        store: where it goes.
        job_id: in the store.
        number: of the file there.
        file: what was said of it.
        call: asks for it from a byte on; a stream of chunks.

    Raises:
        AioRpcError: the call has ended before the file did.
        ConnectionError: the connection has, or there is none.
        SenselessError: it is longer than was said.
        WrongContentError: it is another.
        OSError: it cannot be kept.
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
