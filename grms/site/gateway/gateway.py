"""The sockets of users and partners: connections that are relayed to gRPC's own socket, and whose calls are followed.

gRPC neither says which user is at the other end of a Unix socket, nor lets one count, limit and log
connections before they are calls. So clients connect to a socket of ours, and the bytes are passed
on from an address bound for this one connection. gRPC shows that address to the service, which
looks up the peer by it.

Nobody can forge it: gRPC's own socket lies in a folder that only the daemon's user can enter, and a
connection from an unlisted address is no one's. The addresses are abstract names, of which the
kernel allows one holder each; they leave no files behind.

A connection with requests that are begun and not finished is closed, as is one whose answers are
not read (`open_calls`). Calls are shared out among callers, over all connections of each.
"""

import asyncio
import errno
import os
import secrets
import socket
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from enum import Enum, auto
from pathlib import Path
from typing import Any, Final, Generic, Self, TypeVar

from grms.daemon.socket_folder import SocketFolder
from grms.site.gateway.open_calls import CallBudget, CallShares, CallWatch

WRITE_BUFFER_BYTES: Final = 1 << 18
"""Most that waits for a slow reader before its counterpart is read no further."""

BACKLOG: Final = 128
"""Least number of connections that the kernel queues."""

ACCEPTED_AT_ONCE: Final = 64
"""Connections accepted before others have a turn."""

EXHAUSTED_PAUSE_S: Final = 1.0
"""Pause before connections are accepted again if the process or system has no descriptors left."""

_EXHAUSTED = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})

Caller = TypeVar("Caller")


class Listener:
    """Takes connections, and pauses where there are no descriptors left.

    Args:
        sockets: bound, not listening yet; they belong to the listener from now on.
        backlog: connections that the kernel keeps meanwhile; it has its own limit (somaxconn).
    """

    def __init__(
        self,
        sockets: Sequence[socket.socket],
        backlog: int,
        accepted: Callable[[socket.socket], None],
        on_exhausted: Callable[[str], None],
    ) -> None:
        self._sockets = list(sockets)
        self._accepted = accepted
        self._on_exhausted = on_exhausted
        self._pauses: dict[int, asyncio.TimerHandle] = {}
        self._loop = asyncio.get_running_loop()
        for each in self._sockets:
            each.setblocking(False)
            each.listen(max(BACKLOG, backlog))
            self._loop.add_reader(each, self._ready, each)

    def names(self) -> list[Any]:
        """Returns the listening addresses, as the sockets have them."""
        return [each.getsockname() for each in self._sockets]

    def close(self) -> None:
        """Takes no more; twice is nothing."""
        for pause in self._pauses.values():
            pause.cancel()
        self._pauses.clear()
        for each in self._sockets:
            self._loop.remove_reader(each)
            each.close()
        self._sockets.clear()

    def _ready(self, listening: socket.socket) -> None:
        for _ in range(ACCEPTED_AT_ONCE):
            try:
                connection, _address = listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if error.errno not in _EXHAUSTED:
                    raise
                self._pause(listening, error.strerror or str(error))
                return
            connection.setblocking(False)
            self._accepted(connection)

    def _pause(self, listening: socket.socket, why: str) -> None:
        # The connections stay in the kernel's queue; looking at it again and again is no use.
        number = listening.fileno()
        self._loop.remove_reader(listening)

        def resume() -> None:
            del self._pauses[number]
            self._loop.add_reader(listening, self._ready, listening)

        self._pauses[number] = self._loop.call_later(EXHAUSTED_PAUSE_S, resume)
        self._on_exhausted(why)


class Relay(Generic[Caller]):
    """The way from connections of ours to gRPC's own socket, and the list of who is connected.

    Attributes:
        inner_address: where gRPC is to listen, as gRPC writes it.
        links: that stand.

    Raises:
        OSError: there is no room for the folder of the socket.
    """

    def __init__(self) -> None:
        self._folder = SocketFolder()
        self._turns = 0
        self._callers: dict[str, Caller] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self.links: set[RelayedConnection] = set()
        self._point()

    def _point(self) -> None:
        self._inner_path = str(self._folder.path / f"grpc{self._turns}.sock")
        self.inner_address = f"unix:{self._inner_path}"

    def turn(self) -> None:
        """Sends connections from now on to another server, which is to listen at the new address."""
        self._turns += 1
        self._point()

    def caller(self, peer: str) -> Caller | None:
        """Returns who is at the other end of a connection.

        `peer` is the connection's source as gRPC shows it.
        """
        return self._callers.get(peer)

    def start(self, connection: socket.socket, end: "ConnectionEnd") -> None:
        """Begins to serve an accepted connection, whose end is notified when it is over."""
        loop = asyncio.get_running_loop()

        async def serve() -> None:
            try:
                await loop.connect_accepted_socket(lambda: end, connection)
            except OSError as error:
                connection.close()
                end.connection_lost(error)

        task = loop.create_task(serve(), name="connection")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    @property
    def folder(self) -> Path:
        """The private folder of the sockets."""
        return self._folder.path

    def connect(
        self, outer: "ConnectionEnd", caller: Caller, path: Path | None = None
    ) -> "RelayedConnection":
        """Returns a link from an outer end to gRPC, or to another socket; the connection is in progress.

        Raises:
            OSError: it cannot be made.
        """
        name = f"hanse-{os.getpid()}-{secrets.token_hex(16)}"
        inner = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            inner.setblocking(False)
            inner.bind(f"\0{name}")
            # On a Unix socket this does not wait: it succeeds, or the backlog is full.
            inner.connect(self._inner_path if path is None else str(path))
        except OSError:
            inner.close()
            raise
        source = f"unix-abstract:{name}"
        self._callers[source] = caller
        link = RelayedConnection(self, source, outer)
        self.links.add(link)
        link.begin(inner)
        return link

    def forget(self, link: "RelayedConnection", source: str) -> None:
        """Takes a link off the list."""
        self.links.discard(link)
        self._callers.pop(source, None)

    def close(self) -> None:
        """Closes every connection."""
        for link in list(self.links):
            link.close()
        self._folder.close()


class RelayedConnection:
    """One connection: two ends, each writing what the other reads; `inner` is the end at gRPC."""

    def __init__(self, owner: Relay[Any], source: str, outer: "ConnectionEnd") -> None:
        self._owner = owner
        self._source = source
        self.outer = outer
        self.inner = _Inner(self)
        self._task: asyncio.Task[None] | None = None

    def begin(self, inner: socket.socket) -> None:
        """Begins to open the inner end; the outer one is read from then on."""
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
        self.outer.linked()

    def close(self) -> None:
        """Closes both ends."""
        # The name leaves the list before the connection is closed: nobody can inherit it.
        self._owner.forget(self, self._source)
        for end in (self.outer, self.inner):
            end.close()


class Pause(Enum):
    """Why an end is not read."""

    UNLINKED = auto()
    """There is no other end yet."""
    UNWRITTEN = auto()
    """The other end has more to write than its reader takes."""
    CALLS = auto()
    """Its caller has sent too much of open calls."""


class ConnectionEnd(asyncio.Protocol):
    """One end of a link; what it reads, the other end writes."""

    transport: asyncio.Transport | None = None
    link: RelayedConnection | None = None
    _unwritten: bytes = b""
    _pauses: frozenset[Pause] = frozenset()

    def other(self) -> "ConnectionEnd | None":
        """Returns the other end; None while there is none."""
        raise NotImplementedError

    def linked(self) -> None:
        """Begins to read: the other end is there."""
        self.resume(Pause.UNLINKED)

    def pause(self, why: Pause) -> None:
        """Reads no further; whatever else has paused the end holds besides."""
        self._pauses |= {why}
        if self.transport is not None:
            self.transport.pause_reading()

    def resume(self, why: Pause) -> None:
        """Ends a pause; reads on if no other holds."""
        if why not in self._pauses:
            return
        self._pauses -= {why}
        if not self._pauses and self.transport is not None and not self.transport.is_closing():
            self.transport.resume_reading()

    def deliver(self, data: bytes) -> None:
        """Writes what the other end has read; what comes before this end is there waits for it."""
        if self.transport is not None:
            self.transport.write(data)
        else:
            # Before Python 3.11.4 `pause_reading` in `connection_made` has no effect (cpython 103607): the
            # first that is said comes in the few turns of the loop that this end takes to be there.
            self._unwritten += data

    def close(self) -> None:
        """Closes this end."""
        if self.transport is not None and not self.transport.is_closing():
            self.transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Takes note of the connection."""
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        transport.set_write_buffer_limits(high=WRITE_BUFFER_BYTES)
        if self._unwritten:
            waiting, self._unwritten = self._unwritten, b""
            transport.write(waiting)

    def data_received(self, data: bytes) -> None:
        """Passes on what was read."""
        other = self.other()
        if other is not None:
            other.deliver(data)

    def pause_writing(self) -> None:
        """Lets the other end read no further: this one's reader is slow."""
        other = self.other()
        if other is not None:
            other.pause(Pause.UNWRITTEN)

    def resume_writing(self) -> None:
        """Lets the other end read again."""
        other = self.other()
        if other is not None:
            other.resume(Pause.UNWRITTEN)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  # either way it is over
        """Ends the link."""
        if self.link is not None:
            self.link.close()


class _Inner(ConnectionEnd):
    # The end at gRPC.

    def __init__(self, link: RelayedConnection) -> None:
        self.link = link

    def other(self) -> ConnectionEnd | None:
        return self.link.outer if self.link is not None else None


LOOK_S: Final = 1.0
"""Interval of checks for what takes too long, seconds."""


class Gateway(ABC, Generic[Caller]):
    """Where callers connect, and the list of connections.

    Use it as an asynchronous context; gRPC is to listen on `inner_address` before.

    Attributes:
        request_s: for a request, from its first byte to its last, seconds.
        requests: of one connection that are begun and not finished.
        clock: tells real seconds.
        refused: connections that were closed or not taken.
        on_refused: is told why each one is, and by which limit of the configuration.
        on_exhausted: is told why none can be taken for now.

    Args:
        most: connections that may come at one moment.
    """

    def __init__(
        self,
        most: int,
        shares: CallShares,
        *,
        request_s: float,
        requests: int,
        clock: Callable[[], float],
    ) -> None:
        self.calls = CallBudget(shares)
        self.request_s = request_s
        self.requests = requests
        self.clock = clock
        self.refused = 0
        self.on_refused: Callable[[str, str], None] | None = None
        self.on_exhausted: Callable[[str], None] | None = None
        self._most = most
        self._relay: Relay[Caller] = Relay()
        self._listener: Listener | None = None
        self._look: asyncio.TimerHandle | None = None
        self._ends: set[Any] = set()

    @property
    def inner_address(self) -> str:
        """Where gRPC is to listen, as gRPC writes it."""
        return self._relay.inner_address

    @property
    def connections(self) -> int:
        """Connections now, those included of whom it is not known yet who they are."""
        return len(self._ends)

    async def __aenter__(self) -> Self:
        """Begins to listen; `OSError` if that cannot be."""
        sockets: list[socket.socket] = []
        try:
            sockets = await self._bound()
            self._listener = Listener(sockets, self._most, self._accepted, self._exhausted)
        except BaseException:
            for each in sockets:
                each.close()
            self._relay.close()
            raise
        self._look_again()
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        if self._listener is not None:
            self._listener.close()
        if self._look is not None:
            self._look.cancel()
        self._relay.close()

    @abstractmethod
    async def _bound(self) -> list[socket.socket]:
        """Returns the sockets to listen on."""

    @abstractmethod
    def _accepted(self, connection: socket.socket) -> None:
        """Begins to serve a connection, or closes it."""

    @abstractmethod
    def link(self, end: Any) -> RelayedConnection | None:
        """Returns the way of a connection to gRPC, `None` if it is refused; who it is is known."""

    def _connected(
        self, end: "Connection", caller: Caller, path: Path | None = None
    ) -> RelayedConnection | None:
        try:
            return self._relay.connect(end, caller, path)
        except OSError as error:
            self.refuse(f"the daemon's own socket: {error.strerror}")
            return None

    def left(self, end: Any) -> None:
        """Notes that a connection is over."""
        self._ends.discard(end)

    def refuse(self, reason: str, limit: str = "") -> None:
        """Tells why a connection is closed or not taken, and by which limit of the configuration."""
        self.refused += 1
        if self.on_refused is not None:
            self.on_refused(reason, limit)

    def _exhausted(self, why: str) -> None:
        if self.on_exhausted is not None:
            self.on_exhausted(why)

    def _look_again(self) -> None:
        now = self.clock()
        for end in list(self._ends):
            end.look(now)
        self._look = asyncio.get_running_loop().call_later(LOOK_S, self._look_again)


class Connection(ConnectionEnd):
    """The caller's end of a connection; `who` is empty for a caller without a limit on calls."""

    def __init__(self, owner: Gateway[Any], name: str, who: str) -> None:
        self._gateway = owner
        self._name = name
        self._begin = owner.clock()
        self._watch = CallWatch(owner.calls, who)

    def other(self) -> ConnectionEnd | None:
        """Returns the end at gRPC; `None` before it is there."""
        return self.link.inner if self.link is not None else None

    def connect(self) -> None:
        """Begins to connect to gRPC; nothing more is read before that is done."""
        assert self.transport is not None
        self.pause(Pause.UNLINKED)
        self.link = self._gateway.link(self)
        if self.link is None:
            self.transport.close()

    def data_received(self, data: bytes) -> None:
        """Follows what the caller has said, and passes it on."""
        problem = self._watch.asked(data, self._gateway.clock())
        if (begun := self._watch.calls.half_sent) > self._gateway.requests:
            problem = f"has begun {begun} requests and finished none"
        if problem:
            self._hang_up(problem, "calls")
            return
        super().data_received(data)
        if self._watch.full:
            self.pause(Pause.CALLS)

    def deliver(self, data: bytes) -> None:
        """Follows what gRPC answers, and sends it."""
        self._watch.answered(data, self._gateway.clock())
        self._send(data)

    def _send(self, data: bytes) -> None:
        self._watch.wrote(len(data))
        super().deliver(data)

    def look(self, now: float) -> None:
        """Ends what takes too long at `now`, in seconds: unfinished requests and unread answers."""
        limit = self._gateway.request_s
        if now - self._watch.calls.half_sent_since(self._begin) > limit:
            text = f"has begun a request and not finished it within {limit:g} s"
            self._hang_up(text, "request_timeout_s")
        elif self.transport is not None and not self.transport.is_closing():
            waiting = self.transport.get_write_buffer_size()
            if now - self._watch.unread_since(waiting, now) > limit:
                text = f"has not read what it was answered within {limit:g} s"
                self._hang_up(text, "request_timeout_s")
            elif not self._watch.full:
                self.resume(Pause.CALLS)

    def _hang_up(self, reason: str, limit: str) -> None:
        self._gateway.refuse(f"{self._name} {reason}", limit)
        self.abort()

    def abort(self) -> None:
        """Ends the connection at once; what has not been sent is lost."""
        if self.transport is not None:
            self.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Notifies the gateway."""
        self._watch.close()
        self._gateway.left(self)
        super().connection_lost(exc)
