"""The Unix socket of users: who speaks is who the kernel says.

gRPC does not tell a service which user is at the other end of a Unix socket. So users connect to a
socket of ours, which asks the kernel for the peer's credentials (`SO_PEERCRED`) and passes the
bytes on to gRPC's own socket from an address bound for this one connection. gRPC shows that
address to the service, which looks the user up by it.

Nobody can pretend: gRPC's own socket lies in a folder that only the daemon's user can enter, and a
connection from an address that is not in the list is refused. The addresses are abstract names of
which the kernel allows one holder each; they leave no files behind.
"""

import asyncio
import contextlib
import os
import pwd
import secrets
import socket
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from grms.socket_folder import SocketFolder
from grms.unix_sockets import remove_stale_socket

CREDENTIALS: Final = struct.Struct("3i")
"""What `SO_PEERCRED` gives: process, user, group (unix(7))."""

WRITE_BUFFER_BYTES: Final = 1 << 18
"""How much may wait for a slow reader before its partner in conversation is read no further."""

BACKLOG: Final = 128
"""Least number of connections that the kernel keeps until they are looked at."""

SOCKET_MODE: Final = 0o666
"""Everybody may knock; what one may do depends on who one is."""


@dataclass(frozen=True, slots=True)
class User:
    """Who is at the other end, as the kernel says.

    Attributes:
        uid: number of the user.
        name: the user's name on this machine; the number where there is none.
    """

    uid: int
    name: str


def user_of(uid: int) -> User:
    """Returns the user of that number."""
    try:
        return User(uid, pwd.getpwuid(uid).pw_name)
    except KeyError:
        return User(uid, str(uid))


class UserSocket:
    """The socket users connect to, and the list of who is connected.

    Use it as an asynchronous context; gRPC is to listen on `inner_address` before.

    Attributes:
        path: where users connect.
        inner_address: where gRPC is to listen, as gRPC writes it.
        refused: connections refused at the limit.
        on_refused: is told why each one is.

    Args:
        path: where users connect.
        connections_max: connections at one time; more are closed at once.
    """

    def __init__(self, path: Path, connections_max: int) -> None:
        self.path = path
        self.refused = 0
        self.on_refused: Callable[[str], None] | None = None
        self._connections_max = connections_max
        self._users: dict[str, User] = {}
        self._folder = SocketFolder()
        self._inner_path = str(self._folder.path / "grpc.sock")
        self.inner_address = f"unix:{self._inner_path}"
        self._server: asyncio.Server | None = None
        self._links: set[_Link] = set()

    def user(self, peer: str) -> User | None:
        """Returns who is at the other end of a connection.

        Args:
            peer: the connection's source as gRPC shows it.
        """
        return self._users.get(peer)

    @property
    def connections(self) -> int:
        """Connections of users now."""
        return len(self._links)

    async def __aenter__(self) -> Self:
        """Begins to listen.

        Raises:
            SocketInUseError: somebody else does.
            OSError: the socket cannot be made.
        """
        try:
            remove_stale_socket(self.path)
            loop = asyncio.get_running_loop()
            # All that are allowed may come at one moment; the kernel has its own limit (somaxconn).
            self._server = await loop.create_unix_server(
                lambda: _Outer(self), str(self.path), backlog=max(BACKLOG, self._connections_max)
            )
            self.path.chmod(SOCKET_MODE)
        except BaseException as error:
            self._folder.close()
            if isinstance(error, OSError):
                raise OSError(
                    f"listen.users is {self.path}: {error.strerror}; its folder must exist, and the "
                    "daemon's user must be allowed to write there"
                ) from error
            raise
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        """Stops listening and closes every connection."""
        if self._server is not None:
            self._server.close()
        for link in list(self._links):
            link.close()
        with contextlib.suppress(FileNotFoundError):
            self.path.unlink()
        self._folder.close()

    def _admit(self, outer: "_Outer", transport: asyncio.Transport) -> "_Link | None":
        if len(self._links) >= self._connections_max:
            self._refuse(f"{self._connections_max} connections of users are open")
            return None
        peer = transport.get_extra_info("socket")
        _, uid, _ = CREDENTIALS.unpack(
            peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, CREDENTIALS.size)
        )
        name = f"hanse-{os.getpid()}-{secrets.token_hex(16)}"
        inner = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            inner.setblocking(False)
            inner.bind(f"\0{name}")
            # On a Unix socket this does not wait: it succeeds, or the backlog is full.
            inner.connect(self._inner_path)
        except OSError as error:
            inner.close()
            self._refuse(f"the daemon's own socket: {error.strerror}")
            return None
        source = f"unix-abstract:{name}"
        self._users[source] = user_of(uid)
        link = _Link(self, source, outer)
        self._links.add(link)
        link.begin(inner)
        return link

    def _refuse(self, reason: str) -> None:
        self.refused += 1
        if self.on_refused is not None:
            self.on_refused(reason)

    def _forget(self, link: "_Link", source: str) -> None:
        self._links.discard(link)
        self._users.pop(source, None)


class _Link:
    # One user's connection: the two ends, each writing what the other reads.

    def __init__(self, owner: UserSocket, source: str, outer: "_Outer") -> None:
        self._owner = owner
        self._source = source
        self.outer = outer
        self.inner = _Inner(self)
        self._task: asyncio.Task[None] | None = None

    def begin(self, inner: socket.socket) -> None:
        self._task = asyncio.create_task(self._open(inner), name=f"link {self._source}")

    async def _open(self, inner: socket.socket) -> None:
        try:
            await asyncio.get_running_loop().create_connection(lambda: self.inner, sock=inner)
        except OSError:
            inner.close()
            self.close()
            return
        if self.outer.transport is None or self.outer.transport.is_closing():
            self.close()
            return
        self.outer.transport.resume_reading()

    def close(self) -> None:
        # The name leaves the list before the connection is closed: nobody can inherit it.
        self._owner._forget(self, self._source)  # noqa: SLF001  # a part of its owner
        for end in (self.outer, self.inner):
            if end.transport is not None and not end.transport.is_closing():
                end.transport.close()


class _End(asyncio.Protocol):
    # One end of a link; what it reads, the other end writes.

    transport: asyncio.Transport | None = None
    link: _Link | None = None

    def other(self) -> "_End | None":
        raise NotImplementedError

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        transport.set_write_buffer_limits(high=WRITE_BUFFER_BYTES)

    def data_received(self, data: bytes) -> None:
        other = self.other()
        if other is not None and other.transport is not None:
            other.transport.write(data)

    def pause_writing(self) -> None:
        other = self.other()
        if other is not None and other.transport is not None:
            other.transport.pause_reading()

    def resume_writing(self) -> None:
        other = self.other()
        if other is not None and other.transport is not None and not other.transport.is_closing():
            other.transport.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  # either way it is over
        if self.link is not None:
            self.link.close()


class _Outer(_End):
    # The end at the user.

    def __init__(self, owner: UserSocket) -> None:
        self._owner = owner

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        assert self.transport is not None
        self.transport.pause_reading()
        self.link = self._owner._admit(self, self.transport)  # noqa: SLF001  # a part of its owner
        if self.link is None:
            self.transport.abort()

    def other(self) -> _End | None:
        return self.link.inner if self.link is not None else None


class _Inner(_End):
    # The end at gRPC.

    def __init__(self, link: _Link) -> None:
        self.link = link

    def other(self) -> _End | None:
        return self.link.outer if self.link is not None else None
