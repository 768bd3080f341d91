import asyncio
import gc
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import structlog

from grms.daemon.mqtt.link import MqttLink, MqttSettings, Outgoing
from grms.daemon.pacing import BackoffSettings
from grms.daemon.ports import free_port
from grms.security.tls import TlsFiles
from tests.grms.keys import new_federation
from tests.grms.mqtt import (
    QUICK,
    Broker,
    Cable,
    Mosquitto,
    until,
    watching,
)

# The MQTT client leaves a socket to the garbage collector where TLS fails on it; see `_collect`.
pytestmark = pytest.mark.filterwarnings("ignore:unclosed <ssl.SSLSocket:ResourceWarning")

JOBS = "hanse/v1/sites/KTH/jobs"
PRESENCE = "hanse/v1/sites/KTH/presence"


@pytest.fixture(autouse=True)
def _collect() -> Iterator[None]:
    """Collects what a test left while warnings of it are still filtered as this module says."""
    yield
    gc.collect()


class Numbers:
    """A source of numbers, as many as a test puts in.

    Attributes:
        waiting: what has not arrived.
        begun: how many connections there were.
        batch: how many go at a time.
    """

    will: Outgoing | None = Outgoing(PRESENCE, b'{"state":"offline"}', retain=True)

    def __init__(self) -> None:
        self.waiting: list[int] = []
        self.begun = 0
        self.batch = 50
        self._taken = 0

    def begin(self) -> None:
        """Counts a connection."""
        self.begun += 1

    def take(self) -> Sequence[Outgoing]:
        """Returns the first numbers that wait."""
        self._taken = len(self.waiting[: self.batch])
        return [Outgoing(JOBS, _event(number)) for number in self.waiting[: self.batch]]

    def sent(self) -> None:
        """Takes them out."""
        del self.waiting[: self._taken]

    def farewell(self) -> Sequence[Outgoing]:
        """Says goodbye."""
        return [Outgoing(PRESENCE, b'{"state":"gone"}', retain=True)]


def _event(number: int) -> bytes:
    return b'{"events":[{"sequence":%d}]}' % number


@asynccontextmanager
async def running(
    settings: MqttSettings, source: Numbers, **more: object
) -> AsyncIterator[MqttLink]:
    """Runs a link as a task and stops it in order."""
    link = MqttLink(
        replace(settings, backoff=QUICK, answer_s=min(settings.answer_s, 1.0)),
        source,
        rng=np.random.default_rng(1),
        log=structlog.get_logger(),
        **more,  # type: ignore[arg-type]  # subscriptions and receive
    )
    async with asyncio.TaskGroup() as group:
        group.create_task(link.run(), name="link")
        yield link
        link.stop()


async def test_messages_arrive_once_and_in_order(broker: Broker) -> None:
    """What a source has goes out in order, and leaves it when the broker has it."""
    source = Numbers()
    source.waiting = list(range(200))
    async with (
        watching(broker.settings("kth-operators"), JOBS) as watcher,
        running(broker.settings("KTH"), source) as link,
    ):
        await watcher.until(lambda: len(watcher.seen) == 200)
        await until(lambda: not source.waiting)
        source.waiting = [200]
        link.wake()
        await watcher.until(lambda: len(watcher.seen) == 201)
    assert [event["sequence"] for event in watcher.events()] == list(range(201))
    assert (link.connections, link.connected) == (1, False)


async def test_the_last_will_is_said_when_the_connection_breaks(broker: Broker) -> None:
    """A link that ends in order says so itself; of a broken one the broker does."""
    settings = broker.settings("KTH")
    async with (
        watching(broker.settings("kth-operators"), PRESENCE) as watcher,
        Cable(settings.port) as cable,
    ):
        async with running(replace(settings, port=cable.port), Numbers()) as link:
            await until(lambda: link.connected)
            cable.cut()
            await watcher.until_told(PRESENCE, state="offline")
            cable.plug()
            await until(lambda: link.connections == 2)
        await watcher.until_told(PRESENCE, state="gone")


async def test_after_a_cut_everything_arrives(broker: Broker) -> None:
    """Cut at any moment, again and again, no message is missing and none overtakes another."""
    settings, source = broker.settings("KTH"), Numbers()
    source.batch = 7
    async with (
        watching(broker.settings("kth-operators"), JOBS) as watcher,
        Cable(settings.port) as cable,
        running(replace(settings, port=cable.port), source) as link,
    ):
        for last in range(50, 250, 50):
            source.waiting += range(last - 50, last)
            link.wake()
            await watcher.until(lambda: len(watcher.seen) > last - 30)  # noqa: B023  # awaited here
            cable.cut()
            await until(lambda: not link.connected)
            cable.plug()
        await watcher.until(lambda: any(e["sequence"] == 199 for e in watcher.events()))
    numbers = [event["sequence"] for event in watcher.events()]
    first = list(dict.fromkeys(numbers))
    assert first == list(range(200))
    assert link.connections == 5


async def test_a_broker_that_dies_is_found_again(broker: Broker) -> None:
    """Messages wait while the broker is gone, and go out when there is one again."""
    settings, source = broker.settings("KTH"), Numbers()
    async with (
        Cable(settings.port) as cable,
        running(replace(settings, port=cable.port), source) as link,
    ):
        await until(lambda: link.connected)
        cable.plugged = False  # so that the watcher is there first
        await broker.kill()
        await until(lambda: not link.connected)
        source.waiting = list(range(30))
        link.wake()
        await broker.start()
        async with watching(broker.settings("kth-operators"), JOBS) as watcher:
            cable.plug()
            await watcher.until(lambda: len(watcher.seen) == 30)
    assert [event["sequence"] for event in watcher.events()] == list(range(30))


async def test_what_comes_is_handed_over(broker: Broker) -> None:
    """Subscriptions hold on every connection, and can be asked for what is retained again."""
    got: list[tuple[str, bytes]] = []

    def receive(topic: str, content: bytes) -> None:
        got.append((topic, content))
        raise RuntimeError("a mistake in the receiver")

    settings = broker.settings("KTH")
    async with running(settings, Numbers()) as link:
        await until(lambda: link.connected)
    async with (
        Cable(settings.port) as cable,
        running(
            replace(settings, port=cable.port),
            Numbers(),
            subscriptions=["hanse/v1/sites/+/presence"],
            receive=receive,
        ) as link,
    ):
        await until(lambda: bool(got))
        assert got[-1] == (PRESENCE, b'{"state":"gone"}')
        for again in (link.subscribe_again, cable.cut):
            got.clear()
            again()
            cable.plug()
            await until(lambda: bool(got))
    assert {topic for topic, _ in got} == {PRESENCE}


async def test_a_link_without_a_broker_waits_and_can_be_stopped() -> None:
    """Where nobody listens, nothing is raised; the pauses grow, and `stop` ends them at once."""
    source = Numbers()
    source.waiting = [1]
    with structlog.testing.capture_logs() as logs:
        settings = MqttSettings("127.0.0.1", free_port())
        async with running(settings, source) as link:
            await until(lambda: len(logs) >= 4)
    assert {log["event"] for log in logs} == {"mqtt_gone"}
    assert (link.connections, source.waiting) == (0, [1])


@pytest.mark.parametrize("answer", [b"", b"\x20\x02\x00\x05", b"HTTP/1.1 400 Bad Request\r\n\r\n"])
async def test_a_server_that_is_no_broker(answer: bytes) -> None:
    """Silence, a refusal and another protocol are failures like any other; no socket is left."""
    visits = ended = most = 0

    async def answered(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal visits, ended, most
        visits += 1
        most = max(most, visits - ended)
        writer.write(answer)
        with suppress(OSError):
            await reader.read()
        writer.close()
        ended += 1

    server = await asyncio.start_server(answered, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        settings = MqttSettings("127.0.0.1", port, answer_s=0.1)
        async with running(settings, Numbers()) as link:
            await until(lambda: visits >= 6)
            assert not link.connected
        await until(lambda: visits == ended)
        assert most <= 2  # the one before may still be ending


async def test_a_cancelled_link_leaves_nothing(broker: Broker) -> None:
    """Cancelled while it connects or while it is connected, a link closes its socket."""
    for connected in (False, True):
        link = MqttLink(
            broker.settings("KTH"),
            Numbers(),
            rng=np.random.default_rng(1),
            log=structlog.get_logger(),
        )
        task = asyncio.create_task(link.run(), name="link")
        await (until(lambda: link.connected) if connected else asyncio.sleep(0))  # noqa: B023  # awaited here
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not link.connected
        gc.collect()


async def test_a_wrong_password_is_refused(broker: Broker) -> None:
    """Who does not know the password, or has none, does not get in."""
    settings = broker.settings("kth-operators")
    for wrong in (replace(settings, password="guess"), replace(settings, user=None, password=None)):
        with structlog.testing.capture_logs() as logs:
            async with running(wrong, Numbers()) as link:
                await until(lambda: len(logs) >= 2)
        assert link.connections == 0
        assert "guess" not in str(logs)


async def test_a_broker_of_another_authority_is_not_believed(
    mosquitto: Mosquitto, tmp_path: Path
) -> None:
    """The link speaks with no broker, and the broker with no link, of another authority."""
    stranger = new_federation(tmp_path / "stranger").site("KTH")
    right = mosquitto.settings("KTH")
    assert right.tls is not None
    for tls in (
        stranger,
        TlsFiles(right.tls.authority, stranger.certificate, stranger.key),
        TlsFiles(right.tls.authority, right.tls.certificate, tmp_path / "missing.key"),
    ):
        with structlog.testing.capture_logs() as logs:
            async with running(replace(right, tls=tls, answer_s=0.3), Numbers()) as link:
                await until(lambda: len(logs) >= 2)
        assert link.connections == 0
        assert {log["event"] for log in logs} <= {"mqtt_gone", "mqtt_connected"}


@pytest.mark.parametrize(
    ("more", "match"),
    [
        ({"port": 0}, "port is 0"),
        ({"port": 70000}, "port is 70000"),
        ({"host": "a b"}, "neither a host name"),
        ({"host": "mqtt.example.org"}, "connect to it with TLS"),
        ({"host": "192.0.2.1"}, "connect to it with TLS"),
        ({"keep_alive_s": 0}, "keep_alive_s is 0"),
        ({"answer_s": 0}, "answer_s is 0"),
        ({"password": "x"}, "but no user"),
    ],
)
def test_settings_have_bounds(more: dict[str, object], match: str) -> None:
    """What cannot work, or would send a password over the network in the clear, is refused."""
    with pytest.raises(ValueError, match=match):
        MqttSettings(**more)  # type: ignore[arg-type]  # each has the type of its field


def test_a_password_is_not_shown() -> None:
    """The text of the settings, as a log would have it, lacks the password."""
    settings = MqttSettings(user="KTH", password="very secret", backoff=BackoffSettings())
    assert "very secret" not in repr(settings)
