"""Connections to the outside: straight and through a proxy, IPv4 and IPv6, and who is at the other end."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import Encoding

from grms.daemon.ports import free_port
from grms.daemon.tunnel.dialing import Outside
from grms.daemon.tunnel.stream import TunnelError
from grms.security.files import read_certificates
from grms.security.tls import CertificateTrust, ServerTls, TlsFiles, fingerprint
from grms.util.names import Endpoint
from tests.grms.daemon.tunnel.ends import listening, proxy
from tests.grms.keys import Federation, new_federation


@pytest.fixture
def federation(tmp_path: Path) -> Federation:
    """Returns an authority."""
    return new_federation(tmp_path, now=datetime.now(UTC) - timedelta(days=200))


@asynccontextmanager
async def echo(host: str = "127.0.0.1", **tls: Any) -> AsyncIterator[Endpoint]:
    """Yields where one listens who says everything again."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(100):
            writer.write(data)

    async with listening(serve, host, **tls) as port:
        yield Endpoint(host, port)


async def _hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read(1)
    writer.transport.abort()


def has_ipv6() -> bool:
    """Returns whether this machine has the loopback address of IPv6."""
    try:
        with socket.socket(socket.AF_INET6) as one:
            one.bind(("::1", 0))
    except OSError:
        return False
    return True


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
@pytest.mark.parametrize("proxied", [False, True])
async def test_what_listens_is_connected_to(host: str, proxied: bool) -> None:
    """By either family, straight or through the proxy, which is asked in its own words."""
    if host == "::1" and not has_ipv6():
        pytest.skip("this machine has no IPv6")
    async with echo(host) as there, proxy() as between:
        via = Endpoint("127.0.0.1", between.port) if proxied else None
        stream = await Outside(via).connect(there)
        stream.say("hello")
        assert await stream.line(60.0) == ("hello", "")
        stream.close()
        assert between.asked == ([f"CONNECT {there} HTTP/1.1"] if proxied else [])


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n", "407 Proxy Auth"),
        (b"220 mail.example ESMTP\r\n\r\n", "it answers '220 mail"),
        (b"HTTP/1.1 200 OK\r\n\r\nmore", "does not end as HTTP has it"),
        (b"\xff\xfe", "it answers"),
        (b"x" * 20_000, "it answers 'xxx"),
    ],
)
async def test_a_proxy_that_does_not_want_is_told_of(answer: bytes, words: str) -> None:
    """In its own words."""
    async with proxy() as between:
        between.answer = answer
        via = Endpoint("127.0.0.1", between.port)
        with pytest.raises(TunnelError, match=f"through the proxy {via}") as raised:
            await Outside(via).connect(Endpoint("south.example", 7001))
        assert words in str(raised.value)


async def test_where_nobody_listens_or_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is said what was tried; names that lead nowhere too, and a proxy that is not there."""
    nowhere = Endpoint("127.0.0.1", free_port())
    for outside in (Outside(), Outside(nowhere)):
        with pytest.raises(TunnelError, match=f"not connected to {nowhere}"):
            await outside.connect(nowhere)

    async def silent(*_: object, **__: object) -> None:
        await asyncio.sleep(3600.0)

    monkeypatch.setattr(asyncio, "open_connection", silent)
    with pytest.raises(TunnelError, match=r"has not answered within 0\.01 s"):
        await Outside(timeout_s=0.01).connect(nowhere)


async def test_a_tunnel_ends_at_the_one_of_that_name(
    federation: Federation, tmp_path: Path
) -> None:
    """Not at another site, one whose version knows no tunnels, one of another authority, or one that is refused."""
    (tmp_path / "other").mkdir()
    stranger = new_federation(tmp_path / "other").site("south")
    south, north = federation.site("south"), federation.site("north")
    trust = CertificateTrust(north)
    number = fingerprint(read_certificates(south.certificate)[0].public_bytes(Encoding.DER))

    def older(files: TlsFiles) -> ssl.SSLContext:
        context = ServerTls(files).context()
        context.set_alpn_protocols(["h2"])
        return context

    async with echo(ssl=ServerTls(south).context()) as there, proxy() as between:
        for via in (None, Endpoint("127.0.0.1", between.port)):
            stream = await Outside(via).tunnel(there, "south", trust)
            stream.say("hello")
            assert await stream.line(60.0) == ("hello", "")
            stream.abort()
        with pytest.raises(TunnelError, match="Hostname mismatch"):
            await Outside().tunnel(there, "east", trust)
        trust.refused = frozenset({number})
        with pytest.raises(TunnelError, match=r"of south is not believed: .* tls\.refused"):
            await Outside().tunnel(there, "south", trust)
        trust.refused = frozenset()
    async with echo(ssl=older(south)) as there:
        with pytest.raises(TunnelError, match="south knows no tunnels; is its version older"):
            await Outside().tunnel(there, "south", trust)
    async with echo(ssl=ServerTls(stranger).context()) as there:
        with pytest.raises(TunnelError, match=r"TLS with 127\.0\.0\.1"):
            await Outside().tunnel(there, "south", trust)
    async with listening(_hang_up) as port:
        with pytest.raises(TunnelError, match=f"not connected to .*:{port}: it has hung up"):
            await Outside().tunnel(Endpoint("127.0.0.1", port), "south", trust)
    north.key.unlink()
    with pytest.raises(TunnelError, match="the own certificate cannot be used"):
        await Outside().tunnel(there, "south", trust)
