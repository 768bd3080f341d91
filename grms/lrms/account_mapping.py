"""Local accounts of jobs besides the daemon's, and their access to jobs' folders.

The daemon does not run as root. It submits such a job through sudo, as the account, and both work in the job's
folder, which stays the daemon's; nobody else can remove the daemon's files (sticky bit). A partner's job has access
through the account's own group, which has the daemon's user as a member, and to which new files in the folder belong.
A local user's has it by an access list, so that neither memberships nor groups of one user each are needed; where the
file system has no such lists, by the group as well.
"""

import errno
import grp
import os
import pwd
import re
import stat
import struct
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from grms.daemon.user_names import NUMBER, user_name, user_number
from grms.lrms.base import LrmsRefusedError
from grms.lrms.checks import Finding, doubt, missing
from grms.util.names import ACCOUNT

UID_MIN: Final = 1000
"""Lower numbers are root's and the system's (login.defs, UID_MIN), and run no jobs."""

NO_GROUP: Final = -1
"""Of an account without a name: nothing says which group is its own."""

FOLDER_MODE: Final = 0o3770
_RUN: Final = frozenset(("launch", "program"))
_READ: Final = frozenset(("values", "outputs.json", "forward", "environ", "collect"))
NOTED: Final = ("begun", "begun.died")
WRITTEN: Final = ("stdout", "stderr", *NOTED)
"""Files created before the job: another creator could deny the daemon access.

Of a job that prints into its user's folder these are `NOTED` alone, as its output is linked here.
"""

_VERSION: Final = 2
_OWNER, _USER, _GROUP, _MASK, _OTHER = 0x01, 0x02, 0x04, 0x10, 0x20
_ALL, _LOOK, _NOTHING = 7, 5, 0
_NOBODY: Final = 0xFFFFFFFF
_ACCESS, _DEFAULT = "system.posix_acl_access", "system.posix_acl_default"


def account_number(name: str) -> tuple[int, int]:
    """Returns the user and group number of an account; `NO_GROUP` for one without a name (`#NUMBER`).

    Raises:
        LrmsRefusedError: there is none, or it is a system account.
    """
    if ACCOUNT.fullmatch(name) is None and NUMBER.fullmatch(name) is None:
        raise LrmsRefusedError(f"{name[:80]!r} is no name of a local account")
    try:
        uid = user_number(name)
        group = NO_GROUP if name.startswith("#") else pwd.getpwnam(name).pw_gid
    except KeyError:
        # A directory that is away knows nobody, so the same may be right in a moment.
        raise LrmsRefusedError(f"there is no local account {name} now", passing=True) from None
    if uid < UID_MIN:
        text = f"{name} is an account of the system's ({uid}, less than {UID_MIN})"
        raise LrmsRefusedError(f"{text}; no job runs as that")
    return uid, group


def common_group(name: str) -> int:
    """Returns the number of an account's group, which must have this process as a member.

    Raises:
        LrmsRefusedError: the account may not run jobs, or this process is no member.
    """
    _, group = account_number(name)
    if group == NO_GROUP:
        text = f"{name} has no name on this host, and so no group by which the daemon could read its job's files"
        raise LrmsRefusedError(text, passing=True)
    if os.geteuid() != 0 and group not in {os.getegid(), *os.getgroups()}:
        text = f"this daemon's user is no member of the group of the account {name}"
        cure = f"usermod -aG {group_name(group)} USER, and restart it"
        raise LrmsRefusedError(f"{text}: {cure}", passing=True)
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
        words = f"usermod -aG {group_name(account_number(name)[1])} {own_name()}"
        return missing(what, f"{name}: this user is not in its group", f"{words}, and restart")
    if not is_alone(name, group):
        text = f"{name}: its group {group_name(group)} is not its alone; its members can look into its jobs"
        return doubt(what, text, "give it a group of its own: groupadd, usermod -g")
    return None


def is_alone(name: str, group: int) -> bool:
    """Returns whether a group is of one account, and has no other members but this process's user."""
    others = {each for each in _members(group) if each not in {name, own_name()}}
    return group_name(group) == name and not others


def own_group(name: str) -> int:
    """Returns the number of an account's group, which has no members but it and this process's user.

    Raises:
        LrmsRefusedError: it has others, or not this process.
    """
    group = common_group(name)
    if not is_alone(name, group):
        text = f"the group {group_name(group)} of the account {name} is not its alone, and its members could look into the job"
        cure = "put lrms.spool on a file system with access lists (setfacl)"
        raise LrmsRefusedError(f"{text}: {cure}", passing=True)
    return group


def _members(group: int) -> list[str]:
    try:
        return grp.getgrgid(group).gr_mem
    except KeyError:
        return []


def own_name() -> str:
    """Returns the name of this process's user; `#NUMBER` if it has none."""
    return user_name(os.geteuid())


def sudoers_line(accounts: Sequence[str], programs: Sequence[str]) -> str:
    """Returns the sudoers line that lets this user run programs (paths) as accounts."""
    return f"{own_name()} ALL = ({', '.join(accounts)}) TIMEOUT=60 NOPASSWD: {', '.join(programs)}"


def refusal_of_sudo(error: str) -> str:
    """Returns what sudo says where it does not run a program as another account; empty if it has run the program.

    `error` is all of standard error. Sudo may warn before it runs a program, whose own words then come last. It quotes
    the program's arguments, which are left out.
    """
    last = (error.strip().splitlines() or [""])[-1]
    if not last.startswith(("sudo: ", "Sorry, user ")):
        return ""
    return re.sub(r"'(\S+) .*' as ", r"'\1 …' as ", last)


def lend(
    place: Path, group: int | None, *, uid: int = -1, written: Sequence[str] = WRITTEN
) -> None:
    """Opens a job's folder, which nobody else can enter yet, before the job runs.

    It is opened to a group, or, where that is `None`, by access lists to the account with the number `uid`; `written`
    are files that the job writes, and that the daemon has to read.

    Raises:
        OSError: it cannot be written, or the file system has no access lists.
    """
    for name in written:
        (place / name).touch()
    # Bottom-up: what is open to the group is not visited again, or a link could be placed on the way.
    for folder, _, names in os.walk(place, topdown=False):
        for name in names:
            path = Path(folder, name)
            if path.is_symlink():
                continue
            own = path.parent == place
            mode = 0o550 if own and name in _RUN else 0o440 if own and name in _READ else 0o660
            if mode == 0o660 and path.lstat().st_mode & stat.S_IXUSR:
                mode = 0o770  # an input that can be run
            _give(path, group, uid, mode)
        _give(Path(folder), group, uid, FOLDER_MODE if Path(folder) == place else 0o2770)


def _give(path: Path, group: int | None, uid: int, mode: int) -> None:
    # The account may do what the mode grants to the group.
    if group is not None:
        os.chown(path, -1, group)
        path.chmod(mode)  # after it: a change of the group takes the bits away
        return
    path.chmod(mode & 0o1770)
    _list(path, _ACCESS, {uid: mode >> 3 & _ALL}, owner=mode >> 6 & _ALL)
    if path.is_dir():
        # What the account creates is the daemon's to read as well, and to delete.
        _list(path, _DEFAULT, {uid: _ALL, os.geteuid(): _ALL}, owner=_ALL)


def has_lists(folder: Path) -> bool:
    """Returns whether a folder's file system has access lists; `OSError` if it cannot be written."""
    with tempfile.TemporaryDirectory(prefix=".half-", dir=folder) as name:
        try:
            let_in(Path(name), os.geteuid())
        except OSError as error:
            if error.errno not in {errno.EOPNOTSUPP, errno.ENOSYS, errno.EPERM}:
                raise
            return False
    return True


def check_user(name: str, *, lists: bool) -> Finding | None:
    """Returns what keeps a local user's jobs from running as that user on this host; `None` for nothing.

    `lists` says whether the file system of the jobs' folders has access lists.
    """
    try:
        account_number(name)
        if not lists:
            own_group(name)
    except LrmsRefusedError as error:
        return missing("own users", error.reason, "as this user no job is submitted here")
    return None


def let_in(folder: Path, uid: int) -> None:
    """Lets an account enter a folder that is otherwise private to its owner, and read new files in it.

    Uses a POSIX ACL, as `setfacl` does, which needs no root. The account can read new files as far as their creator
    grants the group read access. The folder must be this process's own and empty.

    Raises:
        OSError: the file system has no ACLs, or they cannot be written here.
    """
    for name in (_ACCESS, _DEFAULT):
        _list(folder, name, {uid: _LOOK}, owner=_ALL)


def _list(path: Path, name: str, users: Mapping[int, int], *, owner: int) -> None:
    # An access list with what its owner, and some users by their numbers, may do; nobody else may do anything.
    entries = [
        (_OWNER, owner, _NOBODY),
        *((_USER, users[uid], uid) for uid in sorted(users)),
        (_GROUP, _NOTHING, _NOBODY),
        (_MASK, max(users.values()), _NOBODY),
        (_OTHER, _NOTHING, _NOBODY),
    ]
    value = struct.pack("<I", _VERSION) + b"".join(struct.pack("<HHI", *each) for each in entries)
    os.setxattr(path, name, value, follow_symlinks=False)
