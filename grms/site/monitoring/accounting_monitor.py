"""Monitors what exchange has brought the site's own users: for Prometheus, and for the circuit breaker.

The journal is read in a thread of its own, a little at a time, so that the daemon's event loop goes
first; then the simulator replays own users' jobs alone, which delays nothing.
"""

import asyncio
import math
import threading
import time
from collections.abc import Callable, Sequence
from typing import Final, Generic, TypeVar

import structlog
from prometheus_client import CollectorRegistry, Gauge

from grms.policy.circuit_breaker import CircuitBreaker
from grms.site.accounting.counterfactual import Compared, ExchangeReport
from grms.site.accounting.report import exchange_of_site, own_gain
from grms.site.config.schema import SiteConfig
from grms.site.model.commands import Command
from grms.site.model.events import CircuitBreakerLooked, Event
from grms.site.monitoring.metrics import SiteMetrics
from grms.site.runtime.event_loop import Engine
from grms.site.runtime.journal import JournalError

WINDOW_S: Final = 7 * 86400.0
"""Jobs that have ended within this time count for Prometheus, seconds."""

PAUSE_S: Final = 0.005
"""Pause of the thread after each thousand records."""

Log = structlog.typing.FilteringBoundLogger
Found = TypeVar("Found")


class _StoppedError(Exception):
    """The daemon ends meanwhile."""


class JournalMonitor(Generic[Found]):
    """Repeatedly computes something from the journal and reports it.

    Args:
        compute: runs in a thread; gets a function to call now and then.
        tell: called with the result, on the event loop.
        log: logs failures.
    """

    def __init__(
        self,
        compute: Callable[[Callable[[int], None]], Found],
        tell: Callable[[Found], None],
        log: Log,
        problem: str,
    ) -> None:
        self._compute = compute
        self._tell = tell
        self._log = log
        self._problem = problem
        self._stopped = threading.Event()

    async def run(self, period_s: float, first_s: float) -> None:
        """Runs every `period_s` seconds, first after `first_s`, until it is cancelled."""
        pause_s = first_s
        try:
            while True:  # waits for time, not for an event
                await asyncio.sleep(pause_s)
                await self.look()
                pause_s = period_s
        finally:
            self._stopped.set()

    async def look(self) -> None:
        """Looks once; on failure the last result stays."""
        try:
            found = await asyncio.to_thread(self._compute, self._breathe)
        except (JournalError, ValueError, OSError) as error:
            self._log.warning(self._problem, problem=str(error))
        except _StoppedError:
            pass
        else:
            self._tell(found)

    def _breathe(self, _: int) -> None:
        if self._stopped.is_set():
            raise _StoppedError
        time.sleep(PAUSE_S)


class AccountingMonitor:
    """Computes every few hours, for Prometheus, what exchange has brought."""

    def __init__(self, settings: SiteConfig, metrics: SiteMetrics, log: Log) -> None:
        self._settings = settings
        self._metrics = metrics
        self._look = JournalMonitor(
            lambda breathe: exchange_of_site(settings, WINDOW_S, progress=breathe)[0],
            self._show,
            log,
            "exchange_not_known",
        )

    async def run(self) -> None:
        """Runs every so many hours until it is cancelled; returns at once if that is never."""
        metrics = self._settings.metrics
        if metrics is not None and metrics.exchange_hours:
            period_s = metrics.exchange_hours * 3600.0
            await self._look.run(period_s, first_s=period_s)

    async def look(self) -> None:
        """Computes the figures once; on failure the last ones stay."""
        await self._look.look()

    def _show(self, found: ExchangeReport) -> None:
        self._metrics.set_exchange(
            found.total, {row.partner: (row.given_work, row.taken_work) for row in found.partners}
        )


class CircuitBreakerFigures:
    """Prometheus figures of the circuit breaker; without one there are none."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._stops = Gauge(
            "hanse_circuit_breaker_stops",
            "1 while exchange stands still by the circuit breaker.",
            registry=registry,
        )
        self._gain = Gauge(
            "hanse_circuit_breaker_gain_ratio",
            "Of own AWRT by exchange, for the circuit breaker.",
            registry=registry,
        )
        self.set(stops=True, gain=math.nan)

    def set(self, *, stops: bool, gain: float) -> None:
        """Sets the figures.

        `stops`: exchange is stopped, or nothing was computed yet. `gain`: 1 - AWRT with exchange /
        AWRT alone, NaN for no jobs.
        """
        self._stops.set(stops)
        self._gain.set(gain)


class CircuitBreakerWatch:
    """Tells the site what its circuit breaker has to know, at the start and then from time to time.

    It logs when exchange is stopped and resumed, and failures.
    """

    def __init__(
        self,
        settings: SiteConfig,
        circuit_breaker: CircuitBreaker,
        engine: Engine,
        metrics: SiteMetrics | None,
        log: Log,
    ) -> None:
        self._circuit_breaker = circuit_breaker
        self._engine = engine
        self._figures = None if metrics is None else CircuitBreakerFigures(metrics.registry)
        self._log = log
        self._stopped = False
        self._speed = settings.clock.speed
        self._look = JournalMonitor(
            lambda breathe: own_gain(settings, circuit_breaker, breathe),
            self._tell,
            log,
            "circuit_breaker_cannot_look",
        )
        engine.on_event(self._seen)

    async def run(self) -> None:
        """Looks until it is cancelled."""
        await self._look.run(self._circuit_breaker.period / self._speed, first_s=0.0)

    async def look(self) -> None:
        """Looks once; on failure the last decision stays."""
        await self._look.look()

    def _tell(self, found: Compared) -> None:
        engine = self._engine
        engine.tell(CircuitBreakerLooked(engine.new_id(), found.jobs, found.improvement))

    def _seen(self, event: Event, _commands: Sequence[Command]) -> None:
        if not isinstance(event, CircuitBreakerLooked):
            return
        stops = self._engine.state.guarded
        if self._figures is not None:
            self._figures.set(stops=stops, gain=event.improvement)
        if stops != self._stopped:
            self._stopped = stops
            gain = round(event.improvement, 6)
            if stops:
                self._log.warning("circuit_breaker_stops_exchange", jobs=event.jobs, gain=gain)
            else:
                self._log.info("circuit_breaker_lets_exchange_go_on", jobs=event.jobs, gain=gain)
