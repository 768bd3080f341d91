"""The server of figures, as every local user may try it."""

import asyncio
import errno
import socket
import struct
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from grms.daemon.process import FIGURES_MAX
from grms.site.monitoring import metrics_endpoint
from grms.site.monitoring.metrics import SiteMetrics
from grms.site.monitoring.metrics_endpoint import MetricsEndpoint, MetricsSettings
from tests.waiting import until


@contextmanager
def serving(host: str = "127.0.0.1") -> Iterator[MetricsEndpoint]:
    """Yields an endpoint that serves."""
    with MetricsEndpoint(SiteMetrics(), MetricsSettings(host=host, port=0)) as endpoint:
        yield endpoint


def scraped(endpoint: MetricsEndpoint, host: str = "127.0.0.1") -> str:
    """Returns what Prometheus would collect."""
    with urllib.request.urlopen(f"http://{host}:{endpoint.port}/metrics", timeout=300) as answer:
        text: str = answer.read().decode()
    return text


def threads() -> int:
    """Returns how many threads answer connections."""
    return sum("process_request" in each.name for each in threading.enumerate())


def test_connections_that_ask_for_nothing_do_not_add_up() -> None:
    """There are so many and no more, the oldest makes room, and Prometheus gets its figures meanwhile."""
    with serving() as endpoint:
        idle = [
            socket.create_connection(("127.0.0.1", endpoint.port), 300)
            for _ in range(3 * FIGURES_MAX)
        ]
        assert "hanse_jobs" in scraped(endpoint)
        # The first ones are over: they read the end.
        for each in idle[:FIGURES_MAX]:
            each.settimeout(300)
            assert each.recv(1) == b""
        asyncio.run(until(lambda: threads() <= FIGURES_MAX))
        for each in idle:
            each.close()


def test_nothing_is_told_of_who_hangs_up(capfd: pytest.CaptureFixture[str]) -> None:
    """Whoever breaks off a request again and again does not fill the log."""
    with serving() as endpoint:
        for _ in range(20):
            with socket.create_connection(("127.0.0.1", endpoint.port), 300) as each:
                each.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                each.sendall(b"GET / HTTP/1.1\r\n")
        scraped(endpoint)
        asyncio.run(until(lambda: threads() == 0))
    assert capfd.readouterr() == ("", "")


def test_without_descriptors_it_is_not_tried_again_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection that cannot be taken stays in line, and would be tried again for ever."""
    waits: list[float] = []
    monkeypatch.setattr(metrics_endpoint, "sleep", waits.append)
    with serving() as endpoint:
        taken = socket.socket.accept
        failures = iter(range(3))

        def accept(self: socket.socket) -> tuple[socket.socket, object]:
            if next(failures, None) is not None:
                raise OSError(errno.EMFILE, "Too many open files")
            return taken(self)

        monkeypatch.setattr(socket.socket, "accept", accept)
        assert "hanse_jobs" in scraped(endpoint)
    assert waits == [metrics_endpoint.RETRY_S] * 3


@pytest.mark.skipif(not socket.has_ipv6, reason="there is no IPv6")
def test_the_other_loopback_address_serves_as_well() -> None:
    """IPv6's."""
    with serving("::1") as endpoint:
        assert "hanse_jobs" in scraped(endpoint, "[::1]")
