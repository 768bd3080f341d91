"""Figures by which people compare plans."""

import math
from dataclasses import dataclass

from broker.model.plan import Plan
from broker.model.problem import Problem


@dataclass(frozen=True, slots=True)
class Measures:
    """Figures of a plan.

    Attributes:
        makespan: seconds from now to the end of the last task.
        completion: seconds from each workflow's possible start to its end, averaged.
        late: workflows that miss their due dates.
        tardiness: seconds late, summed.
        over_budget: workflows that exceed their budgets.
        overspent: sum of the excess.
        keeping: workflows that keep both limits.
        utilization: share of all capacity in use from now to the end.
        unplanned: tasks without a place.
    """

    makespan: float
    cost: float
    completion: float
    late: int
    tardiness: float
    over_budget: int
    overspent: float
    keeping: int
    utilization: float
    unplanned: int


def measure(problem: Problem, plan: Plan) -> Measures:
    """Returns the figures of a plan.

    If the plan leaves tasks out, makespan and mean completion are infinite.
    """
    outcomes = plan.outcomes(problem.workflows)
    begins = [max(problem.now, workflow.earliest_start) for workflow in problem.workflows]
    return Measures(
        makespan=math.inf if plan.unplanned else max(0.0, plan.makespan_end - problem.now),
        cost=math.fsum(each.cost for each in outcomes),
        completion=math.fsum(
            max(0.0, each.completion - begin) for each, begin in zip(outcomes, begins, strict=True)
        )
        / len(outcomes),
        late=sum(each.tardiness > 0 for each in outcomes),
        tardiness=math.fsum(each.tardiness for each in outcomes),
        over_budget=sum(each.over_budget > 0 for each in outcomes),
        overspent=math.fsum(each.over_budget for each in outcomes),
        keeping=sum(each.keeps_its_limits for each in outcomes),
        utilization=_utilization(problem, plan),
        unplanned=len(plan.unplanned),
    )


def _utilization(problem: Problem, plan: Plan) -> float:
    span = plan.makespan_end - problem.now
    if not span > 0:
        return 0.0
    busy = math.fsum(
        demand.units * max(0.0, placement.end - max(problem.now, placement.start))
        for placement in plan
        for demand in placement.demands
        if demand.resource in problem.resource
    )
    return busy / (span * sum(each.capacity for each in problem.resources))
