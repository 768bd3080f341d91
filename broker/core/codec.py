"""Journal records as rows of text, and back; floats keep every bit.

Workflows and resources stand in a row as the wire has them, so that both grow by the same rules.
"""

import base64
import json
from collections.abc import Callable
from dataclasses import fields
from typing import Any, NamedTuple

from broker.core import records as module
from broker.core.lifecycle import TaskState
from broker.core.records import Hold, Program, Record
from broker.core.wire import read_supply, read_workflow, write_supply, write_workflow
from broker.model.plan import Placement
from broker.model.workflow import Demand
from broker.v1 import resource_pb2, workflow_pb2


class Row(NamedTuple):
    """A record as it is kept.

    Attributes:
        time: seconds.
        kind: name of the record's class.
        body: its other fields, a JSON object.
    """

    time: float
    kind: str
    body: str


KINDS: dict[str, type[Record]] = {
    name: kind
    for name, kind in vars(module).items()
    if isinstance(kind, type)
    and issubclass(kind, Record)
    and kind not in {Record, module.BookingRecord}
}
"""Every kind of record by name."""


def _placement_to_json(each: Placement) -> list[Any]:
    demands = [[demand.resource, demand.units] for demand in each.demands]
    return [each.workflow, each.task, demands, each.start, each.end, each.cost]


def _placement_from_json(value: list[Any]) -> Placement:
    workflow, task, demands, start, end, cost = value
    made = tuple(Demand(resource, units) for resource, units in demands)
    return Placement(workflow, task, made, start, end, cost)


def _text(message: Any) -> str:
    return base64.b64encode(message.SerializeToString(deterministic=True)).decode("ascii")


_TO_JSON: dict[str, Callable[[Any], Any]] = {
    "workflow": lambda value: _text(write_workflow(value)),
    "supply": lambda value: _text(write_supply(value)),
    "programs": lambda value: [
        [each.task, base64.b64encode(each.content).decode("ascii")] for each in value
    ],
    "placement": _placement_to_json,
    "placements": lambda value: [_placement_to_json(each) for each in value],
    "unplanned": lambda value: [list(each) for each in value],
    "holds": lambda value: [[each.site, each.resource, each.units] for each in value],
    "reservations": list,
    "state": lambda value: value.value,
}
_FROM_JSON: dict[str, Callable[[Any], Any]] = {
    "workflow": lambda text: read_workflow(
        workflow_pb2.WorkflowSpec.FromString(base64.b64decode(text))
    )[0],
    "supply": lambda text: read_supply(resource_pb2.Resource.FromString(base64.b64decode(text))),
    "programs": lambda rows: tuple(Program(task, base64.b64decode(text)) for task, text in rows),
    "placement": _placement_from_json,
    "placements": lambda rows: tuple(_placement_from_json(row) for row in rows),
    "unplanned": lambda rows: tuple((w, t, r) for w, t, r in rows),
    "holds": lambda rows: tuple(Hold(*row) for row in rows),
    "reservations": tuple,
    "state": TaskState,
}


def encode(record: Record) -> Row:
    """Returns a record as a row."""
    body = {}
    for each in fields(record)[1:]:
        value = getattr(record, each.name)
        convert = _TO_JSON.get(each.name)
        body[each.name] = value if convert is None else convert(value)
    text = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
    return Row(record.time, type(record).__name__, text)


def decode(row: Row) -> Record:
    """Returns a row as the record it was.

    Raises:
        ValueError: the row is of no kind that is known, or not as `encode` makes it.
    """
    kind = KINDS.get(row.kind)
    if kind is None:
        raise ValueError(f"{row.kind!r} is no kind of record")
    try:
        body = json.loads(row.body)
        values = {
            name: value if (convert := _FROM_JSON.get(name)) is None else convert(value)
            for name, value in body.items()
        }
        return kind(float(row.time), **values)
    except (TypeError, AttributeError, ValueError, KeyError) as error:
        raise ValueError(f"this is no {row.kind}: {row.body!r:.200} ({error})") from error
