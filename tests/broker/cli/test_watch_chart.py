"""`gorba watch --chart`."""

import io
import time
from typing import cast

import pytest
from rich.console import Console

from broker.cli import watch_chart
from broker.client import BrokerClient
from broker.v1 import plan_pb2, workflow_pb2


class Told:
    """A broker whose workflow ends at the third look; its clock is five times as fast."""

    def __init__(self) -> None:
        self.looks = 0
        self.began = time.monotonic()

    def plan(self) -> plan_pb2.Plan:
        """Returns the time alone."""
        return plan_pb2.Plan(now_s=5 * (time.monotonic() - self.began))

    def get(self, workflow_id: str) -> workflow_pb2.Workflow:
        """Returns the workflow."""
        self.looks += 1
        message = workflow_pb2.Workflow(workflow_id=workflow_id, name="flow")
        message.state = workflow_pb2.WORKFLOW_STATE_RUNNING
        made = message.tasks.add(name="t", start_time_s=0.0, end_time_s=10.0)
        made.state = workflow_pb2.TASK_STATE_RUNNING
        if self.looks >= 3:
            made.state = workflow_pb2.TASK_STATE_COMPLETED
            message.state, message.end_time_s = workflow_pb2.WORKFLOW_STATE_COMPLETED, 10.0
        return message

    def wait(self, workflow_id: str) -> workflow_pb2.Workflow:
        """Returns the workflow once it has ended."""
        self.looks = 3
        return self.get(workflow_id)


def shown(monkeypatch: pytest.MonkeyPatch, *, terminal: bool) -> tuple[Told, str]:
    """Returns what is shown."""
    file, broker = io.StringIO(), Told()
    console = Console(file=file, force_terminal=terminal, width=80, height=10)
    monkeypatch.setattr(watch_chart, "open_console", lambda pipe_width: console)  # noqa: ARG005  # the real one's
    monkeypatch.setattr(watch_chart, "EVERY_S", 0.02)
    monkeypatch.setattr(watch_chart, "CLOCK_EVERY_S", 0.01)
    watch_chart.watch_chart(cast(BrokerClient, broker), "w1", lambda message: message.name)
    return broker, file.getvalue()


def test_a_terminal_has_it_until_the_end_and_the_last_one_after_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It uses the terminal's other screen, and gives it back."""
    broker, text = shown(monkeypatch, terminal=True)
    assert broker.looks == 3
    other, given_back = "\x1b[?1049h", "\x1b[?1049l"
    assert text.index(other) < text.index("▒") < text.index(given_back) < text.rindex("█")
    assert "\x1b[?25h" in text[text.index("▒") :]  # the cursor is there again


def test_the_terminal_is_given_back_at_an_interrupt(monkeypatch: pytest.MonkeyPatch) -> None:
    """As Ctrl-C is one."""

    def interrupted(_seconds: float) -> None:
        raise KeyboardInterrupt

    file = io.StringIO()
    console = Console(file=file, force_terminal=True, width=80, height=10)
    monkeypatch.setattr(watch_chart, "open_console", lambda pipe_width: console)  # noqa: ARG005  # the real one's
    monkeypatch.setattr(time, "sleep", interrupted)
    with pytest.raises(KeyboardInterrupt):
        watch_chart.watch_chart(cast(BrokerClient, Told()), "w1", lambda message: message.name)
    assert file.getvalue().rstrip().endswith(("\x1b[?25h", "\x1b[?1049l"))


def test_a_pipe_has_the_last_one_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without any of a terminal's codes."""
    _, text = shown(monkeypatch, terminal=False)
    assert "\x1b" not in text
    assert text.count("flow") == 1
    assert "█" in text
