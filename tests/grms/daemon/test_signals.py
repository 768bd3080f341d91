"""Signals end a daemon in order, or at once."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from grms.daemon.process import signals

STUBBORN = """
import asyncio
from grms.daemon.process import signals

async def main():
    async with signals(lambda: print("stopping", flush=True)):
        print("ready", flush=True)
        await asyncio.sleep(60)

asyncio.run(main())
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["term", "int"])
async def test_the_first_signal_stops_in_order(number: signal.Signals) -> None:
    """It calls what begins the end, once, and nothing is heard any more afterwards."""
    stopped = asyncio.Event()
    before = signal.getsignal(number)
    async with signals(stopped.set):
        os.kill(os.getpid(), number)
        async with asyncio.timeout(300):
            await stopped.wait()
    assert signal.getsignal(number) in {before, signal.SIG_DFL, signal.default_int_handler}


def test_the_second_signal_ends_at_once() -> None:
    """A daemon whose end in order takes too long has the status of an ended process."""
    with subprocess.Popen(  # noqa: S603  # this very interpreter
        [sys.executable, "-c", STUBBORN],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[3])},
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGTERM)
        assert process.stdout.readline() == "stopping\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=300) == 128 + signal.SIGTERM


async def test_a_hangup_reloads_and_ends_nothing() -> None:
    """As often as it comes; afterwards it is what it was."""
    before, times = signal.getsignal(signal.SIGHUP), asyncio.Queue[int]()
    async with signals(lambda: None, lambda: times.put_nowait(1)):
        for _ in range(3):
            os.kill(os.getpid(), signal.SIGHUP)
            async with asyncio.timeout(300):
                await times.get()
    assert signal.getsignal(signal.SIGHUP) in {before, signal.SIG_DFL}


async def test_who_was_cancelled_before_begins_nothing() -> None:
    """A signal that comes just before is not left for the first wait within."""
    begun = False

    async def begin() -> None:
        nonlocal begun
        async with signals(lambda: None):
            begun = True

    async def cancelled() -> None:
        current = asyncio.current_task()
        assert current is not None
        current.cancel()
        await begin()

    with pytest.raises(asyncio.CancelledError):
        await asyncio.create_task(cancelled())
    assert not begun
