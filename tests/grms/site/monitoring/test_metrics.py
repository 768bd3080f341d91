import platform
import re
import socket
import urllib.error
import urllib.request
from pathlib import Path
from typing import get_args

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from grms.daemon.mqtt.payloads import METRICS_MAX, JobStateName, Metrics, encode
from grms.lrms.anomalies import Anomalies
from grms.security.handshakes import Handshake
from grms.security.tls import AdmissionRefusal
from grms.site.model import commands
from grms.site.monitoring.accounting_monitor import CircuitBreakerFigures
from grms.site.monitoring.metrics import (
    OTHER,
    PartnerGauges,
    ProcessFigures,
    RefusalReason,
    SiteMetrics,
)
from grms.site.monitoring.metrics_endpoint import MetricsEndpoint, MetricsError, MetricsSettings


def scrape(endpoint: MetricsEndpoint) -> dict[str, float]:
    """Returns what Prometheus would collect, by name and labels."""
    with urllib.request.urlopen(f"http://127.0.0.1:{endpoint.port}/metrics", timeout=300) as answer:
        text = answer.read().decode()
    return {
        sample.name + "".join(f" {key}={value}" for key, value in sorted(sample.labels.items())): (
            sample.value
        )
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_prometheus_collects_what_the_daemon_tells() -> None:
    """What the daemon sets is found in its figure, over HTTP."""
    metrics = SiteMetrics(["CTC", "SDSC"])
    metrics.set_jobs({"running": 3, "queued": 2})
    metrics.partners.set_guests("CTC", 4)
    metrics.refused("not_listed")
    metrics.journal_commit.observe(0.004)
    metrics.partners.set("CTC", reachable=True)
    metrics.partners.set("SDSC", reachable=False)
    metrics.watch_certificate(lambda: 2e9)
    metrics.draining.set(1)
    metrics.watch_telemetry(connected=lambda: True, outbox_length=lambda: 17, dropped=lambda: 5)
    with MetricsEndpoint(metrics, MetricsSettings(port=0)) as endpoint:
        found = scrape(endpoint)
    assert {
        "hanse_jobs state=received": 0,
        "hanse_jobs state=queued": 2,
        "hanse_jobs state=running": 3,
        "hanse_jobs state=suspect": 0,
        "hanse_guest_jobs partner=CTC": 4,
        "hanse_own_decisions_total decision=keep": 0,
        "hanse_refusals_total reason=not_listed": 1,
        "hanse_refusals_total reason=invalid": 0,
        "hanse_journal_commit_seconds_count": 1,
        "hanse_journal_commit_seconds_bucket le=0.005": 1,
        "hanse_partner_reachable partner=CTC": 1,
        "hanse_partner_reachable partner=SDSC": 0,
        "hanse_certificate_end_timestamp_seconds": 2e9,
        "hanse_draining": 1,
        "hanse_mqtt_connected": 1,
        "hanse_mqtt_outbox_length": 17,
        "hanse_mqtt_events_dropped_total": 5,
    }.items() <= found.items()


def test_strangers_do_not_make_the_figures_grow() -> None:
    """Whatever names come, they are counted together; the list can change."""
    metrics = SiteMetrics(["CTC"])
    for number in range(100):
        assert metrics.partners.label(f"stranger{number}") == OTHER
        metrics.partners.set_guests(f"stranger{number}", 1)
    values = metrics.values()
    assert values[f'hanse_guest_jobs{{partner="{OTHER}"}}'] == 100
    assert len([name for name in values if "guest_jobs" in name]) == 2
    metrics.partners.set_partners(["stranger1"])
    assert metrics.partners.label("stranger1") == "stranger1"


def test_the_values_fit_into_a_payload() -> None:
    """The figures of a site with 64 partners are one message for its operators, and a short one."""
    names = [f"{'site' * 3}{number}" for number in range(64)]
    metrics = SiteMetrics(names)
    for name in names:
        metrics.offers_sent.labels(name, "accept").inc()
        metrics.offer_latency.labels(name).observe(0.1)
        metrics.offers_received.labels(name, "decline").inc()
        metrics.partners.set_guests(name, 1)
        metrics.partners.set(
            name, duplicated=True, awrt=1.0, open_jobs=2, suspended=True, breaches=2, credit=5.0
        )
    values = metrics.values()
    assert not [name for name in values if "bucket" in name or "created" in name]
    assert len(values) <= METRICS_MAX
    encode(Metrics(site="KTH", instance="1", time=0, values=values))


def test_every_state_and_every_refusal_has_its_figure() -> None:
    """A figure is 0 before its first event, so that an alert on it can be written."""
    values = SiteMetrics().values()
    for state in get_args(JobStateName):
        assert values[f'hanse_jobs{{state="{state}"}}'] == 0
    for reason in get_args(RefusalReason):
        assert values[f'hanse_refusals_total{{reason="{reason}"}}'] == 0
    reasons = {refusal.value for refusal in AdmissionRefusal}
    reasons |= {refusal.name.lower() for refusal in commands.Refusal}
    for path in Path(commands.__file__).parents[1].rglob("*.py"):
        reasons |= set(re.findall(r'[._]count\("(\w+)"[,)]', path.read_text(encoding="utf-8")))
    reasons |= {"submissions_rate", "offers_rate", "connections", "partner_connections"}
    reasons |= {"deputies_rate"}
    assert reasons == set(get_args(RefusalReason))
    for handshake in Handshake:
        assert values[f'hanse_handshakes_failed_total{{reason="{handshake}"}}'] == 0


def test_a_refusal_without_a_name_is_counted() -> None:
    """A reason that is on no list makes no figure of its own."""
    metrics = SiteMetrics()
    metrics.refused("whatever")
    assert metrics.values()[f'hanse_refusals_total{{reason="{OTHER}"}}'] == 1


def test_two_sites_in_one_process_do_not_mix() -> None:
    """Each has a registry of its own."""
    one, other = SiteMetrics(), SiteMetrics()
    one.refused("invalid")
    assert one.values() != other.values()


def test_an_endpoint_that_has_ended_is_gone() -> None:
    """After the end nobody listens, and the port can be used again at once."""
    metrics = SiteMetrics()
    with MetricsEndpoint(metrics, MetricsSettings(port=0)) as endpoint:
        port = endpoint.port
    with pytest.raises((urllib.error.URLError, ConnectionError)):
        scrape(endpoint)
    with MetricsEndpoint(metrics, MetricsSettings(port=port)) as again:
        assert scrape(again)


def test_an_address_that_is_taken() -> None:
    """The error says where and what to do."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        endpoint = MetricsEndpoint(SiteMetrics(), MetricsSettings(port=port))
        with pytest.raises(MetricsError, match=f"127.0.0.1:{port}: .*configure another address"):
            endpoint.__enter__()


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "kth.example", ""])  # noqa: S104  # refused
def test_figures_do_not_leave_the_machine(host: str) -> None:
    """An address that others reach is refused, with a certificate or without."""
    with pytest.raises(ValueError, match="how busy this site is"):
        MetricsSettings(host)


@pytest.mark.parametrize("port", [-1, 65536])
def test_ports_have_bounds(port: int) -> None:
    """A port that is none is refused."""
    with pytest.raises(ValueError, match=f"port is {port}"):
        MetricsSettings(port=port)


def test_the_machine_the_queue_and_the_partners_have_figures() -> None:
    """What capacity planning and alerts need, with what runs and the process itself."""
    metrics = SiteMetrics(["CTC"])
    metrics.processors.labels("free").set(4)
    metrics.partners.set("CTC", awrt=120.5, open_jobs=3, suspended=True, breaches=2, credit=7200.0)
    metrics.job_wait.labels("home").observe(30.0)
    metrics.call_answered("/grms.v1.JobService/Submit", 0.002)
    collected = generate_latest(metrics.registry).decode()
    for line in (
        'hanse_partner_suspended{partner="CTC"} 1.0',
        'hanse_partner_breaches{partner="CTC"} 2.0',
        'hanse_partner_credit_seconds{partner="CTC"} 7200.0',
        'hanse_processors{state="free"} 4.0',
        'hanse_partner_awrt_seconds{partner="CTC"} 120.5',
        'hanse_partner_open_jobs{partner="CTC"} 3.0',
        'hanse_job_wait_seconds_bucket{kind="home",le="60.0"} 1.0',
        'hanse_job_wait_seconds_bucket{kind="home",le="10.0"} 0.0',
        'hanse_call_seconds_count{method="grms.v1.JobService/Submit"} 1.0',
        "process_open_fds ",
        "process_resident_memory_bytes ",
    ):
        assert line in collected, line
    assert f'hanse_build_info{{python="{platform.python_version()}",version="' in collected


def test_what_a_batch_system_has_not_kept_is_counted_once() -> None:
    """Its own counts only grow; each look adds what is new."""
    metrics, anomalies = SiteMetrics(), Anomalies()
    for copied, seen in ((0, 0.0), (2, 2.0), (2, 2.0), (3, 3.0)):
        anomalies.copied = copied
        metrics.set_anomalies(anomalies)
        collected = generate_latest(metrics.registry).decode()
        assert f'hanse_lrms_anomalies_total{{what="copied"}} {seen}' in collected
        assert 'hanse_lrms_anomalies_total{what="run_again"} 0.0' in collected


def test_every_figure_is_documented() -> None:
    """The page on telemetry has each by its name, and none that is not there."""
    metrics = SiteMetrics()
    metrics.watch_certificate(lambda: 0.0)
    CircuitBreakerFigures(metrics.registry)
    metrics.watch_telemetry(connected=lambda: True, outbox_length=lambda: 0, dropped=lambda: 0)
    there = {
        f"{family.name}_total" if family.type == "counter" else family.name
        for family in metrics.registry.collect()
        if family.name.startswith("hanse_")
    }
    page = (Path(__file__).parents[4] / "docs/telemetry.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `(hanse_\w+)`", page, re.MULTILINE)) == there


# --- partners ----------------------------------------------------------------------------------


def of_partners(registry: CollectorRegistry) -> dict[str, dict[str, float]]:
    """Returns the figures, by partner and name without what all have in common."""
    found: dict[str, dict[str, float]] = {}
    for family in registry.collect():
        for sample in family.samples:
            name = sample.name.removeprefix("hanse_").removeprefix("partner_")
            found.setdefault(sample.labels["partner"], {})[name] = sample.value
    return found


def test_a_partner_of_the_list_is_there_from_the_beginning() -> None:
    """It does not answer yet and has no jobs here, so that an alert on it can be written."""
    registry = CollectorRegistry()
    PartnerGauges(registry, ["CTC"])
    assert of_partners(registry) == {"CTC": {"reachable": 0, "duplicated": 0, "guest_jobs": 0}}


def test_a_partner_that_leaves_the_list_is_shown_no_more() -> None:
    """An alert on a partner that does not answer would otherwise go on until the next restart."""
    registry = CollectorRegistry()
    figures = PartnerGauges(registry, ["CTC", "SDSC"])
    said = {"awrt": 7.0, "open_jobs": 3, "suspended": True, "breaches": 2, "credit": 5.0}
    figures.set("SDSC", reachable=True, **said)
    figures.set_partners(["CTC"])
    assert of_partners(registry)["CTC"] == {"reachable": 0, "duplicated": 0, "guest_jobs": 0}
    # What is heard of it later makes it no partner either.
    figures.set("SDSC", reachable=False, **said)
    assert "SDSC" not in of_partners(registry)
    figures.set_partners(["CTC", "SDSC"])
    assert of_partners(registry)["SDSC"] == {"reachable": 0, "duplicated": 0, "guest_jobs": 0}


def test_jobs_of_partners_that_have_left_are_shown_together() -> None:
    """They are still here; one that comes back finds its own."""
    registry = CollectorRegistry()
    figures = PartnerGauges(registry, ["CTC", "SDSC", "KTH"])
    for name, count in (("CTC", 1), ("SDSC", 2), ("KTH", 4)):
        figures.set_guests(name, count)
    figures.set_partners(["KTH"])
    assert {name: each["guest_jobs"] for name, each in of_partners(registry).items()} == {
        "KTH": 4,
        OTHER: 3,
    }
    figures.set_guests("SDSC", 1)
    assert of_partners(registry)[OTHER]["guest_jobs"] == 2
    figures.set_partners(["KTH", "CTC"])
    assert of_partners(registry)["CTC"]["guest_jobs"] == 1
    assert of_partners(registry)[OTHER]["guest_jobs"] == 1


# --- the process --------------------------------------------------------------------------------

PROCESS_FIGURES = {
    "process_virtual_memory_bytes",
    "process_resident_memory_bytes",
    "process_start_time_seconds",
    "process_cpu_seconds_total",
    "process_open_fds",
    "process_max_fds",
}


def test_processor_memory_and_descriptors_are_there() -> None:
    """With the time at which the process began, as ever."""
    registry = CollectorRegistry()
    ProcessFigures(registry=registry)
    samples = {each.name: each.value for family in registry.collect() for each in family.samples}
    assert samples.keys() == PROCESS_FIGURES
    assert samples["process_start_time_seconds"] > 0
    assert samples["process_open_fds"] < samples["process_max_fds"]


def test_they_are_there_in_the_sandbox_of_the_unit(tmp_path: Path) -> None:
    """`ProcSubset=pid` hides all of /proc but processes, and so when the machine was started."""
    (tmp_path / "self").symlink_to("/proc/self")
    whole, hidden = CollectorRegistry(), CollectorRegistry()
    ProcessFigures(registry=whole)
    ProcessFigures(registry=hidden, proc=str(tmp_path))
    samples = {each.name: each.value for family in hidden.collect() for each in family.samples}
    assert samples.keys() == PROCESS_FIGURES
    begin = whole.get_sample_value("process_start_time_seconds")
    assert samples["process_start_time_seconds"] == pytest.approx(begin, abs=2)
