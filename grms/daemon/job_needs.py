"""What a job asks for besides processors, as a message between programs."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from google.protobuf.unknown_fields import UnknownFieldSet

from grms.v1 import request_pb2
from lrms_sim.workload.requests import Gpus, Memory, Request, RequestError, check_names

if TYPE_CHECKING:
    from lrms_sim.machine.node_kinds import (
        NodeKind,  # not for users' commands, which it would slow down
    )

NODES_MAX: Final = 2**20
"""Most nodes that a site tells of: whoever asks what fits there has to go through them."""

_MEMORY: Final[dict[Any, Any]] = {
    "node": request_pb2.MEMORY_SCOPE_NODE,
    "core": request_pb2.MEMORY_SCOPE_CORE,
    "gpu": request_pb2.MEMORY_SCOPE_GPU,
}
_GPUS: Final[dict[Any, Any]] = {
    "node": request_pb2.GPU_SCOPE_NODE,
    "task": request_pb2.GPU_SCOPE_TASK,
    "job": request_pb2.GPU_SCOPE_JOB,
}
_MEMORY_READ: Final = {number: scope for scope, number in _MEMORY.items()}
_GPUS_READ: Final = {number: scope for scope, number in _GPUS.items()}


def write_needs(request: Request) -> request_pb2.Needs:
    """Returns a request as a message; its wall time is not in it."""
    message = request_pb2.Needs(
        tasks=request.tasks,
        cores_per_task=request.cores_per_task,
        nodes_min=request.nodes_min,
        nodes_max=request.nodes_max or 0,
        tasks_per_node=request.tasks_per_node or 0,
        features=request.features,
        exclusive=request.exclusive,
        licences=[request_pb2.Licence(name=name, count=count) for name, count in request.licences],
        image=request.image,
        signal=request.signal,
        signal_before_s=request.signal_before if request.signal else 0.0,
        partition=request.partition,
        account=request.account,
        qos=request.qos,
        modules=request.modules,
    )
    if request.requeue is not None:
        message.requeue = request.requeue
    if (memory := request.memory) is not None:
        message.memory.mib, message.memory.per = memory.mib, _MEMORY[memory.per]
    if (gpus := request.gpus) is not None:
        message.gpus.count, message.gpus.per = gpus.count, _GPUS[gpus.per]
        message.gpus.type = gpus.type
    return message


def read_needs(message: request_pb2.Needs, wall_time: float) -> Request:
    """Returns the request that a message is, with a wall time in seconds.

    Raises:
        RequestError: it contradicts itself, or says what came with a later version.
    """
    for part in (message, message.memory, message.gpus, *message.licences):
        if len(UnknownFieldSet(part)):
            raise RequestError("it asks for what came with a later version")
    request = Request(
        tasks=message.tasks,
        cores_per_task=message.cores_per_task,
        nodes_min=message.nodes_min or 1,
        nodes_max=message.nodes_max or None,
        tasks_per_node=message.tasks_per_node or None,
        memory=_memory(message.memory) if message.HasField("memory") else None,
        gpus=_gpus(message.gpus) if message.HasField("gpus") else None,
        features=tuple(message.features),
        exclusive=message.exclusive,
        licences=tuple((each.name, each.count) for each in message.licences),
        wall_time=wall_time,
        image=message.image,
        signal=message.signal,
        signal_before=message.signal_before_s if message.signal else 60.0,
        requeue=message.requeue if message.HasField("requeue") else None,
        partition=message.partition,
        account=message.account,
        qos=message.qos,
        modules=tuple(message.modules),
    )
    check_names(request)
    return request


def _memory(message: request_pb2.Memory) -> Memory:
    if message.per not in _MEMORY_READ:
        raise RequestError(f"memory is for each of what came with a later version ({message.per})")
    return Memory(message.mib, _MEMORY_READ[message.per])


def _gpus(message: request_pb2.Gpus) -> Gpus:
    if message.per not in _GPUS_READ:
        raise RequestError(f"GPUs are for each of what came with a later version ({message.per})")
    return Gpus(message.count, _GPUS_READ[message.per], message.type)


def write_kinds(kinds: "tuple[NodeKind, ...]") -> list[request_pb2.NodeKind]:
    """Returns what a site tells of its nodes: numbers, and no names."""
    return [
        request_pb2.NodeKind(
            nodes=kind.nodes, cores=kind.cores, memory_mib=kind.memory, gpus=kind.gpus
        )
        for kind in kinds
    ]


def read_kinds(messages: Iterable[request_pb2.NodeKind]) -> "tuple[NodeKind, ...]":
    """Returns what a site has told of its nodes; nothing where it has not.

    Raises:
        ValueError: no site has such nodes.
    """
    from lrms_sim.machine.node_kinds import NodeKind, NodeMachine  # noqa: PLC0415  # see above

    messages = list(messages)
    if sum(each.nodes for each in messages) > NODES_MAX:
        raise ValueError(f"more than {NODES_MAX} nodes")
    kinds = tuple(
        NodeKind(str(number), each.nodes, each.cores, each.memory_mib, each.gpus)
        for number, each in enumerate(messages, 1)
    )
    return NodeMachine(kinds).kinds if kinds else ()
