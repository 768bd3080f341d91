"""Handshakes that fail: why, at the side that is refused."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from grms.security.handshakes import certificates_end, why_refused
from grms.security.tls import ServerTls, TlsFiles
from grms.site.gateway.peer_listener import PartnerPort, PortLimits
from grms.util.names import Endpoint
from tests.grms.keys import Federation, new_federation


@pytest.fixture
def federation(tmp_path: Path) -> Federation:
    """Returns an authority with the keys of KTH, which the tests call."""
    return new_federation(tmp_path, now=datetime.now(UTC) - timedelta(days=200))


@asynccontextmanager
async def listening(files: TlsFiles | None) -> AsyncIterator[Endpoint]:
    """Yields where KTH listens."""
    tls = None if files is None else ServerTls(files)
    async with PartnerPort(Endpoint("127.0.0.1", 0), tls, PortLimits()) as port:
        yield Endpoint("127.0.0.1", port.address[1])


async def asked(endpoint: Endpoint, files: TlsFiles, partner: str = "KTH") -> str:
    """Returns why a site is refused."""
    return await asyncio.to_thread(why_refused, endpoint, files, partner, 2.0)


async def test_who_is_refused_reads_why(federation: Federation, tmp_path: Path) -> None:
    """An unknown authority, an ended certificate and another site's name, each in words."""
    (tmp_path / "other").mkdir()
    stranger = new_federation(tmp_path / "other").site("CTC")
    wrong = TlsFiles(federation.ca, stranger.certificate, stranger.key)
    long_ago = datetime.now(UTC) - timedelta(days=100)
    async with listening(federation.site("KTH")) as endpoint:
        assert "its authority is not known there" in await asked(endpoint, wrong)
        ended = federation.site("SDSC", now=long_ago)
        assert "it has expired" in await asked(endpoint, ended)
        early = federation.site("LUND", now=datetime.now(UTC) + timedelta(days=1))
        assert "not valid yet by the clock there" in await asked(endpoint, early)
        mine = federation.site("CTC")
        text = await asked(endpoint, mine, "LANL")
        assert text == "who answers there has a certificate, but not that of LANL"
        unknown = TlsFiles(stranger.authority, mine.certificate, mine.key)
        assert "unknown authority" in await asked(endpoint, unknown)


async def test_what_is_no_matter_of_tls_has_no_reason(federation: Federation) -> None:
    """Nobody there is told by who tries to connect; a server without TLS does not answer so."""
    mine = federation.site("CTC")
    assert await asked(Endpoint("127.0.0.1", 1), mine) == ""
    lost = TlsFiles(mine.authority, mine.certificate, mine.key.with_name("none"))
    assert "the own certificate cannot be used" in await asked(Endpoint("127.0.0.1", 1), lost)

    async def plain(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(plain, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        text = await asked(Endpoint("127.0.0.1", port), mine)
        assert "does not speak TLS 1.2 or newer" in text


async def test_a_connection_may_stand_until_the_first_of_its_certificates_ends(
    federation: Federation,
) -> None:
    """The partner's or the own one; of who cannot be reached nobody can say it."""
    begin = datetime.now(UTC)
    for own, theirs in ((30, 20), (20, 30)):
        for path in federation.folder.glob("[CK]T*"):
            path.unlink()
        mine, kth = federation.site("CTC", days=own), federation.site("KTH", days=theirs)
        async with listening(kth) as endpoint:
            end = await asyncio.to_thread(certificates_end, endpoint, mine, "KTH", 2.0)
        assert abs(end - (begin + timedelta(days=20)).timestamp()) < 3600.0
    ended = federation.site("SDSC", now=begin - timedelta(days=100))
    async with listening(ended) as endpoint:
        with pytest.raises(OSError, match="expired"):
            await asyncio.to_thread(certificates_end, endpoint, mine, "SDSC", 2.0)
