"""The dashboard of a daemon: it listens, remembers and answers in a thread of its own.

The daemon lets `Recorder` see events and takes a sample now and then. A dashboard that cannot be
served is logged, and the daemon continues without it.
"""

import asyncio
import math
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final, Self

import structlog
from cryptography import x509
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from grms.daemon.loop import EngineFailedError
from grms.daemon.web.pages import PageServer, PagesSettings, Streams, document, files
from grms.security.certificates import PkiError
from grms.security.files import read_certificates
from grms.site.config.schema import DASHBOARD_FILE_END, SiteConfig
from grms.site.monitoring.dashboard_events import Noted
from grms.site.monitoring.dashboard_history import RECORDS_MAX, past_records
from grms.site.monitoring.dashboard_recorder import Feed, Recorder
from grms.site.monitoring.dashboard_state import DashboardState
from grms.site.monitoring.dashboard_views import (
    account_document,
    history_document,
    jobs_document,
    now_document,
    story_document,
)
from grms.site.monitoring.subscriber import Subscriber
from grms.site.peers.peers import PeerClients
from grms.site.runtime.event_loop import Engine
from grms.site.runtime.journal import Journal
from grms.util.names import parse_endpoint
from lrms_sim.util.version import __version__

SAMPLE_S: Final = 1.0
"""Interval of samples with few partners, real seconds."""

PARTNERS_PER_SAMPLE: Final = 50
"""With more partners samples are rarer, so that their cost to the daemon stays the same."""

FOLLOW_S: Final = 0.1
"""Interval at which the thread takes notes."""

NOTES_AT_ONCE: Final = 2000
"""Notes taken before a browser is answered again."""

STATIC: Final = Path(__file__).with_name("static")
Log = structlog.typing.FilteringBoundLogger


class Dashboard:
    """What a daemon has for operators who look with a browser.

    Args:
        config: of the site, with a dashboard.
        journal: of the site; what it holds now is read once.
        engine: with the state.

    Attributes:
        recorder: makes notes on the daemon's event loop.
        ledger: what is remembered; of the dashboard's thread alone.
    """

    def __init__(
        self,
        config: SiteConfig,
        journal: Journal,
        subscriber: Subscriber,
        engine: Engine,
        *,
        links: PeerClients,
        log: Log,
    ) -> None:
        assert config.dashboard is not None
        self._config = config
        self._engine = engine
        self._log = log
        self._journal, self._name = journal.path, journal.site
        self._last = journal.count
        self._feed = Feed()
        self.recorder = Recorder(self._feed, subscriber, engine, links, log)
        self.ledger = DashboardState(config.name)
        self._news = 0
        self._ends: dict[bytes, float | None] = {}
        self._failed = False
        listen = parse_endpoint(config.dashboard.listen)
        self.server = PageServer(
            PagesSettings(
                name=config.name,
                host=listen.host,
                port=listen.port,
                token=Path(config.journal.path).with_name(f"{config.name}{DASHBOARD_FILE_END}"),
                how="grms dashboard CONFIG",
                hosts=tuple(config.dashboard.hosts),
            ),
            self._routes(),
            self._follow,
            log,
        )
        self._stack = ExitStack()

    # --- in the daemon -------------------------------------------------------------------------

    def __enter__(self) -> Self:
        try:
            self._stack.enter_context(self.server)
        except OSError as error:
            self._log.error(
                "dashboard_cannot_be_served",
                listen=self._config.dashboard and self._config.dashboard.listen,
                problem=error.strerror or str(error),
            )
        else:
            self._log.info("dashboard", address=self.server.address)
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    async def run(self) -> None:
        """Takes samples until it is cancelled."""
        while True:  # waits for time, not for an event
            try:
                self.recorder.sample()
            except EngineFailedError:
                return  # the daemon ends
            count = len(self._engine.state.partners)
            await asyncio.sleep(SAMPLE_S * max(1.0, count / PARTNERS_PER_SAMPLE))

    # --- in the thread -------------------------------------------------------------------------

    async def _follow(self) -> None:
        try:
            await self._read_past()
        except Exception as error:  # noqa: BLE001  # it goes on with what happens from now on
            self.ledger.partial = True
            self._tell(error)
        while True:  # waits for time, not for an event
            self._take()
            await asyncio.sleep(FOLLOW_S)

    async def _read_past(self) -> None:
        self.ledger.partial = self._last > RECORDS_MAX
        for records in past_records(self._journal, self._name, self._last):
            for record in records:
                self.ledger.take(Noted(record))
            await asyncio.sleep(0.002)  # the daemon's own thread comes first

    def _take(self) -> None:
        notes, lost = self._feed.take(NOTES_AT_ONCE)
        self.ledger.lose(lost)
        for note in notes:
            try:
                self.ledger.take(note)
            except Exception as error:  # noqa: BLE001  # one note less
                self._tell(error)
        if notes:
            self._news += 1

    def _tell(self, error: Exception) -> None:
        if not self._failed:
            self._failed = True
            self._log.error("dashboard_failed", exc_info=error)

    # --- what is served ------------------------------------------------------------------------

    def _routes(self) -> list[Route]:
        streams = Streams(lambda: self._news, self._now, lambda: self.server.ending)
        return [
            *files(STATIC),
            Route("/api/site", self._site),
            Route("/api/history", self._history),
            Route("/api/account", self._account),
            Route("/api/jobs", self._jobs),
            Route("/api/job", self._job),
            Route("/events", streams.answer),
        ]

    def _now(self) -> dict[str, Any]:
        found = now_document(self.ledger)
        for partner in found["partners"]:
            pem = self.ledger.certificates.get(partner["name"])
            partner["certificate_end_s"] = None if pem is None else self._end(pem)
        return found

    def _end(self, pem: bytes) -> float | None:
        if pem not in self._ends:
            try:
                certificate = x509.load_pem_x509_certificate(pem)
                self._ends[pem] = certificate.not_valid_after_utc.timestamp()
            except ValueError:
                self._ends[pem] = None
        return self._ends[pem]

    async def _site(self, _: Request) -> Response:
        config = self._config
        settings = self._engine.state.settings
        return document(
            {
                "site": config.name,
                "version": __version__,
                "clock": config.clock.kind,
                "speed": config.clock.speed if config.clock.kind == "scaled" else 1.0,
                "processors": config.processors,
                "location": settings.location.name,
                "transfer": {name: policy.name for name, policy in settings.transfer.items()},
                "certificate_end_s": self._own_end(),
                "wall_s": time.time(),
                "now": self._now(),
            }
        )

    def _own_end(self) -> float | None:
        if self._config.tls is None:
            return None
        try:
            found = read_certificates(Path(self._config.tls.certificate))
        except (PkiError, OSError):
            return None
        return found[0].not_valid_after_utc.timestamp()

    async def _history(self, request: Request) -> Response:
        span = _number(request, "span", 3600.0)
        last = self.ledger.near[-1].time if self.ledger.near else 0.0
        return document(history_document(self.ledger, last - span))

    async def _account(self, _: Request) -> Response:
        return document(account_document(self.ledger))

    async def _jobs(self, request: Request) -> Response:
        query = request.query_params
        return document(
            jobs_document(
                self.ledger,
                search=query.get("search", "")[:200],
                kind=query.get("kind", "all"),
                limit=int(_number(request, "limit", 100.0)),
            )
        )

    async def _job(self, request: Request) -> Response:
        found = story_document(self.ledger, request.query_params.get("key", ""))
        if found is None:
            return document({"problem": "no such job is remembered"}, 404)
        return document(found)


def _number(request: Request, key: str, default: float) -> float:
    try:
        value = float(request.query_params.get(key, default))
    except ValueError:
        return default
    return value if math.isfinite(value) and value >= 0 else default
