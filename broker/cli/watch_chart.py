"""`gorba watch --chart`: a workflow as a Gantt chart in the terminal, again and again until it has ended."""

import time
from typing import TYPE_CHECKING, Final

from broker.gantt.live_chart import screen
from lrms_sim.cli.running import open_console

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import Console, RenderableType

    from broker.client import BrokerClient
    from broker.v1 import workflow_pb2

EVERY_S: Final = 1.0
"""From one look to the next, seconds."""

CLOCK_EVERY_S: Final = 10.0
"""The same at the broker's clock."""

PIPE_WIDTH: Final = 80
"""Columns if the output is no terminal; then there is room for all tasks."""


class _BrokersClock:
    # The broker's clock may be faster than this machine's.

    def __init__(self, broker: "BrokerClient") -> None:
        self._broker = broker
        self._read_at, self._read, self._speed = time.monotonic(), broker.plan().now_s, 1.0

    def now(self) -> float:
        """Returns the time, seconds."""
        passed = time.monotonic() - self._read_at
        if passed >= CLOCK_EVERY_S:
            before, self._read = self._read, self._broker.plan().now_s
            self._read_at += passed
            self._speed, passed = (self._read - before) / passed, 0.0
        return self._read + self._speed * passed


def watch_chart(
    broker: "BrokerClient",
    workflow_id: str,
    headline: "Callable[[workflow_pb2.Workflow], str]",
) -> None:
    """Shows the chart of a workflow until its end, and leaves the last one on the screen.

    Where the output is no terminal only that one is printed. `headline` says of a workflow how it is as a whole.
    """
    from rich.live import Live  # noqa: PLC0415  # help comes at once

    console = open_console(pipe_width=PIPE_WIDTH)
    if not console.is_terminal:
        message = broker.wait(workflow_id)
        console.print(_chart(console, message, headline(message), broker.plan().now_s))
        return
    clock = _BrokersClock(broker)
    message = broker.get(workflow_id)

    def look() -> "RenderableType":
        return _chart(console, message, headline(message), clock.now())

    with Live(look(), console=console, screen=True, auto_refresh=False) as live:
        while not message.HasField("end_time_s"):
            time.sleep(EVERY_S)
            message = broker.get(workflow_id)
            live.update(look(), refresh=True)
    console.print(look())


def _chart(
    console: "Console", message: "workflow_pb2.Workflow", headline: str, now: float
) -> "RenderableType":
    height = console.height if console.is_terminal else len(message.tasks) + PIPE_WIDTH
    if message.HasField("end_time_s"):
        now = min(now, message.end_time_s)  # it is over, and time goes on
    return screen(message, headline, now, width=console.width, height=height)
