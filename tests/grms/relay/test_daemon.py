"""A relay: who may come and meet whom, and what it makes of others."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import pytest
import structlog
from grpc import aio
from structlog.testing import capture_logs

from grms.daemon.ports import free_port
from grms.daemon.tunnel.dialing import Outside
from grms.daemon.tunnel.stream import CALL, GO, NO, OK, WAIT, Stream, TunnelError
from grms.relay.config import load_relay
from grms.relay.daemon import RelayDaemon
from grms.security.tls import CertificateTrust, TlsFiles, channel_credentials, channel_options
from grms.util.names import Endpoint
from lrms_sim.util.files import to_toml
from tests.grms.keys import Federation, new_federation
from tests.waiting import until


@dataclass
class Meeting:
    """A relay that serves, and its sites."""

    relay: RelayDaemon
    federation: Federation
    path: Path
    written: dict[str, Any]
    endpoint: Endpoint
    sites: dict[str, TlsFiles] = field(default_factory=dict)

    def write(self, **changed: Any) -> None:
        """Writes its file."""
        self.written |= changed
        self.path.write_text(to_toml(self.written))

    def files(self, site: str) -> TlsFiles:
        """Returns the keys of a site."""
        if site not in self.sites:
            self.sites[site] = self.federation.site(site)
        return self.sites[site]

    async def tunnel(self, site: str) -> Stream:
        """Returns a tunnel of a site."""
        return await Outside().tunnel(self.endpoint, "meet", CertificateTrust(self.files(site)))

    async def waits(self, site: str) -> Stream:
        """Returns one that waits."""
        stream = await self.tunnel(site)
        await stream.ask(WAIT, wanted=OK, timeout_s=60.0)
        return stream


@asynccontextmanager
async def meeting(folder: Path, **more: Any) -> AsyncIterator[Meeting]:
    """Yields a relay at which north and south may meet, and north and east."""
    federation, port = new_federation(folder), free_port()
    files = federation.site("meet")
    names = ("authority", "certificate", "key")
    written: dict[str, Any] = {
        "name": "meet",
        "listen": f"127.0.0.1:{port}",
        "meet": [["north", "south"], ["north", "east"]],
        "tls": {name: str(getattr(files, name)) for name in names},
        **more,
    }
    path = folder / "relay.toml"
    path.write_text(to_toml(written))
    relay = RelayDaemon(load_relay(path), path, structlog.get_logger())
    task = asyncio.create_task(relay.run())
    ready = asyncio.create_task(relay.ready.wait())
    await asyncio.wait([task, ready], return_when=asyncio.FIRST_COMPLETED)
    try:
        yield Meeting(relay, federation, path, written, Endpoint("127.0.0.1", port))
    finally:
        ready.cancel()
        relay.stop()
        await task


async def test_those_that_may_meet_do(tmp_path: Path) -> None:
    """And no others, as the log says; what was carried is logged, and nothing else of it."""
    with capture_logs() as log:
        async with meeting(tmp_path) as here:
            north = await here.waits("north")
            for site, words in (
                ("south", (CALL, "east")),
                ("stranger", (CALL, "north")),
                ("stranger", (WAIT,)),
            ):
                stream = await here.tunnel(site)
                stream.say(*words)
                word, reason = await stream.line(60.0)
                assert word == NO
                assert reason.startswith(site)
                stream.abort()
            south = await here.tunnel("south")
            south.say(CALL, "north")
            assert await north.line(60.0) == (GO, "south")
            north.say(GO)
            assert await south.line(60.0) == (GO, "")
            south.writer.write(b"x" * 100_000)
            assert await north.reader.readexactly(100_000) == b"x" * 100_000
            south.close()
            assert await north.reader.read() == b""
            north.close()
            await until(lambda: any(one["event"] == "carried" for one in log))
        refused = [one["reason"] for one in log if one["event"] == "connection_refused"]
        assert refused == ["south may not call east here", "stranger may not call north here"]
        (told,) = [one for one in log if one["event"] == "carried"]
        assert told == {
            "event": "carried",
            "log_level": "info",
            "caller": "south",
            "to": "north",
            "calls": 1,
            "bytes_there": 100_000,
            "bytes_back": 0,
        }


async def test_calls_are_not_served(tmp_path: Path) -> None:
    """Whoever takes a relay for a site is let go, and no tunnel comes about to a site that takes none."""
    with capture_logs() as log:
        async with meeting(tmp_path) as here:
            files = here.files("north")
            channel = aio.secure_channel(
                str(here.endpoint), channel_credentials(files), channel_options("meet")
            )
            async with channel:
                call: Any = channel.unary_unary("/grms.v1.PartnerService/Describe")
                with pytest.raises(aio.AioRpcError) as raised:
                    await call(b"", timeout=60.0)
            assert raised.value.code() is grpc.StatusCode.UNAVAILABLE
            here.relay.port.tunnels = None
            stream = await here.tunnel("north")
            stream.say(WAIT)
            with pytest.raises(TunnelError):
                await stream.line(60.0)
            stream.abort()
    refused = [one["reason"] for one in log if one["event"] == "connection_refused"]
    assert refused[0] == "north is refused: no calls are taken here"


async def test_who_is_taken_off_is_let_go_at_a_reload(tmp_path: Path) -> None:
    """A file that is wrong changes nothing; keys that take a restart are named."""
    with capture_logs() as log:
        async with meeting(tmp_path) as here:
            north, south = await here.waits("north"), await here.waits("south")
            here.write(meet=[["north"]])
            here.relay.reload()
            here.write(meet=[["north", "east"]], listen="127.0.0.1:1")
            here.relay.reload()
            assert await south.reader.read() == b""
            assert here.relay.hub.waiting("north") == 1
            with pytest.raises(TunnelError, match="south is not among those that meet here"):
                await here.waits("south")
            for end in (north, south):
                end.close()
    told = [one for one in log if one["event"] in {"not_reloaded", "reloaded"}]
    assert "meet[0]" in told[0]["problem"]
    assert (told[1]["sites"], told[1]["restart_needed"]) == (2, ["listen"])


async def test_a_call_ends_when_its_sites_may_not_meet_any_more(tmp_path: Path) -> None:
    """Though both may meet others still, as the reload of the file says; other calls go on."""
    with capture_logs() as log:
        async with meeting(tmp_path) as here:
            north, ends = [await here.waits("north") for _ in range(2)], []
            for caller in ("south", "east"):
                end = await here.tunnel(caller)
                end.say(CALL, "north")
                taken = north.pop()  # the newest
                assert await taken.line(60.0) == (GO, caller)
                taken.say(GO)
                assert await end.line(60.0) == (GO, "")
                ends.append((end, taken))
            here.write(meet=[["south", "east"], ["north", "east"]])
            here.relay.reload()
            (south, called), (east, other) = ends
            assert await called.reader.read() == b""
            assert await south.reader.read() == b""
            east.writer.write(b"still there")
            assert await other.reader.readexactly(11) == b"still there"
            for pair in ends:
                for end in pair:
                    end.close()
    carried = [one["caller"] for one in log if one["event"] == "carried"]
    assert carried[0] == "south"


async def test_what_takes_a_restart_is_told_until_there_is_one(tmp_path: Path) -> None:
    """Other files of keys take one too; the content of those that there are is read anew."""
    with capture_logs() as log:
        async with meeting(tmp_path) as here:
            tls = here.written["tls"]
            here.write(listen="127.0.0.1:1", tls=tls | {"certificate": tls["authority"]})
            for _ in range(2):
                here.relay.reload()
    told = [one["restart_needed"] for one in log if one["event"] == "reloaded"]
    assert told == [["listen", "tls"]] * 2


async def test_an_address_that_is_taken_is_named(tmp_path: Path) -> None:
    """So that its operator knows which one of a machine's it was."""
    with capture_logs():
        async with meeting(tmp_path) as here:
            second = RelayDaemon(load_relay(here.path), here.path, structlog.get_logger())
            with pytest.raises(OSError, match=rf"cannot listen on {here.endpoint}: .* in use"):
                await second.run()


async def test_no_site_can_fill_it(tmp_path: Path) -> None:
    """One has so many connections at most, and others come in all the same."""

    async def filled(log: list[Any]) -> None:
        async with meeting(tmp_path, limits={"connections_per_site": 3}) as here:
            ends = [await here.waits("north") for _ in range(3)]
            stream = await here.tunnel("north")
            stream.say(WAIT)
            with pytest.raises(TunnelError):
                await stream.line(60.0)
            ends += [stream, await here.waits("south")]
            for end in ends:
                end.abort()
        (told,) = [one["reason"] for one in log if one["event"] == "connection_refused"]
        assert told == "north has 3 connections, as many as a site may have"

    with capture_logs() as log:
        await filled(log)
