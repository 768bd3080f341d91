"""What a plan is worth, computed anew from its placements with plain sums (paper 004, section 2)."""

import math

from broker.plan import Plan
from broker.planner.evaluation import Bounds
from broker.planner.goals import CRITERIA, Goals
from broker.problem import Problem


def plain_fitness(
    problem: Problem, plan: Plan, goals: Goals, bounds: Bounds
) -> tuple[float, float]:
    """Returns fitness and raw fitness of a plan."""
    found = plain_criteria(problem, plan, bounds)
    raw = 0.0
    by_name = dict(zip(CRITERIA, goals.by_criterion(), strict=True))
    for level in range(len(CRITERIA)):
        members = {name: goal for name, goal in by_name.items() if goal.priority == level}
        raw += sum(100_000 * goal.weight * found[name] for name, goal in members.items())
        if any(found[name] < goal.threshold for name, goal in members.items()):
            break
    if plan.unplanned:
        return 0.0, raw
    return raw * plain_penalty(problem, plan, goals), raw


def plain_criteria(problem: Problem, plan: Plan, bounds: Bounds) -> dict[str, float]:
    """Returns each criterion, 1 for the best."""
    outcomes = plan.outcomes(problem.workflows)
    fixed = {placement.key for placement in problem.fixed}
    planned = [placement for placement in plan if placement.key not in fixed]
    begins = {w.name: begin_of(problem, w.name) for w in problem.workflows}
    waited_for = {
        (w.name, name)
        for w in problem.workflows
        for task in w.tasks
        for name in task.predecessors
        if (w.name, task.name) not in fixed
    }
    delays = [each.start - begins[each.workflow] for each in planned if each.key in waited_for]
    delay = sum(delays) / len(delays) if delays else 0.0
    makespan = max([problem.now, *(each.end for each in planned)]) - problem.now
    capacity = sum(resource.capacity for resource in problem.resources)
    busy = sum((p.end - p.start) * demand.units for p in planned for demand in p.demands)
    count = len(outcomes)
    completions = [
        max((p.end for p in plan if p.workflow == o.workflow), default=-math.inf) for o in outcomes
    ]
    return {
        "time": sum(
            share(completion, bounds.time_min[i], bounds.time_max[i])
            for i, completion in enumerate(completions)
        )
        / count,
        "cost": sum(
            share(each.cost, bounds.cost_min[i], bounds.cost_max[i])
            for i, each in enumerate(outcomes)
        )
        / count,
        "delay": share(delay, *bounds.delay),
        "makespan": share(makespan, *bounds.makespan),
        "utilization": busy / (capacity * makespan) if makespan else 0.0,
    }


def begin_of(problem: Problem, name: str) -> float:
    """Returns when a workflow could begin, or has begun."""
    workflow = next(each for each in problem.workflows if each.name == name)
    fixed = [each.start for each in problem.fixed if each.workflow == name]
    return max(workflow.earliest_start, min(fixed) if fixed else problem.now)


def share(value: float, least: float, most: float) -> float:
    """Returns 1 − equation 2.5 within 0 and 1."""
    if value <= least:
        return 1.0
    return 0.0 if value >= most else 1 - (value - least) / (most - least)


def plain_penalty(problem: Problem, plan: Plan, goals: Goals) -> float:
    """Returns the product of the four penalty factors."""
    outcomes = plan.outcomes(problem.workflows)
    count = len(outcomes)
    allowed = sum(
        max(0.0, w.due_date - begin_of(problem, w.name))
        for w in problem.workflows
        if w.due_date < math.inf
    )
    budgets = sum(w.budget for w in problem.workflows if w.budget < math.inf)
    factor = 1.0
    for beyond, scale, third in (
        ([o.tardiness for o in outcomes], allowed, goals.tardiness_third),
        ([o.over_budget for o in outcomes], budgets, goals.over_budget_third),
    ):
        offenders = sum(each > 0 for each in beyond)
        if offenders:
            wide = max(goals.offenders_third, 2 / count) - 1 / count
            factor *= goals.first_offender * 3 ** (-(offenders - 1) / count / wide)
            factor *= 3 ** (-sum(beyond) / max(scale, 1e-9) / third)
    return factor
