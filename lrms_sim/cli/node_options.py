"""What `lrms-sim run` knows of machines of nodes: its options, and the replay."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from lrms_sim.util.option_fields import option

if TYPE_CHECKING:
    from lrms_sim.machine.demand_options import DemandOptions
    from lrms_sim.machine.demands import PreparedOnNodes
    from lrms_sim.machine.node_kinds import NodeMachine
    from lrms_sim.machine.nodes import NodeSchedule
    from lrms_sim.scheduling.disciplines import Discipline
    from lrms_sim.workload.jobs import JobTable
    from lrms_sim.workload.preparation import Prepared
    from lrms_sim.workload.swf_log import SwfLog


@dataclass(frozen=True, slots=True)
class NodeOptions:
    """The nodes of the machine, and what jobs ask of them.

    Attributes:
        nodes: the file of the machine; `None` for a machine of processors.
        requests: a file of requests.
    """

    nodes: Path | None = option(
        "Replay on the nodes that this file describes: cores, memory, GPUs, features, licences; "
        "docs/nodes.md.",
        default=None,
        metavar="TOML",
    )
    requests: Path | None = option(
        "What jobs ask of nodes, as `lrms-sim import --requests` writes it; others ask for their "
        "processors and the memory that the log tells.",
        default=None,
        metavar="CSV",
    )


def chosen_machine(
    options: NodeOptions, name: str | None, **others: object
) -> "NodeMachine | None":
    """Returns the machine of nodes that the options name; `None` for one of processors.

    Args:
        options: of the command.
        name: the machine's, if the user gives it one.
        others: by its name, what the user has given for an option that nodes exclude.

    Raises:
        click.UsageError: options contradict each other.
        ValueError: the file cannot be used.
    """
    if options.nodes is None:
        if options.requests is not None:
            raise click.UsageError("--requests goes with --nodes, which says what nodes there are")
        return None
    for key, chosen in others.items():
        if chosen is not None and chosen is not False:
            raise click.UsageError(f"--nodes and --{key.replace('_', '-')} exclude each other")
    from lrms_sim.machine.node_files import read_machine  # noqa: PLC0415  # help and errors come at once

    machine = read_machine(options.nodes)
    return replace(machine, name=name) if name else machine


def prepared_on_nodes(
    log: "SwfLog",
    prepared: "Prepared",
    machine: "NodeMachine",
    options: NodeOptions,
    rules: "DemandOptions",
    *,
    too_wide: Literal["drop", "error"],
) -> "PreparedOnNodes":
    """Returns the jobs that fit on the machine, and what they ask of it.

    Raises:
        ValueError: the file of requests cannot be used, or a job does not fit and that is an error.
    """
    from lrms_sim.machine.demands import on_nodes  # noqa: PLC0415  # same
    from lrms_sim.workload.request_files import read_requests  # noqa: PLC0415  # help and errors come at once

    requests = {} if options.requests is None else read_requests(options.requests)
    return on_nodes(log, prepared, machine, rules, requests, too_wide=too_wide)


def replayed_on_nodes(
    jobs: "JobTable",
    machine: "NodeMachine",
    queue: "Discipline",
    asked: "PreparedOnNodes",
    progress: "Callable[[int], None] | None",
    *,
    places: bool,
) -> "NodeSchedule":
    """Replays jobs on a machine of nodes; `places` tells which each job had.

    Raises:
        click.UsageError: the discipline knows no nodes.
        ValueError: as for `lrms_sim.machine.nodes.simulate_on_nodes`.
    """
    from lrms_sim.machine.nodes import NODE_DISCIPLINES, simulate_on_nodes  # noqa: PLC0415  # help and errors come at once
    from lrms_sim.scheduling.user_defined import UserDefinedDiscipline  # noqa: PLC0415  # same

    discipline = queue if isinstance(queue, UserDefinedDiscipline) else queue.name
    if isinstance(discipline, str) and discipline not in NODE_DISCIPLINES:
        raise click.UsageError(
            f"discipline {queue.name!r} knows no nodes; with --nodes there are "
            f"{', '.join(NODE_DISCIPLINES)}, and those written in Python"
        )
    return simulate_on_nodes(
        jobs, machine, discipline, demands=asked.of(jobs), places=places, progress=progress
    )
