"""Waits for the socket of a site, before gRPC or click are imported."""

from pathlib import Path

from grms.daemon.unix_sockets import await_socket
from lrms_sim.util.process_guard import require


def await_site(socket: Path, timeout_s: float) -> None:
    """Waits for a socket, at most `timeout_s` seconds, and checks that gRPC is installed.

    gRPC takes longer to import than all else that a command does, so that waits until then.

    Raises:
        SiteUnavailable: nothing listens there in time.
        ModuleNotFoundError: gRPC is not installed; `run` says what brings it.
    """
    require("google.protobuf")
    if not await_socket(socket, timeout_s):
        from grms.client.errors import unreached  # noqa: PLC0415  # of this alone

        raise unreached(socket)
