"""Options of `grms submit` about what a job of numbers asks for besides processors."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

if TYPE_CHECKING:
    from lrms_sim.workload.requests import Request

F = TypeVar("F", bound=Callable[..., Any])

NAMES: Final = (
    *("nodes", "cores_per_task", "tasks_per_node", "memory", "gpus", "features", "exclusive"),
    *("licences", "image", "partition", "account", "qos", "modules", "signal", "requeue"),
)
"""Parameters of a command that has these options."""


def needs_options(command: F) -> F:
    """Adds the options to a command; their values are for `needs_of`."""
    for option in reversed(
        (
            click.option("--nodes", metavar="N[-M]", help="On so many nodes, or from N to M."),
            click.option(
                "--cores-per-task", type=click.IntRange(1), help="Cores that are on one node."
            ),
            click.option(
                "--tasks-per-node", type=click.IntRange(1), help="At most so many on one node."
            ),
            click.option(
                "--memory", metavar="SIZE[/node|core|gpu]", help="Such as 4G; of each core."
            ),
            click.option(
                "--gpus", metavar="[TYPE:]N[/node|task]", help="In all, or of each node or task."
            ),
            click.option(
                "--feature",
                "features",
                multiple=True,
                metavar="NAME",
                help="That its nodes must have. May come several times, as the next three.",
            ),
            click.option("--licence", "licences", multiple=True, metavar="NAME[:N]"),
            click.option("--module", "modules", multiple=True, metavar="NAME"),
            click.option("--exclusive", is_flag=True, help="No other job on its nodes."),
            click.option("--image", default="", metavar="NAME", help="Container image."),
            click.option("--partition", default="", metavar="NAME[,NAME]"),
            click.option("--account", default="", metavar="NAME"),
            click.option("--qos", default="", metavar="NAME"),
            click.option(
                "--signal",
                default="",
                metavar="[B:]SIGNAL[@SECONDS]",
                help="Sent to it before its time is over, such as USR1@120; B: to the script alone.",
            ),
            click.option(
                "--requeue/--no-requeue",
                default=None,
                help="Whether it may be run again, from its start or its --checkpoint.",
            ),
        )
    ):
        command = option(command)
    return command


def needs_of(processors: int, requested_time_s: float, values: dict[str, Any]) -> "Request | None":
    """Returns what a job asks for besides processors; `None` for nothing.

    Raises:
        click.BadParameter: an option cannot be read, or they contradict each other.
    """
    given = {name: values[name] for name in NAMES if values.get(name) or values.get(name) is False}
    if given.get("exclusive") is False:
        del given["exclusive"]
    if not given:
        return None
    from dataclasses import replace  # noqa: PLC0415  # most jobs ask for nothing else, and are to be submitted fast

    from lrms_sim.workload.requests import Request, RequestError, check_names  # noqa: PLC0415  # same

    cores = given.pop("cores_per_task", 1)
    if processors % cores:
        text = f"{processors} processors are no whole number of tasks with {cores} cores each"
        raise click.BadParameter(text, param_hint="'--cores-per-task'")
    try:
        request = Request(tasks=processors // cores, cores_per_task=cores)
        said: dict[str, Any] = {}
        for name, value in given.items():
            said |= _said(name, value)
        request = replace(request, wall_time=requested_time_s, **said)
        check_names(request)
    except RequestError as error:
        raise click.UsageError(str(error)) from error
    return request


def _said(name: str, value: Any) -> dict[str, Any]:
    # What an option says, by the fields of a request.
    from lrms_sim.workload import requests  # noqa: PLC0415  # as in `needs_of`

    try:
        match name:
            case "nodes":
                least, most = requests.nodes_of(value)
                return {"nodes_min": least, "nodes_max": most}
            case "memory":
                return {name: requests.memory_of(value)}
            case "gpus":
                return {name: requests.gpus_of(value)}
            case "signal":
                from grms.lrms.slurm.slurm_request import read_signal  # noqa: PLC0415  # same

                signal, before_s = read_signal(value)
                return {"signal": signal, "signal_before": before_s}
            case "licences":
                return {name: tuple(map(requests.licence_of, value))}
    except (requests.RequestError, ValueError) as error:
        option = name.removesuffix("s") if name == "licences" else name
        raise click.BadParameter(str(error), param_hint=f"'--{option}'") from error
    return {name: value}
