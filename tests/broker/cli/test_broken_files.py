"""Files that nobody can plan: the error says in which file, where in it, and what has to be there."""

import gzip
from pathlib import Path
from typing import Final

import pytest

from broker.cli.main import run_command

POOL: Final = '[[resources]]\nname = "a"\n[[resources]]\nname = "b"\ncapacity = 4\n'
FLOW: Final = POOL + '[[workflows]]\nname = "f"\n'
TASK: Final = '[[workflows.tasks]]\nname = "x"\nwork = 10\n'
WORK: Final = '[[workflows.tasks]]\nname = "x"\nwork = {}\n'


def wfformat(parents: str = "[]", run: str = '[{"id": "a", "runtimeInSeconds": 1}]') -> str:
    """Returns a recording of one task."""
    task = f'{{"id": "a", "name": "a", "parents": {parents}, "children": []}}'
    parts = f'"specification": {{"tasks": [{task}]}}, "execution": {{"tasks": {run}}}'
    return f'{{"name": "w", "schemaVersion": "1.5", "workflow": {{{parts}}}}}'


BROKEN: Final[dict[str, tuple[str | bytes, str]]] = {
    "cycle": (
        FLOW
        + TASK
        + 'predecessors = ["y"]\n'
        + TASK.replace('"x"', '"y"')
        + 'predecessors = ["x"]',
        "workflows.f: workflow 'f': tasks wait for each other: x → y → x",
    ),
    "itself": (FLOW + TASK + 'predecessors = ["x"]', "workflows.f.tasks.x: task 'x' is its own"),
    "not there": (
        FLOW + TASK + 'predecessors = ["z"]',
        "task 'x' waits for 'z', which is not there",
    ),
    "waits twice": (
        FLOW + TASK.replace('"x"', '"y"') + TASK + 'predecessors = ["y", "y"]',
        "task 'x' names a predecessor twice: y",
    ),
    "same name": (FLOW + TASK + TASK, "tasks of the same name: x"),
    "no tasks": (FLOW, "workflows.f.tasks: is missing"),
    "negative": (FLOW + WORK.format(-3), "workflows.f.tasks.x.work: is -3; it must be more than 0"),
    "nan": (FLOW + WORK.format("nan"), "tasks.x.work: is nan; it must be a finite number"),
    "infinite": (FLOW + WORK.format("inf"), "tasks.x.work: is inf; it must be a finite number"),
    "huge": (
        FLOW + WORK.format("1e300"),
        "work is 1e+300; it must be more than 0 and at most 1e+10",
    ),
    "no float": (FLOW + WORK.format("9" * 400), "tasks.x.work: is 999"),
    "digits": (FLOW + WORK.format("9" * 5000), "whole number of more than 4300 digits"),
    "text": (FLOW + WORK.format('"ten"'), "tasks.x.work: is 'ten'; it must be a number"),
    "typo": (FLOW + TASK + "wrok = 3", "tasks.x.wrok: 'wrok' is no key here, did you mean 'work'?"),
    "budget": (FLOW + "budget = nan\n" + TASK, "workflows.f.budget: is nan; it must be a finite"),
    "due": (FLOW + 'due_date = "soon"\n' + TASK, "workflows.f.due_date: is 'soon'; it must be"),
    "resource": (FLOW + TASK + 'alternatives = ["q"]', "'q' is no resource; there are: a, b"),
    "units": (
        FLOW + TASK + 'alternatives = [{ resource = "b", units = 9 }]',
        "1 task can run nowhere, as every alternative is too small",
    ),
    "set-up": (
        FLOW + TASK + 'alternatives = [{ resource = "b", setup = -1 }]',
        "tasks.x.alternatives: setup is -1; it must be seconds, 0 to 1e+10",
    ),
    "seconds": (
        FLOW + TASK + 'alternatives = [{ resource = "b", seconds = nan }]',
        "tasks.x.alternatives: seconds is nan; it must be seconds, more than 0 to 1e+10",
    ),
    "alternative": (
        FLOW + TASK + 'alternatives = [{ resources = ["a"], setup = 3 }]',
        "'resources' is no key of an alternative, did you mean 'resource'?",
    ),
    "file size": (
        FLOW + 'files = [{ name = "d", size = -5, readers = ["x"] }]\n' + TASK,
        "workflows.f.files.d.size: is -5; it must be at least 0",
    ),
    "file reader": (
        FLOW + 'files = [{ name = "d", size = 5, readers = ["q"] }]\n' + TASK,
        "file 'd': there is no task 'q'",
    ),
    "bandwidth": (
        "[network]\nbandwidth = 0\n" + FLOW + TASK,
        "network.bandwidth: is 0; it must be",
    ),
    "input": (
        FLOW + TASK + 'command = ["a"]\ninputs = ["none.dat"]',
        "none.dat is no file here, and 'none.dat' no output of a task",
    ),
    "performance": (
        '[[resources]]\nname = "c"\nperformance = -1\n' + FLOW + TASK,
        "resources.c.performance: is -1; it must be more than 0",
    ),
    "capacity": (
        f'[[resources]]\nname = "c"\ncapacity = {10**20}\n' + FLOW + TASK,
        "resources.c.capacity: is 100000000000000000000; it must be at most 2.14748e+09",
    ),
    "no TOML": (FLOW + "[[[", "no TOML: Invalid initial character"),
    "nested": (FLOW + WORK.format("[" * 5000), "nested too deeply"),
    "no text": (b"\x00\xff\xfe", "byte 1 is not UTF-8 text"),
    "cut off": (gzip.compress(FLOW.encode())[:-9], "is cut off: the compressed data ends before"),
    "JSON cut off": ('{"resources": [{"na', "no JSON: Unterminated string"),
    "JSON list": ("[1, 2]", "the outermost value must be an object in braces"),
    "JSON digits": (f'{{"now": {"9" * 5000}}}', "no JSON: it has a whole number of more than 4300"),
    "JSON twice": ('{"now": 1, "now": 2}', "the key 'now' comes twice in one object"),
    "recording": (wfformat('["q"]'), "tasks[0].parents[0]: 'q' is no task of this workflow"),
    "recorded NaN": (
        wfformat(run='[{"id": "a", "runtimeInSeconds": NaN}]'),
        "workflow.execution.tasks[0].runtimeInSeconds: is nan; it must be a finite number",
    ),
    "recorded circle": (wfformat('["a"]'), "tasks[0].parents[0]: 'a' is the task itself"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_wrong_is_said_with_its_place(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """On standard error, with status 2; nothing is printed or written."""
    content, said = BROKEN[name]
    ending = "json" if name.startswith(("JSON", "record")) else "toml"
    path = tmp_path / f"broken.{ending}"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    pool = tmp_path / "pool.toml"
    pool.write_text(POOL)
    more = ["--resources", str(pool)] if name.startswith("record") else []
    plan = tmp_path / "plan.json"
    words = ["plan", str(path), *more, "--evaluations", "5", "--json", str(plan)]
    assert run_command(words) == 2
    told = capsys.readouterr()
    assert said in told.err
    assert told.err.startswith("Error: ")
    assert told.out == ""
    assert "broken" in told.err or name == "units"  # which all files together have
    assert not plan.exists()


ALONE: Final = ("cycle", "itself", "not there", "waits twice", "file reader", "input")
"""What is wrong whatever there is to run it on."""


@pytest.mark.parametrize("name", ALONE)
def test_no_resources_are_needed_to_find_what_is_wrong_with_a_workflow(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Who writes one looks at it before a broker does, whose resources it may name."""
    content, said = BROKEN[name]
    assert isinstance(content, str)
    path = tmp_path / "broken.toml"
    path.write_text(content.removeprefix(POOL))
    assert run_command(["validate", str(path)]) == 2
    assert said in capsys.readouterr().err
    tasks = (
        TASK
        + 'alternatives = ["any-0", { resource = ["luebeck", "licence"], setup = 3 }]\n'
        + TASK.replace('"x"', '"y"')
        + 'kind = "gpu"\nunits = 7\npredecessors = ["x"]\ncommand = "./y"\n'
    )
    path.write_text(FLOW.removeprefix(POOL) + tasks)
    assert run_command(["validate", str(path)]) == 0
    assert "valid: 1 workflow; without resources" in capsys.readouterr().out
