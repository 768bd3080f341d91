"""What signals do to a daemon: the first ends it in order, the second at once; SIGHUP does not end it."""

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
    """Lets the first SIGTERM or SIGINT stop a daemon in order, and the second at once; SIGHUP reloads.

    What was acknowledged is in the journal by then, so the end at once loses nothing of it.

    Args:
        stop: begins the end in order, and returns at once.
        reload: reads the configuration anew, and returns soon; None leaves SIGHUP as it is.
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
        # Whom an earlier signal has cancelled leaves here, where nothing has begun that has to end.
        await asyncio.sleep(0)
        yield
    finally:
        for number in handlers:
            loop.remove_signal_handler(number)
