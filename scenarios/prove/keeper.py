"""Daemons of clusters end with whoever has started them, however that ends; and no two clusters have the same ports.

A command or a test that is interrupted, or whose process is killed, ends nothing by itself: its `sge_execd` would go on calling the
port of a master that is gone, and answer to the next one that is there. So a process of its own, `keeper`, is told of
each daemon. It reads from a pipe, whose other end nobody else has; when that closes it kills what is left. (A signal at
the death of the parent, as Linux has it, comes at the end of the thread that has started a daemon, and thus too soon.)
"""

import atexit
import fcntl
import os
import socket
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Final

_KEEPER: Final = """
import os, signal, sys

def begun(pid):
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[19]
    except OSError:
        return ""

for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
kept = {}
for line in sys.stdin:
    word, pid = line.split()
    if word == "keep":
        kept[int(pid)] = begun(pid)
    else:
        kept.pop(int(pid), None)
for pid, since in kept.items():
    if since and begun(pid) == since:
        try:
            os.killpg(pid, signal.SIGKILL)
        except OSError:
            pass
"""

PORTS_TOGETHER: Final = 20
_PORTS: Final = range(20_000, 30_000, PORTS_TOGETHER)
"""First ports of blocks, below those that the kernel gives away."""


@cache
def _keeper(_process: int) -> "subprocess.Popen[str]":
    # One for each process that starts clusters, also for one that was forked.
    made = subprocess.Popen(  # noqa: S603  # this program's own
        [sys.executable, "-I", "-S", "-c", _KEEPER],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        start_new_session=True,
        text=True,
        bufsize=1,
    )
    atexit.register(_dismiss, made, os.getpid())
    return made


def _dismiss(made: "subprocess.Popen[str]", process: int) -> None:
    if os.getpid() == process:
        made.communicate()


def _tell(word: str, pid: int) -> None:
    pipe = _keeper(os.getpid()).stdin
    assert pipe is not None
    pipe.write(f"{word} {pid}\n")


def keep(pid: int) -> None:
    """Has a process, which leads its group, killed with its group once this one is over."""
    _tell("keep", pid)


def forget(pid: int) -> None:
    """Leaves a process alone that has ended."""
    _tell("forget", pid)


@cache
def _locks(_process: int) -> set[int]:
    # First ports of the blocks of this process; their locks end with it.
    return set()


def free_ports(count: int) -> list[int]:
    """Returns ports in a row that nobody listens on, and that no other cluster started so has or gets.

    Raises:
        ValueError: there are not so many in a row.
        OSError: none are free.
    """
    if count > PORTS_TOGETHER:
        raise ValueError(f"{count} ports; at most {PORTS_TOGETHER} are given out together")
    folder = Path(tempfile.gettempdir()) / f"hanse-test-ports-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    own = _locks(os.getpid())
    begin = os.getpid() % len(_PORTS)
    for first in (*_PORTS[begin:], *_PORTS[:begin]):
        if first in own or not _is_ours(folder / str(first)):
            continue
        own.add(first)
        ports = list(range(first, first + count))
        with ExitStack() as stack:
            try:
                for port in ports:
                    stack.enter_context(socket.socket()).bind(("127.0.0.1", port))
            except OSError:
                continue
            return ports
    raise OSError("no free ports")


def _is_ours(path: Path) -> bool:
    # The file stays open, and the lock held, as long as this process lives.
    number = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(number)
        return False
    return True
