"""The commands of `gorba` for what programs leave: `logs` shows it, `fetch` brings it.

Everything heavy is imported by the command that needs it, so that help and errors come at once.
"""

import re
import sys
import time
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from broker.cli.connection import with_broker
from lrms_sim.util.messages import printable

if TYPE_CHECKING:
    from broker.client import BrokerClient
    from broker.v1 import workflow_pb2

FOLLOW_S: Final = 1.0
"""Between two looks at what a running program has printed, seconds."""


@click.command(short_help="Show what a task's program has printed.")
@click.argument("workflow")
@click.argument("task")
@with_broker
@click.option("--stderr", "error", is_flag=True, help="What it has written to standard error.")
@click.option("--follow", "-f", is_flag=True, help="Go on until it has ended.")
def logs(workflow: str, task: str, *, broker: "BrokerClient", error: bool, follow: bool) -> None:
    """Show what a task's program has printed, of one that runs what it has printed so far.

    It comes from the site where the program runs or has run. WORKFLOW is an id or a name, as for
    `gorba cancel`.

    \b
      gorba logs montage mProject_1
      gorba logs w3 align --stderr --follow
    """  # noqa: D301  # \b keeps the lines of the examples as they are
    from broker.cli.workflow_wording import id_of  # noqa: PLC0415  # see the module's docstring

    workflow_id = id_of(workflow, broker.workflows())
    name, out, begin = ("stderr" if error else "stdout"), sys.stdout.buffer, 0
    while True:
        ended = not follow or _has_ended(broker, workflow_id, task)
        for some in broker.fetch(workflow_id, task, name, begin):
            out.write(some)
            begin += len(some)
        out.flush()
        if ended:
            return
        time.sleep(FOLLOW_S)


def _has_ended(broker: "BrokerClient", workflow_id: str, task: str) -> bool:
    from grms.daemon.messages import enum_word  # noqa: PLC0415  # see the module's docstring

    found = _task(broker.get(workflow_id), task)
    return enum_word(found) not in {"launched", "running", "ending"}


def _task(message: "workflow_pb2.Workflow", task: str) -> "workflow_pb2.Task":
    from broker.util.errors import InputError  # noqa: PLC0415  # see the module's docstring
    from lrms_sim.util.messages import unknown  # noqa: PLC0415  # same

    for each in message.tasks:
        if each.name == task:
            return each
    raise InputError(unknown("task", task, [each.name for each in message.tasks]))


@click.command(short_help="Bring the files that programs have left.")
@click.argument("workflow")
@click.argument("task", required=False)
@with_broker
@click.option(
    "--output",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where the files go; it is made where it is missing.  [default: a folder named as the workflow]",
)
@click.option("--force", is_flag=True, help="Replace files that are there.")
def fetch(
    workflow: str,
    task: str | None,
    *,
    broker: "BrokerClient",
    folder: Path | None,
    force: bool,
) -> None:
    """Bring the files that programs have left: stdout, stderr and outputs, a folder for each task.

    Without TASK those of all tasks whose programs have ended. They come from the sites where the programs
    have run, which keep them for a while. Status 1 where one is missing. WORKFLOW is an id or a name, as for
    `gorba cancel`.

    \b
      gorba fetch montage
      gorba fetch w3 align --output results
    """  # noqa: D301  # see `logs`
    from broker.cli.workflow_wording import id_of  # noqa: PLC0415  # see the module's docstring

    message = broker.get(id_of(workflow, broker.workflows()))
    wanted = [each.name for each in message.tasks if each.has_program and each.HasField("outcome")]
    if task is not None:
        wanted = [_task(message, task).name]
    elif not wanted:
        raise click.ClickException(f"no program of workflow {message.name!r} has ended")
    target = Path(_folder_name(message.name)) if folder is None else folder
    folders = task_folders(each.name for each in message.tasks)
    missed = [
        name
        for name in wanted
        if not _fetched(broker, message.workflow_id, name, target / folders[name], force=force)
    ]
    if missed:
        click.get_current_context().exit(1)


def _folder_name(name: str) -> str:
    # Names of workflows and tasks may have any character.
    return re.sub(r"[^\w.+=@-]", "_", name).lstrip(".") or "_"


def task_folders(tasks: Iterable[str]) -> dict[str, str]:
    """Returns by task the name of the folder for its files, each another one.

    Names of tasks that differ only in what folders' names cannot have are numbered in their order. A workflow
    that grows has new tasks behind the others, so these keep their folders.
    """
    folders: dict[str, str] = {}
    taken: set[str] = set()
    last: dict[str, int] = {}  # number of the last task of that name; all up to it are taken
    for task in tasks:
        plain = _folder_name(task)
        number = last.get(plain, 0) + 1
        name = plain if number == 1 else f"{plain}.{number}"
        while name in taken:
            number += 1
            name = f"{plain}.{number}"
        taken.add(name)
        last[plain] = number
        folders[task] = name
    return folders


def _fetched(
    broker: "BrokerClient", workflow_id: str, task: str, place: Path, *, force: bool
) -> bool:
    # Returns whether all files of a task have come.
    from broker.util.errors import CallError  # noqa: PLC0415  # see the module's docstring
    from grms.client.fetching import Bringer  # noqa: PLC0415  # same

    try:
        results = broker.results(workflow_id, task)
    except CallError as error:
        click.echo(f"{task}: {error}", err=True)
        return False
    if not results.complete or results.problem:
        why = results.problem or "it has not ended; `gorba logs` shows what there is"
        click.echo(f"{task}: {printable(why)}", err=True)
        return False
    place.mkdir(parents=True, exist_ok=True)
    well = True
    bring = Bringer(partial(broker.fetch, workflow_id, task), place, force=force)
    for file in results.files:
        problem = bring(file)
        words = problem or f"{file.size_bytes} bytes"
        click.echo(f"{printable(str(place / file.name))}: {words}", err=bool(problem))
        well = well and not problem
    return well


COMMANDS: tuple[click.Command, ...] = (logs, fetch)
