import asyncio
import json
import os
import stat
import sys
from pathlib import Path

import aiomqtt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grms.daemon.mqtt import payloads
from grms.daemon.process import MQTT_MAX
from grms.site.config.schema import WATCHER
from grms.site.monitoring import embedded_mqtt
from grms.site.monitoring.embedded_mqtt import (
    Account,
    EmbeddedBroker,
    EmbeddedBrokerError,
    covers,
    new_password,
    site_account,
    watcher_account,
    write_watcher_file,
)
from tests.grms.mqtt import client, watching
from tests.programs import run_program

LEVELS = st.sampled_from(["a", "b", "+", "#"])
NAMES = st.lists(st.sampled_from(["a", "b"]), min_size=1, max_size=4)


@pytest.fixture
def accounts() -> dict[str, Account]:
    """Returns the accounts of two sites and a watcher."""
    return {
        "KTH": site_account("KTH", new_password()),
        "CTC": site_account("CTC", new_password()),
        WATCHER: watcher_account(new_password()),
    }


@given(
    st.lists(LEVELS, min_size=1, max_size=4).map("/".join),
    st.lists(LEVELS, min_size=1, max_size=4).map("/".join),
    NAMES.map("/".join),
)
def test_a_filter_that_is_covered_reaches_nothing_more(
    allowed: str, asked: str, topic: str
) -> None:
    """Where one filter covers another, every topic of the other is one of the first's."""
    try:
        matches = aiomqtt.Topic(topic).matches
        in_allowed, in_asked = matches(allowed), matches(asked)
    except ValueError:  # `#` before the end is no filter
        return
    if covers(allowed, asked) and in_asked:
        assert in_allowed
    # Of single topics it is exact.
    assert covers(allowed, topic) == in_allowed or allowed.endswith("#")


@pytest.mark.parametrize(
    ("allowed", "asked", "covered"),
    [
        ("hanse/v1/#", "hanse/v1/sites/+/presence", True),
        ("hanse/v1/#", "hanse/v1/#", True),
        ("hanse/v1/#", "hanse/v1", True),
        ("hanse/v1/#", "#", False),
        ("hanse/v1/#", "+/v1/x", False),
        ("hanse/v1/sites/+/presence", "hanse/v1/sites/KTH/presence", True),
        ("hanse/v1/sites/+/presence", "hanse/v1/sites/+/presence", True),
        ("hanse/v1/sites/+/presence", "hanse/v1/sites/+/+", False),
        ("hanse/v1/sites/+/presence", "hanse/v1/sites/#", False),
        ("hanse/v1/sites/+/presence", "hanse/v1/sites/KTH", False),
        ("a/b", "a/+", False),
        ("a/b", "a/b/c", False),
    ],
)
def test_what_a_filter_covers(allowed: str, asked: str, covered: bool) -> None:
    """A wildcard is covered by a wildcard at least as wide, never by a name."""
    assert covers(allowed, asked) is covered


async def test_a_site_writes_its_own_topics_alone(accounts: dict[str, Account]) -> None:
    """What is published in another's name, by a message or a last will, reaches nobody."""
    async with EmbeddedBroker(accounts) as broker:
        async with (
            watching(broker.settings(WATCHER)) as watcher,
            client(broker.settings("KTH")) as kth,
        ):
            for topic in (payloads.presence("CTC"), payloads.jobs("CTC"), payloads.PLAN, "other"):
                await kth.publish(topic, b"{}", 1)
            for topic in (payloads.presence("KTH"), payloads.jobs("KTH"), payloads.metrics("KTH")):
                await kth.publish(topic, b"{}", 1)
            await watcher.until(lambda: len(watcher.seen) == 3)
        assert {topic for topic, _ in watcher.seen} == {
            payloads.presence("KTH"),
            payloads.jobs("KTH"),
            payloads.metrics("KTH"),
        }
        will = aiomqtt.Will(payloads.presence("CTC"), b"{}", 1, retain=True)
        with pytest.raises(aiomqtt.MqttError, match=r"[Nn]ot authori[sz]ed"):
            async with client(broker.settings("KTH"), will=will):
                pass


async def test_a_site_reads_presence_alone(accounts: dict[str, Account]) -> None:
    """Neither its own nor another's jobs and figures come back to a site's account."""
    async with EmbeddedBroker(accounts) as broker, client(broker.settings("KTH")) as kth:
        refused = [payloads.jobs("CTC"), payloads.metrics("CTC"), "hanse/v1/#", "#"]
        for each in refused:
            granted = await kth.subscribe(each, 1)
            assert all(getattr(code, "is_failure", code == 0x80) for code in granted)
        granted = await kth.subscribe(payloads.PRESENCE_OF_ALL, 1)
        assert not any(getattr(code, "is_failure", code == 0x80) for code in granted)


async def test_strangers_stay_outside(accounts: dict[str, Account]) -> None:
    """Without account or password nobody gets in, and an unknown name is as wrong as any."""
    async with EmbeddedBroker(accounts) as broker:
        for user, password in (
            (None, None),
            ("KTH", None),
            ("KTH", ""),
            ("KTH", accounts["CTC"].password),
            ("nobody", "x"),
            ("nobody", ""),
            ("", "\0"),
        ):
            stranger = aiomqtt.Client(
                broker.host,
                broker.port,
                username=user,
                password=password,
                protocol=aiomqtt.ProtocolVersion.V311,
            )
            with pytest.raises(aiomqtt.MqttError):
                await stranger.__aenter__()
            stranger._client.disconnect()  # the wrapper leaves it open


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\0",
        b"GET / HTTP/1.1\r\n\r\n",
        b"\x10\xff\xff\xff\x7f",
        b"\x10\x02\0\4",
        b"\xff" * 999,
    ],
)
async def test_rubbish_ends_only_its_own_connection(
    accounts: dict[str, Account], content: bytes
) -> None:
    """Whatever a client sends, the broker goes on to serve others."""
    async with EmbeddedBroker(accounts) as broker, watching(broker.settings(WATCHER)) as watcher:
        for _ in range(3):
            _, writer = await asyncio.open_connection(broker.host, broker.port)
            writer.write(content)
            writer.close()
            await writer.wait_closed()
        async with client(broker.settings("KTH")) as kth:
            await kth.publish(payloads.presence("KTH"), b"{}", 1)
        await watcher.until(lambda: len(watcher.seen) == 1)


async def test_connections_are_limited(accounts: dict[str, Account]) -> None:
    """Beyond the limit a connection is closed at once; those that are there go on."""
    async with EmbeddedBroker(accounts) as broker, watching(broker.settings(WATCHER)) as watcher:
        idle = [await asyncio.open_connection(broker.host, broker.port) for _ in range(MQTT_MAX)]
        reader, _ = idle[-1]
        async with asyncio.timeout(300):
            assert await reader.read() == b""
        for _, each in idle:
            each.close()
        for _, each in idle:
            await each.wait_closed()
        async with client(broker.settings("KTH")) as kth:
            await kth.publish(payloads.presence("KTH"), b"{}", 1)
        await watcher.until(lambda: len(watcher.seen) == 1)


async def test_an_address_that_is_taken(accounts: dict[str, Account]) -> None:
    """Two brokers on one port: the second says so and what to do, and leaves nothing behind."""
    async with EmbeddedBroker(accounts) as first:
        with pytest.raises(EmbeddedBrokerError, match="in use; configure another port"):
            await EmbeddedBroker(accounts, port=first.port).__aenter__()


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.org"])  # noqa: S104  # refused
def test_it_never_leaves_the_machine(host: str, accounts: dict[str, Account]) -> None:
    """A broker without TLS listens on loopback alone."""
    with pytest.raises(ValueError, match="it has no TLS; use Mosquitto"):
        EmbeddedBroker(accounts, host=host)


async def test_how_to_watch_is_for_the_owner_alone(
    accounts: dict[str, Account], tmp_path: Path
) -> None:
    """The file with the password has mode 0600 whatever the umask, and is replaced at a start."""
    path = tmp_path / "watch.json"
    old = os.umask(0)
    try:
        async with EmbeddedBroker(accounts) as broker:
            write_watcher_file(broker, path)
            write_watcher_file(broker, path)
    finally:
        os.umask(old)
    assert json.loads(path.read_text(encoding="utf-8")) == {
        "host": "127.0.0.1",
        "port": broker.port,
        "user": WATCHER,
        "password": accounts[WATCHER].password,
    }
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert os.listdir(tmp_path) == ["watch.json"]  # noqa: PTH208  # a Path's way is for threads


def test_passwords_are_not_shown() -> None:
    """Two passwords differ, and the text of an account lacks its own."""
    assert new_password() != new_password()
    assert "secret" not in repr(site_account("KTH", "secret"))


def test_it_starts_and_stops_without_a_warning() -> None:
    """Import, start, use and end give no warning of any kind in a fresh interpreter."""
    program = """
import asyncio
from grms.site.monitoring.embedded_mqtt import EmbeddedBroker, site_account
async def main():
    asyncio.get_running_loop().slow_callback_duration = 600.0  # a slow machine is no warning
    async with EmbeddedBroker({"KTH": site_account("KTH", "x")}) as broker:
        print(broker.port > 0)
asyncio.run(main())
"""
    done = run_program([sys.executable, "-X", "dev", "-W", "error", "-c", program])
    assert (done.stdout, done.stderr, done.returncode) == ("True\n", "", 0)


@pytest.mark.parametrize("said", [b"", b"\x10\x30\x00"])
async def test_who_does_not_say_who_they_are_is_not_waited_for(
    accounts: dict[str, Account], monkeypatch: pytest.MonkeyPatch, said: bytes
) -> None:
    """Any local user could otherwise take all connections; a client that is known may be silent."""
    async with EmbeddedBroker(accounts) as broker, watching(broker.settings(WATCHER)) as watcher:
        monkeypatch.setattr(embedded_mqtt, "CONNECT_S", 0.1)
        reader, writer = await asyncio.open_connection(broker.host, broker.port)
        writer.write(said)
        async with asyncio.timeout(300):
            assert await reader.read() == b""
        writer.close()
        await writer.wait_closed()
        monkeypatch.undo()
        async with client(broker.settings("KTH")) as kth:
            await kth.publish(payloads.presence("KTH"), b"{}", 1)
        await watcher.until(lambda: len(watcher.seen) == 1)
