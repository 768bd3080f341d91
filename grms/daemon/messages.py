"""Protobuf messages as plain values, for the output of commands, and those that mean nothing."""

import re
from typing import Any

from google.protobuf.message import Message


class WireError(ValueError):
    """A message that means nothing; `field` is the one that is wrong."""

    def __init__(self, field: str, text: str) -> None:
        self.field = field
        super().__init__(text)


def of_message(message: Message, *names: str) -> dict[str, Any]:
    """Returns named fields (default: all) of a message; an absent optional one is `None`."""
    found: dict[str, Any] = {}
    for field in message.DESCRIPTOR.fields:
        if names and field.name not in names:
            continue
        there = not field.has_presence or message.HasField(field.name)
        value = enum_word(message, field.name) if field.enum_type else getattr(message, field.name)
        found[field.name] = _plain(value) if there else None
    return found


def enum_word(message: Message, name: str = "state") -> str:
    """Returns the word for an enum field of a message: `running` for JOB_STATE_RUNNING of JobState.

    A value of a later version is named by its number.
    """
    number, enum = getattr(message, name), message.DESCRIPTOR.fields_by_name[name].enum_type
    assert enum is not None
    if number not in enum.values_by_number:
        return f"{name} {number} of a later version"
    prefix = re.sub(r"(?<!^)([A-Z])", r"_\1", enum.name).upper()
    return str(enum.values_by_number[number].name).removeprefix(f"{prefix}_").lower()


def _plain(value: Any) -> Any:
    # Protobuf's maps and lists are no dict and list.
    if hasattr(value, "items"):
        return dict(value.items())
    if isinstance(value, Message):
        return of_message(value)
    if isinstance(value, bytes):
        return value.hex()
    if not hasattr(value, "extend"):
        return value
    return [_plain(each) for each in value]
