"""The dashboard of a broker: one document, made on the broker's loop, served in another thread."""

import asyncio
from pathlib import Path
from typing import Any, Final

import structlog
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from broker.config.config import DASHBOARD_FILE, BrokerConfig
from broker.gantt.views import plan_document
from broker.scheduler.state import BrokerState
from grms.daemon.clock import RealClock
from grms.daemon.web.access import loopback
from grms.daemon.web.pages import PageServer, PagesSettings, Streams, document, files
from lrms_sim.util.version import __version__

SAMPLE_S: Final = 1.0
"""How often the document is rebuilt, real seconds."""

STATIC: Final = Path(__file__).with_name("static")


class Dashboard:
    """The broker's page for browsers; the configuration has a dashboard."""

    def __init__(
        self,
        config: BrokerConfig,
        state: BrokerState,
        clock: RealClock,
        log: structlog.typing.FilteringBoundLogger,
    ) -> None:
        assert config.dashboard is not None
        self._state, self._time = state, clock
        self._log = log
        self._clock = {"clock": config.clock.kind, "speed": config.clock.speed}
        self._document: dict[str, Any] = {}
        self._number = 0
        self._failed = False
        host, port = loopback(config.dashboard.listen)
        self.server = PageServer(
            PagesSettings(
                name="broker",
                host=host,
                port=port,
                token=Path(config.journal.path).with_name(DASHBOARD_FILE),
                how="gorba dashboard CONFIG",
                hosts=tuple(config.dashboard.hosts),
            ),
            self._routes(),
            _nothing,
            log,
        )

    async def run(self) -> None:
        """Serves until it is cancelled; if that is impossible, logs it."""
        try:
            with self.server:
                self._log.info("dashboard", address=self.server.address)
                while True:  # waits for time, not for an event
                    self.sample()
                    await asyncio.sleep(SAMPLE_S)
        except OSError as error:
            problem = error.strerror or str(error)
            self._log.error("dashboard_cannot_be_served", problem=problem)

    def sample(self) -> None:
        """Makes the document anew."""
        try:
            # Replaced whole, never changed: the thread may be writing the one before.
            self._document = plan_document(self._state, self._time.now())
            self._number += 1
        except Exception as error:  # noqa: BLE001  # the broker goes on without a dashboard
            if not self._failed:
                self._failed = True
                self._log.error("dashboard_failed", exc_info=error)

    def _routes(self) -> list[Route]:
        streams = Streams(lambda: self._number, lambda: self._document, lambda: self.server.ending)
        return [
            *files(STATIC),
            Route("/api/site", self._about),
            Route("/api/plan", self._plan),
            Route("/events", streams.answer),
        ]

    async def _about(self, _: Request) -> Response:
        return document({"version": __version__, **self._clock})

    async def _plan(self, _: Request) -> Response:
        return document(self._document)


async def _nothing() -> None:
    """The thread has no work of its own."""
