"""A machine of nodes: what jobs ask of it, and the replay of a workload.

What exactly fits where, and in which order nodes are taken: docs/nodes.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
import numpy.typing as npt

from lrms_sim.kernel._nodes import NodeScheduler
from lrms_sim.kernel._nodes_conservative import NodeConservative
from lrms_sim.kernel._python_scheduler import PythonScheduler
from lrms_sim.kernel._scheduler import Scheduler
from lrms_sim.machine.machine import replayed
from lrms_sim.machine.node_kinds import NodeKind, NodeMachine
from lrms_sim.scheduling.disciplines import Discipline, discipline_by_name, scheduler_of
from lrms_sim.scheduling.user_defined import Decides, MachineView, UserDefinedDiscipline
from lrms_sim.workload.jobs import Int32Array, Int64Array, JobTable
from lrms_sim.workload.requests import COUNT_MAX, Request
from lrms_sim.workload.schedule import Schedule

__all__ = [
    "NODE_DISCIPLINES",
    "Demands",
    "NodeKind",
    "NodeMachine",
    "NodeSchedule",
    "demand_row",
    "fits",
    "scheduler_on_nodes",
    "simulate_on_nodes",
]

NODE_DISCIPLINES = (
    "fcfs",
    "list",
    "easy",
    "easy-per-event",
    "conservative",
    "easy-sjbf-per-event",
    "easy-plus-plus",
)
"""Disciplines that a machine of nodes can run, by the names that they have on a machine of processors."""


@dataclass(frozen=True, slots=True, eq=False)
class Demands:
    """What the jobs of a table ask of a machine of nodes, told once for all that ask for the same.

    Attributes:
        requests: one for each shape.
        shape: shape (n,), the number in `requests` of each job's.
    """

    requests: tuple[Request, ...]
    shape: Int32Array

    def __post_init__(self) -> None:
        """Checks the numbers.

        Raises:
            ValueError: a job's number is that of no request.
        """
        if len(self.shape) and not 0 <= self.shape.min() <= self.shape.max() < len(self.requests):
            raise ValueError(f"a job's shape is none of the {len(self.requests)} there are")

    @classmethod
    def of(cls, requests: Sequence[Request]) -> Demands:
        """Returns the demands of jobs, a request for each."""
        numbers: dict[Request, int] = {}
        shape = np.fromiter(
            (numbers.setdefault(request, len(numbers)) for request in requests),
            np.int32,
            len(requests),
        )
        return cls(tuple(numbers), shape)

    @classmethod
    def of_processors(cls, jobs: JobTable) -> Demands:
        """Returns the demands of jobs that ask for processors alone."""
        widths, shape = np.unique(jobs.processors, return_inverse=True)
        return cls(
            tuple(Request.of_processors(int(width)) for width in widths), shape.astype(np.int32)
        )

    @classmethod
    def concatenated(cls, parts: Sequence[Demands]) -> Demands:
        """Returns the demands of several tables one after the other."""
        numbers: dict[Request, int] = {}
        shapes = []
        for part in parts:
            own = [numbers.setdefault(request, len(numbers)) for request in part.requests]
            shapes.append(np.array(own, np.int32)[part.shape])
        return cls(tuple(numbers), np.concatenate(shapes))

    def select(self, rows: npt.NDArray[np.integer]) -> Demands:
        """Returns those of some rows, in their order."""
        used, shape = np.unique(self.shape[rows], return_inverse=True)
        return Demands(
            tuple(self.requests[number] for number in used.tolist()), shape.astype(np.int32)
        )


@dataclass(frozen=True, slots=True, eq=False)
class NodeSchedule:
    """When every job ran on a machine of nodes, and what it held there.

    Attributes:
        schedule: start and end of every job, n of them.
        machine: where they ran.
        demands: what they asked for.
        nodes: shape (n,), nodes on which each ran; 0 where it does not matter, as nobody asked for more
            than processors.
        cores: shape (n,), cores that it held; all of its nodes' where it was exclusive.
        memory: shape (n,), same, MiB; 0 on nodes whose memory is not counted.
        gpus: shape (n,), same.
        places: of each job its nodes by number, each with the cores that it held there; `None` where nobody
            asked for them, or it does not matter.
    """

    schedule: Schedule
    machine: NodeMachine
    demands: Demands
    nodes: Int64Array
    cores: Int64Array
    memory: Int64Array
    gpus: Int64Array
    places: tuple[tuple[tuple[int, int], ...], ...] | None = None


def demand_row(request: Request, machine: NodeMachine) -> tuple[int, ...]:
    """Returns a request as the kernel takes it; columns as in `NodeScheduler`.

    A request for a licence that the machine does not have fits on none of its kinds.
    """
    gpus = request.node_gpus()
    task_gpus = gpus.count if gpus is not None and gpus.per == "task" else 0
    node_gpus = gpus.count if gpus is not None and gpus.per == "node" else 0
    task_memory = node_memory = 0
    if request.memory is not None:
        mib = request.memory.mib
        if request.memory.per == "core":
            task_memory = mib * request.cores_per_task
        elif request.memory.per == "gpu":
            task_memory, node_memory = mib * task_gpus, mib * node_gpus
        else:
            node_memory = mib
    nodes_max = COUNT_MAX if request.nodes_max is None else request.nodes_max
    most = request.tasks - (request.nodes_min - 1)
    if request.tasks_per_node is not None:
        most = min(most, request.tasks_per_node)
    kinds = machine.kinds_for("" if gpus is None else gpus.type, request.features)
    licences = Counter[str]()
    for name, count in request.licences:
        licences[name] += count
    counts = [min(licences.pop(name, 0), COUNT_MAX) for name, _ in machine.licences]
    if licences:
        kinds = 0
    return (
        request.tasks,
        request.cores_per_task,
        most,
        request.nodes_min,
        1 if request.on_one_node else nodes_max,
        task_gpus,
        node_gpus,
        int(request.exclusive),
        min(
            task_memory, _UNCOUNTED // 2
        ),  # more is that of more cores or GPUs than a node may have
        min(node_memory, _UNCOUNTED // 2),
        kinds if kinds < 2**63 else kinds - 2**64,
        *counts,
    )


def fits(request: Request, machine: NodeMachine) -> bool:
    """Returns whether a job fits on a machine when it is empty."""
    return not scheduler_on_nodes(machine, Demands.of([request]), "fcfs").misfits()


def scheduler_on_nodes(machine: NodeMachine, demands: Demands, discipline: str) -> NodeScheduler:
    """Returns a new compiled scheduler for jobs with these demands.

    Raises:
        ValueError: there is no such discipline on nodes.
    """
    if discipline not in NODE_DISCIPLINES:
        raise ValueError(
            f"no discipline {discipline!r} on a machine of nodes; there are {', '.join(NODE_DISCIPLINES)}"
        )
    kinds = np.array(
        [(kind.nodes, kind.cores, kind.memory or _UNCOUNTED, kind.gpus) for kind in machine.kinds],
        np.int64,
    )
    rows = np.array([demand_row(request, machine) for request in demands.requests], np.int64)
    rows = rows.reshape(len(demands.requests), 11 + len(machine.licences))
    licences = np.array([count for _, count in machine.licences], np.int64)
    shape = np.ascontiguousarray(demands.shape, np.int32)
    best_fit = machine.placement == "best-fit"
    if discipline == "conservative":
        return NodeConservative(kinds, rows, shape, licences, best_fit=best_fit)
    return NodeScheduler(discipline, kinds, rows, shape, licences, best_fit=best_fit)


def misfits(machine: NodeMachine, demands: Demands) -> list[int]:
    """Returns the shapes of jobs that do not fit on the empty machine, ascending."""
    return scheduler_on_nodes(machine, demands, "fcfs").misfits()


_UNCOUNTED = 2**60


def simulate_on_nodes(
    jobs: JobTable,
    machine: NodeMachine,
    discipline: str | UserDefinedDiscipline | Decides | Callable[[MachineView], object] = "easy",
    *,
    demands: Demands | None = None,
    places: bool = False,
    progress: Callable[[int], None] | None = None,
) -> NodeSchedule:
    """Replays a workload on one machine of nodes from the first submission to the last end.

    Args:
        jobs: the workload, n jobs; `processors` are the cores of all tasks of each.
        machine: its nodes.
        discipline: one of `NODE_DISCIPLINES`, or one written in Python (`lrms_sim.scheduling.user_defined`).
        demands: what each job asks for; processors alone where left out.
        places: whether to tell on which nodes each job ran.
        progress: called now and then with the number of jobs that have arrived so far.

    Returns:
        The schedule, rows as in `jobs`, and what each job held.

    Raises:
        ValueError: a job does not fit on the empty machine, demands are of other jobs, or there is no such
            discipline.
        TypeError: the discipline is an object that knows no nodes.
    """
    if demands is None:
        demands = Demands.of_processors(jobs)
    own = discipline if isinstance(discipline, str) else "fcfs"
    nodes = scheduler_on_nodes(machine, demands, own)
    check_demands(jobs, machine, demands, nodes)
    if places:
        nodes.keep_places()
    scheduler: Scheduler = nodes
    if not isinstance(discipline, str):
        scheduler = _written_on(machine, demands, nodes, discipline, jobs)
    elif all(request.processors_alone for request in demands.requests):
        # It does not matter who has which nodes. A reservation need not be one of certain nodes, then.
        scheduler = discipline_by_name(discipline).scheduler()
    schedule = replayed(
        jobs, machine.processors, scheduler, groups=None, name=machine.name, progress=progress
    )
    held = nodes.held()
    cores = np.where(held[:, 0] > 0, held[:, 1], jobs.processors)
    where = _places(machine, demands, nodes) if places and held[:, 0].all() else None
    return NodeSchedule(
        schedule, machine, demands, held[:, 0], cores, held[:, 2], held[:, 3], where
    )


def _places(
    machine: NodeMachine, demands: Demands, nodes: NodeScheduler
) -> tuple[tuple[tuple[int, int], ...], ...]:
    whole = [kind.cores for kind in machine.kinds for _ in range(kind.nodes)]
    asked = [demands.requests[number] for number in demands.shape.tolist()]
    return tuple(
        tuple(
            (node, whole[node] if request.exclusive else tasks * request.cores_per_task)
            for node, tasks in nodes.places(job)
        )
        for job, request in enumerate(asked)
    )


def check_demands(
    jobs: JobTable, machine: NodeMachine, demands: Demands, nodes: NodeScheduler | None = None
) -> None:
    """Checks that every job fits on the empty machine; `nodes` is a new scheduler of it, if there is one.

    Raises:
        ValueError: one does not, or the demands are of other jobs.
    """
    if len(demands.shape) != len(jobs):
        raise ValueError(f"demands of {len(demands.shape)} jobs, and there are {len(jobs)}")
    widths = np.array([request.processors for request in demands.requests], np.int64)
    wrong = np.flatnonzero(widths[demands.shape] != jobs.processors)
    if len(wrong):
        row = int(wrong[0])
        raise ValueError(
            f"job {jobs.job_id[row]} has {jobs.processors[row]} processors and asks for "
            f"{demands.requests[demands.shape[row]]}"
        )
    if wide := nodes.misfits() if nodes is not None else misfits(machine, demands):
        row = int(np.argmax(np.isin(demands.shape, wide)))
        misfit = demands.shape[row]
        raise ValueError(
            f"job {jobs.job_id[row]} asks for {demands.requests[misfit]}, which machine "
            f"{machine.name!r} does not have even when it is empty"
        )


def _written_on(
    machine: NodeMachine,
    demands: Demands,
    nodes: NodeScheduler,
    discipline: UserDefinedDiscipline | Decides | Callable[[MachineView], object],
    jobs: JobTable,
) -> Scheduler:
    scheduler = scheduler_of(cast("Discipline", discipline), jobs.job_id)
    if not isinstance(scheduler, PythonScheduler):
        names = ", ".join(NODE_DISCIPLINES)
        raise TypeError(f"{discipline!r} knows no nodes; name one of {names}")
    scheduler.place_on(nodes, machine, lambda job: demands.requests[demands.shape[job]])
    return scheduler
