import asyncio
import json
from dataclasses import replace

import numpy as np
import structlog

from grms.kit.ports import free_port
from grms.telemetry import topics
from grms.telemetry.broadcast import Broadcast
from grms.telemetry.link import MqttSettings
from grms.telemetry.payloads import PLACEMENTS_MAX, Clock, Placement
from tests.grms.mqtt import QUICK, Mosquitto, watching


def new_broadcast(settings: MqttSettings | None = None, instance: str = "") -> Broadcast:
    """Returns a broadcast that nobody has connected yet."""
    return Broadcast(
        settings or MqttSettings("127.0.0.1", free_port()),
        rng=np.random.default_rng(1),
        log=structlog.get_logger(),
        instance=instance,
    )


def placements(count: int) -> list[Placement]:
    """Returns the tasks of a plan."""
    return [
        Placement(workflow="w", task=str(number), resource="r", begin=0, end=1, cost=2)
        for number in range(count)
    ]


async def test_of_each_state_the_newest_is_published() -> None:
    """A clock that ticks faster than the network is published as it stands; nothing piles up."""
    broadcast = new_broadcast()
    for tick in range(1000):
        broadcast.clock(Clock(replay="x", time=float(tick), arrivals=tick))
    (message,) = broadcast.take()
    broadcast.sent()
    assert (message.topic, message.retain) == (topics.CLOCK, True)
    assert json.loads(message.content)["arrivals"] == 999
    assert (broadcast.take(), broadcast.farewell(), broadcast.will) == ([], (), None)
    broadcast.begin()
    assert len(broadcast.take()) == 1


async def test_a_shorter_plan_leaves_nothing_of_a_longer_one() -> None:
    """Parts that the newest plan does not have are emptied at the broker."""
    broadcast = new_broadcast()
    broadcast.plan(placements(2 * PLACEMENTS_MAX + 1), revision=1, time=0)
    assert [message.topic for message in broadcast.take()] == [
        "hanse/v1/broker/plan",
        "hanse/v1/broker/plan/1",
        "hanse/v1/broker/plan/2",
    ]
    broadcast.sent()
    broadcast.plan(placements(3), revision=2, time=1)
    found = {message.topic: message.content for message in broadcast.take()}
    assert found["hanse/v1/broker/plan/1"] == found["hanse/v1/broker/plan/2"] == b""
    assert json.loads(found["hanse/v1/broker/plan"])["revision"] == 2


async def test_a_plan_reaches_those_who_may_read_it(mosquitto: Mosquitto) -> None:
    """Published through a real broker, a plan of several parts is whole for a late reader."""
    broadcast = new_broadcast(replace(mosquitto.settings("gorba"), backoff=QUICK))
    broadcast.plan(placements(PLACEMENTS_MAX + 1), revision=8, time=3)
    async with asyncio.TaskGroup() as group:
        group.create_task(broadcast.link.run(), name="mqtt")
        async with watching(mosquitto.settings("dashboard"), "hanse/v1/broker/#") as watcher:
            await watcher.until(lambda: len(watcher.seen) == 2)
        broadcast.link.stop()
    parts = sorted((content for _, content in watcher.seen), key=lambda each: int(each["part"]))
    assert [(each["part"], each["parts"], each["revision"]) for each in parts] == [
        (0, 2, 8),
        (1, 2, 8),
    ]
    assert len(parts[0]["placements"] + parts[1]["placements"]) == PLACEMENTS_MAX + 1


async def test_the_workflow_broker_says_that_it_is_there_and_leaves_a_will() -> None:
    """Online on each connection, offline at its end and as last will; both retained."""
    broadcast = new_broadcast(instance="7")
    online = b'{"state":"online","instance":"7"}'
    offline = b'{"state":"offline","instance":"7"}'
    broadcast.begin()
    (message,) = broadcast.take()
    assert (message.topic, message.content, message.retain) == (
        topics.BROKER_PRESENCE,
        online,
        True,
    )
    assert broadcast.will is not None
    for last in (broadcast.will, *broadcast.farewell()):
        assert (last.topic, last.content, last.retain) == (topics.BROKER_PRESENCE, offline, True)


async def test_a_late_will_does_not_stay(mosquitto: Mosquitto) -> None:
    """What a broken connection leaves behind is corrected; the will of an end in order stays."""
    broadcast = new_broadcast(replace(mosquitto.settings("gorba"), backoff=QUICK), "7")
    async with asyncio.TaskGroup() as group:
        group.create_task(broadcast.link.run(), name="mqtt")
        async with watching(mosquitto.settings("dashboard"), topics.BROKER_PRESENCE) as watcher:

            def states() -> list[str]:
                return [str(content["state"]) for _, content in watcher.seen]

            await watcher.until(lambda: states()[-1:] == ["online"])
            other = new_broadcast(replace(mosquitto.settings("gorba"), backoff=QUICK), "7")
            group.create_task(other.link.run(), name="the connection before")
            await watcher.until(lambda: states().count("online") >= 2)
            other.link.stop()  # says offline, as the will of a connection that broke would
            await watcher.until(lambda: states()[-2:] == ["offline", "online"])
            broadcast.link.stop()
            await watcher.until(lambda: states()[-1:] == ["offline"])
