"""The port of partners: TLS ends here, and what stands behind it is gRPC's own socket.

gRPC says nothing of a handshake that fails, to nobody: not that there was one, not from where, not
why. So TLS ends in this process, with Python's `ssl` (OpenSSL), and the bytes are passed on
(`relay`). Every handshake that fails has a reason in words, is counted and is told; the other side
gets OpenSSL's alert, which says why to whoever reads it (`grms.handshakes`). The certificate that was
verified is what a service gets for a call (`PartnerPort.shown`).

Connections are limited: in all, for each site, and before anybody has shown who they are, for each
address. So are requests that are begun and not finished (`half_sent`).
"""

import asyncio
import ipaddress
import socket
import ssl
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, Self

from grms.handshakes import Handshake, handshake_problem
from grms.names import Endpoint
from grms.site.sockets.half_sent import LOOK_S, HalfSent
from grms.site.sockets.relay import End, Link, Listener, Relay
from grms.tls import ServerTls, shown_site

LINGER_S: Final = 2.0
"""How long is waited for the other side to read why it was refused, seconds."""

READ_BYTES: Final = 1 << 16
"""Most that is decrypted at once."""

Shown = Mapping[str, Iterable[bytes]]
"""What the other side has shown, as gRPC's `auth_context` has it."""


@dataclass(frozen=True, slots=True)
class PortLimits:
    """What is taken at most at the port of partners.

    Attributes:
        connections: at one time.
        connections_per_site: of these, for one site, as its certificate names it.
        handshakes_per_address: connections from one address that have not shown who they are.
        handshake_s: for the handshake, seconds.
        request_s: for a request, from its first byte to its last, seconds.
        requests: of one connection that are begun and not finished.
    """

    connections: int = 500
    connections_per_site: int = 32
    handshakes_per_address: int = 32
    handshake_s: float = 10.0
    request_s: float = 20.0
    requests: int = 250


@dataclass(slots=True)
class _Peer:
    # Who is at the other end of a connection.
    address: str
    site: str = ""
    shown: Shown = field(default_factory=dict)


class PartnerPort:
    """Where partners connect, and the list of who is connected.

    Use it as an asynchronous context; gRPC is to listen on `inner_address` before.

    Attributes:
        on_handshake_failed: is told of each handshake that fails: what it was, in words, and from
            which address.
        on_refused: is told why a connection is closed or not taken.
        on_exhausted: is told why none can be taken for now.
        on_certificate: is told which site has shown which certificate (PEM) that TLS has verified.

    Args:
        endpoint: where to listen.
        tls: of this site; None takes whoever connects.
        limits: what is taken at most.
        clock: tells real seconds.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        tls: ServerTls | None,
        limits: PortLimits,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.limits = limits
        self.tls = tls
        self.clock = clock
        self.on_handshake_failed: Callable[[Handshake, str, str], None] | None = None
        self.on_refused: Callable[[str], None] | None = None
        self.on_exhausted: Callable[[str], None] | None = None
        self.on_certificate: Callable[[str, bytes], None] | None = None
        self._endpoint = endpoint
        self._relay: Relay[_Peer] = Relay()
        self._listener: Listener | None = None
        self._look: asyncio.TimerHandle | None = None
        self._ends: set[_Outer] = set()
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
        problem = ""
        if len(self._ends) >= self.limits.connections:
            problem = f"{len(self._ends)} connections of partners are open; {address} is refused"
        elif self.tls and self._unknown[address] >= self.limits.handshakes_per_address:
            problem = (
                f"{self._unknown[address]} connections from {address} have not shown who they are"
            )
        if problem:
            connection.close()
            self.refuse(problem)
            return
        end = _Outer(self, _Peer(address))
        self._ends.add(end)
        self._unknown[address] += 1
        self._relay.start(connection, end)

    def known(self, end: "_Outer") -> Link | None:
        """Returns the way of a connection to gRPC, None where it is refused; who it is is known."""
        peer = end.peer
        site = peer.site
        if site and self._by_site[site] >= self.limits.connections_per_site:
            self.refuse(f"{site} has {self._by_site[site]} connections, as many as a site may have")
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

    def _met(self, peer: _Peer) -> None:
        self._unknown[peer.address] -= 1
        if not self._unknown[peer.address]:
            del self._unknown[peer.address]

    def left(self, end: "_Outer") -> None:
        """Notes that a connection is over."""
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

    def refuse(self, reason: str) -> None:
        """Tells why a connection is closed or not taken."""
        if self.on_refused is not None:
            self.on_refused(reason)

    def handshake_failed(self, handshake: Handshake, problem: str, address: str) -> None:
        """Tells of a handshake that has failed."""
        if self.on_handshake_failed is not None:
            self.on_handshake_failed(handshake, problem, address)

    def certificate_shown(self, site: str, pem: bytes) -> None:
        """Tells of a certificate that TLS has verified."""
        if self.on_certificate is not None and site:
            self.on_certificate(site, pem)

    def _look_again(self) -> None:
        now = self.clock()
        for end in list(self._ends):
            end.look(now)
        self._look = asyncio.get_running_loop().call_later(LOOK_S, self._look_again)


class _Outer(End):
    # The end at a partner: what it reads is decrypted, what it writes encrypted.

    def __init__(self, owner: PartnerPort, peer: _Peer) -> None:
        self._owner = owner
        self.peer = peer
        self.counted = False
        self._begin = owner.clock()
        self._sent = HalfSent()
        self._early = bytearray()
        self._reads = False
        self._over = False
        self._tls: ssl.SSLObject | None = None
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()

    # --- the connection ------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        assert self.transport is not None
        if self._owner.tls is None:
            self._begin_relay()
            return
        self._tls = self._owner.tls.context().wrap_bio(
            self._incoming, self._outgoing, server_side=True
        )

    def connection_lost(self, exc: Exception | None) -> None:
        if self._tls is not None and not self.peer.shown and not self._over:
            self._owner.handshake_failed(
                Handshake.CLOSED, "it hung up in the middle", self.peer.address
            )
        self._over = True
        self._owner.left(self)
        super().connection_lost(exc)

    def abort(self) -> None:
        self._over = True
        if self.transport is not None:
            self.transport.abort()

    def other(self) -> End | None:
        return self.link.inner if self.link is not None else None

    # --- what comes and goes -------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
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
        if self._tls is None:
            super().deliver(data)
            return
        if self._over:
            return
        # A memory BIO takes all.
        self._tls.write(data)
        self._flush()

    def linked(self) -> None:
        self._reads = True
        if self._early:
            early, self._early = bytes(self._early), bytearray()
            self._pass_on(early)
        super().linked()

    def close(self) -> None:
        if self._tls is not None and not self._over and self.peer.shown:
            with suppress(ssl.SSLError):
                self._tls.unwrap()
            self._flush()
        self._over = True
        super().close()

    def _pass_on(self, data: bytes) -> None:
        if not self._reads:
            self._early += data
            return
        self._sent.feed(data, self._owner.clock())
        if self._sent.count > self._owner.limits.requests:
            self._hang_up(f"{self._who} has begun {self._sent.count} requests and finished none")
            return
        other = self.other()
        if other is not None:
            other.deliver(data)

    @property
    def _who(self) -> str:
        return self.peer.site or self.peer.address

    def _decrypt(self) -> None:
        assert self._tls is not None
        parts = []
        try:
            while part := self._tls.read(READ_BYTES):
                parts.append(part)
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLError:
            self._flush()
            self.close()
            return
        self._flush()
        if parts:
            self._pass_on(b"".join(parts))

    def _flush(self) -> None:
        if self._outgoing.pending and self.transport is not None:
            self.transport.write(self._outgoing.read())

    def _begin_relay(self) -> None:
        assert self.transport is not None
        self.transport.pause_reading()
        self.link = self._owner.known(self)
        if self.link is None:
            self._over = True
            self.transport.close()

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
        self._owner.certificate_shown(self.peer.site, pem)
        self._flush()
        self._begin_relay()
        return not self._over

    def _refuse_hand(self, handshake: Handshake, problem: str) -> None:
        # The alert says why. Closed at once, what has not been read yet would reset the connection,
        # and the alert with it.
        assert self.transport is not None
        self._over = True
        self._flush()
        self._owner.handshake_failed(handshake, problem, self.peer.address)
        if self.transport.can_write_eof():
            with suppress(OSError):
                self.transport.write_eof()
        asyncio.get_running_loop().call_later(LINGER_S, self.abort)

    # --- what takes too long -------------------------------------------------------------------

    def look(self, now: float) -> None:
        if self._over:
            return
        limits = self._owner.limits
        if self._tls is not None and not self.peer.shown:
            if now - self._begin > limits.handshake_s:
                problem = f"it has not ended within {limits.handshake_s:g} s"
                self._owner.handshake_failed(Handshake.SLOW, problem, self.peer.address)
                self.abort()
            return
        since = self._sent.since(self._begin)
        if now - since > limits.request_s:
            text = f"{self._who} has begun a request and not finished it within"
            self._hang_up(f"{text} {limits.request_s:g} s")

    def _hang_up(self, reason: str) -> None:
        self._owner.refuse(reason)
        self.abort()


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
