"""How the commands of `grms` reach a site, and how they say what a job is.

Everything heavy is imported by what needs it, so that help and errors come at once.
"""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from grms.daemon.unix_sockets import await_socket
from lrms_sim.util.messages import printable
from lrms_sim.util.process_guard import require

if TYPE_CHECKING:
    from grms.client import Job, SyncClient

SOCKET_VARIABLE = "HANSE_SOCKET"
"""Names the site's socket if no option does."""

site_option = click.option(
    "--socket",
    "--site",
    "socket",
    envvar=SOCKET_VARIABLE,
    required=True,
    type=click.Path(path_type=Path),
    metavar="SOCKET",
    help=f"The site's Unix socket; also from the variable {SOCKET_VARIABLE}.",
)


def job_words(job: "Job") -> str:
    """Returns a line on how a job is."""
    state = f"{job.state}, {job.outcome}" if job.outcome else str(job.state)
    where = f" on {job.executed_on}" if job.executed_on else ""
    took = ""
    if job.end_time_s is not None:
        took = f" {job.end_time_s - job.submit_time_s:.3f} s after its submission"
    left = "" if not job.exit_code else f", exit code {job.exit_code}"
    if job.signal is not None:
        left += f", signal {job.signal}"
    reason = f" ({printable(job.reason)})" if job.reason else ""
    place = f", {place_words(job)}" if job.offered_to else ""
    if job.array is not None:
        done = job.array
        state += f", {done.completed} of {done.count} elements completed, {done.not_completed} not"
        state += f", {done.under_way} under way, {done.held} held" if not job.has_ended else ""
    return f"{job.job_id}: {state}{left}{where}{place}{took}{reason}"


def place_words(job: "Job") -> str:
    """Returns where a queued job may go in a round of offers; empty if no one is asked."""
    if not job.offered_to:
        return ""
    return f"{'leaving for' if job.leaving else 'offered to'} {printable(job.offered_to)}"


def await_site(socket: Path, timeout_s: float) -> None:
    """Waits for a socket, at most `timeout_s` seconds, and checks that gRPC is installed.

    gRPC takes longer to import than all else that a command does, so that waits until then.

    Raises:
        SiteUnavailable: nothing listens there in time.
        ModuleNotFoundError: gRPC is not installed; `run` says what brings it.
    """
    require("google.protobuf")
    if not await_socket(socket, timeout_s):
        from grms.client.errors import unreached  # noqa: PLC0415  # see the module's docstring

        raise unreached(socket)


def client_of(socket: Path, timeout_s: float) -> "SyncClient":
    """Returns a client of the site at a socket, as soon as that is there.

    `timeout_s` limits, in seconds, the wait for the socket and then for each answer.

    Raises:
        SiteUnavailable: nothing listens there in time.
        ModuleNotFoundError: gRPC is not installed; `run` says what brings it.
    """
    await_site(socket, timeout_s)
    from grms.client import SyncClient  # noqa: PLC0415  # see the module's docstring

    return SyncClient(socket, timeout_s=timeout_s)
