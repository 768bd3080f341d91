"""Clients with a valid certificate, or a login, that ask for all and read nothing: others notice nothing of it."""

import asyncio
import os
import ssl
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any

import pytest
from grpc import aio
from structlog.testing import capture_logs

from grms.daemon.ports import free_port
from grms.security.tls import TlsFiles, channel_credentials, channel_options
from grms.site.gateway.admission import Admission
from grms.util.names import tls_name
from grms.v1 import job_pb2, operator_pb2, partner_pb2, partner_pb2_grpc
from tests.grms.keys import new_federation
from tests.grms.site.daemons import Running, document, running
from tests.grms.site.gateway.raw_http2 import PREFACE, call, settings
from tests.waiting import run, until

ANSWERED_S = 20.0
"""Others have their answers in so many seconds, on a machine where much else is done."""

PIECE_BYTES = 1 << 16
"""So much is written at a time."""

CALLS = 200
"""Calls of each connection, of a site that answers 400 at a time."""


def attacked(folder: Path, *others: str, **limits: Any) -> dict[str, Any]:
    """Returns a site that answers few calls at a time, with partners by their certificates."""
    federation = new_federation(folder)
    files = {name: federation.site(name) for name in ("home", *others)}
    tls = {key: str(getattr(files["home"], key)) for key in ("authority", "certificate", "key")}
    return document(
        folder,
        partners={name: free_port() for name in others},
        port=free_port(),
        tls=tls,
        limits={"calls": 400, **limits},
        mqtt={"enabled": False},
    )


def files_of(folder: Path, name: str) -> TlsFiles:
    """Returns the keys of a partner."""
    return TlsFiles(folder / "ca.crt", folder / f"{name}.crt", folder / f"{name}.key")


def secure(folder: Path, name: str) -> ssl.SSLContext:
    """Returns what a partner connects with."""
    files = files_of(folder, name)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(files.authority)
    context.load_cert_chain(files.certificate, files.key)
    context.set_alpn_protocols(["h2"])
    return context


class Attacker:
    """Connections that ask and read nothing.

    Attributes:
        over: how many of them the site has ended.
    """

    def __init__(self) -> None:
        self.over = 0
        self._tasks: list[asyncio.Task[None]] = []

    async def connect(self, stack: AsyncExitStack, said: bytes, **where: Any) -> None:
        """Connects, and says it all, as quickly as it is taken: what is not yet sent is in no buffer of its own."""
        if "path" in where:
            reader, writer = await asyncio.open_unix_connection(**where)
        else:
            reader, writer = await asyncio.open_connection(**where)
        stack.callback(writer.close)
        for work in (self._say(writer, said), self._follow(reader)):
            task = asyncio.create_task(work, name="attacker")
            self._tasks.append(task)
            stack.callback(task.cancel)

    @staticmethod
    async def _say(writer: asyncio.StreamWriter, said: bytes) -> None:
        with suppress(OSError):
            for begin in range(0, len(said), PIECE_BYTES):
                writer.write(said[begin : begin + PIECE_BYTES])
                await writer.drain()

    async def _follow(self, reader: asyncio.StreamReader) -> None:
        # What is not an answer, such as settings, is read: there is none as long as there is no window.
        try:
            while await reader.read(1 << 16):
                pass
        except OSError:
            pass
        self.over += 1


def many(method: str, message: bytes, calls: int = CALLS) -> bytes:
    """Returns many calls whose answers are not taken."""
    asked = b"".join(call(1 + 2 * number, method, message) for number in range(calls))
    return PREFACE + settings(initial=0) + asked


async def offered(site: Running, folder: Path, configuration: dict[str, Any], name: str) -> None:
    """Offers a job as a partner, and has an answer."""
    site.reach(name)
    credentials = channel_credentials(files_of(folder, name))
    address, options = configuration["listen"]["partners"], list(channel_options("home"))
    async with aio.secure_channel(address, credentials, options=options) as channel:
        request = partner_pb2.OfferRequest(site=name)
        request.offer.epoch = request.offer.number = 1
        request.job.processors = 1
        request.job.requested_time_s = request.job.simulated.run_time_s = 5.0
        stub: Any = partner_pb2_grpc.PartnerServiceStub(channel)
        answer = await stub.Offer(request, timeout=ANSWERED_S)
        assert answer.answer == partner_pb2.ANSWER_ACCEPTED


async def shown(site: Running) -> None:
    """Asks for the status as an operator does."""
    await site.operator.Status(operator_pb2.StatusRequest(), timeout=ANSWERED_S)


def resident_bytes() -> int:
    """Returns how much memory this process has now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


async def test_one_certificate_does_not_silence_a_site(tmp_path: Path) -> None:
    """Another partner's offer and an operator are answered meanwhile; the attacker's connections are ended, and told of."""
    configuration = attacked(tmp_path, "eve", "away", request_timeout_s=5.0)
    host, port = configuration["listen"]["partners"].split(":")
    with capture_logs() as logs:
        describe = partner_pb2.DescribeRequest(site="eve", processors=1, protocol_version=1)
        said = many("/grms.v1.PartnerService/Describe", describe.SerializeToString())
        async with running(configuration, tmp_path) as site, AsyncExitStack() as stack:
            attacker = Attacker()
            context = secure(tmp_path, "eve")
            for _ in range(10):
                where = {"host": host, "port": port, "ssl": context}
                await attacker.connect(stack, said, **where, server_hostname=tls_name("home"))
            await offered(site, tmp_path, configuration, "away")
            await shown(site)
            await until(lambda: attacker.over == 10)
    told = [each for each in logs if each["event"] == "connection_refused"]
    assert any("eve has" in each["reason"] and "calls open" in each["reason"] for each in told)
    assert any("eve has not read" in each["reason"] for each in told)
    assert len(told) < 10


def test_a_user_who_reads_nothing_does_not_keep_operators_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor other users; all connections of one user share what he may have open."""
    configuration = attacked(tmp_path, "away", request_timeout_s=5.0)
    attacks = True
    monkeypatch.setattr(Admission, "is_operator", lambda *_: not attacks)

    async def scene() -> None:
        nonlocal attacks
        message = job_pb2.ListRequest().SerializeToString()
        said = many("/grms.v1.JobService/List", message)
        async with running(configuration, tmp_path) as site, AsyncExitStack() as stack:
            attacker = Attacker()
            for _ in range(11):
                path = configuration["listen"]["users"]
                await attacker.connect(stack, said, path=path)
            attacks = False
            await shown(site)
            await offered(site, tmp_path, configuration, "away")
            await until(lambda: attacker.over == 11)

    run(scene)


async def test_large_requests_that_are_not_read_take_no_memory_without_end(tmp_path: Path) -> None:
    """Five hundred megabytes are sent and not taken; other partners are answered."""
    configuration = attacked(
        tmp_path, "eve", "away", calls=2000, message_bytes=1 << 20, request_timeout_s=5.0
    )
    host, port = configuration["listen"]["partners"].split(":")
    describe = partner_pb2.DescribeRequest(site="eve", processors=1, protocol_version=1)
    # A field that nobody knows: it is kept, and passed over.
    large = describe.SerializeToString() + b"\xfa\x01" + b"\x80\x80\x3e" + b"x" * 1_015_808
    said = many("/grms.v1.PartnerService/Describe", large, calls=50)
    async with running(configuration, tmp_path) as site, AsyncExitStack() as stack:
        attacker, before = Attacker(), resident_bytes()
        context, most = secure(tmp_path, "eve"), 0

        async def look() -> None:
            nonlocal most
            while True:
                most = max(most, resident_bytes() - before)
                await asyncio.sleep(0.01)

        looking = asyncio.create_task(look())
        for _ in range(10):
            where = {"host": host, "port": port, "ssl": context}
            await attacker.connect(stack, said, **where, server_hostname=tls_name("home"))
        await offered(site, tmp_path, configuration, "away")
        await shown(site)
        await until(lambda: attacker.over == 10)
        looking.cancel()
        assert most < 200 << 20


async def test_questions_whose_answers_are_not_read_hold_up_those_of_nobody_else(
    tmp_path: Path,
) -> None:
    """As many as one caller may have, over three connections: another partner's questions are answered at once."""
    configuration = attacked(tmp_path, "eve", "away", request_timeout_s=5.0)
    host, port = configuration["listen"]["partners"].split(":")
    asked = partner_pb2.ResolveRequest(site="eve")
    asked.offer.epoch = asked.offer.number = 1
    # Together they stay below what one caller may have open.
    said = many("/grms.v1.PartnerService/Resolve", asked.SerializeToString(), calls=CALLS // 3)
    async with running(configuration, tmp_path) as site, AsyncExitStack() as stack:
        attacker, context = Attacker(), secure(tmp_path, "eve")
        for _ in range(3):
            where = {"host": host, "port": port, "ssl": context}
            await attacker.connect(stack, said, **where, server_hostname=tls_name("home"))
        credentials = channel_credentials(files_of(tmp_path, "away"))
        options = list(channel_options("home"))
        channel = aio.secure_channel(f"{host}:{port}", credentials, options=options)
        async with channel:
            stub: Any = partner_pb2_grpc.PartnerServiceStub(channel)
            request = partner_pb2.ResolveRequest(site="away")
            request.offer.epoch = request.offer.number = 1
            while attacker.over < 3:
                status = await stub.Resolve(request, timeout=ANSWERED_S)
                assert status.state == partner_pb2.OFFER_STATE_UNKNOWN
        await shown(site)


@pytest.mark.parametrize(("count", "calls", "each"), [(1, 80, 200), (12, 600, 60)])
async def test_partners_that_have_much_to_ask_are_no_attackers(
    tmp_path: Path, count: int, calls: int, each: int
) -> None:
    """Questions that are more than one caller, or all of them, may have open wait for each other, and are answered."""
    names = [f"away{number}" for number in range(count)]
    configuration = attacked(tmp_path, *names, calls=calls)
    address, options = configuration["listen"]["partners"], list(channel_options("home"))
    async with running(configuration, tmp_path) as site, AsyncExitStack() as stack:
        stubs: dict[str, Any] = {}
        for name in names:
            site.reach(name)
            credentials = channel_credentials(files_of(tmp_path, name))
            channel = aio.secure_channel(address, credentials, options=options)
            await stack.enter_async_context(channel)
            await channel.channel_ready()
            stubs[name] = partner_pb2_grpc.PartnerServiceStub(channel)
        asked = []
        for name in names * each:
            request = partner_pb2.ResolveRequest(site=name)
            request.offer.epoch = request.offer.number = 1
            asked.append(stubs[name].Resolve(request, timeout=300))
        states = {status.state for status in await asyncio.gather(*asked)}
        assert states == {partner_pb2.OFFER_STATE_UNKNOWN}
