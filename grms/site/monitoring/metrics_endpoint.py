"""The Prometheus endpoint of a site: an HTTP server on a loopback address.

Every local user reaches it. So connections are few: the oldest is dropped for a new one, as
Prometheus asks at once and has its answer in milliseconds. Aborted connections are not reported.
"""

import contextlib
import socket
from dataclasses import dataclass
from socketserver import ThreadingMixIn
from threading import Lock, Thread
from time import sleep
from typing import Any, Final, Self
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from prometheus_client import make_wsgi_app

from grms.daemon.process import FIGURES_MAX, beside
from grms.site.monitoring.metrics import SiteMetrics
from grms.util.names import PORT_MAX, is_loopback

REQUEST_S: Final = 10.0
"""Longest wait for the next byte of a request, seconds."""

RETRY_S: Final = 1.0
"""Pause before a connection is accepted again if there are no descriptors, seconds."""


class MetricsError(OSError):
    """The endpoint cannot be started; the text says why and what to do."""


@dataclass(frozen=True, slots=True)
class MetricsSettings:
    """The address for Prometheus: a loopback host, and a port, 0 for any free one.

    Raises:
        ValueError: the port is invalid, or the host is not loopback.
    """

    host: str = "127.0.0.1"
    port: int = 9464

    def __post_init__(self) -> None:
        if not 0 <= self.port <= PORT_MAX:
            raise ValueError(f"port is {self.port}; it must be 0 to {PORT_MAX}")
        if not is_loopback(self.host):
            raise ValueError(
                f"metrics on {self.host!r} would tell others how busy this site is; use a "
                "loopback address, and a proxy that asks for a password if need be"
            )


class MetricsEndpoint:
    """Serves a site's figures over HTTP while entered; `port` is then the actual one."""

    def __init__(self, metrics: SiteMetrics, settings: MetricsSettings) -> None:
        self.port = settings.port
        self._metrics = metrics
        self._settings = settings
        self._running: tuple[WSGIServer, Thread] | None = None

    def __enter__(self) -> Self:
        """Starts listening, in a thread of its own; `MetricsError` if the address is taken."""
        settings = self._settings
        try:
            self._running = _serve(settings, self._metrics)
        except OSError as error:
            raise MetricsError(
                f"metrics cannot be served on {settings.host}:{settings.port}: "
                f"{error.strerror or error}; configure another address"
            ) from error
        self.port = self._running[0].server_port
        return self

    def __exit__(self, *_: object) -> None:
        assert self._running is not None
        server, thread = self._running
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(WSGIRequestHandler):
    """Answers one connection, and is silent about it."""

    timeout = REQUEST_S

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # the name it has there
        """Says nothing."""


class _Server(ThreadingMixIn, WSGIServer):
    """Answers each connection in a thread of its own."""

    daemon_threads = True
    request_queue_size = 4

    def __init__(self, *args: Any) -> None:
        self._lock = Lock()
        self._open: dict[socket.socket, None] = {}
        super().__init__(*args)

    def get_request(self) -> tuple[socket.socket, Any]:
        """Accepts a connection; on failure pauses before the next attempt."""
        try:
            return super().get_request()
        except OSError:
            sleep(RETRY_S)
            raise

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._lock:
            if len(self._open) >= beside(FIGURES_MAX):
                oldest = next(iter(self._open))
                del self._open[oldest]
                # Its thread reads the end, and closes it.
                with contextlib.suppress(OSError):
                    oldest.shutdown(socket.SHUT_RDWR)
            self._open[request] = None
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        with self._lock:
            self._open.pop(request, None)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Says nothing: who asks may hang up when they like."""


class _Server6(_Server):
    address_family = socket.AF_INET6


def _serve(settings: MetricsSettings, metrics: SiteMetrics) -> tuple[WSGIServer, Thread]:
    family = socket.getaddrinfo(settings.host, settings.port, type=socket.SOCK_STREAM)[0][0]
    kind = _Server6 if family == socket.AF_INET6 else _Server
    server = make_server(
        settings.host, settings.port, make_wsgi_app(metrics.registry), kind, _Handler
    )
    thread = Thread(target=server.serve_forever, name="metrics", daemon=True)
    thread.start()
    return server, thread
