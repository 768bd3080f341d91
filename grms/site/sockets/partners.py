"""The port of partners: who may connect, and what stands behind it is gRPC's own socket.

TLS ends at each connection (`partner_end`); every handshake that fails is counted and told. The
certificate that was verified is what a service gets for a call (`PartnerPort.shown`).

What TLS has verified once is asked again while a connection stands: an authority may be believed no more,
a certificate be refused or end, a partner be taken off the list.

Connections are limited: in all, for each site, and before anybody has shown who they are, for each
address.
"""

import asyncio
import ipaddress
import socket
import time
from collections import Counter
from collections.abc import Callable, Container
from typing import Self

from grms.handshakes import Handshake
from grms.names import Endpoint
from grms.site.sockets.half_sent import LOOK_S
from grms.site.sockets.partner_end import PartnerEnd, Peer, PortLimits, Shown
from grms.site.sockets.relay import Link, Listener, Relay
from grms.site.sockets.shares import CallBudget
from grms.tls import CertificateTrust, ServerTls


class PartnerPort:
    """Where partners connect, and the list of who is connected.

    Use it as an asynchronous context; gRPC is to listen on `inner_address` before.

    Attributes:
        on_handshake_failed: is told of each handshake that fails: what it was, in words, and from
            which address.
        on_refused: is told why a connection is closed or not taken, and by which limit of the configuration.
        on_exhausted: is told why none can be taken for now.
        on_distrusted: is told of whom, and why, a connection is ended that stands: the site, the address, in words.
        on_certificate: is told which site has shown which certificate (PEM) that TLS has verified.

    Args:
        endpoint: where to listen.
        tls: of this site; None takes whoever connects.
        limits: what is taken at most.
        clock: tells real seconds.
        trust: whether what TLS has verified is believed still; None asks nobody.
        now: tells the time, seconds since 1970.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        tls: ServerTls | None,
        limits: PortLimits,
        *,
        clock: Callable[[], float] = time.monotonic,
        trust: CertificateTrust | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._trust = trust
        self._now = now
        self.on_distrusted: Callable[[str, str, str], None] | None = None
        self.limits = limits
        self.tls = tls
        self.calls = CallBudget(limits.calls)
        self.clock = clock
        self.on_handshake_failed: Callable[[Handshake, str, str], None] | None = None
        self.on_refused: Callable[[str, str], None] | None = None
        self.on_exhausted: Callable[[str], None] | None = None
        self.on_certificate: Callable[[str, bytes], None] | None = None
        self._endpoint = endpoint
        self._relay: Relay[Peer] = Relay()
        self._listener: Listener | None = None
        self._look: asyncio.TimerHandle | None = None
        self._ends: set[PartnerEnd] = set()
        self._unknown: Counter[str] = Counter()
        self._by_site: Counter[str] = Counter()

    @property
    def inner_address(self) -> str:
        """Where gRPC is to listen, as gRPC writes it."""
        return self._relay.inner_address

    @property
    def connections(self) -> int:
        """Connections now, those included that have not shown who they are."""
        return len(self._ends)

    @property
    def address(self) -> tuple[str, int]:
        """Where it listens: host and port."""
        assert self._listener is not None
        host, port = self._listener.names()[0][:2]
        return host, port

    def shown(self, peer: str) -> Shown:
        """Returns what the other side of a connection has shown, as gRPC's `auth_context` has it.

        Args:
            peer: the connection's source as gRPC shows it.
        """
        caller = self._relay.caller(peer)
        return {} if caller is None else caller.shown

    async def __aenter__(self) -> Self:
        """Begins to listen.

        Raises:
            OSError: the address cannot be listened on.
        """
        try:
            sockets = await _bound(self._endpoint)
        except BaseException:
            self._relay.close()
            raise
        self._listener = Listener(
            sockets, self.limits.connections, self._accepted, self._tell_exhausted
        )
        self._look_again()
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        """Stops listening and closes every connection."""
        if self._listener is not None:
            self._listener.close()
        if self._look is not None:
            self._look.cancel()
        for end in list(self._ends):
            end.abort()
        self._relay.close()

    def _tell_exhausted(self, why: str) -> None:
        if self.on_exhausted is not None:
            self.on_exhausted(why)

    # --- connections ---------------------------------------------------------------------------

    def _accepted(self, connection: socket.socket) -> None:
        try:
            address = str(connection.getpeername()[0])
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError:
            connection.close()
            return
        problem, limit = "", ""
        if len(self._ends) >= self.limits.connections:
            problem = f"{len(self._ends)} connections of partners are open; {address} is refused"
            limit = "partner_connections"
        elif self.tls and self._unknown[address] >= self.limits.handshakes_per_address:
            problem = (
                f"{self._unknown[address]} connections from {address} have not shown who they are"
            )
        if problem:
            connection.close()
            self.refuse(problem, limit)
            return
        end = PartnerEnd(self, Peer(address))
        self._ends.add(end)
        self._unknown[address] += 1
        self._relay.start(connection, end)

    def known(self, end: PartnerEnd) -> Link | None:
        """See `EndOwner.known`."""
        peer = end.peer
        site = peer.site
        if site and self._by_site[site] >= self.limits.connections_per_site:
            problem = f"{site} has {self._by_site[site]} connections, as many as a site may have"
            self.refuse(problem, "partner_connections_per_site")
            return None
        try:
            link = self._relay.connect(end, peer)
        except OSError as error:
            self.refuse(f"the daemon's own socket: {error.strerror}")
            return None
        self._met(peer)
        self._by_site[site] += 1
        end.counted = True
        return link

    def _met(self, peer: Peer) -> None:
        self._unknown[peer.address] -= 1
        if not self._unknown[peer.address]:
            del self._unknown[peer.address]

    def left(self, end: PartnerEnd) -> None:
        """See `EndOwner.left`."""
        if end not in self._ends:
            return
        self._ends.discard(end)
        if not end.counted:
            self._met(end.peer)
            return
        site = end.peer.site
        self._by_site[site] -= 1
        if not self._by_site[site]:
            del self._by_site[site]

    def refuse(self, reason: str, limit: str = "") -> None:
        """See `EndOwner.refuse`."""
        if self.on_refused is not None:
            self.on_refused(reason, limit)

    def handshake_failed(self, handshake: Handshake, problem: str, address: str) -> None:
        """See `EndOwner.handshake_failed`."""
        if self.on_handshake_failed is not None:
            self.on_handshake_failed(handshake, problem, address)

    def certificate_shown(self, site: str, pem: bytes) -> None:
        """See `EndOwner.certificate_shown`."""
        if self.on_certificate is not None and site:
            self.on_certificate(site, pem)

    def distrusts(self, peer: Peer) -> str:
        """See `EndOwner.distrusts`."""
        if self._trust is None:
            return ""
        for pem in peer.shown.get("x509_pem_cert", ()):
            return self._trust.problem(pem, peer.authority, now=self._now())
        return ""

    def distrusted(self, peer: Peer, reason: str) -> None:
        """See `EndOwner.distrusted`."""
        if self.on_distrusted is not None:
            self.on_distrusted(peer.site, peer.address, reason)

    def check(self, listed: Container[str]) -> None:
        """Ends the connections of whoever is not believed any more, or is not on the list any more.

        Who is not on the list may connect again, and is told so in answer to every call.

        Args:
            listed: the names that may call.
        """
        for end in list(self._ends):
            if not end.peer.shown:
                continue
            problem = self.distrusts(end.peer)
            if not problem and end.peer.site not in listed:
                problem = "it is not among the partners of this site any more"
            if problem:
                end.distrust(problem)

    def _look_again(self) -> None:
        now = self.clock()
        for end in list(self._ends):
            end.look(now)
        self._look = asyncio.get_running_loop().call_later(LOOK_S, self._look_again)


async def _bound(endpoint: Endpoint) -> list[socket.socket]:
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(
        endpoint.host, endpoint.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )
    sockets: list[socket.socket] = []
    try:
        for family, kind, protocol, _, address in dict.fromkeys(found):
            each = socket.socket(family, kind, protocol)
            sockets.append(each)
            each.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                # The address of all addresses is that of both families.
                both = ipaddress.ip_address(address[0]).is_unspecified
                each.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, int(not both))
            each.bind(address)
    except OSError:
        for each in sockets:
            each.close()
        raise
    return sockets
