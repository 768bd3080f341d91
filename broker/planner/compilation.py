"""From a validated problem to the kernels' arrays, and from their results to a plan.

Alternatives that are equal become one *choice*, whichever tasks have them. As a task's duration is
its work over the performance of the primary resource, one order of the choices serves all tasks:
RAS-1 goes by performance and RAS-2 by the price of a unit of work, averaged over the week. A task's
alternatives are then a set of bits in such an order.

A task with durations or set-ups of its own has choices of its own: each has its seconds, all included, and
stands in the orders by these and by what they cost, behind the choices that go by work. As no task has
choices of both kinds, either order serves all of them.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from broker.model.plan import Placement, Plan
from broker.model.problem import Problem
from broker.model.reach import Mask
from broker.model.transfers import Staging
from broker.model.workflow import Alternative, Demand, Task
from broker.planner._instance import CompiledProblem
from broker.planner.arrays import (
    Arrays,
    Float,
    Int,
    Numbers,
    Prices,
    Rows,
    bit_sets,
    by_row,
    choice_arrays,
    concatenated,
    floats,
    kept_choices,
    least_costs,
    per_work,
    resource_arrays,
    shortest_durations,
    task_arrays,
    timed_choice,
    workflow_arrays,
)
from broker.planner.staging import staging_arrays

FEW = 4
"""Up to this many alternatives of a task are examined one by one."""


@dataclass(frozen=True)
class Compilation:
    """A problem as arrays, and what their rows stand for.

    Attributes:
        tasks: workflow and task of each row, in the order of the problem, without fixed ones.
        choices: the distinct alternatives, fastest first.
    """

    problem: Problem
    compiled: CompiledProblem
    tasks: Rows
    choices: tuple[Alternative, ...]

    @cached_property
    def staging(self) -> Staging:
        """What files its tasks need, and where they are."""
        return Staging(self.problem)

    @property
    def keeps(self) -> bool:
        """Whether an old plan has a task somewhere that it can be now."""
        return bool((self.compiled.column("kept") >= 0).any())

    def timed_choice_of(self, task: Task, demands: tuple[Demand, ...]) -> int:
        """Returns the choice of a task with durations of its own that has these demands."""
        alternative = next(each for each in task.alternatives if each.demands == demands)
        return self.choices.index(timed_choice(self.problem, task, alternative))

    def choices_of(self, plan: Plan) -> Int:
        """Returns by row the choice that a task of this problem has in a plan; -1 without a place."""
        rows = {each.demands: row for row, each in enumerate(self.choices) if each.seconds is None}
        found = np.full(len(self.tasks), -1, np.int32)
        for row, (workflow, task) in enumerate(self.tasks):
            place = plan.placement(workflow.name, task.name)
            if place is not None:
                found[row] = (
                    self.timed_choice_of(task, place.demands) if task.timed else rows[place.demands]
                )
        return found

    def keep(self, choice: Int) -> None:
        """Has RAS-6 give tasks a choice, by row, whenever they then end; -1 for none. Call before building."""
        self.compiled.column("kept")[: len(self.tasks)] = choice
        self.compiled.column("kept_end")[: len(self.tasks)] = math.inf

    def stay(self, until: Float) -> None:
        """Sets until when (seconds, by task) tasks may end at their old places; call before building."""
        self.compiled.column("kept_end")[: len(self.tasks)] = until

    def plan(
        self,
        choice: Sequence[int] | Int,
        start: Sequence[float] | Float,
        order: Sequence[int] | Int = (),
    ) -> Plan:
        """Returns the plan in which every task runs on a choice from a start in seconds.

        A negative choice leaves the task without a place. `order` has the tasks (rows) in the order in which they
        were planned, by which transfers are placed on links that carry one at a time.
        """
        placements = list(self.problem.fixed)
        unplanned = []
        for (workflow, task), number, begin in zip(
            self.tasks, map(int, choice), map(float, start), strict=True
        ):
            if number < 0:
                unplanned.append((workflow.name, task.name))
                continue
            taken = self.choices[number]
            demands = taken.demands
            duration = taken.duration(task.work, self.problem.resource[taken.primary].performance)
            cost = self.compiled.placement_cost(number, begin, duration)
            end = begin + duration
            placements.append(Placement(workflow.name, task.name, demands, begin, end, cost))
        found = Plan(tuple(placements), tuple(unplanned))
        if not self.compiled.waits:
            return found
        sent = self.staging.schedule()
        placed = {each.key: each for each in placements}
        for row in map(int, order) if self.staging.contended else ():
            workflow, task = self.tasks[row]
            place = placed[workflow.name, task.name]
            sent.place(place.key, place.resources[0], placed)
        return sent.completed(found)


def compile_problem(problem: Problem, old: Plan | None = None) -> Compilation:
    """Returns a problem as arrays; tasks keep their places in `old` where that costs nothing."""
    fixed = {placement.key for placement in problem.fixed}
    tasks = tuple(
        (workflow, task)
        for workflow in problem.workflows
        for task in workflow.tasks
        if (workflow.name, task.name) not in fixed
    )
    prices = Prices(problem)
    choices, mine, usable = _distinct(problem, prices, tasks)
    work_price = np.array([prices.of_work(each) for each in choices])
    arrays: Arrays = {
        **task_arrays(problem, tasks),
        **choice_arrays(problem, prices, choices, work_price),
        **resource_arrays(problem, prices, choices),
        **workflow_arrays(problem),
    }
    rank = arrays["rank_cheapest"].astype(np.int64)
    words = max(1, -(-len(choices) // 64))
    arrays["usable_fastest"] = bit_sets(usable, words)
    arrays["usable_cheapest"] = bit_sets(by_row(usable, lambda numbers: rank[numbers]), words)
    arrays |= least_costs(problem, work_price, tasks, usable)
    slowness = floats(
        1.0 / problem.resource[each.primary].performance if each.seconds is None else each.seconds
        for each in choices
    )
    mean = by_row(mine, lambda numbers: float(slowness[numbers].mean()))
    arrays["mean_duration"] = floats(
        per_work(task) * each for (_, task), each in zip(tasks, mean, strict=True)
    )
    arrays["shortest"] = shortest_durations(problem, tasks, choices, usable)
    arrays["kept"], arrays["kept_end"] = kept_choices(problem, old, tasks, choices, usable)
    few = [numbers if len(numbers) <= FEW else numbers[:0] for numbers in usable]
    arrays["few_begin"], arrays["few"] = concatenated(few)
    staged, more = staging_arrays(problem, tasks, choices)
    arrays |= more
    sizes = {
        **staged,
        "tasks": len(tasks),
        "workflows": len(problem.workflows),
        "resources": len(problem.resources),
        "choices": len(choices),
        "words": words,
        "prices_vary": bool(np.isnan(arrays["rate"].astype(float)).any()),
        "now": problem.now,
        "keeping": int((arrays["kept"][: len(tasks)].astype(int) >= 0).sum()),
    }
    return Compilation(problem, CompiledProblem(sizes, arrays), tasks, choices)


def key_of(task: Task) -> tuple[int, float]:
    """Returns what tasks with the same choices have in common."""
    return id(task.alternatives), task.work if task.timed else math.nan


def _distinct(
    problem: Problem, prices: Prices, tasks: Rows
) -> tuple[tuple[Alternative, ...], list[Numbers], list[Numbers]]:
    # The distinct alternatives, fastest first; by task the rows of its own, and of those that it
    # can use at all. Tasks share their alternatives: what is equal is worked out once and shared.
    row = {resource.name: number for number, resource in enumerate(problem.resources)}
    by_value: dict[Alternative, int] = {}
    by_identity: dict[int, int] = {}
    shared: dict[tuple[int, float], list[int]] = {}
    for _, task in tasks:
        if key_of(task) in shared:
            continue
        if task.timed:
            shared[key_of(task)] = [
                by_value.setdefault(timed_choice(problem, task, each), len(by_value))
                for each in task.alternatives
            ]
            continue
        for each in task.alternatives:
            if id(each) not in by_identity:
                by_identity[id(each)] = by_value.setdefault(each, len(by_value))
        shared[key_of(task)] = [by_identity[id(each)] for each in task.alternatives]
    distinct = list(by_value)

    def fastest_first(number: int) -> tuple[object, ...]:
        alternative = distinct[number]
        primary = problem.resource[alternative.primary]
        rows = [(row[demand.resource], demand.units) for demand in alternative.demands]
        if alternative.seconds is not None:
            return True, alternative.seconds, prices.of_work(alternative), rows
        return False, -primary.performance, prices.of_work(alternative), rows

    order = sorted(range(len(distinct)), key=fastest_first)
    place = np.empty(max(1, len(order)), np.int64)
    place[order] = np.arange(len(order))
    rows = {key: place[numbers] for key, numbers in shared.items()}
    sets: dict[tuple[tuple[int, float], bytes], Numbers] = {}

    def numbers_of(task: Task, mask: Mask | None) -> Numbers:
        key = key_of(task), b"" if mask is None else mask.tobytes()
        if key not in sets:
            mine = rows[key[0]]
            sets[key] = np.unique(mine if mask is None else mine[mask])
        return sets[key]

    mine = [numbers_of(task, None) for _, task in tasks]
    usable = [
        numbers_of(task, problem.reach.mask(task.alternatives, task.work)) for _, task in tasks
    ]
    return tuple(distinct[number] for number in order), mine, usable
