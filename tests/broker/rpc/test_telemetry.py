"""The plan and the broker's presence over MQTT."""

import asyncio
import json
import signal
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import structlog

from broker.model.resources import Resource
from broker.rpc.telemetry import WORD_MAX, PlanTelemetry, placements_of
from broker.scheduler.events import Submit
from broker.scheduler.records import Supply
from broker.scheduler.state_tables import StateTables
from grms.daemon.mqtt import payloads
from grms.daemon.mqtt.link import MqttSettings
from grms.daemon.mqtt.payloads import PLACEMENTS_MAX, Placement
from grms.daemon.ports import free_port
from tests.broker.brokers import configure, diamond, register, serving
from tests.broker.scheduler.test_state import PATIENT, chain, world
from tests.grms.keys import new_federation
from tests.grms.mqtt import QUICK, Mosquitto, watching

pytestmark = pytest.mark.usefixtures("forks")

PLAN = "hanse/v1/broker/plan"
PRESENCE = "hanse/v1/broker/presence"


@pytest.fixture
async def mosquitto(tmp_path: Path) -> AsyncIterator[Mosquitto]:
    """Returns a Mosquitto that runs with the configuration of the examples."""
    made = Mosquitto(tmp_path / "mosquitto", new_federation(tmp_path / "keys"))
    await made.start()
    yield made
    await made.kill()


def new_telemetry(settings: MqttSettings | None = None) -> PlanTelemetry:
    """Returns the telemetry of a broker that nobody has connected yet."""
    settings = settings or MqttSettings("127.0.0.1", free_port())
    return PlanTelemetry(settings, "7", structlog.get_logger(), np.random.default_rng(1))


def test_what_has_a_place_and_has_not_ended_is_published() -> None:
    """In order of time, with the resource of its program; what has ended is left out."""
    made = world(settings=PATIENT)
    made.tell(Submit(1, "a", chain("flow", 1, 1, 1)))
    while made.state.memory.plan is None or made.completed.count("flow/t0") == 0:
        made.step()
    made.step()
    found = placements_of(made.state.memory)
    assert [(each.workflow, each.task) for each in found] == [("flow", "t1"), ("flow", "t2")]
    assert [each.begin for each in found] == sorted(each.begin for each in found)
    assert all(each.end > each.begin and each.resource for each in found)


def test_nothing_is_planned_at_first() -> None:
    """An empty memory has no placements, and names that are too long are cut."""
    assert placements_of(StateTables()) == []
    made = world(settings=PATIENT)
    made.tell(Submit(1, "a", chain("x" * (WORD_MAX + 5), 1)))
    while made.state.memory.plan is None:
        made.step()
    assert [len(each.workflow) for each in placements_of(made.state.memory)] == [WORD_MAX]


async def test_a_broker_without_mqtt_goes_on_and_ends_at_once() -> None:
    """Where nobody listens nothing waits, neither while it works nor at the end."""
    settings = MqttSettings("127.0.0.1", free_port())
    telemetry = PlanTelemetry(settings, "1", structlog.get_logger())
    work = asyncio.ensure_future(telemetry.run())
    made = world()
    made.tell(Submit(1, "a", chain("flow", 1)))
    made.run()
    for _ in range(1000):
        telemetry.publish(made.state.memory)
    await asyncio.sleep(0)
    work.cancel()
    async with asyncio.timeout(300):
        await asyncio.wait([work])
    assert work.cancelled()


async def test_the_plan_is_there_over_a_kill_of_the_broker(
    mosquitto: Mosquitto, tmp_path: Path
) -> None:
    """Retained for who comes later; a last will says that the broker is gone, until it is back."""
    tls = mosquitto.settings("gorba").tls
    assert tls is not None
    config = configure(
        tmp_path,
        f'[mqtt]\naddress = "127.0.0.1:{mosquitto.ports[0]}"\n[mqtt.tls]\n'
        f'authority = "{tls.authority}"\ncertificate = "{tls.certificate}"\n'
        f'key = "{tls.key}"\n',
    )
    with serving(config) as (process, client):
        register(client, Supply(Resource("alpha", capacity=2)))
        await asyncio.to_thread(client.submit, diamond("flow", 20.0, "alpha"))
        async with watching(mosquitto.settings("dashboard"), "hanse/v1/broker/#") as watcher:
            first = await watcher.until_told(PRESENCE, state="online")
            plan = await watcher.until_told(PLAN, part=0)
            assert [each["task"] for each in plan["placements"]] == ["a", "b", "c", "d"]
            assert all(each["resource"] == "alpha" for each in plan["placements"])
            process.end(signal.SIGKILL)
            await watcher.until_told(PRESENCE, state="offline", instance=first["instance"])
        process.start()
        async with watching(mosquitto.settings("dashboard"), "hanse/v1/broker/#") as watcher:
            again = await watcher.until_told(PRESENCE, state="online")
            assert again["instance"] != first["instance"]
            later = await watcher.until_told(PLAN)
            assert later["revision"] >= plan["revision"]
            await asyncio.to_thread(process.end, signal.SIGTERM)
            await watcher.until_told(PRESENCE, state="offline", instance=again["instance"])


def placements(count: int) -> list[Placement]:
    """Returns the tasks of a plan."""
    return [
        Placement(workflow="w", task=str(number), resource="r", begin=0, end=1, cost=2)
        for number in range(count)
    ]


async def test_a_shorter_plan_leaves_nothing_of_a_longer_one() -> None:
    """Parts that the newest plan does not have are emptied at the broker."""
    telemetry = new_telemetry()
    telemetry.plan(placements(2 * PLACEMENTS_MAX + 1), revision=1, time=0)
    assert [message.topic for message in telemetry.take()] == [
        "hanse/v1/broker/plan",
        "hanse/v1/broker/plan/1",
        "hanse/v1/broker/plan/2",
    ]
    telemetry.sent()
    telemetry.plan(placements(3), revision=2, time=1)
    found = {message.topic: message.content for message in telemetry.take()}
    assert found["hanse/v1/broker/plan/1"] == found["hanse/v1/broker/plan/2"] == b""
    assert json.loads(found["hanse/v1/broker/plan"])["revision"] == 2


async def test_a_plan_reaches_those_who_may_read_it(mosquitto: Mosquitto) -> None:
    """Published through a real broker, a plan of several parts is whole for a late reader."""
    telemetry = new_telemetry(replace(mosquitto.settings("gorba"), backoff=QUICK))
    telemetry.plan(placements(PLACEMENTS_MAX + 1), revision=8, time=3)
    async with asyncio.TaskGroup() as group:
        group.create_task(telemetry.link.run(), name="mqtt")
        async with watching(mosquitto.settings("dashboard"), "hanse/v1/broker/plan/#") as watcher:
            await watcher.until(lambda: len(watcher.seen) == 2)
        telemetry.link.stop()
    parts = sorted((content for _, content in watcher.seen), key=lambda each: int(each["part"]))
    assert [(each["part"], each["parts"], each["revision"]) for each in parts] == [
        (0, 2, 8),
        (1, 2, 8),
    ]
    assert len(parts[0]["placements"] + parts[1]["placements"]) == PLACEMENTS_MAX + 1


async def test_the_workflow_broker_says_that_it_is_there_and_leaves_a_will() -> None:
    """Online on each connection, offline at its end and as last will; both retained."""
    telemetry = new_telemetry()
    online = b'{"state":"online","instance":"7"}'
    offline = b'{"state":"offline","instance":"7"}'
    telemetry.begin()
    (message,) = telemetry.take()
    assert (message.topic, message.content, message.retain) == (
        payloads.BROKER_PRESENCE,
        online,
        True,
    )
    for last in (telemetry.will, *telemetry.farewell()):
        assert (last.topic, last.content, last.retain) == (payloads.BROKER_PRESENCE, offline, True)


async def test_a_late_will_does_not_stay(mosquitto: Mosquitto) -> None:
    """What a broken connection leaves behind is corrected; the will of an end in order stays."""
    telemetry = new_telemetry(replace(mosquitto.settings("gorba"), backoff=QUICK))
    async with asyncio.TaskGroup() as group:
        group.create_task(telemetry.link.run(), name="mqtt")
        async with watching(mosquitto.settings("dashboard"), payloads.BROKER_PRESENCE) as watcher:

            def states() -> list[str]:
                return [str(content["state"]) for _, content in watcher.seen]

            await watcher.until(lambda: states()[-1:] == ["online"])
            other = new_telemetry(replace(mosquitto.settings("gorba"), backoff=QUICK))
            group.create_task(other.link.run(), name="the connection before")
            await watcher.until(lambda: states().count("online") >= 2)
            other.link.stop()  # says offline, as the will of a connection that broke would
            await watcher.until(lambda: states()[-2:] == ["offline", "online"])
            telemetry.link.stop()
            await watcher.until(lambda: states()[-1:] == ["offline"])
