"""What the tasks of a recorded workflow ran, to be run again.

A file that one task leaves and another uses is an output of the first and an input of the second; what no
task leaves lies beside the recording.
"""

from pathlib import Path

from broker.io.wfformat import RecordedTask, RecordedWorkflow
from broker.model.program import Input, Program, check_programs
from broker.model.workflow import Workflow
from broker.util.errors import FileError
from lrms_sim.util.file_errors import Mistake
from lrms_sim.workload.requests import Request


def programs_of(recorded: RecordedWorkflow, workflow: Workflow, path: Path) -> tuple[Program, ...]:
    """Returns what the tasks of a workflow run; those without a command run nothing.

    Args:
        recorded: the recording.
        workflow: as it is planned.
        path: of the recording, beside which files are looked for.

    Raises:
        FileError: a file is not there, or a program could run nowhere.
    """
    makers = {name: task.id for task in recorded.tasks for name in task.outputs}
    works = {task.name: task.work for task in workflow.tasks}
    programs, mistakes = [], []
    for task in recorded.tasks:
        if not task.program:
            continue
        try:
            programs.append(_program(task, makers, path.parent).limited(works[task.id]))
        except ValueError as error:
            mistakes.append(Mistake(f"workflow.specification.tasks.{task.id}", str(error)))
    if not mistakes:
        try:
            check_programs(workflow, programs)
        except ValueError as error:
            mistakes.append(Mistake("workflow", str(error)))
    if mistakes:
        raise FileError(str(path), mistakes)
    return tuple(programs)


def _program(task: RecordedTask, makers: dict[str, str], folder: Path) -> Program:
    inputs = []
    for name in task.inputs:
        maker = makers.get(name)
        if maker is not None and maker != task.id:
            inputs.append(Input(name, task=maker, output=name))
            continue
        place = folder / name
        if maker is None and not place.is_file():
            raise ValueError(f"its input {name!r} is no file at {place}, and no task leaves it")
        inputs.append(Input(name, path=str(place)))
    made = Program.of_command(
        task.id,
        (task.program, *task.arguments),
        request=Request(tasks=task.cores),
        outputs=[name for name in task.outputs if makers[name] == task.id],
    )
    return Program(
        made.task,
        made.script,
        made.arguments,
        request=made.request,
        inputs=tuple(inputs),
        outputs=made.outputs,
    )
