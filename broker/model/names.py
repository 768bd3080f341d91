"""Names of workflows, tasks and resources in tables and logs."""

import re
from typing import Final

NAME_LENGTH_MAX: Final = 4096
"""Most characters of a name; recorded workflows have some of several hundred."""

_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def check_name(what: str, name: str) -> None:
    """Checks a name that appears in tables and logs.

    Raises:
        ValueError: the name is empty, longer than `NAME_LENGTH_MAX`, or has control characters.
    """
    if not name:
        raise ValueError(f"a {what} has no name")
    if len(name) > NAME_LENGTH_MAX:
        raise ValueError(
            f"the name of a {what} has {len(name)} characters; at most {NAME_LENGTH_MAX}"
        )
    if _CONTROL.search(name):
        raise ValueError(f"the name of a {what} has control characters: {name[:80]!r}")
