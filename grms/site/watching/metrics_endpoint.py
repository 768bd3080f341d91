"""Where Prometheus collects a site's figures: an HTTP server on a loopback address."""

from dataclasses import dataclass
from threading import Thread
from types import TracebackType
from typing import Self
from wsgiref.simple_server import WSGIServer

from prometheus_client import start_http_server

from grms.names import PORT_MAX, is_loopback
from grms.site.watching.metrics import SiteMetrics


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
