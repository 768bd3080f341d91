"""Processes of this repository's commands that begin in a moment: forks of one that has imported all.

A `grms serve` imports for a second before it serves, and many tests start several. Where a test is about
what the process does, and not about how it begins, the fixture `forks` (`tests/conftest.py`) lets
`subprocess.Popen`, and `asyncio` above it, fork a nursery instead: a process that this one starts once, and
that has imported what commands import. What comes of it is a process like any other: a child of who asked,
with its arguments in /proc, its own standard streams, environment, folder, limits, and default signals; it
has one thread, and goes on as `python -c` would. What a nursery cannot do (options of the
interpreter, other programs, open descriptors to hand over) begins as always.
"""

import ctypes
import gc
import importlib
import inspect
import json
import os
import platform
import resource
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

IMPORTS: Final = {
    "grms.command": ("grms.cli.main", "grms.client.synchronous"),
    "grms.command submit": (
        "grms.cli.slurm_jobs",
        "grms.cli.submit_cli",
        "grms.lrms.home_run",
        "grms.lrms.slurm.sbatch_text",
    ),
    "grms.command serve": ("grms.cli.site_cli", "grms.site.main"),
    "grms.command train": (
        "grms.learning.transfer.command",
        "lrms_sim.report.svg",
        "scenarios.run.training_source",
    ),
    "broker.command": ("broker.cli.main", "broker.cli.plan_command", "broker.client"),
    "broker.daemon": ("broker.daemon",),
    "lrms_sim.command": (
        "lrms_sim.cli.main",
        "lrms_sim.report.run_report",
        "lrms_sim.workload.lublin",
    ),
    "scenarios.command": ("scenarios.cli.main", "scenarios.cli.live_cli", "scenarios.run.replay"),
    "scenarios.command run": ("scenarios.live.live", "scenarios.report.html"),
}
"""What a program imports in which all these words are, of its text and its first argument. Each nursery
imports what it meets; what is missing here costs time and nothing else."""

CLONE: Final = {"x86_64": 56, "aarch64": 220}.get(platform.machine())
"""The number of clone(2); on other machines every process begins as always."""

CLONE_PARENT: Final = 0x8000
NURSERY: Final = "from tests.forks import nursery; exec(nursery())"
ROOM: Final = 8192
"""Bytes for the arguments of a fork, which take the place of those of the nursery."""

_MESSAGE_MAX = 1 << 20
_INHERITED = ("PYTHON", "LD_", "MALLOC_")
"""What variables are called that a process heeds when it begins, and not later."""


class Nursery:
    """The process that is forked."""

    def __init__(self) -> None:
        self._one_at_a_time = threading.Lock()
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._environment = _beginning(os.environ)
        # Threads of a library for linear algebra would not be there in a fork.
        environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
        with theirs:
            self.process = subprocess.Popen(  # noqa: S603  # this very interpreter
                [sys.executable, "-c", NURSERY, str(theirs.fileno()), "x" * ROOM],
                env=environment,
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
            )

    def begins(
        self, program: str, words: list[str], streams: list[int], how: dict[str, Any]
    ) -> int:
        """Returns the id of a new child of this process; 0 where the nursery cannot make it.

        Args:
            program: text of a program.
            words: its arguments.
            streams: descriptors that become its standard streams.
            how: its environment (`env`), folder (`cwd`), whether it gets a session (`session`), and
                whether modules come from its folder too (`folder_first`).
        """
        environment = dict(os.environ if how["env"] is None else how["env"])
        asked = {
            "program": program,
            "words": words,
            "environment": environment,
            "folder": str(Path(how["cwd"] or ".").absolute()),
            "session": how["session"],
            "folder_first": how["folder_first"],
            "cores": sorted(os.sched_getaffinity(0)),
            "files": resource.getrlimit(resource.RLIMIT_NOFILE),
        }
        text = json.dumps(asked).encode()
        if (
            _beginning(environment) != self._environment
            or len(text) > _MESSAGE_MAX // 8
            or len(_arguments(program, words)) >= ROOM
        ):
            return 0
        with self._one_at_a_time:
            socket.send_fds(self._socket, [text], streams)
            return int(self._socket.recv(64))

    def close(self) -> None:
        """Ends it; what it was forked to lives on."""
        self._socket.close()
        self.process.wait(300)


def _beginning(environment: Any) -> dict[str, str]:
    return {
        name: value
        for name, value in environment.items()
        if name.startswith(_INHERITED) and name != "PYTHONPATH"
    }


def _arguments(program: str, words: list[str]) -> bytes:
    return b"".join(os.fsencode(word) + b"\0" for word in (sys.executable, "-c", program, *words))


@contextmanager
def forked(nursery: Nursery) -> Iterator[None]:
    """Lets processes of `python -c …` and `python -P -c …` begin in the nursery."""
    usual: Any = subprocess.Popen._execute_child  # type: ignore[attr-defined]  # see below
    parameters = inspect.signature(usual)

    def begin(self: Any, *arguments: Any, **named: Any) -> None:
        # The one place where all ways to start a process meet, after their pipes are made.
        given = parameters.bind(self, *arguments, **named).arguments
        pid = _in_nursery(nursery, given)
        if not pid:
            usual(self, *arguments, **named)
            return
        self.pid = pid
        self._child_created = True
        pipes = ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")
        self._close_pipe_fds(*(given[name] for name in pipes))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(subprocess.Popen, "_execute_child", begin)
        yield


def _in_nursery(nursery: Nursery, given: dict[str, Any]) -> int:
    """Returns the id of a process that the nursery has begun; 0 where it is none for it."""
    args = given["args"]
    at = 3 if "-P" in args[1:2] else 2
    plain = (
        isinstance(args, list | tuple)
        and len(args) >= at + 1
        and list(map(str, args[:at])) in ([sys.executable, "-c"], [sys.executable, "-P", "-c"])
        and not any(given.get(name) for name in ("preexec_fn", "shell", "pass_fds", "executable"))
        and all(given.get(name) is None for name in ("gid", "gids", "uid"))
        and all(given.get(name, -1) == -1 for name in ("umask", "process_group"))
        and given["close_fds"]
        and Path(given["cwd"] or ".").is_dir()
    )
    if not plain:
        return 0
    pipes = [given[name] for name in ("p2cread", "c2pwrite", "errwrite")]
    streams = [own if pipe == -1 else pipe for own, pipe in enumerate(pipes)]
    how = {
        "env": given["env"],
        "cwd": given["cwd"],
        "session": given["start_new_session"],
        "folder_first": at == 2,
    }
    return nursery.begins(str(args[at]), [os.fspath(word) for word in args[at + 1 :]], streams, how)


# --- in the nursery ---------------------------------------------------------------------------------


def nursery() -> str:
    """Forks this process whenever it is asked to; returns in each fork, with the text of its program."""
    ours = socket.socket(fileno=int(sys.argv[1]))
    interrupted = signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        text, streams, _, _ = socket.recv_fds(ours, _MESSAGE_MAX, 3)
        if not text:
            os._exit(0)
        asked = json.loads(text)
        _import_for(" ".join([asked["program"], *asked["words"][:1]]))
        alone = len(list(Path("/proc/self/task").iterdir())) == 1
        pid = _sibling() if alone and CLONE is not None else -1
        if pid == 0:
            ours.close()
            signal.signal(signal.SIGINT, interrupted)
            return _become(asked, streams)
        for each in streams:
            os.close(each)
        ours.send(str(max(pid, 0)).encode())


def _import_for(words: str) -> None:
    """Imports what a program will import."""
    modules = [
        module
        for needed, modules in IMPORTS.items()
        if all(word in words for word in needed.split())
        for module in modules
        if module not in sys.modules
    ]
    for module in modules:
        importlib.import_module(module)
    if modules:
        gc.collect()
        gc.freeze()  # a fork need not look through it


def _sibling() -> int:
    """Forks, as os.fork; but the child is one of this process's parent, which can wait for it."""
    ctypes.pythonapi.PyOS_BeforeFork()
    pid: int = ctypes.PyDLL(None).syscall(CLONE, CLONE_PARENT, 0, 0, 0, 0)
    if pid == 0:
        ctypes.pythonapi.PyOS_AfterFork_Child()
    else:
        ctypes.pythonapi.PyOS_AfterFork_Parent()
    return pid


def _become(asked: dict[str, Any], streams: list[int]) -> str:
    """Makes this process what was asked for; returns its program."""
    # All are above the standard streams, which the nursery has open.
    for number, each in enumerate(streams):
        os.dup2(each, number)
        os.close(each)
    if asked["session"]:
        os.setsid()
    os.chdir(asked["folder"])
    os.sched_setaffinity(0, asked["cores"])
    resource.setrlimit(resource.RLIMIT_NOFILE, tuple(asked["files"]))
    os.environ.clear()
    os.environ.update(asked["environment"])
    paths = asked["environment"].get("PYTHONPATH", "").split(os.pathsep)
    first = [""] if asked["folder_first"] else []
    sys.path[:0] = [*first, *(path for path in paths if path and path not in sys.path)]
    sys.argv = ["-c", *asked["words"]]
    _show_arguments(_arguments(asked["program"], asked["words"]))
    return str(asked["program"])


def _show_arguments(shown: bytes) -> None:
    """Lets /proc/…/cmdline say with which arguments this process was asked for."""
    fields = Path("/proc/self/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    begin, end = int(fields[45]), int(fields[46])  # proc(5): the 48th and 49th of all
    ctypes.memmove(begin, shown.ljust(end - begin, b"\0"), end - begin)
