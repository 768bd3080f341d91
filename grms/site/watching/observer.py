"""Sees what happens at a site, and tells those who watch it: figures, MQTT and, back, addresses.

Nothing here decides, waits or fails for the rest of the daemon: an error of telemetry is logged,
and the site goes on without it.
"""

import asyncio
import math
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import numpy as np
import structlog

from grms.pki.certificates import PkiError
from grms.pki.files import read_certificates
from grms.site.configuration.config import SiteConfig
from grms.site.engine.engine import Engine, EngineFailedError
from grms.site.engine.journal import Journal
from grms.site.facts.commands import Command
from grms.site.facts.events import (
    Event,
)
from grms.site.facts.lifecycle import WAITING, GuestState
from grms.site.links.partner_links import PartnerLinks
from grms.site.watching.counting import Counting
from grms.site.watching.discovery import PartnerAppeared, PartnerChange
from grms.site.watching.metrics import SiteMetrics
from grms.site.watching.settings import endpoints, telemetry_settings
from grms.site.watching.telemetry_service import TelemetryService

SAMPLE_S: Final = 5.0
"""How often figures that have no event of their own are read, seconds."""

FAREWELL_S: Final = 3.0
"""How long an ending daemon lets the last messages go out, seconds."""


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
        if config.tls is not None:
            certificate = Path(config.tls.certificate)
            self.metrics.watch_certificate(partial(certificate_end, certificate))
        self._counting: Counting | None = None
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
            partners=endpoints(self._config),
            partner_changed=self.partner_changed,
            metrics=self.metrics,
            now=engine.clock.now,
            rng=np.random.default_rng(),
            log=self._log,
        )
        publish = self._service.job_changed
        self._counting = Counting(
            self.metrics,
            engine.state,
            now=engine.clock.now,
            # As the job is now, once that is durable.
            job_changed=lambda change: engine.commit.after(partial(publish, change)),
        )
        engine.on_event(self._seen)

    def set_partners(self, config: SiteConfig) -> None:
        """Takes the partners of another configuration, and looks for those that are new."""
        assert self._service is not None
        self._config = config
        self._service.set_partners(endpoints(config))

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
                metrics.lrms.set_load(load, waiting)
            metrics.lrms.set_answering(
                reachable=load is not None and not state.memory.lrms_away,
                load_age=engine.driver.load_age,
                commands_open=engine.driver.commands_open,
            )
            metrics.lrms.set_unseen(len(state.memory.unseen))
            metrics.lrms.set_slips(engine.driver.slips)
        count_open = state.settings.location.count_open
        for partner in state.settings.partners:
            book = state.partners[partner.name]
            awrt = book.awrt(now, count_open=count_open)
            metrics.partners.set_standing(partner.name, awrt_s=awrt, open_jobs=len(book.open))
            metrics.partners.set_promise(
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
        assert self._counting is not None
        try:
            self._counting.see(event, commands)
        except Exception as error:  # noqa: BLE001  # the engine would take it for its own
            self._log.error("telemetry_failed", exc_info=error)


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
