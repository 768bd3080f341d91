"""A workflow as a chart in the terminal."""

import io

import pytest
from rich.cells import cell_len
from rich.console import Console

from broker.gantt.live_chart import screen
from broker.v1 import workflow_pb2

STATES = workflow_pb2


def task(
    name: str, state: "workflow_pb2.TaskState", start: float | None = None, end: float = 0.0
) -> workflow_pb2.Task:
    """Returns a task; one without a start has no place."""
    made = workflow_pb2.Task(name=name, state=state)
    if start is not None:
        made.start_time_s, made.end_time_s = start, end
    return made


def drawn(
    *tasks: workflow_pb2.Task, now: float = 100.0, width: int = 80, height: int = 24
) -> list[str]:
    """Returns the lines."""
    file = io.StringIO()
    console = Console(file=file, width=width, height=height)
    message = workflow_pb2.Workflow(name="flow", tasks=tasks)
    console.print(screen(message, "w1 flow", now, width=width, height=height))
    return file.getvalue().splitlines()


def test_what_has_run_what_runs_and_what_is_planned_differ() -> None:
    """In the order of beginnings, with this moment marked, in 80 columns."""
    lines = drawn(
        task("planned", STATES.TASK_STATE_WAITING, 120.0, 160.0),
        task("done", STATES.TASK_STATE_COMPLETED, 0.0, 50.0),
        task("runs", STATES.TASK_STATE_RUNNING, 50.0, 120.0),
        task("moment", STATES.TASK_STATE_FAILED, 50.0, 50.0),
        task("nowhere", STATES.TASK_STATE_WAITING),
    )
    assert max(map(len, lines)) <= 80
    assert lines[0] == "w1 flow"
    assert lines[1].split() == ["-1", "min", "40", "s", "now", "+1", "min"]
    rows = {line.split()[0]: line[21:] for line in lines[3:7]}
    assert list(rows) == ["moment", "done", "runs", "planned"] or list(rows) == [
        "done",
        "moment",
        "runs",
        "planned",
    ]
    here = rows["done"].index("│")
    assert rows["done"][:18] == "█" * 18
    assert rows["moment"].strip()[0] == "█"
    assert rows["runs"][here] == "▒"
    assert rows["runs"].strip().endswith("░")
    assert rows["planned"].index("░") > here
    assert lines[-1] == "1 more task, 1 without a place"


def test_what_its_site_does_not_begin_has_not_begun() -> None:
    """What is launched and of which nothing is said may run already."""
    tasks = [task(name, STATES.TASK_STATE_LAUNCHED, 50.0, 150.0) for name in ("runs", "waits")]
    tasks[1].reason = "main is closed"
    rows = {line.split()[0]: set(line[21:].strip()) for line in drawn(*tasks)[3:]}
    assert rows == {"runs": {"▒", "░"}, "waits": {"░"}}


@pytest.mark.parametrize("name", ["測定", "測" * 30])
def test_names_of_wide_letters_leave_the_bars_in_their_columns(name: str) -> None:
    """Each takes two; no line is wider than the terminal."""
    tasks = [task(each, STATES.TASK_STATE_COMPLETED, 0.0, 100.0) for each in (name, "plain")]
    lines = drawn(*tasks)[3:]
    assert [cell_len(line[: line.index("█")]) for line in lines] == [21, 21]
    assert max(map(cell_len, lines)) <= 80


def test_where_there_is_little_room_what_runs_is_shown_first() -> None:
    """Then what is next, then what ended last; and how many are left out."""
    tasks = [task(f"old{n}", STATES.TASK_STATE_COMPLETED, n, n + 1.0) for n in range(50)]
    tasks += [task(f"next{n}", STATES.TASK_STATE_BOOKED, 110.0 + n, 120.0 + n) for n in range(2)]
    tasks += [task("runs", STATES.TASK_STATE_RUNNING, 60.0, 130.0)]
    lines = drawn(*tasks, height=8)
    assert [line.split()[0] for line in lines[3:-1]] == ["old49", "runs", "next0", "next1"]
    assert lines[-1] == "49 more tasks"
    assert len(lines) == 8


@pytest.mark.parametrize("width", [10, 40, 200])
def test_it_is_as_wide_as_the_terminal(width: int) -> None:
    """A long name is shortened, what cannot be printed is not; nothing at all has a headline alone."""
    lines = drawn(
        task("a-very-long-name-that-nobody-reads\x1b[2J", STATES.TASK_STATE_RUNNING, 0.0, 200.0),
        width=width,
    )
    assert "\x1b" not in "".join(lines)
    if width >= 40:
        assert max(map(len, lines)) <= width
    assert drawn() == ["w1 flow"]
