"""A planner that is only right: each task after what it waits for, on a resource that is free."""

import math

from broker.model.plan import Placement, Plan
from broker.model.problem import Problem
from broker.model.workflow import Task
from broker.scheduler.events import PlanFound
from broker.scheduler.planning_input import PlanningInput, pose


def plan_plainly(number: int, planning_input: PlanningInput) -> PlanFound:
    """Returns what a search would have ended with."""
    posed = pose(planning_input)
    if posed.problem is None:
        return PlanFound(0, number, Plan(()), None, posed.unplanned)
    return PlanFound(0, number, plain_plan(posed.problem), 1.0, posed.unplanned)


def plain_plan(problem: Problem) -> Plan:
    """Returns a plan in which a resource does one thing after another; no calendar is looked at.

    Closures count as a whole: nothing starts before they have ended.
    """
    free = {each.name: problem.now for each in problem.resources}
    for resource in problem.resources:
        for _, end in resource.closure_spans():
            free[resource.name] = max(free[resource.name], end)
    placed = {placement.key: placement for placement in problem.fixed}
    for placement in problem.fixed:
        for name in placement.resources:
            free[name] = max(free.get(name, problem.now), placement.end)
    for workflow in problem.workflows:
        left = [task for task in workflow.tasks if (workflow.name, task.name) not in placed]
        while left:
            ready = next(
                task
                for task in left
                if all((workflow.name, name) in placed for name in task.predecessors)
            )
            left.remove(ready)
            ends = [placed[workflow.name, name].end for name in ready.predecessors]
            begin = max([problem.now, workflow.earliest_start, *ends])
            placement = _place(problem, workflow.name, ready, begin, free)
            placed[placement.key] = placement
            for name in placement.resources:
                free[name] = placement.end
    return Plan(tuple(placed.values()))


def _place(
    problem: Problem, workflow: str, task: Task, begin: float, free: dict[str, float]
) -> Placement:
    best: Placement | None = None
    for alternative in task.alternatives:
        if not problem.is_possible(task, alternative):
            continue
        start = max([begin, *(free[name] for name in alternative.resources)])
        end = start + problem.resource[alternative.primary].duration(task.work)
        if end < (math.inf if best is None else best.end):
            best = Placement(workflow, task.name, alternative.demands, start, end, 1.0)
    assert best is not None
    return best
