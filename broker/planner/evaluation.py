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

from broker.model.plan import COST_TOLERANCE, TIME_TOLERANCE
from broker.planner._builder import Workspace
from broker.planner._evaluation import CompiledGoals
from broker.planner.arrays import Prices, timed_choice
from broker.planner.compilation import Compilation
from broker.planner.goals import CRITERIA, Goals

Float = npt.NDArray[np.float64]

ALLOWED_MAX = 1e300
"""Seconds or money beyond this count as no limit, which keeps the sum over all workflows finite."""

LOST_MOST = 10.0
"""A limit that must be missed by more than this multiple of what was allowed weighs no more."""


@dataclass(frozen=True)
class Worth:
    """What a plan is worth.

    Attributes:
        fitness: from 0 to 100,000, never quite 0; less than 0 where tasks have no place: minus
            their number, and a fraction more for what the rest is worth.
        raw: the weighted sum, before penalties.
        criteria: by name, 1 for the best conceivable, 0 for the worst accepted.
        moved: tasks that leave the resources of the old plan without need; 0 if the goals ask for
            no stability.
        late: workflows that miss their due date.
        over_budget: workflows that cost more than their budget.
        tardiness: seconds late, of all workflows together.
        excess: cost over budget, of all workflows together.
        makespan: seconds from now to the end of the last task.
        utilization: share of all resources' units in use until then.
        mean_completion: seconds from a workflow's earliest start to its end, averaged.
        mean_delay: seconds from the workflow's earliest start to the start of a task that others
            wait for, averaged.
    """

    fitness: float
    raw: float
    criteria: dict[str, float]
    unplanned: int
    moved: int
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
        time_min: by workflow, the earliest possible completion; seconds.
        time_max: by workflow, the completion from which on it is worth nothing.
        cost_min, cost_max: likewise.
        delay, makespan: least and most; seconds.
        earliest_end: by workflow, the earliest completion given calendars and fixed tasks; infinite
            if it cannot complete. No earlier due date can be kept.
        least_spent: by workflow, the least cost at the lowest prices of the week. No lower budget can
            be kept.
    """

    time_min: Float
    time_max: Float
    cost_min: Float
    cost_max: Float
    delay: tuple[float, float]
    makespan: tuple[float, float]
    earliest_end: Float
    least_spent: Float


def lower_bounds(compilation: Compilation) -> Bounds:
    """Returns lower bounds, with the workflows' own limits as upper bounds.

    Upper bounds without limits are minus infinity; `widened` raises them.
    """
    compiled = compilation.compiled
    workflows = compilation.problem.workflows
    duration, cost, spent = _least_of_tasks(compilation)
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
    least_makespan = max(last - compilation.problem.now, float(duration.sum()) / capacity)
    earliest_end = time_min.copy()
    least_spent = compiled.column("fixed_cost").copy()
    np.add.at(least_spent, row, spent)
    if len(duration):
        alone = Workspace(compiled, max(4 * least_makespan, 1e-6)).earliest_ends()
        np.maximum.at(earliest_end, row, alone)
    return Bounds(
        time_min=time_min,
        time_max=np.array([_finite(workflow.due_date) for workflow in workflows]),
        cost_min=cost_min,
        cost_max=np.array([_finite(workflow.budget) for workflow in workflows]),
        delay=(float(delays.mean()) if len(delays) else 0.0, -math.inf),
        makespan=(least_makespan, -math.inf),
        earliest_end=earliest_end,
        least_spent=least_spent,
    )


def _finite(limit: float) -> float:
    return limit if limit < math.inf else -math.inf


def _least_of_tasks(compilation: Compilation) -> tuple[Float, Float, Float]:
    # By task the shortest duration, the lowest cost (nothing where prices vary), and the lowest
    # cost at the lowest prices of the week.
    problem = compilation.problem
    prices = Prices(problem)
    each_known: dict[int, tuple[float, float, float]] = {}
    known: dict[int, tuple[float, float, float]] = {}
    duration, cost, spent = [], [], []
    varies = any(resource.price_rules for resource in problem.resources)
    for _, task in compilation.tasks:
        if task.timed:
            timed = [timed_choice(problem, task, each) for each in task.alternatives]
            duration.append(min(each.seconds or 0.0 for each in timed))
            cost.append(0.0 if varies else min(map(prices.of_work, timed)))
            spent.append(min(map(prices.lowest_of_work if varies else prices.of_work, timed)))
            continue
        mine = task.alternatives  # which many tasks share, or at least what is in it
        if id(mine) not in known:
            found = []
            for each in mine:
                if id(each) not in each_known:
                    price = 0.0 if varies else prices.of_work(each)
                    least = prices.lowest_of_work(each) if varies else price
                    each_known[id(each)] = problem.resource[each.primary].performance, price, least
                found.append(each_known[id(each)])
            known[id(mine)] = (
                max(speed for speed, _, _ in found),
                min(price for _, price, _ in found),
                min(least for _, _, least in found),
            )
        fastest, lowest, least = known[id(mine)]
        duration.append(task.work / fastest)
        cost.append(task.work * lowest)
        spent.append(task.work * least)
    return np.array(duration), np.array(cost), np.array(spent)


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
    """Returns the bounds with upper bounds raised to what `schedules` yield.

    The schedules are as `CompiledGoals.worth` returns them.
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
        earliest_end=bounds.earliest_end,
        least_spent=bounds.least_spent,
    )


@dataclass(frozen=True)
class JudgedLimits:
    """Due dates or budgets by workflow, as plans are judged against them.

    Attributes:
        kept: those that some plan can keep; infinite for the others.
        allowed: what users allow, or the least that is needed if that is more; 1 without limit.
        lost: whether there is a limit that no plan can keep.
        scale: what the sum of all misses is relative to.
    """

    kept: Float
    allowed: Float
    lost: npt.NDArray[np.bool_]
    scale: float


def due_dates(compilation: Compilation, bounds: Bounds) -> JudgedLimits:
    """Returns the due dates; the time allowed is that from a workflow's submission."""
    due = compilation.compiled.column("due_date")
    begin = compilation.compiled.column("earliest_start")
    said = np.array([workflow.earliest_start for workflow in compilation.problem.workflows])
    # Without an earliest start the workflow counts as submitted now.
    submitted = np.where(np.isfinite(said), said, begin)
    lost = due < bounds.earliest_end - TIME_TOLERANCE
    allowed = np.maximum(due - submitted, bounds.time_min - begin)
    return _limits(due, lost, allowed)


def budgets(compilation: Compilation, bounds: Bounds) -> JudgedLimits:
    """Returns the budgets."""
    budget = compilation.compiled.column("budget")
    lost = budget * (1 + COST_TOLERANCE) < bounds.least_spent * (1 - COST_TOLERANCE)
    return _limits(budget, lost, np.maximum(budget, bounds.least_spent))


def _limits(limit: Float, lost: npt.NDArray[np.bool_], allowed: Float) -> JudgedLimits:
    limited = np.isfinite(limit)
    scale = math.fsum(np.minimum(allowed[limited], ALLOWED_MAX))
    return JudgedLimits(
        np.where(lost, math.inf, limit),
        np.where(limited, np.maximum(allowed, 1e-9), 1.0),
        lost,
        # If users allow no money at all, any is too much.
        max(scale, 1e-9),
    )


def _lost_weights(limits: JudgedLimits, bound: Float, limit: Float, goals: Goals) -> Float:
    # The weight of missing what is impossible: less in all than one more late workflow. The longest
    # wait beyond the limit, as a share of what was allowed, weighs most.
    beyond = np.where(limits.lost, bound, 0.0) - np.where(limits.lost, limit, 0.0)
    weight = np.where(limits.lost, np.minimum(beyond / limits.allowed, LOST_MOST) + 1.0, 0.0)
    total = float(weight.sum())
    return weight * (goals.lost_limits / (len(weight) + 1) / total) if total > 0 else weight


def compile_goals(compilation: Compilation, goals: Goals, bounds: Bounds) -> CompiledGoals:
    """Returns goals and bounds as kernels read them."""
    problem = compilation.problem
    dates, money = due_dates(compilation, bounds), budgets(compilation, bounds)
    numbers = {
        "first_offender": goals.first_offender,
        "offenders_third": goals.offenders_third,
        "tardiness_third": goals.tardiness_third,
        "over_budget_third": goals.over_budget_third,
        "delay_min": bounds.delay[0],
        "delay_max": bounds.delay[1],
        "makespan_min": bounds.makespan[0],
        "makespan_max": bounds.makespan[1],
        "stability": goals.stability,
        "time_scale": dates.scale,
        "cost_scale": money.scale,
        "capacity": sum(resource.capacity for resource in problem.resources),
    }
    by_workflow = {
        name: np.ascontiguousarray(getattr(bounds, name))
        for name in ("time_min", "time_max", "cost_min", "cost_max", "least_spent")
    }
    column = compilation.compiled.column
    # A workflow that cannot complete is equally late in every plan.
    ends = np.where(np.isfinite(bounds.earliest_end), bounds.earliest_end, bounds.time_min)
    by_workflow |= {
        "earliest_end": ends,
        "due": dates.kept,
        "budget": money.kept,
        "allowed_time": dates.allowed,
        "allowed_money": money.allowed,
        "lost_time": _lost_weights(dates, ends, column("due_date"), goals),
        "lost_money": _lost_weights(money, bounds.least_spent, column("budget"), goals),
    }
    by_criterion = [(each.weight, each.priority, each.threshold) for each in goals.by_criterion()]
    return CompiledGoals(numbers, by_criterion, by_workflow)


def judge(goals: CompiledGoals, workspace: Workspace) -> Worth:
    """Returns what the schedule in a workspace is worth."""
    found = goals.worth(workspace)
    criteria = dict(zip(CRITERIA, found.pop("criteria"), strict=True))
    del found["completion"], found["workflow_cost"]
    return Worth(criteria=criteria, **found)
