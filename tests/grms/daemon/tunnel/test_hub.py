"""Where tunnels wait: who may, who takes which, and what becomes of those that are gone."""

import asyncio
import errno
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import pytest

from grms.daemon.tunnel import hub as module
from grms.daemon.tunnel.hub import TunnelHub
from grms.daemon.tunnel.stream import CALL, GO, NO, OK, WAIT, Stream, TunnelError
from tests.waiting import until

NUMBERS = count()


@dataclass
class Meeting:
    """A hub, and what it was told."""

    hub: TunnelHub
    waiting: list[str] = field(default_factory=list)
    ended: list[tuple[str, str, int, int]] = field(default_factory=list)

    async def connect(self, site: str) -> Stream:
        """Returns a connection of a site, which TLS would know by its certificate."""
        end = socket.socket(socket.AF_UNIX)
        end.bind(f"\0{site}-{id(self)}-{next(NUMBERS)}")
        end.setblocking(False)
        await asyncio.get_running_loop().sock_connect(end, str(self.hub.path))
        return Stream(*await asyncio.open_unix_connection(sock=end))

    async def waits(self, site: str) -> Stream:
        """Returns a tunnel of a site that waits."""
        stream = await self.connect(site)
        await stream.ask(WAIT, wanted=OK, timeout_s=60.0)
        return stream


@asynccontextmanager
async def meeting(folder: Path, *, relay: bool = False) -> AsyncIterator[Meeting]:
    """Yields a hub of south's, or a relay of north and south."""

    def caller(source: str) -> str:
        return source.removeprefix("unix-abstract:").partition("-")[0]

    found: Meeting
    hub = TunnelHub(
        folder / "hub",
        caller,
        refuses=lambda site: "" if site in {"north", "south"} else f"{site} is unknown",
        forbids=(lambda one, other: "" if {one, other} == {"north", "south"} else "no")
        if relay
        else None,
        on_waiting=lambda site: found.waiting.append(site),  # noqa: PLW0108  # it is made below
        on_ended=lambda *told: found.ended.append(told),
    )
    found = Meeting(hub)
    await hub.open()
    try:
        yield found
    finally:
        await hub.close()


async def test_a_tunnel_waits_until_it_is_taken(tmp_path: Path) -> None:
    """It says that it is there, and hears the same; then its bytes are its caller's."""
    async with meeting(tmp_path) as here:
        north = await here.waits("north")
        assert (here.waiting, here.hub.waiting("north")) == (["north"], 1)
        north.say()
        assert await north.line(60.0) == ("", "")
        taken = asyncio.create_task(here.hub.take("north", "south"))
        assert await north.line(60.0) == (GO, "south")
        north.say()  # what was on its way
        north.say(GO)
        north.writer.write(b"bytes")
        stream = await taken
        assert await stream.reader.readexactly(5) == b"bytes"
        assert here.hub.waiting("north") == 0
        with pytest.raises(TunnelError, match="north has no connection open here"):
            await here.hub.take("north", "south")
        for end in (stream, north):
            end.close()


@pytest.mark.parametrize(
    ("site", "said", "reason"),
    [
        ("east", WAIT, "east is unknown"),
        ("north", "HELLO", "'HELLO' is not known here"),
        ("north", f"{CALL} south", "'CALL' is not known here"),
        ("", WAIT, "the certificate names no site"),
    ],
)
async def test_who_may_not_is_refused_with_a_reason(
    tmp_path: Path, site: str, said: str, reason: str
) -> None:
    """And the connection is closed."""
    async with meeting(tmp_path) as here:
        stream = await here.connect(site)
        stream.say(said)
        assert await stream.line(60.0) == (NO, reason)
        assert await stream.reader.read() == b""
        stream.close()


async def test_a_tunnel_that_is_gone_is_not_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that has hung up, one that says what it should not, one that does not answer: the next one is taken."""
    monkeypatch.setattr(module, "GO_S", 0.05)
    async with meeting(tmp_path) as here:
        gone, odd = await here.waits("north"), await here.waits("north")
        gone.close()
        odd.say("HELLO")
        await until(lambda: not here.hub.waiting("north"))
        well, deaf = await here.waits("north"), await here.waits("north")
        taken = asyncio.create_task(here.hub.take("north", "south"))
        assert await well.line(60.0) == (GO, "south")
        well.say(GO)
        (await taken).close()
        assert await deaf.line(60.0) == (GO, "south")
        with pytest.raises(TunnelError):
            await deaf.line(60.0)
        for end in (odd, deaf, well):
            end.close()


async def test_callers_at_one_moment_wait_for_the_next_tunnel(tmp_path: Path) -> None:
    """The others are being taken, and are not in use yet; their site opens more all the same."""
    async with meeting(tmp_path) as here:
        first = await here.waits("north")
        callers = [asyncio.create_task(here.hub.take("north", "south")) for _ in range(2)]
        assert await first.line(60.0) == (GO, "south")
        assert here.hub.knows("north")
        second = await here.waits("north")
        assert await second.line(60.0) == (GO, "south")
        for end in (first, second):
            end.say(GO)
        for stream in await asyncio.gather(*callers):
            stream.close()
        assert here.hub.count("north") == 0
        for end in (first, second):
            end.close()


async def test_a_tunnel_for_which_there_is_no_room_does_not_wait(tmp_path: Path) -> None:
    """As where there are no descriptors left for the socket that leads to it: it hears so, and nobody takes it."""
    async with meeting(tmp_path) as here:

        def full(_: str) -> None:
            raise OSError(errno.EMFILE, "Too many open files")

        here.hub._on_waiting = full
        north = await here.waits("north")
        reason = "no connection can wait here now: Too many open files"
        assert await north.line(60.0) == (NO, reason)
        assert await north.reader.read() == b""
        assert not here.hub.knows("north")
        north.close()


async def test_a_silent_tunnel_and_a_silent_stranger_are_let_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Firewalls forget connections without a word; so nothing is taken for there that says nothing."""
    monkeypatch.setattr(module, "SILENCE_MAX_S", 0.05)
    monkeypatch.setattr(module, "FIRST_LINE_S", 0.05)
    async with meeting(tmp_path) as here:
        silent, stranger = await here.waits("north"), await here.connect("north")
        await until(lambda: not here.hub.waiting("north"))
        assert await silent.reader.read() == b""
        assert (await stranger.line(60.0))[0] == NO
        for end in (silent, stranger):
            end.close()


async def test_who_says_much_and_reads_nothing_fills_no_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each empty line has an answer; one that reads none of them is read no further, and let go."""
    monkeypatch.setattr(module, "SILENCE_MAX_S", 0.3)
    most = 0
    real = Stream.say

    def say(self: Stream, *words: str) -> None:
        nonlocal most
        self.writer.transport.set_write_buffer_limits(high=2048)
        real(self, *words)
        most = max(most, self.writer.transport.get_write_buffer_size())

    monkeypatch.setattr(Stream, "say", say)
    async with meeting(tmp_path) as here:
        end = await here.waits("north")
        end.reader._transport.pause_reading()  # type: ignore[attr-defined]  # it reads nothing
        end.writer.write(b"\n" * 2_000_000)
        await until(lambda: not here.hub.waiting("north"))
        end.abort()
    assert 2048 <= most < 4096


async def test_a_relay_connects_those_that_may_meet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says who calls, counts the bytes, and has the next one wait where all tunnels are in use, up to so many."""
    monkeypatch.setattr(module, "CALLS_MAX", 2)
    async with meeting(tmp_path, relay=True) as here:
        north, south, east = (
            await here.waits("north"),
            await here.connect("south"),
            await here.connect("east"),
        )
        east.say(CALL, "north")
        assert await east.line(60.0) == (NO, "no")
        south.say(CALL, "north")
        assert await north.line(60.0) == (GO, "south")
        north.say(GO)
        assert await south.line(60.0) == (GO, "")
        south.writer.write(b"question")
        assert await north.reader.readexactly(8) == b"question"
        north.writer.write(b"no")
        assert await south.reader.readexactly(2) == b"no"
        assert here.hub.knows("north")
        again = await here.connect("south")
        again.say(CALL, "north")
        next_one = await here.waits("north")
        assert await next_one.line(60.0) == (GO, "south")
        third = await here.connect("south")
        third.say(CALL, "north")
        assert await third.line(60.0) == (
            NO,
            "south has 2 calls to north open, as many as it may",
        )
        south.close()
        assert await north.reader.read() == b""
        await until(lambda: here.ended == [("south", "north", 8, 2)])
        for end in (north, east, again, next_one, third):
            end.close()
