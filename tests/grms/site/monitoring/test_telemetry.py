import asyncio
import gc
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
import structlog

from grms.daemon.mqtt.link import MqttLink, MqttSettings
from grms.daemon.mqtt.payloads import EVENTS_MAX, Presence, encode
from grms.site.monitoring.discovery import Discovery, PartnerAppeared
from grms.site.monitoring.telemetry import JobChange, SiteTelemetry, connect_site
from grms.util.names import Endpoint
from grms.util.outcomes import Outcome
from tests.grms.mqtt import QUICK, Broker, Cable, client, until, watching

# The MQTT client leaves a socket to the garbage collector where TLS fails on it; see `_collect`.
pytestmark = pytest.mark.filterwarnings("ignore:unclosed <ssl.SSLSocket:ResourceWarning")

ENDPOINT = Endpoint("localhost", 7001)
PRESENCE = "hanse/v1/sites/KTH/presence"
JOBS = "hanse/v1/sites/KTH/jobs"
METRICS = "hanse/v1/sites/KTH/metrics"


@pytest.fixture(autouse=True)
def _collect() -> Iterator[None]:
    """Collects what a test left while warnings of it are still filtered as this module says."""
    yield
    gc.collect()


def new_telemetry(site: str = "KTH", events_max: int = 1000, instance: str = "1") -> SiteTelemetry:
    """Returns the telemetry of a site that is connected to nothing."""
    return SiteTelemetry(
        site=site,
        instance=instance,
        endpoint=ENDPOINT,
        log=structlog.get_logger(),
        events_max=events_max,
    )


def change(number: int, **more: Any) -> JobChange:
    """Returns that a job runs."""
    return JobChange(time=float(number), job=f"KTH-{number}", state="running", **more)


def published(telemetry: SiteTelemetry) -> list[tuple[str, dict[str, Any]]]:
    """Returns what a link would publish now, and lets it arrive."""
    messages = telemetry.take()
    telemetry.sent()
    return [(message.topic, json.loads(message.content)) for message in messages]


@dataclass
class Site:
    """A site's telemetry at work.

    Attributes:
        telemetry: what it publishes.
        discovery: what it knows of partners.
        link: its connection.
        changes: what it was told of partners.
    """

    telemetry: SiteTelemetry
    discovery: Discovery
    link: MqttLink
    changes: list[PartnerAppeared]


@asynccontextmanager
async def site(
    name: str, settings: MqttSettings, *, partners: tuple[str, ...] = (), events_max: int = 1000
) -> AsyncIterator[Site]:
    """Runs a site's telemetry and stops it in order."""
    changes: list[PartnerAppeared] = []
    telemetry = new_telemetry(name, events_max)
    discovery = Discovery(name, dict.fromkeys(partners))
    link = connect_site(
        replace(settings, backoff=QUICK, answer_s=1.0),
        telemetry,
        discovery,
        changes.append,
        rng=np.random.default_rng(1),
        log=structlog.get_logger(),
    )
    async with asyncio.TaskGroup() as group:
        group.create_task(link.run(), name=f"mqtt {name}")
        yield Site(telemetry, discovery, link, changes)
        link.stop()


# --- without a broker ----------------------------------------------------------------------------


def test_a_job_event_says_no_more_than_this() -> None:
    """Neither size nor requested time nor user of a job is published, and no state of the site."""
    telemetry = new_telemetry()
    telemetry.job_changed(change(1, partner="CTC"))
    telemetry.job_changed(JobChange(2.5, "KTH-1", "ended", "CTC", Outcome.COMPLETED))
    assert published(telemetry) == [
        (
            JOBS,
            {
                "site": "KTH",
                "instance": "1",
                "dropped": 0,
                "events": [
                    {
                        "sequence": 1,
                        "time": 1.0,
                        "job": "KTH-1",
                        "state": "running",
                        "partner": "CTC",
                    },
                    {
                        "sequence": 2,
                        "time": 2.5,
                        "job": "KTH-1",
                        "state": "ended",
                        "partner": "CTC",
                        "outcome": "completed",
                    },
                ],
            },
        )
    ]
    assert published(telemetry) == []


def test_events_wait_up_to_a_limit() -> None:
    """Beyond it the oldest are dropped; the number of them and the gap are published."""
    telemetry = new_telemetry(events_max=EVENTS_MAX + 50)
    for number in range(1, 1001):
        telemetry.job_changed(change(number))
    assert (telemetry.outbox_length, telemetry.dropped) == (EVENTS_MAX + 50, 850)
    first, second = published(telemetry), published(telemetry)
    assert first[0][1]["dropped"] == 850
    numbers = [event["sequence"] for each in (first, second) for event in each[0][1]["events"]]
    assert numbers == list(range(851, 1001))
    assert telemetry.outbox_length == 0


def test_what_has_not_arrived_is_published_again() -> None:
    """A message whose connection broke is taken once more, with what has come since."""
    telemetry = new_telemetry()
    telemetry.job_changed(change(1))
    telemetry.take()
    telemetry.job_changed(change(2))
    assert [event["sequence"] for event in published(telemetry)[0][1]["events"]] == [1, 2]


def test_an_event_that_cannot_be_published_harms_no_other() -> None:
    """It is logged and counted as dropped; nobody who hands events over is bothered."""
    telemetry = new_telemetry()
    telemetry.job_changed(change(1))
    telemetry.job_changed(JobChange(float("nan"), "KTH-2", "running"))
    telemetry.job_changed(JobChange(3.0, "\ud800", "running"))
    telemetry.job_changed(JobChange(3.0, "", "running"))
    telemetry.job_changed(change(5))
    with structlog.testing.capture_logs() as logs:
        found = [published(telemetry) for _ in range(4)]
    numbers = [event["sequence"] for each in found for _, jobs in each for event in jobs["events"]]
    assert numbers == [1, 5]
    assert (telemetry.dropped, telemetry.outbox_length) == (3, 0)
    assert [log["event"] for log in logs] == ["job_event_not_encodable"] * 3


def test_figures_for_operators() -> None:
    """The newest figures go out, numbers that JSON does not have are left out."""
    telemetry = new_telemetry()
    telemetry.metrics_changed(float("-inf"), {"hanse_jobs": 0.0})
    assert published(telemetry) == []
    telemetry.metrics_changed(1.0, {"hanse_jobs": 1.0})
    telemetry.metrics_changed(2.0, {"hanse_jobs": 3.0, "a": float("inf"), "b": float("nan")})
    assert published(telemetry) == [
        (METRICS, {"site": "KTH", "instance": "1", "time": 2.0, "values": {"hanse_jobs": 3.0}})
    ]
    with structlog.testing.capture_logs() as logs:
        telemetry.metrics_changed(float("nan"), {})
        telemetry.metrics_changed(1.0, {f"{'x' * 300}{number}": 1.0 for number in range(400)})
    assert published(telemetry) == []
    assert [log["event"] for log in logs] == ["metrics_not_encodable"] * 2


def test_a_new_connection_begins_with_presence_and_figures() -> None:
    """A broker that was started anew is told again what it should keep."""
    telemetry = new_telemetry()
    telemetry.metrics_changed(1.0, {})
    telemetry.begin()
    assert {topic for topic, _ in published(telemetry)} == {PRESENCE, METRICS}
    telemetry.begin()
    again = dict(published(telemetry))
    assert set(again) == {PRESENCE, METRICS}
    assert again[PRESENCE] == {
        "site": "KTH",
        "state": "online",
        "instance": "1",
        "endpoint": "localhost:7001",
        "protocol": "grms.v1",
    }
    assert all(message.retain for message in [telemetry.will, *telemetry.farewell()])


@pytest.mark.parametrize("content", [b"", b"rubbish", None])
def test_a_late_last_will_is_answered(content: bytes | None) -> None:
    """Whoever says in the site's name that it is gone is contradicted."""
    telemetry = new_telemetry()
    gone = encode(Presence(site="KTH", state="offline", instance="0"))
    telemetry.received(gone if content is None else content)
    assert [each["state"] for _, each in published(telemetry)] == ["online"]
    telemetry.received(encode(Presence(site="KTH", state="online", instance="1")))
    assert published(telemetry) == []


def test_another_daemon_of_the_same_name_is_told_of_once() -> None:
    """Two daemons under one name do not contradict each other for ever; the log has it."""
    telemetry = new_telemetry()
    other = encode(Presence(site="KTH", state="online", instance="2", endpoint="elsewhere:1"))
    with structlog.testing.capture_logs() as logs:
        for _ in range(3):
            telemetry.received(other)
    assert published(telemetry) == []
    assert [(log["event"], log["endpoint"]) for log in logs] == [
        ("presence_of_another_daemon", "elsewhere:1")
    ]


def test_names_and_limits_are_checked() -> None:
    """A name that would reach other topics, and an outbox for nothing, are refused."""
    with pytest.raises(ValueError, match="no name for a site"):
        new_telemetry("+")
    with pytest.raises(ValueError, match="at least 1"):
        new_telemetry(events_max=0)
    with pytest.raises(ValueError, match=r"cannot reach 0\.0\.0\.0:7001"):
        SiteTelemetry(
            site="KTH",
            instance="1",
            endpoint=Endpoint("0.0.0.0", 7001),  # noqa: S104  # refused
            log=structlog.get_logger(),
        )


# --- with a broker -------------------------------------------------------------------------------


async def test_a_site_is_watched(broker: Broker) -> None:
    """Who comes late finds presence and figures; events come as they happen."""
    watcher_settings = broker.settings("kth-operators")
    async with site("KTH", broker.settings("KTH")) as kth:
        kth.telemetry.metrics_changed(7.0, {"hanse_jobs": 2.0})
        await until(lambda: kth.link.connected and kth.telemetry.outbox_length == 0)
        async with watching(watcher_settings, "hanse/v1/sites/KTH/#") as watcher:
            await watcher.until_told(PRESENCE, state="online", endpoint="localhost:7001")
            await watcher.until_told(METRICS, time=7.0, values={"hanse_jobs": 2.0})
            kth.telemetry.job_changed(change(1))
            told = await watcher.until_told(JOBS)
            assert told["events"][0]["job"] == "KTH-1"
            kth.link.stop()
            await watcher.until_told(PRESENCE, state="offline", instance="1")


async def test_telemetry_catches_up_after_the_broker_was_killed(broker: Broker) -> None:
    """What happened meanwhile comes in order; what did not fit is counted, and nothing waited."""
    settings = broker.settings("KTH")
    async with (
        Cable(settings.port) as cable,
        site("KTH", replace(settings, port=cable.port), events_max=250) as kth,
    ):
        async with watching(broker.settings("kth-operators")) as watcher:
            for number in range(1, 11):
                kth.telemetry.job_changed(change(number))
            await watcher.until(lambda: len(watcher.events()) == 10)
        await until(lambda: kth.telemetry.outbox_length == 0)
        cable.plugged = False  # so that the watcher is there first
        await broker.kill()
        await until(lambda: not kth.link.connected)
        for number in range(11, 511):
            kth.telemetry.job_changed(change(number))
        assert kth.telemetry.outbox_length == 250
        await broker.start()
        async with watching(broker.settings("kth-operators")) as watcher:
            cable.plug()
            await watcher.until_told(PRESENCE, state="online")
            await watcher.until(lambda: len(watcher.events()) >= 250)
        assert [event["job"] for event in watcher.events()] == [
            f"KTH-{number}" for number in range(261, 511)
        ]
        jobs = [content for topic, content in watcher.seen if topic == JOBS]
        assert {each["dropped"] for each in jobs} == {250}
        assert kth.telemetry.dropped == 250


async def test_partners_find_each_other(broker: Broker) -> None:
    """A partner appears, and does so anew after its last will; a stranger never does."""
    settings = broker.settings("CTC")
    async with (
        site("KTH", broker.settings("KTH"), partners=("CTC",)) as kth,
        site("gorba", broker.settings("gorba")) as stranger,
        Cable(settings.port) as cable,
        site("CTC", replace(settings, port=cable.port), partners=("KTH",)) as ctc,
    ):
        await until(lambda: stranger.link.connected)
        await until(lambda: bool(kth.changes) and bool(ctc.changes))
        assert ctc.changes == [PartnerAppeared("KTH", ENDPOINT)]
        cable.cut()
        await until(lambda: not ctc.link.connected)
        cable.plug()
        await until(lambda: len(kth.changes) == 2)
    assert kth.changes == [PartnerAppeared("CTC", ENDPOINT)] * 2


async def test_a_partner_that_is_listed_later_appears(broker: Broker) -> None:
    """After a change of the list, what the broker has retained is asked for again."""
    async with (
        site("CTC", broker.settings("CTC")) as ctc,
        site("KTH", broker.settings("KTH")) as kth,
    ):
        await until(lambda: ctc.link.connected and kth.link.connected)
        kth.discovery.set_partners({"CTC": None})
        kth.link.subscribe_again()
        await until(lambda: bool(kth.changes))
        assert kth.changes == [PartnerAppeared("CTC", ENDPOINT)]


async def test_a_late_last_will_does_not_stay(broker: Broker) -> None:
    """The will of an older connection, coming after the new presence, is put right at once."""
    settings = broker.settings("KTH")
    async with (
        site("KTH", settings) as kth,
        watching(broker.settings("dashboard"), "hanse/v1/sites/+/presence") as watcher,
        client(settings) as older,
    ):
        await until(lambda: kth.link.connected)
        await watcher.until_told(PRESENCE, state="online")
        await older.publish(
            PRESENCE, encode(Presence(site="KTH", state="offline", instance="0")), 1, retain=True
        )
        await watcher.until_told(PRESENCE, state="offline")
        watcher.seen.clear()
        await watcher.until_told(PRESENCE, state="online", instance="1")
