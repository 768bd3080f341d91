import copy
import gzip
import json
import random
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.io.documents import read_document
from broker.io.wfformat import RecordedTask, RecordedWorkflow, is_wfformat, parse_wfformat
from broker.util.errors import FileError

RECORDED = {
    "1000genome-chameleon-4ch-250k-001": (164, 212, 11884.262),
    "blast-chameleon-small-002": (43, 120, 383.036258),
    "bwa-chameleon-small-005": (104, 400, 362.272305),
    "epigenomics-chameleon-hep-1seq-50k-001": (73, 88, 1243.776),
    "helloworld-forkjoin-10-chameleon": (10, 16, 1028.704),
    "montage-chameleon-dss-05d-001": (58, 114, 5585.811),
    "rnaseq-dirt02-001": (197, 451, 2580.36),
    "seismology-chameleon-300p-001": (301, 300, 230.298),
    "soykb-chameleon-10fastq-10ch-001": (96, 194, 11814.517),
    "srasearch-chameleon-20a-005": (42, 60, 27369.197),
}
"""Tasks, edges and seconds of work of ten recorded workflows, counted with other tools."""


def read(path: Path) -> RecordedWorkflow:
    """Returns the workflow of a file."""
    return parse_wfformat(read_document(path), file=str(path))


def diamond(version: str = "1.5") -> dict[str, Any]:
    """Returns a workflow of four tasks: a, then b and c, then d."""
    parents = {"a": [], "b": ["a"], "c": ["a"], "d": ["b", "c"]}
    children = {"a": ["b", "c"], "b": ["d"], "c": ["d"], "d": []}
    tasks = [
        {"name": f"step {k}", "id": k, "parents": parents[k], "children": children[k]}
        for k in "abcd"
    ]
    runs = [
        {
            "id": k,
            "runtimeInSeconds": n,
            "coreCount": n or 1,
            "command": {"program": f"do-{k}", "arguments": []},
            "machines": ["slow" if n % 2 else "fast"],
        }
        for n, k in enumerate("abcd")
    ]
    machines = [
        {"nodeName": "slow", "cpu": {"coreCount": 4, "speedInMHz": 1200}},
        {"nodeName": "fast", "cpu": {"coreCount": 4}},
    ]
    return {
        "name": "diamond",
        "schemaVersion": version,
        "createdAt": "2026-01-01T00:00:00Z",
        "workflow": {
            "specification": {"tasks": tasks, "files": []},
            "execution": {
                "makespanInSeconds": 6,
                "executedAt": "2026-01-01T00:00:00Z",
                "tasks": runs,
                "machines": machines,
            },
        },
    }


def said(document: dict[str, Any]) -> list[str]:
    with pytest.raises(FileError) as caught:
        parse_wfformat(document, file="f")
    return [line.removeprefix("f: ") for line in str(caught.value).split("\n")]


@pytest.mark.parametrize("version", ["1.5", "1.6"])
def test_every_part_that_planning_needs_is_read(version: str) -> None:
    """Ids, run times, cores, clocks and precedence come out; 1.6 reads like 1.5."""
    document = diamond(version)
    document["workflow"]["specification"]["metrics"] = {"taskCount": 4}
    recorded = parse_wfformat(document, file="f")
    assert (recorded.name, recorded.makespan) == ("diamond", 6.0)
    assert recorded.tasks == (
        RecordedTask("a", "step a", "do-a", 0.0, 1, None, ()),
        RecordedTask("b", "step b", "do-b", 1.0, 1, 1200.0, ("a",)),
        RecordedTask("c", "step c", "do-c", 2.0, 2, None, ("a",)),
        RecordedTask("d", "step d", "do-d", 3.0, 3, 1200.0, ("b", "c")),
    )


def test_optional_parts_may_be_missing() -> None:
    """Only ids, parents and run times are needed."""
    document = diamond()
    for task in document["workflow"]["specification"]["tasks"]:
        del task["children"], task["name"]
    execution = document["workflow"]["execution"]
    del execution["machines"], execution["makespanInSeconds"]
    execution["tasks"] = [
        {"id": run["id"], "runtimeInSeconds": 1.5, "machine": "gone"} for run in execution["tasks"]
    ]
    recorded = parse_wfformat(document, file="f")
    assert recorded.makespan is None
    assert recorded.tasks[3] == RecordedTask("d", "d", "", 1.5, 1, None, ("b", "c"))


def test_an_edge_that_one_side_forgot_is_kept() -> None:
    """Parents and children need not agree; what either says holds, once."""
    document = diamond()
    tasks = document["workflow"]["specification"]["tasks"]
    tasks[3]["parents"] = ["c", "c"]
    tasks[1]["children"] = []
    tasks[0]["children"] = ["b", "c", "d"]
    recorded = parse_wfformat(document, file="f")
    assert recorded.tasks[3].predecessors == ("c", "a")


def test_half_cores_are_rounded_up() -> None:
    """A task that used one and a half cores needs two."""
    document = diamond()
    document["workflow"]["execution"]["tasks"][0]["coreCount"] = 1.5
    assert parse_wfformat(document, file="f").tasks[0].cores == 2


S = "workflow.specification.tasks"
E = "workflow.execution.tasks"


@pytest.mark.parametrize(
    ("path", "value", "line"),
    [
        (
            "schemaVersion",
            "1.4",
            "schemaVersion: is '1.4'; this program reads WfFormat 1.5 and 1.6",
        ),
        (
            "schemaVersion",
            None,
            "schemaVersion: is missing; this program reads WfFormat 1.5 and 1.6",
        ),
        ("schemaVersion", ["1.5"], "schemaVersion: is ['1.5']; this program reads"),
        ("name", "", "name: is ''; it must be a text of at least 1 characters"),
        ("workflow", 7, "workflow: is 7; it must be a table"),
        ("workflow.specification", None, "workflow.specification: is missing"),
        ("workflow.execution", None, "workflow.execution: is missing: without run times there is"),
        (S, [], f"{S}: is []; it must be a list of at least 1 entries"),
        (f"{S}.1.parents", ["x"], f"{S}[1].parents[0]: 'x' is no task of this workflow"),
        (f"{S}.1.parents", ["b"], f"{S}[1].parents[0]: 'b' is the task itself"),
        (f"{S}.1.parents", "a", f"{S}[1].parents: is 'a'; it must be a list"),
        (f"{S}.1.parents", None, f"{S}[1].parents: is missing"),
        (f"{S}.1.children", ["d", "y"], f"{S}[1].children[1]: 'y' is no task of this workflow"),
        (f"{S}.1.id", 5, f"{S}[1].id: is 5; it must be a text in quotes"),
        (f"{E}.2.runtimeInSeconds", -1, f"{E}[2].runtimeInSeconds: is -1; it must be at least 0"),
        (f"{E}.2.runtimeInSeconds", "9", f"{E}[2].runtimeInSeconds: is '9'; it must be a number"),
        (
            f"{E}.2.runtimeInSeconds",
            float("nan"),
            f"{E}[2].runtimeInSeconds: is nan; it must be a finite number",
        ),
        (
            f"{E}.2.runtimeInSeconds",
            float("inf"),
            f"{E}[2].runtimeInSeconds: is inf; it must be a finite number",
        ),
        (f"{E}.2.runtimeInSeconds", None, f"{E}[2].runtimeInSeconds: is missing"),
        (
            f"{E}.1.command",
            {"program": "x", "arguments": [None]},
            f"{E}[1].command.arguments[0]: is None; it must be a text in quotes, or a number",
        ),
        (f"{E}.2.coreCount", 0, f"{E}[2].coreCount: is 0; it must be at least 1"),
        (f"{E}.2", None, f"{S}[2].id: task 'c' has no run time: {E} does not have it"),
        (
            "workflow.execution.machines.0.cpu.speedInMHz",
            0,
            "workflow.execution.machines[0].cpu.speedInMHz: is 0; it must be more than 0",
        ),
    ],
)
def test_what_is_wrong_is_said_with_its_path(path: str, value: object, line: str) -> None:
    """The path of the key, the value and what is allowed are in the line."""
    document = diamond()
    place: Any = document
    *parts, last = [int(part) if part.isdigit() else part for part in path.split(".")]
    for part in parts:
        place = place[part]
    if value is None:
        del place[last]
    else:
        place[last] = value
    (found,) = said(document)
    assert found.startswith(line)


def test_repeated_and_unknown_ids_are_said() -> None:
    """Each place where an id comes again, or that nothing else knows, is named."""
    document = diamond()
    document["workflow"]["specification"]["tasks"][2]["id"] = "b"
    document["workflow"]["execution"]["tasks"].append({"id": "d", "runtimeInSeconds": 1})
    assert said(document) == [
        f"{S}[2].id: 'b' is the id of tasks[1] too; ids must be unique",
        f"{S}[0].children[1]: 'c' is no task of this workflow",
        f"{S}[3].parents[1]: 'c' is no task of this workflow",
        f"{E}[2].id: 'c' is no task of the specification",
        f"{E}[4].id: 'd' is the id of tasks[3] too; ids must be unique",
    ]


def test_a_cycle_is_said_with_its_tasks() -> None:
    """Tasks that wait for each other are named in order."""
    document = diamond()
    document["workflow"]["specification"]["tasks"][0]["parents"] = ["d"]
    (found,) = said(document)
    assert found == f"{S}: tasks wait for each other: a waits for d waits for b waits for a"


def test_a_long_chain_is_no_cycle() -> None:
    """Depth has no limit of its own."""
    document = diamond()
    names = [f"t{n}" for n in range(5000)]
    document["workflow"]["specification"]["tasks"] = [
        {"id": name, "name": name, "parents": names[max(0, n - 1) : n], "children": []}
        for n, name in enumerate(names)
    ]
    document["workflow"]["execution"]["tasks"] = [
        {"id": name, "runtimeInSeconds": 1} for name in names
    ]
    assert len(parse_wfformat(document, file="f").tasks) == 5000


def test_files_of_the_format_are_told_from_the_projects_own() -> None:
    """Any version is recognised, so that its error speaks of the version."""
    assert is_wfformat({"schemaVersion": "1.3"})
    assert is_wfformat(diamond())
    assert not is_wfformat({"workflows": [], "resources": []})


def test_a_truncated_file_is_said(tmp_path: Path) -> None:
    """A download that was cut off does not end in another exception."""
    path = tmp_path / "w.json.gz"
    whole = gzip.compress(json.dumps(diamond()).encode())
    path.write_bytes(whole)
    assert read(path).name == "diamond"
    for size in (0, 1, 2, 10, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:size])
        with pytest.raises(FileError, match=r"w\.json\.gz: "):
            read(path)


@given(st.randoms(use_true_random=False), st.none() | st.integers() | st.text() | st.just([]))
def test_a_file_with_anything_in_any_place_is_read_or_said_to_be_wrong(
    rng: random.Random, junk: object
) -> None:
    """No document ends in an exception that is not meant for a user."""
    document: Any = copy.deepcopy(diamond())
    place = document
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        if not keys:
            break
        key = rng.choice(keys)
        if not isinstance(place[key], dict | list) or rng.random() < 0.2:
            place[key] = junk
            break
        place = place[key]
    with suppress(FileError):
        parse_wfformat(document, file="f")


@pytest.mark.workflows
@pytest.mark.parametrize("name", RECORDED)
def test_recorded_workflows_are_read(workflows_folder: Path, name: str) -> None:
    """Tasks, edges and work of real recordings are those that other tools count."""
    recorded = read(workflows_folder / f"{name}.json.gz")
    tasks, edges, work = RECORDED[name]
    assert len(recorded.tasks) == tasks
    assert sum(len(task.predecessors) for task in recorded.tasks) == edges
    assert sum(task.run_time for task in recorded.tasks) == pytest.approx(work, rel=1e-9)
    assert recorded.makespan is not None


@pytest.mark.workflows
def test_every_workflow_in_the_folder_is_read(workflows_folder: Path) -> None:
    """The folder may hold more than the ten; all of it is readable."""
    paths = [path for path in workflows_folder.iterdir() if ".json" in path.suffixes]
    assert len(paths) >= len(RECORDED)
    for path in paths:
        assert read(path).tasks
