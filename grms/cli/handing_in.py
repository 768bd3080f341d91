"""Hands a job to a site, by the shortest way, and waits for it: for `grms submit`, and programs that stand for `sbatch`.

Where the site wants one it also starts a process of `grms deputy` for the user's jobs. Heavy modules are imported by the
functions that need them, so that help and errors come at once.
"""

import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from grms.client.unary import await_socket
from lrms_sim.util.errors import HanseError
from lrms_sim.util.process_guard import require

if TYPE_CHECKING:
    from grms.client import Job, Preview, SyncClient


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


def _start_deputy_for(wanted: Mapping[str, Any], socket: Path) -> None:
    # A deputy submits programs; where a job has none, nothing is submitted as its user.
    if _has_program(wanted):
        start_deputy(socket)


def _has_program(wanted: Mapping[str, Any]) -> bool:
    return wanted["script"] is not None or bool(wanted.get("shared"))


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


def hand_in(
    socket: Path,
    timeout_s: float,
    wanted: dict[str, Any],
    *,
    tell: Callable[[str], None],
    tell_key: Callable[[str], None] | None,
    wait: bool,
    nowhere: Callable[[str], None] | None,
) -> "Job | None":
    """Submits a job; returns it at its end where that is waited for, else `None`.

    Args:
        socket: of the site.
        timeout_s: of the call with its retries, seconds.
        wanted: arguments of `grms.client.Client.submit`; a key is added where it has none.
        tell: is told the job's id, as soon as that is known.
        tell_key: is told a key that is added, before all else.
        wait: whether to wait for the end of the job.
        nowhere: is told why no site can run the job, and does not return.

    Raises:
        UnfitError: no site could take such a job.
        SiteUnavailable: the site is not there; it has not taken the job.
        DrainingError: the site takes no job now; it has not taken this one.
        OpenError: the site has not answered; it may have taken the job.
        SiteError: it refuses the job.
    """
    has_key = wanted["key"] is not None
    with checked(wanted, nowhere):
        await_site(socket, timeout_s)
        if not has_key and tell_key is not None:
            # Whoever is stopped here, or gets no answer, knows how to hand in the same job again.
            tell_key(wanted["key"])
        begun_s = time.monotonic()
        job_id = _quickly(socket, timeout_s, wanted)
        if job_id is not None:
            tell(job_id)
            _start_deputy_for(wanted, socket)
            if not wait:
                return None
        from grms.client import SyncClient  # noqa: PLC0415  # see the module's docstring

        if job_id is None:
            left_s = max(0.001, begun_s + timeout_s - time.monotonic())
            with SyncClient(socket, timeout_s=left_s) as site:
                job_id = _answered(site, wanted)
            tell(job_id)
            _start_deputy_for(wanted, socket)
        if not wait:
            return None
        with SyncClient(socket, timeout_s=timeout_s) as site:
            return site.wait(job_id)


class UnfitError(HanseError):
    """No site could take such a job, whatever its load and its batch system."""


class DrainingError(HanseError):
    """The site has said that it takes no job now; EX_TEMPFAIL of sysexits.h."""

    exit_status = 75


class OpenError(HanseError):
    """Nobody knows whether the site has taken a job; EX_TEMPFAIL of sysexits.h.

    `reason` is why there is no answer.
    """

    exit_status = 75

    def __init__(self, reason: str, key: str) -> None:
        from shlex import quote  # noqa: PLC0415  # see the module's docstring

        self.reason = reason
        super().__init__(
            f"{reason}\nwhether the site has taken the job is not known; "
            f"hand it in again with --key {quote(key)}, and it is one job"
        )


def _answered(site: "SyncClient", wanted: Mapping[str, Any]) -> str:
    from grms.client.errors import SiteUnavailable  # noqa: PLC0415  # see the module's docstring

    try:
        return site.submit(**wanted).job_id
    except SiteUnavailable as error:
        if error.is_draining:
            raise DrainingError(error.reason) from error
        raise OpenError(str(error), wanted["key"]) from error


@contextmanager
def checked(wanted: dict[str, Any], nowhere: Callable[[str], None] | None) -> Iterator[None]:
    """Checks what is wanted of a site, and has a key for it.

    `nowhere` is told why no site at all can run a job, and does not return.

    Raises:
        UnfitError: no site could take such a job.
    """
    from grms.client.errors import SiteError  # noqa: PLC0415  # see the module's docstring
    from grms.client.submission import check_checkpoint, check_values  # noqa: PLC0415  # see the module's docstring

    names = ("processors", "script", "run_time_s", "key", "array", "dependency")
    try:
        check_values(**{name: wanted[name] for name in names})
        check_checkpoint(
            wanted.get("checkpoint_s"),
            wanted.get("checkpoint_files", ()),
            limit_s=wanted["requested_time_s"],
            runs=_has_program(wanted),
            needs=wanted["needs"],
        )
        wanted["key"] = wanted["key"] or os.urandom(16).hex()
        yield
    except ValueError as error:
        raise UnfitError(str(error)) from error
    except SiteError as error:
        if nowhere is not None and error.code == "INVALID_ARGUMENT":
            nowhere(error.reason)
        raise


def preview_lines(preview: "Preview") -> Iterator[str]:
    """Yields lines that say what would become of a job."""
    if preview.known:
        yield f"nothing new: the key is that of {preview.known}"
        return
    if preview.held:
        yield f"held first: {preview.held}; what follows is by the load of now"
    home = preview.site if preview.kept else f"it waits at {preview.site}, to be offered again"
    if preview.asked:
        yield f"offered to {', then '.join(preview.asked)}: {preview.reason}"
        yield "whether one of them accepts is not known: a partner hears of a job when it is offered"
        yield f"if none accepts: {home}"
    else:
        yield f"{home}: {preview.reason}"
    for partner, reason in preview.passed_over.items():
        yield f"not offered to {partner}: {reason}"


def _quickly(socket: Path, timeout_s: float, wanted: dict[str, Any]) -> str | None:
    from grms.client.submission import submit_quickly  # noqa: PLC0415  # see the module's docstring

    if wanted["inputs"]:
        return None  # these go first
    return submit_quickly(socket, timeout_s, **wanted)


def exit_status(job: "Job") -> int:
    """Returns the status with which a command ends that has waited for a job."""
    if job.signal is not None:
        return 128 + job.signal
    return job.exit_code or int(job.outcome != "completed")
