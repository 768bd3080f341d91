"""What a daemon opens, runs and stops for those who watch it: figures, MQTT and, back, addresses of partners.

async with observer:
    group.create_task(observer.run(), name="telemetry")
    …
    await observer.stop()

Nothing here decides, waits or fails for the rest of the daemon: an error of telemetry is logged,
and the site goes on without it.
"""

import asyncio
import math
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Final, Self

import numpy as np
import structlog

from grms.daemon.loop import EngineFailedError
from grms.daemon.mqtt.link import MqttLink, MqttSettings
from grms.security.certificates import PkiError
from grms.security.files import read_certificates
from grms.site.config.schema import WATCHER, SiteConfig
from grms.site.monitoring.discovery import Discovery, PartnerAppeared
from grms.site.monitoring.metrics import SiteMetrics
from grms.site.monitoring.metrics_endpoint import MetricsEndpoint
from grms.site.monitoring.metrics_updates import JobChanges, MetricsUpdates, sample
from grms.site.monitoring.mqtt_settings import TelemetrySettings, endpoints, telemetry_settings
from grms.site.monitoring.subscriber import Guarded, Handled, Subscriber
from grms.site.monitoring.telemetry import JobChange, SiteTelemetry, connect_site
from grms.site.peers.peers import PeerClients
from grms.site.runtime.event_loop import Engine
from grms.site.runtime.journal import Journal
from grms.util.names import Endpoint

Log = structlog.typing.FilteringBoundLogger

SAMPLE_S: Final = 5.0
"""Interval of reading figures without an event of their own, seconds."""

FAREWELL_S: Final = 3.0
"""Time for the last messages of an ending daemon, seconds."""

WATCHER_FILE_END: Final = ".watch.json"
"""File in the daemon's folder, after the site's name: how to watch its own MQTT broker."""


class Monitor:
    """What a daemon has for those who watch it.

    Args:
        partners: the allow-list with the endpoints that are configured.
        partner_changed: called on the event loop when a partner appears or moves.
        now: tells the time of the site's clock, seconds.
        sample: reads the figures that change without an event of their own.

    Attributes:
        discovery: what is known of partners' addresses.
        metrics_port: where Prometheus collects, once it is entered; 0 for nowhere.

    Raises:
        ValueError: a name is none, or a bound is violated.
    """

    def __init__(
        self,
        settings: TelemetrySettings,
        *,
        partners: Mapping[str, Endpoint | None],
        partner_changed: Callable[[PartnerAppeared], None],
        metrics: SiteMetrics,
        now: Callable[[], float],
        log: Log,
        sample: Callable[[], None] = lambda: None,
    ) -> None:
        self.metrics = metrics
        self.discovery = Discovery(settings.site, partners)
        self.metrics_port = 0
        self.sample = sample
        self._settings = settings
        self._now = now
        self._log = log
        self._partner_changed = partner_changed
        self._telemetry = SiteTelemetry(
            site=settings.site,
            instance=settings.instance,
            endpoint=settings.endpoint,
            log=log,
            events_max=settings.outbox_events_max,
        )
        self._link: MqttLink | None = None
        self._stopping = asyncio.Event()
        self._ended = asyncio.Event()
        self._stack = AsyncExitStack()

    @property
    def connected(self) -> bool:
        """Whether there is a connection to the MQTT broker."""
        return self._link is not None and self._link.connected

    async def __aenter__(self) -> Self:
        """Opens what listens: the MQTT broker, if it is ours, and the Prometheus endpoint.

        Raises:
            EmbeddedBrokerError: its address is taken.
            MetricsError: the endpoint's address is taken.
            OSError: the file that says how to watch cannot be written.
        """
        async with AsyncExitStack() as stack:
            mqtt = self._settings.mqtt
            if mqtt is None and self._settings.embedded is not None:
                mqtt = await self._own_broker(stack, *self._settings.embedded)
            if mqtt is not None:
                self._link = connect_site(
                    mqtt,
                    self._telemetry,
                    self.discovery,
                    self._partner_changed,
                    rng=np.random.default_rng(),
                    log=self._log,
                )
            self.metrics.watch_telemetry(
                connected=lambda: self.connected,
                outbox_length=lambda: self._telemetry.outbox_length,
                dropped=lambda: self._telemetry.dropped,
            )
            if self._settings.metrics is not None:
                endpoint = MetricsEndpoint(self.metrics, self._settings.metrics)
                self.metrics_port = stack.enter_context(endpoint).port
            self._stack = stack.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def run(self) -> None:
        """Publishes until `stop`; whatever happens to telemetry, the daemon goes on."""
        sampling = asyncio.create_task(self._sample(), name="figures")
        try:
            await self._publish()
        except Exception as error:  # noqa: BLE001  # work goes on without telemetry
            self._log.error("telemetry_failed", exc_info=error)
        finally:
            sampling.cancel()
            self._ended.set()

    async def _publish(self) -> None:
        if self._link is None:
            await self._stopping.wait()
            return
        async with asyncio.TaskGroup() as group:
            group.create_task(self._link.run(), name="mqtt")
            while not self._stopping.is_set():
                self._telemetry.metrics_changed(self._now(), self.metrics.values())
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._stopping.wait(), self._settings.metrics_every_s)
            self._link.stop()

    async def _sample(self) -> None:
        while True:  # waits for time, not for an event
            try:
                self.sample()
            except EngineFailedError:
                return  # the daemon ends
            except Exception as error:  # noqa: BLE001  # as above
                self._log.error("telemetry_failed", exc_info=error)
            await asyncio.sleep(SAMPLE_S)

    async def stop(self) -> None:
        """Ends `run`, and waits a short while for the last messages if there is a connection."""
        self._stopping.set()
        if not self.connected:
            return  # nobody is there to be told
        try:
            await asyncio.wait_for(self._ended.wait(), FAREWELL_S)
        except TimeoutError:
            self._log.warning("telemetry_unfinished", seconds=FAREWELL_S)

    def job_changed(self, change: JobChange) -> None:
        """Publishes what has become of a job; never waits and never raises."""
        if self._link is not None:
            self._telemetry.job_changed(change)

    def set_partners(self, partners: Mapping[str, Endpoint | None]) -> None:
        """Replaces the allow-list, and looks again for new partners.

        Raises:
            ValueError: a name is none, or the site is its own partner.
        """
        self.discovery.set_partners(partners)
        self.metrics.partners.set_partners(partners)
        if self._link is not None:
            self._link.subscribe_again()

    def reloaded(self, config: SiteConfig) -> None:
        """Takes the partners of another configuration, and looks for those that are new."""
        self.set_partners(endpoints(config))

    async def _own_broker(self, stack: AsyncExitStack, host: str, port: int) -> MqttSettings:
        # What it needs (`hanse[mqtt]`) is not installed where a site has a broker elsewhere, or none.
        from grms.site.monitoring.embedded_mqtt import (  # noqa: PLC0415  # as above
            EmbeddedBroker,
            new_password,
            site_account,
            watcher_account,
            write_watcher_file,
        )

        settings = self._settings
        accounts = {
            settings.site: site_account(settings.site, new_password()),
            WATCHER: watcher_account(new_password()),
        }
        if settings.site == WATCHER:
            raise ValueError(f"a site called {WATCHER!r} needs an MQTT broker of its own")
        broker = await stack.enter_async_context(EmbeddedBroker(accounts, host=host, port=port))
        path = settings.folder / f"{settings.site}{WATCHER_FILE_END}"
        write_watcher_file(broker, path)
        stack.callback(lambda: path.unlink(missing_ok=True))
        self._log.info("mqtt_embedded", port=broker.port, watch=str(path))
        return broker.settings(settings.site)


def site_metrics(config: SiteConfig) -> SiteMetrics:
    """Returns the figures of a site, before anything has happened."""
    metrics = SiteMetrics([partner.name for partner in config.partners])
    if config.tls is not None:
        metrics.watch_certificate(partial(certificate_end, Path(config.tls.certificate)))
    return metrics


def observe(
    config: SiteConfig,
    metrics: SiteMetrics,
    subscriber: Subscriber,
    engine: Engine,
    *,
    links: PeerClients,
    journal: Journal,
    log: Log,
) -> Monitor:
    """Returns a daemon's observer; from now on figures follow what happens.

    Links are moved to the addresses that partners announce.

    Raises:
        ConfigError: the file with the password is unusable.
    """
    state = engine.state
    monitor = Monitor(
        telemetry_settings(config, log),
        partners=endpoints(config),
        partner_changed=partial(_partner_changed, config, links, log),
        metrics=metrics,
        now=engine.clock.now,
        log=log,
        sample=partial(sample, metrics, engine, journal, config),
    )
    outputs = Guarded(subscriber, lambda error: log.error("telemetry_failed", exc_info=error))
    MetricsUpdates(outputs, metrics, state)
    JobChanges(outputs, state, engine.clock.now)

    def publish(change: JobChange, _: Handled) -> None:
        # As the job is now, once that is durable.
        engine.after(partial(monitor.job_changed, change))

    outputs.on(JobChange, publish)
    return monitor


def _partner_changed(
    config: SiteConfig, links: PeerClients, log: Log, change: PartnerAppeared
) -> None:
    if config.tls is None and not change.endpoint.is_loopback:
        # Without certificates anybody could be there.
        address = str(change.endpoint)
        log.warning("partner_address_ignored", partner=change.partner, address=address)
        return
    links.move(change.partner, str(change.endpoint))


def certificate_end(path: Path) -> float:
    """Returns when a certificate file expires, seconds since 1970; NaN if it is unreadable."""
    try:
        return read_certificates(path)[0].not_valid_after_utc.timestamp()
    except (PkiError, OSError):
        return math.nan
