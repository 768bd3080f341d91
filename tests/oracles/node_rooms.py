"""Whether a job has room on nodes, by trying every way to deal out its tasks."""

import itertools
from collections.abc import Sequence

from grms.lrms.node_groups import NodeGroup
from grms.lrms.partitions import Partition
from lrms_sim.workload.requests import Request


def one_by_one(groups: Sequence[NodeGroup]) -> list[NodeGroup]:
    """Returns the nodes of groups, each as a group of one."""
    return [
        NodeGroup(
            (name,),
            group.partitions,
            group.cores,
            group.memory,
            group.gpus,
            group.features,
            group.free_cores,
            group.free_memory,
            group.free_gpus,
            group.idle,
            group.away,
            group.step,
            group.task_step,
        )
        for group in groups
        for name in group.names
    ]


def holds(request: Request, tasks: int, node: NodeGroup, part: Partition) -> bool:
    """Returns whether so many tasks of a job, and all that its node must have for it, go on one node."""
    alone = request.exclusive or part.whole_nodes
    each = request.tasks_per_node
    rooms = tasks if each is None or each >= request.tasks else each
    gpus = request.node_gpus()
    kind = "" if gpus is None else gpus.type
    there = sum(count for name, count in node.free_gpus if kind in ("", name))
    cores, mib, of_gpus = held(request, rooms, node, part)
    one_core, one_mib, _ = held(request, 1, node, part)
    conditions = [
        not node.away,
        not alone or node.idle,
        set(request.features) <= node.features,
        tasks <= rooms,
        cores <= node.free_cores,
        of_gpus <= there,
        node.memory == 0 or mib <= node.free_memory,
        part.cores_max is None or rooms * request.cores_per_task <= part.cores_max,
        part.memory_max is None or mib <= part.memory_max,
        part.core_memory_max is None or one_mib <= part.core_memory_max * one_core,
    ]
    return all(conditions)


def held(request: Request, tasks: int, node: NodeGroup, part: Partition) -> tuple[int, int, int]:
    """Returns cores, memory (MiB) and GPUs that so many tasks of a job hold on one node."""
    alone = request.exclusive or part.whole_nodes
    each = request.cores_per_task
    while each % node.task_step:
        each += 1
    cores = tasks * each
    while cores % node.step:
        cores += 1
    gpus = request.node_gpus()
    of_gpus = 0 if gpus is None else gpus.count * (tasks if gpus.per == "task" else 1)
    if alone:
        cores = max(cores, node.cores)
    memory = request.memory
    if memory is None and not request.exclusive:
        memory = part.default_memory
    if memory is None:
        return cores, node.memory if request.exclusive or part.all_memory else 0, of_gpus
    return cores, memory.mib * {"node": 1, "core": cores, "gpu": of_gpus}[memory.per], of_gpus


def has_room(request: Request, groups: Sequence[NodeGroup], part: Partition) -> bool:
    """Returns whether there is a way to deal out the tasks of a job over the nodes of a partition."""
    nodes = [node for node in one_by_one(groups) if part.name in node.partitions]
    most = min(request.nodes_max or request.tasks, request.tasks)
    if request.on_one_node:
        most = 1
    if part.nodes_max is not None and part.nodes_max < most:
        if request.nodes_max is not None or request.nodes_min > 1:
            return False
        most = part.nodes_max
    least = max(request.nodes_min, part.nodes_min)
    for ways in itertools.product(range(request.tasks + 1), repeat=len(nodes)):
        used = sum(tasks > 0 for tasks in ways)
        if sum(ways) != request.tasks or not least <= used <= most:
            continue
        if all(
            holds(request, tasks, node, part)
            for tasks, node in zip(ways, nodes, strict=True)
            if tasks
        ):
            return True
    return False
