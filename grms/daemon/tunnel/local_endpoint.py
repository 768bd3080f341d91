"""Unix sockets at which others seem to listen that cannot be connected to by an address alone."""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path

from grms.daemon.tunnel.stream import Stream, TunnelError


class LocalEndpoint:
    """A Unix socket that leads to one partner: whoever connects to it is connected with the partner.

    It takes connections from the first moment, and serves them once it is open.

    Attributes:
        path: of the socket, in a folder that only this user can enter.
        problem: why the last connection has not come about, for a person; empty if it has.

    Args:
        connect: makes a connection to the partner and the one at hand one, until either is over.

    Raises:
        OSError: it cannot be bound.
    """

    def __init__(self, path: Path, connect: Callable[[Stream], Awaitable[None]]) -> None:
        self.path = path
        self.problem = ""
        self._connect = connect
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._socket.bind(str(path))
            self._socket.listen()
        except OSError:
            self._socket.close()
            raise

    @property
    def address(self) -> str:
        """The socket, as gRPC writes it."""
        return f"unix:{self.path}"

    async def open(self) -> None:
        """Begins to serve."""
        self._server = await asyncio.start_unix_server(self._serve, sock=self._socket)

    def hang_up(self) -> None:
        """Ends all connections; new ones may be made."""
        for task in self._tasks:
            task.cancel()

    async def close(self) -> None:
        """Ends all connections, for good; twice is nothing."""
        if self._server is not None:
            self._server.close()
        self._socket.close()
        self.hang_up()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        stream = Stream(reader, writer)
        try:
            self.problem = ""
            await self._connect(stream)
        except TunnelError as error:
            self.problem = str(error)
            stream.close()
        except asyncio.CancelledError:
            stream.abort()
        finally:
            self._tasks.discard(task)
