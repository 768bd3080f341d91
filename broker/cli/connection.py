"""How the commands of `gorba` reach a broker."""

from collections.abc import Callable, Iterable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from grms.client.unary import await_socket
from grms.daemon.timeout_option import timeout_option
from lrms_sim.util.process_guard import require

if TYPE_CHECKING:
    from broker.client import BrokerClient
    from broker.model.pool import Pool
    from broker.scheduler.records import Supply

SOCKET_VARIABLE: Final = "GORBA_SOCKET"
"""Socket of the broker if no option names it."""


def _named(_context: click.Context, _option: click.Parameter, value: Path | None) -> Path:
    if value is None:
        raise click.UsageError(
            f"no broker is named; name its socket with --socket, or in the variable "
            f"{SOCKET_VARIABLE}"
        )
    return value


_SOCKET = click.option(
    "--socket",
    "--broker",
    "socket",
    envvar=SOCKET_VARIABLE,
    callback=_named,
    type=click.Path(path_type=Path),
    metavar="SOCKET",
    help=f"The broker's Unix socket; also from the variable {SOCKET_VARIABLE}.",
)


def broker_of(socket: Path, timeout_s: float) -> "BrokerClient":
    """Returns a client of the broker at a socket, once it listens.

    `timeout_s` limits the wait for the socket, and then for each answer.

    Raises:
        CallError: the broker does not listen in time.
        ModuleNotFoundError: gRPC is not installed; `run` names the extra.
    """
    require("google.protobuf")
    if not await_socket(socket, timeout_s):
        from broker.util.errors import unreached  # noqa: PLC0415  # help should come at once

        raise unreached(socket)
    from broker.client import BrokerClient  # noqa: PLC0415  # same

    return BrokerClient(socket, timeout_s=timeout_s)


def with_broker(command: Callable[..., None]) -> Callable[..., None]:
    """Adds the options that say which broker is meant, and calls the command with it as `broker`."""

    @_SOCKET
    @timeout_option
    @wraps(command)
    def connected(*, socket: Path, timeout_s: float, **given: Any) -> None:
        with broker_of(socket, timeout_s) as broker:
            command(broker=broker, **given)

    return connected


def pool_of(supplies: "Iterable[Supply]") -> "Pool":
    """Returns the resources of a broker, with their requirements; of two with one name the later.

    Raises:
        InputError: resources require each other in a circle.
    """
    from broker.model.pool import Pool  # noqa: PLC0415  # same
    from broker.util.errors import InputError  # noqa: PLC0415  # help should come at once

    by_name = {each.name: each for each in supplies}
    resources = tuple(each.resource for each in by_name.values())
    try:
        return Pool(resources, {each.name: each.requires for each in by_name.values()})
    except ValueError as error:
        raise InputError(str(error)) from None
