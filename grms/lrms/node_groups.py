"""Nodes of a machine that are alike, what is promised of them, and what a job takes of those of one partition. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from grms.lrms.partitions import Partition
from lrms_sim.workload.requests import Gpus, Memory, Request


@dataclass(frozen=True, slots=True)
class NodeGroup:
    """Nodes that are alike, and of which as much is free.

    Attributes:
        names: of the nodes.
        partitions: which have them.
        cores: that jobs may have, of each.
        memory: MiB of each; 0 where nobody counts it: then every job's memory fits.
        gpus: how many of each type.
        features: names that jobs may ask for.
        free_cores, free_memory, free_gpus: what no job holds.
        idle: no job is on it.
        away: why it starts no job, in the batch system's words; empty if it works.
        step: cores are given out in multiples of so many.
        task_step: likewise to each task of a job.
        weight: nodes of the least weight are taken first.
    """

    names: tuple[str, ...]
    partitions: frozenset[str]
    cores: int
    memory: int = 0
    gpus: tuple[tuple[str, int], ...] = ()
    features: frozenset[str] = frozenset()
    free_cores: int = 0
    free_memory: int = 0
    free_gpus: tuple[tuple[str, int], ...] = ()
    idle: bool = True
    away: str = ""
    step: int = 1
    task_step: int = 1
    weight: int = 1

    def as_empty(self) -> "NodeGroup":
        """Returns the nodes as they are when everything works and nobody uses them."""
        return replace(
            self,
            free_cores=self.cores,
            free_memory=self.memory,
            free_gpus=self.gpus,
            idle=True,
            away="",
        )


def grouped(nodes: Iterable[NodeGroup]) -> tuple[NodeGroup, ...]:
    """Returns the groups of nodes, given one by one, in order of their first nodes."""
    found: dict[NodeGroup, list[str]] = {}
    for node in nodes:
        found.setdefault(replace(node, names=()), []).extend(node.names)
    return tuple(replace(group, names=tuple(names)) for group, names in found.items())


@dataclass(frozen=True, slots=True)
class Promised:
    """Nodes that somebody else is to have: a waiting job by its plan, or a reservation.

    Attributes:
        begin, end: seconds.
        nodes: their names.
    """

    begin: float
    end: float
    nodes: frozenset[str]


@dataclass(frozen=True, slots=True)
class NodeNeed:
    """A request by the rules of one partition.

    Attributes:
        request: as it was made.
        memory: of each node, core or GPU; `None` for none, or, with `all_memory`, for all.
        gpus: of each node or task; never of the job as a whole.
        whole: it takes all of each node.
        all_memory: it takes all memory of each node.
        nodes_min, nodes_max: of the job.
        cores_max: of the job on one node; `None` for any.
        memory_max: of the job on one node, MiB; `None` for any.
        core_memory_max: of the job for each of its cores on a node, MiB; `None` for any.
        gpu_cores: at least so many for each of its GPUs.
    """

    request: Request
    memory: Memory | None
    gpus: Gpus | None
    whole: bool
    all_memory: bool
    nodes_min: int
    nodes_max: int
    cores_max: int | None
    memory_max: int | None
    core_memory_max: int | None
    gpu_cores: int

    @classmethod
    def of(cls, request: Request, partition: Partition) -> "NodeNeed":
        """Returns what a job takes in a partition."""
        memory = request.memory or (None if request.exclusive else partition.default_memory)
        if request.memory is None and request.gpus is not None and partition.default_gpu_memory:
            memory = Memory(partition.default_gpu_memory, "gpu")
        most = request.tasks
        if request.on_one_node:
            most = 1
        elif request.nodes_max is not None:
            most = min(most, request.nodes_max)
        if partition.nodes_max is not None and partition.nodes_max < most:
            # A batch system does not take a lower number for one that it was given.
            given = request.nodes_max is not None or request.nodes_min > 1
            most = 0 if given else partition.nodes_max
        return cls(
            request,
            memory,
            request.node_gpus(),
            request.exclusive or partition.whole_nodes,
            memory is None and (request.exclusive or partition.all_memory),
            max(request.nodes_min, partition.nodes_min),
            most,
            partition.cores_max,
            partition.memory_max,
            partition.core_memory_max,
            partition.default_gpu_cores if request.cores_per_task == 1 else 0,
        )

    @property
    def gpu_type(self) -> str:
        """Type of its GPUs; empty for any."""
        return "" if self.gpus is None else self.gpus.type

    @property
    def gpus_of_task(self) -> int:
        """How many GPUs each task has of its own."""
        return self.gpus.count if self.gpus is not None and self.gpus.per == "task" else 0

    def gpus_of(self, tasks: int | NDArray[np.int64]) -> int | NDArray[np.int64]:
        """Returns how many GPUs tasks hold on a node: their own, or those that all of them share."""
        if self.gpus_of_task:
            return tasks * self.gpus_of_task
        return tasks * 0 + (0 if self.gpus is None else self.gpus.count)
