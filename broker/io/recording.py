"""What a broker has run, as a recording in WfFormat 1.6.

A recording has the tasks that have come to a good end; what each of them waited for has, too. Names of tasks and files
become ids of letters, digits, `-`, `_` and `.`, as the format wants them. Beside the format's keys a machine has
`performance`, which `broker.io.wfformat` reads: seconds there times that are work.
"""

import re
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from broker.model.program import COMMAND_SCRIPT
from broker.util.errors import InputError
from broker.v1 import workflow_pb2
from lrms_sim.util.version import __version__

VERSION: Final = "1.6"
"""Of the format."""

_DONE: Final = frozenset({workflow_pb2.TASK_STATE_COMPLETED, workflow_pb2.TASK_STATE_SIMULATED})
_ODD: Final = re.compile(r"[^0-9A-Za-z_.-]")


@dataclass(frozen=True, slots=True)
class Machine:
    """What tasks ran on: how many units it has, and how much work it does in a second."""

    capacity: int
    performance: float


@dataclass
class _Ids:
    # Gives each thing an id that is like its name.
    ids: dict[Hashable, str] = field(default_factory=dict)
    taken: set[str] = field(default_factory=set)

    def of(self, thing: Hashable, name: str, owner: str = "") -> str:
        if thing in self.ids:
            return self.ids[thing]
        base = _ODD.sub("_", name) or "_"
        found = base
        if found in self.taken and owner:
            found = base = f"{owner}.{base}"
        number = 1
        while found in self.taken:
            number += 1
            found = f"{base}-{number}"
        self.taken.add(found)
        self.ids[thing] = found
        return found


def left_out(message: workflow_pb2.Workflow) -> int:
    """Returns how many tasks of a workflow have not come to a good end."""
    return sum(task.state not in _DONE for task in message.tasks)


def recording(
    message: workflow_pb2.Workflow,
    spec: workflow_pb2.WorkflowSpec,
    machines: Mapping[str, Machine],
) -> dict[str, Any]:
    """Returns what a workflow has run as a document.

    Args:
        message: the workflow as it stands.
        spec: what was handed in of it.
        machines: the resources there are, by name.

    Raises:
        InputError: none of its tasks has come to a good end.
    """
    done = [task for task in message.tasks if task.state in _DONE]
    if not done:
        raise InputError(
            f"no task of workflow {message.name!r} has come to a good end: there is nothing to record"
        )
    specs = {task.name: task for task in spec.tasks}
    tasks, files = _Ids(), _Files()
    for task in done:
        tasks.of(task.name, task.name)
    children: dict[str, list[str]] = {}
    for task in done:
        for name in specs[task.name].predecessors:
            children.setdefault(name, []).append(tasks.of(task.name, task.name))
    # Outputs first: they keep their names where two want the same.
    left = {task.name: files.outputs(task, tasks.of(task.name, task.name)) for task in done}
    specified = [
        {
            "name": task.name,
            "id": tasks.of(task.name, task.name),
            "parents": [tasks.of(name, name) for name in specs[task.name].predecessors],
            "children": children.get(task.name, []),
            "inputFiles": files.inputs(specs[task.name]),
            "outputFiles": left[task.name],
        }
        for task in done
    ]
    begin = min(task.start_time_s for task in done)
    used = dict.fromkeys(task.demands[0].resource for task in done)
    simulated = sum(task.state == workflow_pb2.TASK_STATE_SIMULATED for task in done)
    said = (
        f"; of {simulated} tasks only the time was kept, and nothing was run" if simulated else ""
    )
    return {
        "name": message.name,
        "description": f"A run of workflow {message.name} ({message.workflow_id}) by a broker{said}",
        "createdAt": _moment(message.submit_time_s),
        "schemaVersion": VERSION,
        "runtimeSystem": {"name": "Hanse", "version": __version__},
        "workflow": {
            "specification": {"tasks": specified, "files": files.sizes()},
            "execution": {
                "makespanInSeconds": max(task.end_time_s for task in done) - begin,
                "executedAt": _moment(begin),
                "tasks": [_run(task, specs[task.name], tasks.ids[task.name]) for task in done],
                "machines": [_machine(name, machines.get(name)) for name in used],
            },
        },
    }


@dataclass
class _Files:
    # Files by what they are: an output of a task, or a content.
    ids: _Ids = field(default_factory=_Ids)
    size: dict[str, int] = field(default_factory=dict)

    def outputs(self, task: workflow_pb2.Task, owner: str) -> list[str]:
        found = []
        for file in task.outputs:
            found.append(self.ids.of((task.name, file.name), file.name, owner))
            self.size[found[-1]] = file.size_bytes
        return found

    def inputs(self, spec: workflow_pb2.TaskSpec) -> list[str]:
        found = []
        for file in spec.program.inputs:
            found.append(self.ids.of((file.name, file.sha256), file.name))
            self.size[found[-1]] = file.size_bytes
        found += [self.ids.of((each.task, each.output), each.output) for each in spec.task_outputs]
        return list(dict.fromkeys(found))

    def sizes(self) -> list[dict[str, Any]]:
        return [{"id": name, "sizeInBytes": size} for name, size in self.size.items()]


def _run(task: workflow_pb2.Task, spec: workflow_pb2.TaskSpec, name: str) -> dict[str, Any]:
    run: dict[str, Any] = {
        "id": name,
        "runtimeInSeconds": max(0.0, task.end_time_s - task.start_time_s),
        "executedAt": _moment(task.start_time_s),
        "coreCount": task.demands[0].units,
        "machines": [task.demands[0].resource],
    }
    words = list(spec.program.arguments)
    if spec.program.script == COMMAND_SCRIPT and all(words):
        run["command"] = {"program": words[0], "arguments": words[1:]}
    return run


def _machine(name: str, machine: Machine | None) -> dict[str, Any]:
    if machine is None:
        return {"nodeName": name}
    return {
        "nodeName": name,
        "cpu": {"coreCount": machine.capacity},
        "performance": machine.performance,
    }


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()
