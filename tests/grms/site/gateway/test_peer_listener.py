"""The port of partners: who fails at it is told and counted, and nobody can fill it."""

import asyncio
import socket
import ssl
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc import aio
from structlog.testing import capture_logs

from grms.daemon.ports import free_port
from grms.security.handshakes import Handshake
from grms.security.tls import (
    CertificateTrust,
    ServerTls,
    TlsFiles,
    channel_credentials,
    channel_options,
    fingerprint,
)
from grms.site.gateway.peer_listener import PartnerPort, PortLimits
from grms.util.names import Endpoint, tls_name
from tests.grms.keys import Federation, new_federation
from tests.grms.site.daemons import document, metrics, running
from tests.grms.site.greetings import PREFACE, greeted
from tests.waiting import run, until

BEGUN = bytes([0, 0, 1, 1, 4, 0, 0, 0, 1]) + b"\x82"
"""The headers of a request whose body never comes."""


@dataclass
class Front:
    """A port with a server that says who calls, and what was told of it."""

    port: PartnerPort
    failed: list[tuple[Handshake, str, str]] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)

    @property
    def number(self) -> int:
        """Where it listens."""
        return self.port.address[1]


@asynccontextmanager
async def front(
    files: TlsFiles | None,
    limits: PortLimits | None = None,
    clock: Callable[[], float] | None = None,
    **more: Any,
) -> AsyncIterator[Front]:
    """Yields the port of KTH."""
    tls = None if files is None else ServerTls(files)
    more |= {} if clock is None else {"clock": clock}
    port = PartnerPort(Endpoint("127.0.0.1", 0), tls, limits or PortLimits(), **more)
    found = Front(port)
    port.on_handshake_failed = lambda *told: found.failed.append(told)
    port.on_refused = lambda reason, limit: found.refused.append(f"{limit}: {reason}")

    async def who(_: bytes, context: aio.ServicerContext[bytes, bytes]) -> bytes:
        return b"".join(port.shown(context.peer()).get("x509_pem_cert", [b"nothing"]))

    server = aio.server()
    handler: Any = grpc.unary_unary_rpc_method_handler(who)
    server.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler("t.T", {"Who": handler}),)
    )
    server.add_insecure_port(port.inner_address)
    await server.start()
    try:
        async with port:
            yield found
    finally:
        await server.stop(None)


@pytest.fixture
def federation(tmp_path: Path) -> Federation:
    """Returns an authority."""
    return new_federation(tmp_path, now=datetime.now(UTC) - timedelta(days=200))


def client(files: TlsFiles | None, authority: Path) -> ssl.SSLContext:
    """Returns what a client shakes hands with; without a certificate where there are no files."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(authority)
    if files is not None:
        context.load_cert_chain(files.certificate, files.key)
    return context


async def shaken(
    number: int, context: ssl.SSLContext
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Returns a connection to the port of KTH."""
    return await asyncio.open_connection(
        "127.0.0.1", number, ssl=context, server_hostname=tls_name("KTH")
    )


async def test_a_partner_is_who_its_certificate_says(
    federation: Federation, tmp_path: Path
) -> None:
    """A service gets the certificate that was verified, with a request longer than a record."""
    kth, ctc = federation.site("KTH"), federation.site("CTC")
    async with front(kth) as found:
        channel = aio.secure_channel(
            f"127.0.0.1:{found.number}", channel_credentials(ctc), channel_options("KTH")
        )
        async with channel:
            call: Any = channel.unary_unary("/t.T/Who")
            answer = await call(b"x" * 3_000_000, timeout=300)
            assert answer == (tmp_path / "CTC.crt").read_bytes()
        await until(lambda: not found.port.connections)
        assert not found.failed
        assert not found.refused


async def test_a_handshake_that_fails_is_told_with_its_reason(
    federation: Federation, tmp_path: Path
) -> None:
    """No certificate, another authority, an ended one, plain text, one that hangs up."""
    (tmp_path / "other").mkdir()
    stranger = new_federation(tmp_path / "other").site("CTC")
    ended = federation.site("SDSC", now=datetime.now(UTC) - timedelta(days=100))
    async with front(federation.site("KTH")) as found:

        async def attempt(files: TlsFiles | None) -> None:
            reader, writer = await shaken(found.number, client(files, federation.ca))
            with pytest.raises(ssl.SSLError, match=r"(?i)alert"):
                await reader.read(1)
            writer.close()

        for files, reason, words in (
            (None, Handshake.NO_CERTIFICATE, "shows no certificate"),
            (stranger, Handshake.UNKNOWN_AUTHORITY, "of an unknown authority"),
            (ended, Handshake.EXPIRED, "its certificate is expired"),
        ):
            await attempt(files)
            await until(lambda: bool(found.failed))
            (told,) = found.failed
            assert told[0] is reason
            assert words in told[1]
            assert told[2] == "127.0.0.1"
            found.failed.clear()
        for said, reason in (
            (b"GET / HTTP/1.1\r\n\r\n", Handshake.NOT_TLS),
            (b"\x16\x03", Handshake.CLOSED),
        ):
            _, writer = await asyncio.open_connection("127.0.0.1", found.number)
            writer.write(said)
            await writer.drain()
            writer.close()
            await until(lambda: bool(found.failed))
            assert [told[0] for told in found.failed] == [reason]
            found.failed.clear()
        # Who is refused may read why; then nothing of the connection stays.
        await until(lambda: not found.port.connections)


async def test_who_refuses_our_certificate_is_told(federation: Federation, tmp_path: Path) -> None:
    """The port sees the alert of a client that does not know its authority."""
    (tmp_path / "other").mkdir()
    stranger = new_federation(tmp_path / "other")
    async with front(federation.site("KTH")) as found:
        with pytest.raises(ssl.SSLCertVerificationError):
            await shaken(found.number, client(federation.site("CTC"), stranger.ca))
        await until(lambda: bool(found.failed))
        assert found.failed[0][0] in {Handshake.REFUSED, Handshake.CLOSED}


async def test_nobody_can_fill_the_port(federation: Federation) -> None:
    """Neither one address with what is no partner, nor one partner, nor all of them together."""
    limits = PortLimits(connections=6, connections_per_site=2, handshakes_per_address=3)
    ctc = client(federation.site("CTC"), federation.ca)
    lanl = client(federation.site("LANL"), federation.ca)
    async with front(federation.site("KTH"), limits) as found, AsyncExitStack() as stack:

        async def keep(ends: Any) -> asyncio.StreamReader:
            reader, writer = await ends
            stack.callback(writer.close)
            return reader  # type: ignore[no-any-return]  # as `open_connection` has it

        for _ in range(2):
            await keep(shaken(found.number, ctc))
        await until(lambda: found.port._by_site["CTC"] == 2)
        third = await keep(shaken(found.number, ctc))
        assert await third.read() == b""
        assert "connections_per_site: CTC has 2 connections" in found.refused.pop()
        for _ in range(3):
            await keep(asyncio.open_connection("127.0.0.1", found.number))
        await until(lambda: found.port.connections == 5)
        fourth = await keep(asyncio.open_connection("127.0.0.1", found.number))
        assert await fourth.read() == b""
        assert ": 3 connections from 127.0.0.1 have not shown" in found.refused.pop()
        found.port.limits = PortLimits(connections=5)
        with pytest.raises(OSError):  # noqa: PT011  # reset, or closed in the handshake
            await shaken(found.number, lanl)
        assert "partner_connections: 5 connections of partners are open" in found.refused.pop()


def test_what_is_half_sent_is_cut_off(federation: Federation) -> None:
    """A handshake, a silence and a request that do not end in time; what is whole lives on."""
    now = 0.0
    ctc = client(federation.site("CTC"), federation.ca)
    limits = PortLimits(handshake_s=5.0, request_s=20.0, requests=2)

    async def scene() -> None:
        nonlocal now
        files = federation.site("KTH")
        async with front(files, limits, lambda: now) as found, AsyncExitStack() as stack:
            raw, writer = await asyncio.open_connection("127.0.0.1", found.number)
            stack.callback(writer.close)
            silent, writer = await shaken(found.number, ctc)
            stack.callback(writer.close)
            half, writer = await shaken(found.number, ctc)
            stack.callback(writer.close)
            writer.write(PREFACE + BEGUN)
            idle, writer = await shaken(found.number, ctc)
            stack.callback(writer.close)
            writer.write(PREFACE)
            assert await idle.read(1)
            assert await half.read(1)
            now = 6.0
            await raw.read()
            assert found.failed == [(Handshake.SLOW, "it has not ended within 5 s", "127.0.0.1")]
            now = 21.0
            for reader in (silent, half):
                with pytest.raises(OSError):  # noqa: PT011  # it is cut off
                    while await reader.read(1000):
                        pass
                    raise ConnectionResetError
            assert len(found.refused) == 2
            assert (
                "request_timeout_s: CTC has begun a request and not finished it within 20 s"
                in found.refused[0]
            )
            await until(lambda: found.port.connections == 1)
            _, writer = await shaken(found.number, ctc)
            stack.callback(writer.close)
            writer.write(PREFACE + b"".join(BEGUN[:8] + bytes([n]) + BEGUN[9:] for n in (1, 3, 5)))
            await until(lambda: len(found.refused) == 3)
            assert "has begun 3 requests and finished none" in found.refused[2]

    run(scene)


async def test_without_tls_whoever_connects_is_passed_on() -> None:
    """As it is on loopback; nothing has been shown."""
    async with (
        front(None) as found,
        aio.insecure_channel(f"127.0.0.1:{found.number}") as channel,
    ):
        call: Any = channel.unary_unary("/t.T/Who")
        assert await call(b"", timeout=300) == b"nothing"


async def test_nothing_is_lost_that_is_said_at_once() -> None:
    """Without TLS too, each of 200 connections is answered that speaks before it is taken."""
    limits = PortLimits(handshakes_per_address=300)
    async with front(None, limits) as found:
        address = ("127.0.0.1", found.number)
        answers = await asyncio.gather(*(greeted(socket.AF_INET, address) for _ in range(200)))
        assert answers == [True] * 200
        assert found.refused == []


async def test_a_daemon_logs_and_counts_who_fails(tmp_path: Path) -> None:
    """Once for an address and a reason, however often it is tried; each is counted."""
    federation = new_federation(tmp_path)
    kth = federation.site("kth")
    port = free_port()
    tls = {
        "authority": str(kth.authority),
        "certificate": str(kth.certificate),
        "key": str(kth.key),
    }
    configuration = document(tmp_path, "kth", port=port, tls=tls, **metrics())
    with capture_logs() as logs:
        async with running(configuration, tmp_path) as site:
            for _ in range(20):
                _, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(b"GET / HTTP/1.1\r\n\r\n")
                writer.close()
            assert site.core.monitor is not None
            figures = site.core.monitor.metrics.values
            name = 'hanse_handshakes_failed_total{reason="not_tls"}'
            await until(lambda: figures()[name] == 20)
    (entry,) = [entry for entry in logs if entry["event"] == "handshake_failed"]
    assert entry["reason"] == "not_tls"
    assert entry["address"] == "127.0.0.1"
    assert "does not speak TLS" in entry["problem"]


@dataclass
class Wall:
    """A clock that is set.

    Attributes:
        ahead_s: of the real one, seconds.
    """

    ahead_s: float = 0.0

    def __call__(self) -> float:
        """Returns seconds since 1970."""
        return time.time() + self.ahead_s


def refuse_certificate(trust: CertificateTrust, federation: Federation, wall: Wall) -> None:
    """The operator refuses the certificate of PIK."""
    del wall
    shown = (federation.folder / "PIK.crt").read_bytes()
    trust.refused = frozenset({fingerprint(ssl.PEM_cert_to_DER_cert(shown.decode()))})


def change_authority(trust: CertificateTrust, federation: Federation, wall: Wall) -> None:
    """The old authority leaves the file, in which there is another one by now."""
    del trust, wall
    other = new_federation(federation.folder / "other")
    federation.ca.chmod(0o644)
    federation.ca.write_bytes(other.ca.read_bytes())


def add_authority(trust: CertificateTrust, federation: Federation, wall: Wall) -> None:
    """Another authority comes into the file, beside the one that there is."""
    del trust, wall
    other = new_federation(federation.folder / "other")
    federation.ca.chmod(0o644)
    federation.ca.write_bytes(federation.ca.read_bytes() + other.ca.read_bytes())


def let_time_pass(trust: CertificateTrust, federation: Federation, wall: Wall) -> None:
    """The certificate ends."""
    del trust, federation
    wall.ahead_s = 31 * 86_400.0


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (refuse_certificate, "it is among those that tls.refused names"),
        (change_authority, "no authority in tls.authority has signed it"),
        (let_time_pass, "it has expired"),
        (add_authority, ""),
    ],
)
async def test_a_connection_that_stands_ends_with_the_trust_in_it(
    federation: Federation,
    change: Callable[[CertificateTrust, Federation, Wall], None],
    reason: str,
    version: ssl.TLSVersion,
) -> None:
    """Within seconds, told with whom and why; another partner's stands, and a session is not taken up again."""
    (federation.folder / "other").mkdir()
    ours, theirs = federation.site("KTH"), federation.site("PIK")
    wall, now = Wall(), Wall()

    async def taken_up(context: ssl.SSLContext, session: Any, made: Front) -> None:
        # As who has the key would come again, with the session of before.
        def again() -> bytes:
            plain = socket.create_connection(("127.0.0.1", made.number))
            with (
                plain,
                suppress(OSError),
                context.wrap_socket(
                    plain, server_hostname=tls_name("KTH"), session=session
                ) as secure,
            ):
                secure.send(PREFACE)
                return secure.recv(1)
            return b""

        assert await asyncio.to_thread(again) == b""
        await until(lambda: bool(made.failed))

    trust = CertificateTrust(ours)
    async with front(ours, clock=now, trust=trust, now=wall) as made:
        told: list[tuple[str, str, str]] = []
        made.port.on_distrusted = lambda *words: told.append(words)
        context = client(theirs, federation.ca)
        context.maximum_version = version
        reader, writer = await shaken(made.number, context)
        writer.write(PREFACE)
        assert await reader.readexactly(1)
        session = writer.get_extra_info("ssl_object").session
        change(trust, federation, wall)
        if not reason:
            made.port.check({"PIK"})
            assert (told, made.port.connections) == ([], 1)
            writer.close()
            return
        with suppress(ConnectionError):
            while await reader.read(1000):
                pass
        assert told == [("PIK", "127.0.0.1", reason)]
        assert made.port.connections == 0
        writer.close()
        await taken_up(context, session, made)


async def test_who_shakes_hands_while_the_authorities_change_is_checked_by_the_new_ones(
    federation: Federation,
) -> None:
    """TLS still verifies by those that were there as the connection began."""
    (federation.folder / "other").mkdir()
    ours, theirs = federation.site("KTH"), federation.site("PIK")
    trust = CertificateTrust(ours)
    async with front(ours, trust=trust) as made:
        context = client(theirs, federation.ca)
        plain = socket.create_connection(("127.0.0.1", made.number))
        await until(lambda: any(end._tls for end in made.port._ends))
        change_authority(trust, federation, Wall())

        def shake() -> None:
            with plain, suppress(OSError):
                name = tls_name("KTH")
                with context.wrap_socket(plain, server_hostname=name) as secure:
                    secure.recv(1)

        await asyncio.to_thread(shake)
        await until(lambda: not made.port.connections)
        ((handshake, problem, _),) = made.failed
        assert handshake is Handshake.DISTRUSTED
        assert "no authority in tls.authority has signed it" in problem


async def test_who_is_taken_off_the_list_is_let_go_and_may_hear_why(federation: Federation) -> None:
    """The connection that stands ends at once; another one is taken, and every call over it is refused."""
    ours = federation.site("KTH")
    async with front(ours, trust=CertificateTrust(ours)) as made:
        told: list[tuple[str, str, str]] = []
        made.port.on_distrusted = lambda *words: told.append(words)
        for name in ("PIK", "ZIB"):
            files = federation.site(name)
            options = list(channel_options("KTH"))
            address = f"127.0.0.1:{made.number}"
            async with aio.secure_channel(
                address, channel_credentials(files), options=options
            ) as channel:
                call: Any = channel.unary_unary("/t.T/Who")
                await call(b"", timeout=300)
                made.port.check({"PIK"})
                left = ["it is not among the partners of this site any more"]
                assert [reason for *_, reason in told] == (left if name == "ZIB" else [])
                stays = int(name == "PIK")
                await until(lambda stays=stays: made.port.connections == stays)  # type: ignore[misc]  # bound now
                await call(b"", timeout=300, wait_for_ready=True)
            await until(lambda: made.port.connections == 0)
