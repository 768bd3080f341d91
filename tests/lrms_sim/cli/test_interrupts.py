"""What a second Ctrl-C does while a command ends in order."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from lrms_sim.cli.interrupts import run_interruptible

ROOT = Path(__file__).resolve().parents[3]

PROGRAM = """
import asyncio, os, signal, sys, types
signal.signal(signal.SIGINT, signal.default_int_handler)  # a process in the background is born deaf to it
from lrms_sim.cli.interrupts import run_interruptible
from lrms_sim.util.process_guard import run

async def ends_slowly():
    try:
        await asyncio.sleep(600)
    finally:
        os.write(1, b"ends\\n")
        while not os.path.exists(sys.argv[2]):
            pass

async def main():
    async with asyncio.TaskGroup() as group:
        for _ in range(3):
            group.create_task(ends_slowly())
        await asyncio.sleep(0)
        os.write(1, b"works\\n")
        await asyncio.sleep(600)

def run_command(arguments):
    try:
        {call}
    except KeyboardInterrupt:
        os.write(1, b"ended in order\\n")
        return 130

sys.modules["command"] = types.ModuleType("command")
sys.modules["command"].run_command = run_command
run("command")
"""


@pytest.mark.parametrize(
    ("leave", "out", "error"),
    [
        (False, "works\nends\nends\nends\nended in order\n", ""),
        (True, "works\nends\n", "interrupted\n"),
    ],
)
def test_a_second_one_is_no_traceback(tmp_path: Path, leave: bool, out: str, error: str) -> None:
    """It comes while tasks are being ended, in the middle of one: nothing is said but what is to be said."""
    program = PROGRAM.format(call=f"run_interruptible(main(), leave={leave})")
    with subprocess.Popen(  # noqa: S603  # this very interpreter
        [sys.executable, "-c", program, "command", str(tmp_path / "go on")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    ) as process:
        assert process.stdout is not None
        said = process.stdout.readline()
        process.send_signal(signal.SIGINT)
        said += process.stdout.readline()
        process.send_signal(signal.SIGINT)
        if leave:
            assert process.wait(300) == 130
        (tmp_path / "go on").touch()
        rest, errors = process.communicate(timeout=300)
    assert process.returncode == 130
    assert (said + rest, errors) == (out, error)


def test_what_is_not_interrupted_is_returned() -> None:
    """And Ctrl-C is whose it was before; a cancellation of one's own stays one."""

    async def seven() -> int:
        return 7

    async def gives_up() -> None:
        raise asyncio.CancelledError

    before = signal.getsignal(signal.SIGINT)
    assert run_interruptible(seven()) == 7
    assert signal.getsignal(signal.SIGINT) is before
    with pytest.raises(asyncio.CancelledError):
        run_interruptible(gives_up())
