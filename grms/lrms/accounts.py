"""Local accounts other than the daemon's: as which partners' jobs may run, and who is let into a job's folder.

The daemon has no rights of root. It hands such a job in through sudo, as the account, and both work in the
job's folder by the account's own group, of which the daemon's user is a member: the folder stays the daemon's,
new files in it are the group's, and what the daemon has put there nobody else can take away (sticky bit).
"""

import grp
import os
import pwd
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from grms.lrms.checks import Finding, doubt, missing
from grms.lrms.port import LrmsRefusedError
from grms.names import ACCOUNT

UID_MIN: Final = 1000
"""Accounts with a smaller number are root's and the system's (login.defs, UID_MIN), and run nobody's jobs."""

FOLDER_MODE: Final = 0o3770
_RUN: Final = frozenset(("launch", "program"))
_READ: Final = frozenset(("values", "outputs.json"))
WRITTEN: Final = ("stdout", "stderr", "begun", "begun.died")
"""Files that are there before the job: who would make them could keep them from the daemon."""

_VERSION: Final = 2
_OWNER, _USER, _GROUP, _MASK, _OTHER = 0x01, 0x02, 0x04, 0x10, 0x20
_ALL, _LOOK, _NOTHING = 7, 5, 0
_NOBODY: Final = 0xFFFFFFFF
_NAMES: Final = ("system.posix_acl_access", "system.posix_acl_default")


def account_number(name: str) -> tuple[int, int]:
    """Returns the numbers of an account and of its group.

    Args:
        name: of the account.

    Raises:
        LrmsRefusedError: there is none, or it is the system's.
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
    """Returns the number of an account's group, of which this process is a member.

    Args:
        name: of the account.

    Raises:
        LrmsRefusedError: it is none that may run jobs, or this process is no member.
    """
    _, group = account_number(name)
    if os.geteuid() != 0 and group not in {os.getegid(), *os.getgroups()}:
        text = f"this daemon's user is no member of the group of the account {name}"
        raise LrmsRefusedError(f"{text}: usermod -aG {group_name(group)} USER, and restart it")
    return group


def group_name(number: int) -> str:
    """Returns the name of a group; its number where it has none."""
    try:
        return grp.getgrgid(number).gr_name
    except KeyError:
        return str(number)


def check_account(name: str) -> Finding | None:
    """Returns what is in the way of jobs as an account, as this host's users and groups say; None for nothing."""
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
    """Returns the line by which sudo lets this user run programs as accounts.

    Args:
        accounts: their names.
        programs: paths.
    """
    return f"{_own_name()} ALL = ({', '.join(accounts)}) TIMEOUT=60 NOPASSWD: {', '.join(programs)}"


def lend(place: Path, group: int) -> None:
    """Lets a group use a job's folder, as it is before the job.

    Args:
        place: the folder, which nobody else can enter yet; whatever is in it is the daemon's, but for links.
        group: its number.
    """
    for name in WRITTEN:
        (place / name).touch()
    # Upward: what is open to the group is not looked at any more, or a link could be laid on the way.
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
    """Lets an account enter a folder that is otherwise its owner's alone, and read what will be in it.

    By a POSIX access list, as `setfacl` writes it; no right of root is needed. New files can be read by the account as far as
    whoever makes them lets a group read them.

    Args:
        folder: this process's own, with nothing in it yet.
        uid: number of the account.

    Raises:
        OSError: the file system has no such lists, or none that can be written here.
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
