"""Implementation of `gorba plan show`: requests a broker's plan, selects, prints and writes."""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from broker.cli.plan_command import STANDARD_OUTPUT
from broker.cli.workflow_wording import id_of
from broker.gantt.page import render_page
from broker.gantt.wording import fitness
from broker.io.plans import plan_document
from broker.io.writing import to_json, write_text
from broker.model.plan import Placement, Plan
from broker.model.problem import Problem
from broker.model.resources import Resource
from broker.model.workflow import Alternative, Demand, Task, Workflow
from broker.scheduler.records import Supply
from broker.util.errors import CallError, InputError
from broker.v1 import plan_pb2, workflow_pb2
from broker.wire.convert import read_estimates
from grms.daemon.messages import enum_word
from lrms_sim.util.messages import count, duration

if TYPE_CHECKING:
    from broker.client import BrokerClient

_DONE: Final = (workflow_pb2.TASK_STATE_COMPLETED, workflow_pb2.TASK_STATE_SIMULATED)


@dataclass(frozen=True)
class PlanSelection:
    """A broker's plan, or a part of it, with its workflows by name; `left_out` counts tasks that have ended."""

    message: plan_pb2.Plan
    workflows: Mapping[str, workflow_pb2.Workflow]
    left_out: int


def show(
    broker: "BrokerClient",
    wanted: Sequence[str],
    *,
    everything: bool,
    json: Path | None,
    html: Path | None,
) -> None:
    """Shows the plan of a broker; if files are given, they are written instead of lines.

    `wanted` are ids or names of workflows, none for all; `everything` includes tasks that have ended;
    `STANDARD_OUTPUT` as `json` prints it.

    Raises:
        InputError: there is no such workflow, or nothing for a page.
        OutputError: a file cannot be written.
    """
    plan, workflows = broker.plan(), broker.workflows()
    shown = pick(plan, workflows, wanted, everything=everything)
    if json is None and html is None:
        for line in lines(shown):
            click.echo(line)
        return
    supplies = broker.resources()
    if json is not None:
        text = to_json(document(shown, supplies))
        if json == STANDARD_OUTPUT:
            click.echo(text, nl=False)
        else:
            write_text(json, text)
    if html is not None:
        write_text(html, page(shown, supplies, _estimates(broker)))
    for path in (html, json):
        if path is not None and path != STANDARD_OUTPUT:
            click.echo(f"written to {path}", err=True)


def _estimates(broker: "BrokerClient") -> plan_pb2.EstimatesResponse | None:
    # A broker of an older release has none.
    try:
        return broker.estimates()
    except CallError as error:
        if error.code != "UNIMPLEMENTED":
            raise
        return None


def pick(
    plan: plan_pb2.Plan,
    workflows: Iterable[workflow_pb2.Workflow],
    wanted: Collection[str],
    *,
    everything: bool,
) -> PlanSelection:
    """Returns the part of a plan to show; `wanted` are ids or names, none for all.

    Raises:
        InputError: a wanted workflow is missing or has ended.
    """
    live = {each.name: each for each in workflows if not each.HasField("end_time_s")}
    if wanted and not live:
        raise InputError(f"the plan has no workflow {next(iter(wanted))!r}: none is open")
    names_by_id = {each.workflow_id: name for name, each in live.items()}
    names = {names_by_id[id_of(word, live.values())] for word in wanted}
    chosen = plan_pb2.Plan()
    chosen.CopyFrom(plan)
    del chosen.placements[:], chosen.unplanned[:]
    left_out = 0
    for each in plan.placements:
        if wanted and each.workflow not in names:
            continue
        if each.state in _DONE and not everything:
            left_out += 1
        else:
            chosen.placements.append(each)
    chosen.unplanned.extend(each for each in plan.unplanned if not wanted or each.workflow in names)
    spoken = {each.workflow for each in chosen.placements}
    spoken |= {each.workflow for each in chosen.unplanned}
    return PlanSelection(chosen, {name: live[name] for name in live if name in spoken}, left_out)


def state_of(placement: plan_pb2.Placement) -> str:
    """Returns the state of a task, as a word."""
    return enum_word(placement)


def lines(shown: PlanSelection) -> list[str]:
    """Returns a plan as lines: a headline, what has a place, and what has none."""
    plan = shown.message
    if not plan.number:
        found = ["there is no plan yet"]
    else:
        worth = f", fitness {fitness(plan.fitness)}" if plan.HasField("fitness") else ""
        found = [f"plan {plan.number}, {plan.now_s - plan.adopted_s:.0f} s old{worth}"]
    if plan.silent_sites:
        found.append(f"no answer from {', '.join(plan.silent_sites)}: nothing new begins there")
    for each in plan.placements:
        where = ", ".join(
            demand.resource + (f" x{demand.units}" if demand.units > 1 else "")
            for demand in each.demands
        )
        found.append(
            f"{each.start_time_s - plan.now_s:+10.1f} s {each.end_time_s - plan.now_s:+10.1f} s  "
            f"{state_of(each):<9}  {each.workflow}/{each.task} on {where}"
        )
    for lacking in plan.unplanned:
        because = f": {lacking.reason}" if lacking.reason else ""
        found.append(f"no place: {lacking.workflow}/{lacking.task}{because}")
    if shown.left_out:
        tasks = "1 task that has ended is" if shown.left_out == 1 else (
            f"{count(shown.left_out)} tasks that have ended are"
        )  # fmt: skip
        found.append(f"{tasks} left out; --all shows them")
    return found


def problem_and_plan(shown: PlanSelection, supplies: Iterable[Supply]) -> tuple[Problem, Plan]:
    """Returns a broker's plan as one that can be drawn and written.

    Every task is fixed where it is; tasks without a place are only listed. Missing resources get
    stand-ins.

    Raises:
        InputError: nothing has a place.
    """
    message = shown.message
    if not message.placements:
        raise InputError("there is nothing to draw or to write: no task has a place in the plan")
    pool = {each.name: each.resource for each in supplies}
    placements, tasks = [], dict[str, list[Task]]()
    there = {(each.workflow, each.task) for each in message.placements}
    for each in message.placements:
        demands = tuple(Demand(demand.resource, demand.units) for demand in each.demands)
        for demand in demands:
            if demand.resource not in pool:
                pool[demand.resource] = Resource(demand.resource, capacity=demand.units)
        start, end = each.start_time_s, max(each.start_time_s, each.end_time_s)
        placements.append(Placement(each.workflow, each.task, demands, start, end, each.cost))
        work = max(1e-9, (end - start) * pool[demands[0].resource].performance)
        before = tuple(name for name in each.predecessors if (each.workflow, name) in there)
        tasks.setdefault(each.workflow, []).append(
            Task(each.task, work, (Alternative(demands),), before)
        )
    workflows = []
    for name, members in tasks.items():
        known = shown.workflows.get(name)
        due = known.due_date_s if known and known.HasField("due_date_s") else math.inf
        budget = known.budget if known and known.HasField("budget") else math.inf
        workflows.append(Workflow(name, tuple(members), due_date=due, budget=budget))
    fixed = tuple(placements)
    problem = Problem(tuple(workflows), tuple(pool.values()), message.now_s, fixed)
    lacking = tuple((each.workflow, each.task) for each in message.unplanned)
    return problem, Plan(fixed, lacking)


def _made(shown: PlanSelection) -> dict[str, Any]:
    plan = shown.message
    return {
        "plan": plan.number,
        "adopted": plan.adopted_s,
        **({"fitness": plan.fitness} if plan.HasField("fitness") else {}),
        "ended tasks left out": shown.left_out,
        "tasks simulated, nothing was run": sum(
            each.tasks_simulated for each in shown.workflows.values()
        ),
        "tasks without a place": len(plan.unplanned),
    }


def document(shown: PlanSelection, supplies: Iterable[Supply]) -> dict[str, Any]:
    """Returns a plan as the document of a plan file; `made` has what only a broker knows."""
    problem, plan = problem_and_plan(shown, supplies)
    made = _made(shown) | {
        "workflows": {name: each.workflow_id for name, each in shown.workflows.items()},
        "states": {
            f"{each.workflow}/{each.task}": state_of(each) for each in shown.message.placements
        },
        "reasons": {
            f"{each.workflow}/{each.task}": each.reason for each in shown.message.unplanned
        },
    }
    return plan_document(problem, plan, made=made)


def page(
    shown: PlanSelection,
    supplies: Iterable[Supply],
    estimates: plan_pb2.EstimatesResponse | None = None,
) -> str:
    """Returns a plan as an HTML document with charts, and what is known of run times."""
    problem, plan = problem_and_plan(shown, supplies)
    used = {name for each in plan for name in each.resources}
    kept = tuple(each for each in problem.resources if each.name in used)
    drawn = Problem(problem.workflows, kept, problem.now, problem.fixed)
    names = list(shown.workflows)
    title = names[0] if len(names) == 1 else f"Plan {shown.message.number}"
    message = shown.message
    made = _made(shown) | {"adopted": f"{duration(message.now_s - message.adopted_s)} before"}
    if message.HasField("fitness"):
        made["fitness"] = fitness(message.fitness)
    # The page cannot know why tasks have no place; they are counted at its end.
    known = [] if estimates is None else read_estimates(estimates)
    return render_page(
        drawn,
        Plan(plan.placements),
        title=title,
        made=[(name, str(value)) for name, value in made.items()],
        estimates=known,
        learned=estimates is not None and estimates.used,
    )
