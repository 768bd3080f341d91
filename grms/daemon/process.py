"""The process of a daemon: its signals, the service manager that started it, and its descriptors.

The first signal stops a daemon in order, the second at once; SIGHUP reloads. A service manager (systemd's `sd_notify`) takes
a datagram of lines on the socket named by `NOTIFY_SOCKET`; without it nothing is sent. A missing manager is no problem for
the daemon. Connections on auxiliary listeners (pages, metrics, an MQTT broker), which every local user can reach, are limited
so that they cannot exhaust the file descriptors needed for users, partners and the journal.
"""

import asyncio
import os
import resource
import signal
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Final

ENDING: Final = (signal.SIGTERM, signal.SIGINT)


@asynccontextmanager
async def signals(
    stop: Callable[[], None], reload: Callable[[], None] | None = None
) -> AsyncIterator[None]:
    """Makes the first SIGTERM or SIGINT stop a daemon in order, and the second at once; SIGHUP reloads.

    Everything acknowledged is in the journal, so an immediate end loses nothing. `stop` begins an orderly end and
    `reload` reads the configuration anew, both returning soon; without `reload` SIGHUP is unchanged.
    """
    loop = asyncio.get_running_loop()
    count = 0

    def handle() -> None:
        nonlocal count
        count += 1
        if count == 1:
            stop()
        else:
            os._exit(128 + signal.SIGTERM)

    handlers = dict.fromkeys(ENDING, handle)
    if reload is not None:
        handlers[signal.SIGHUP] = reload
    for number, handler in handlers.items():
        loop.add_signal_handler(number, handler)
    try:
        # A task cancelled by an earlier signal leaves here, before it has begun anything.
        await asyncio.sleep(0)
        yield
    finally:
        for number in handlers:
            loop.remove_signal_handler(number)


VARIABLE: Final = "NOTIFY_SOCKET"


def notify(*lines: str) -> bool:
    """Notifies the service manager; returns whether it was sent.

    `lines` are those of sd_notify(3): `READY=1`, `STOPPING=1`, `STATUS=…`.
    """
    address = os.environ.get(VARIABLE, "")
    if address[:1] not in {"/", "@"}:
        return False
    if address.startswith("@"):
        address = "\0" + address[1:]
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as datagrams:
        datagrams.sendto("\n".join(lines).encode(), address)
        return True
    return False


def status(text: str, *, seconds: float = 30.0) -> None:
    """Reports the progress of a start or stop, allowing for `seconds` until the next report."""
    notify(f"STATUS={text}", f"EXTEND_TIMEOUT_USEC={int(seconds * 1e6)}")


PART: Final = 16
"""A listener gets at most one in this many descriptors."""

LEAST: Final = 2
"""Least number of connections."""

PAGES_MAX: Final = 64
"""Most concurrent connections to pages."""

FIGURES_MAX: Final = 16
"""Most concurrent connections to the metrics."""

REST_MAX: Final = 256
"""Most concurrent connections to the HTTP interface for users."""

MQTT_MAX: Final = 256
"""Most connections to the daemon's MQTT broker."""

BACKLOG: Final = 16
"""Most connections accepted at once, before they are counted."""


def beside(most: int) -> int:
    """Returns the connection limit of a listener, at most `most`, given the process's descriptors."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit == resource.RLIM_INFINITY:
        return most
    return min(most, max(LEAST, limit // PART))
