"""Runs a command on an event loop, and handles repeated Ctrl-C.

`asyncio.run` cancels at the first and raises `KeyboardInterrupt` anywhere at the second, in the
middle of tasks that are shutting down, whose complaints then appear as tracebacks.
"""

import asyncio
import os
import signal
import threading
from collections.abc import Coroutine
from contextlib import suppress
from types import FrameType
from typing import Any, TypeVar

_T = TypeVar("_T")


def run_interruptible(main: Coroutine[Any, Any, _T], *, leave: bool = False) -> _T:
    """Returns what a coroutine returns; the first Ctrl-C cancels it, and it ends in order.

    With `leave` a second Ctrl-C ends the process at once, for commands that leave nothing behind;
    otherwise it is ignored.

    Raises:
        KeyboardInterrupt: it was interrupted, and has ended.
    """
    tasks: list[asyncio.Task[Any]] = []
    count = 0

    def interrupted(number: int, _: FrameType | None) -> None:
        nonlocal count
        count += 1
        for task in tasks if count == 1 else ():
            task.cancel()
            # Whoever waits is woken; the loop has ended where the task has.
            with suppress(RuntimeError):
                task.get_loop().call_soon_threadsafe(lambda: None)
        if count > 1 and leave:
            os.write(2, b"interrupted\n")
            os._exit(128 + number)

    async def within() -> _T:
        task = asyncio.current_task()
        assert task is not None
        tasks.append(task)
        if heard:
            # Not before: asyncio takes Ctrl-C over where it finds what it expects.
            signal.signal(signal.SIGINT, interrupted)
        return await main

    before = signal.getsignal(signal.SIGINT)
    # Whoever is deaf to Ctrl-C, in the background, stays so; only the main thread hears signals.
    heard = callable(before) and threading.current_thread() is threading.main_thread()
    try:
        result = asyncio.run(within())
    except asyncio.CancelledError:
        if not count:
            raise
    finally:
        if heard:
            signal.signal(signal.SIGINT, before)
    if count:
        raise KeyboardInterrupt
    return result
