"""What a daemon tells the service manager that has started it (systemd's `sd_notify`).

The protocol is a datagram of lines to the socket that `NOTIFY_SOCKET` names; without it nobody wants
to be told. A manager that is not there is none of the daemon's trouble.
"""

import os
import socket
from contextlib import suppress
from typing import Final

VARIABLE: Final = "NOTIFY_SOCKET"
"""Names the socket of the service manager."""


def notify(*lines: str) -> bool:
    """Tells the service manager something; returns whether it was told.

    Args:
        lines: as sd_notify(3) has them: `READY=1`, `STOPPING=1`, `STATUS=…`.
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
    """Tells what a start or an end is at, and that it goes on.

    Args:
        text: for a person.
        seconds: that it may take until the next word, at most.
    """
    notify(f"STATUS={text}", f"EXTEND_TIMEOUT_USEC={int(seconds * 1e6)}")
