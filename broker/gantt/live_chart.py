"""A workflow as a Gantt chart in the terminal: what has run, what runs, and what is planned, as it is now."""

from collections.abc import Sequence
from typing import Final

from rich.cells import set_cell_size
from rich.console import Group, RenderableType
from rich.text import Text

from broker.gantt.layout import axis_of
from broker.gantt.wording import count_of
from broker.v1 import workflow_pb2
from lrms_sim.report.time_axis import Axis
from lrms_sim.util.messages import count, duration, printable, shorten

NAME_LENGTH: Final = 20
"""Columns of a task's name."""

LEAST_WIDTH: Final = 40
"""A narrower terminal breaks the lines."""

HEAD_LINES: Final = 3

_RUNNING: Final = frozenset(
    {
        workflow_pb2.TASK_STATE_LAUNCHED,
        workflow_pb2.TASK_STATE_RUNNING,
        workflow_pb2.TASK_STATE_ENDING,
    }
)
_ENDED: Final = {
    workflow_pb2.TASK_STATE_COMPLETED: "green",
    workflow_pb2.TASK_STATE_SIMULATED: "cyan",
    workflow_pb2.TASK_STATE_FAILED: "bold red",
    workflow_pb2.TASK_STATE_CANCELLED: "red",
}
_DONE, _BEGUN, _PLANNED, _NOW = "█", "▒", "░", "│"


def screen(
    message: workflow_pb2.Workflow, headline: str, now: float, *, width: int, height: int
) -> RenderableType:
    """Returns the chart of a workflow.

    A row is a task: as many as there is room for, those that run first, then those that are next, then those that
    ended last. All in the order of their beginnings.

    Args:
        message: the workflow.
        headline: what is said of it as a whole.
        now: seconds of the broker's clock.
        width: columns.
        height: lines.
    """
    width = max(width, LEAST_WIDTH)
    placed = [task for task in message.tasks if task.HasField("start_time_s")]
    shown = _most_wanted(placed, now, max(height - HEAD_LINES - 1, 1))
    lines: list[Text] = [Text(printable(headline), no_wrap=True, overflow="ellipsis")]
    if shown:
        begin = min(task.start_time_s for task in shown)
        end = max(now, *(task.end_time_s for task in shown))
        left = NAME_LENGTH + 1
        axis = axis_of(begin, end, left=left, right=width - 1, now=now)
        lines += [_scale(axis, begin, end, now), Text()]
        lines += [_row(task, axis, now, width) for task in shown]
    hidden = len(message.tasks) - len(shown)
    if hidden:
        without = len(message.tasks) - len(placed)
        text = count_of(hidden, "more task") + (
            f", {count(without)} without a place" * (without > 0)
        )
        lines.append(Text(text, style="dim"))
    return Group(*lines)


def _most_wanted(
    tasks: Sequence[workflow_pb2.Task], now: float, room: int
) -> list[workflow_pb2.Task]:
    def rank(task: workflow_pb2.Task) -> tuple[int, float]:
        if task.state in _RUNNING:
            return 0, task.start_time_s
        if task.state in _ENDED:
            return 2, now - task.end_time_s
        return 1, task.start_time_s

    chosen = sorted(tasks, key=rank)[:room]
    return sorted(chosen, key=lambda task: (task.start_time_s, task.end_time_s))


def _scale(axis: Axis, begin: float, end: float, now: float) -> Text:
    # When it begins, which moment it is, and when it ends.
    columns = [" "] * (int(axis.right) + 1)

    def put(at: int, word: str) -> None:
        at = min(max(at, int(axis.left)), len(columns) - len(word))
        if all(each == " " for each in columns[max(at - 1, 0) : at + len(word) + 1]):
            columns[at : at + len(word)] = word

    put(int(axis.at(now)) - 1, "now")
    put(int(axis.left), _away(begin - now))
    put(len(columns), _away(end - now))
    return Text("".join(columns), style="dim")


def _away(seconds: float) -> str:
    return f"{'-' if seconds < 0 else '+'}{duration(abs(seconds))}"


def _row(task: workflow_pb2.Task, axis: Axis, now: float, width: int) -> Text:
    begin, end, here = (
        int(axis.at(moment)) for moment in (task.start_time_s, task.end_time_s, now)
    )
    cells = [" "] * width
    cells[here] = _NOW
    for at in range(begin, max(end, begin + 1)):
        cells[at] = _PLANNED
    style = _ENDED.get(task.state, "")
    if style:
        cells[begin : max(end, begin + 1)] = _DONE * (max(end, begin + 1) - begin)
    elif task.state == workflow_pb2.TASK_STATE_LAUNCHED and task.reason:
        style = "yellow"  # its site has it, and says why it does not begin it
    elif task.state in _RUNNING:
        style = "yellow"
        until = max(here, begin) + 1
        cells[begin:until] = _BEGUN * (until - begin)
    # Letters of some scripts take two columns.
    name = set_cell_size(shorten(printable(task.name), NAME_LENGTH), NAME_LENGTH)
    line = Text(f"{name} ", no_wrap=True)
    line.append("".join(cells[NAME_LENGTH + 1 : width]).rstrip(), style=style or "dim")
    return line
