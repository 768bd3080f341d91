"""Commands of `gorba` for its daemon: serve, submit and inspect.

Heavy modules are imported by the commands that need them, so that help and errors appear at once.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from broker.cli.command_options import command_options, one_command, said_without_work
from broker.cli.command_types import duration, moment, preference
from broker.cli.connection import SOCKET_VARIABLE, broker_of, pool_of, with_broker
from broker.cli.resources_cli import resources
from grms.daemon.journal_commands import journal_group
from grms.daemon.web.link_command import link_command
from lrms_sim.util.files import check_written
from lrms_sim.util.json_output import json_option, print_json
from lrms_sim.util.messages import count
from lrms_sim.util.option_fields import FloatRange

if TYPE_CHECKING:
    from broker.client import BrokerClient
    from broker.model.program import Program
    from broker.model.workflow import OnFailure, Workflow
    from broker.scheduler.records import Record
    from broker.v1 import plan_pb2, workflow_pb2
    from grms.daemon.journal import JournalKind

_FILE = click.Path(path_type=Path, dir_okay=False)

STATUS_SIMULATED: Final = 3
"""Exit status of `gorba submit --wait` where everything has ended well, and something was simulated."""


@click.command(short_help="Run a broker.")
@click.argument("config", type=_FILE)
@click.option(
    "--behind",
    is_flag=True,
    help="The system's clock is right, and the journal was written while it was more than a day ahead.",
)
def serve(config: Path, *, behind: bool) -> None:
    """Run a broker until SIGTERM or Ctrl-C; a second one ends it at once.

    SIGHUP lets it read its configuration anew: renewed certificates, and other addresses of sites.

    CONFIG is the broker's configuration. docs/examples/broker.toml has every key; the least is

    \b
      listen.socket = "gorba.sock"
      journal.path = "gorba.journal"

    and docs/broker.md explains it. Other commands find the broker by its socket:

    \b
      gorba serve broker.toml &
      export GORBA_SOCKET=gorba.sock
      gorba resources add pool.toml
      gorba submit montage.json.gz
    """  # noqa: D301  # \b keeps the lines of the examples as they are
    from grms.daemon.quick_imports import quick_imports  # noqa: PLC0415  # see the module's docstring

    with quick_imports():
        from broker.config.config import load_config  # noqa: PLC0415  # same

    logging = load_config(config).logging
    with quick_imports():  # none of this where the configuration is wrong
        from broker.daemon import serve as run  # noqa: PLC0415  # same
        from grms.daemon.logs import configure_logs  # noqa: PLC0415  # same

    run(config, configure_logs(form=logging.format, level=logging.level), behind=behind)


def _socket_in(config: Path) -> str:
    from broker.config.config import load_config  # noqa: PLC0415  # see the module's docstring

    return load_config(config).listen.socket


def _link(socket: Path, timeout_s: float) -> str:
    with broker_of(socket, timeout_s) as broker:
        return broker.open_page().address


dashboard = link_command(
    "broker",
    "page",
    variable=SOCKET_VARIABLE,
    socket_in=_socket_in,
    link=_link,
)


@click.command(short_help="Hand in workflows or one command; their ids are printed.")
@click.argument("words", nargs=-1, required=True, metavar="FILE... | COMMAND...")
@with_broker
@click.option("--key", help="The same key is the same workflow.  [default: a new one]")
@click.option(
    "--wait",
    is_flag=True,
    help=f"Return when all have ended: with status 0 where every program was run to a good end, "
    f"{STATUS_SIMULATED} where tasks were only simulated, 1 where any workflow has failed.",
)
@click.option(
    "--due", type=moment, metavar="MOMENT", help="Due date, as 2026-03-02T08:00Z or seconds."
)
@click.option("--due-in", type=duration, metavar="TIME", help="The same from now on, as 3h.")
@click.option(
    "--budget",
    type=FloatRange(0),
    metavar="SUM",
    help="What each may cost, in the currency of the resources.",
)
@click.option(
    "--preference",
    "preferred",
    type=preference,
    metavar="PREFERENCE",
    help="fast, cheap, or a number from 0, fast, to 1, cheap.",
)
@click.option(
    "--on-failure",
    type=click.Choice(["finish", "terminate", "continue"]),
    help="When a task has failed for good: finish what runs, terminate it, or continue with all that does "
    "not wait for it.  [default: what the files say, else finish]",
)
@click.option(
    "--run-commands",
    "run",
    is_flag=True,
    help="Run the commands that WfFormat files have recorded, where resources run programs.",
)
@command_options
def submit(
    words: tuple[str, ...],
    *,
    broker: "BrokerClient",
    key: str | None,
    wait: bool,
    due: float | None,
    due_in: float | None,
    budget: float | None,
    preferred: float | None,
    on_failure: "OnFailure | None",
    run: bool,
    **command: Any,
) -> None:
    """Hand in workflows, or with --work one command; their ids are printed.

    FILEs are in WfFormat (.json, .json.gz) or in Hanse's own format (.toml, .json). What resources
    they name is looked up at the broker. When the ids are printed the broker will not lose them, and has the
    files that their programs are given.
    Due date, budget, preference and --on-failure hold for all of them, whatever the files say. With --key say
    the due date with --due: the same key has to be the same workflow.

    \b
      gorba submit mine.toml --key tonight --wait && echo done
      gorba submit montage.json.gz --due-in 3h --budget 20 --preference cheap
      gorba submit --work 5m --input a.csv --result b.csv -- python3 fit.py a.csv

    Programs run where resources are a site's jobs (docs/broker.md). Others are simulated: the time of a task is
    kept, and it ends as `simulated`.
    """  # noqa: D301  # see `serve`
    if due is not None and due_in is not None:
        raise click.UsageError("--due and --due-in say the same; give one of them")
    if command["work_s"] is None and (said := said_without_work(command)):
        raise click.UsageError(f"{said} goes with --work and a command; files say it themselves")
    if due_in is not None:
        due = broker.plan().now_s + due_in
    found = (
        _workflows([Path(word) for word in words], broker, run=run)
        if command["work_s"] is None
        else [one_command(words, pool_of(broker.resources()), command | {"key": key})]
    )
    submissions = [
        (
            replace(
                each,
                due_date=each.due_date if due is None else due,
                budget=each.budget if budget is None else budget,
                preference=each.preference if preferred is None else preferred,
                on_failure=on_failure or each.on_failure,
            ),
            programs,
        )
        for each, programs in found
    ]
    if not submissions:
        raise click.UsageError(f"there is no workflow in {', '.join(words)}")
    if key is not None and len(submissions) > 1:
        raise click.UsageError(f"--key names one workflow, and these are {len(submissions)}")
    taken = []
    for workflow, programs in submissions:
        taken.append(broker.submit(workflow, programs, key=key).workflow_id)
        click.echo(taken[-1])
    if wait:
        await_ends(broker, taken)


def await_ends(broker: "BrokerClient", workflow_ids: Sequence[str]) -> None:
    """Waits until workflows have ended, shows how, and ends the command with a status that says it."""
    status = 0
    for workflow_id in workflow_ids:
        ended = broker.wait(workflow_id)
        click.echo(workflow_line(ended), err=True)
        for line in failed_lines(ended):
            click.echo(line, err=True)
        status = worse_status(status, _state(ended))
    if status:
        click.get_current_context().exit(status)


def failed_lines(message: "workflow_pb2.Workflow") -> list[str]:
    """Returns a line for each task that has failed."""
    return [
        f"  {task.name}: failed{_because(task.reason)}"
        for task in message.tasks
        if _state(task) == "failed"
    ]


def worse_status(status: int, state: str) -> int:
    """Returns the exit status after one more workflow has ended in a state, `status` that before."""
    if state == "completed":
        return status
    return STATUS_SIMULATED if state == "simulated" and status != 1 else 1


def _workflows(
    files: Sequence[Path], broker: "BrokerClient", *, run: bool
) -> "list[tuple[Workflow, tuple[Program, ...]]]":
    from broker.io.documents import read_document  # noqa: PLC0415  # see the module's docstring
    from broker.io.import_options import ImportOptions  # noqa: PLC0415  # same
    from broker.io.importing import has_files, to_workflow  # noqa: PLC0415  # same
    from broker.io.pools import parse_file  # noqa: PLC0415  # same
    from broker.io.recorded_programs import programs_of  # noqa: PLC0415  # same
    from broker.io.wfformat import is_wfformat, parse_wfformat  # noqa: PLC0415  # same

    pool = pool_of(broker.resources())
    found: list[tuple[Workflow, tuple[Program, ...]]] = []
    for path in files:
        content = read_document(path)
        if not is_wfformat(content):
            found += parse_file(content, file=str(path)).submissions(pool)
            continue
        name = path.name.removesuffix(".gz").removesuffix(".json")
        recorded = parse_wfformat(content, file=str(path))
        workflow = to_workflow(recorded, pool, ImportOptions(), name=name, data=has_files(recorded))
        if run:
            found.append((workflow, programs_of(recorded, workflow, path)))
            continue
        found.append((workflow, ()))
        if recorded.commands:
            click.echo(
                f"{path}: the commands of {count(recorded.commands)} tasks are not run without "
                "--run-commands: the time that each took is kept at its resource, and the task ends as simulated, "
                "or fails at a real batch system",
                err=True,
            )
    return found


@click.command("list", short_help="List workflows.")
@with_broker
@click.option("--open", "only_open", is_flag=True, help="Only workflows that have not ended.")
@json_option("gorba-list", "broker.cli.output_models:WorkflowsOutput")
def list_workflows(*, broker: "BrokerClient", only_open: bool, as_json: bool) -> None:
    """List workflows, in the order in which they were received.

    \b
    Id, name, state (`simulated`: nothing was run), tasks ended, cost, in time:
      gorba list --open
    """  # noqa: D301  # see `serve`
    found = [each for each in broker.workflows() if not (only_open and each.HasField("end_time_s"))]
    if as_json:
        from grms.daemon.messages import of_message  # noqa: PLC0415  # see the module's docstring

        print_json("gorba-list", {"workflows": [of_message(each) for each in found]})
        return
    for each in found:
        click.echo(workflow_line(each))


@click.command(short_help="End workflows, also what runs.")
@click.argument("workflows", nargs=-1, required=True, metavar="WORKFLOW...")
@with_broker
def cancel(workflows: tuple[str, ...], *, broker: "BrokerClient") -> None:
    """Ask for the end of workflows, named by id or name.

    Reservations are released and runs ended; `gorba watch` tells when that is done. Where a word is
    the id of one workflow and the name of another, say id:WORD or name:WORD.

    \b
      gorba cancel w3 montage
    """  # noqa: D301  # see `serve`
    from broker.cli.workflow_wording import id_of  # noqa: PLC0415  # see the module's docstring

    known = broker.workflows()
    for workflow_id in [id_of(word, known) for word in workflows]:
        click.echo(workflow_line(broker.cancel(workflow_id)))


@click.command(short_help="Follow a workflow to its end, or the searches for plans.")
@click.argument("workflow", required=False)
@with_broker
@click.option(
    "--chart",
    is_flag=True,
    help="Show WORKFLOW as a Gantt chart that moves, until its end or Ctrl-C.",
)
@json_option("gorba-watch", "broker.cli.output_models:WatchedOutput", lines=True)
def watch(workflow: str | None, *, broker: "BrokerClient", chart: bool, as_json: bool) -> None:
    """Show a workflow and every change, until its end; without one, the searches for plans.

    It goes on over a restart of the broker. WORKFLOW is an id or a name, as for `gorba cancel`.

    \b
      gorba watch montage
      gorba watch montage --chart
      gorba watch
    """  # noqa: D301  # see `serve`
    if chart and (workflow is None or as_json):
        raise click.UsageError("--chart shows one workflow: name it, and leave out --json.")
    if workflow is not None:
        from broker.cli.workflow_wording import id_of  # noqa: PLC0415  # see the module's docstring

        workflow = id_of(workflow, broker.workflows())
    if chart and workflow is not None:
        from broker.cli.watch_chart import watch_chart  # noqa: PLC0415  # see the module's docstring

        watch_chart(broker, workflow, workflow_line)
        return
    if as_json:
        from broker.cli.output_models import news as news_of  # noqa: PLC0415  # see the module's docstring
        from grms.daemon.messages import of_message  # noqa: PLC0415  # same

        for value in (
            map(news_of, broker.watch_plan())
            if workflow is None
            else map(of_message, broker.watch(workflow))
        ):
            print_json("gorba-watch", value, line=True)
        return
    if workflow is not None:
        shown: dict[str, str] = {}
        for message in broker.watch(workflow):
            for line in _changes(message, shown):
                click.echo(line)
            click.echo(workflow_line(message))
        return
    for news in broker.watch_plan():
        click.echo(_news(news))


def _changes(message: "workflow_pb2.Workflow", shown: dict[str, str]) -> list[str]:
    # A line per task that has moved.
    lines = []
    for task in message.tasks:
        state = _state(task)
        now = f"{state} {task.reason}" if state == "launched" else state
        if shown.get(task.name) != now:
            shown[task.name] = now
            where = ", ".join(demand.resource for demand in task.demands) or "no place"
            lines.append(f"  {task.name}: {state} ({where}){_because(task.reason)}")
    return lines


def _news(news: "plan_pb2.PlanNews") -> str:
    if news.HasField("progress"):
        done = news.progress
        islands = f"{done.islands} islands, " if done.islands > 1 else ""
        return (
            f"plan {done.number} ({done.reason}): {islands}generation {done.generation}, "
            f"{done.evaluations} schedules in {done.seconds:.1f} s, fitness {done.fitness:.0f}"
        )
    end = news.end
    if end.problem:
        return f"plan {end.number}: none: {end.problem}"
    fitness = f", fitness {end.fitness:.0f}" if end.HasField("fitness") else ""
    return (
        f"plan {end.number}: {end.planned} tasks placed, {end.unplanned} without a place{fitness}"
    )


@click.command("show", short_help="Show the plan of a broker.")
@with_broker
@click.option(
    "--workflow", "workflows", multiple=True, metavar="WORKFLOW", help="Only this one; repeatable."
)
@click.option("--all", "everything", is_flag=True, help="Completed tasks, too.")
@json_option("gorba-plan", "broker.cli.output_models:PlanFileOutput", file="the plan")
@click.option("--html", type=_FILE, help="Write the plan as a page with Gantt charts.")
def show_plan(
    *,
    broker: "BrokerClient",
    workflows: tuple[str, ...],
    everything: bool,
    json: Path | None,
    html: Path | None,
) -> None:
    """Show the plan of a broker: what runs where and when, and what has no place.

    Moments are seconds from now. Tasks that have completed are left out. WORKFLOW is an id or a
    name, as for `gorba cancel`. The JSON is a plan file, as `gorba plan --old` reads it.

    \b
      gorba plan show
      gorba plan show --workflow w3 --all
      gorba plan show --html plan.html --json plan.json
    """  # noqa: D301  # see `serve`
    from broker.cli.show_command import show  # noqa: PLC0415  # see the module's docstring

    check_written((html, json), (), click.ClickException)
    show(broker, workflows, everything=everything, json=json, html=html)


@click.command(short_help="Ask for planning now.")
@with_broker
def replan(broker: "BrokerClient") -> None:
    """Ask for planning now; the number of the plan to come is printed."""
    click.echo(broker.replan())


def _journal_kind() -> "JournalKind[Record]":
    from broker.runtime.journal import KIND  # noqa: PLC0415  # see the module's docstring

    return KIND


journal = journal_group(_journal_kind, "gorba", "gorba.journal")


COMMANDS: tuple[click.Command, ...] = (
    serve,
    dashboard,
    journal,
    submit,
    list_workflows,
    watch,
    cancel,
    replan,
    resources,
)


def workflow_line(message: "workflow_pb2.Workflow") -> str:
    """Returns a workflow as one line."""
    due = ""
    if message.HasField("completion_s") and message.HasField("due_date_s"):
        late = message.completion_s - message.due_date_s
        due = f", {late:.0f} s late" if late > 0 else ", in time"
    return (
        f"{message.workflow_id:<6} {message.name:<20} {_state(message):<10} "
        f"{message.tasks_completed + message.tasks_simulated}/{message.tasks_total} tasks, cost {message.cost:.2f}{due}"
        f"{', open' if message.open else ''}{_because(message.reason)}"
    )


def _state(message: "workflow_pb2.Workflow | workflow_pb2.Task") -> str:
    from grms.daemon.messages import enum_word  # noqa: PLC0415  # see the module's docstring

    return enum_word(message)


def _because(reason: str) -> str:
    return f": {reason}" if reason else ""
