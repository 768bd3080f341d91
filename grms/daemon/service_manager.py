"""Notifications to the service manager that started the daemon (systemd's `sd_notify`).

The protocol is a datagram of lines to the socket named by `NOTIFY_SOCKET`; without it nothing is sent. A missing
manager is no problem for the daemon.
"""

import os
import socket
from contextlib import suppress
from typing import Final

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
