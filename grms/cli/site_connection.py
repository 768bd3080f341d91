"""How the commands of `grms` reach a site.

Everything heavy is imported by what needs it, so that help and errors come at once.
"""

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from grms.client import SyncClient

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


def client_of(socket: Path, timeout_s: float) -> "SyncClient":
    """Returns a client of the site at a socket, as soon as that is there.

    `timeout_s` limits, in seconds, the wait for the socket and then for each answer.

    Raises:
        SiteUnavailable: nothing listens there in time.
        ModuleNotFoundError: gRPC is not installed; `run` says what brings it.
    """
    from grms.cli.handing_in import await_site  # noqa: PLC0415  # see the module's docstring

    await_site(socket, timeout_s)
    from grms.client import SyncClient  # noqa: PLC0415  # see the module's docstring

    return SyncClient(socket, timeout_s=timeout_s)
