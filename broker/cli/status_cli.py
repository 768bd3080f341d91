"""The command `gorba status`.

Heavy modules are imported by the commands that need them, so that help and errors appear at once.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from broker.cli.connection import with_broker
from lrms_sim.util.json_output import json_option, print_json
from lrms_sim.util.messages import printable

if TYPE_CHECKING:
    from broker.client import BrokerClient
    from broker.scheduler.records import Supply
    from broker.v1 import plan_pb2, workflow_pb2


@click.command(short_help="Show how a broker is, or a workflow.")
@click.argument("workflow", required=False)
@with_broker
@json_option("gorba-status", "broker.cli.output_models:StatusOrWorkflowOutput")
def status(*, workflow: str | None, broker: "BrokerClient", as_json: bool) -> None:
    """Show how a broker is: its workflows by state, its resources, and its plan.

    `gorba list`, `gorba resources list` and `gorba plan show` have each of them. With WORKFLOW, an id or a
    name as for `gorba cancel`, show how that is: its tasks, where they run, and how their programs have ended.

    \b
      gorba status
      gorba status montage
    """  # noqa: D301  # \b keeps the lines of the examples as they are
    if workflow is not None:
        _show(broker, workflow, as_json=as_json)
        return
    found = status_of(broker.workflows(), broker.resources(), broker.plan())
    if as_json:
        print_json("gorba-status", found)
        return
    for line in lines(found):
        click.echo(line)


def _show(broker: "BrokerClient", workflow: str, *, as_json: bool) -> None:
    from broker.cli.daemon_cli import workflow_line  # noqa: PLC0415  # see the module's docstring
    from broker.cli.workflow_wording import id_of  # noqa: PLC0415  # same
    from grms.daemon.messages import of_message  # noqa: PLC0415  # same

    message = broker.get(id_of(workflow, broker.workflows()))
    if as_json:
        print_json("gorba-status", of_message(message))
        return
    click.echo(workflow_line(message))
    width = max((len(task.name) for task in message.tasks), default=0)
    for task in message.tasks:
        click.echo(f"  {printable(task.name):<{width}}  {task_line(task)}".rstrip())


def task_line(task: "workflow_pb2.Task") -> str:
    """Returns how a task is in a line: its state, where it is, its job, and how its program has ended."""
    from grms.daemon.messages import enum_word  # noqa: PLC0415  # see the module's docstring

    said = [enum_word(task), ", ".join(demand.resource for demand in task.demands)]
    if task.job:
        said.append(f"job {task.job}")
    if task.HasField("signal"):
        end = f"signal {task.signal}"
    else:
        end = f"exit code {task.exit_code}" if task.HasField("exit_code") else ""
    if end not in task.reason:  # which says it already where the program has failed
        said.append(end)
    if task.runs > 1:
        said.append(f"{task.runs} runs")
    if task.estimate_runs and not task.HasField("outcome"):
        from lrms_sim.util.messages import duration  # noqa: PLC0415  # see the module's docstring

        said.append(f"thought to be {duration(task.estimate_s)} of work, {_runs(task)}")
    if any(said[1:]):
        said[0] = f"{said[0]:<9}"  # what follows stands in a column
    return "  ".join(filter(None, said)) + (f": {printable(task.reason)}" if task.reason else "")


def _runs(task: "workflow_pb2.Task") -> str:
    return f"from {task.estimate_runs} run{'s' if task.estimate_runs > 1 else ''}"


@click.command(short_help="Show how long programs are thought to take.")
@with_broker
@json_option("gorba-estimates", "broker.cli.output_models:EstimatesOutput")
def estimates(*, broker: "BrokerClient", as_json: bool) -> None:
    """Show what a broker has learned of how long programs take, from their last runs.

    The ratio is what runs took to what their users had estimated, the median of a program's runs; four of five
    were in the range behind it. Plans go by it where the broker's file has `cycle.estimates = "learned"`.
    """
    from grms.daemon.messages import of_message  # noqa: PLC0415  # see the module's docstring

    found = broker.estimates()
    if as_json:
        print_json("gorba-estimates", of_message(found))
        return
    for line in estimate_lines(found):
        click.echo(line)


def estimate_lines(found: "plan_pb2.EstimatesResponse") -> Iterator[str]:
    """Yields what was learned in lines for the terminal."""
    from lrms_sim.util.messages import duration  # noqa: PLC0415  # see the module's docstring

    if not found.programs:
        yield "no program has run yet"
        return
    used = (
        "plans go by it" if found.used else 'plans go by what users say (cycle.estimates = "file")'
    )
    yield f"learned from runs; {used}"
    width = max(len(printable(each.program)) for each in found.programs)
    for each in found.programs:
        said = f"{each.ratio:.2f} of the estimate ({each.low:.2f} to {each.high:.2f})"
        by = {"constant": ", alike whatever is estimated", "size": ", by the size of the input"}
        line = f"{each.runs:4} run{'s' if each.runs > 1 else ' '}  {duration(each.work_s)} of work, {said}"
        factors = "".join(
            f", {one.factor:.2f} on {printable(one.resource)}" for one in each.factors
        )
        yield f"  {printable(each.program):<{width}}  {line}{by.get(each.form, '')}{factors}"


def status_of(
    workflows: "Sequence[workflow_pb2.Workflow]",
    resources: "Sequence[Supply]",
    plan: "plan_pb2.Plan",
) -> dict[str, Any]:
    """Returns how a broker is, as `StatusOutput` has it."""
    from grms.daemon.messages import enum_word, of_message  # noqa: PLC0415  # see the module's docstring

    states = Counter(map(enum_word, workflows))
    return {
        "now_s": plan.now_s,
        "workflows": dict(sorted(states.items())),
        "resources": len(resources),
        "broken": [each.name for each in resources if each.broken],
        "silent_sites": list(plan.silent_sites),
        "plan": plan.number,
        "adopted_s": plan.adopted_s if plan.number else None,
        **of_message(plan, "fitness", "next_planning_s"),
        "planned": len(plan.placements),
        "unplanned": len(plan.unplanned),
    }


def lines(found: Mapping[str, Any]) -> Iterator[str]:
    """Yields how a broker is in lines for the terminal."""
    from broker.gantt.wording import count_of, fitness  # noqa: PLC0415  # see the module's docstring

    states = (f"{number} {state}" for state, number in found["workflows"].items())
    yield f"workflows  {', '.join(states) or 'none'}"
    broken = f", broken: {', '.join(found['broken'])}" if found["broken"] else ""
    yield f"resources  {found['resources'] or 'none'}{broken}"
    if found["silent_sites"]:
        yield f"sites      no answer from {', '.join(found['silent_sites'])}"
    if not found["plan"]:
        yield "plan       none yet"
        return
    age = found["now_s"] - found["adopted_s"]
    worth = "" if found["fitness"] is None else f", fitness {fitness(found['fitness'])}"
    yield (
        f"plan       {found['plan']}, {age:.0f} s old: {count_of(found['planned'], 'task')} placed, "
        f"{found['unplanned']} without a place{worth}"
    )
    if found["next_planning_s"] is not None:
        yield f"planning   begins anew in {found['next_planning_s'] - found['now_s']:.0f} s"
