import asyncio
import json
import os
import socket
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import structlog

from grms.daemon.mqtt import link
from grms.daemon.mqtt.link import MqttSettings
from grms.daemon.ports import free_port
from grms.site.monitoring.discovery import PartnerAppeared
from grms.site.monitoring.embedded_mqtt import EmbeddedBrokerError
from grms.site.monitoring.metrics import SiteMetrics
from grms.site.monitoring.metrics_endpoint import MetricsError, MetricsSettings
from grms.site.monitoring.monitor import WATCHER_FILE_END, Monitor
from grms.site.monitoring.mqtt_settings import TelemetrySettings
from grms.site.monitoring.telemetry import JobChange
from grms.util.names import Endpoint
from tests.grms.mqtt import QUICK, Broker, until, watching

ENDPOINT = Endpoint("localhost", 7001)


def new_service(
    folder: Path, site: str = "KTH", *, partners: tuple[str, ...] = (), **more: Any
) -> tuple[Monitor, list[PartnerAppeared]]:
    """Returns a service that is not open yet, and the list to which it tells of partners."""
    changes: list[PartnerAppeared] = []
    settings = TelemetrySettings(
        site=site,
        instance="1",
        folder=folder,
        endpoint=ENDPOINT,
        embedded=("127.0.0.1", 0),
        metrics_every_s=0.05,
    )
    service = Monitor(
        replace(settings, **more),
        partners=dict.fromkeys(partners),
        partner_changed=changes.append,
        metrics=SiteMetrics(partners),
        now=lambda: 7.5,
        log=structlog.get_logger(),
    )
    return service, changes


@asynccontextmanager
async def running(service: Monitor) -> AsyncIterator[Monitor]:
    """Opens and runs a service, and ends it in order."""
    async with service, asyncio.TaskGroup() as group:
        group.create_task(service.run(), name="telemetry")
        yield service
        await service.stop()


async def test_without_a_broker_the_daemon_brings_its_own(tmp_path: Path) -> None:
    """Whoever may read the daemon's folder finds there how to watch, as long as it runs."""
    service, _ = new_service(tmp_path)
    async with running(service):
        how = json.loads((tmp_path / f"KTH{WATCHER_FILE_END}").read_text(encoding="utf-8"))
        settings = MqttSettings(how["host"], how["port"], how["user"], how["password"])
        async with watching(settings) as watcher:
            await watcher.until_told("hanse/v1/sites/KTH/presence", state="online")
            service.job_changed(JobChange(1.0, "KTH-1", "running"))
            await watcher.until(lambda: len(watcher.events()) == 1)
            found = await watcher.until_told("hanse/v1/sites/KTH/metrics", time=7.5)
            assert found["values"]["hanse_mqtt_connected"] in {0, 1}
            await service.stop()
            await watcher.until_told("hanse/v1/sites/KTH/presence", state="offline")
    assert not (tmp_path / f"KTH{WATCHER_FILE_END}").exists()
    assert not service.connected


async def test_what_happens_together_goes_out_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Events that come one after the other within a pause are one message, not one each."""
    monkeypatch.setattr(link, "GATHER_S", 1.0)
    service, _ = new_service(tmp_path, metrics_every_s=1000.0)
    async with service, asyncio.TaskGroup() as group:
        how = json.loads((tmp_path / f"KTH{WATCHER_FILE_END}").read_text(encoding="utf-8"))
        settings = MqttSettings(how["host"], how["port"], how["user"], how["password"])
        async with watching(settings) as watcher:
            group.create_task(service.run(), name="telemetry")
            await watcher.until_told("hanse/v1/sites/KTH/metrics", time=7.5)
            for number in range(5):
                service.job_changed(JobChange(1.0, f"KTH-{number}", "running"))
                for _ in range(50):
                    await asyncio.sleep(0)
            await watcher.until(lambda: len(watcher.events()) == 5)
            messages = [content for topic, content in watcher.seen if topic.endswith("/jobs")]
            assert len(messages) == 1
        await service.stop()


async def test_a_configured_broker_is_used(broker: Broker, tmp_path: Path) -> None:
    """With a broker of the operator's there is no other, and partners find each other there."""
    kth, changes = new_service(
        tmp_path, partners=("CTC",), mqtt=replace(broker.settings("KTH"), backoff=QUICK)
    )
    ctc, _ = new_service(tmp_path, "CTC", mqtt=replace(broker.settings("CTC"), backoff=QUICK))
    async with running(kth), running(ctc):
        await until(lambda: changes == [PartnerAppeared("CTC", ENDPOINT)])
        assert not (tmp_path / f"KTH{WATCHER_FILE_END}").exists()
        kth.set_partners({})
        kth.set_partners({"CTC": None})
        await until(lambda: len(changes) == 2)


async def test_without_any_broker_the_daemon_works(tmp_path: Path) -> None:
    """Events are taken, figures are served, and the end is at once, though nothing is published."""
    service, _ = new_service(
        tmp_path,
        mqtt=MqttSettings("127.0.0.1", free_port(), backoff=QUICK),
        metrics=MetricsSettings(port=0),
        outbox_events_max=3,
    )
    async with running(service):
        for number in range(10):
            service.job_changed(JobChange(1.0, f"KTH-{number}", "running"))
        url = f"http://127.0.0.1:{service.metrics_port}/metrics"
        text = await asyncio.to_thread(lambda: urllib.request.urlopen(url, timeout=300).read())
        assert b"hanse_mqtt_connected 0.0" in text
        assert b"hanse_mqtt_events_dropped_total 7.0" in text
        assert not service.connected


async def test_what_cannot_be_opened_leaves_nothing(tmp_path: Path) -> None:
    """An address that is taken is an error at the start, and what was opened before is closed."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        service, _ = new_service(tmp_path, embedded=("127.0.0.1", port))
        with pytest.raises(EmbeddedBrokerError):
            await service.__aenter__()
        service, _ = new_service(tmp_path, metrics=MetricsSettings(port=port))
        with pytest.raises(MetricsError):
            await service.__aenter__()
    assert os.listdir(tmp_path) == []  # noqa: PTH208  # a Path's way is for threads
    service, _ = new_service(tmp_path / "missing")
    with pytest.raises(FileNotFoundError):
        await service.__aenter__()


@pytest.mark.parametrize("every_s", [0, -1, float("inf"), float("nan")])
def test_figures_are_published_at_a_pace(every_s: float, tmp_path: Path) -> None:
    """A pause that is none, or never ends, is refused."""
    with pytest.raises(ValueError, match="metrics_every_s"):
        TelemetrySettings("KTH", "1", tmp_path, metrics_every_s=every_s)


async def test_a_site_cannot_be_called_as_the_watcher(tmp_path: Path) -> None:
    """The one name that means another account is refused by the embedded broker."""
    service, _ = new_service(tmp_path, "watcher")
    with pytest.raises(ValueError, match="needs an MQTT broker of its own"):
        await service.__aenter__()
