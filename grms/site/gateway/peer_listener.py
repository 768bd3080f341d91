"""The port of partners: who may connect, in front of gRPC's own socket.

gRPC reports failed handshakes to no one: not that there was one, not from where, not why. So TLS
ends in this process, with Python's `ssl` (OpenSSL), at each connection, and the bytes are passed on
(`gateway`). Every failed handshake is counted and reported with a reason in words; the other side
gets OpenSSL's alert, which says why (`grms.security.handshakes`). asyncio's own TLS would not do: its server
closes a connection whose handshake fails before the alert is sent.

A connection whose client wants to speak `TUNNEL_PROTOCOL` leads to the tunnels (`grms.daemon.tunnel.hub`) rather than
to gRPC. A site that listens to nobody has a port all the same: what comes over its own tunnels arrives there (`take`).

A service gets the verified certificate of a call (`PartnerPort.shown`). It is checked again while a
connection stands: an authority may lose its trust, a certificate be refused or expire, a partner be
taken off the list. Connections are limited: in all, for each site, and, before identification, for
each address.
"""

import asyncio
import ipaddress
import socket
import ssl
import time
from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from grms.daemon.tunnel.dialing import keep_alive
from grms.daemon.tunnel.hub import TunnelHub
from grms.security.handshakes import Handshake, handshake_problem
from grms.security.tls import TUNNEL_PROTOCOL, CertificateTrust, ServerTls, shown_site
from grms.site.gateway.gateway import Connection, ConnectionEnd, Gateway, RelayedConnection
from grms.site.gateway.open_calls import CallShares, CallWatch
from grms.util.names import Endpoint

LINGER_S: Final = 2.0
"""Time for the other side to read why it was refused, seconds."""

READ_BYTES: Final = 1 << 16
"""Most that is decrypted at once."""

Shown = Mapping[str, Iterable[bytes]]
"""What the other side has shown, as gRPC's `auth_context` has it."""


@dataclass(frozen=True, slots=True)
class PortLimits:
    """What is taken at most at the port of partners.

    Attributes:
        connections: at a time.
        connections_per_site: of these, for one site, as its certificate names it.
        handshakes_per_address: connections from one address that have not shown who they are.
        handshake_s: for the handshake, seconds.
        request_s: for a request, from its first byte to its last, seconds.
        requests: of one connection that are begun and not finished.
        calls: how calls are shared out among sites.
    """

    connections: int = 500
    connections_per_site: int = 32
    handshakes_per_address: int = 32
    handshake_s: float = 10.0
    request_s: float = 20.0
    requests: int = 250
    calls: CallShares = field(default_factory=lambda: CallShares.of(2000, 1 << 20))


@dataclass(slots=True)
class Peer:
    """Who is at the other end of a connection.

    Attributes:
        site: as its certificate names it; empty before it has shown one.
        authority: the authorities by which TLS verifies that, as `CertificateTrust.authority` has
            them.
    """

    address: str
    site: str = ""
    shown: Shown = field(default_factory=dict)
    authority: str = ""


class TlsConnection(Connection):
    """The end at a partner: what it reads is decrypted, what it writes encrypted.

    `counted` says whether it counts among the connections of its site, `tunnel` whether its client waits to be called,
    or calls others through it.
    """

    def __init__(self, owner: "PartnerPort", peer: Peer) -> None:
        # Without TLS all are on this machine, and nobody is told from others.
        super().__init__(owner, peer.address, "")
        self._owner = owner
        self.peer = peer
        self.counted = False
        self.tunnel = False
        self._early = bytearray()
        self._reads = False
        self._over = False
        self._tls: ssl.SSLObject | None = None
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()

    # --- the connection ------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begins the handshake, or relays at once if the site has no TLS."""
        super().connection_made(transport)
        assert self.transport is not None
        tls = self._owner.tls
        if tls is None:
            self.connect()
            return
        self._tls = tls.context().wrap_bio(self._incoming, self._outgoing, server_side=True)
        # They may be other ones before the handshake has ended.
        self.peer.authority = tls.authority

    def connection_lost(self, exc: Exception | None) -> None:
        """Notifies the port, also of a handshake that was cut off."""
        if self._tls is not None and not self.peer.shown and not self._over:
            self._handshake_failed(Handshake.CLOSED, "it hung up in the middle")
        self._over = True
        super().connection_lost(exc)

    def connect(self) -> None:
        """Begins to connect to gRPC; data read meanwhile waits."""
        super().connect()
        self._over = self.link is None

    def abort(self) -> None:
        """Ends the connection at once; what has not been sent is lost."""
        self._over = True
        super().abort()

    # --- what comes and goes -------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        """Takes what has come, encrypted."""
        if self._over:
            return  # it was refused, and may read why
        if self._tls is None:
            self._pass_on(data)
            return
        self._incoming.write(data)
        if not self.peer.shown and not self._shake_hands():
            return
        self._decrypt()

    def deliver(self, data: bytes) -> None:
        """Encrypts and sends what is answered."""
        if self.tunnel:
            self._send(data)
        else:
            super().deliver(data)

    def _send(self, data: bytes) -> None:
        if self._tls is None:
            super()._send(data)
        elif not self._over:
            # A memory BIO takes all.
            self._tls.write(data)
            self._flush()

    def linked(self) -> None:
        """Hands on what has come while gRPC's end was not there yet."""
        self._reads = True
        if self._early:
            early, self._early = bytes(self._early), bytearray()
            self._pass_on(early)
        super().linked()

    def close(self) -> None:
        """Takes leave as TLS wants it, and closes."""
        if self._tls is not None and not self._over and self.peer.shown:
            with suppress(ssl.SSLError):
                self._tls.unwrap()
            self._flush()
        self._over = True
        super().close()

    def _pass_on(self, data: bytes) -> None:
        if not self._reads:
            self._early += data
        elif self.tunnel:
            ConnectionEnd.data_received(self, data)  # there are no calls in it
        else:
            super().data_received(data)

    def _decrypt(self) -> None:
        assert self._tls is not None
        parts, over = [], False
        try:
            while part := self._tls.read(READ_BYTES):
                parts.append(part)
            over = True  # so it ends when the other side takes its leave
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLError:
            self._flush()
            self.close()
            return
        self._flush()
        if parts:
            self._pass_on(b"".join(parts))
        if over:
            self.close()

    def _flush(self) -> None:
        if self._outgoing.pending:
            super()._send(self._outgoing.read())

    # --- the handshake -------------------------------------------------------------------------

    def _shake_hands(self) -> bool:
        assert self._tls is not None
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            self._flush()
            return False
        except ssl.SSLError as error:
            self._refuse_hand(*handshake_problem(error))
            return False
        certificate = self._tls.getpeercert(binary_form=True)
        if certificate is None:
            self._refuse_hand(Handshake.NO_CERTIFICATE, "it shows no certificate")
            return False
        pem = ssl.DER_cert_to_PEM_cert(certificate).encode()
        self.peer.shown = {"x509_pem_cert": (pem,)}
        self.peer.site = shown_site(pem)
        self._name = self.peer.site or self.peer.address
        self._watch = CallWatch(self._owner.calls, self._name)
        if problem := self._owner.distrusts(self.peer):
            text = f"the certificate of {self._name} is not believed: {problem}"
            self._refuse_hand(Handshake.DISTRUSTED, text)
            return False
        if self.peer.site:
            self._owner.on_certificate(self.peer.site, pem)
        self.tunnel = self._tls.selected_alpn_protocol() == TUNNEL_PROTOCOL
        self._flush()
        self.connect()
        return not self._over

    def _refuse_hand(self, handshake: Handshake, problem: str) -> None:
        # The alert says why. Closed at once, what has not been read yet would reset the connection,
        # and the alert with it.
        assert self.transport is not None
        self._over = True
        self._flush()
        self._handshake_failed(handshake, problem)
        if self.transport.can_write_eof():
            with suppress(OSError):
                self.transport.write_eof()
        asyncio.get_running_loop().call_later(LINGER_S, self.abort)

    def _handshake_failed(self, handshake: Handshake, problem: str) -> None:
        self._owner.on_handshake_failed(handshake, problem, self.peer.address)

    def distrust(self, reason: str) -> None:
        """Ends the connection at once, as its peer is no longer trusted."""
        if not self._over:
            self._owner.on_distrusted(self.peer.site, self.peer.address, reason)
            self.abort()

    # --- what takes too long -------------------------------------------------------------------

    def look(self, now: float) -> None:
        """Ends handshakes and calls that take too long, and peers no longer trusted.

        `now` is in seconds, by the port's clock.
        """
        if self._over:
            return
        if self._tls is not None and not self.peer.shown:
            limit = self._owner.limits.handshake_s
            if now - self._begin > limit:
                self._handshake_failed(Handshake.SLOW, f"it has not ended within {limit:g} s")
                self.abort()
        elif self.peer.shown and (problem := self._owner.distrusts(self.peer)):
            self.distrust(problem)
        elif not self.tunnel:
            super().look(now)


class PartnerPort(Gateway[Peer]):
    """Where partners connect, and the list of who is connected.

    Attributes:
        limits: what is taken at most.
        tls: of this site; None takes whoever connects.
        on_handshake_failed: called for each handshake that fails: what it was, in words, and from
            which address.
        on_certificate: is told which site has shown which certificate (PEM) that TLS has verified.
        on_distrusted: is told of whom, and why, a connection is ended that stands: the site, the
            address, in words.
        tunnels: where those arrive that wait to be called; None takes none.
        serves: whether calls are served; else there are tunnels alone.

    Args:
        endpoint: where it listens; None nowhere.
        tls: of this site; None takes whoever connects.
        limits: what is taken at most.
        clock: tells real seconds.
        trust: whether what TLS has verified is believed still; None asks nobody.
        now: tells the time, seconds since 1970.
    """

    def __init__(
        self,
        endpoint: Endpoint | None,
        tls: ServerTls | None,
        limits: PortLimits,
        *,
        clock: Callable[[], float] = time.monotonic,
        trust: CertificateTrust | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.limits = limits
        self.tls = tls
        self.on_handshake_failed: Callable[[Handshake, str, str], None] = lambda *_: None
        self.on_certificate: Callable[[str, bytes], None] = lambda *_: None
        self.on_distrusted: Callable[[str, str, str], None] = lambda *_: None
        self.tunnels: TunnelHub | None = None
        self.serves = True
        self._trust = trust
        self._now = now
        self._endpoint = endpoint
        self._unknown: Counter[str] = Counter()
        self._by_site: Counter[str] = Counter()
        super().__init__(
            limits.connections,
            limits.calls,
            request_s=limits.request_s,
            requests=limits.requests,
            clock=clock,
        )

    @property
    def address(self) -> tuple[str, int]:
        """Where it listens: host and port."""
        assert self._listener is not None
        host, port = self._listener.names()[0][:2]
        return host, port

    @property
    def folder(self) -> Path:
        """The private folder of its sockets."""
        return self._relay.folder

    def site(self, peer: str) -> str:
        """Returns which site is at the other end of a connection, as for `shown`; empty if that is not known."""
        caller = self._relay.caller(peer)
        return "" if caller is None else caller.site

    def shown(self, peer: str) -> Shown:
        """Returns what the other side of a connection has shown, as gRPC's `auth_context` has it.

        `peer` is the connection's source as gRPC shows it.
        """
        caller = self._relay.caller(peer)
        return {} if caller is None else caller.shown

    async def __aexit__(self, *exc_info: object) -> None:
        for end in list(self._ends):
            end.abort()
        await super().__aexit__(*exc_info)

    # --- connections ---------------------------------------------------------------------------

    async def _bound(self) -> list[socket.socket]:
        return [] if self._endpoint is None else await _bound(self._endpoint)

    def _accepted(self, connection: socket.socket) -> None:
        try:
            address = str(connection.getpeername()[0])
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError:
            connection.close()
            return
        keep_alive(connection)
        self.take(connection, address)

    def take(self, connection: socket.socket, address: str) -> None:
        """Begins to serve a connection, or closes it; `address` is where it comes from, for a person."""
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
        end = TlsConnection(self, Peer(address))
        self._ends.add(end)
        self._unknown[address] += 1
        self._relay.start(connection, end)

    def link(self, end: TlsConnection) -> RelayedConnection | None:
        """Returns the way of a connection to gRPC, `None` if its site has too many."""
        peer = end.peer
        site = peer.site
        if site and self._by_site[site] >= self.limits.connections_per_site:
            problem = f"{site} has {self._by_site[site]} connections, as many as a site may have"
            self.refuse(problem, "partner_connections_per_site")
            return None
        path = None
        if end.tunnel and self.tunnels is not None:
            path = self.tunnels.path
        elif end.tunnel or not self.serves:
            what = "connections to call it back" if end.tunnel else "calls"
            self.refuse(f"{site or peer.address} is refused: no {what} are taken here")
            return None
        link = self._connected(end, peer, path)
        if link is not None:
            self._met(peer)
            self._by_site[site] += 1
            end.counted = True
        return link

    def _met(self, peer: Peer) -> None:
        self._unknown[peer.address] -= 1
        if not self._unknown[peer.address]:
            del self._unknown[peer.address]

    def left(self, end: TlsConnection) -> None:
        """Notes that a connection is over."""
        if end not in self._ends:
            return
        super().left(end)
        if not end.counted:
            self._met(end.peer)
            return
        site = end.peer.site
        self._by_site[site] -= 1
        if not self._by_site[site]:
            del self._by_site[site]

    def distrusts(self, peer: Peer) -> str:
        """Returns why a peer's certificate is no longer trusted; empty if it is."""
        if self._trust is None:
            return ""
        for pem in peer.shown.get("x509_pem_cert", ()):
            return self._trust.problem(pem, peer.authority, now=self._now())
        return ""

    def check(self, listed: Container[str]) -> None:
        """Ends the connections of peers that are no longer trusted or whose names are not `listed`.

        An unlisted peer may connect again, and is refused at every call.
        """
        for end in list(self._ends):
            if not end.peer.shown:
                continue
            problem = self.distrusts(end.peer)
            if not problem and end.peer.site not in listed:
                problem = "it is not among the partners of this site any more"
            if problem:
                end.distrust(problem)


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
