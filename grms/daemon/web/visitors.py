"""Connections to pages, limited in number and idle time.

uvicorn keeps idle connections indefinitely, and accepts any number: any local user could exhaust the daemon's file
descriptors. Here the connection that has been unanswered for longest makes room for a new one, so that a browser,
which sends a request at once, always gets one.

Needs the extra `dashboard`.
"""

import asyncio
import socket
from typing import ClassVar, Final

from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from grms.daemon.process import BACKLOG, PAGES_MAX, beside

REQUEST_S: Final = 20.0
"""How long a connection may be idle without a request, seconds; up to twice as long until the check."""


def listening_at(host: str, port: int) -> socket.socket:
    """Returns a socket that listens at an address, IPv4 or IPv6; port 0 for any that is free.

    Raises:
        OSError: the address is taken, or not of this host.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Of connections, too: an answer's body would wait 40 ms for the receipt of its headers.
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        listening.bind((host, port))
        listening.listen(BACKLOG)
    except BaseException:
        listening.close()
        raise
    return listening


class Visitor(H11Protocol):
    """One of these connections."""

    most: ClassVar[int] = PAGES_MAX
    """Most connections at a time; fewer where there are few file descriptors."""

    _since = 0.0
    _timer: asyncio.TimerHandle | None = None
    _closing = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # uvicorn's own
        """Makes room, if needed, by closing the connection that has waited longest."""
        super().connection_made(transport)
        self._since = self.loop.time()
        self._look_later()
        there = [
            each
            for each in self.connections
            if isinstance(each, Visitor) and not each.transport.is_closing()
        ]
        if len(there) > beside(self.most):
            waiting = [each for each in there if each.waits]
            min(waiting, key=lambda each: each._since).transport.abort()  # noqa: SLF001  # of its own kind

    def connection_lost(self, exc: Exception | None) -> None:
        """Is looked at no more."""
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        """Waits again from now on."""
        self._since = self.loop.time()
        super().on_response_complete()

    @property
    def waits(self) -> bool:
        """Whether nothing is being answered on it."""
        cycle: RequestResponseCycle | None = self.cycle  # which uvicorn does not say
        return cycle is None or cycle.response_complete

    def _look_later(self) -> None:
        self._timer = self.loop.call_later(REQUEST_S, self._look)

    def _look(self) -> None:
        # One that is closing waits until the other side has read all, which may be never.
        was_closing, self._closing = self._closing, self.transport.is_closing()
        if was_closing or (self.waits and self.loop.time() - self._since >= REQUEST_S):
            self.transport.abort()
        else:
            self._look_later()
