"""Recorded workflows in WfFormat 1.5 and 1.6, the JSON of WfCommons.

A recording says which task waits for which, and how long, on how many cores and on which machine each
ran. Due dates, budgets and alternatives come from `ImportOptions` and `broker.model.limits`.

Precedence is the union of `parents` and `children`, in case one side lacks an edge: the recorder has turned
files into edges already. `broker.io.recorded_programs` uses commands and files, where programs are to run again.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Final

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from broker.model.network import BYTES_MAX
from broker.model.workflow import WORK_MAX, cycle_words, find_cycle
from broker.util.errors import FileError
from grms.daemon.config_errors import mistakes_of, must_be
from lrms_sim.util.file_errors import Mistake
from lrms_sim.util.messages import shown

VERSIONS: Final = ("1.5", "1.6")
"""Versions read; 1.6 adds optional summaries, which are not needed."""

TASKS_MAX: Final = 500_000
_SPECIFICATION = "workflow.specification.tasks"
_EXECUTION = "workflow.execution.tasks"


@dataclass(frozen=True, slots=True)
class RecordedTask:
    """One recorded task.

    Attributes:
        id: unique in the workflow.
        name: several tasks may share it.
        program: empty if not recorded.
        arguments: of the program.
        inputs, outputs: ids of the files that it used and left.
        run_time: seconds, at least 0.
        cores: at least 1; 1 if not recorded.
        speed_mhz: clock of its machine; `None` if unknown.
        predecessors: ids of the tasks it waits for, in the file's order.
        performance: of its machine: work done in a second; 1 if not recorded.
    """

    id: str
    name: str
    program: str
    run_time: float
    cores: int
    speed_mhz: float | None
    predecessors: tuple[str, ...]
    arguments: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    performance: float = 1.0


@dataclass(frozen=True, slots=True)
class RecordedWorkflow:
    """A recorded workflow with tasks in the file's order; `makespan` is in seconds, if recorded.

    `sizes` are those of files, in bytes, by their ids.
    """

    name: str
    tasks: tuple[RecordedTask, ...]
    makespan: float | None
    sizes: Mapping[str, float] = field(default_factory=dict)

    @property
    def commands(self) -> int:
        """How many of its tasks name a program."""
        return sum(bool(task.program) for task in self.tasks)


class _Table(BaseModel):
    # The format allows further keys.
    model_config = ConfigDict(extra="ignore", frozen=True, strict=True)


_Name = Annotated[str, Field(min_length=1, max_length=4096)]
_Seconds = Annotated[float, Field(ge=0, le=WORK_MAX, allow_inf_nan=False)]


class _Specified(_Table):
    id: _Name
    name: str = ""
    parents: list[_Name]
    children: list[_Name] = []
    inputFiles: list[_Name] = []  # noqa: N815  # the key in the file
    outputFiles: list[_Name] = []  # noqa: N815  # same


class _DataFile(_Table):
    id: _Name
    sizeInBytes: Annotated[float, Field(ge=0, le=BYTES_MAX, allow_inf_nan=False)] | None = None  # noqa: N815  # the key in the file


class _Specification(_Table):
    files: list[_DataFile] = []
    tasks: Annotated[list[_Specified], Field(min_length=1, max_length=TASKS_MAX)]


def _argument(value: object) -> object:
    if isinstance(value, str | int | float):
        return value
    raise must_be(value, "a text in quotes, or a number")


class _Command(_Table):
    program: str = ""
    arguments: list[Annotated[str | int | float, BeforeValidator(_argument)]] = []


class _Executed(_Table):
    id: _Name
    runtimeInSeconds: _Seconds  # noqa: N815  # the key in the file
    coreCount: Annotated[float, Field(ge=1, le=2**31 - 1)] | None = None  # noqa: N815  # same
    command: _Command = _Command()
    machines: list[_Name] = []
    machine: _Name | None = None  # what the format's text calls it; recordings have the plural


class _Cpu(_Table):
    speedInMHz: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None  # noqa: N815  # the key in the file


class _Machine(_Table):
    nodeName: _Name  # noqa: N815  # the key in the file
    cpu: _Cpu = _Cpu()
    performance: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1.0  # of our own recordings


class _Execution(_Table):
    makespanInSeconds: _Seconds | None = None  # noqa: N815  # the key in the file
    tasks: list[_Executed]
    machines: list[_Machine] = []


class _Workflow(_Table):
    specification: _Specification
    execution: _Execution


class _File(_Table):
    name: _Name
    workflow: _Workflow


def is_wfformat(document: dict[str, Any]) -> bool:
    """Returns whether a decoded document claims to be in WfFormat, in any version."""
    return "workflow" in document or "schemaVersion" in document


def parse_wfformat(document: dict[str, Any], *, file: str) -> RecordedWorkflow:
    """Builds a recorded workflow from decoded JSON; `file` is its name in errors.

    Raises:
        FileError: it breaks the format.
    """
    version = document.get("schemaVersion")
    if version not in VERSIONS:
        found = "is missing" if version is None else f"is {shown(version)}"
        text = f"{found}; this program reads WfFormat {' and '.join(VERSIONS)}"
        raise FileError(file, [Mistake("schemaVersion", text)])
    workflow = document.get("workflow")
    if isinstance(workflow, dict) and "execution" not in workflow:
        text = "is missing: without run times there is nothing to plan with"
        raise FileError(file, [Mistake("workflow.execution", text)])
    try:
        parsed = _File.model_validate(document)
    except ValidationError as error:
        raise FileError(file, mistakes_of(error, document, _File)) from None
    specified = parsed.workflow.specification.tasks
    execution = parsed.workflow.execution
    mistakes = [*_specification_mistakes(specified), *_execution_mistakes(specified, execution)]
    predecessors = _predecessors(specified)
    if not mistakes and (cycle := find_cycle(predecessors)):
        around = cycle_words(cycle, " waits for ")
        mistakes = [Mistake(_SPECIFICATION, f"tasks wait for each other: {around}")]
    if mistakes:
        raise FileError(file, mistakes)
    return RecordedWorkflow(
        name=parsed.name,
        tasks=tuple(_recorded(specified, execution, predecessors)),
        makespan=execution.makespanInSeconds,
        sizes={
            each.id: each.sizeInBytes
            for each in parsed.workflow.specification.files
            if each.sizeInBytes is not None
        },
    )


def _specification_mistakes(tasks: Sequence[_Specified]) -> Iterator[Mistake]:
    first: dict[str, int] = {}
    for index, task in enumerate(tasks):
        if task.id in first:
            text = f"{shown(task.id)} is the id of tasks[{first[task.id]}] too; ids must be unique"
            yield Mistake(f"{_SPECIFICATION}[{index}].id", text)
        else:
            first[task.id] = index
    for index, task in enumerate(tasks):
        for word, others in (("parents", task.parents), ("children", task.children)):
            for place, other in enumerate(others):
                key = f"{_SPECIFICATION}[{index}].{word}[{place}]"
                if other == task.id:
                    yield Mistake(key, f"{shown(other)} is the task itself")
                elif other not in first:
                    yield Mistake(key, f"{shown(other)} is no task of this workflow")


def _execution_mistakes(tasks: Sequence[_Specified], execution: _Execution) -> Iterator[Mistake]:
    known = {task.id for task in tasks}
    first: dict[str, int] = {}
    for index, run in enumerate(execution.tasks):
        key = f"{_EXECUTION}[{index}].id"
        if run.id in first:
            text = f"{shown(run.id)} is the id of tasks[{first[run.id]}] too; ids must be unique"
            yield Mistake(key, text)
        elif run.id not in known:
            yield Mistake(key, f"{shown(run.id)} is no task of the specification")
        first.setdefault(run.id, index)
    for index, task in enumerate(tasks):
        if task.id not in first:
            text = f"task {shown(task.id)} has no run time: {_EXECUTION} does not have it"
            yield Mistake(f"{_SPECIFICATION}[{index}].id", text)


def _predecessors(tasks: Sequence[_Specified]) -> dict[str, list[str]]:
    """Returns the ids that each task waits for, without duplicates: its parents, then tasks that list it as child."""
    edges: dict[str, dict[str, None]] = {task.id: dict.fromkeys(task.parents) for task in tasks}
    for task in tasks:
        for child in task.children:
            if child in edges:
                edges[child][task.id] = None
    return {task: list(before) for task, before in edges.items()}


def _recorded(
    specified: Sequence[_Specified], execution: _Execution, predecessors: dict[str, list[str]]
) -> Iterator[RecordedTask]:
    runs = {run.id: run for run in execution.tasks}
    speeds = {machine.nodeName: machine.cpu.speedInMHz for machine in execution.machines}
    performances = {machine.nodeName: machine.performance for machine in execution.machines}
    for task in specified:
        run = runs[task.id]
        machines = [*run.machines, *([run.machine] if run.machine else [])]
        yield RecordedTask(
            id=task.id,
            name=task.name or task.id,
            program=run.command.program,
            run_time=run.runtimeInSeconds,
            cores=math.ceil(run.coreCount or 1),
            speed_mhz=next((speed for name in machines if (speed := speeds.get(name))), None),
            predecessors=tuple(predecessors[task.id]),
            arguments=tuple(map(str, run.command.arguments)),
            inputs=tuple(dict.fromkeys(task.inputFiles)),
            outputs=tuple(dict.fromkeys(task.outputFiles)),
            performance=next(
                (performances[name] for name in machines if name in performances), 1.0
            ),
        )
