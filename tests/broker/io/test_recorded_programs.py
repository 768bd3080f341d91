"""Recorded commands that are run again, with the files that went from task to task."""

from pathlib import Path
from typing import Any

import pytest

from broker.io.import_options import ImportOptions
from broker.io.importing import to_workflow
from broker.io.recorded_programs import programs_of
from broker.io.wfformat import parse_wfformat
from broker.model.pool import Pool
from broker.model.program import Input, Program
from broker.model.resources import Resource
from broker.util.errors import FileError


def recorded(
    folder: Path, *, used: str = "raw.txt", arguments: Any = ("-n", 1)
) -> tuple[Program, ...]:
    """Returns what a recording of three tasks runs."""
    specified = [
        {"id": "a", "parents": [], "inputFiles": [used], "outputFiles": ["mid.txt"]},
        {"id": "b", "parents": ["a"], "inputFiles": ["mid.txt"], "outputFiles": ["end.txt"]},
        {"id": "c", "parents": ["b"]},
    ]
    runs = [
        {
            "id": "a",
            "runtimeInSeconds": 5.0,
            "coreCount": 2,
            "command": {"program": "head", "arguments": list(arguments)},
        },
        {"id": "b", "runtimeInSeconds": 900.0, "command": {"program": "sort"}},
        {"id": "c", "runtimeInSeconds": 1.0},
    ]
    content = {
        "name": "flow",
        "schemaVersion": "1.5",
        "workflow": {"specification": {"tasks": specified}, "execution": {"tasks": runs}},
    }
    path = folder / "flow.json"
    found = parse_wfformat(content, file=str(path))
    pool = Pool((Resource("alpha", capacity=4),), {})
    return programs_of(found, to_workflow(found, pool, ImportOptions(), name="flow"), path)


def test_files_go_from_task_to_task(tmp_path: Path) -> None:
    """What no task leaves lies next to the recording; a task without a command runs nothing."""
    (tmp_path / "raw.txt").write_text("x")
    first, second = recorded(tmp_path)
    assert (first.task, first.arguments) == ("a", ("head", "-n", "1"))
    assert first.inputs == (Input("raw.txt", path=str(tmp_path / "raw.txt")),)
    assert (first.outputs, first.request.tasks, first.limit) == (("mid.txt",), 2, 600.0)
    assert second.inputs == (Input("mid.txt", task="a", output="mid.txt"),)
    assert second.limit == 1800.0


def test_what_cannot_be_run_again_is_said(tmp_path: Path) -> None:
    """With the task: a file that is not there, a name that is none, and what comes later."""
    with pytest.raises(FileError, match=r"tasks\.a: its input 'raw.txt' is no file"):
        recorded(tmp_path)
    (tmp_path / "x").write_text("outside")
    (tmp_path / "in").mkdir()
    with pytest.raises(FileError, match=r"'../x' is no name of a file"):
        recorded(tmp_path / "in", used="../x", arguments=())
    with pytest.raises(FileError, match="none of its predecessors"):
        recorded(tmp_path, used="end.txt")
