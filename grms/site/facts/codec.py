"""Journal records as rows of text and bytes, and back.

A row has the record's time, its kind (the name of its class), the rest of its fields as one JSON
object, and what runs as bytes. Floats keep every bit.

A start of the daemon reads all records of its journal, and one that works on many jobs writes thousands
a second, so what is the same for all records of a kind is worked out once (`_Form`).
"""

import json
from collections.abc import Callable
from dataclasses import fields
from json.encoder import encode_basestring_ascii
from math import isfinite
from operator import attrgetter, itemgetter
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

_FROM_JSON: dict[str, Callable[[Any], Any]] = {
    "request": lambda value: Request(*value),
    "offer": lambda value: OfferId(*value),
    "outcome": Outcome,
    "exit": lambda value: Exit(*value),
    "closed": tuple,
    "overdue": tuple,
    "left_out": tuple,
    "promised": lambda rows: tuple(map(tuple, rows)),
}

_encode_json = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode
_decode_json: Callable[[str, int], tuple[Any, int]] = json.JSONDecoder().scan_once  # type: ignore[attr-defined]  # not in the stubs
"""Returns the value that begins at a place of a text, and where it ends; StopIteration where none does."""


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
        names: of the fields that are in the body, in order.
        body: the body, with a place for each of their values.
        values: returns these values of a record in that order.
        items: returns the values of a body in that order.
        read: places among them, each with what makes a field of a value of JSON; of few fields alone.
        payload_at: where the payload stands among the fields behind the time; -1 for none.
    """

    __slots__ = ("body", "items", "kind", "names", "payload_at", "read", "values")

    def __init__(self, kind: type[Record]) -> None:
        behind = [field.name for field in fields(kind) if field.name != "time"]
        names = [name for name in behind if name != "payload"]
        self.kind: Callable[..., Record] = kind
        self.names = tuple(names)
        self.body = "{" + ",".join(f'"{name}":%s' for name in names) + "}"
        self.read = tuple(
            (at, _FROM_JSON[name]) for at, name in enumerate(names) if name in _FROM_JSON
        )
        self.payload_at = behind.index("payload") if "payload" in behind else -1
        values: Callable[[Any], Any] = attrgetter(*names)
        items: Callable[[Any], Any] = itemgetter(*names)
        # A getter of one thing returns that thing, and not a tuple of one.
        self.values = values if len(names) > 1 else lambda record: (values(record),)
        self.items = items if len(names) > 1 else lambda body: (items(body),)


_FORMS = {name: _Form(kind) for name, kind in KINDS.items()}


def encode(record: Record) -> Row:
    """Returns a record as a row."""
    kind = type(record).__name__
    form = _FORMS[kind]
    texts = [_TEXTS.get(type(value), _encode_json)(value) for value in form.values(record)]
    payload = getattr(record, "payload") if form.payload_at >= 0 else None  # noqa: B009  # only some kinds have it
    return Row(record.time, kind, form.body % tuple(texts), payload)


def decode(row: tuple[float, str, str, bytes | None]) -> Record:
    """Returns a row as the record it was.

    Raises:
        ValueError: the row is of no kind that is known, or not as `encode` makes it.
    """
    moment, kind, body, payload = row
    form = _FORMS.get(kind)
    if form is None:
        raise ValueError(f"{kind!r} is no kind of record")
    # A start of the daemon does this for every record: what is checked is checked cheaply.
    try:
        found, end = _decode_json(body, 0)
        if (
            len(found) != len(form.names)
            or end != len(body)
            or (payload is None) == (form.payload_at >= 0)
        ):
            raise ValueError(f"a {kind} has not the fields {', '.join(found)}")  # noqa: TRY301  # all of it is one error to the caller
        values = form.items(found)
        if form.read or payload is not None:
            changed = list(values)
            for at, convert in form.read:
                changed[at] = convert(changed[at])
            if payload is not None:
                changed.insert(form.payload_at, bytes(payload))
            return form.kind(float(moment), *changed)
        return form.kind(float(moment), *values)
    except (TypeError, AttributeError, KeyError, ValueError, StopIteration) as error:
        raise ValueError(f"this is no {kind}: {body!r:.200} ({error})") from error
