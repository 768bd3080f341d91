"""A site's figures for its operators, in the format of Prometheus.

They reveal the site's load, so they are served only on a loopback address. A certificate of the
federation would be no protection: partners have one, and they must not learn them. Labels come from
fixed lists, so that no outsider can make the figures grow.
"""

import contextlib
import math
import platform
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict
from functools import partial
from typing import Final, Literal, get_args

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
)
from prometheus_client.core import CounterMetricFamily, Metric

from grms.daemon.mqtt.payloads import JobStateName
from grms.lrms.anomalies import Anomalies
from grms.security.handshakes import Handshake
from grms.site.accounting.counterfactual import Compared
from lrms_sim.util.version import __version__

OTHER: Final = "other"
"""Label for a partner, or a reason, that is not listed."""

RefusalReason = Literal[
    "no_user",
    "no_operator",
    "no_certificate",
    "no_identity",
    "expired",
    "not_listed",
    "speaks_for_another",
    "distrusted",
    "invalid",
    "not_found",
    "forbidden",
    "precondition",
    "disputed",
    "exhausted",
    "unavailable",
    "deputies_rate",
    "deputy_answer",
    "submissions_rate",
    "offers_rate",
    "calls",
    "watchers",
    "slow_watchers",
    "connections",
    "partner_connections",
    "descriptors",
    "journal",
    "stopping",
]
"""Reasons of `grms.site.gateway.admission`."""

_LATENCY_BUCKETS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_COMMIT_BUCKETS_S = (0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 1.0, 5.0)
_CALL_BUCKETS_S = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
_JOB_BUCKETS_S = (1, 10, 60, 300, 900, 3600, 4 * 3600, 12 * 3600, 86400, 3 * 86400, 7 * 86400)

_ONLY_COLLECTED = frozenset(
    {
        "hanse_exchange_awrt_seconds",
        "hanse_exchange_wait_seconds",
        "hanse_exchange_work_seconds",
        "hanse_circuit_breaker_gain_ratio",
        "hanse_circuit_breaker_stops",
        "hanse_partner_awrt_seconds",
        "hanse_partner_breaches",
        "hanse_partner_credit_seconds",
        "hanse_partner_duplicated",
        "hanse_partner_open_jobs",
        "hanse_partner_suspended",
    }
)


class _Total:
    """A counter kept elsewhere; asked for whenever Prometheus collects."""

    def __init__(self, name: str, text: str, read: Callable[[], float]) -> None:
        self._name, self._text, self._read = name, text, read

    def collect(self) -> Iterator[Metric]:
        yield CounterMetricFamily(self._name, self._text, value=self._read())


class ProcessFigures(ProcessCollector):
    """The figures of this process.

    They are available even if a sandbox hides all of /proc but processes (`ProcSubset=pid`).
    """

    def _boot_time(self) -> float:
        # The library reads it from /proc/stat, and has no figures at all where that is hidden.
        return time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)


class PartnerGauges:
    """Figures of partners on the allow-list; others are counted together.

    A partner that leaves the list loses them, except for its jobs here, which are counted with
    others'.
    """

    def __init__(self, registry: CollectorRegistry, partners: Iterable[str]) -> None:
        gauge = partial(Gauge, labelnames=("partner",), registry=registry)
        self._partners: frozenset[str] = frozenset()
        self._guest_counts: dict[str, int] = {}
        self._guests = gauge("hanse_guest_jobs", "Partners' jobs here.")
        self._gauges = {
            "reachable": gauge("hanse_partner_reachable", "1 where a partner answers."),
            "duplicated": gauge(
                "hanse_partner_duplicated", "1 while two daemons use a partner's name."
            ),
            "awrt": gauge("hanse_partner_awrt_seconds", "By which partners are put in order."),
            "open_jobs": gauge("hanse_partner_open_jobs", "Own jobs that are open at a partner."),
            "suspended": gauge(
                "hanse_partner_suspended", "1 while broken promises keep it from offers."
            ),
            "breaches": gauge("hanse_partner_breaches", "Promises that a partner has broken."),
            "credit": gauge("hanse_partner_credit_seconds", "Processor seconds done as promised."),
        }
        self.set_partners(partners)

    def label(self, partner: str) -> str:
        """Returns by which name a partner is shown."""
        return partner if partner in self._partners else OTHER

    def set_partners(self, partners: Iterable[str]) -> None:
        """Replaces the allow-list; one that comes does not answer yet."""
        before, self._partners = self._partners, frozenset(partners)
        for partner in before - self._partners:
            for gauge in (self._guests, *self._gauges.values()):
                with contextlib.suppress(KeyError):
                    gauge.remove(partner)
        for partner in sorted(self._partners - before):
            self.set(partner, reachable=False, duplicated=False)
            self._guest_counts.setdefault(partner, 0)
        for partner, count in self._guest_counts.items():
            self.set_guests(partner, count)
        self._show_others()

    def set(self, partner: str, **figures: float) -> None:
        """Sets figures of a partner on the list; of another one nothing is shown.

        `figures` are `reachable`, `awrt` (seconds), `open_jobs`, `suspended`, `breaches` or
        `credit` (processor seconds).
        """
        if partner in self._partners:
            for name, value in figures.items():
                self._gauges[name].labels(partner).set(value)

    def set_guests(self, partner: str, count: int) -> None:
        """Sets how many jobs of a partner are here and have not ended."""
        self._guest_counts[partner] = count
        if partner in self._partners:
            self._guests.labels(partner).set(count)
        else:
            self._show_others()

    def _show_others(self) -> None:
        others = self._guest_counts.keys() - self._partners
        if others:
            self._guests.labels(OTHER).set(sum(self._guest_counts[name] for name in others))
        else:
            with contextlib.suppress(KeyError):
                self._guests.remove(OTHER)


class SiteMetrics:
    """All figures of a site; partners not on the allow-list are counted together.

    Setting a figure costs a microsecond or so on the event loop; the endpoint reads from a thread
    of its own. Attributes have the names of the figures without their units; docs/telemetry.md
    explains them.
    """

    def __init__(self, partners: Iterable[str] = ()) -> None:
        self.registry = CollectorRegistry(auto_describe=True)
        self.partners = PartnerGauges(self.registry, partners)
        self._make_exchange()
        self._make_lrms()
        self._make_jobs()
        self._make_daemon()

    def _make_exchange(self) -> None:
        gauge, counter, histogram = self._kinds()
        self.jobs = gauge("hanse_jobs", "Jobs of own users by state.", ("state",))
        self.own_decisions = counter(
            "hanse_own_decisions_total", "What the policy wanted with own jobs.", ("decision",)
        )
        self.offers_sent = counter(
            "hanse_offers_sent_total", "Offers to partners by their answer.", ("partner", "answer")
        )
        self.offers_received = counter(
            "hanse_offers_received_total", "Partners' offers by answer.", ("partner", "answer")
        )
        self.jobs_undone = counter(
            "hanse_jobs_undone_total",
            "Jobs that a partner has sent back undone, or that were sent back to it.",
            ("partner", "whose"),
        )
        self.jobs_sent_home = counter(
            "hanse_jobs_sent_home_total",
            "Jobs that a partner has ended for other ones and sent home, or that were sent home to it.",
            ("partner", "whose"),
        )
        self.work_lost = counter(
            "hanse_work_lost_processor_seconds_total",
            "What these jobs had run for nothing.",
            ("partner", "whose"),
        )
        self.offer_latency = histogram(
            "hanse_offer_latency_seconds",
            "From an offer to its answer.",
            ("partner",),
            buckets=_LATENCY_BUCKETS_S,
        )
        self.refusals = counter(
            "hanse_refusals_total", "Calls that were refused, by reason.", ("reason",)
        )
        self.handshakes_failed = counter(
            "hanse_handshakes_failed_total",
            "TLS handshakes at the port of partners that failed, by reason.",
            ("reason",),
        )
        self.journal_commit = histogram(
            "hanse_journal_commit_seconds", "One commit of the journal.", buckets=_COMMIT_BUCKETS_S
        )
        self.draining = gauge("hanse_draining", "1 while no work is taken.")
        self.in_credit = gauge(
            "hanse_account_in_credit", "1 while the site is in credit by the account of itself."
        )
        self.account_gain = gauge(
            "hanse_account_gain_ratio",
            "What exchange has saved own jobs of their time alone, fading.",
        )
        self.account_wait = gauge(
            "hanse_account_wait_seconds",
            "Waiting of an own job of mean work: saved by exchange, and owed to jobs that wait.",
            ("what",),
        )
        self.account_guests = gauge(
            "hanse_account_guests", "Guests that run, at the last look.", ("protection",)
        )
        self.account_work = gauge(
            "hanse_account_work_seconds",
            "Processor seconds exchanged since the account began.",
            ("what",),
        )
        _begin(self.jobs, get_args(JobStateName))
        _begin(self.refusals, get_args(RefusalReason))
        _begin(self.handshakes_failed, Handshake)
        _begin(self.own_decisions, ("keep", "offer"))

    def _make_lrms(self) -> None:
        gauge, counter, _ = self._kinds()
        self.processors = gauge("hanse_processors", "Of the machine, by state.", ("state",))
        self.lrms_reachable = gauge(
            "hanse_lrms_reachable", "1 where the batch system answers and its load is known."
        )
        self.lrms_load_age = gauge(
            "hanse_lrms_load_age_seconds", "How old the figures of machine and queue are."
        )
        self.lrms_commands_open = gauge(
            "hanse_lrms_commands_open", "Commands that the batch system has not answered."
        )
        self.lrms_jobs_unseen = gauge(
            "hanse_lrms_jobs_unseen", "Jobs of which it is not known where they stand."
        )
        self.lrms_surprises = counter(
            "hanse_lrms_surprises_total", "What the batch system did by itself.", ("what",)
        )
        self.lrms_anomalies = counter(
            "hanse_lrms_anomalies_total", "What the batch system has said and not kept.", ("what",)
        )
        self.queue_jobs = gauge("hanse_queue_jobs", "Jobs that wait in the batch system.")
        self.queue_processors = gauge(
            "hanse_queue_processors", "Processors that the waiting jobs need, added up."
        )
        self._anomalies = asdict(Anomalies())
        _begin(self.lrms_surprises, ("lost", "requeued", "appeared"))
        _begin(self.lrms_anomalies, self._anomalies)

    def _make_jobs(self) -> None:
        gauge, counter, histogram = self._kinds()
        self.rounds = counter("hanse_rounds_total", "Rounds of offers that have come to their end.")
        self.round_questions = counter(
            "hanse_round_questions_total", "Questions to partners about jobs that wait."
        )
        self.round_jobs_moved = counter(
            "hanse_round_jobs_moved_total",
            "Jobs that have left the queue and that a partner has confirmed.",
        )
        self.job_wait, self.job_response = (
            histogram(name, text, ("kind",), buckets=_JOB_BUCKETS_S)
            for name, text in (
                ("hanse_job_wait_seconds", "From submission to start."),
                ("hanse_job_response_seconds", "From submission to end."),
            )
        )
        self.jobs_ended = counter("hanse_jobs_ended_total", "Own jobs that ended.", ("outcome",))
        self.exchange_awrt = gauge(
            "hanse_exchange_awrt_seconds", "Of own users' jobs of a week.", ("users",)
        )
        self.exchange_wait = gauge(
            "hanse_exchange_wait_seconds", "Mean wait of own users' jobs of a week.", ("users",)
        )
        self.exchange_work = gauge(
            "hanse_exchange_work_seconds",
            "Processor seconds of a week's jobs, given and taken.",
            ("partner", "way"),
        )

    def _make_daemon(self) -> None:
        gauge, _, histogram = self._kinds()
        self.calls = histogram(
            "hanse_call_seconds",
            "Calls that were answered, in whatever way, by method.",
            ("method",),
            buckets=_CALL_BUCKETS_S,
        )
        self.journal_bytes = gauge("hanse_journal_bytes", "The journal on the disk.")
        self.journal_records = gauge("hanse_journal_records", "Records in the journal.")
        build = gauge("hanse_build_info", "1; the labels say what runs.", ("version", "python"))
        build.labels(__version__, platform.python_version()).set(1)
        ProcessFigures(registry=self.registry)

    def _kinds(self) -> tuple[partial[Gauge], partial[Counter], partial[Histogram]]:
        return (
            partial(Gauge, registry=self.registry),
            partial(Counter, registry=self.registry),
            partial(Histogram, registry=self.registry),
        )

    # --- what is more than setting one figure ------------------------------------------------

    def set_jobs(self, counts: Mapping[JobStateName, int]) -> None:
        """Sets how many jobs there are in each state, after a restart; 0 if it is not said."""
        for state in get_args(JobStateName):
            self.jobs.labels(state).set(counts.get(state, 0))

    def refused(self, reason: str) -> None:
        """Counts a call that was refused; the reason is a `RefusalReason`."""
        self.refusals.labels(reason if reason in get_args(RefusalReason) else OTHER).inc()

    def handshake_failed(self, handshake: Handshake) -> None:
        """Counts a TLS handshake that failed."""
        self.handshakes_failed.labels(handshake).inc()

    def call_answered(self, method: str, latency_s: float) -> None:
        """Takes note of how long a call took, in seconds; the methods are those that there are."""
        self.calls.labels(method.lstrip("/")).observe(latency_s)

    def set_anomalies(self, anomalies: Anomalies) -> None:
        """Counts what the batch system has not kept since this was called last."""
        for what, count in asdict(anomalies).items():
            self.lrms_anomalies.labels(what).inc(count - self._anomalies[what])
            self._anomalies[what] = count

    def set_exchange(self, own: Compared, works: Mapping[str, tuple[float, float]]) -> None:
        """Sets what exchange has brought; a mean of no jobs is `NaN`.

        `works` is given to each partner and taken from it, in processor seconds.
        """
        for gauge, users, value in (
            (self.exchange_awrt, "with_partners", own.awrt),
            (self.exchange_awrt, "alone", own.awrt_alone),
            (self.exchange_wait, "with_partners", own.mean_wait),
            (self.exchange_wait, "alone", own.mean_wait_alone),
        ):
            gauge.labels(users).set(value)
        self.exchange_work.clear()
        for partner, (given, taken) in works.items():
            label = self.partners.label(partner)
            self.exchange_work.labels(label, "given").inc(given)
            self.exchange_work.labels(label, "taken").inc(taken)

    def watch_certificate(self, end: Callable[[], float]) -> None:
        """Has the end of the site's certificate asked for whenever Prometheus collects.

        Without this there is no such figure, so that a site without TLS raises no alarm. `end`
        returns seconds since 1970, or NaN if unknown.
        """
        gauge, _, _ = self._kinds()
        gauge(
            "hanse_certificate_end_timestamp_seconds", "When the site's certificate ends."
        ).set_function(end)

    def watch_telemetry(
        self,
        *,
        connected: Callable[[], bool],
        outbox_length: Callable[[], int],
        dropped: Callable[[], int],
    ) -> None:
        """Lets three figures be asked for whenever Prometheus collects; call it once.

        `dropped` counts job events that were never published.
        """
        gauge, _, _ = self._kinds()
        for name, text, read in (
            ("hanse_mqtt_connected", "1 while there is a connection to the broker.", connected),
            ("hanse_mqtt_outbox_length", "Messages that wait for the broker.", outbox_length),
        ):
            gauge(name, text).set_function(read)
        total = _Total(
            "hanse_mqtt_events_dropped", "Job events that were never published.", dropped
        )
        self.registry.register(total)

    def values(self) -> dict[str, float]:
        """Returns every figure by its name and labels, as on the MQTT topic for operators.

        Histograms have count and sum without buckets; figures of partners are Prometheus's alone,
        to bound the size of a message.
        """
        found = {}
        for family in self.registry.collect():
            if family.name in _ONLY_COLLECTED:
                continue
            for sample in family.samples:
                if sample.name.endswith(("_bucket", "_created")) or not math.isfinite(sample.value):
                    continue
                labels = ",".join(f'{key}="{value}"' for key, value in sample.labels.items())
                found[f"{sample.name}{{{labels}}}" if labels else sample.name] = sample.value
        return found


def _begin(figure: Counter | Gauge, words: Iterable[str]) -> None:
    """Lets a figure be 0 before its first event, so that an alert on it can be written."""
    for word in words:
        figure.labels(word)
