"""Protobuf messages as plain values, for the output of commands."""

from typing import Any

from google.protobuf.message import Message


def of_message(message: Message, *names: str) -> dict[str, Any]:
    """Returns named fields (default: all) of a message; an absent optional one is `None`."""
    found: dict[str, Any] = {}
    for field in message.DESCRIPTOR.fields:
        if names and field.name not in names:
            continue
        there = not field.has_presence or message.HasField(field.name)
        value = getattr(message, field.name)
        found[field.name] = _plain(value) if there else None
    return found


def enum_word(kind: Any, number: int, prefix: str) -> str:
    """Returns the word for a value of an enum: `running` for STATE_RUNNING with prefix `STATE_`.

    A value of a later version is named by its number.
    """
    if number not in kind.values():
        return f"state {number} of a later version"
    return str(kind.Name(number)).removeprefix(prefix).lower()


def _plain(value: Any) -> Any:
    # Protobuf's maps and lists are no dict and list.
    if hasattr(value, "items"):
        return dict(value.items())
    if isinstance(value, Message):
        return of_message(value)
    if not hasattr(value, "extend"):
        return value
    return [_plain(each) for each in value]
