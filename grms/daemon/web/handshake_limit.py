"""Limits connections whose TLS handshake has not ended, of which the server above knows nothing yet.

asyncio tells a protocol of a connection after its handshake, for which it waits a minute. Until then any number could be
open. Here they are counted from the moment at which they are accepted: so many of one address, of which further ones are
closed at once, and so many of all, of which the oldest makes room, as a handshake takes milliseconds where both sides want
it.
"""

import socket
from collections import Counter
from contextlib import suppress
from ipaddress import IPv6Address
from typing import Any, Final

from grms.daemon.process import beside

PER_ADDRESS_MAX: Final = 32
"""Most of one address; of IPv6 the first 64 bits count, as one host has all of the others."""

UNFINISHED_MAX: Final = 128
"""Most of all addresses; fewer where there are few file descriptors."""


class CountedListener(socket.socket):
    """A listening socket that knows which of its connections have not ended their handshake.

    Attributes:
        closed: how many were closed to keep the limits.
    """

    def __init__(self, listening: socket.socket) -> None:
        super().__init__(
            listening.family, listening.type, listening.proto, fileno=listening.detach()
        )
        self._unfinished: dict[Any, _Accepted] = {}
        self._of: Counter[str] = Counter()
        self.closed = 0

    @property
    def unfinished(self) -> int:
        """How many connections have not ended their handshake."""
        return len(self._unfinished)

    def accept(self) -> tuple[socket.socket, Any]:
        """Accepts a connection.

        Raises:
            ConnectionAbortedError: its address has too many, and it was closed.
            OSError: as of any socket.
        """
        plain, peer = super().accept()
        accepted = _Accepted(self, plain.detach(), peer)
        if self._of[_address(peer)] >= PER_ADDRESS_MAX:
            self.closed += 1
            accepted.close()
            raise ConnectionAbortedError
        self._unfinished[peer] = accepted
        self._of[_address(peer)] += 1
        if len(self._unfinished) > beside(UNFINISHED_MAX):
            self.closed += 1
            oldest = next(iter(self._unfinished))
            self._unfinished[oldest].end()
            self.finished(oldest)
        return accepted, peer

    def finished(self, peer: Any) -> None:
        """Notes that a connection has ended its handshake, or is gone; `peer` is its address."""
        if self._unfinished.pop(peer, None) is not None:
            address = _address(peer)
            self._of[address] -= 1
            if not self._of[address]:
                del self._of[address]


class _Accepted(socket.socket):
    def __init__(self, listener: CountedListener, descriptor: int, peer: Any) -> None:
        super().__init__(listener.family, listener.type, listener.proto, fileno=descriptor)
        self._listener = listener
        self._peer = peer

    def close(self) -> None:
        self._listener.finished(self._peer)
        super().close()

    def end(self) -> None:
        # Its transport reads the end, and closes it.
        with suppress(OSError):  # the other side was faster
            self.shutdown(socket.SHUT_RDWR)


def _address(peer: Any) -> str:
    host = str(peer[0])
    if ":" not in host:
        return host
    address = IPv6Address(host.partition("%")[0])
    return str(address.ipv4_mapped or int(address) >> 64)
