"""Messages of the wire as plain values, for what commands print."""

from typing import Any

from google.protobuf.message import Message


def of_message(message: Message, *names: str) -> dict[str, Any]:
    """Returns fields of a message by their names; one that may be left out and is, is None.

    Args:
        message: any.
        names: of its fields; all where left out.
    """
    found: dict[str, Any] = {}
    for field in message.DESCRIPTOR.fields:
        if names and field.name not in names:
            continue
        there = not field.has_presence or message.HasField(field.name)
        value = getattr(message, field.name)
        # A map of protobuf's is no dict.
        value = dict(value.items()) if hasattr(value, "items") else value
        found[field.name] = value if there else None
    return found
