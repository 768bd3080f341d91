"""What makes a plan valid, checked anew from the problem and the placements alone.

Slow and plain on purpose: every moment at which something begins or ends is looked at, opening
hours are walked day by day, costs are summed step by step. Nothing of the planner is used.
"""

import math
from collections.abc import Sequence
from itertools import pairwise

from broker.model.plan import Placement, Plan, Transfer
from broker.model.problem import Problem
from broker.model.resources import Resource
from broker.model.workflow import Alternative, Task, Workflow
from tests.oracles.plan_data import data_violations

DAY = 86_400.0
RELATIVE_TOLERANCE = 1e-9


def plan_violations(problem: Problem, plan: Plan, *, complete: bool = True) -> list[str]:
    """Returns what is wrong with a plan, in words; nothing where it is valid.

    Args:
        problem: what was to be planned.
        plan: what came of it.
        complete: whether every task has to have a place.
    """
    placed = {(each.workflow, each.task): each for each in plan.placements}
    found = []
    if len(placed) < len(plan.placements):
        found.append("a task is placed twice")
    known = {(w.name, t.name) for w in problem.workflows for t in w.tasks}
    found += [f"{key}: there is no such task" for key in placed if key not in known]
    fixed = {(each.workflow, each.task): each for each in problem.fixed}
    for workflow in problem.workflows:
        for task in workflow.tasks:
            key = (workflow.name, task.name)
            placement = placed.get(key)
            if placement is None:
                if complete:
                    found.append(f"{key}: is not planned")
            elif key in fixed:
                if placement != fixed[key]:
                    found.append(f"{key}: was fixed and has been changed")
            else:
                found += task_violations(
                    problem, workflow, task, placement, placed, transfers=plan.transfers
                )
    for resource in problem.resources:
        found += resource_violations(problem, resource, plan)
    return found + data_violations(problem, plan)


def task_violations(
    problem: Problem,
    workflow: Workflow,
    task: Task,
    placement: Placement,
    placed: dict[tuple[str, str], Placement],
    *,
    transfers: Sequence[Transfer] = (),
) -> list[str]:
    """Returns what is wrong with one task's placement, other tasks' resources apart."""
    key = (workflow.name, task.name)
    found = []
    if placement.start < problem.now:
        found.append(f"{key}: starts at {placement.start}, before now, {problem.now}")
    if placement.start < workflow.earliest_start:
        found.append(f"{key}: starts before its workflow may, {workflow.earliest_start}")
    if placement.demands not in [each.demands for each in task.alternatives]:
        return [*found, f"{key}: {placement.resources} is none of its alternatives"]
    resources = [
        next(each for each in problem.resources if each.name == demand.resource)
        for demand in placement.demands
    ]
    alternative = next(each for each in task.alternatives if each.demands == placement.demands)
    duration = plain_duration(task, alternative, resources[0])
    if not close(placement.end, placement.start + duration):
        found.append(f"{key}: takes {placement.end - placement.start}, not {duration}")
    for predecessor in task.predecessors:
        before = placed.get((workflow.name, predecessor))
        if before is None:
            found.append(f"{key}: is planned and its predecessor {predecessor} is not")
        elif placement.start < before.end:
            found.append(f"{key}: starts before its predecessor {predecessor} ends")
    found += [
        f"{key}: {resource.name} is closed at some time from {placement.start} to {placement.end}"
        for resource in resources
        if not is_open(resource, placement.start, placement.end)
    ]
    cost = sum(
        demand.units * price_between(resource, placement.start, placement.end)
        for demand, resource in zip(placement.demands, resources, strict=True)
    ) + sum(each.cost for each in transfers if (each.workflow, each.task) == key)
    if not math.isclose(placement.cost, cost, rel_tol=1e-6, abs_tol=1e-6):
        found.append(f"{key}: costs {cost}, not {placement.cost}")
    return found


def plain_duration(task: Task, alternative: Alternative, primary: Resource) -> float:
    """Returns how long a task holds what an alternative names: set-up, and what it takes then."""
    takes = alternative.seconds
    if takes is None:
        takes = task.work / primary.performance
    return takes + alternative.setup if alternative.setup else takes


def resource_violations(problem: Problem, resource: Resource, plan: Plan) -> list[str]:
    """Returns the moments at which more of a resource is in use than there is."""
    holders = [
        (placement, demand.units)
        for placement in plan.placements
        for demand in placement.demands
        if demand.resource == resource.name and placement.end > problem.now
    ]
    fixed = {(each.workflow, each.task) for each in problem.fixed}
    found = []
    for placement, _ in holders:
        # Use grows only where something starts.
        moment = placement.start
        running = [(each, units) for each, units in holders if each.start <= moment < each.end]
        used = sum(units for _, units in running)
        # What was fixed may overbook a resource; the planner must not make that worse.
        all_fixed = all((each.workflow, each.task) in fixed for each, _ in running)
        if used > resource.capacity and not all_fixed:
            found.append(f"{resource.name}: {used} of {resource.capacity} in use at {moment}")
    return found


def local_seconds(resource: Resource, moment: float) -> tuple[int, float]:
    """Returns weekday and second of the day of a moment at a resource."""
    day, second = divmod(moment + resource.utc_offset, DAY)
    return (int(day) + 3) % 7, second


def boundaries(resource: Resource, start: float, end: float) -> list[float]:
    """Returns the moments between start and end at which hours or prices may change, with both."""
    first_day = math.floor((start + resource.utc_offset) / DAY)
    last_day = math.floor((end + resource.utc_offset) / DAY)
    windows = [*resource.calendar.opening, *(rule.window for rule in resource.price_rules)]
    seconds = sorted({0.0, *(w.begin for w in windows), *(w.end for w in windows)})
    moments = [
        day * DAY + second - resource.utc_offset
        for day in range(first_day, last_day + 1)
        for second in seconds
    ]
    return [start, *sorted({moment for moment in moments if start < moment < end}), end]


def is_open(resource: Resource, start: float, end: float) -> bool:
    """Returns whether a resource is open all the time from start to end."""
    if any(begin < end and start < close for begin, close in resource.calendar.closures):
        return False
    if not resource.calendar.opening:
        return True
    edges = boundaries(resource, start, end)
    for a, b in pairwise(edges):
        if b - a < 1e-6:
            continue  # rounding at the border of a window
        weekday, second = local_seconds(resource, (a + b) / 2)
        if not any(
            weekday in window.weekdays and window.begin <= second < window.end
            for window in resource.calendar.opening
        ):
            return False
    return True


def price_between(resource: Resource, start: float, end: float) -> float:
    """Returns what one unit costs from start to end."""
    edges = boundaries(resource, start, end)
    total = 0.0
    for a, b in pairwise(edges):
        weekday, second = local_seconds(resource, (a + b) / 2)
        price = resource.price
        for rule in resource.price_rules:
            window = rule.window
            if weekday in window.weekdays and window.begin <= second < window.end:
                price = rule.price
        total += (b - a) * price
    return total


def close(a: float, b: float) -> bool:
    """Returns whether two moments are the same but for rounding."""
    return math.isclose(a, b, rel_tol=RELATIVE_TOLERANCE, abs_tol=1e-6)
