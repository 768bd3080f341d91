"""Unix sockets that daemons listen on; removes those that a killed daemon left behind."""

import contextlib
import socket
from pathlib import Path

from lrms_sim.errors import HanseError


class SocketInUseError(HanseError):
    """Another process listens on the socket, or it is none; the text says which."""


def remove_stale_socket(path: Path) -> None:
    """Removes a socket that a process left behind when it was killed.

    Raises:
        SocketInUseError: somebody listens on it, or it is no socket.
        OSError: it cannot be tried or removed.
    """
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
