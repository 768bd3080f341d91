"""Local accounts for partners' jobs besides the daemon's, and their access to jobs' folders.

The daemon does not run as root. It submits such a job through sudo, as the account, and both work in the job's
folder through the account's own group, which has the daemon's user as a member: the folder stays the daemon's, new
files in it belong to the group, and nobody else can remove the daemon's files (sticky bit).
"""

import grp
import os
import pwd
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from grms.lrms.base import LrmsRefusedError
from grms.lrms.checks import Finding, doubt, missing
from grms.util.names import ACCOUNT

UID_MIN: Final = 1000
"""Lower numbers are root's and the system's (login.defs, UID_MIN), and run no jobs."""

FOLDER_MODE: Final = 0o3770
_RUN: Final = frozenset(("launch", "program"))
_READ: Final = frozenset(("values", "outputs.json", "forward"))
WRITTEN: Final = ("stdout", "stderr", "begun", "begun.died")
"""Files created before the job: another creator could deny the daemon access."""

_VERSION: Final = 2
_OWNER, _USER, _GROUP, _MASK, _OTHER = 0x01, 0x02, 0x04, 0x10, 0x20
_ALL, _LOOK, _NOTHING = 7, 5, 0
_NOBODY: Final = 0xFFFFFFFF
_NAMES: Final = ("system.posix_acl_access", "system.posix_acl_default")


def account_number(name: str) -> tuple[int, int]:
    """Returns the user and group number of an account.

    Raises:
        LrmsRefusedError: there is none, or it is a system account.
    """
    if ACCOUNT.fullmatch(name) is None:
        raise LrmsRefusedError(f"{name[:80]!r} is no name of a local account")
    try:
        found = pwd.getpwnam(name)
    except KeyError:
        raise LrmsRefusedError(f"there is no local account {name}") from None
    if found.pw_uid < UID_MIN:
        text = f"{name} is an account of the system's ({found.pw_uid}, less than {UID_MIN})"
        raise LrmsRefusedError(f"{text}; jobs of partners never run as that")
    return found.pw_uid, found.pw_gid


def common_group(name: str) -> int:
    """Returns the number of an account's group, which must have this process as a member.

    Raises:
        LrmsRefusedError: the account may not run jobs, or this process is no member.
    """
    _, group = account_number(name)
    if os.geteuid() != 0 and group not in {os.getegid(), *os.getgroups()}:
        text = f"this daemon's user is no member of the group of the account {name}"
        raise LrmsRefusedError(f"{text}: usermod -aG {group_name(group)} USER, and restart it")
    return group


def group_name(number: int) -> str:
    """Returns the name of a group; its number if it has none."""
    try:
        return grp.getgrgid(number).gr_name
    except KeyError:
        return str(number)


def check_account(name: str) -> Finding | None:
    """Returns what keeps jobs from running as an account on this host; `None` for nothing."""
    what = "account"
    try:
        account_number(name)
    except LrmsRefusedError as error:
        return missing(what, error.reason, "name another in guests.users or partners.account")
    try:
        group = common_group(name)
    except LrmsRefusedError:
        words = f"usermod -aG {group_name(account_number(name)[1])} {_own_name()}"
        return missing(what, f"{name}: this user is not in its group", f"{words}, and restart")
    others = {each for each in _members(group) if each not in {name, _own_name()}}
    if group_name(group) != name or others:
        text = f"{name}: its group {group_name(group)} is not its alone; its members can look into its jobs"
        return doubt(what, text, "give it a group of its own: groupadd, usermod -g")
    return None


def _members(group: int) -> list[str]:
    try:
        return grp.getgrgid(group).gr_mem
    except KeyError:
        return []


def _own_name() -> str:
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())


def sudoers_line(accounts: Sequence[str], programs: Sequence[str]) -> str:
    """Returns the sudoers line that lets this user run programs (paths) as accounts."""
    return f"{_own_name()} ALL = ({', '.join(accounts)}) TIMEOUT=60 NOPASSWD: {', '.join(programs)}"


def lend(place: Path, group: int) -> None:
    """Opens a job's folder, which nobody else can enter yet, to a group before the job runs."""
    for name in WRITTEN:
        (place / name).touch()
    # Bottom-up: what is open to the group is not visited again, or a link could be placed on the way.
    for folder, _, names in os.walk(place, topdown=False):
        for name in names:
            path = Path(folder, name)
            if path.is_symlink():
                continue
            own = path.parent == place
            mode = 0o550 if own and name in _RUN else 0o440 if own and name in _READ else 0o660
            _give(path, group, mode)
        _give(Path(folder), group, FOLDER_MODE if Path(folder) == place else 0o2770)


def _give(path: Path, group: int, mode: int) -> None:
    os.chown(path, -1, group)
    path.chmod(mode)  # after it: a change of the group takes the bits away


def let_in(folder: Path, uid: int) -> None:
    """Lets an account enter a folder that is otherwise private to its owner, and read new files in it.

    Uses a POSIX ACL, as `setfacl` does, which needs no root. The account can read new files as far as their creator
    grants the group read access. The folder must be this process's own and empty.

    Raises:
        OSError: the file system has no ACLs, or they cannot be written here.
    """
    entries = (
        (_OWNER, _ALL, _NOBODY),
        (_USER, _LOOK, uid),
        (_GROUP, _NOTHING, _NOBODY),
        (_MASK, _LOOK, _NOBODY),
        (_OTHER, _NOTHING, _NOBODY),
    )
    value = struct.pack("<I", _VERSION) + b"".join(struct.pack("<HHI", *each) for each in entries)
    for name in _NAMES:
        os.setxattr(folder, name, value, follow_symlinks=False)
