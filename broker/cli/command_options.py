"""Options of `gorba submit` for one command, which becomes a workflow of one task."""

import os
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from broker.cli.command_types import duration

if TYPE_CHECKING:
    from broker.model.pool import Pool
    from broker.model.program import Program
    from broker.model.workflow import Alternative, Task, Workflow

TASK: Final = "command"
"""Name of the one task."""

F = TypeVar("F", bound=Callable[..., Any])

_NAMES: Final = {
    "limit_s": "--time",
    "name": "--name",
    "processors": "--processors",
    "memory": "--memory",
    "gpus": "--gpus",
    "image": "--image",
    "inputs": "--input",
    "results": "--result",
    "variables": "--env",
    "targets": "--on",
}


def command_options(command: F) -> F:
    """Adds the options to a command; their values are for `one_command`."""
    for option in reversed(
        (
            click.option(
                "--work",
                "work_s",
                type=duration,
                metavar="TIME",
                help="The words after -- are a command, which is thought to take so long, as 5m.",
            ),
            click.option(
                "-t",
                "--time",
                "limit_s",
                type=duration,
                metavar="TIME",
                help="It may run; then it is killed.  [default: twice what it is thought to take, and at "
                "least ten minutes]",
            ),
            click.option(
                "--name",
                help="Of the workflow; with gorba add of the task, which has to have one.  [default: of the "
                "program, and a number]",
            ),
            click.option("-p", "--processors", type=click.IntRange(1), help="[default: 1]"),
            click.option(
                "--memory", metavar="SIZE[/node|core|gpu]", help="Such as 4G; of each core."
            ),
            click.option(
                "--gpus", metavar="[TYPE:]N[/node|task]", help="In all, or of each node or task."
            ),
            click.option("--image", metavar="NAME", help="Container image."),
            click.option(
                "--input",
                "inputs",
                multiple=True,
                metavar="[NAME=]FILE",
                help="File in its folder before it begins, there as NAME. May come several times, as the next three.",
            ),
            click.option(
                "--result",
                "results",
                multiple=True,
                metavar="NAME",
                help="File that it leaves there; without it, it has failed.",
            ),
            click.option(
                "--env",
                "variables",
                multiple=True,
                metavar="NAME[=VALUE]",
                help="A variable of it; without a value, as it is here.",
            ),
            click.option(
                "--on",
                "targets",
                multiple=True,
                metavar="RESOURCE",
                help="Where it may run.  [default: on all of kind cpu]",
            ),
        )
    ):
        command = option(command)
    return command


def said_without_work(values: Mapping[str, Any]) -> str:
    """Returns an option for one command that was given; empty for none."""
    return next((option for name, option in _NAMES.items() if values[name]), "")


def one_command(
    words: Sequence[str], pool: "Pool", values: Mapping[str, Any]
) -> "tuple[Workflow, tuple[Program, ...]]":
    """Returns a command as a workflow of one task, named as its program; `values` are options, and `key`.

    Raises:
        click.UsageError: an option cannot be read, or nothing of the broker could run it.
    """
    from broker.model.workflow import Workflow  # noqa: PLC0415  # help should come at once

    name = values["name"] or _name(words[0], values["key"])
    try:
        program = command_program(TASK, words, values, inputs_of(values["inputs"]))
        task = command_task(program, pool, values)
        workflow = Workflow(name, (task,))
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    return workflow, (program,)


def command_program(
    task: str, words: Sequence[str], values: Mapping[str, Any], inputs: "Mapping[str, Any]"
) -> "Program":
    """Returns a command as the program of a task of that name; `values` are options, `inputs` those of `of_command`.

    Raises:
        ValueError: an option cannot be read, or it could run nowhere.
    """
    from broker.model.program import Program  # noqa: PLC0415  # see `one_command`
    from lrms_sim.workload.requests import (  # noqa: PLC0415  # same
        Request,
        gpus_of,
        memory_of,
    )

    request = Request(
        tasks=values["processors"] or 1,
        memory=memory_of(values["memory"]) if values["memory"] else None,
        gpus=gpus_of(values["gpus"]) if values["gpus"] else None,
        image=values["image"] or "",
        wall_time=values["limit_s"],
    )
    return Program.of_command(
        task,
        words,
        environment=dict(map(_variable, values["variables"])),
        request=request,
        inputs=inputs,
        outputs=values["results"],
    ).limited(float(values["work_s"]))


def command_task(
    program: "Program", pool: "Pool", values: Mapping[str, Any], before: Sequence[str] = ()
) -> "Task":
    """Returns the task of a command's program, which waits for those `before` and for what it is given of others.

    Raises:
        ValueError: nothing of the broker could run it.
    """
    from broker.model.workflow import Task  # noqa: PLC0415  # see `one_command`

    given = (each.task for each in program.inputs if each.task)
    names = tuple(dict.fromkeys([*before, *given]))
    alternatives = _alternatives(values["targets"], values["processors"] or 1, pool)
    return Task(program.task, float(values["work_s"]), alternatives, names)


def inputs_of(words: Sequence[str], tasks: Sequence[str] = ()) -> dict[str, str | tuple[str, str]]:
    """Returns the files that options name, by their names in the folder.

    With the names of `tasks`, `TASK/OUTPUT` is a file that a task leaves.

    Raises:
        ValueError: one is not there.
    """
    found: dict[str, str | tuple[str, str]] = {}
    for word in words:
        name, sign, source = word.partition("=")
        source = source if sign else word
        makers = [task for task in tasks if source.startswith(f"{task}/")]
        if makers:
            task = max(makers, key=len)
            output = source[len(task) + 1 :]
            found[name if sign else output] = (task, output)
        else:
            found |= [_file(word)]
    return found


def _alternatives(
    targets: Sequence[str], processors: int, pool: "Pool"
) -> "tuple[Alternative, ...]":
    from broker.model.pool import KIND_DEFAULT  # noqa: PLC0415  # see `one_command`
    from lrms_sim.util.messages import unknown  # noqa: PLC0415  # same

    known = [resource.name for resource in pool.resources]
    for target in targets:
        if target not in known:
            raise ValueError(f"--on: {unknown('resource', target, known)}")
    if targets:
        return tuple(pool.alternative(each, processors) for each in targets)
    found = pool.alternatives((KIND_DEFAULT,), processors)
    if not found:
        raise ValueError(f"no resource of kind {KIND_DEFAULT!r} has {processors} processors")
    return found


def _name(word: str, key: str | None) -> str:
    import uuid  # noqa: PLC0415  # see `one_command`

    # Names of open workflows are unique, and the same command may be handed in many times; by one key it is the
    # same workflow.
    base = re.sub(r"[^A-Za-z0-9_.-]", "-", word.rpartition("/")[2]) or TASK
    number = uuid.uuid4() if key is None else uuid.uuid5(uuid.NAMESPACE_OID, key)
    return f"{base}-{number.hex[:8]}"


def _variable(word: str) -> tuple[str, str]:
    from broker.io.task_programs import check_variable  # noqa: PLC0415  # see `one_command`

    name, sign, value = word.partition("=")
    try:
        check_variable(name)
    except ValueError as error:
        raise ValueError(f"--env: {error}") from None
    if not sign and name not in os.environ:
        raise ValueError(f"--env: there is no variable {name!r} here; say {name}=VALUE")
    return name, value if sign else os.environ[name]


def _file(word: str) -> tuple[str, str]:
    # Named as for `grms submit`, where nothing else is said.
    name, sign, path = word.partition("=")
    if not sign:
        path = word
        name = word.rpartition("/")[2] if word.startswith("/") else word.removeprefix("./")
    if not os.path.isfile(path):  # noqa: PTH113  # as it was typed
        raise ValueError(f"--input: {path} is no file here")
    return name, path
