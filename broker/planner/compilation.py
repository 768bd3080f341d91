"""From a checked problem to the arrays that the kernels read, and from their results to a plan.

Alternatives that are equal become one *choice*, whichever tasks have them. As a task's duration is
its work over the performance of the primary resource, one order of the choices serves all tasks:
RAS-1 goes by performance and RAS-2 by the price of a unit of work, averaged over the week. A task's
alternatives are then a set of bits in such an order.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from broker.model.plan import Placement, Plan
from broker.model.problem import Problem
from broker.model.reach import Mask
from broker.model.resources import EPOCH_IN_WEEK, WEEK
from broker.model.workflow import Alternative, Task, Workflow
from broker.planner._instance import CompiledProblem

FEW = 4
"""Up to so many alternatives a task's choices are looked at one by one."""

Float = npt.NDArray[np.float64]
Int = npt.NDArray[np.int32]
Numbers = npt.NDArray[np.int64]
T = TypeVar("T")


@dataclass(frozen=True)
class Compilation:
    """A problem with its arrays and what the rows of these are.

    Attributes:
        problem: what was compiled.
        compiled: the arrays.
        tasks: workflow and task of each row, in the order of the problem, fixed ones left out.
        choices: the distinct alternatives, fastest first.
    """

    problem: Problem
    compiled: CompiledProblem
    tasks: tuple[tuple[Workflow, Task], ...]
    choices: tuple[Alternative, ...]

    @property
    def keeps(self) -> bool:
        """Whether an old plan has a task somewhere that it can be now."""
        return bool((self.compiled.column("kept") >= 0).any())

    def stay(self, until: Float) -> None:
        """Says until when tasks may end where the old plan has them; before anything is built.

        Args:
            until: by task; seconds.
        """
        self.compiled.column("kept_end")[: len(self.tasks)] = until

    def plan(self, choice: Sequence[int] | Int, start: Sequence[float] | Float) -> Plan:
        """Returns the plan in which every task runs on a choice from a start.

        Args:
            choice: by task; negative where the task has no place.
            start: by task; seconds.
        """
        placements = list(self.problem.fixed)
        unplanned = []
        for (workflow, task), number, begin in zip(
            self.tasks, map(int, choice), map(float, start), strict=True
        ):
            if number < 0:
                unplanned.append((workflow.name, task.name))
                continue
            demands = self.choices[number].demands
            end = begin + task.work / self.problem.resource[demands[0].resource].performance
            cost = self.compiled.placement_cost(number, begin, end)
            placements.append(Placement(workflow.name, task.name, demands, begin, end, cost))
        return Plan(tuple(placements), tuple(unplanned))


def compile_problem(problem: Problem, old: Plan | None = None) -> Compilation:
    """Returns a problem as arrays.

    Args:
        problem: what is to be planned.
        old: a plan from before, whose places tasks are to keep where that costs nothing.
    """
    fixed = {placement.key for placement in problem.fixed}
    tasks = tuple(
        (workflow, task)
        for workflow in problem.workflows
        for task in workflow.tasks
        if (workflow.name, task.name) not in fixed
    )
    prices = _Prices(problem)
    choices, mine, usable = _distinct(problem, prices, tasks)
    work_price = np.array([prices.of_work(each) for each in choices])
    arrays: dict[str, npt.NDArray[np.generic]] = {
        **_task_arrays(problem, tasks),
        **_choice_arrays(problem, prices, choices, work_price),
        **_resource_arrays(problem, prices, choices),
        **_workflow_arrays(problem),
    }
    rank = arrays["rank_cheapest"].astype(np.int64)
    words = max(1, -(-len(choices) // 64))
    arrays["usable_fastest"] = _bits(usable, words)
    arrays["usable_cheapest"] = _bits(_by_row(usable, lambda numbers: rank[numbers]), words)
    arrays |= _least_costs(problem, work_price, tasks, usable)
    slowness = _floats(1.0 / problem.resource[each.primary].performance for each in choices)
    mean = _by_row(mine, lambda numbers: float(slowness[numbers].mean()))
    arrays["mean_duration"] = _floats(
        task.work * each for (_, task), each in zip(tasks, mean, strict=True)
    )
    arrays["kept"], arrays["kept_end"] = _kept(old, tasks, choices, usable)
    few = [numbers if len(numbers) <= FEW else numbers[:0] for numbers in usable]
    arrays["few_begin"], arrays["few"] = _rows(few)
    sizes = {
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


def _distinct(
    problem: Problem, prices: "_Prices", tasks: tuple[tuple[Workflow, Task], ...]
) -> tuple[tuple[Alternative, ...], list[Numbers], list[Numbers]]:
    # The distinct alternatives, fastest first; by task the rows of its own, and of those that it
    # can use at all. Tasks share their alternatives: what is equal is worked out once and shared.
    row = {resource.name: number for number, resource in enumerate(problem.resources)}
    by_value: dict[Alternative, int] = {}
    by_identity: dict[int, int] = {}
    shared: dict[int, list[int]] = {}
    for _, task in tasks:
        if id(task.alternatives) in shared:
            continue
        for each in task.alternatives:
            if id(each) not in by_identity:
                by_identity[id(each)] = by_value.setdefault(each, len(by_value))
        shared[id(task.alternatives)] = [by_identity[id(each)] for each in task.alternatives]
    distinct = list(by_value)

    def fastest_first(number: int) -> tuple[object, ...]:
        alternative = distinct[number]
        primary = problem.resource[alternative.primary]
        rows = [(row[demand.resource], demand.units) for demand in alternative.demands]
        return -primary.performance, prices.of_work(alternative), rows

    order = sorted(range(len(distinct)), key=fastest_first)
    place = np.empty(max(1, len(order)), np.int64)
    place[order] = np.arange(len(order))
    rows = {key: place[numbers] for key, numbers in shared.items()}
    sets: dict[tuple[int, bytes], Numbers] = {}

    def numbers_of(task: Task, mask: Mask | None) -> Numbers:
        key = id(task.alternatives), b"" if mask is None else mask.tobytes()
        if key not in sets:
            mine = rows[key[0]]
            sets[key] = np.unique(mine if mask is None else mine[mask])
        return sets[key]

    mine = [numbers_of(task, None) for _, task in tasks]
    usable = [
        numbers_of(task, problem.reach.mask(task.alternatives, task.work)) for _, task in tasks
    ]
    return tuple(distinct[number] for number in order), mine, usable


def _by_row(rows: Sequence[Numbers], make: Callable[[Numbers], T]) -> list[T]:
    # What is made of each row, once for rows that are the same object.
    made: dict[int, T] = {}
    for each in rows:
        if id(each) not in made:
            made[id(each)] = make(each)
    return [made[id(each)] for each in rows]


class _Prices:
    # Prices over the week, worked out once for each resource.
    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._steps: dict[str, list[tuple[float, float]]] = {}
        self._mean: dict[str, float] = {}
        self._of_work: dict[Alternative, float] = {}

    def steps(self, name: str) -> list[tuple[float, float]]:
        """Returns the price of a resource over the week; see `Resource.price_steps`."""
        if name not in self._steps:
            self._steps[name] = self._problem.resource[name].price_steps()
        return self._steps[name]

    def _mean_price(self, name: str) -> float:
        if name not in self._mean:
            self._mean[name] = self._problem.resource[name].mean_price()
        return self._mean[name]

    def of_work(self, alternative: Alternative) -> float:
        """Returns what a unit of work costs on an alternative, averaged over the week."""
        found = self._of_work.get(alternative)
        if found is None:
            price = math.fsum(
                demand.units * self._mean_price(demand.resource) for demand in alternative.demands
            )
            found = price / self._problem.resource[alternative.primary].performance
            self._of_work[alternative] = found
        return found


def _kept(
    old: Plan | None,
    tasks: tuple[tuple[Workflow, Task], ...],
    choices: tuple[Alternative, ...],
    usable: list[npt.NDArray[np.int64]],
) -> tuple[Int, Float]:
    # By task the choice of an old plan, where the task can still have it, and when it ended there.
    kept = np.full(max(1, len(tasks)), -1, np.int32)
    ends = np.zeros(max(1, len(tasks)))
    if old is not None:
        number = {choice.demands: row for row, choice in enumerate(choices)}
        for row, ((workflow, task), mine) in enumerate(zip(tasks, usable, strict=True)):
            placement = old.placement(workflow.name, task.name)
            choice = -1 if placement is None else number.get(placement.demands, -1)
            if placement is not None and choice in mine:
                kept[row], ends[row] = choice, placement.end
    return kept, ends


def price_of_work(problem: Problem, alternative: Alternative) -> float:
    """Returns what a unit of work costs on an alternative, averaged over the week."""
    return _Prices(problem).of_work(alternative)


def _task_arrays(
    problem: Problem, tasks: tuple[tuple[Workflow, Task], ...]
) -> dict[str, npt.NDArray[np.generic]]:
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
    predecessor_begin, predecessor = _rows(predecessors)
    successor_begin, successor = _rows(successors)
    return {
        "work": _floats(task.work for _, task in tasks),
        "release": _floats(release),
        "workflow": _ints(workflow_row[workflow.name] for workflow, _ in tasks),
        "predecessors": _ints(map(len, predecessors)),
        "predecessor_begin": predecessor_begin,
        "predecessor": predecessor,
        "successor_begin": successor_begin,
        "successor": successor,
    }


def _choice_arrays(
    problem: Problem, prices: _Prices, choices: tuple[Alternative, ...], work_price: Float
) -> dict[str, npt.NDArray[np.generic]]:
    row = {resource.name: number for number, resource in enumerate(problem.resources)}
    rate = []
    for each in choices:
        varies = any(len(prices.steps(name)) > 1 for name in each.resources)
        by_demand = (demand.units * prices.steps(demand.resource)[0][1] for demand in each.demands)
        rate.append(math.nan if varies else math.fsum(by_demand))
    by_price = sorted(range(len(choices)), key=lambda number: (work_price[number], number))
    rank = np.empty(max(1, len(choices)), np.int32)
    rank[by_price] = np.arange(len(choices))
    demand_begin, demand_resource = _rows(
        [[row[demand.resource] for demand in each.demands] for each in choices]
    )
    return {
        "by_rank_fastest": _ints(range(len(choices))),
        "rank_fastest": _ints(range(len(choices))),
        "by_rank_cheapest": _ints(by_price),
        "rank_cheapest": rank,
        "performance": _floats(problem.resource[each.primary].performance for each in choices),
        "rate": _floats(rate),
        "demand_begin": demand_begin,
        "demand_resource": demand_resource,
        "demand_units": _ints(demand.units for each in choices for demand in each.demands),
    }


def _resource_arrays(
    problem: Problem, prices: _Prices, choices: tuple[Alternative, ...]
) -> dict[str, npt.NDArray[np.generic]]:
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
    choice_begin, choice_of = _rows([users[resource.name] for resource in resources])
    return {
        "capacity": _ints(resource.capacity for resource in resources),
        "choice_begin": choice_begin,
        "choice_of": choice_of,
        "shift": _floats(EPOCH_IN_WEEK + resource.utc_offset for resource in resources),
        "opening_begin": _rows(openings)[0],
        "opening_from": _floats(begin for spans in openings for begin, _ in spans),
        "opening_until": _floats(end for spans in openings for _, end in spans),
        "price_begin": _rows(steps)[0],
        "price_from": _floats(begin for each in steps for begin, _ in each),
        "price": _floats(price for each in steps for _, price in each),
        "price_before": _floats(spent for each in before for spent in each[:-1]),
        "price_week": _floats(each[-1] for each in before),
        "taken_begin": _rows(taken)[0],
        "taken_from": _floats(begin for spans in taken for begin, _, _ in spans),
        "taken_until": _floats(end for spans in taken for _, end, _ in spans),
        "taken_units": _ints(units for spans in taken for _, _, units in spans),
    }


def _taken(problem: Problem) -> list[list[tuple[float, float, int]]]:
    # What occupies each resource before anything is planned. A closure takes all of it.
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


def _workflow_arrays(problem: Problem) -> dict[str, npt.NDArray[np.generic]]:
    completion = dict.fromkeys((each.name for each in problem.workflows), -math.inf)
    cost = dict.fromkeys(completion, 0.0)
    first = dict.fromkeys(completion, math.inf)
    for placement in problem.fixed:
        first[placement.workflow] = min(first[placement.workflow], placement.start)
        completion[placement.workflow] = max(completion[placement.workflow], placement.end)
        cost[placement.workflow] += placement.cost
    return {
        "earliest_start": _floats(
            max(each.earliest_start, problem.now)
            if completion[each.name] == -math.inf
            else max(each.earliest_start, first[each.name])
            for each in problem.workflows
        ),
        "due_date": _floats(each.due_date for each in problem.workflows),
        "budget": _floats(each.budget for each in problem.workflows),
        "favourite": _ints(int(each.preference >= 0.5) for each in problem.workflows),
        "fixed_completion": _floats(completion.values()),
        "fixed_cost": _floats(cost.values()),
    }


def _least_costs(
    problem: Problem,
    work_price: Float,
    tasks: tuple[tuple[Workflow, Task], ...],
    usable: list[Numbers],
) -> dict[str, npt.NDArray[np.generic]]:
    # What RAS-5 goes by: least costs by task and by workflow, and what a workflow may still spend.
    cheapest = _by_row(usable, lambda rows: float(work_price[rows].min()) if len(rows) else 0.0)
    least = [task.work * price for (_, task), price in zip(tasks, cheapest, strict=True)]
    total = dict.fromkeys((each.name for each in problem.workflows), 0.0)
    for (workflow, _), cost in zip(tasks, least, strict=True):
        total[workflow.name] += cost
    spent = dict.fromkeys(total, 0.0)
    for placement in problem.fixed:
        spent[placement.workflow] += placement.cost
    return {
        "least_cost": _floats(least),
        "least_total": _floats(total.values()),
        "allowed": _floats(each.budget - spent[each.name] for each in problem.workflows),
    }


def _rows(rows: Sequence[Sequence[object]] | Sequence[Numbers]) -> tuple[Int, Int]:
    # Where each row begins in the concatenation, and that concatenation where it is of integers.
    begin = np.zeros(len(rows) + 1, np.int32)
    begin[1:] = np.cumsum([len(row) for row in rows])
    flat = list(chain.from_iterable(rows))
    return begin, _ints(flat if all(isinstance(x, int | np.integer) for x in flat[:1]) else [])


def _bits(rows: Sequence[Numbers], words: int) -> npt.NDArray[np.uint64]:
    # By row a set of numbers as `words` words.
    sets = np.zeros((max(1, len(rows)), words), np.uint64)

    def packed(row: Numbers) -> npt.NDArray[np.uint64]:
        members = np.zeros(words * 64, bool)
        members[row] = True
        return np.packbits(members, bitorder="little").view(np.uint64)

    for number, bits in enumerate(_by_row(rows, packed)):
        sets[number] = bits
    return sets.reshape(-1)


def _floats(values: Iterable[float]) -> Float:
    # Kernels take the address of the first element, so there always is one.
    return np.array(list(values) or [0.0], np.float64)


def _ints(values: Iterable[object]) -> Int:
    return np.array(list(values) or [0], np.int32)
