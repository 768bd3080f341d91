"""What tasks run, as files of workflows say it."""

from pathlib import Path
from typing import Any

import pytest

from broker.io.pools import parse_file
from broker.io.task_programs import input_of
from broker.model.pool import Pool
from broker.model.program import COMMAND_SCRIPT, Checkpoint, Input, Program, Rerun
from broker.model.resources import Resource
from broker.model.workflow import Task
from broker.util.errors import FileError
from lrms_sim.workload.requests import Gpus, Memory, Request

POOL = Pool((Resource("alpha", capacity=8), Resource("beta", capacity=2)), {})


def read(folder: Path, *tasks: dict[str, Any]) -> tuple[tuple[Task, ...], tuple[Program, ...]]:
    """Returns the tasks of a workflow and what they run."""
    content = {"workflows": [{"name": "w", "tasks": [{"work": 10.0, **task} for task in tasks]}]}
    ((workflow, programs),) = parse_file(content, file=str(folder / "w.toml")).submissions(POOL)
    return workflow.tasks, programs


def test_every_key_says_its_part(tmp_path: Path) -> None:
    """Names of files are relative to the file of the workflow."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in/data.csv").write_text("1")
    (tmp_path / "run.sh").write_text("#!/bin/bash\ntrue\n")
    _, (first, second) = read(
        tmp_path,
        {
            "name": "first",
            "command": ["python3", "-c", "pass"],
            "environment": {"B": "2", "A": ""},
            "resources": {
                "tasks": 2,
                "cores_per_task": 2,
                "nodes": "1-2",
                "tasks_per_node": 2,
                "memory": "4G/node",
                "gpus": "a100:1/task",
                "features": ["f"],
                "exclusive": True,
                "licences": ["l:2"],
                "modules": ["m/1"],
                "partition": "p",
                "account": "a",
                "qos": "q",
            },
            "image": "tool.sif",
            "limit": 60,
            "inputs": ["in/data.csv"],
            "outputs": ["out/x"],
            "rerun": {"runs": 2, "exit_codes": [75], "outcomes": ["timeout"]},
            "checkpoint": {"every": "1min", "files": ["state*"]},
        },
        {
            "name": "second",
            "script": "run.sh",
            "arguments": ["a b"],
            "inputs": {
                "table": "first/out/x",
                "again": {"task": "first", "output": "out/x"},
                "plain": {"file": "in/data.csv"},
            },
        },
    )
    assert (first.script, first.arguments) == (COMMAND_SCRIPT, ("python3", "-c", "pass"))
    assert first.environment == (("A", ""), ("B", "2"))
    assert first.request == Request(
        tasks=2,
        cores_per_task=2,
        nodes_min=1,
        nodes_max=2,
        tasks_per_node=2,
        memory=Memory(4096, "node"),
        gpus=Gpus(1, "task", "a100"),
        features=("f",),
        exclusive=True,
        licences=(("l", 2),),
        wall_time=60.0,
        image="tool.sif",
        partition="p",
        account="a",
        qos="q",
        modules=("m/1",),
    )
    data = str(tmp_path / "in/data.csv")
    assert first.inputs == (Input("data.csv", path=data),)
    assert first.checkpoint == Checkpoint(60.0, ("state*",))
    assert (first.outputs, first.rerun) == (("out/x",), Rerun(2, (75,), ("timeout",)))
    assert (second.script, second.arguments) == ("#!/bin/bash\ntrue\n", ("a b",))
    assert second.inputs == (
        Input("table", task="first", output="out/x"),
        Input("again", task="first", output="out/x"),
        Input("plain", path=data),
    )
    assert second.limit == 600.0


def test_a_file_can_be_a_url(tmp_path: Path) -> None:
    """It is called as its last part; it is fetched where the workflow is handed in."""
    _, (program,) = read(
        tmp_path, {"name": "t", "command": "true", "inputs": ["https://e.example/a/b.csv?c=/d"]}
    )
    assert program.inputs == (Input("b.csv", path="https://e.example/a/b.csv?c=/d"),)


def test_a_line_is_for_a_shell_and_a_text_is_a_script(tmp_path: Path) -> None:
    """Words are words, whatever is in them."""
    _, (line, text) = read(
        tmp_path,
        {"name": "line", "command": "echo $HOME | wc -c"},
        {"name": "text", "script": "#!/usr/bin/env python3\nprint()"},
    )
    assert (line.script, line.arguments) == ("#!/bin/sh\necho $HOME | wc -c\n", ())
    assert text.script == "#!/usr/bin/env python3\nprint()\n"


def test_who_is_given_what_another_leaves_waits_for_it(tmp_path: Path) -> None:
    """Once; names of tasks may have slashes, and the longest that fits is meant."""
    tasks, programs = read(
        tmp_path,
        {"name": "a", "command": "true", "outputs": ["b/x"]},
        {"name": "a/b", "command": "true", "outputs": ["x"]},
        {
            "name": "c",
            "command": "true",
            "predecessors": ["a"],
            "inputs": {"1": {"task": "a", "output": "b/x"}, "2": "a/b/x"},
        },
    )
    assert tasks[2].predecessors == ("a", "a/b")
    assert programs[2].inputs[1] == Input("2", task="a/b", output="x")


def test_makers_among_many_tasks_are_found_at_once() -> None:
    """Without a look at each task for each file: those of 20,000 tasks took half a minute."""
    tasks = {f"t/{number}" for number in range(20_000)}
    found = {input_of("", f"{task}/out/x", tasks, Path()) for task in tasks}
    assert found == {Input("out/x", task=task, output="out/x") for task in tasks}


def test_units_are_the_processors_of_the_program(tmp_path: Path) -> None:
    """Where the task does not say them."""
    tasks, _ = read(
        tmp_path,
        {"name": "a", "command": "true", "resources": {"tasks": 2, "cores_per_task": 3}},
        {"name": "b", "command": "true", "resources": {"tasks": 2}, "units": 1},
        {"name": "c"},
    )
    demands = [
        [(demand.resource, demand.units) for each in task.alternatives for demand in each.demands]
        for task in tasks
    ]
    assert demands == [[("alpha", 6)], [("alpha", 1), ("beta", 1)], [("alpha", 1), ("beta", 1)]]


@pytest.mark.parametrize(
    ("task", "word"),
    [
        ({"command": []}, "a line for a shell, or a list of words"),
        ({"command": " "}, "a line for a shell, or a list of words"),
        ({"command": ["a", 1]}, "a line for a shell, or a list of words"),
        ({"command": "true", "script": "#!/bin/sh"}, "command and script are both there"),
        ({"command": "true", "arguments": ["x"]}, "arguments go with script"),
        ({"outputs": ["x"]}, "outputs goes with command or script"),
        ({"limit": 5}, "limit goes with command or script"),
        ({"script": "absent.sh"}, "absent.sh: No such file"),
        ({"script": "binary.sh"}, "no text in UTF-8"),
        ({"command": "true", "inputs": ["absent"]}, "no file here, and 'absent' no output"),
        ({"command": "true", "inputs": [{"task": "u"}]}, 'a path, a URL, "TASK/OUTPUT"'),
        ({"command": "true", "inputs": [5]}, 'a path, a URL, "TASK/OUTPUT"'),
        ({"command": "true", "inputs": {"a": 5}}, "tasks.t.inputs: is 5; it must be a path"),
        ({"command": "true", "inputs": 5}, "tasks.t.inputs: is 5; it must be a list of sources"),
        ({"command": "true", "inputs": {"": "x"}}, "it must be a list of sources, or a table"),
        ({"command": "true", "inputs": [{"file": "x" * 5000}]}, 'a path, a URL, "TASK/OUTPUT"'),
        ({"command": "true", "inputs": [{"task": "u", "output": "x"}]}, "waits for 'u'"),
        ({"command": "true", "resources": {"memory": "much"}}, "no amount of memory"),
        ({"command": "true", "resources": {"nodes": "x"}}, "no number of nodes"),
        ({"command": "true", "resources": {"gpus": "x:y"}}, "no number of GPUs"),
        ({"command": "true", "resources": {"licences": ["?"]}}, "no licence"),
        ({"command": "true", "resources": {"tasks": 0}}, "resources.tasks"),
        ({"command": "true", "resources": {"nodes": 3}}, "every node runs at least"),
        ({"command": "true", "rerun": {"runs": 2}}, "go together"),
        ({"command": "true", "checkpoint": {"every": "soon", "files": ["s"]}}, "must be a time"),
        ({"command": "true", "checkpoint": {"every": -1, "files": ["s"]}}, "at least 1 s"),
        ({"command": "true", "checkpoint": {"every": 5, "files": []}}, "files are missing"),
        ({"command": "true", "checkpoint": {"every": 5, "files": ["../s"]}}, "no name of a file"),
        (
            {"command": "true", "limit": 60, "checkpoint": {"every": "2h", "files": ["s"]}},
            "after the limit of 60 s",
        ),
        ({"command": "true", "limit": 0}, "limit"),
        (
            {"command": "true", "limit": 1e11},
            "tasks.t.limit: is 100000000000.0; it must be at most 1e+10",
        ),
        ({"command": "true", "environment": {"A B": "1"}}, "'A B' is no name of an environment"),
        ({"command": "true", "environment": {"É": "1"}}, "'É' is no name of an environment"),
        (
            {"command": "true", "outputs": ["x", "x"]},
            "'x' comes twice among the files that are left",
        ),
        (
            {"command": "true", "inputs": ["binary.sh", {"task": "t", "output": "binary.sh"}]},
            "'binary.sh' comes twice among the files that are given; name one of them otherwise",
        ),
        ({"command": "true", "image": "a b"}, "image"),
        ({"command": "true", "outputs": ["/x"]}, "no name of a file"),
        ({"command": "true", "resources": {"tasks": 9}}, "needs 9 units"),
    ],
)
def test_what_is_wrong_is_said_with_the_task(
    tmp_path: Path, task: dict[str, Any], word: str
) -> None:
    """In one line."""
    (tmp_path / "binary.sh").write_bytes(b"#!\xff")
    with pytest.raises(FileError) as refused:
        read(tmp_path, {"name": "t", **task})
    assert word in str(refused.value)
    assert "workflows.w" in str(refused.value)
    assert str(refused.value).count("\n") == 0
