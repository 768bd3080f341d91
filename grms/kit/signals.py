"""How a daemon is ended by signals: in order by the first, at once by the second."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final

ENDING: Final = (signal.SIGTERM, signal.SIGINT)


@asynccontextmanager
async def signals(stop: Callable[[], None]) -> AsyncIterator[None]:
    """Lets the first SIGTERM or SIGINT stop a daemon in order, and the second at once.

    What was acknowledged is in the journal by then, so the end at once loses nothing of it.

    Args:
        stop: begins the end in order, and returns at once.
    """
    loop = asyncio.get_running_loop()
    count = 0

    def handle() -> None:
        nonlocal count
        count += 1
        if count == 1:
            stop()
        else:
            os._exit(128 + signal.SIGTERM)

    for number in ENDING:
        loop.add_signal_handler(number, handle)
    try:
        # Whom an earlier signal has cancelled leaves here, where nothing has begun that has to end.
        await asyncio.sleep(0)
        yield
    finally:
        for number in ENDING:
            loop.remove_signal_handler(number)
