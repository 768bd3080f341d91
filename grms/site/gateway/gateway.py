"""Common parts of the sockets of users and partners: connections whose calls are followed.

A connection with requests that are begun and not finished is closed, as is one whose answers are
not read (`open_calls`). Calls are shared out among callers, over all connections of each
(`shares`).
"""

import asyncio
import socket
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Generic, Self

from grms.site.gateway.open_call_shares import CallBudget, CallShares, CallWatch
from grms.site.gateway.relay import Caller, ConnectionEnd, Listener, Pause, Relay, RelayedConnection

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
