"""Commands of `gorba` for workflows that grow: open, add, close; and to wait for workflows, and record them.

Heavy modules are imported by the commands that need them, so that help and errors appear at once.
"""

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from broker.cli.command_options import command_options, said_without_work
from broker.cli.command_types import duration, moment, preference
from broker.cli.connection import pool_of, with_broker
from broker.cli.daemon_cli import await_ends, workflow_line
from lrms_sim.util.option_fields import FloatRange

if TYPE_CHECKING:
    from broker.client import BrokerClient
    from broker.model.additions import Addition
    from broker.model.workflow import OnFailure

_FILE = click.Path(path_type=Path, dir_okay=False)


@click.command("open", short_help="Open a workflow that tasks are added to; its id is printed.")
@click.argument("name")
@with_broker
@click.option("--key", help="The same key is the same workflow.  [default: a new one]")
@click.option("--earliest", type=moment, metavar="MOMENT", help="No task starts before.")
@click.option(
    "--due", type=moment, metavar="MOMENT", help="Due date, as 2026-03-02T08:00Z or seconds."
)
@click.option("--due-in", type=duration, metavar="TIME", help="The same from now on, as 3h.")
@click.option("--budget", type=FloatRange(0), metavar="SUM", help="What all of its tasks may cost.")
@click.option(
    "--preference",
    "preferred",
    type=preference,
    default="0.5",
    metavar="PREFERENCE",
    help="fast, cheap, or a number from 0, fast, to 1, cheap.",
)
@click.option(
    "--on-failure",
    type=click.Choice(["finish", "terminate", "continue"]),
    default="finish",
    show_default=True,
    help="When a task has failed for good: finish what runs, terminate it, or continue with all that does "
    "not wait for it. The first two end the workflow, and no task can be added any more.",
)
def open_workflow(
    name: str,
    *,
    broker: "BrokerClient",
    key: str | None,
    earliest: float | None,
    due: float | None,
    due_in: float | None,
    budget: float | None,
    preferred: float,
    on_failure: "OnFailure",
) -> None:
    """Open a workflow of which not all tasks are known yet; its id is printed.

    Tasks are added by `gorba add`, and begin at once where they can. It does not end before `gorba close`, though
    nothing of it is left to do. Due date and budget are those of all tasks, whenever they come; planning goes
    by the tasks there are. With --key say the due date with --due: the same key has to be the same workflow.

    \b
      gorba open sweep --key sweep-7 --on-failure continue
      gorba add sweep --name prepare --work 1m --result grid.csv -- ./prepare
      gorba add sweep --name fit --work 20s --input prepare/grid.csv \\
        --each-line points.txt -- ./fit grid.csv
      gorba add sweep --name best --work 5s --after fit -- ./pick-best
      gorba close sweep
      gorba wait sweep && gorba record sweep --output sweep.json
    """  # noqa: D301  # \b keeps the lines of the examples as they are
    import math  # noqa: PLC0415  # see the module's docstring

    from broker.model.workflow import OpenWorkflow  # noqa: PLC0415  # same

    if due is not None and due_in is not None:
        raise click.UsageError("--due and --due-in say the same; give one of them")
    if due_in is not None:
        due = broker.plan().now_s + due_in
    try:
        workflow = OpenWorkflow(
            name,
            (),
            -math.inf if earliest is None else earliest,
            math.inf if due is None else due,
            math.inf if budget is None else budget,
            preferred,
            on_failure,
        )
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    click.echo(broker.open(workflow, key=key).workflow_id)


@click.command(short_help="Add tasks to an open workflow.")
@click.argument("workflow")
@click.argument("words", nargs=-1, required=True, metavar="FILE... | COMMAND...")
@with_broker
@click.option(
    "--after",
    multiple=True,
    metavar="TASK",
    help="It waits for this task, which is there already; of an array for all. Repeatable.",
)
@click.option(
    "--each-line",
    type=click.Path(path_type=Path, dir_okay=False, allow_dash=True),
    metavar="FILE",
    help="An array: a task for each line of FILE (- for standard input), whose words follow those of the command.",
)
@click.option(
    "--on-failure",
    type=click.Choice(["finish", "terminate", "continue"]),
    help="When it has failed for good.  [default: what the workflow says]",
)
@command_options
def add(
    workflow: str,
    words: tuple[str, ...],
    *,
    broker: "BrokerClient",
    after: tuple[str, ...],
    each_line: Path | None,
    on_failure: "OnFailure | None",
    **command: Any,
) -> None:
    """Add tasks to an open workflow, named by id or name: all of them, or none.

    With --work a command becomes a task, called --name. FILEs (.toml, .json) have `[[tasks]]`, with the keys that tasks
    of a workflow have; `elements` makes an array of one. Tasks wait for tasks that are there already, or are among
    these. `--input TASK/OUTPUT` gives a command a file that a task leaves, and waits for it.

    A task is known by its name: added again it is nothing, so that a script is simply run once more
    where it was cut off; with another content it is refused.

    \b
      gorba add sweep --name fit --work 20s --after prepare -- ./fit grid.csv
      gorba add sweep --name fit --work 20s --each-line points.txt -- ./fit
      gorba add sweep more.toml
    """  # noqa: D301  # see `open_workflow`
    from broker.cli.workflow_wording import id_of  # noqa: PLC0415  # see the module's docstring
    from broker.gantt.wording import count_of  # noqa: PLC0415  # same

    workflow_id = id_of(workflow, broker.workflows())
    if command["work_s"] is None:
        said = said_without_work(command)
        said = "--after" if after else "--each-line" if each_line else said
        if said or on_failure:
            text = (
                f"{said or '--on-failure'} goes with --work and a command; files say it themselves"
            )
            raise click.UsageError(text)
        additions = _of_files([Path(word) for word in words], broker, workflow_id)
    else:
        more = {"after": after, "each_line": each_line, "on_failure": on_failure}
        additions = [_of_command(words, broker, workflow_id, command | more)]
    found = broker.add(workflow_id, additions)
    click.echo(
        f"{count_of(found.tasks_new, 'task')} added to {found.workflow_id}, which has {found.tasks_total}"
    )


def _lines(path: Path | None) -> tuple[tuple[str, ...], ...]:
    # The words of each line that has any.
    if path is None:
        return ()
    try:
        with click.open_file(str(path), encoding="utf-8") as stream:
            text = stream.read()
        found = tuple(tuple(shlex.split(line)) for line in text.splitlines() if line.strip())
    except (OSError, ValueError) as error:
        raise click.UsageError(f"--each-line: {path}: {error}") from error
    if not found:
        raise click.UsageError(f"--each-line: {path} has no line with a word")
    return found


def _of_command(
    words: Sequence[str],
    broker: "BrokerClient",
    workflow_id: str,
    values: Mapping[str, Any],
) -> "Addition":
    from dataclasses import replace  # noqa: PLC0415  # see the module's docstring

    from broker.cli.command_options import (  # noqa: PLC0415  # same
        command_program,
        command_task,
        inputs_of,
    )
    from broker.model.additions import Addition  # noqa: PLC0415  # same

    name = values["name"]
    if not name:
        raise click.UsageError("--name says what the task is called, by which it is known")
    known = [task.name for task in broker.get(workflow_id).tasks] if values["inputs"] else []
    try:
        program = command_program(name, words, values, inputs_of(values["inputs"], known))
        task = command_task(program, pool_of(broker.resources()), values, values["after"])
        task = replace(task, on_failure=values["on_failure"])
        return Addition(task, program, _lines(values["each_line"]))
    except ValueError as error:
        raise click.UsageError(str(error)) from error


def _of_files(files: Sequence[Path], broker: "BrokerClient", workflow_id: str) -> "list[Addition]":
    from broker.io.pools import read_file  # noqa: PLC0415  # see the module's docstring
    from broker.util.errors import InputError  # noqa: PLC0415  # same

    pool = pool_of(broker.resources())
    known = [task.name for task in broker.get(workflow_id).tasks]
    found: list[Addition] = []
    for path in files:
        document = read_file(path)
        if not document.tasks_count:
            text = f"{path} has no [[tasks]] to be added"
            more = "; gorba submit hands in whole workflows" if document.workflow_count else ""
            raise InputError(text + more)
        found += document.additions(pool, known)
        known += [name for each in found for name in each.names]
    return found


@click.command(short_help="Close workflows: no more tasks are added.")
@click.argument("workflows", nargs=-1, required=True, metavar="WORKFLOW...")
@with_broker
def close(workflows: tuple[str, ...], *, broker: "BrokerClient") -> None:
    """Close open workflows, named by id or name: each ends with its last task.

    Closing what is closed is nothing.

    \b
      gorba close sweep && gorba wait sweep
    """  # noqa: D301  # see `open_workflow`
    from broker.cli.workflow_wording import id_of  # noqa: PLC0415  # see the module's docstring

    known = broker.workflows()
    for workflow_id in [id_of(word, known) for word in workflows]:
        click.echo(workflow_line(broker.close(workflow_id)))


@click.command(short_help="Return when workflows have ended, with a status that says how.")
@click.argument("workflows", nargs=-1, required=True, metavar="WORKFLOW...")
@with_broker
def wait(workflows: tuple[str, ...], *, broker: "BrokerClient") -> None:
    """Return when all of the workflows have ended, named by id or name; over restarts of the broker, too.

    An open workflow does not end before it is closed. The status is 0 where every program was run to a good end, 3
    where tasks were only simulated, and 1 where any workflow has failed or was cancelled.

    \b
      gorba wait sweep montage && echo done
    """  # noqa: D301  # see `open_workflow`
    from broker.cli.workflow_wording import id_of  # noqa: PLC0415  # see the module's docstring

    known = broker.workflows()
    await_ends(broker, [id_of(word, known) for word in workflows])


@click.command(short_help="Write what a workflow has run as a recording in WfFormat.")
@click.argument("workflow")
@with_broker
@click.option("-o", "--output", type=_FILE, help="File, .json.  [default: standard output]")
def record(workflow: str, *, broker: "BrokerClient", output: Path | None) -> None:
    """Write what a workflow has run, by id or name, as a recording in WfFormat 1.6.

    It has the tasks that have come to a good end: how long each ran, on what, on how many units, what it waited for, its
    command and its files. `gorba plan` plans it again, and other tools of WfCommons read it.

    \b
      gorba record sweep --output sweep.json
      gorba plan sweep.json -r pool.toml --search-time 10s --html plan.html
    """  # noqa: D301  # see `open_workflow`
    from broker.cli.workflow_wording import id_of  # noqa: PLC0415  # see the module's docstring
    from broker.gantt.wording import count_of  # noqa: PLC0415  # same
    from broker.io.recording import Machine, left_out, recording  # noqa: PLC0415  # same
    from broker.io.writing import to_json, write_text  # noqa: PLC0415  # same

    workflow_id = id_of(workflow, broker.workflows())
    message, spec = broker.get(workflow_id), broker.describe(workflow_id)
    machines = {
        supply.name: Machine(supply.resource.capacity, supply.resource.performance)
        for supply in broker.resources()
    }
    text = to_json(recording(message, spec, machines))
    if output is None:
        click.echo(text, nl=False)
    else:
        write_text(output, text)
        click.echo(f"written to {output}", err=True)
    if missing := left_out(message):
        click.echo(
            f"{count_of(missing, 'task')} left out, as they have not come to a good end", err=True
        )


COMMANDS: tuple[click.Command, ...] = (open_workflow, add, close, wait, record)
