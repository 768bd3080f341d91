"""Starts a process of `grms deputy` for a user's jobs, where their site wants one.

Everything heavy is imported by what needs it, so that help and errors come at once.
"""

import sys
from pathlib import Path
from typing import Final

IDLE_S: Final = 600.0
"""How long a deputy stays that was started by another command, without orders and unfinished jobs, seconds."""

LOOK_S: Final = 2.0
"""Longest wait of a command for whether a deputy is wanted, seconds; the job is there in any case."""


def start_deputy(socket: Path) -> None:
    """Starts a deputy of this user in the background if the site wants one and none is there."""
    from google.protobuf.message import DecodeError  # noqa: PLC0415  # see the module's docstring

    from grms.client.errors import SiteError  # noqa: PLC0415  # same
    from grms.client.unary import ask  # noqa: PLC0415  # same
    from grms.v1 import deputy_pb2  # noqa: PLC0415  # same

    try:
        answer = ask(socket, "/grms.v1.DeputyService/Look", b"", LOOK_S)
        look = deputy_pb2.DeputyLook.FromString(answer or b"")
    except (SiteError, DecodeError):
        return  # the command has done what it was for
    if not look.wanted or look.present:
        return
    import subprocess  # noqa: PLC0415  # as above

    words = ["deputy", "--socket", str(socket.absolute()), "--idle", f"{IDLE_S:g}"]
    subprocess.Popen(  # noqa: S603  # this program itself; it outlives this command
        [sys.executable, "-m", "grms", *words],
        cwd="/",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
