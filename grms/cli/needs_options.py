"""Options of `grms submit` about what a job of numbers asks for besides processors."""

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

import click

if TYPE_CHECKING:
    from lrms_sim.workload.requests import Gpus, GpuScope, Memory, MemoryScope, Request

F = TypeVar("F", bound=Callable[..., Any])

_SIZE: Final = r"(?i:(\d+)([MGT])(?:i?B)?(?:/(node|core|gpu))?)"
_UNITS: Final = {"M": 1, "G": 1024, "T": 1024**2}
_GPUS: Final = r"(?:(?P<type>[A-Za-z_][\w.-]*):)?(?P<count>\d+)(?:/(?P<per>node|task|job))?"
_NODES: Final = r"(\d+)(?:-(\d+))?"
_LICENCE: Final = r"([\w.@+/-]+?)(?::(\d+))?"

NAMES: Final = (
    *("nodes", "cores_per_task", "tasks_per_node", "memory", "gpus", "features", "exclusive"),
    *("licences", "image", "partition", "account", "qos", "modules"),
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
        )
    ):
        command = option(command)
    return command


def needs_of(processors: int, requested_time_s: float, values: dict[str, Any]) -> "Request | None":
    """Returns what a job asks for besides processors; `None` for nothing.

    Raises:
        click.BadParameter: an option cannot be read, or they contradict each other.
    """
    given = {name: values[name] for name in NAMES if values.get(name)}
    if not given:
        return None
    from dataclasses import replace  # noqa: PLC0415  # most jobs ask for nothing else, and are to be submitted fast

    from lrms_sim.workload.requests import Request, RequestError, check_names  # noqa: PLC0415  # same

    cores = given.pop("cores_per_task", 1)
    if processors % cores:
        text = f"{processors} processors are no whole number of tasks with {cores} cores each"
        raise click.BadParameter(text, param_hint="'--cores-per-task'")
    words: dict[str, Callable[[Any], dict[str, Any]]] = {
        "nodes": _nodes,
        "memory": lambda text: {"memory": _memory(text)},
        "gpus": lambda text: {"gpus": _gpus(text)},
        "licences": lambda names: {"licences": tuple(map(_licence, names))},
    }
    try:
        request = Request(tasks=processors // cores, cores_per_task=cores)
        said: dict[str, Any] = {}
        for name, value in given.items():
            said |= words[name](value) if name in words else {name: value}
        request = replace(request, wall_time=requested_time_s, **said)
        check_names(request)
    except RequestError as error:
        raise click.UsageError(str(error)) from error
    return request


def _read(pattern: str, text: str, option: str, what: str) -> re.Match[str]:
    found = re.fullmatch(pattern, text)
    if found is None:
        raise click.BadParameter(f"{text!r} is {what}", param_hint=f"'{option}'")
    return found


def _nodes(text: str) -> dict[str, Any]:
    found = _read(_NODES, text, "--nodes", "no number of nodes; write 2, or 2-4")
    return {"nodes_min": int(found[1]), "nodes_max": int(found[2] or found[1])}


def _memory(text: str) -> "Memory":
    from lrms_sim.workload.requests import Memory  # noqa: PLC0415  # same

    found = _read(_SIZE, text, "--memory", "no amount of memory; write 4G, or 64G/node")
    per = (found[3] or "core").lower()
    return Memory(int(found[1]) * _UNITS[found[2].upper()], cast("MemoryScope", per))


def _gpus(text: str) -> "Gpus":
    from lrms_sim.workload.requests import Gpus  # noqa: PLC0415  # same

    found = _read(_GPUS, text, "--gpus", "no number of GPUs; write 2, a100:2 or 1/task")
    return Gpus(int(found["count"]), cast("GpuScope", found["per"] or "job"), found["type"] or "")


def _licence(text: str) -> tuple[str, int]:
    found = _read(_LICENCE, text, "--licence", "no licence; write NAME, or NAME:2")
    return found[1], int(found[2] or 1)
