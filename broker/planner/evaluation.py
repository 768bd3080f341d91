"""Bounds of the objectives, and plans judged between them.

Lower bounds are what no plan can beat: the critical path on the fastest resources, every task on the
cheapest one. Upper bounds are the worst that the heuristics of the first planning stage yield, or
the workflow's own limit where that is higher.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from broker.planner._builder import Workspace
from broker.planner._evaluation import CompiledGoals
from broker.planner.compilation import Compilation, price_of_work
from broker.planner.goals import CRITERIA, Goals

Float = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Worth:
    """What a plan is worth.

    Attributes:
        fitness: from 0 to 100,000; 0 where a task has no place.
        raw: the weighted sum, before penalties.
        criteria: by name, 1 for the best that is thinkable, 0 for the worst that is accepted.
        unplanned: tasks without a place.
        late: workflows that miss their due date.
        over_budget: workflows that cost more than their budget.
        tardiness: seconds late, of all workflows together.
        excess: cost over budget, of all workflows together.
        makespan: seconds from now to the end of the last task.
        utilization: share of all resources' units in use until then.
        cost: of all workflows.
        mean_completion: seconds from a workflow's earliest start to its end, averaged.
        mean_delay: seconds from the workflow's earliest start to the start of a task that others
            wait for, averaged.
    """

    fitness: float
    raw: float
    criteria: dict[str, float]
    unplanned: int
    late: int
    over_budget: int
    tardiness: float
    excess: float
    makespan: float
    utilization: float
    cost: float
    mean_completion: float
    mean_delay: float

    @property
    def keeps_all_limits(self) -> bool:
        """Whether every task has a place and no workflow is late or too dear."""
        return self.unplanned == self.late == self.over_budget == 0


@dataclass(frozen=True)
class Bounds:
    """Between which values the objectives are judged (equation 2.5).

    Attributes:
        time_min: by workflow, no earlier completion is possible; seconds.
        time_max: by workflow, completions from here on are worth nothing.
        cost_min: by workflow, no lower cost is possible.
        cost_max: by workflow, costs from here on are worth nothing.
        delay: least and most of the mean delay; seconds.
        makespan: least and most; seconds.
    """

    time_min: Float
    time_max: Float
    cost_min: Float
    cost_max: Float
    delay: tuple[float, float]
    makespan: tuple[float, float]


def lower_bounds(compilation: Compilation) -> Bounds:
    """Returns bounds of which the upper ones are only the workflows' own limits.

    Upper bounds without limits are minus infinity, to be raised by `widened`.
    """
    compiled = compilation.compiled
    workflows = compilation.problem.workflows
    duration, cost = _least_of_tasks(compilation)
    start = _earliest_starts(compilation, duration)
    row = compiled.column("workflow")[: len(duration)]
    begin = compiled.column("earliest_start")
    time_min = np.maximum(compiled.column("fixed_completion"), -math.inf)
    np.maximum.at(time_min, row, start + duration)
    cost_min = compiled.column("fixed_cost").copy()
    np.add.at(cost_min, row, cost)
    waited_for = np.diff(compiled.column("successor_begin"))[: len(duration)] > 0
    delays = (start - begin[row])[waited_for]
    capacity = sum(resource.capacity for resource in compilation.problem.resources)
    last = max(float((start + duration).max(initial=-math.inf)), compilation.problem.now)
    return Bounds(
        time_min=time_min,
        time_max=np.array([_finite(workflow.due_date) for workflow in workflows]),
        cost_min=cost_min,
        cost_max=np.array([_finite(workflow.budget) for workflow in workflows]),
        delay=(float(delays.mean()) if len(delays) else 0.0, -math.inf),
        makespan=(
            max(last - compilation.problem.now, float(duration.sum()) / capacity),
            -math.inf,
        ),
    )


def _finite(limit: float) -> float:
    return limit if limit < math.inf else -math.inf


def _least_of_tasks(compilation: Compilation) -> tuple[Float, Float]:
    # By task the shortest duration and the lowest cost at mean prices.
    problem = compilation.problem
    known: dict[int, tuple[float, float]] = {}
    duration, cost = [], []
    lowest = math.inf
    varies = any(resource.price_rules for resource in problem.resources)
    for _, task in compilation.tasks:
        pairs = []
        for each in task.alternatives:
            if id(each) not in known:
                price = 0.0 if varies else price_of_work(problem, each)
                known[id(each)] = (problem.resource[each.primary].performance, price)
            pairs.append(known[id(each)])
        duration.append(task.work / max(speed for speed, _ in pairs))
        lowest = min(price for _, price in pairs)
        cost.append(task.work * lowest)
    return np.array(duration), np.array(cost)


def _earliest_starts(compilation: Compilation, duration: Float) -> Float:
    # By task, with every resource free for it.
    compiled = compilation.compiled
    count = len(duration)
    start = compiled.column("release")[:count].copy()
    missing = compiled.column("predecessors")[:count].copy()
    begin, successor = compiled.column("successor_begin"), compiled.column("successor")
    going = [task for task in range(count) if missing[task] == 0]
    while going:
        task = going.pop()
        for other in successor[begin[task] : begin[task + 1]]:
            start[other] = max(start[other], start[task] + duration[task])
            missing[other] -= 1
            if missing[other] == 0:
                going.append(int(other))
    return start


def widened(bounds: Bounds, schedules: Sequence[dict[str, object]]) -> Bounds:
    """Returns the bounds with upper ones that are at least what some schedules yield.

    Args:
        bounds: their lower bounds stay.
        schedules: as `CompiledGoals.worth` returns them.
    """
    time_max, cost_max = bounds.time_max.copy(), bounds.cost_max.copy()
    delay_max, makespan_max = bounds.delay[1], bounds.makespan[1]
    for each in schedules:
        np.maximum(time_max, np.asarray(each["completion"]), out=time_max)
        np.maximum(cost_max, np.asarray(each["workflow_cost"]), out=cost_max)
        delay_max = max(delay_max, float(str(each["mean_delay"])))
        makespan_max = max(makespan_max, float(str(each["makespan"])))
    return Bounds(
        time_min=bounds.time_min,
        time_max=np.maximum(time_max, bounds.time_min),
        cost_min=bounds.cost_min,
        cost_max=np.maximum(cost_max, bounds.cost_min),
        delay=(bounds.delay[0], max(delay_max, bounds.delay[0])),
        makespan=(bounds.makespan[0], max(makespan_max, bounds.makespan[0])),
    )


def compile_goals(compilation: Compilation, goals: Goals, bounds: Bounds) -> CompiledGoals:
    """Returns goals and bounds as kernels read them."""
    problem = compilation.problem
    begin = compilation.compiled.column("earliest_start")
    allowed = [
        workflow.due_date - start
        for workflow, start in zip(problem.workflows, begin, strict=True)
        if workflow.due_date < math.inf
    ]
    budgets = [workflow.budget for workflow in problem.workflows if workflow.budget < math.inf]
    numbers = {
        "first_offender": goals.first_offender,
        "offenders_third": goals.offenders_third,
        "tardiness_third": goals.tardiness_third,
        "over_budget_third": goals.over_budget_third,
        "delay_min": bounds.delay[0],
        "delay_max": bounds.delay[1],
        "makespan_min": bounds.makespan[0],
        "makespan_max": bounds.makespan[1],
        # Where users allow no time or money at all, any is too much.
        "time_scale": max(math.fsum(max(0.0, each) for each in allowed), 1e-9),
        "cost_scale": max(math.fsum(budgets), 1e-9),
        "capacity": sum(resource.capacity for resource in problem.resources),
    }
    by_workflow = {
        name: np.ascontiguousarray(getattr(bounds, name))
        for name in ("time_min", "time_max", "cost_min", "cost_max")
    }
    by_criterion = [(each.weight, each.priority, each.threshold) for each in goals.by_criterion()]
    return CompiledGoals(numbers, by_criterion, by_workflow)


def judge(goals: CompiledGoals, workspace: Workspace) -> Worth:
    """Returns what the schedule in a workspace is worth."""
    found = goals.worth(workspace)
    criteria = dict(zip(CRITERIA, found.pop("criteria"), strict=True))
    del found["completion"], found["workflow_cost"]
    return Worth(criteria=criteria, **found)
