"""The configuration of Mosquitto in docs/examples, as a real Mosquitto understands it."""

import asyncio
import gc
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import aiomqtt
import pytest

from grms.daemon.mqtt import payloads
from tests.grms.keys import new_federation
from tests.grms.mqtt import Cable, Mosquitto, Watcher, client, watching

# The MQTT client leaves a socket to the garbage collector where TLS fails on it; see `_collect`.
pytestmark = pytest.mark.filterwarnings("ignore:unclosed <ssl.SSLSocket:ResourceWarning")

END = payloads.presence("KTH")
"""Published last in these tests: when it has come, so has all that was to come before."""


@pytest.fixture(autouse=True)
def _collect() -> Iterator[None]:
    """Collects what a test left while warnings of it are still filtered as this module says."""
    yield
    gc.collect()


async def read(watcher: Watcher) -> set[str]:
    """Returns the topics that a reader has got before the last one."""
    await watcher.until(lambda: any(topic == END for topic, _ in watcher.seen))
    return {topic for topic, _ in watcher.seen} - {END}


async def test_a_site_writes_its_own_topics_alone(mosquitto: Mosquitto) -> None:
    """By message or by last will, nobody writes in another's name or beyond sites' topics."""
    async with (
        watching(mosquitto.settings("kth-operators"), "#") as operators,
        watching(mosquitto.settings("dashboard"), "#") as dashboard,
    ):
        async with client(mosquitto.settings("CTC")) as ctc:
            for topic in (
                payloads.presence("KTH"),
                payloads.jobs("KTH"),
                payloads.metrics("KTH"),
                payloads.PLAN,
            ):
                await ctc.publish(topic, b'{"forged":1}', 1)
            await ctc.publish(payloads.presence("CTC"), b"{}", 1)
        will = aiomqtt.Will(payloads.presence("KTH"), b'{"forged":1}', 1, retain=True)
        settings = mosquitto.settings("CTC")
        async with Cable(settings.port) as cable:
            ctc = await client(replace(settings, port=cable.port), will=will).__aenter__()
            cable.cut()
            with pytest.raises(aiomqtt.MqttError):
                await anext(aiter(ctc.messages))
            await ctc.__aexit__(None, None, None)
        async with client(mosquitto.settings("KTH")) as kth:
            await kth.publish(payloads.jobs("KTH"), b"{}", 1)
            await kth.publish(payloads.metrics("KTH"), b"{}", 1)
            await kth.publish(END, b"{}", 1)
        assert await read(operators) == {
            payloads.presence("CTC"),
            payloads.jobs("KTH"),
            payloads.metrics("KTH"),
        }
        assert await read(dashboard) == {payloads.presence("CTC")}
    assert "forged" not in str(operators.seen + dashboard.seen)


async def test_jobs_and_metrics_are_for_the_sites_operators(mosquitto: Mosquitto) -> None:
    """Neither another site, nor that site's operators, nor a dashboard reads them."""
    everything = ("#", "hanse/v1/#", payloads.jobs("KTH"), payloads.metrics("KTH"), END)
    async with (
        watching(mosquitto.settings("CTC"), *everything) as partner,
        watching(mosquitto.settings("dashboard"), *everything) as dashboard,
        watching(mosquitto.settings("kth-operators"), *everything) as operators,
        client(mosquitto.settings("KTH")) as kth,
    ):
        await kth.publish(payloads.jobs("KTH"), b"{}", 1, retain=True)
        await kth.publish(payloads.metrics("KTH"), b"{}", 1, retain=True)
        await kth.publish(END, b"{}", 1)
        assert await read(partner) == set()
        assert await read(dashboard) == set()
        assert await read(operators) == {payloads.jobs("KTH"), payloads.metrics("KTH")}
    async with (
        watching(mosquitto.settings("CTC"), *everything) as late,
        client(mosquitto.settings("KTH")) as kth,
    ):
        await kth.publish(END, b"{}", 1)
        assert await read(late) == set()


async def test_watchers_write_nothing(mosquitto: Mosquitto) -> None:
    """A password lets read; what its holder publishes reaches nobody."""
    async with watching(mosquitto.settings("kth-operators"), "hanse/v1/sites/KTH/#") as operators:
        for user in ("kth-operators", "dashboard"):
            async with client(mosquitto.settings(user)) as watcher:
                for topic in (
                    payloads.presence("KTH"),
                    payloads.jobs("KTH"),
                    payloads.presence(user),
                ):
                    await watcher.publish(topic, b'{"forged":1}', 1)
        async with client(mosquitto.settings("KTH")) as kth:
            await kth.publish(END, b"{}", 1)
        assert await read(operators) == set()
    assert "forged" not in str(operators.seen)


async def test_the_workflow_broker_publishes_its_plan(mosquitto: Mosquitto) -> None:
    """The plan, in all its parts, is the broker's; others may read it if they are listed."""
    async with (
        watching(mosquitto.settings("dashboard"), "hanse/v1/broker/#") as dashboard,
        client(mosquitto.settings("gorba")) as gorba,
    ):
        for topic in (payloads.PLAN, f"{payloads.PLAN}/1"):
            await gorba.publish(topic, b"{}", 1)
        await dashboard.until(lambda: len(dashboard.seen) == 2)


async def test_who_has_no_right_certificate_stays_outside(
    mosquitto: Mosquitto, tmp_path: Path
) -> None:
    """No certificate, another authority's, and a server's own are refused by TLS."""
    right = mosquitto.settings("KTH")
    stranger = new_federation(tmp_path / "stranger").site("KTH")
    itself = tmp_path / "keys" / "mqtt-mosquitto"
    assert right.tls is not None
    for certificate, key in (
        (None, None),
        (stranger.certificate, stranger.key),
        (itself.with_suffix(".crt"), itself.with_suffix(".key")),
    ):
        outsider = aiomqtt.Client(
            right.host,
            right.port,
            tls_params=aiomqtt.TLSParameters(
                ca_certs=str(right.tls.authority),
                certfile=str(certificate) if certificate else None,
                keyfile=str(key) if key else None,
            ),
            timeout=0.5,
        )
        with pytest.raises(aiomqtt.MqttError):
            await outsider.__aenter__()
        outsider._client.disconnect()
    assert not any("as KTH" in line for line in mosquitto.output)


@pytest.mark.services
async def test_a_bridge_shares_presence_alone(tmp_path: Path) -> None:
    """Two sites with brokers of their own see each other's presence, and nothing else crosses."""
    federation = new_federation(tmp_path / "keys")
    hub = Mosquitto(tmp_path / "hub", federation)
    await hub.start()
    own = []
    for name in ("KTH", "CTC"):
        hub.settings(name)  # makes the site's keys
        made = Mosquitto(tmp_path / name, federation)
        bridge = made.example("bridge.conf").replace("KTH", name)
        bridge = bridge.replace("mqtt.federation.example:8883", f"127.0.0.1:{hub.ports[0]}")
        for suffix in ("crt", "key"):
            source = federation.folder / f"{name}.{suffix}"
            (tmp_path / name / f"{name}.{suffix}").write_bytes(source.read_bytes())
        made.more = bridge
        own.append(made)
    kth_broker, ctc_broker = own
    try:
        await asyncio.gather(*(each.start() for each in own))
        async with (
            watching(ctc_broker.settings("dashboard"), "#") as at_ctc,
            watching(hub.settings("dashboard"), "#") as at_hub,
            client(kth_broker.settings("KTH")) as kth,
        ):
            await kth.publish(payloads.jobs("KTH"), b"{}", 1, retain=True)
            await kth.publish(payloads.metrics("KTH"), b"{}", 1, retain=True)
            for state in ("online", "offline"):
                await kth.publish(END, b'{"state":"%s"}' % state.encode(), 1, retain=True)
                for watcher in (at_ctc, at_hub):
                    await watcher.until_told(END, state=state)
        assert {topic for topic, _ in at_ctc.seen} == {END}
        crossed = [line for line in hub.output if "PUBLISH" in line]
        assert crossed
        assert not [line for line in crossed if "/jobs" in line or "/metrics" in line]
    finally:
        for each in (*own, hub):
            await each.kill()
