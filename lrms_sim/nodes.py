"""A machine of nodes: kinds of nodes, what jobs ask of them, and the replay of a workload.

What exactly fits where, and in which order nodes are taken: docs/nodes.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from lrms_sim._kernel import MachineKernel
from lrms_sim._nodes import NodeScheduler
from lrms_sim._nodes_conservative import NodeConservative
from lrms_sim.disciplines import discipline_by_name
from lrms_sim.jobs import Int32Array, JobTable
from lrms_sim.machine import PROGRESS_ROWS, simulate, user_numbers
from lrms_sim.requests import COUNT_MAX, MEMORY_MAX, Request
from lrms_sim.schedule import MachineInfo, Schedule

Placement = Literal["best-fit", "first-fit"]
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

KINDS_MAX = 64
"""Kinds of nodes in one machine: a job's kinds are a set of 64 bits."""


@dataclass(frozen=True, slots=True)
class NodeKind:
    """Nodes that are all alike.

    Attributes:
        name: unique within the machine.
        nodes: how many there are.
        cores: of each node.
        memory: of each node, MiB; 0 where nobody counts it: then every job's memory fits.
        gpus: of each node.
        gpu_type: their type.
        features: names that jobs may ask for.
    """

    name: str
    nodes: int
    cores: int
    memory: int = 0
    gpus: int = 0
    gpu_type: str = ""
    features: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        """Checks the numbers.

        Raises:
            ValueError: one is out of range.
        """
        for what, number, least, most in (
            ("nodes", self.nodes, 1, COUNT_MAX),
            ("cores", self.cores, 1, 2**15),
            ("memory", self.memory, 0, MEMORY_MAX),
            ("GPUs", self.gpus, 0, 2**15),
        ):
            if not least <= number <= most:
                raise ValueError(
                    f"node kind {self.name!r}: {what} is {number}; it must be from {least} to {most}"
                )


@dataclass(frozen=True, slots=True)
class NodeMachine:
    """A machine of nodes.

    Attributes:
        kinds: in the order in which they are filled: put first what is asked for least by jobs that
            need something special, as Slurm's `Weight` does.
        placement: which of a kind's nodes is taken first: the one with the fewest free cores
            (`best-fit`) or the one with the lowest number (`first-fit`).
        name: in schedules.
    """

    kinds: tuple[NodeKind, ...]
    placement: Placement = "best-fit"
    name: str = "machine"

    def __post_init__(self) -> None:
        """Checks the kinds.

        Raises:
            ValueError: there is none, there are more than 64, two have one name, or the cores are too many.
        """
        if not 1 <= len(self.kinds) <= KINDS_MAX:
            raise ValueError(
                f"{len(self.kinds)} kinds of nodes; from 1 to {KINDS_MAX} are possible"
            )
        names = [kind.name for kind in self.kinds]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ValueError(f"two kinds of nodes are called {twice!r}")
        if self.placement not in ("best-fit", "first-fit"):
            raise ValueError(f"placement {self.placement!r}; there are best-fit and first-fit")
        if self.processors > COUNT_MAX:
            raise ValueError(f"{self.processors} cores in all; at most {COUNT_MAX} are possible")

    @property
    def processors(self) -> int:
        """Cores of all nodes."""
        return sum(kind.nodes * kind.cores for kind in self.kinds)

    @property
    def memory(self) -> int:
        """Memory of all nodes, MiB."""
        return sum(kind.nodes * kind.memory for kind in self.kinds)

    @property
    def gpus(self) -> int:
        """GPUs of all nodes."""
        return sum(kind.nodes * kind.gpus for kind in self.kinds)

    def kinds_for(self, gpu_type: str, features: Sequence[str]) -> int:
        """Returns the kinds with these features, and with that type of GPU where one is named.

        Returns:
            The set as bits; bit k for the k-th kind.
        """
        wanted = frozenset(features)
        return sum(
            1 << number
            for number, kind in enumerate(self.kinds)
            if wanted <= kind.features and (not gpu_type or gpu_type == kind.gpu_type)
        )


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


def demand_row(request: Request, machine: NodeMachine) -> tuple[int, ...]:
    """Returns a request as the kernel takes it; columns as in `NodeScheduler`."""
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
    return (
        request.tasks,
        request.cores_per_task,
        most,
        request.nodes_min,
        1 if request.on_one_node else nodes_max,
        task_gpus,
        node_gpus,
        int(request.exclusive),
        task_memory,
        node_memory,
        kinds if kinds < 2**63 else kinds - 2**64,
    )


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
    rows = rows.reshape(len(demands.requests), 11)
    shape = np.ascontiguousarray(demands.shape, np.int32)
    best_fit = machine.placement == "best-fit"
    if discipline == "conservative":
        return NodeConservative(kinds, rows, shape, best_fit=best_fit)
    return NodeScheduler(discipline, kinds, rows, shape, best_fit=best_fit)


_UNCOUNTED = 2**60


def simulate_on_nodes(
    jobs: JobTable,
    machine: NodeMachine,
    discipline: str = "easy",
    *,
    demands: Demands | None = None,
    progress: Callable[[int], None] | None = None,
) -> Schedule:
    """Replays a workload on one machine of nodes from the first submission to the last end.

    Args:
        jobs: the workload, n jobs; `processors` are the cores of all tasks of each.
        machine: its nodes.
        discipline: one of `NODE_DISCIPLINES`.
        demands: what each job asks for; processors alone where left out.
        progress: called now and then with the number of jobs that have arrived so far.

    Returns:
        The schedule, rows as in `jobs`.

    Raises:
        ValueError: a job does not fit on the empty machine, demands are of other jobs, or there is no such
            discipline.
    """
    count = len(jobs)
    if demands is None:
        demands = Demands.of_processors(jobs)
    if len(demands.shape) != count:
        raise ValueError(f"demands of {len(demands.shape)} jobs, and there are {count}")
    widths = np.array([request.processors for request in demands.requests], np.int64)
    wrong = np.flatnonzero(widths[demands.shape] != jobs.processors)
    if len(wrong):
        row = int(wrong[0])
        raise ValueError(
            f"job {jobs.job_id[row]} has {jobs.processors[row]} processors and asks for "
            f"{demands.requests[demands.shape[row]]}"
        )
    scheduler = scheduler_on_nodes(machine, demands, discipline)
    misfit = scheduler.first_misfit()
    if misfit is not None and count:
        row = int(np.argmax(demands.shape == misfit))
        raise ValueError(
            f"job {jobs.job_id[row]} asks for {demands.requests[misfit]}, which machine "
            f"{machine.name!r} does not have even when it is empty"
        )
    if all(request.processors_alone for request in demands.requests):
        # It does not matter who has which nodes. A reservation need not be one of certain nodes, then.
        return simulate(
            jobs,
            machine.processors,
            discipline_by_name(discipline),
            name=machine.name,
            progress=progress,
        )
    start_time = np.full(count, np.nan)
    end_time = np.full(count, np.nan)
    kernel = MachineKernel(machine.processors, scheduler)
    kernel.bind(
        jobs.submit_time,
        jobs.processors,
        jobs.requested_time,
        jobs.run_time,
        start_time,
        end_time,
        None,
        user_numbers(jobs.user) if scheduler.needs_users else None,
    )
    row = 0
    while True:
        target = min(row + PROGRESS_ROWS, count)
        row = kernel.run(target)
        if progress is not None:
            progress(row)
        if target == count:
            break
    assert kernel.jobs_waiting == kernel.jobs_running == 0
    return Schedule(
        jobs=jobs,
        start_time=start_time,
        end_time=end_time,
        machines=(MachineInfo(machine.name, machine.processors),),
        submitted_to=np.zeros(count, np.int16),
        executed_on=np.zeros(count, np.int16),
        log_job_id=jobs.job_id,
    )
