"""Journal records as rows of text and bytes, and back.

A row has the record's time, its kind (the name of its class), the rest of its fields as one JSON
object, and what runs as bytes. Floats keep every bit.

A start of the daemon reads all records of its journal, and one that works on many jobs writes thousands
a second, so what is the same for all records of a kind is worked out once (`_Form`), and rows are read
by a kernel.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import fields
from json.encoder import encode_basestring_ascii
from math import isfinite
from operator import attrgetter
from typing import Any, NamedTuple

from grms.site.facts import records as module
from grms.site.facts._rows import Form
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

_FROM_JSON: dict[str, tuple[Callable[..., Any], bool]] = {
    "request": (Request, True),
    "offer": (OfferId, True),
    "outcome": (Outcome, False),
    "exit": (Exit, True),
    "closed": (tuple, False),
    "overdue": (tuple, False),
    "left_out": (tuple, False),
    "promised": (lambda rows: tuple(map(tuple, rows)), False),
}
"""What makes a field of a value of JSON, and whether it takes the values of a row one by one."""

_encode_json = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode


def _text(value: Any) -> str:
    # An encoder of the library is set up anew for each value: for a number that takes ten times as long.
    return _TEXTS.get(type(value), _encode_json)(value)


def _float_text(value: float) -> str:
    return repr(value) if isfinite(value) else _encode_json(value)


_TEXTS: dict[type, Callable[[Any], str]] = {
    int: repr,
    float: _float_text,
    str: encode_basestring_ascii,
    Request: lambda request: f"[{request.processors},{_text(request.requested_time)}]",
    OfferId: lambda offer: f"[{offer.epoch},{offer.number}]",
    Outcome: {outcome: _encode_json(outcome.value) for outcome in Outcome}.__getitem__,
    Exit: lambda left: f"[{_text(left.code)},{_text(left.signal)}]",
}
"""What makes JSON of a value, by its type; the library's encoder does for all others."""


class _Form:
    """How records of one kind are written and read.

    Attributes:
        kind: their class.
        body: the body, with a place for each value of its fields.
        values: returns these values of a record in their order.
        read: reads a row.
        has_payload: whether there is one behind the body.
    """

    __slots__ = ("body", "has_payload", "kind", "read", "values")

    def __init__(self, kind: type[Record]) -> None:
        behind = [field.name for field in fields(kind) if field.name != "time"]
        names = tuple(name for name in behind if name != "payload")
        self.kind: Callable[..., Record] = kind
        self.body = "{" + ",".join(f'"{name}":%s' for name in names) + "}"
        values: Callable[[Any], Any] = attrgetter(*names)
        # A getter of one thing returns that thing, and not a tuple of one.
        self.values = values if len(names) > 1 else lambda record: (values(record),)
        self.has_payload = "payload" in behind
        payload_at = behind.index("payload") if self.has_payload else -1
        self.read = Form(kind.__name__, names, tuple(map(_FROM_JSON.get, names)), payload_at)


_FORMS = {name: _Form(kind) for name, kind in KINDS.items()}


def encode(record: Record) -> Row:
    """Returns a record as a row."""
    kind = type(record).__name__
    form = _FORMS[kind]
    texts = [_TEXTS.get(type(value), _encode_json)(value) for value in form.values(record)]
    payload = getattr(record, "payload") if form.has_payload else None  # noqa: B009  # only some kinds have it
    return Row(record.time, kind, form.body % tuple(texts), payload)


def decode(row: Sequence[Any]) -> Record:
    """Returns a row as the record it was.

    Args:
        row: as `encode` makes it; what stands behind is not looked at.

    Raises:
        ValueError: the row is of no kind that is known, or not as `encode` makes it.
    """
    form = _FORMS.get(row[1])
    if form is None:
        raise ValueError(f"{row[1]!r} is no kind of record")
    return form.kind(float(row[0]), *form.read.values(row[2], row[3]))


def form_of(kind: str) -> Form:
    """Returns what reads the rows of a kind.

    Args:
        kind: one of `KINDS`.
    """
    return _FORMS[kind].read
