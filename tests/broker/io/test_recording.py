"""What a broker has run, as a recording, and read again."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.io.import_options import ImportOptions
from broker.io.recording import Machine, left_out, recording
from broker.io.wfformat import RecordedWorkflow, parse_wfformat
from broker.model.program import Program
from broker.model.workflow import Alternative, Task, Workflow
from broker.util.errors import InputError
from broker.v1 import workflow_pb2
from broker.wire.convert import write_workflow

MACHINES = {"alpha": Machine(4, 1.0), "beta": Machine(1, 2.0)}
ANYWHERE = (Alternative.of("alpha"),)
ID = re.compile(r"[0-9a-zA-Z_.-]+")
STATES = {
    "c": workflow_pb2.TASK_STATE_COMPLETED,
    "s": workflow_pb2.TASK_STATE_SIMULATED,
    "f": workflow_pb2.TASK_STATE_FAILED,
    "x": workflow_pb2.TASK_STATE_CANCELLED,
}


def shown(workflow: Workflow, ends: str, *programs: Program) -> Any:
    """Returns a workflow as a broker shows it, and what was handed in: a letter says how each task has ended."""
    message = workflow_pb2.Workflow(workflow_id="w1", name=workflow.name, submit_time_s=5.0)
    for number, (task, end) in enumerate(zip(workflow.tasks, ends, strict=True)):
        made = message.tasks.add(name=task.name, state=STATES[end])
        if end in "cs":
            made.start_time_s, made.end_time_s = 10.0 * number, 10.0 * number + number / 4
            made.demands.add(resource=("alpha", "beta")[number % 2], units=1 + number % 3)
        for program in programs:
            for output in program.outputs if program.task == task.name else ():
                made.outputs.add(name=output, size_bytes=number, sha256=b"o" * 32)
    spec = write_workflow(workflow, programs)
    return message, spec


def read(document: dict[str, Any]) -> RecordedWorkflow:
    """Reads a recording."""
    return parse_wfformat(document, file="recorded")


def test_what_ran_is_what_is_read() -> None:
    """Run times, units, precedence, commands and files; a run on a fast machine is more work."""
    tasks = (
        Task("split all", 1.0, ANYWHERE),
        Task("fit/1", 1.0, ANYWHERE, ("split all",)),
        Task("fit 1", 1.0, ANYWHERE, ("split all",)),
        Task("end", 1.0, ANYWHERE, ("fit/1", "fit 1")),
    )
    programs = (
        Program.of_command("split all", ["./split", "-n", "2"], outputs=["grid"]).limited(1),
        Program.of_command("fit/1", ["./fit"], inputs={"in": ("split all", "grid")}, outputs=["o"]).limited(1),
        Program.of_command("fit 1", ["./fit"], inputs={"in": ("split all", "grid")}, outputs=["o"]).limited(1),
        Program.of_command("end", ["x"], script="#!/bin/sh\ncat\n", inputs={"a": ("fit/1", "o"), "b": ("fit 1", "o")}).limited(1),
    )  # fmt: skip
    message, spec = shown(Workflow("flow", tasks), "cccs", *programs)
    document = recording(message, spec, MACHINES)
    found = read(document)
    assert [task.id for task in found.tasks] == ["split_all", "fit_1", "fit_1-2", "end"]
    assert [task.name for task in found.tasks] == [task.name for task in tasks]
    assert [task.run_time for task in found.tasks] == [0.0, 0.25, 0.5, 0.75]
    assert [task.cores for task in found.tasks] == [1, 2, 3, 1]
    assert [task.predecessors for task in found.tasks][1:] == [
        ("split_all",), ("split_all",), ("fit_1", "fit_1-2"),
    ]  # fmt: skip
    assert [(task.program, task.arguments) for task in found.tasks] == [
        ("./split", ("-n", "2")), ("./fit", ()), ("./fit", ()), ("", ()),
    ]  # fmt: skip
    assert [task.outputs for task in found.tasks] == [("grid",), ("o",), ("fit_1-2.o",), ()]
    assert [task.inputs for task in found.tasks] == [(), ("grid",), ("grid",), ("o", "fit_1-2.o")]
    assert [ImportOptions().work(task) for task in found.tasks] == [1e-3, 0.5, 0.5, 1.5]
    assert found.makespan == 30.75
    assert document["schemaVersion"] == "1.6"
    assert "of 1 tasks only the time was kept" in document["description"]
    files = document["workflow"]["specification"]["files"]
    assert {"id": "fit_1-2.o", "sizeInBytes": 2} in files
    assert recording(message, spec, {})["workflow"]["execution"]["machines"] == [
        {"nodeName": "alpha"}, {"nodeName": "beta"},
    ]  # fmt: skip


def test_what_has_not_come_to_a_good_end_is_left_out() -> None:
    """With a word where nothing has."""
    tasks = tuple(Task(name, 1.0, ANYWHERE) for name in "abc")
    message, spec = shown(Workflow("flow", tasks), "cfx")
    assert [task.id for task in read(recording(message, spec, MACHINES)).tasks] == ["a"]
    assert left_out(message) == 2
    message, spec = shown(Workflow("flow", tasks), "xfx")
    with pytest.raises(InputError, match="no task of workflow 'flow' has come to a good end"):
        recording(message, spec, MACHINES)


@given(st.lists(st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1), min_size=1, max_size=6, unique=True), st.data())  # fmt: skip
def test_whatever_tasks_are_called_they_are_read_again(
    names: list[str], data: st.DataObject
) -> None:
    """Each has an id of its own in the letters of the format, and waits for what it waited for."""
    tasks = []
    for at, name in enumerate(names):
        before = data.draw(st.lists(st.sampled_from(names[:at]), unique=True)) if at else []
        tasks.append(Task(name, 1.0, ANYWHERE, tuple(before)))
    message, spec = shown(Workflow("flow", tuple(tasks)), "c" * len(names))
    found = read(recording(message, spec, MACHINES)).tasks
    assert [task.name for task in found] == names
    ids = {task.name: task.id for task in found}
    assert len(set(ids.values())) == len(names)
    assert all(ID.fullmatch(each) for each in ids.values())
    for task, after in zip(tasks, found, strict=True):
        assert after.predecessors == tuple(ids[name] for name in task.predecessors)
