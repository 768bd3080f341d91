"""What a job takes of the nodes of one partition. Pure."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from grms.lrms.partitions import Partition
from lrms_sim.workload.requests import Gpus, Memory, Request


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
