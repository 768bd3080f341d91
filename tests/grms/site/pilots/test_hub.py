"""Who may speak to a site as one of its pilots, and what is understood."""

import asyncio
import contextlib
import json
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from grms.site.pilots import hub as module
from tests.grms.site.pilots.small_site import PILOT, SmallSite, listening_site
from tests.waiting import until

Speak = Callable[..., Awaitable[list[Any]]]
HELLO = {
    "hello": 1,
    "pilot": PILOT,
    "job": "7",
    "host": "n1",
    "ends_in": 100.0,
    "draining": "",
    "over": False,
    "used": 0.0,
    "runs": [],
}


async def opened(site: SmallSite) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connects as an agent does."""
    known = json.loads((site.hub.place(PILOT) / "contact.json").read_text())
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.load_verify_locations(cadata=known["certificate"])
    return await asyncio.open_connection(known["host"], known["port"], ssl=context)


def secret(site: SmallSite) -> str:
    """Returns the pilot's."""
    return str(json.loads((site.hub.place(PILOT) / "contact.json").read_text())["secret"])


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"secret": "x"}, "no pilot of this site"),
        ({"secret": ""}, "no pilot of this site"),
        ({"pilot": "p2"}, "no pilot of this site"),
        ({"hello": 2}, "it speaks version 2, this site 1"),
    ],
)
async def test_who_is_no_pilot_is_told_so(
    change: dict[str, Any], reason: str, tmp_path: Path
) -> None:
    """And nothing else, and the connection ends."""
    async with listening_site(tmp_path) as site:
        reader, writer = await opened(site)
        writer.write(json.dumps({**HELLO, "secret": secret(site), **change}).encode() + b"\n")
        assert reason in json.loads(await reader.readline())["refused"]
        assert await reader.read() == b""
        writer.close()
        assert not site.heard.hellos


@pytest.mark.parametrize(
    "first",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"[]\n",
        b"{}\n",
        b"{",
        b'{"hello": 1, "pilot": {}, "secret": []}\n',
        b"\xff\xfe\n",
        b"[" * 100_000 + b"\n",
        b'{"x": ' * 100_000 + b"\n",
        b'{"hello": 1, "pilot": "\\ud800", "secret": "\\ud800"}\n',
        b'{"hello": NaN, "pilot": "p", "secret": "s"}\n',
    ],
)
async def test_what_is_no_message_ends_the_connection(first: bytes, tmp_path: Path) -> None:
    """Others are heard."""
    async with listening_site(tmp_path) as site:
        reader, writer = await opened(site)
        writer.write(first)
        writer.write_eof() if writer.can_write_eof() else writer.close()
        async with asyncio.timeout(60):
            await reader.read()
        writer.close()
        reader, writer = await opened(site)
        writer.write(json.dumps({**HELLO, "secret": secret(site)}).encode() + b"\n")
        assert "now" in json.loads(await reader.readline())
        assert site.heard.hellos[0].host == "n1"
        writer.close()


@pytest.mark.parametrize(
    "said",
    [
        {"runs": [{}]},
        {"runs": [{"run": "1", "state": "asleep"}]},
        {"runs": [{"run": 1, "state": "ended"}]},
        {"runs": [{"run": "1", "state": "ended", "code": "0"}]},
        {"runs": [{"run": "1", "state": "ended", "start": "now"}]},
        {"runs": [{"run": "1", "state": "ended", "more": 1}]},
        {"runs": [1]},
        {"runs": 7},
        {"runs": {}},
        {"runs": [{"run": "1", "state": "ended", "start": float("nan")}]},
        {"runs": [{"run": "1", "state": "ended", "end": float("inf")}]},
        {"runs": [{"run": "1", "state": "ended", "end": 1e300}]},
        {"runs": [{"run": "1", "state": "ended", "code": 10**30}]},
        {"runs": [{"run": "1", "state": "ended", "code": -1}]},
        {"runs": [{"run": "1", "state": "ended", "code": True}]},
        {"runs": [{"run": "1", "state": "ended", "signal": 4711}]},
        {"runs": [{"run": "1" * 1000, "state": "ended"}]},
        {"runs": [{"run": "1", "state": "ended", "problem": "\ud800"}]},
        {"used": "much"},
        {"used": float("nan")},
        {"draining": {}},
        {"over": 1},
        [],
    ],
)
async def test_what_a_pilot_says_of_runs_is_read_strictly(said: object, tmp_path: Path) -> None:
    """Else the connection ends, and the next hello is asked for what it was."""
    async with listening_site(tmp_path) as site:
        reader, writer = await opened(site)
        writer.write(json.dumps({**HELLO, "secret": secret(site)}).encode() + b"\n")
        await reader.readline()
        writer.write(json.dumps(said).encode() + b"\n")
        async with asyncio.timeout(60):
            await reader.read()
        writer.close()
        await until(lambda: site.heard.parts == 1)
        assert not site.heard.runs


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("ends_in", float("nan")),
        ("ends_in", "soon"),
        ("used", None),
        ("runs", [[]]),
        ("host", "n" * 1000),
        ("draining", 1),
    ],
)
async def test_a_pilot_whose_first_message_is_damaged_is_not_there(
    field: str, value: object, tmp_path: Path
) -> None:
    """It is logged, and the next connection is heard."""
    async with listening_site(tmp_path) as site:
        reader, writer = await opened(site)
        damaged = {**HELLO, "secret": secret(site), field: value}
        writer.write(json.dumps(damaged).encode() + b"\n")
        async with asyncio.timeout(60):
            assert await reader.read() == b""
        writer.close()
        await until(lambda: "pilot_connection_lost" in site.said)
        assert not site.heard.hellos
        reader, writer = await opened(site)
        writer.write(json.dumps({**HELLO, "secret": secret(site)}).encode() + b"\n")
        assert "now" in json.loads(await reader.readline())
        writer.close()


async def test_a_long_text_is_cut_and_a_clock_put_back_uses_nothing(tmp_path: Path) -> None:
    """Neither is the fault of whoever tells it."""
    async with listening_site(tmp_path) as site:
        reader, writer = await opened(site)
        writer.write(json.dumps({**HELLO, "secret": secret(site)}).encode() + b"\n")
        await reader.readline()
        run = {"run": "1", "state": "ended", "problem": "x" * 100_000}
        said = {"runs": [run], "used": -0.5, "draining": "y" * 100_000}
        writer.write(json.dumps(said).encode() + b"\n")
        await until(lambda: "1" in site.heard.runs and bool(site.heard.drained))
        assert len(site.heard.runs["1"].said) == 1000
        assert len(site.heard.drained[-1]) == 1000
        writer.close()


async def test_strangers_do_not_keep_pilots_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those who say nothing are limited in number, and for a limited time."""
    monkeypatch.setattr(module, "STRANGERS_MAX", 2)
    monkeypatch.setattr(module, "ATTEMPT_S", 2.0)
    async with listening_site(tmp_path) as site:
        silent = [await opened(site) for _ in range(2)]
        await until(lambda: site.hub._strangers == 2)
        reader, writer = await opened(site)
        assert await reader.read() == b""
        writer.close()
        await until(lambda: site.hub._strangers == 0)
        reader, writer = await opened(site)
        writer.write(json.dumps({**HELLO, "secret": secret(site)}).encode() + b"\n")
        assert "now" in json.loads(await reader.readline())
        for _, each in (*silent, (reader, writer)):
            each.close()


async def test_the_newest_connection_of_a_pilot_counts(tmp_path: Path) -> None:
    """The one before may be half of a broken one; it is closed, and its end is no parting."""
    async with listening_site(tmp_path) as site:
        hello = json.dumps({**HELLO, "secret": secret(site)}).encode() + b"\n"
        first = await opened(site)
        first[1].write(hello)
        await first[0].readline()
        second = await opened(site)
        second[1].write(hello)
        await second[0].readline()
        with contextlib.suppress(ConnectionResetError):
            assert await first[0].read() == b""
        await until(lambda: len(site.hub._conversations) == 1)
        assert site.heard.parts == 0
        site.hub.send(PILOT, known=["1"])
        assert json.loads(await second[0].readline()) == {"known": ["1"]}
        for _, each in (first, second):
            each.close()
        await until(lambda: site.heard.parts == 1)


async def test_the_secret_is_the_pilot_s_for_its_life(tmp_path: Path) -> None:
    """A process that is started anew gives it the same; one that is dismissed has none."""
    async with listening_site(tmp_path) as site:
        before = secret(site)
        again = SmallSite(tmp_path)
        await again.open()
        assert secret(again) == before
        again.hub.dismiss(PILOT)
        again.hub.remove(PILOT)
        assert not again.hub.place(PILOT).exists()
        await again.hub.close()
