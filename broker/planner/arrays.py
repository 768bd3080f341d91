"""The arrays of a problem: what the kernels read of its tasks, choices, resources and workflows.

`_instance.pxd` says what each array holds. Kernels take the address of the first element, so none is
empty.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from broker.model.plan import Plan
from broker.model.problem import Problem
from broker.model.resources import EPOCH_IN_WEEK, WEEK
from broker.model.workflow import Alternative, Task, Workflow

Float = npt.NDArray[np.float64]
Int = npt.NDArray[np.int32]
Numbers = npt.NDArray[np.int64]
Arrays = dict[str, npt.NDArray[np.generic]]
Rows = tuple[tuple[Workflow, Task], ...]
T = TypeVar("T")


class Prices:
    """Prices over the week, computed once per resource."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._steps: dict[str, list[tuple[float, float]]] = {}
        self._mean: dict[str, float] = {}
        self._of_work: dict[Alternative, float] = {}

    def steps(self, name: str) -> list[tuple[float, float]]:
        """Returns the price of a resource over the week, as `Resource.price_steps`."""
        if name not in self._steps:
            self._steps[name] = self._problem.resource[name].price_steps()
        return self._steps[name]

    def _mean_price(self, name: str) -> float:
        if name not in self._mean:
            self._mean[name] = self._problem.resource[name].mean_price()
        return self._mean[name]

    def of_work(self, alternative: Alternative) -> float:
        """Returns what a unit of work costs on an alternative, averaged over the week; all of it if timed."""
        found = self._of_work.get(alternative)
        if found is None:
            price = math.fsum(
                demand.units * self._mean_price(demand.resource) for demand in alternative.demands
            )
            if alternative.seconds is None:
                found = price / self._problem.resource[alternative.primary].performance
            else:
                found = price * alternative.seconds
            self._of_work[alternative] = found
        return found

    def lowest_of_work(self, alternative: Alternative) -> float:
        """Returns its cost if every resource has the lowest price of its week."""
        lowest = (
            demand.units * min(price for _, price in self.steps(demand.resource))
            for demand in alternative.demands
        )
        if alternative.seconds is not None:
            return math.fsum(lowest) * alternative.seconds
        return math.fsum(lowest) / self._problem.resource[alternative.primary].performance


def per_work(task: Task) -> float:
    """Returns what a task's choices count by: its work, or 1 if their seconds are those of the task."""
    return 1.0 if task.timed else task.work


def timed_choice(problem: Problem, task: Task, alternative: Alternative) -> Alternative:
    """Returns the choice of a task with durations of its own: its seconds include the set-up."""
    performance = problem.resource[alternative.primary].performance
    return Alternative(alternative.demands, alternative.duration(task.work, performance))


def shortest_durations(
    problem: Problem, tasks: Rows, choices: Sequence[Alternative], usable: Sequence[Numbers]
) -> Float:
    """Returns by task seconds that it takes at least."""
    speeds = [
        problem.resource[each.primary].performance for each in choices if each.seconds is None
    ]
    fastest = max(speeds, default=1.0)
    return floats(
        min((choices[number].seconds or 0.0 for number in rows), default=0.0)
        if task.timed
        else task.work / fastest
        for (_, task), rows in zip(tasks, usable, strict=True)
    )


def task_arrays(problem: Problem, tasks: Rows) -> Arrays:
    """Returns what kernels read by task, but for costs and choices."""
    row = {(workflow.name, task.name): number for number, (workflow, task) in enumerate(tasks)}
    workflow_row = {workflow.name: number for number, workflow in enumerate(problem.workflows)}
    ends = {placement.key: placement.end for placement in problem.fixed}
    predecessors: list[list[int]] = []
    successors: list[list[int]] = [[] for _ in tasks]
    release = []
    for number, (workflow, task) in enumerate(tasks):
        keys = [(workflow.name, name) for name in task.predecessors]
        predecessors.append([row[key] for key in keys if key in row])
        for other in predecessors[-1]:
            successors[other].append(number)
        fixed_ends = [ends[key] for key in keys if key not in row]
        release.append(max([problem.now, workflow.earliest_start, *fixed_ends]))
    predecessor_begin, predecessor = concatenated(predecessors)
    successor_begin, successor = concatenated(successors)
    return {
        "work": floats(task.work for _, task in tasks),
        "release": floats(release),
        "workflow": integers(workflow_row[workflow.name] for workflow, _ in tasks),
        "predecessors": integers(map(len, predecessors)),
        "predecessor_begin": predecessor_begin,
        "predecessor": predecessor,
        "successor_begin": successor_begin,
        "successor": successor,
    }


def choice_arrays(
    problem: Problem, prices: Prices, choices: tuple[Alternative, ...], work_price: Float
) -> Arrays:
    """Returns the kernel arrays with a row per choice; `choices` are ordered fastest first."""
    row = {resource.name: number for number, resource in enumerate(problem.resources)}
    rate = []
    for each in choices:
        varies = any(len(prices.steps(name)) > 1 for name in each.resources)
        by_demand = (demand.units * prices.steps(demand.resource)[0][1] for demand in each.demands)
        rate.append(math.nan if varies else math.fsum(by_demand))
    by_price = sorted(range(len(choices)), key=lambda number: (work_price[number], number))
    rank = np.empty(max(1, len(choices)), np.int32)
    rank[by_price] = np.arange(len(choices))
    demand_begin, demand_resource = concatenated(
        [[row[demand.resource] for demand in each.demands] for each in choices]
    )
    return {
        "by_rank_fastest": integers(range(len(choices))),
        "rank_fastest": integers(range(len(choices))),
        "by_rank_cheapest": integers(by_price),
        "rank_cheapest": rank,
        "performance": floats(problem.resource[each.primary].performance for each in choices),
        "seconds": floats(-1.0 if each.seconds is None else each.seconds for each in choices),
        "rate": floats(rate),
        "demand_begin": demand_begin,
        "demand_resource": demand_resource,
        "demand_units": integers(demand.units for each in choices for demand in each.demands),
    }


def resource_arrays(problem: Problem, prices: Prices, choices: tuple[Alternative, ...]) -> Arrays:
    """Returns what kernels read by resource."""
    resources = problem.resources
    users: dict[str, list[int]] = {resource.name: [] for resource in resources}
    for number, choice in enumerate(choices):
        for name in choice.resources:
            users[name].append(number)
    steps = [prices.steps(resource.name) for resource in resources]
    before: list[list[float]] = []
    for each in steps:
        spent = [0.0]
        for (begin, price), (end, _) in zip(each, [*each[1:], (WEEK, 0.0)], strict=True):
            spent.append(spent[-1] + (end - begin) * price)
        before.append(spent)
    openings = [resource.opening_spans() for resource in resources]
    taken = _taken(problem)
    choice_begin, choice_of = concatenated([users[resource.name] for resource in resources])
    return {
        "capacity": integers(resource.capacity for resource in resources),
        "choice_begin": choice_begin,
        "choice_of": choice_of,
        "shift": floats(EPOCH_IN_WEEK + resource.utc_offset for resource in resources),
        "opening_begin": concatenated(openings)[0],
        "opening_from": floats(begin for spans in openings for begin, _ in spans),
        "opening_until": floats(end for spans in openings for _, end in spans),
        "price_begin": concatenated(steps)[0],
        "price_from": floats(begin for each in steps for begin, _ in each),
        "price": floats(price for each in steps for _, price in each),
        "price_before": floats(spent for each in before for spent in each[:-1]),
        "price_week": floats(each[-1] for each in before),
        "taken_begin": concatenated(taken)[0],
        "taken_from": floats(begin for spans in taken for begin, _, _ in spans),
        "taken_until": floats(end for spans in taken for _, end, _ in spans),
        "taken_units": integers(units for spans in taken for _, _, units in spans),
    }


def _taken(problem: Problem) -> list[list[tuple[float, float, int]]]:
    # What occupies each resource before planning; a closure occupies all of it.
    taken = {
        resource.name: [
            (begin, end, resource.capacity)
            for begin, end in resource.closure_spans()
            if end > problem.now
        ]
        for resource in problem.resources
    }
    for placement in problem.fixed:
        if placement.end > problem.now:
            for demand in placement.demands:
                taken[demand.resource].append((placement.start, placement.end, demand.units))
    return list(taken.values())


def workflow_arrays(problem: Problem) -> Arrays:
    """Returns what kernels read by workflow, but for least costs."""
    completion = dict.fromkeys((each.name for each in problem.workflows), -math.inf)
    cost = dict.fromkeys(completion, 0.0)
    first = dict.fromkeys(completion, math.inf)
    for placement in problem.fixed:
        first[placement.workflow] = min(first[placement.workflow], placement.start)
        completion[placement.workflow] = max(completion[placement.workflow], placement.end)
        cost[placement.workflow] += placement.cost
    return {
        "earliest_start": floats(
            max(each.earliest_start, problem.now)
            if completion[each.name] == -math.inf
            else max(each.earliest_start, first[each.name])
            for each in problem.workflows
        ),
        "due_date": floats(each.due_date for each in problem.workflows),
        "budget": floats(each.budget for each in problem.workflows),
        "favourite": integers(int(each.preference >= 0.5) for each in problem.workflows),
        "fixed_completion": floats(completion.values()),
        "fixed_cost": floats(cost.values()),
    }


def least_costs(
    problem: Problem,
    work_price: Float,
    tasks: Rows,
    usable: Sequence[Numbers],
) -> Arrays:
    """Returns the least costs, which RAS-5 uses, and the budget a workflow has left."""
    cheapest = by_row(usable, lambda rows: float(work_price[rows].min()) if len(rows) else 0.0)
    least = [per_work(task) * price for (_, task), price in zip(tasks, cheapest, strict=True)]
    total = dict.fromkeys((each.name for each in problem.workflows), 0.0)
    for (workflow, _), cost in zip(tasks, least, strict=True):
        total[workflow.name] += cost
    spent = dict.fromkeys(total, 0.0)
    for placement in problem.fixed:
        spent[placement.workflow] += placement.cost
    return {
        "least_cost": floats(least),
        "least_total": floats(total.values()),
        "allowed": floats(each.budget - spent[each.name] for each in problem.workflows),
    }


def concatenated(lists: Sequence[Sequence[object]] | Sequence[Numbers]) -> tuple[Int, Int]:
    """Returns the offset of each list in their concatenation, and the concatenation."""
    begin = np.zeros(len(lists) + 1, np.int32)
    begin[1:] = np.cumsum([len(row) for row in lists])
    flat = list(chain.from_iterable(lists))
    return begin, integers(flat if all(isinstance(x, int | np.integer) for x in flat[:1]) else [])


def bit_sets(rows: Sequence[Numbers], words: int) -> npt.NDArray[np.uint64]:
    """Returns by row a set of numbers as so many words."""
    sets = np.zeros((max(1, len(rows)), words), np.uint64)

    def packed(row: Numbers) -> npt.NDArray[np.uint64]:
        members = np.zeros(words * 64, bool)
        members[row] = True
        return np.packbits(members, bitorder="little").view(np.uint64)

    for number, bits in enumerate(by_row(rows, packed)):
        sets[number] = bits
    return sets.reshape(-1)


def floats(values: Iterable[float]) -> Float:
    """Returns an array for kernels, with one element at least."""
    return np.array(list(values) or [0.0], np.float64)


def integers(values: Iterable[object]) -> Int:
    """Returns an array for kernels, with one element at least."""
    return np.array(list(values) or [0], np.int32)


def kept_choices(
    problem: Problem,
    old: Plan | None,
    tasks: Rows,
    choices: tuple[Alternative, ...],
    usable: Sequence[Numbers],
) -> tuple[Int, Float]:
    """Returns by task its choice in an old plan, if still possible, and its end there."""
    kept = np.full(max(1, len(tasks)), -1, np.int32)
    ends = np.zeros(max(1, len(tasks)))
    if old is not None:
        number = {choice: row for row, choice in enumerate(choices)}
        by_demands = {each.demands: row for row, each in enumerate(choices) if each.seconds is None}
        for row, ((workflow, task), mine) in enumerate(zip(tasks, usable, strict=True)):
            placement = old.placement(workflow.name, task.name)
            if placement is None:
                continue
            choice = by_demands.get(placement.demands, -1)
            if task.timed:
                there = next((a for a in task.alternatives if a.demands == placement.demands), None)
                choice = -1 if there is None else number[timed_choice(problem, task, there)]
            if choice in mine:
                kept[row], ends[row] = choice, placement.end
    return kept, ends


def by_row(rows: Sequence[Numbers], make: Callable[[Numbers], T]) -> list[T]:
    """Returns what is made of each row, made once for rows that are the same object."""
    made: dict[int, T] = {}
    for each in rows:
        if id(each) not in made:
            made[id(each)] = make(each)
    return [made[id(each)] for each in rows]
