"""Journal records as rows of text and bytes, and back.

A row has the record's time, its kind (the name of its class), the rest of its fields as one JSON
object, and what runs as bytes. Floats keep every bit.
"""

import json
from collections.abc import Callable
from dataclasses import fields
from typing import Any, NamedTuple

from grms.site.facts import records as module
from grms.site.facts.jobs import Exit, OfferId, Request
from grms.site.facts.lifecycle import Outcome
from grms.site.facts.records import Record


class Row(NamedTuple):
    """A record as it is kept.

    Attributes:
        time: seconds.
        kind: name of the record's class.
        body: its fields but time and payload, a JSON object.
        payload: what runs; None where the record has no such field.
    """

    time: float
    kind: str
    body: str
    payload: bytes | None


KINDS: dict[str, type[Record]] = {
    name: kind
    for name, kind in vars(module).items()
    if isinstance(kind, type) and issubclass(kind, Record) and kind is not Record
}
"""Every kind of record by name."""

_TO_JSON: dict[str, Callable[[Any], Any]] = {
    "request": lambda request: [request.processors, request.requested_time],
    "offer": lambda offer: [offer.epoch, offer.number],
    "outcome": lambda outcome: outcome.value,
    "exit": lambda left: [left.code, left.signal],
}
_FROM_JSON: dict[str, Callable[[Any], Any]] = {
    "request": lambda value: Request(*value),
    "offer": lambda value: OfferId(*value),
    "outcome": Outcome,
    "exit": lambda value: Exit(*value),
    "closed": tuple,
    "overdue": tuple,
    "promised": lambda rows: tuple(map(tuple, rows)),
}
_FIELDS = {
    name: tuple(field.name for field in fields(kind) if field.name not in {"time", "payload"})
    for name, kind in KINDS.items()
}
_WITH_PAYLOAD = {
    name for name, kind in KINDS.items() if "payload" in {field.name for field in fields(kind)}
}
_READERS = {
    name: tuple((field, _FROM_JSON.get(field)) for field in names)
    for name, names in _FIELDS.items()
}
"""What makes a value of JSON a field's value, in the order of the fields."""

_PAYLOAD_AT = {
    name: [field.name for field in fields(KINDS[name])].index("payload") - 1
    for name in _WITH_PAYLOAD
}
"""Where the payload stands among the fields behind the time."""

_encode_json = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode
_decode_json = json.JSONDecoder().raw_decode


def encode(record: Record) -> Row:
    """Returns a record as a row."""
    kind = type(record).__name__
    body = {}
    for name in _FIELDS[kind]:
        value = getattr(record, name)
        convert = _TO_JSON.get(name)
        body[name] = value if convert is None else convert(value)
    payload = getattr(record, "payload") if kind in _WITH_PAYLOAD else None  # noqa: B009  # only some kinds have it
    return Row(record.time, kind, _encode_json(body), payload)


def decode(row: Row) -> Record:
    """Returns a row as the record it was.

    Raises:
        ValueError: the row is of no kind that is known, or not as `encode` makes it.
    """
    kind = KINDS.get(row.kind)
    if kind is None:
        raise ValueError(f"{row.kind!r} is no kind of record")
    # A start of the daemon does this for every record: what is checked is checked cheaply.
    payload = row.payload
    try:
        body, end = _decode_json(row.body)
        readers = _READERS[row.kind]
        if (
            len(body) != len(readers)
            or end != len(row.body)
            or (payload is None) == (row.kind in _WITH_PAYLOAD)
        ):
            raise ValueError(f"a {row.kind} has not the fields {', '.join(body)}")  # noqa: TRY301  # all of it is one error to the caller
        values = [
            body[field] if convert is None else convert(body[field]) for field, convert in readers
        ]
        if payload is not None:
            values.insert(_PAYLOAD_AT[row.kind], bytes(payload))
        return kind(float(row.time), *values)
    except (TypeError, AttributeError, KeyError, ValueError) as error:
        raise ValueError(f"this is no {row.kind}: {row.body!r:.200} ({error})") from error
