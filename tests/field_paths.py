"""Whether a path, as errors name what is wrong, is a field of a message."""

import re
from typing import Any


def repeats(field: Any) -> bool:
    """Returns whether a field is a list; `label` goes and `is_repeated` comes with protobuf 7."""
    return bool(getattr(field, "is_repeated", None) or field.label == field.LABEL_REPEATED)


def is_field(message: Any, path: str) -> bool:
    """Returns whether a path such as `workflow.tasks[3].name` leads to a field of a message."""
    inner = message
    for part in path.split("."):
        found = re.fullmatch(r"(\w+)(\[\d+\])?", part)
        field: Any = None
        if inner is not None and found is not None:
            field = inner.fields_by_name.get(found[1])
        if found is None or field is None or (found[2] and not repeats(field)):
            return False
        inner = field.message_type
    return True
