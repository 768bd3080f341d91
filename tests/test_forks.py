"""What a nursery forks is a process like one that begins as always."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.usefixtures("forks")

TELLS = """
# As if it were: from grms.command import main
import json, os, sys
with open("/proc/self/cmdline", "rb") as words:
    cmdline = words.read().rstrip(b"\\0").decode().split("\\0")
print(json.dumps({
    "argv": sys.argv, "cmdline": cmdline, "parent": os.getppid(), "folder": os.getcwd(),
    "environment": dict(os.environ), "group": os.getpgid(0), "session": os.getsid(0),
    "cores": sorted(os.sched_getaffinity(0)), "name": __name__, "heard": sys.stdin.read(),
    "imported": "grms.cli.main" in sys.modules, "open": sorted(os.listdir("/proc/self/fd"))[:-1],
}))
print("an error", file=sys.stderr)
sys.exit(7)
"""
COMMAND = [sys.executable, "-c", TELLS, "one word", "äöü"]


def told(*, session: bool, folder: Path) -> tuple[dict[str, object], str, int]:
    """Returns what a process says of itself, what it complains about, and its status."""
    done = subprocess.run(  # noqa: S603  # a program of this test
        COMMAND,
        input="heard",
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env={**os.environ, "WORD": "x\udcff", "PYTHONPATH": str(folder)},
        start_new_session=session,
    )
    return json.loads(done.stdout), done.stderr, done.returncode


@pytest.mark.parametrize("session", [False, True])
def test_it_is_what_was_asked_for(tmp_path: Path, *, session: bool) -> None:
    """Everything but what it has imported is as without a nursery."""
    core = min(os.sched_getaffinity(0))
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core})
    try:
        found, complaints, status = told(session=session, folder=tmp_path)
    finally:
        os.sched_setaffinity(0, before)
    assert (complaints, status) == ("an error\n", 7)
    assert found["argv"] == ["-c", "one word", "äöü"]
    assert found["cmdline"] == COMMAND
    assert found["parent"] == os.getpid()
    assert found["folder"] == str(tmp_path)
    assert found["environment"] == {**os.environ, "WORD": "x\udcff", "PYTHONPATH": str(tmp_path)}
    assert (found["session"] == os.getsid(0)) is not session
    assert (found["group"] == os.getpgid(0)) is not session
    assert found["cores"] == [core]
    assert found["name"] == "__main__"
    assert found["heard"] == "heard"
    assert found["open"] == ["0", "1", "2"]
    assert found["imported"]


def test_signals_end_it_as_always() -> None:
    """Ctrl-C is a `KeyboardInterrupt`, and others end it; whoever waits for it hears so."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        with subprocess.Popen(  # a program of this test
            [sys.executable, "-c", "print(flush=True); import time; time.sleep(600)"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            process.stdout.readline()
            process.send_signal(number)
            assert process.wait(300) == -number
            assert (b"KeyboardInterrupt" in process.stderr.read()) is (number == signal.SIGINT)


async def test_asyncio_starts_it_too() -> None:
    """Its streams and its end come to the loop."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", "import sys; sys.exit(int(sys.stdin.read()) + 1)"),
        stdin=subprocess.PIPE,
    )
    await process.communicate(b"41")
    assert process.returncode == 42


@pytest.mark.parametrize(
    "options",
    [
        {"env": {**os.environ, "PYTHONOPTIMIZE": "1"}},
        {"pass_fds": [0]},
        {"preexec_fn": bool},
        {"umask": 0o77},
    ],
    ids=["option of the interpreter", "descriptors", "code before", "umask"],
)
def test_what_it_cannot_do_begins_as_always(options: dict[str, object]) -> None:
    """Where the interpreter or the kernel has to do something else, nothing is forked."""
    asks = "import sys; print('grms.cli.main' in sys.modules)  # no grms.command"
    command = [sys.executable, "-c", asks]
    assert subprocess.check_output(command) == b"True\n"  # noqa: S603  # a program of this test
    assert subprocess.check_output(command, **options) == b"False\n"  # type: ignore[call-overload]  # noqa: S603  # our own command


def test_a_folder_that_is_not_there_is_an_error() -> None:
    """The error is that of `subprocess`."""
    with pytest.raises(FileNotFoundError):
        subprocess.run([sys.executable, "-c", ""], cwd="/nowhere", check=False)  # nothing
