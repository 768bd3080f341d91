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
        found[field.name] = _plain(value) if there else None
    return found


def enum_word(kind: Any, number: int, prefix: str) -> str:
    """Returns the word for a value of an enum: `running` for STATE_RUNNING.

    Args:
        kind: the enum's wrapper.
        number: of the value; one of a later version is named by its number.
        prefix: of the enum's values, `STATE_`.
    """
    if number not in kind.values():
        return f"state {number} of a later version"
    return str(kind.Name(number)).removeprefix(prefix).lower()


def _plain(value: Any) -> Any:
    # Maps and lists of protobuf's are no dict and no list.
    if hasattr(value, "items"):
        return dict(value.items())
    if isinstance(value, Message):
        return of_message(value)
    if not hasattr(value, "extend"):
        return value
    return [_plain(each) for each in value]
