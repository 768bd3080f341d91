"""Unix sockets of daemons: waits for them, and removes stale ones."""

import os
import time
from pathlib import Path
from typing import Final

from lrms_sim.util.errors import HanseError

PAUSE_S: Final = 0.1
"""Between checks for a socket, seconds."""


class SocketInUseError(HanseError):
    """Another process listens on the socket, or it is none; the text says which."""


def remove_stale_socket(path: Path) -> None:
    """Removes a socket left behind by a killed process.

    Raises:
        SocketInUseError: a process listens on it, or it is no socket.
        OSError: it cannot be tested or removed.
    """
    import contextlib  # noqa: PLC0415  # who waits needs neither
    import socket  # noqa: PLC0415  # same

    if not path.exists():
        return
    if not path.is_socket():
        raise SocketInUseError(f"{path} is there already and is no socket; name another path")
    probe = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    with contextlib.closing(probe):
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            path.unlink()
            return
    raise SocketInUseError(f"another process listens on {path}; is the daemon running already?")


def await_socket(path: Path, timeout_s: float) -> bool:
    """Waits for a socket at most `timeout_s` seconds, without importing gRPC; returns whether it exists."""
    deadline = time.monotonic() + timeout_s
    while not os.path.exists(path):  # noqa: PTH110  # False of a path that is too long, too
        if not time.monotonic() < deadline:  # of no number either
            return False
        time.sleep(PAUSE_S)
    return True
