"""The first that a client says over HTTP/2, by hand."""

import asyncio
import socket
from contextlib import suppress

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
"""What a client says first, with empty settings."""

ACKNOWLEDGED = bytes([0, 0, 0, 4, 1])
"""The beginning of the frame by which a server acknowledges a client's settings."""


async def greeted(family: int, address: str | tuple[str, int]) -> bool:
    """Returns whether a connection is answered whose first bytes are there before it is taken."""
    caller = socket.socket(family)
    caller.connect(address)
    caller.sendall(PREFACE)
    caller.setblocking(False)
    reader, writer = await asyncio.open_connection(sock=caller)
    said = b""
    with suppress(ConnectionError):
        while ACKNOWLEDGED not in said and (data := await reader.read(4096)):
            said += data
    writer.close()
    return ACKNOWLEDGED in said
