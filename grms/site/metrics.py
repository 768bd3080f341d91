"""A site's figures for its operators, in the form that Prometheus collects.

They say how busy a site is, so they are served on a loopback address alone. A certificate of the
federation would be no protection: partners have one, and they are the last to be told. Labels take
names from fixed lists, so that nobody outside can make the figures grow.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from threading import Thread
from types import TracebackType
from typing import Literal, Self, get_args
from wsgiref.simple_server import WSGIServer

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, start_http_server

from grms.names import PORT_MAX, is_loopback
from grms.telemetry.payloads import JobStateName

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
    "invalid",
    "not_found",
    "forbidden",
    "precondition",
    "exhausted",
    "unavailable",
    "submissions_rate",
    "offers_rate",
    "watchers",
    "slow_watchers",
    "connections",
    "journal",
    "stopping",
]
"""Why a call was refused, in the words of `grms.site.door`."""

OTHER = "other"
"""The label for a partner that is on no list."""

_LATENCY_BUCKETS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_COMMIT_BUCKETS_S = (0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 1.0, 5.0)


class SiteMetrics:
    """Everything that a site counts.

    The methods are called from the event loop and cost a microsecond or so; the endpoint reads
    from a thread of its own.

    Args:
        partners: the allow-list; others are counted together.

    Attributes:
        registry: what Prometheus collects.
    """

    def __init__(self, partners: Iterable[str] = ()) -> None:
        self.registry = CollectorRegistry(auto_describe=True)
        self._partners = frozenset(partners)
        self._jobs = self._gauge("hanse_jobs", "Jobs of own users by state.", ("state",))
        self._guests = self._gauge("hanse_guest_jobs", "Partners' jobs here.", ("partner",))
        self._own = self._counter(
            "hanse_own_decisions_total", "What the policy wanted with own jobs.", ("decision",)
        )
        self._sent = self._counter(
            "hanse_offers_sent_total", "Offers to partners by their answer.", ("partner", "answer")
        )
        self._received = self._counter(
            "hanse_offers_received_total", "Partners' offers by answer.", ("partner", "answer")
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
        self._commit_latency = Histogram(
            "hanse_journal_commit_seconds",
            "One commit of the journal.",
            registry=self.registry,
            buckets=_COMMIT_BUCKETS_S,
        )
        self._reachable = self._gauge(
            "hanse_partner_reachable", "1 where a partner answers.", ("partner",)
        )
        self._draining = self._gauge("hanse_draining", "1 while no work is taken.")
        for state in get_args(JobStateName):
            self._jobs.labels(state)
        for reason in get_args(RefusalReason):
            self._refusals.labels(reason)
        for decision in get_args(Decision):
            self._own.labels(decision)

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

    def set_guests(self, partner: str, count: int) -> None:
        """Sets how many jobs of a partner are here and have not ended."""
        self._guests.labels(self._label(partner)).set(count)

    def own_decision(self, decision: Decision) -> None:
        """Counts what the policy wanted with a job of own users."""
        self._own.labels(decision).inc()

    def offer_sent(self, partner: str, answer: Answer, latency_s: float) -> None:
        """Counts a partner's answer to an offer, and the time it took in seconds."""
        label = self._label(partner)
        self._sent.labels(label, answer).inc()
        self._offer_latency.labels(label).observe(latency_s)

    def offer_received(self, partner: str, answer: Literal["accept", "decline"]) -> None:
        """Counts the answer to a partner's offer."""
        self._received.labels(self._label(partner), answer).inc()

    def refused(self, reason: str) -> None:
        """Counts a call that was refused; the reason is a `RefusalReason`."""
        self._refusals.labels(reason if reason in get_args(RefusalReason) else OTHER).inc()

    def journal_committed(self, latency_s: float) -> None:
        """Takes note of how long a commit of the journal took, in seconds."""
        self._commit_latency.observe(latency_s)

    def set_partners(self, partners: Iterable[str]) -> None:
        """Replaces the allow-list; what was counted of others stays."""
        self._partners = frozenset(partners)

    def set_reachable(self, partner: str, *, reachable: bool) -> None:
        """Sets whether a partner answers."""
        self._reachable.labels(self._label(partner)).set(reachable)

    def watch_certificate(self, end: Callable[[], float]) -> None:
        """Lets the end of the site's certificate be asked for whenever Prometheus collects.

        Without it there is no such figure, so that a site without TLS raises no alarm.

        Args:
            end: in seconds since 1970; nan where it cannot be told.
        """
        self._gauge(
            "hanse_certificate_end_timestamp_seconds", "When the site's certificate ends."
        ).set_function(end)

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
            ("hanse_mqtt_events_dropped", "Job events that were never published.", dropped),
        ):
            self._gauge(name, text).set_function(read)

    def values(self) -> dict[str, float]:
        """Returns every figure by its name and labels, as the MQTT topic for operators has them.

        Of histograms it has count and sum, not the buckets.
        """
        found = {}
        for family in self.registry.collect():
            for sample in family.samples:
                if sample.name.endswith(("_bucket", "_created")) or not math.isfinite(sample.value):
                    continue
                labels = ",".join(f'{key}="{value}"' for key, value in sample.labels.items())
                found[f"{sample.name}{{{labels}}}" if labels else sample.name] = sample.value
        return found

    def _label(self, partner: str) -> str:
        return partner if partner in self._partners else OTHER

    def _gauge(self, name: str, text: str, labels: tuple[str, ...] = ()) -> Gauge:
        return Gauge(name, text, labels, registry=self.registry)

    def _counter(self, name: str, text: str, labels: tuple[str, ...] = ()) -> Counter:
        return Counter(name, text, labels, registry=self.registry)


class MetricsError(OSError):
    """The endpoint cannot be started; the text says why and what to do."""


@dataclass(frozen=True, slots=True)
class MetricsSettings:
    """Where Prometheus collects.

    Attributes:
        host: a loopback address.
        port: 0 for any free one.

    Raises:
        ValueError: the port is none, or the host is not loopback.
    """

    host: str = "127.0.0.1"
    port: int = 9464

    def __post_init__(self) -> None:
        """Checks the address."""
        if not 0 <= self.port <= PORT_MAX:
            raise ValueError(f"port is {self.port}; it must be 0 to {PORT_MAX}")
        if not is_loopback(self.host):
            raise ValueError(
                f"metrics on {self.host!r} would tell others how busy this site is; use a "
                "loopback address, and a proxy that asks for a password if need be"
            )


class MetricsEndpoint:
    """Serves a site's figures over HTTP as long as it is entered.

    Args:
        metrics: what to serve.
        settings: where.

    Attributes:
        port: where it listens, once it is entered.
    """

    def __init__(self, metrics: SiteMetrics, settings: MetricsSettings) -> None:
        self.port = settings.port
        self._metrics = metrics
        self._settings = settings
        self._running: tuple[WSGIServer, Thread] | None = None

    def __enter__(self) -> Self:
        """Starts listening, in a thread of its own.

        Raises:
            MetricsError: the address is taken.
        """
        settings = self._settings
        try:
            self._running = start_http_server(settings.port, settings.host, self._metrics.registry)
        except OSError as error:
            raise MetricsError(
                f"metrics cannot be served on {settings.host}:{settings.port}: "
                f"{error.strerror or error}; configure another address"
            ) from error
        self.port = self._running[0].server_port
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stops listening."""
        assert self._running is not None
        server, thread = self._running
        server.shutdown()
        server.server_close()
        thread.join()
