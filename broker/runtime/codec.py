"""How the broker's records are encoded in its journal.

Workflows and resources are encoded as on the wire, so that both evolve by the same rules. Floats
are kept exactly.
"""

import msgspec
from google.protobuf.message import DecodeError

from broker.scheduler.records import (
    KINDS,
    Record,
    ResourceSet,
    TasksAdded,
    WorkflowOpened,
    WorkflowSubmitted,
)
from broker.v1 import resource_pb2, workflow_pb2
from broker.wire.convert import (
    read_additions,
    read_open_workflow,
    read_supply,
    read_workflow,
    write_additions,
    write_open_workflow,
    write_supply,
    write_workflow,
)
from grms.daemon.journal import RecordCodec


class _Submitted(Record, frozen=True, tag=WorkflowSubmitted.__name__):
    workflow_id: str
    key: str
    workflow: bytes


class _Set(Record, frozen=True, tag=ResourceSet.__name__):
    supply: bytes


class _Opened(Record, frozen=True, tag=WorkflowOpened.__name__):
    workflow_id: str
    key: str
    workflow: bytes


class _Added(Record, frozen=True, tag=TasksAdded.__name__):
    workflow_id: str
    tasks: bytes


_STORED: dict[type[Record], type[Record]] = {
    WorkflowSubmitted: _Submitted,
    ResourceSet: _Set,
    WorkflowOpened: _Opened,
    TasksAdded: _Added,
}


class BrokerCodec:
    """Writes and reads the broker's records."""

    def __init__(self) -> None:
        self._codec = RecordCodec[Record](_STORED.get(kind, kind) for kind in KINDS)

    def encode(self, records: list[Record]) -> bytes:
        """Encodes records."""
        return self._codec.encode([_stored(record) for record in records])

    def decode(self, body: bytes) -> list[Record]:
        """Decodes records."""
        try:
            return [_read(record) for record in self._codec.decode(body)]
        except (DecodeError, ValueError) as error:
            raise msgspec.DecodeError(str(error)) from error


def _stored(record: Record) -> Record:
    if isinstance(record, WorkflowSubmitted):
        spec = write_workflow(record.workflow, record.programs, repeated=0)
        workflow = spec.SerializeToString(deterministic=True)
        return _Submitted(record.time, record.workflow_id, record.key, workflow)
    if isinstance(record, ResourceSet):
        supply = write_supply(record.supply).SerializeToString(deterministic=True)
        return _Set(record.time, supply)
    if isinstance(record, WorkflowOpened):
        opened = write_open_workflow(record.workflow).SerializeToString(deterministic=True)
        return _Opened(record.time, record.workflow_id, record.key, opened)
    if isinstance(record, TasksAdded):
        request = workflow_pb2.AddRequest()
        write_additions(request, record.additions, repeated=0)
        tasks = request.SerializeToString(deterministic=True)
        return _Added(record.time, record.workflow_id, tasks)
    return record


def _read(record: Record) -> Record:
    if isinstance(record, _Submitted):
        spec = workflow_pb2.WorkflowSpec.FromString(record.workflow)
        return WorkflowSubmitted(record.time, record.workflow_id, record.key, *read_workflow(spec))
    if isinstance(record, _Set):
        return ResourceSet(
            record.time, read_supply(resource_pb2.Resource.FromString(record.supply))
        )
    if isinstance(record, _Opened):
        opened = workflow_pb2.WorkflowSpec.FromString(record.workflow)
        workflow = read_open_workflow(opened)
        return WorkflowOpened(record.time, record.workflow_id, record.key, workflow)
    if isinstance(record, _Added):
        added = workflow_pb2.AddRequest.FromString(record.tasks)
        return TasksAdded(record.time, record.workflow_id, read_additions(added))
    return record
