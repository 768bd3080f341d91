"""Users of this host: their numbers and groups, as Slurm's commands print them."""

import grp
import os
import pwd
from functools import cache

NOBODY = "4294967294"
"""What Slurm prints of a user whom this host does not know."""


@cache
def uid_of(user: str) -> str:
    """Returns a user's number."""
    try:
        return str(pwd.getpwnam(user).pw_uid)
    except KeyError:
        return NOBODY


@cache
def group_of(user: str) -> tuple[str, str]:
    """Returns a user's group, by name and number."""
    try:
        gid = pwd.getpwnam(user).pw_gid
    except KeyError:
        return "nogroup", NOBODY
    try:
        return grp.getgrgid(gid).gr_name, str(gid)
    except KeyError:
        return str(gid), str(gid)


def own_name() -> str:
    """Returns the name of the user of this process; its number if it has none."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


def read_users(text: str) -> list[str]:
    """Returns the names of users that a list of names and numbers has.

    Raises:
        ValueError: there is none of that name or number; the text is the word.
    """
    found = []
    for word in text.split(","):
        try:
            found.append(
                pwd.getpwuid(int(word)).pw_name if word.isdecimal() else pwd.getpwnam(word).pw_name
            )
        except (KeyError, OverflowError) as error:
            raise ValueError(word) from error
    return found
