"""What the page of a broker is told, as a document of JSON. It is pure."""

import math
from typing import Any, Final

from broker.gantt.wording import size
from broker.scheduler.lifecycle import TaskState
from broker.scheduler.state import BrokerState
from broker.scheduler.state_tables import LiveTask, LiveWorkflow, StateTables

BARS_MAX: Final = 2000
"""Most bars of the chart: the first in time."""

WORKFLOWS_MAX: Final = 200
"""Most workflows listed: those that have not ended, then the youngest."""

REASON_LENGTH: Final = 200
Document = dict[str, Any]


def plan_document(state: BrokerState, now: float) -> Document:
    """Returns the next planning, and what is planned, booked and running; `now` is in seconds."""
    memory, cycle = state.memory, state.cycle
    due = cycle.next_time
    bars = _bars(memory)
    return {
        "now_s": now,
        "next_plan_s": due if math.isfinite(due) else None,
        "searching": cycle.running,
        "reason": cycle.reason if cycle.running else "",
        "plan": _plan(memory),
        "sites_down": sorted(state.sites_down),
        "tasks_open": memory.tasks_open,
        "bars": bars[:BARS_MAX],
        "bars_all": len(bars),
        "transfers": _transfers(state, now)[:BARS_MAX],
        "workflows": [_workflow(each) for each in _listed(memory)],
    }


def _plan(memory: StateTables) -> Document | None:
    plan = memory.plan
    if plan is None:
        return None
    return {
        "number": plan.number,
        "time_s": plan.time,
        "fitness": plan.fitness,
        "placed": len(plan.placements),
        "unplanned": [
            {"workflow": workflow, "task": task, "reason": reason[:REASON_LENGTH]}
            for workflow, task, reason in plan.unplanned[:WORKFLOWS_MAX]
        ],
    }


def _bars(memory: StateTables) -> list[Document]:
    found = [
        {
            "resource": demand.resource,
            "workflow": placement.workflow,
            "task": placement.task,
            "state": _state(task),
            "reason": "" if task.state is TaskState.WAITING else task.reason[:REASON_LENGTH],
            "begin_s": placement.start if task.start_time is None else task.start_time,
            "end_s": placement.end if task.end_time is None else task.end_time,
        }
        for task in memory.tasks()
        if (placement := task.placement) is not None and task.state not in _NOWHERE
        for demand in placement.demands
    ]
    return sorted(found, key=lambda bar: (bar["begin_s"], bar["resource"], bar["task"]))


def _transfers(state: BrokerState, now: float) -> list[Document]:
    found = [
        {
            "link": f"{each.source} → {each.target}",
            "workflow": each.workflow,
            "task": each.task,
            "state": "planned" if not begun else "running" if each.end > now else "completed",
            "size": size(each.size),
            "begin_s": each.begin,
            "end_s": each.end,
        }
        for each, begun in state.cycle.files.transfers(now)
    ]
    return sorted(found, key=lambda bar: (bar["begin_s"], bar["link"], bar["task"]))


_NOWHERE: Final = frozenset({TaskState.CANCELLED, TaskState.FAILED})


def _state(task: LiveTask) -> str:
    return "planned" if task.state is TaskState.WAITING else task.state.value


def _listed(memory: StateTables) -> list[LiveWorkflow]:
    ended = [each for each in memory.workflows.values() if each.has_ended]
    room = max(0, WORKFLOWS_MAX - len(memory.live))
    return [*list(memory.live.values())[:WORKFLOWS_MAX], *ended[::-1][:room]]


def _workflow(live: LiveWorkflow) -> Document:
    workflow = live.workflow
    ends = [task.placement.end for task in live.tasks.values() if task.placement is not None]
    due = workflow.due_date
    return {
        "workflow_id": live.workflow_id,
        "name": workflow.name,
        "state": live.state.value,
        "open": live.is_open,
        "tasks": len(live.tasks),
        "tasks_ended": sum(task.has_ended for task in live.tasks.values()),
        "submit_time_s": live.submit_time,
        "due_date_s": due if math.isfinite(due) else None,
        "end_time_s": max(ends, default=None) if live.end_time is None else live.end_time,
    }
