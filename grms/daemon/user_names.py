"""Names and numbers of this host's users.

The kernel and batch systems know users by numbers. One without a name is written `#NUMBER`, as sudo has it: never as
digits alone, as these may be another account's name.
"""

import pwd
import re
from typing import Final

NUMBER: Final = re.compile(r"#(0|[1-9][0-9]{0,9})")
"""How a user without a name is written."""

NUMBER_MAX: Final = 2**32 - 2
"""Largest number of a user; the next one means nobody (chown(2))."""


def user_name(uid: int) -> str:
    """Returns the name of a user; `#NUMBER` for one without a name."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"#{uid}"


def user_number(name: str) -> int:
    """Returns the number of a user, by a name as `user_name` returns it.

    Raises:
        KeyError: there is no such user, or the directory does not know it now.
    """
    if (match := NUMBER.fullmatch(name)) is None:
        return pwd.getpwnam(name).pw_uid
    number = int(match[1])
    if number > NUMBER_MAX:
        raise KeyError(name)
    return number
