"""The process of `scenario`, and signals."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

COMMAND = "from scenarios.command import main; main()"

HEARING = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)
"""
"""Processes are born deaf to Ctrl-C in the background, and to a closed terminal under nohup."""

WORKS = """
import asyncio
import scenarios.cli

async def work():
    try:
        print("works", flush=True)
        await asyncio.sleep(60)
    finally:
        await asyncio.sleep(0)
        print("ended in order", flush=True)

def run_command(arguments):
    try:
        asyncio.run(work())
    except KeyboardInterrupt:
        return scenarios.cli.EXIT_INTERRUPTED

scenarios.cli.run_command = run_command
"""


def signalled(program: str, number: int, path: Path | None = None) -> tuple[int, str, str]:
    """Sends a program a signal when it has written a line; returns status, output and errors."""
    paths = [str(path)] if path else []
    with subprocess.Popen(  # noqa: S603  # this very interpreter
        [sys.executable, "-c", program],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([*paths, *filter(None, sys.path)])},
    ) as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        process.send_signal(number)
        out, error = process.communicate(timeout=30)
    return process.returncode, first + out, error


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_a_signal_among_the_imports_shows_no_traceback(
    tmp_path: Path, number: int, status: int
) -> None:
    """One word, at once, and the status that shells expect."""
    slow = "import time\nprint('imports', flush=True)\ntime.sleep(60)\n"
    (tmp_path / "click.py").write_text(slow)
    done = signalled(HEARING + COMMAND, number, tmp_path)
    assert done == (status, "imports\n", "interrupted\n")


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)], ids=["term", "hup"]
)
@pytest.mark.parametrize("heard", ["default_int_handler", "SIG_IGN"])
def test_a_command_is_ended_as_by_ctrl_c(heard: str, number: int, status: int) -> None:
    """What it has begun it ends in order, in the background as well."""
    begin = f"{HEARING}signal.signal(signal.SIGINT, signal.{heard})\n"
    done = signalled(begin + WORKS + COMMAND, number)
    assert done == (status, "works\nended in order\n", "")


def test_what_a_process_is_deaf_to_stays_so() -> None:
    """Under nohup a command goes on when the terminal is closed."""
    begin = "import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
    program = begin + WORKS.replace("sleep(60)", "sleep(0.2)") + COMMAND
    assert signalled(program, signal.SIGHUP) == (0, "works\nended in order\n", "")
