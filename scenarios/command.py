"""The process of the command `scenario`: what begins it, and what signals do to it.

It imports next to nothing, since Ctrl-C has to work while everything else is imported. SIGTERM and
SIGHUP end a command as Ctrl-C does: what it has started is ended and what it has begun to write is
removed, in order.
"""

import os
import signal
import sys
from types import FrameType

_received: list[int] = []


def main() -> None:
    """Runs the command line of this process and ends it."""
    # Where a process is to be deaf to a signal, in the background or under nohup, it stays so.
    hears = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if hears:
        signal.signal(signal.SIGINT, _leave)
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _leave)
    from scenarios.cli import EXIT_INTERRUPTED, run_command  # noqa: PLC0415  # see the docstring

    if hears:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is _leave:
            signal.signal(number, _interrupt)
    status = run_command(sys.argv[1:])
    if status == EXIT_INTERRUPTED and _received:
        status = 128 + _received[0]
    sys.exit(status)


def _leave(number: int, _: FrameType | None) -> None:
    # Nothing has begun, and an exception in the middle of an import may surface as another one.
    os.write(2, b"interrupted\n")
    os._exit(128 + number)


def _interrupt(number: int, frame: FrameType | None) -> None:
    # Whoever has taken Ctrl-C over for a while (asyncio; somebody who is moving files) gets this too.
    _received.append(number)
    handler = signal.getsignal(signal.SIGINT)
    if callable(handler):
        handler(signal.SIGINT, frame)
    else:
        raise KeyboardInterrupt
