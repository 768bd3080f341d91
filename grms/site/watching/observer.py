"""Sees what happens at a site, and tells those who watch it: figures, MQTT and, back, addresses.

Nothing here decides, waits or fails for the rest of the daemon: an error of telemetry is logged,
and the site goes on without it.
"""

import asyncio
import math
import secrets
import time
from collections import Counter
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Final, Self, cast

import numpy as np
import structlog

from grms.names import Endpoint, parse_endpoint
from grms.pki.certificates import PkiError
from grms.pki.files import read_certificates
from grms.site.configuration.config import MqttConfig, SiteConfig
from grms.site.configuration.files import ConfigError
from grms.site.engine.engine import Engine, EngineFailedError
from grms.site.engine.journal import Journal
from grms.site.facts.commands import AnswerOffer, Append, Command, Publish, SendOffer
from grms.site.facts.events import (
    Drain,
    Event,
    LrmsAppeared,
    LrmsLost,
    LrmsRequeued,
    OfferAnswered,
    OfferFailed,
    OfferReceived,
    PartnerDown,
    PartnerUp,
    Restarted,
    Resume,
)
from grms.site.facts.jobs import HomeJob, OfferId
from grms.site.facts.lifecycle import WAITING, GuestState, JobState
from grms.site.facts.records import (
    GuestAccepted,
    GuestEnded,
    GuestStarted,
    JobEnded,
    JobKept,
    JobOffered,
    JobStarted,
    Record,
)
from grms.site.links.partner_links import PartnerLinks
from grms.site.watching.discovery import PartnerAppeared, PartnerChange
from grms.site.watching.metrics import Answer, JobKind, MetricsSettings, SiteMetrics, Surprise
from grms.site.watching.telemetry import JobChange
from grms.site.watching.telemetry_service import TelemetryService, TelemetrySettings
from grms.telemetry.link import MqttSettings
from grms.telemetry.payloads import JobStateName, OutcomeName
from grms.tls import TlsFiles

SAMPLE_S: Final = 5.0
"""How often figures that have no event of their own are read, seconds."""

FAREWELL_S: Final = 3.0
"""How long an ending daemon lets the last messages go out, seconds."""

_SURPRISES: Final[dict[type[Event], Surprise]] = {
    LrmsLost: "lost",
    LrmsRequeued: "requeued",
    LrmsAppeared: "appeared",
}
"""Events of what a batch system does by itself."""

_GUEST_OPEN = {GuestState.ACCEPTED, GuestState.SUBMITTED, GuestState.RUNNING}


def mqtt_settings(mqtt: MqttConfig, tls: TlsFiles | None) -> MqttSettings | None:
    """Returns where the MQTT broker is; None for the daemon's own.

    Args:
        mqtt: the configuration's part.
        tls: the site's keys.

    Raises:
        ConfigError: the file with the password cannot be used.
    """
    if mqtt.address is None:
        return None
    password = None
    if mqtt.password_file is not None:
        try:
            password = Path(mqtt.password_file).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            text = f"mqtt.password_file {mqtt.password_file}: cannot be read: {error}"
            raise ConfigError(text) from error
    endpoint = parse_endpoint(mqtt.address)
    return MqttSettings(
        endpoint.host,
        endpoint.port,
        mqtt.username,
        password,
        tls if mqtt.tls else None,
    )


def telemetry_settings(
    config: SiteConfig, log: structlog.typing.FilteringBoundLogger
) -> TelemetrySettings:
    """Returns what a daemon publishes, and where.

    Args:
        config: of the site.
        log: where events go.

    Raises:
        ConfigError: the file with the password cannot be used.
    """
    mqtt = config.mqtt or MqttConfig()
    endpoint = config.listen.endpoint
    if endpoint is not None and endpoint.is_unspecified:
        log.warning("presence_without_address", listen=str(endpoint), wanted="a name or address")
        endpoint = None
    metrics = None
    if config.metrics is not None:
        listen = parse_endpoint(config.metrics.listen)
        metrics = MetricsSettings(listen.host, listen.port)
    return TelemetrySettings(
        site=config.name,
        instance=secrets.token_hex(8),
        folder=Path(config.journal.path).parent,
        endpoint=endpoint,
        mqtt=mqtt_settings(mqtt, _tls_files(config)) if config.publishes else None,
        embedded=("127.0.0.1", 0) if config.publishes else None,
        metrics=metrics,
        outbox_events_max=mqtt.outbox,
    )


def _tls_files(config: SiteConfig) -> TlsFiles | None:
    tls = config.tls
    if tls is None:
        return None
    return TlsFiles(Path(tls.authority), Path(tls.certificate), Path(tls.key))


def _endpoints(config: SiteConfig) -> dict[str, Endpoint | None]:
    return {
        partner.name: None if partner.address is None else parse_endpoint(partner.address)
        for partner in config.partners
    }


class Observer:
    """What a daemon has for those who watch it.

    Enter it to open what listens; `run` publishes.

    Args:
        config: of the site.
        log: where events go.

    Attributes:
        metrics: the site's figures.
        journal: whose size is told; None for none.

    Raises:
        ConfigError: the file with the password cannot be used.
    """

    def __init__(self, config: SiteConfig, log: structlog.typing.FilteringBoundLogger) -> None:
        self._config = config
        self._log = log
        self._settings = telemetry_settings(config, log)
        self.metrics = SiteMetrics([partner.name for partner in config.partners])
        for entry in config.partners:
            self._count_from_nothing(entry.name)
        if (tls := _tls_files(config)) is not None:
            self.metrics.watch_certificate(partial(certificate_end, tls.certificate))
        self._open: dict[str, tuple[JobState, str]] = {}
        self._guests: Counter[str] = Counter()
        self._offered: dict[tuple[str, OfferId], float] = {}
        self._ended = asyncio.Event()
        self._engine: Engine | None = None
        self._links: PartnerLinks | None = None
        self._service: TelemetryService | None = None
        self.journal: Journal | None = None

    def connect(self, engine: Engine, links: PartnerLinks) -> None:
        """Begins to see what happens; before the first event.

        Args:
            engine: whose events are seen.
            links: are moved to the addresses that partners announce.
        """
        self._engine, self._links = engine, links
        self._service = TelemetryService(
            self._settings,
            partners=_endpoints(self._config),
            partner_changed=self.partner_changed,
            metrics=self.metrics,
            now=engine.clock.now,
            rng=np.random.default_rng(),
            log=self._log,
        )
        engine.on_event(self._seen)

    def set_partners(self, config: SiteConfig) -> None:
        """Takes the partners of another configuration, and looks for those that are new."""
        assert self._service is not None
        known = {partner.name for partner in self._config.partners}
        self._config = config
        self._service.set_partners(_endpoints(config))
        for partner in config.partners:
            if partner.name not in known:
                self._count_from_nothing(partner.name)

    def _count_from_nothing(self, partner: str) -> None:
        self.metrics.set_reachable(partner, reachable=False)
        self.metrics.set_guests(partner, 0)

    @property
    def connected(self) -> bool:
        """Whether there is a connection to the MQTT broker."""
        return self._service is not None and self._service.connected

    @property
    def metrics_port(self) -> int:
        """Where Prometheus collects; 0 for nowhere."""
        return 0 if self._service is None else self._service.metrics_port

    async def __aenter__(self) -> Self:
        """Opens the MQTT broker, if it is ours, and the Prometheus endpoint.

        Raises:
            OSError: an address is taken, or the file that says how to watch cannot be written.
        """
        assert self._service is not None
        await self._service.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Closes what was opened."""
        assert self._service is not None
        await self._service.__aexit__(kind, error, trace)

    async def run(self) -> None:
        """Publishes until `stop`; whatever happens to telemetry, the daemon goes on."""
        assert self._service is not None
        sampling = asyncio.create_task(self._sample(), name="figures")
        try:
            await self._service.run()
        except Exception as error:  # noqa: BLE001  # work goes on without telemetry
            self._log.error("telemetry_failed", exc_info=error)
        finally:
            sampling.cancel()
            self._ended.set()

    async def _sample(self) -> None:
        while True:  # waits for time, not for an event
            try:
                self.sample()
            except EngineFailedError:
                return  # the daemon ends
            except Exception as error:  # noqa: BLE001  # as above
                self._log.error("telemetry_failed", exc_info=error)
            await asyncio.sleep(SAMPLE_S)

    def sample(self) -> None:
        """Reads the figures that change without an event of their own."""
        assert self._engine is not None
        engine, metrics = self._engine, self.metrics
        state, now = engine.state, engine.clock.now()
        if self._config.clock.kind != "virtual":  # there only the conductor moves the machine
            waiting = sum(job.state in WAITING for job in state.memory.at_lrms.values())
            waiting += sum(
                job.state is GuestState.SUBMITTED for job in state.memory.at_lrms.values()
            )
            engine.catch_up()
            load = engine.load()
            if load is not None:
                metrics.set_load(load, waiting)
            metrics.set_lrms(
                reachable=load is not None and not state.memory.lrms_away,
                load_age=engine.driver.load_age,
                commands_open=engine.driver.commands_open,
            )
            metrics.set_slips(engine.driver.slips)
        count_open = state.settings.location.count_open
        for partner in state.settings.partners:
            book = state.partners[partner.name]
            awrt = book.awrt(now, count_open=count_open)
            metrics.set_partner(partner.name, awrt_s=awrt, open_jobs=len(book.open))
            metrics.set_promise(
                partner.name,
                suspended=now < book.trust.suspended_until,
                breaches=book.trust.breaches,
                credit=book.trust.credit,
            )
        if self.journal is not None:
            metrics.set_journal(size_bytes=self.journal.size_bytes, records=self.journal.count)

    async def stop(self) -> None:
        """Lets `run` end, and waits a short while for the last messages, if somebody takes them."""
        assert self._service is not None
        self._service.stop()
        if not self.connected:
            return  # nobody is there to be told
        try:
            await asyncio.wait_for(self._ended.wait(), FAREWELL_S)
        except TimeoutError:
            self._log.warning("telemetry_unfinished", seconds=FAREWELL_S)

    # --- what partners announce ----------------------------------------------------------------

    def partner_changed(self, change: PartnerChange) -> None:
        """Moves the link of a partner to where the partner says it is.

        One that has vanished keeps its address, and its link finds out by itself.
        """
        assert self._links is not None
        link = self._links.links.get(change.partner)
        if link is None or not isinstance(change, PartnerAppeared):
            return
        if self._config.tls is None and not change.endpoint.is_loopback:
            # Without certificates anybody could be there.
            address = str(change.endpoint)
            self._log.warning("partner_address_ignored", partner=change.partner, address=address)
            return
        link.move(str(change.endpoint))

    # --- what happens --------------------------------------------------------------------------

    def _seen(self, event: Event, commands: list[Command]) -> None:
        try:
            self._note_event(event)
            for command in commands:
                self._note_command(command, event)
        except Exception as error:  # noqa: BLE001  # the engine would take it for its own
            self._log.error("telemetry_failed", exc_info=error)

    def _note_event(self, event: Event) -> None:
        metrics = self.metrics
        if isinstance(event, OfferAnswered):
            self._answered(event, "accept" if event.accepted else "decline")
        elif isinstance(event, OfferFailed):
            self._answered(event, "unknown")
        elif isinstance(event, PartnerUp | PartnerDown):
            metrics.set_reachable(event.partner, reachable=isinstance(event, PartnerUp))
        elif isinstance(event, Drain | Resume):
            metrics.set_draining(draining=isinstance(event, Drain))
        elif isinstance(event, Restarted):
            self._take_up()
        elif type(event) in _SURPRISES:
            metrics.lrms_surprised(_SURPRISES[type(event)])

    def _note_command(self, command: Command, event: Event) -> None:
        if isinstance(command, Append):
            for record in command.records:
                self._note_record(record, command)
        elif isinstance(command, Publish):
            self._changed(command.job_id)
        elif isinstance(command, SendOffer):
            self._offered[command.partner, command.offer] = time.perf_counter()
        elif isinstance(command, AnswerOffer) and isinstance(event, OfferReceived):
            self.metrics.offer_received(event.partner, "accept" if command.accepted else "decline")

    def _note_record(self, record: Record, append: Append) -> None:
        assert self._engine is not None
        if isinstance(record, JobKept | JobOffered):
            # What the policy wanted is its first answer; those after a refusal are no choice.
            job = self._engine.state.memory.jobs.get(record.job)
            offer = isinstance(record, JobOffered)
            if job is not None and len(job.asked) == int(offer):
                self.metrics.own_decision("offer" if offer else "keep")
        elif isinstance(record, JobStarted):
            job = self._engine.state.memory.jobs[record.job]
            self.metrics.job_started("home", max(0.0, record.start_time - job.submit_time))
        elif isinstance(record, JobEnded):
            self._job_ended(record, append.before.get(record.job))
        elif isinstance(record, GuestStarted):
            guest = self._engine.state.partners[record.partner].guests.get(record.offer)
            if guest is not None:
                self.metrics.job_started("guest", max(0.0, record.start_time - guest.accept_time))
        elif isinstance(record, GuestAccepted | GuestEnded):
            self._guests[record.partner] += 1 if isinstance(record, GuestAccepted) else -1
            self.metrics.set_guests(record.partner, self._guests[record.partner])

    def _job_ended(self, record: JobEnded, before: HomeJob | None) -> None:
        self.metrics.own_job_ended(record.outcome.value)
        if before is None or record.run_time <= 0:
            return  # it never ran
        kind: JobKind = "delegated" if before.partner else "home"
        self.metrics.job_ended(kind, max(0.0, record.end_time - before.submit_time))

    def _answered(self, event: OfferAnswered | OfferFailed, answer: Answer) -> None:
        began = self._offered.pop((event.partner, event.offer), None)
        if began is None or (isinstance(event, OfferFailed) and not event.sent):
            return
        self.metrics.offer_sent(event.partner, answer, time.perf_counter() - began)

    def _take_up(self) -> None:
        """Counts what the journal has left open."""
        assert self._engine is not None
        state = self._engine.state
        for job in state.jobs():
            if job.state is not JobState.ENDED:
                self._open[job.job_id] = (job.shown, job.partner)
        counts = {_name(key): number for key, number in state.job_counts().items()}
        self.metrics.set_jobs(counts)
        for name, book in state.partners.items():
            self._guests[name] = sum(guest.state in _GUEST_OPEN for guest in book.guests.values())
            self.metrics.set_guests(name, self._guests[name])

    def _changed(self, job_id: str) -> None:
        assert self._engine is not None
        assert self._service is not None
        job = self._engine.state.job(job_id)
        if job is None:
            return
        after = (job.shown, job.partner)
        before = self._open.pop(job_id, None)
        if job.state is not JobState.ENDED:
            self._open[job_id] = after
        if before == after:
            return
        jobs = self._engine.state.memory.jobs
        self.metrics.job_moved(
            None if before is None else _name(before[0]),
            None if job.state is JobState.ENDED else _name(job.shown),
        )
        self.metrics.set_jobs_ended(len(jobs) - len(self._open))
        # As the job is now, once that is durable.
        change = job_change(job, self._engine.clock.now())
        self._engine.commit.after(partial(self._service.job_changed, change))


def _name(state: JobState) -> JobStateName:
    # Of the states that are shown.
    return cast("JobStateName", state.value)


def job_change(job: HomeJob, now: float) -> JobChange:
    """Returns what is published of a job.

    Args:
        job: as it is.
        now: on the site's clock, seconds.
    """
    outcome: OutcomeName | None = None if job.outcome is None else job.outcome.value
    return JobChange(now, job.job_id, _name(job.shown), job.partner or None, outcome)


def certificate_end(path: Path) -> float:
    """Returns when a certificate ends, as the file is now, in seconds since 1970.

    Args:
        path: of the certificate.

    Returns:
        The moment; nan where the file cannot be read.
    """
    try:
        return read_certificates(path)[0].not_valid_after_utc.timestamp()
    except (PkiError, OSError):
        return math.nan
