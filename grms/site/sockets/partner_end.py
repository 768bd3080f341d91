"""A connection of a partner: TLS ends here, and nothing half-sent stays for ever.

gRPC says nothing of a handshake that fails, to nobody: not that there was one, not from where, not
why. So TLS ends in this process, with Python's `ssl` (OpenSSL), and the bytes are passed on
(`relay`). Every handshake that fails has a reason in words and is told; the other side gets OpenSSL's
alert, which says why to whoever reads it (`grms.handshakes`). Requests that are begun and not
finished are limited (`half_sent`).
"""

import asyncio
import ssl
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, Protocol

from grms.handshakes import Handshake, handshake_problem
from grms.site.sockets.half_sent import HalfSent
from grms.site.sockets.relay import End, Link
from grms.site.sockets.shares import CallBudget, CallShares, CallWatch
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
        address: the host it comes from.
        site: as its certificate names it; empty before it has shown one.
        shown: what it has shown.
        authority: the authorities by which TLS verifies that, as `CertificateTrust.authority` has them.
    """

    address: str
    site: str = ""
    shown: Shown = field(default_factory=dict)
    authority: str = ""


class EndOwner(Protocol):
    """The port that a connection belongs to.

    Attributes:
        limits: what is taken at most.
        tls: of this site; None takes whoever connects.
        calls: of all sites.
        clock: tells real seconds.
    """

    limits: PortLimits
    tls: ServerTls | None
    calls: CallBudget
    clock: Callable[[], float]

    def known(self, end: "PartnerEnd") -> Link | None:
        """Returns the way of a connection to gRPC, None where it is refused; who it is is known."""

    def left(self, end: "PartnerEnd") -> None:
        """Notes that a connection is over."""

    def refuse(self, reason: str, limit: str = "") -> None:
        """Tells why a connection is closed or not taken, and by which limit of the configuration."""

    def handshake_failed(self, handshake: Handshake, problem: str, address: str) -> None:
        """Tells of a handshake that has failed."""

    def certificate_shown(self, site: str, pem: bytes) -> None:
        """Tells of a certificate that TLS has verified."""

    def distrusts(self, peer: Peer) -> str:
        """Returns why a peer's certificate is not believed any more; empty where it is."""

    def distrusted(self, peer: Peer, reason: str) -> None:
        """Tells that a connection is ended as its peer is not believed any more."""


class PartnerEnd(End):
    """The end at a partner: what it reads is decrypted, what it writes encrypted.

    Attributes:
        peer: who is there.
        counted: it counts among the connections of its site.

    Args:
        owner: the port.
        peer: who is there, as far as that is known.
    """

    def __init__(self, owner: EndOwner, peer: Peer) -> None:
        self._owner = owner
        self.peer = peer
        self.counted = False
        self._begin = owner.clock()
        self._sent = HalfSent()
        self._calls = CallWatch(owner.calls, "")
        self._early = bytearray()
        self._reads = False
        self._over = False
        self._tls: ssl.SSLObject | None = None
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()

    # --- the connection ------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begins the handshake, or passes on at once where the site has no TLS."""
        super().connection_made(transport)
        assert self.transport is not None
        tls = self._owner.tls
        if tls is None:
            self._begin_relay()
            return
        self._tls = tls.context().wrap_bio(self._incoming, self._outgoing, server_side=True)
        # They may be other ones before the handshake has ended.
        self.peer.authority = tls.authority

    def connection_lost(self, exc: Exception | None) -> None:
        """Tells the port that it is over, and of a handshake that was cut off."""
        if self._tls is not None and not self.peer.shown and not self._over:
            self._owner.handshake_failed(
                Handshake.CLOSED, "it hung up in the middle", self.peer.address
            )
        self._over = True
        self._calls.close()
        self._owner.left(self)
        super().connection_lost(exc)

    def abort(self) -> None:
        """Ends the connection at once; what has not been sent is lost."""
        self._over = True
        if self.transport is not None:
            self.transport.abort()

    def other(self) -> End | None:
        """Returns the end at gRPC; None before it is there."""
        return self.link.inner if self.link is not None else None

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
        """Encrypts what gRPC says, and sends it."""
        self._calls.answered(data, self._owner.clock())
        if self._tls is None:
            self._calls.wrote(len(data))
            super().deliver(data)
            return
        if self._over:
            return
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
            return
        now = self._owner.clock()
        self._sent.feed(data, now)
        count = self._sent.count
        if count > self._owner.limits.requests:
            self._hang_up(f"{self._who} has begun {count} requests and finished none", "calls")
            return
        if problem := self._calls.asked(data, now):
            self._hang_up(f"{self._who} {problem}", "calls")
            return
        other = self.other()
        if other is not None:
            other.deliver(data)
        self._calls.hold(self.transport)

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
            sealed = self._outgoing.read()
            self._calls.wrote(len(sealed))
            self.transport.write(sealed)

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
        # Without TLS all are on this machine, and nobody is told from others.
        self._calls = CallWatch(self._owner.calls, self.peer.site or self.peer.address)
        if problem := self._owner.distrusts(self.peer):
            text = f"the certificate of {self._who} is not believed: {problem}"
            self._refuse_hand(Handshake.DISTRUSTED, text)
            return False
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

    def distrust(self, reason: str) -> None:
        """Ends the connection at once, as who is there is not believed any more.

        Args:
            reason: why, in words about its certificate or its site.
        """
        if not self._over:
            self._owner.distrusted(self.peer, reason)
            self.abort()

    # --- what takes too long -------------------------------------------------------------------

    def look(self, now: float) -> None:
        """Ends what takes too long: a handshake, or a request that is begun and not finished.

        Args:
            now: by the port's clock, seconds.
        """
        if self._over:
            return
        limits = self._owner.limits
        if self._tls is not None and not self.peer.shown:
            if now - self._begin > limits.handshake_s:
                problem = f"it has not ended within {limits.handshake_s:g} s"
                self._owner.handshake_failed(Handshake.SLOW, problem, self.peer.address)
                self.abort()
            return
        if self.peer.shown and (problem := self._owner.distrusts(self.peer)):
            self.distrust(problem)
            return
        since = self._sent.since(self._begin)
        if now - since > limits.request_s:
            text = f"{self._who} has begun a request and not finished it within"
            self._hang_up(f"{text} {limits.request_s:g} s", "request_timeout_s")
            return
        if self.transport is None or self.transport.is_closing():
            return
        waiting = self.transport.get_write_buffer_size()
        if now - self._calls.unread_since(waiting, now) > limits.request_s:
            text = f"{self._who} has not read what it was answered within {limits.request_s:g} s"
            self._hang_up(text, "request_timeout_s")
            return
        self._calls.let_go(self.transport)

    def _hang_up(self, reason: str, limit: str) -> None:
        self._owner.refuse(reason, limit)
        self.abort()
