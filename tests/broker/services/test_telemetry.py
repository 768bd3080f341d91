"""The plan and the broker's presence over MQTT."""

import asyncio
import signal
from pathlib import Path

import pytest
import structlog

from broker.core.events import Submit
from broker.core.memory import Memory
from broker.core.records import Supply
from broker.model.resources import Resource
from broker.services.telemetry import WORD_MAX, PlanTelemetry, placements_of
from grms.kit.ports import free_port
from grms.telemetry.link import MqttSettings
from tests.broker.brokers import configure, diamond, register, serving
from tests.broker.core.test_state import chain, world
from tests.grms.keys import new_federation
from tests.grms.mqtt import Mosquitto, watching

pytestmark = pytest.mark.usefixtures("forks")

PLAN = "hanse/v1/broker/plan"
PRESENCE = "hanse/v1/broker/presence"


def test_what_has_a_place_and_has_not_ended_is_published() -> None:
    """In order of time, with the resource of its program; what has ended is left out."""
    made = world()
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
    assert placements_of(Memory()) == []
    made = world()
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


async def test_the_plan_is_there_over_a_kill_of_the_broker(tmp_path: Path) -> None:
    """Retained for who comes later; a last will says that the broker is gone, until it is back."""
    mosquitto = Mosquitto(tmp_path / "mosquitto", new_federation(tmp_path / "keys"))
    await mosquitto.start()
    try:
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
    finally:
        await mosquitto.kill()
