"""Tells again and again, for Prometheus, what exchange has brought the site's own users.

The journal is read in a thread of its own, a little at a time, so that the daemon's event loop goes
first; then the simulator replays own users' jobs alone, which holds up nobody.
"""

import asyncio
import threading
import time
from typing import Final

import structlog

from grms.site.care.alone import ExchangeReport
from grms.site.care.look import exchange_of_site
from grms.site.configuration.config import SiteConfig
from grms.site.engine.journal import JournalError
from grms.site.watching.metrics import SiteMetrics

WINDOW_S: Final = 7 * 86400.0
"""Jobs that have ended in so long count, seconds."""

PAUSE_S: Final = 0.005
"""Of the thread, after each thousand records."""


class _StoppedError(Exception):
    """The daemon ends meanwhile."""


class ExchangeWatch:
    """Computes what exchange has brought, every so many hours.

    Args:
        settings: of the site, with a table `[metrics]`.
        metrics: gets the figures.
        log: is told where they cannot be had.
    """

    def __init__(
        self,
        settings: SiteConfig,
        metrics: SiteMetrics,
        log: structlog.typing.FilteringBoundLogger,
    ) -> None:
        self._settings = settings
        self._metrics = metrics
        self._log = log
        self._stopped = threading.Event()

    async def run(self) -> None:
        """Looks every so many hours until it is cancelled; at once where it never looks."""
        metrics = self._settings.metrics
        if metrics is None or not metrics.exchange_hours:
            return
        try:
            while True:  # waits for time, not for an event
                await asyncio.sleep(metrics.exchange_hours * 3600.0)
                await self.look()
        finally:
            self._stopped.set()

    async def look(self) -> None:
        """Computes the figures once; where that cannot be done, those of before stay."""
        try:
            found = await asyncio.to_thread(self._compute)
        except (JournalError, ValueError) as error:
            self._log.warning("exchange_not_known", problem=str(error))
        except _StoppedError:
            pass
        else:
            self._metrics.set_exchange(
                found.total,
                {row.partner: (row.given_work, row.taken_work) for row in found.partners},
            )

    def _compute(self) -> ExchangeReport:
        return exchange_of_site(self._settings, WINDOW_S, progress=self._breathe)[0]

    def _breathe(self, _: int) -> None:
        if self._stopped.is_set():
            raise _StoppedError
        time.sleep(PAUSE_S)
