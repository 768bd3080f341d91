"""What tasks run, as messages of `broker.v1`, and back."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Final

from broker.model.program import RERUN_OUTCOMES, Checkpoint, Input, Program, Rerun
from broker.model.workflow import WORK_MAX
from broker.v1 import workflow_pb2
from grms.daemon.job_needs import read_needs, write_needs
from grms.v1 import request_pb2
from lrms_sim.workload.requests import Request

_OUTCOMES: Final[dict[Any, str]] = {
    request_pb2.Outcome.Value(f"OUTCOME_{word.upper()}"): word for word in RERUN_OUTCOMES
}
_NUMBERS: Final = {word: number for number, word in _OUTCOMES.items()}


def read_program(task: workflow_pb2.TaskSpec) -> Program | None:
    """Returns what a task runs; `None` for nothing.

    Raises:
        ValueError: it could run nowhere.
    """
    if not task.HasField("program"):
        if task.HasField("needs") or task.HasField("rerun") or task.task_outputs or task.limit_s:
            raise ValueError(
                "needs, limit, rerun or files of predecessors are there, and no program"
            )
        return None
    program = task.program
    if not 0 <= task.limit_s <= WORK_MAX:
        raise ValueError(f"limit_s is {task.limit_s}; it must be from 0 to {WORK_MAX:g}")
    limit = task.limit_s or None
    request = Request(wall_time=limit)
    if task.HasField("needs"):
        # A request on the wire always has a wall time; whether it was said shows here.
        request = replace(read_needs(task.needs, limit or 1.0), wall_time=limit)
    read = Program(
        task.name,
        program.script,
        tuple(program.arguments),
        tuple(sorted(program.environment.items())),
        request,
        (*_contents(program.inputs), *_outputs(task.task_outputs)),
        tuple(program.outputs),
        _read_rerun(task.rerun) if task.HasField("rerun") else Rerun(),
        _read_checkpoint(program.checkpoint) if program.HasField("checkpoint") else None,
    )
    return read.limited(task.work_s)


def _contents(files: Iterable[request_pb2.InputFile]) -> Iterable[Input]:
    for file in files:
        if file.shared_path:
            raise ValueError(f"the input {file.name!r} is used in place; hand over its content")
        yield Input(file.name, file.size_bytes, file.sha256)


def _outputs(files: Iterable[workflow_pb2.TaskOutput]) -> Iterable[Input]:
    for file in files:
        yield Input(file.name, task=file.task, output=file.output)


def _read_rerun(message: workflow_pb2.Rerun) -> Rerun:
    words = []
    for number in message.outcomes:
        if number not in _OUTCOMES:
            raise ValueError(f"rerun: outcome {number} is none after which a program is run again")
        words.append(_OUTCOMES[number])
    return Rerun(message.runs, tuple(message.exit_codes), tuple(words))


def _read_checkpoint(message: request_pb2.Checkpoint) -> Checkpoint:
    return Checkpoint(message.every_s, tuple(message.files))


def write_program(task: workflow_pb2.TaskSpec, program: Program) -> None:
    """Writes what a task runs into its message; files here have been handed over before.

    Raises:
        ValueError: one has not.
    """
    task.program.script = program.script
    task.program.arguments.extend(program.arguments)
    task.program.environment.update(dict(program.environment))
    task.program.outputs.extend(program.outputs)
    for each in program.inputs:
        if each.path:
            raise ValueError(f"{each.path} has not been handed over")
        if each.task:
            task.task_outputs.add(name=each.name, task=each.task, output=each.output)
        else:
            task.program.inputs.add(name=each.name, size_bytes=each.size, sha256=each.sha256)
    if program.request != Request(wall_time=program.request.wall_time):
        task.needs.CopyFrom(write_needs(program.request))
    task.limit_s = program.request.wall_time or 0.0
    if program.checkpoint is not None:
        task.program.checkpoint.every_s = program.checkpoint.every
        task.program.checkpoint.files.extend(program.checkpoint.files)
    rerun = program.rerun
    if rerun != Rerun():
        task.rerun.runs = rerun.runs
        task.rerun.exit_codes.extend(rerun.exit_codes)
        task.rerun.outcomes.extend(_NUMBERS[word] for word in rerun.outcomes)
