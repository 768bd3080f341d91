"""All telemetry of a daemon, put together: the one thing it has to open, run and stop.

async with TelemetryService(settings, …) as telemetry:
    group.create_task(telemetry.run(), name="telemetry")
    …
    telemetry.job_changed(change)
    …
    telemetry.stop()
"""

import asyncio
import math
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np
import structlog

from grms.names import Endpoint
from grms.site.configuration.config import WATCHER
from grms.site.watching.discovery import Discovery, PartnerChange
from grms.site.watching.metrics import SiteMetrics
from grms.site.watching.metrics_endpoint import MetricsEndpoint, MetricsSettings
from grms.site.watching.telemetry import OUTBOX_EVENTS_MAX, JobChange, SiteTelemetry, connect_site
from grms.telemetry.link import MqttLink, MqttSettings

WATCHER_FILE_END = ".watch.json"
"""In the daemon's folder, after the site's name: how to watch its own MQTT broker."""


@dataclass(frozen=True, slots=True)
class TelemetrySettings:
    """What a daemon publishes, and where.

    Attributes:
        site: its name.
        instance: names this start of the daemon; another one after each.
        folder: the daemon's own, for the file that says how to watch.
        endpoint: where partners reach it; None where they do not.
        mqtt: the MQTT broker; None for one inside the daemon, or none.
        embedded: where the one inside the daemon listens, port 0 for any free one; None for none.
        metrics: where Prometheus collects; None for nowhere.
        metrics_every_s: how often figures are published for operators, seconds.
        outbox_events_max: how many job events wait for the broker.

    Raises:
        ValueError: a bound is violated.
    """

    site: str
    instance: str
    folder: Path
    endpoint: Endpoint | None = None
    mqtt: MqttSettings | None = None
    embedded: tuple[str, int] | None = None
    metrics: MetricsSettings | None = None
    metrics_every_s: float = 10.0
    outbox_events_max: int = OUTBOX_EVENTS_MAX

    def __post_init__(self) -> None:
        """Checks the bounds."""
        if not 0 < self.metrics_every_s < math.inf:
            raise ValueError(
                f"metrics_every_s is {self.metrics_every_s}; it must be finite and more than 0"
            )


class TelemetryService:
    """Everything of telemetry that a daemon runs.

    Args:
        settings: what and where.
        partners: the allow-list with the endpoints that are configured.
        partner_changed: is told on the event loop when a partner appears, moves or vanishes.
        metrics: the site's figures.
        now: tells the time of the site's clock, seconds.
        rng: where the chance in pauses comes from.
        log: where events go.

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
        partner_changed: Callable[[PartnerChange], None],
        metrics: SiteMetrics,
        now: Callable[[], float],
        rng: np.random.Generator,
        log: structlog.typing.FilteringBoundLogger,
    ) -> None:
        self.discovery = Discovery(settings.site, partners)
        self.metrics_port = 0
        self._settings = settings
        self._metrics = metrics
        self._now = now
        self._rng = rng
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
                    rng=self._rng,
                    log=self._log,
                )
            self._metrics.watch_telemetry(
                connected=lambda: self.connected,
                outbox_length=lambda: self._telemetry.outbox_length,
                dropped=lambda: self._telemetry.dropped,
            )
            if self._settings.metrics is not None:
                endpoint = MetricsEndpoint(self._metrics, self._settings.metrics)
                self.metrics_port = stack.enter_context(endpoint).port
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Closes what was opened."""
        await self._stack.aclose()

    async def run(self) -> None:
        """Publishes until `stop` is called or this task is cancelled; never fails for MQTT."""
        if self._link is None:
            await self._stopping.wait()
            return
        async with asyncio.TaskGroup() as group:
            group.create_task(self._link.run(), name="mqtt")
            while not self._stopping.is_set():
                self._telemetry.metrics_changed(self._now(), self._metrics.values())
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._stopping.wait(), self._settings.metrics_every_s)
            self._link.stop()

    def stop(self) -> None:
        """Lets `run` end after what waits has been published, if there is a broker."""
        self._stopping.set()

    def job_changed(self, change: JobChange) -> None:
        """Publishes what has become of a job; never waits and never raises."""
        if self._link is not None:
            self._telemetry.job_changed(change)

    def set_partners(self, partners: Mapping[str, Endpoint | None]) -> None:
        """Replaces the allow-list, and looks again for those who are new on it.

        Raises:
            ValueError: a name is none, or the site is its own partner.
        """
        self.discovery.set_partners(partners)
        self._metrics.set_partners(partners)
        if self._link is not None:
            self._link.subscribe_again()

    async def _own_broker(self, stack: AsyncExitStack, host: str, port: int) -> MqttSettings:
        # What it needs (`hanse[mqtt]`) is not installed where a site has a broker elsewhere, or none.
        from grms.site.watching.embedded_mqtt import (  # noqa: PLC0415  # as above
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
