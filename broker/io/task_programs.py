"""What tasks run, as files of workflows say it."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import AfterValidator, BeforeValidator, Field

from broker.model.names import NAME_LENGTH_MAX
from broker.model.program import URLS, Checkpoint, Input, Program, Rerun
from broker.model.workflow import WORK_MAX
from grms.daemon.config_base import Model, wrong
from grms.util.names import VARIABLE
from lrms_sim.util.messages import duration_of, shown
from lrms_sim.workload.requests import Request, gpus_of, licence_of, memory_of, nodes_of

Name = Annotated[str, Field(min_length=1, max_length=4096)]
Count = Annotated[int, Field(ge=1, le=2**31 - 1)]

SHELL_SCRIPT: Final = "#!/bin/sh\n{}\n"
"""The script of a command that is one line for a shell."""


def _command(value: object) -> object:
    if isinstance(value, str) and value.strip():
        return value
    if isinstance(value, list) and value and all(isinstance(word, str) for word in value):
        return value
    raise wrong(f"is {shown(value)}; it must be a line for a shell, or a list of words")


def _nodes(value: object) -> object:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _seconds(value: object) -> object:
    seconds = duration_of(value) if isinstance(value, str) else value
    if seconds is None:
        raise wrong(f"is {shown(value)}; it must be a time, such as 90, 15min or 1h")
    return seconds


def check_variable(name: str) -> None:
    """Raises `ValueError` where no site can pass on a variable of this name."""
    if VARIABLE.fullmatch(name) is None:
        what = "letters, digits and `_`, the first no digit, 256 at most"
        raise ValueError(f"{shown(name)} is no name of an environment variable; it has {what}")


def _variables(value: dict[str, str]) -> dict[str, str]:
    for name in value:
        try:
            check_variable(name)
        except ValueError as error:
            raise wrong(str(error)) from None
    return value


class Resources(Model):
    """What a program asks for, in the words of `grms submit`."""

    tasks: Count = 1
    cores_per_task: Count = 1
    nodes: Annotated[str, BeforeValidator(_nodes)] | None = None
    tasks_per_node: Count | None = None
    memory: str | None = None
    gpus: Annotated[str, BeforeValidator(_nodes)] | None = None
    features: list[Name] = Field(default_factory=list)
    exclusive: bool = False
    licences: list[Name] = Field(default_factory=list)
    modules: list[Name] = Field(default_factory=list)
    partition: str = ""
    account: str = ""
    qos: str = ""

    def request(self, image: str, limit: float | None) -> Request:
        """Returns it as a request; `ValueError` if it contradicts itself, or a word has no meaning."""
        least, most = (1, None) if self.nodes is None else nodes_of(self.nodes)
        return Request(
            tasks=self.tasks,
            cores_per_task=self.cores_per_task,
            nodes_min=least,
            nodes_max=most,
            tasks_per_node=self.tasks_per_node,
            memory=None if self.memory is None else memory_of(self.memory),
            gpus=None if self.gpus is None else gpus_of(self.gpus),
            features=tuple(self.features),
            exclusive=self.exclusive,
            licences=tuple(map(licence_of, self.licences)),
            wall_time=limit,
            image=image,
            partition=self.partition,
            account=self.account,
            qos=self.qos,
            modules=tuple(self.modules),
        )


class RerunTable(Model):
    """When a program is run again."""

    runs: Count
    exit_codes: list[int] = Field(default_factory=list)
    outcomes: list[str] = Field(default_factory=list)


class CheckpointTable(Model):
    """How a program goes on where a site has ended it for another job."""

    every: Annotated[float, BeforeValidator(_seconds)]
    files: list[Name]


class InputTable(Model):
    """Where a file comes from: from a file here, or from a task."""

    file: Name | None = None
    task: Name | None = None
    output: Name | None = None


def _source(value: object) -> object:
    if isinstance(value, str) and value:
        return value
    if isinstance(value, dict):
        keys = set(value)
        if keys in ({"file"}, {"task", "output"}) and all(
            isinstance(each, str) and 1 <= len(each) <= NAME_LENGTH_MAX for each in value.values()
        ):
            return InputTable(**value)
    what = 'a path, a URL, "TASK/OUTPUT", { file = "…" } or { task = "…", output = "…" }'
    raise wrong(f"is {shown(value)}; it must be {what}")


def _sources(value: object) -> object:
    # All of it is looked at here: pydantic would say what is wrong as a list and as a table, whichever was meant.
    if isinstance(value, list):
        return [_source(each) for each in value]
    if not isinstance(value, dict) or "" in value:
        raise wrong(
            f"is {shown(value)}; it must be a list of sources, or a table of names and sources"
        )
    return {name: _source(each) for name, each in value.items()}


Source = str | InputTable


class ProgramTable(Model):
    """The keys of a task that say what it runs."""

    command: Annotated[str | list[str] | None, BeforeValidator(_command)] = None
    script: Name | None = None
    arguments: list[str] = Field(default_factory=list)
    environment: Annotated[dict[str, str], AfterValidator(_variables)] = Field(default_factory=dict)
    resources: Resources | None = None
    image: str = ""
    limit: Annotated[float, Field(gt=0, le=WORK_MAX, allow_inf_nan=False)] | None = None
    inputs: Annotated[list[Source] | dict[str, Source], BeforeValidator(_sources)] = Field(
        default_factory=list
    )
    outputs: list[Name] = Field(default_factory=list)
    rerun: RerunTable | None = None
    checkpoint: CheckpointTable | None = None


KEYS: Final = frozenset(ProgramTable.model_fields)


def program_of(
    name: str, table: ProgramTable, work: float, tasks: Collection[str], folder: Path
) -> Program | None:
    """Returns what a task runs; `None` for nothing.

    Args:
        name: of the task.
        table: what the file says of it.
        work: its estimate, seconds.
        tasks: names of all tasks of its workflow.
        folder: that paths are relative to.

    Raises:
        ValueError: it could run nowhere.
        OSError: its script cannot be read.
    """
    said = sorted(KEYS & table.model_fields_set)
    if table.command is None and table.script is None:
        if said:
            raise ValueError(f"{said[0]} goes with command or script, and neither is there")
        return None
    if table.command is not None and table.script is not None:
        raise ValueError("command and script are both there; give one of them")
    if table.arguments and table.script is None:
        raise ValueError("arguments go with script; a command has its own")
    resources = table.resources or Resources()
    rerun, writes = table.rerun, table.checkpoint
    words = table.arguments
    script = ""
    if isinstance(table.command, list):
        words = table.command
    elif table.command is not None:
        script = SHELL_SCRIPT.format(table.command)
    else:
        assert table.script is not None
        script = _script(table.script, folder)
    inputs = tuple(_inputs(table.inputs, tasks, folder))
    made = Program.of_command(
        name,
        words,
        script=script,
        environment=table.environment,
        request=resources.request(table.image, table.limit),
        outputs=table.outputs,
        rerun=None if rerun is None else _rerun(rerun),
        checkpoint=None if writes is None else Checkpoint(writes.every, tuple(writes.files)),
    )
    return replace(made, inputs=inputs).limited(work)


def _rerun(table: RerunTable) -> Rerun:
    return Rerun(table.runs, tuple(table.exit_codes), tuple(table.outcomes))


def _script(text: str, folder: Path) -> str:
    # The text of a script, or the path of a file.
    if text.startswith("#!"):
        return text if text.endswith("\n") else f"{text}\n"
    try:
        return (folder / text).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"script: {text} is no text in UTF-8") from error
    except OSError as error:
        raise ValueError(f"script: {folder / text}: {error.strerror}") from error


def _inputs(
    said: Sequence[Any] | Mapping[str, Any], tasks: Collection[str], folder: Path
) -> Iterator[Input]:
    if isinstance(said, Mapping):
        for name, source in said.items():
            yield input_of(name, source, tasks, folder)
        return
    for source in said:
        yield input_of("", source, tasks, folder)


def input_of(name: str, source: str | InputTable, tasks: Collection[str], folder: Path) -> Input:
    """Returns a file that a program is given, from what is written of it; `name` may be empty.

    Of many `tasks` there is best a set.

    Raises:
        ValueError: it is none; the text says why.
    """
    if isinstance(source, InputTable):
        if source.file is not None:
            return _file(name, source.file, folder)
        assert source.task is not None
        assert source.output is not None
        return Input(name or source.output, task=source.task, output=source.output)
    if source.startswith(URLS):
        return Input(name or source.partition("?")[0].rpartition("/")[2], path=source)
    # A task's name may have slashes; the longest that fits is meant.
    ends = [each.start() for each in re.finditer("/", source)]
    task = next((source[:end] for end in reversed(ends) if source[:end] in tasks), None)
    if task is not None:
        output = source[len(task) + 1 :]
        return Input(name or output, task=task, output=output)
    return _file(name, source, folder)


def _file(name: str, path: str, folder: Path) -> Input:
    place = folder / path
    if not place.is_file():
        raise ValueError(f"inputs: {place} is no file here, and {path!r} no output of a task")
    return Input(name or place.name, path=str(place))
