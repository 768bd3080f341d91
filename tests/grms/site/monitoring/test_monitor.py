"""What a daemon tells those who watch it, and that its work does not depend on them."""

import asyncio
import json
import subprocess
import sys
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, get_args

import grpc
import pytest
import structlog
from prometheus_client.parser import text_string_to_metric_families
from structlog.testing import capture_logs

from grms.daemon.mqtt.link import MqttSettings
from grms.daemon.mqtt.payloads import JobStateName
from grms.daemon.ports import free_port
from grms.security.tls import TlsFiles
from grms.site.config.connections import MqttConfig
from grms.site.config.load import ConfigError
from grms.site.config.schema import SiteConfig
from grms.site.model.lifecycle import SHOWN, Outcome
from grms.site.monitoring.monitor import WATCHER_FILE_END, certificate_end, site_metrics
from grms.site.monitoring.mqtt_settings import mqtt_settings, telemetry_settings
from grms.v1 import job_pb2, operator_pb2
from tests.grms.keys import new_federation
from tests.grms.mqtt import Cable, Embedded, Watcher, client, watching
from tests.grms.site.daemons import Running, document, metrics, running, two_sites
from tests.waiting import until


def watch_file(folder: Path, site: str = "home") -> MqttSettings:
    """Returns how the daemon's own broker says it is watched."""
    how = json.loads((folder / f"{site}{WATCHER_FILE_END}").read_text(encoding="utf-8"))
    return MqttSettings(how["host"], how["port"], how["user"], how["password"])


async def figures(site: Running) -> dict[str, float]:
    """Returns what Prometheus collects from a site, by name and labels."""
    assert site.core.monitor is not None
    url = f"http://127.0.0.1:{site.core.monitor.metrics_port}/metrics"
    text = await asyncio.to_thread(lambda: urllib.request.urlopen(url, timeout=300).read().decode())
    return {
        sample.name + "".join(f" {key}={value}" for key, value in sorted(sample.labels.items())): (
            sample.value
        )
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_words_are_those_of_the_states() -> None:
    """What is published calls states as the site does."""
    assert list(get_args(JobStateName)) == [state.value for state in SHOWN]


async def test_a_site_that_names_no_mqtt_broker_has_none(tmp_path: Path) -> None:
    """It publishes nothing, opens no port for it, and its jobs run."""
    async with running(document(tmp_path), tmp_path) as site:
        assert site.core.monitor is None
        await site.submit("a")
        (job,) = site.core.engine.state.memory.jobs.values()
        await until(lambda: job.outcome is Outcome.COMPLETED)
        status = await site.operator.Status(operator_pb2.StatusRequest(), timeout=300)
        assert not status.telemetry_connected
        assert not list(tmp_path.glob(f"*{WATCHER_FILE_END}"))


def test_only_a_broker_of_its_own_needs_the_program_of_one() -> None:
    """Figures and a broker elsewhere work where amqtt is not installed."""
    script = (
        "import sys; sys.modules['amqtt'] = None; import grms.site.monitoring.monitor;"
        "import grms.site.daemon"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=300)  # noqa: S603  # ours


async def test_a_watcher_sees_a_job_from_its_beginning_to_its_end(tmp_path: Path) -> None:
    """Where it is asked for, the daemon has a broker: presence, each state, the figures."""
    async with (
        running(document(tmp_path, mqtt={"embedded": True}), tmp_path) as site,
        watching(watch_file(tmp_path)) as watcher,
    ):
        topic = "hanse/v1/sites/home/presence"
        await watcher.until_told(topic, state="online")
        job = await site.submit("a")
        await watcher.until(lambda: ended(watcher))
        told = [event["state"] for event in watcher.events("home")]
        assert told == ["submitting", "queued", "running", "ended"]
        assert {event["job"] for event in watcher.events("home")} == {job.job_id}
        assert watcher.events("home")[-1]["outcome"] == "completed"
        status = await site.operator.Status(operator_pb2.StatusRequest(), timeout=300)
        assert status.telemetry_connected
        site.daemon.stop()
        await watcher.until_told(topic, state="offline")
    assert not list(tmp_path.glob(f"*{WATCHER_FILE_END}"))


def ended(watcher: Watcher, site: str = "home") -> bool:
    """Returns whether the last that a watcher has heard of a job is its end."""
    return bool(watcher.events(site)[-1:]) and watcher.events(site)[-1]["state"] == "ended"


async def test_prometheus_sees_what_happens_between_two_sites(tmp_path: Path) -> None:
    """Decisions, offers with their latency, guests, refusals, commits and draining are counted."""
    quiet = {"mqtt": {"enabled": False}}
    here, there = {**metrics(), **quiet}, {**metrics(), **quiet}
    async with two_sites(tmp_path, here, there) as (home, away):
        before = await figures(home)
        assert before["hanse_partner_reachable partner=away"] == 1
        assert before["hanse_own_decisions_total decision=keep"] == 0
        filling = await home.submit("fill", processors=4, run_time_s=50.0)
        given = await home.submit("give", processors=4, run_time_s=50.0)
        await until(lambda: home.core.engine.state.partners["away"].accepted == 1)
        with pytest.raises(grpc.aio.AioRpcError):
            await home.jobs.Get(job_pb2.GetRequest(job_id="home-99"), timeout=300)
        for _ in range(2):
            with pytest.raises(grpc.aio.AioRpcError):
                await home.jobs.Cancel(job_pb2.CancelRequest(job_id="home-99"), timeout=300)
        after = await figures(home)
        assert {
            "hanse_own_decisions_total decision=keep": 1,
            "hanse_own_decisions_total decision=offer": 1,
            "hanse_offers_sent_total answer=accept partner=away": 1,
            "hanse_offer_latency_seconds_count partner=away": 1,
            "hanse_jobs state=running": 1,
            "hanse_jobs state=delegated": 1,
            "hanse_jobs state=ended": 0,
            "hanse_refusals_total reason=not_found": 3,
            "hanse_draining": 0,
            "hanse_mqtt_connected": 0,
        }.items() <= after.items()
        assert 0 < after["hanse_offer_latency_seconds_sum partner=away"] < 10
        assert after["hanse_journal_commit_seconds_count"] >= 3
        assert "hanse_certificate_end_timestamp_seconds" not in after
        found = await figures(away)
        assert found["hanse_offers_received_total answer=accept partner=home"] == 1
        assert found["hanse_guest_jobs partner=home"] == 1
        for job in (filling, given):
            await home.jobs.Cancel(job_pb2.CancelRequest(job_id=job.job_id), timeout=300)
            await home.ended(job.job_id)
        await home.operator.Drain(operator_pb2.DrainRequest(), timeout=300)
        last = await figures(home)
        assert last["hanse_jobs state=ended"] == 2
        assert last["hanse_jobs state=running"] == last["hanse_jobs state=delegated"] == 0
        assert last["hanse_draining"] == 1
        assert (await figures(away))["hanse_guest_jobs partner=home"] == 0


async def test_figures_begin_with_what_the_journal_has(tmp_path: Path) -> None:
    """After a restart open and ended jobs are counted as they are, and go on from there."""
    site = document(tmp_path, mqtt={"enabled": False}, **metrics())
    async with running(site, tmp_path) as first:
        await first.ended((await first.submit("short")).job_id)
        await first.submit("long", run_time_s=50.0)
    async with running(site, tmp_path) as second:
        found = await figures(second)
        assert found["hanse_jobs state=ended"] == 1
        assert found["hanse_jobs state=running"] == 1
        await second.jobs.Cancel(job_pb2.CancelRequest(job_id="home-2"), timeout=300)
        await second.ended("home-2")
        found = await figures(second)
        assert found["hanse_jobs state=ended"] == 2
        assert sum(n for name, n in found.items() if name.startswith("hanse_jobs ")) == 2


@asynccontextmanager
async def configured_broker() -> AsyncIterator[tuple[Embedded, dict[str, Any]]]:
    """Yields a broker that is no part of the daemon, and how the site KTH is told of it."""
    broker = Embedded()
    await broker.start()
    try:
        settings = broker.settings("KTH")
        address = f"{settings.host}:{settings.port}"
        yield broker, {"address": address, "username": "KTH", "password_file": "password"}
    finally:
        await broker.kill()


async def test_the_death_of_the_broker_disturbs_nobody(tmp_path: Path) -> None:
    """Jobs come and end while it is gone; what happened is told once it is back."""
    async with (
        configured_broker() as (broker, mqtt),
        Cable(broker.settings("KTH").port) as cable,
    ):
        (tmp_path / "password").write_text("of KTH\n")
        mqtt |= {"address": f"127.0.0.1:{cable.port}"}
        async with running(document(tmp_path, "KTH", mqtt=mqtt), tmp_path) as site:
            monitor = site.core.monitor
            assert monitor is not None
            await until(lambda: monitor.connected)
            await broker.kill()
            cable.cut()  # events are not kept for those who come late, so the watcher is first
            for number in range(20):
                job = await site.submit(f"{number}", run_time_s=0.01)
            await site.ended(job.job_id)
            assert not monitor.connected
            await broker.start()
            async with watching(broker.settings("dashboard")) as watcher:
                cable.plug()
                last = job.job_id
                await watcher.until(
                    lambda: any(
                        event["job"] == last and event["state"] == "ended"
                        for event in watcher.events()
                    )
                )
            assert len({event["job"] for event in watcher.events()}) == 20


async def test_a_broker_that_is_not_there_is_not_waited_for(tmp_path: Path) -> None:
    """The daemon starts, serves and stops as if nobody had wanted telemetry."""
    mqtt = {"address": f"127.0.0.1:{free_port()}"}
    async with running(document(tmp_path, mqtt=mqtt), tmp_path) as site:
        await site.ended((await site.submit("a")).job_id)
        status = await site.operator.Status(operator_pb2.StatusRequest(), timeout=300)
        assert not status.telemetry_connected


async def test_a_partner_is_found_by_its_presence(tmp_path: Path) -> None:
    """The address comes from MQTT; a stranger's, or one off this machine, leads nowhere."""
    async with configured_broker() as (broker, mqtt):
        (tmp_path / "password").write_text("of KTH\n")
        (tmp_path / "other").write_text("of CTC\n")
        kth = document(tmp_path, "KTH", port=free_port(), mqtt={**mqtt, "discovery": True})
        kth["partners"] = [{"name": "CTC"}, {"name": "gorba"}]
        ctc = document(tmp_path, "CTC", partners={"KTH": 1}, port=free_port())
        ctc["partners"][0]["address"] = kth["listen"]["partners"]
        ctc["mqtt"] = {**mqtt, "username": "CTC", "password_file": "other"}
        async with running(kth, tmp_path) as site, running(ctc, tmp_path):
            links = site.core.links.links
            await until(lambda: links["CTC"].up)
            assert links["CTC"].address == ctc["listen"]["partners"]
            assert links["gorba"].address is None
            with capture_logs() as logs:
                async with client(broker.settings("gorba")) as gorba:
                    presence = {
                        "site": "gorba",
                        "state": "online",
                        "instance": "1",
                        "endpoint": "gorba.example:7001",
                    }
                    topic = "hanse/v1/sites/gorba/presence"
                    await gorba.publish(topic, json.dumps(presence), 1)
                    await until(lambda: any("ignored" in entry["event"] for entry in logs))
            assert links["gorba"].address is None
            assert set(links) == {"CTC", "gorba"}


async def test_an_error_of_telemetry_is_no_error_of_the_site(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever goes wrong where things are counted, jobs come and end, and the log says it."""
    async with running(document(tmp_path, mqtt={"enabled": False}, **metrics()), tmp_path) as site:
        assert site.core.monitor is not None

        def fail(*_: object) -> None:
            raise RuntimeError("no figures today")

        monkeypatch.setattr(site.core.monitor.metrics.jobs, "labels", fail)
        with capture_logs() as logs:
            await site.ended((await site.submit("a")).job_id)
        assert "telemetry_failed" in {entry["event"] for entry in logs}
        assert site.core.engine.failure is None


def test_a_password_comes_from_its_file(tmp_path: Path) -> None:
    """Without its line end; a file that cannot be read is named."""
    file = tmp_path / "password"
    mqtt = MqttConfig.model_construct(
        address="127.0.0.1:1883", username="u", password_file=str(file), tls=False
    )
    with pytest.raises(ConfigError, match=r"password_file .*/password: cannot be read"):
        mqtt_settings(mqtt, None)
    file.write_text("secret\n")
    found = mqtt_settings(mqtt, None)
    assert found is not None
    assert (found.user, found.password) == ("u", "secret")


def test_nobody_is_sent_to_all_addresses(tmp_path: Path) -> None:
    """A site that listens everywhere announces no address, and the log says so."""
    config = SiteConfig.model_validate(
        {
            "name": "kth",
            "processors": 1,
            "listen": {"users": "kth.sock", "partners": "0.0.0.0:7001"},
            "journal": {"path": "kth.journal"},
            "tls": {"authority": "ca.crt", "certificate": "kth.crt", "key": "kth.key"},
        },
        context={"folder": tmp_path},
    )
    with capture_logs() as logs:
        assert telemetry_settings(config, structlog.get_logger()).endpoint is None
    assert [entry["event"] for entry in logs] == ["presence_without_address"]


def test_the_end_of_a_certificate_is_read_from_its_file(tmp_path: Path) -> None:
    """A renewed one counts at once; one that cannot be read is no number."""
    files: TlsFiles = new_federation(tmp_path / "keys").site("KTH")
    end = certificate_end(files.certificate)
    assert end > 1.7e9
    keys = {"authority": files.authority, "certificate": files.certificate, "key": files.key}
    tls = {name: str(path) for name, path in keys.items()}
    config = SiteConfig.model_validate(document(tmp_path, "KTH", tls=tls), context={})
    figure = "hanse_certificate_end_timestamp_seconds"
    assert site_metrics(config).values()[figure] == end
    assert certificate_end(tmp_path / "missing") != certificate_end(tmp_path / "missing")
