"""A site's figures for its operators, in the form that Prometheus collects.

They say how busy a site is, so they are served on a loopback address alone. A certificate of the
federation would be no protection: partners have one, and they are the last to be told. Labels take
names from fixed lists, so that nobody outside can make the figures grow.
"""

import math
import platform
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Literal, get_args

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
)
from prometheus_client.core import CounterMetricFamily, Metric

from grms.handshakes import Handshake
from grms.site.care.alone import Compared
from grms.site.watching.lrms_figures import LrmsFigures
from grms.site.watching.partner_figures import OTHER, PartnerGauges
from grms.site.watching.process_figures import ProcessFigures
from grms.site.watching.round_figures import RoundFigures
from grms.telemetry.payloads import JobStateName
from lrms_sim.version import __version__

Answer = Literal["accept", "decline", "unknown"]
"""What came of an offer; `unknown` until it is resolved: no answer in time, or a broken link."""

Decision = Literal["keep", "offer"]
"""What a site's policy wants with a job of its own users."""

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
    "submissions_rate",
    "offers_rate",
    "watchers",
    "slow_watchers",
    "connections",
    "partner_connections",
    "negotiations",
    "descriptors",
    "journal",
    "stopping",
]
"""Why a call was refused, in the words of `grms.site.sockets.door`."""

_LATENCY_BUCKETS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_COMMIT_BUCKETS_S = (0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 1.0, 5.0)


_CALL_BUCKETS_S = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
_JOB_BUCKETS_S = (1, 10, 60, 300, 900, 3600, 4 * 3600, 12 * 3600, 86400, 3 * 86400, 7 * 86400)

_ONLY_COLLECTED = frozenset(
    {
        "hanse_exchange_awrt_seconds",
        "hanse_exchange_wait_seconds",
        "hanse_exchange_work_seconds",
        "hanse_guard_gain_ratio",
        "hanse_guard_stops",
        "hanse_partner_awrt_seconds",
        "hanse_partner_breaches",
        "hanse_partner_credit_seconds",
        "hanse_partner_open_jobs",
        "hanse_partner_suspended",
    }
)

JobKind = Literal["home", "delegated", "guest"]
"""Whose a job is and where it runs: own users' here, own users' at a partner, a partner's here."""


class _Total:
    """A counter that somebody else keeps; asked for whenever Prometheus collects."""

    def __init__(self, name: str, text: str, read: Callable[[], float]) -> None:
        self._name, self._text, self._read = name, text, read

    def collect(self) -> Iterator[Metric]:
        """Yields the counter."""
        yield CounterMetricFamily(self._name, self._text, value=self._read())


class SiteMetrics:
    """Everything that a site counts.

    The methods are called from the event loop and cost a microsecond or so; the endpoint reads
    from a thread of its own.

    Args:
        partners: the allow-list; others are counted together.

    Attributes:
        registry: what Prometheus collects.
        lrms: the figures of the batch system.
        partners: the figures of how partners are.
        rounds: the figures of rounds of offers.
    """

    def __init__(self, partners: Iterable[str] = ()) -> None:
        self.registry = CollectorRegistry(auto_describe=True)
        self.partners = PartnerGauges(self.registry, partners)
        self._jobs = self._gauge("hanse_jobs", "Jobs of own users by state.", ("state",))
        self._own = self._counter(
            "hanse_own_decisions_total", "What the policy wanted with own jobs.", ("decision",)
        )
        self._sent = self._counter(
            "hanse_offers_sent_total", "Offers to partners by their answer.", ("partner", "answer")
        )
        self._received = self._counter(
            "hanse_offers_received_total", "Partners' offers by answer.", ("partner", "answer")
        )
        self._undone = self._counter(
            "hanse_jobs_undone_total",
            "Jobs that a partner has sent back undone, or that were sent back to it.",
            ("partner", "whose"),
        )
        self._offer_latency = Histogram(
            "hanse_offer_latency_seconds",
            "From an offer to its answer.",
            ("partner",),
            registry=self.registry,
            buckets=_LATENCY_BUCKETS_S,
        )
        self._refusals = self._counter(
            "hanse_refusals_total", "Calls that were refused, by reason.", ("reason",)
        )
        self._handshakes = self._counter(
            "hanse_handshakes_failed_total",
            "TLS handshakes at the port of partners that failed, by reason.",
            ("reason",),
        )
        self._commit_latency = Histogram(
            "hanse_journal_commit_seconds",
            "One commit of the journal.",
            registry=self.registry,
            buckets=_COMMIT_BUCKETS_S,
        )
        self._draining = self._gauge("hanse_draining", "1 while no work is taken.")
        self._watch_site()
        for state in get_args(JobStateName):
            self._jobs.labels(state)
        for reason in get_args(RefusalReason):
            self._refusals.labels(reason)
        for handshake in Handshake:
            self._handshakes.labels(handshake)
        for decision in get_args(Decision):
            self._own.labels(decision)

    def _watch_site(self) -> None:
        """Makes the figures of batch system, jobs, calls, journal and process."""
        self.lrms = LrmsFigures(self.registry)
        self.rounds = RoundFigures(self.registry)
        self._waits = self._job_times("hanse_job_wait_seconds", "From submission to start.")
        self._responses = self._job_times("hanse_job_response_seconds", "From submission to end.")
        self._ends = self._counter("hanse_jobs_ended_total", "Own jobs that ended.", ("outcome",))
        self._exchange_awrt = self._gauge(
            "hanse_exchange_awrt_seconds", "Of own users' jobs of a week.", ("users",)
        )
        self._exchange_wait = self._gauge(
            "hanse_exchange_wait_seconds", "Mean wait of own users' jobs of a week.", ("users",)
        )
        self._exchange_work = self._gauge(
            "hanse_exchange_work_seconds",
            "Processor seconds of a week's jobs, given and taken.",
            ("partner", "way"),
        )
        self._calls = Histogram(
            "hanse_call_seconds",
            "Calls that were answered, in whatever way, by method.",
            ("method",),
            registry=self.registry,
            buckets=_CALL_BUCKETS_S,
        )
        self._journal_bytes = self._gauge("hanse_journal_bytes", "The journal on the disk.")
        self._journal_records = self._gauge("hanse_journal_records", "Records in the journal.")
        build = self._gauge(
            "hanse_build_info", "1; the labels say what runs.", ("version", "python")
        )
        build.labels(__version__, platform.python_version()).set(1)
        ProcessFigures(registry=self.registry)

    # --- what the daemon tells ---------------------------------------------------------------

    def job_moved(self, before: JobStateName | None, after: JobStateName | None) -> None:
        """Counts a job from one state to another; None where it begins or is forgotten."""
        if before is not None:
            self._jobs.labels(before).dec()
        if after is not None:
            self._jobs.labels(after).inc()

    def set_jobs(self, counts: Mapping[JobStateName, int]) -> None:
        """Sets how many jobs there are in each state, after a restart; 0 where it is not said."""
        for state in get_args(JobStateName):
            self._jobs.labels(state).set(counts.get(state, 0))

    def set_jobs_ended(self, count: int) -> None:
        """Sets how many jobs have ended and are remembered."""
        self._jobs.labels("ended").set(count)

    def own_decision(self, decision: Decision) -> None:
        """Counts what the policy wanted with a job of own users."""
        self._own.labels(decision).inc()

    def offer_sent(self, partner: str, answer: Answer, latency_s: float) -> None:
        """Counts a partner's answer to an offer, and the time it took in seconds."""
        label = self.partners.label(partner)
        self._sent.labels(label, answer).inc()
        self._offer_latency.labels(label).observe(latency_s)

    def offer_received(self, partner: str, answer: Literal["accept", "decline"]) -> None:
        """Counts the answer to a partner's offer."""
        self._received.labels(self.partners.label(partner), answer).inc()

    def undone(self, partner: str, whose: Literal["own", "guest"]) -> None:
        """Counts a job that went home undone: an own one from a partner, or a partner's from here."""
        self._undone.labels(self.partners.label(partner), whose).inc()

    def refused(self, reason: str) -> None:
        """Counts a call that was refused; the reason is a `RefusalReason`."""
        self._refusals.labels(reason if reason in get_args(RefusalReason) else OTHER).inc()

    def handshake_failed(self, handshake: Handshake) -> None:
        """Counts a TLS handshake that failed."""
        self._handshakes.labels(handshake).inc()

    def journal_committed(self, latency_s: float) -> None:
        """Takes note of how long a commit of the journal took, in seconds."""
        self._commit_latency.observe(latency_s)

    def set_partners(self, partners: Iterable[str]) -> None:
        """Replaces the allow-list; what was counted of others stays."""
        self.partners.set_partners(partners)

    def watch_certificate(self, end: Callable[[], float]) -> None:
        """Lets the end of the site's certificate be asked for whenever Prometheus collects.

        Without it there is no such figure, so that a site without TLS raises no alarm.

        Args:
            end: in seconds since 1970; nan where it cannot be told.
        """
        self._gauge(
            "hanse_certificate_end_timestamp_seconds", "When the site's certificate ends."
        ).set_function(end)

    def job_started(self, kind: JobKind, wait_time: float) -> None:
        """Takes note of how long a job has waited, in seconds of the site's clock."""
        self._waits.labels(kind).observe(wait_time)

    def job_ended(self, kind: JobKind, response_time: float) -> None:
        """Takes note of how long a job took from submission to end, in seconds of the site's clock."""
        self._responses.labels(kind).observe(response_time)

    def own_job_ended(self, outcome: str) -> None:
        """Counts the end of an own user's job."""
        self._ends.labels(outcome).inc()

    def set_exchange(self, own: Compared, works: Mapping[str, tuple[float, float]]) -> None:
        """Sets what exchange has brought; a mean of no jobs is `NaN`.

        Args:
            own: own users' jobs, with exchange and alone.
            works: given to each partner and taken from it, processor seconds.
        """
        for gauge, users, value in (
            (self._exchange_awrt, "with_partners", own.awrt),
            (self._exchange_awrt, "alone", own.awrt_alone),
            (self._exchange_wait, "with_partners", own.mean_wait),
            (self._exchange_wait, "alone", own.mean_wait_alone),
        ):
            gauge.labels(users).set(value)
        self._exchange_work.clear()
        for partner, (given, taken) in works.items():
            label = self.partners.label(partner)
            self._exchange_work.labels(label, "given").inc(given)
            self._exchange_work.labels(label, "taken").inc(taken)

    def call_answered(self, method: str, latency_s: float) -> None:
        """Takes note of how long a call took, in seconds; the methods are those that there are."""
        self._calls.labels(method.lstrip("/")).observe(latency_s)

    def set_journal(self, *, size_bytes: int, records: int) -> None:
        """Sets how long the journal is."""
        self._journal_bytes.set(size_bytes)
        self._journal_records.set(records)

    def set_draining(self, *, draining: bool) -> None:
        """Sets whether the site takes no work."""
        self._draining.set(draining)

    def watch_telemetry(
        self,
        *,
        connected: Callable[[], bool],
        outbox_length: Callable[[], int],
        dropped: Callable[[], int],
    ) -> None:
        """Lets three figures be asked for whenever Prometheus collects; call it once.

        Args:
            connected: whether there is a connection to the MQTT broker.
            outbox_length: how many messages wait for it.
            dropped: how many job events were never published.
        """
        for name, text, read in (
            ("hanse_mqtt_connected", "1 while there is a connection to the broker.", connected),
            ("hanse_mqtt_outbox_length", "Messages that wait for the broker.", outbox_length),
        ):
            self._gauge(name, text).set_function(read)
        total = _Total(
            "hanse_mqtt_events_dropped", "Job events that were never published.", dropped
        )
        self.registry.register(total)

    def values(self) -> dict[str, float]:
        """Returns every figure by its name and labels, as the MQTT topic for operators has them.

        Of histograms it has count and sum, not the buckets; how partners do is Prometheus's alone,
        as a message has room for so many figures.
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

    def _job_times(self, name: str, text: str) -> Histogram:
        return Histogram(name, text, ("kind",), registry=self.registry, buckets=_JOB_BUCKETS_S)

    def _gauge(self, name: str, text: str, labels: tuple[str, ...] = ()) -> Gauge:
        return Gauge(name, text, labels, registry=self.registry)

    def _counter(self, name: str, text: str, labels: tuple[str, ...] = ()) -> Counter:
        return Counter(name, text, labels, registry=self.registry)
