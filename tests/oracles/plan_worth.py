"""What a plan is worth, computed anew from its placements with plain sums (paper 004, section 2)."""

import math

from broker.model.heft import in_order
from broker.model.plan import Plan
from broker.model.problem import Problem
from broker.planner.evaluation import Bounds
from broker.planner.goals import CRITERIA, Goals
from tests.oracles.plan_builder import Sent, Taken, hold, plain_end, predecessors_placed


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
    fitness = bent(raw, *plain_penalty(problem, plan, goals, bounds))
    if plan.unplanned:
        return fitness / 200_000 - len(plan.unplanned), raw
    return fitness, raw


def bent(raw: float, factor: float, thirds: float) -> float:
    """Returns raw fitness times factor over 3^thirds, and below 100 its logarithm, bent to fit."""
    found = raw * factor * 3**-thirds if thirds < 600 else 0.0
    if found >= 100:
        return found
    logarithm = math.log(max(raw, 1e-3)) + math.log(factor) - thirds * math.log(3)
    return 100 / (1 + max(0.0, math.log(100) - logarithm))


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


def plain_earliest_ends(problem: Problem) -> dict[str, float]:
    """Returns by workflow when it could end if nothing else were planned; infinity: never."""
    taken: Taken = {resource.name: [] for resource in problem.resources}
    for placement in problem.fixed:
        if placement.end > problem.now:
            hold(taken, placement)
    found = {}
    for workflow in problem.workflows:
        placed = {each.key: each for each in problem.fixed if each.workflow == workflow.name}
        for task in in_order(workflow):
            going = (workflow, task)
            if (workflow.name, task.name) not in placed and predecessors_placed(placed, *going):
                place = plain_end(problem, going, placed, taken, math.inf, sent=Sent({}, {}))
                if place is not None:
                    placed[place.key] = place
        whole = len(placed) == len(workflow.tasks)
        found[workflow.name] = max(e.end for e in placed.values()) if whole else math.inf
    return found


def plain_least_costs(problem: Problem) -> dict[str, float]:
    """Returns by workflow what it costs at least, at the lowest prices of the week."""
    fixed = {p.key: p.cost for p in problem.fixed}
    return {
        w.name: sum(
            fixed[w.name, t.name]
            if (w.name, t.name) in fixed
            else min(
                sum(
                    d.units * min(price for _, price in problem.resource[d.resource].price_steps())
                    for d in a.demands
                )
                * t.work
                / problem.resource[a.primary].performance
                for a in t.alternatives
            )
            for t in w.tasks
        )
        for w in problem.workflows
    }


def plain_penalty(
    problem: Problem, plan: Plan, goals: Goals, bounds: Bounds
) -> tuple[float, float]:
    """Returns the factors that are never near 0, and how often the fitness is divided by three.

    Only limits that can be kept are penalized; the others weigh together less than one of them.
    """
    outcomes = plan.outcomes(problem.workflows)
    count = len(outcomes)
    ends, costs = plain_earliest_ends(problem), plain_least_costs(problem)
    dates, budgets = [], []
    for workflow, each, shortest in zip(problem.workflows, outcomes, bounds.time_min, strict=True):
        end = max((p.end for p in plan if p.workflow == workflow.name), default=-math.inf)
        begin = begin_of(problem, workflow.name)
        submitted = workflow.earliest_start if workflow.earliest_start > -math.inf else begin
        allowed = max(workflow.due_date - submitted, float(shortest) - begin)
        dates.append((end, workflow.due_date, ends[workflow.name], allowed, 1e-6))
        spent = max(workflow.budget, costs[workflow.name])
        slack = workflow.budget * 1e-9
        budgets.append((each.cost, workflow.budget, costs[workflow.name], spent, slack))
    factor, thirds = 1.0, 0.0
    for limits, third in ((dates, goals.tardiness_third), (budgets, goals.over_budget_third)):
        kept = [each for each in limits if each[1] >= each[2] - each[4]]
        missed = [found - limit for found, limit, _, _, slack in kept if found > limit + slack]
        scale = sum(allowed for _, limit, _, allowed, _ in limits if limit < math.inf)
        if missed:
            wide = max(goals.offenders_third, 2 / count) - 1 / count
            factor *= goals.first_offender
            thirds += (len(missed) - 1) / count / wide + sum(missed) / max(scale, 1e-9) / third
        # Nothing may be allowed: a due date at the submission, or a budget of nothing.
        lost = [
            (found, limit, least, max(allowed, 1e-9))
            for found, limit, least, allowed, slack in limits
            if limit < least - slack
        ]
        weights = [min((least - limit) / allowed, 10) + 1 for _, limit, least, allowed in lost]
        excess = [max(0.0, found - least) / allowed for found, _, least, allowed in lost]
        share = sum(w * x / (1 + x) for w, x in zip(weights, excess, strict=True))
        if lost:
            factor *= 1 - goals.lost_limits / (count + 1) * share / sum(weights)
    return factor, thirds
