"""Connections, a proxy and certificates for tests of tunnels."""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

from grms.daemon.tunnel.stream import Stream, join


async def pair() -> tuple[Stream, Stream]:
    """Returns both ends of a connection."""
    ends = []
    for end in socket.socketpair():
        end.setblocking(False)
        ends.append(Stream(*await asyncio.open_unix_connection(sock=end)))
    return ends[0], ends[1]


Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def listening(serve: Serve, host: str = "127.0.0.1", **tls: Any) -> AsyncIterator[int]:
    """Yields the port where connections are served; in the end none of them is left."""
    tasks: set[asyncio.Task[None] | None] = set()

    async def begun(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.add(asyncio.current_task())
        try:
            await serve(reader, writer)
        except asyncio.CancelledError:
            pass
        finally:
            writer.transport.abort()

    server = await asyncio.start_server(begun, host, 0, **tls)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for task in filter(None, tasks):
            task.cancel()
        await asyncio.gather(*filter(None, tasks), return_exceptions=True)


class Proxy:
    """An HTTP proxy that knows CONNECT and nothing else.

    Attributes:
        port: where it listens.
        asked: for what it was asked.
        answer: what it says, where that is not what was wanted.
    """

    def __init__(self) -> None:
        self.port = 0
        self.asked: list[str] = []
        self.answer = b""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serves a connection."""
        with suppress(OSError, asyncio.IncompleteReadError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            self.asked.append(head.split("\r\n")[0])
            host, _, port = head.split(" ")[1].rpartition(":")
            if self.answer:
                writer.write(self.answer)
                await writer.drain()
            else:
                far = await asyncio.open_connection(host.strip("[]"), int(port))
                writer.write(b"HTTP/1.1 200 Connection established\r\nVia: test\r\n\r\n")
                await join(Stream(reader, writer), Stream(*far))
                return
        writer.close()
        await reader.read()


@asynccontextmanager
async def proxy() -> AsyncIterator[Proxy]:
    """Yields a proxy on loopback."""
    found = Proxy()
    async with listening(found.serve) as port:
        found.port = port
        yield found
