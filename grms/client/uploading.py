"""Files handed to a site before the programs that are given them, in pieces."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

from grms.v1 import job_pb2, request_pb2

PUT_BYTES: Final = 256 << 10
"""Of one message."""


class FileChangedError(Exception):
    """A file is not as it was described."""


async def upload(
    put: Callable[[job_pb2.PutInputRequest], Awaitable[job_pb2.PutInputResponse]],
    file: request_pb2.InputFile,
    path: Path,
) -> None:
    """Hands a file over; what the site has of it already is not sent again.

    Args:
        put: makes one call.
        file: what it is.
        path: where it is here.

    Raises:
        FileChangedError: its content is not as described.
        OSError: it cannot be read.
    """
    with await asyncio.to_thread(path.open, "rb") as content:
        if await asyncio.to_thread(content.seek, 0, os.SEEK_END) != file.size_bytes:
            raise FileChangedError(f"{path} has changed")
        request, held = job_pb2.PutInputRequest(file=file), -1
        while held < file.size_bytes:
            answer = await put(request)
            if held == answer.held_bytes:
                raise FileChangedError(f"{path} has changed while it was read")
            held = answer.held_bytes
            content.seek(held)
            some = await asyncio.to_thread(content.read, PUT_BYTES)
            request = job_pb2.PutInputRequest(file=file, offset_bytes=held, content=some)
