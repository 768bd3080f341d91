"""Signals of a daemon: the first stops it in order, the second at once; SIGHUP reloads."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final

ENDING: Final = (signal.SIGTERM, signal.SIGINT)


@asynccontextmanager
async def signals(
    stop: Callable[[], None], reload: Callable[[], None] | None = None
) -> AsyncIterator[None]:
    """Makes the first SIGTERM or SIGINT stop a daemon in order, and the second at once; SIGHUP reloads.

    Everything acknowledged is in the journal, so an immediate end loses nothing. `stop` begins an orderly end and
    `reload` reads the configuration anew, both returning soon; without `reload` SIGHUP is unchanged.
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

    handlers = dict.fromkeys(ENDING, handle)
    if reload is not None:
        handlers[signal.SIGHUP] = reload
    for number, handler in handlers.items():
        loop.add_signal_handler(number, handler)
    try:
        # A task cancelled by an earlier signal leaves here, before it has begun anything.
        await asyncio.sleep(0)
        yield
    finally:
        for number in handlers:
            loop.remove_signal_handler(number)
