"""Whether sudo can work for a daemon: under "no new privileges" it refuses, regardless of sudoers.

systemd sets that flag of the kernel (`NoNewPrivileges=`, and what implies it), as do containers; a process cannot
clear it, and its children inherit it.
"""

import os
import socket
import stat
import struct
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from grms.lrms.checks import Finding, good, missing

SCRIPT_BYTES: Final = 64 << 10
"""Bytes of a program searched for `sudo`; its callers are short scripts."""

_CREDENTIALS: Final = struct.Struct("3i")
_CURE: Final = (
    "let systemd use the drop-in hanse-grms@.service.d/sudo.conf (`grms examples` has it), then daemon-reload and "
    "restart; in a container, leave no-new-privileges away"
)


def no_new_privileges(process: int | None = None) -> bool:
    """Returns whether a process (by default this one) cannot gain privileges by exec; `False` if unknown."""
    status = Path("/proc", "self" if process is None else str(process), "status")
    with suppress(OSError):
        for line in status.read_text(encoding="utf-8", errors="replace").splitlines():
            name, _, value = line.partition(":")
            if name == "NoNewPrivs":
                return value.strip() == "1"
    return False


def listener(path: Path) -> int | None:
    """Returns the process that listens on a Unix socket; `None` if there is none, or it is hidden."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as caller:
        caller.settimeout(1.0)
        try:
            caller.connect(str(path))
            found = caller.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        except OSError:
            return None
    return _CREDENTIALS.unpack(found)[0] or None


def gains_rights(folder: Path) -> bool:
    """Returns whether programs in a folder change privileges: by sudo, or setuid."""
    with suppress(OSError):
        for program in sorted(folder.iterdir()):
            with suppress(OSError):
                mode = program.stat().st_mode
                if not stat.S_ISREG(mode):
                    continue
                if mode & (stat.S_ISUID | stat.S_ISGID):
                    return True
                with program.open("rb") as content:
                    if b"sudo" in content.read(SCRIPT_BYTES):
                        return True
    return False


def in_the_way(needs: Sequence[str], process: int | None = None) -> str:
    """Returns what keeps those `needs`, keys of the site's file, that use sudo from working; empty if nothing.

    `process` is the one to run it; by default this one.
    """
    if not needs or not no_new_privileges(process):
        return ""
    return f"{', '.join(needs)}: sudo refuses, as no new privileges can be gained here (NoNewPrivileges)"


def check_sudo(needs: Sequence[str], daemon: int | None) -> list[Finding]:
    """Returns whether sudo works for `needs`, keys of the site's file: here, and for the running daemon."""
    found = []
    for who, process in (("this command", None), (f"the daemon, process {daemon}", daemon)):
        if who.startswith("the") and (daemon is None or daemon == os.getpid()):
            continue
        problem = in_the_way(needs, process)
        if problem:
            found.append(missing("sudo", f"{who}: {problem}", _CURE))
    if needs and not found:
        seen = "here" if daemon is None else "here, nor to the daemon that runs"
        found.append(good("sudo", f"new privileges are not denied {seen}: {', '.join(needs)}"))
    return found
