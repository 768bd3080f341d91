"""Synthetic planning problems: the paper's benchmark classes, and job shops.

The classes (paper 004, section 3.5) combine a small or large degree of dependencies D (equation
3.2) with a small or large freedom of choosing resources R (equation 3.3). As workflows have three to
seven tasks and no precedence crosses them, D can be large only within workflows: it is the sum of
predecessors over the sum of n_i(n_i − 1)/2, n_i being the tasks of workflow i.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from broker.model.plan import Plan
from broker.model.problem import Problem
from broker.model.resources import Resource
from broker.model.workflow import Alternative, Demand, Instant, Task, Workflow

SMALL = (0.0, 0.4)
"""Bounds of a uniform degree that is 0.2 on average."""

LARGE = (0.6, 1.0)
"""Bounds of a uniform degree that is 0.8 on average."""

TASKS_PER_WORKFLOW = (3, 7)
"""Bounds of the number of tasks; the last workflow takes the rest, which may be fewer."""

UNLIMITED = "unlimited"
"""A resource of activities that need nothing else: it never runs out."""

DURATION_UNITS = (3.0, 7.0)
"""Bounds of a task's duration at performance 1, in units of time."""


@dataclass(frozen=True, slots=True)
class BenchmarkClass:
    """One of the paper's four classes.

    Attributes:
        resources: bounds of the share of resources that a task can use: R.
        dependencies: bounds of the share of earlier tasks that a task waits for: D.
    """

    resources: tuple[float, float]
    dependencies: tuple[float, float]


CLASSES = {
    "sRsD": BenchmarkClass(SMALL, SMALL),
    "sRlD": BenchmarkClass(SMALL, LARGE),
    "lRsD": BenchmarkClass(LARGE, SMALL),
    "lRlD": BenchmarkClass(LARGE, LARGE),
}
"""The classes by the paper's names: s and l for small and large R and D."""


def paper_resources(
    count: int,
    rng: np.random.Generator,
    *,
    performance: tuple[float, float] = (0.6, 1.6),
    price_noise: float = 0.25,
) -> tuple[Resource, ...]:
    """Returns exclusive resources that differ in performance and cost-performance ratio.

    Faster ones cost more per second and, on average, more for the same work: the price of a second is
    performance^1.5 times a uniform number within `price_noise` of 1. `performance` bounds a uniform
    number.
    """
    speeds = rng.uniform(*performance, count)
    prices = speeds**1.5 * rng.uniform(1 - price_noise, 1 + price_noise, count)
    return tuple(
        Resource(f"r{number}", performance=float(speed), price=float(price))
        for number, (speed, price) in enumerate(zip(speeds, prices, strict=True))
    )


def paper_workflows(
    benchmark: str,
    tasks: int,
    resources: Sequence[Resource],
    rng: np.random.Generator,
    *,
    time_unit: float = 60.0,
    earliest_start: float = 0.0,
    prefix: str = "w",
) -> tuple[Workflow, ...]:
    """Returns workflows of one of the paper's classes, without due dates and budgets.

    Every second workflow prefers fast resources, the others cheap ones.

    `tasks` counts those of all workflows; `time_unit` and `earliest_start` are in seconds.

    Raises:
        ValueError: there is no such class, or no task.
    """
    if benchmark not in CLASSES:
        raise ValueError(f"there is no class {benchmark!r}; one of {', '.join(CLASSES)}")
    if tasks < 1:
        raise ValueError(f"{tasks} tasks; at least 1")
    shape = CLASSES[benchmark]
    # Tasks share one object per resource.
    alternatives = [Alternative.of(resource.name) for resource in resources]
    workflows: list[Workflow] = []
    left = tasks
    while left:
        count = min(left, int(rng.integers(TASKS_PER_WORKFLOW[0], TASKS_PER_WORKFLOW[1] + 1)))
        left -= count
        members = []
        for number in range(count):
            wanted = _rounded(rng.uniform(*shape.dependencies) * number, rng)
            before = sorted(rng.choice(number, wanted, replace=False)) if number else []
            usable = max(1, _rounded(rng.uniform(*shape.resources) * len(resources), rng))
            chosen = sorted(rng.choice(len(resources), usable, replace=False))
            members.append(
                Task(
                    f"t{number}",
                    float(rng.uniform(*DURATION_UNITS)) * time_unit,
                    tuple(alternatives[index] for index in chosen),
                    tuple(f"t{index}" for index in before),
                )
            )
        workflows.append(
            Workflow(
                f"{prefix}{len(workflows)}",
                tuple(members),
                earliest_start=earliest_start,
                preference=float(len(workflows) % 2),
            )
        )
    return tuple(workflows)


def paper_problem(
    benchmark: str, tasks: int, rng: np.random.Generator, *, resources: int | None = None
) -> Problem:
    """Returns a problem of one of the paper's classes, without due dates and budgets.

    `tasks` counts those of all workflows; `resources` defaults to a tenth of them.
    """
    pool = paper_resources(max(1, tasks // 10) if resources is None else resources, rng)
    return Problem(paper_workflows(benchmark, tasks, pool, rng), pool)


def with_limits(
    problem: Problem, plans: Sequence[Plan], reduction: float, *, slack: float = 0.1
) -> Problem:
    """Returns the problem with due dates and budgets slightly tighter than what plans achieve.

    A due date is the workflow's mean completion over the plans, with the time since its start shortened
    by `reduction`; a budget is its mean cost, reduced likewise. Neither goes below what is possible (the
    critical path on the fastest and the tasks on the cheapest resources) plus `slack`, as no plan could
    keep such a limit.

    Raises:
        ValueError: a share is out of bounds, or there is no plan.
    """
    if not 0 <= reduction <= 1:
        raise ValueError(f"the reduction is {reduction}; from 0 to 1")
    if not slack >= 0:
        raise ValueError(f"the slack is {slack}; at least 0")
    if not plans:
        raise ValueError("limits need at least one plan to start from")
    limited = []
    outcomes = (plan.outcomes(problem.workflows) for plan in plans)
    for workflow, *found in zip(problem.workflows, *outcomes, strict=True):
        begin = max(workflow.earliest_start, problem.now)
        span = math.fsum(each.completion - begin for each in found) / len(found)
        cost = math.fsum(each.cost for each in found) / len(found)
        limited.append(
            replace(
                workflow,
                due_date=begin
                + max(span * (1 - reduction), critical_path(problem, workflow) * (1 + slack)),
                budget=max(cost * (1 - reduction), cheapest_cost(problem, workflow) * (1 + slack)),
            )
        )
    return replace(problem, workflows=tuple(limited))


def critical_path(problem: Problem, workflow: Workflow) -> float:
    """Returns the seconds a workflow takes if every task runs on its fastest alternative at once."""
    tasks = {task.name: task for task in workflow.tasks}
    length: dict[str, float] = {}
    waiting = list(tasks)
    while waiting:
        task = tasks[waiting[-1]]
        missing = [name for name in task.predecessors if name not in length]
        waiting.extend(missing)
        if not missing:
            waiting.pop()
            before = max((length[name] for name in task.predecessors), default=0.0)
            length[task.name] = before + min(
                each.duration(task.work, problem.resource[each.primary].performance)
                for each in task.alternatives
            )
    return max(length.values())


def cheapest_cost(problem: Problem, workflow: Workflow) -> float:
    """Returns the cost of a workflow with every task on its cheapest alternative.

    Varying prices count with their mean over the week.
    """
    total = []
    for task in workflow.tasks:
        costs = []
        for alternative in task.alternatives:
            price = sum(
                demand.units * problem.resource[demand.resource].mean_price()
                for demand in alternative.demands
            )
            performance = problem.resource[alternative.primary].performance
            costs.append(price * alternative.duration(task.work, performance))
        total.append(min(costs))
    return math.fsum(total)


def job_shop(operations: Sequence[Sequence[tuple[int, float]]]) -> Problem:
    """Returns a job shop as a planning problem: one resource per machine.

    `operations` has, by job and in order, the machine and the seconds of each operation, which may be 0.
    """
    machines = 1 + max(machine for job in operations for machine, _ in job)
    on = [(Alternative.of(f"m{number}"),) for number in range(machines)]
    workflows = tuple(
        Workflow(
            f"j{number}",
            tuple(
                (Task if seconds else Instant)(
                    f"o{step}", float(seconds), on[machine], (f"o{step - 1}",) if step else ()
                )
                for step, (machine, seconds) in enumerate(job)
            ),
            earliest_start=0.0,
        )
        for number, job in enumerate(operations)
    )
    return Problem(workflows, tuple(Resource(f"m{number}") for number in range(machines)))


def flexible_job_shop(
    operations: Sequence[Sequence[Sequence[tuple[int, float]]]], machines: int
) -> Problem:
    """Returns a flexible job shop as a planning problem: one resource per machine.

    `operations` has, by job and in order, the machines (from 0) that can do an operation, each with the
    seconds it takes there, more than 0.
    """
    workflows = tuple(
        Workflow(
            f"j{number}",
            tuple(
                Task(
                    f"o{step}",
                    float(min(seconds for _, seconds in choices)),
                    tuple(
                        Alternative((Demand(f"m{machine}"),), float(seconds))
                        for machine, seconds in choices
                    ),
                    (f"o{step - 1}",) if step else (),
                )
                for step, choices in enumerate(job)
            ),
            earliest_start=0.0,
        )
        for number, job in enumerate(operations)
    )
    return Problem(workflows, tuple(Resource(f"m{number}") for number in range(machines)))


@dataclass(frozen=True, slots=True)
class Activity:
    """An activity of a project.

    Attributes:
        seconds: how long it takes; 0 for a milestone, which occupies nothing.
        units: of each resource while it runs.
        successors: numbers of the activities, from 0, that wait for its end.
    """

    name: str
    seconds: float
    units: tuple[int, ...]
    successors: tuple[int, ...]


def project(activities: Sequence[Activity], capacity: Sequence[int]) -> Problem:
    """Returns a resource-constrained project (RCPSP) as a planning problem of one workflow.

    `capacity` has the units of each resource. Milestones are no tasks: what waits for one waits for
    what it waits for. An activity that needs nothing takes a unit of a resource `unlimited`, which has
    one for each. Precedence must have no circle, and some activity must take time.
    """
    names = [f"R{number}" for number in range(1, len(capacity) + 1)]
    before: list[dict[int, None]] = [{} for _ in activities]
    missing = [0] * len(activities)
    for activity in activities:
        for other in activity.successors:
            missing[other] += 1
    going = [number for number, count in enumerate(missing) if count == 0]
    while going:
        number = going.pop()
        # What its successors wait for: itself, or what a milestone waits for.
        ends = {number: None} if activities[number].seconds else before[number]
        for other in activities[number].successors:
            before[other].update(ends)
            missing[other] -= 1
            if missing[other] == 0:
                going.append(other)
    free = False
    tasks = []
    for number, activity in enumerate(activities):
        if not activity.seconds:
            continue
        demands = tuple(
            Demand(name, units) for name, units in zip(names, activity.units, strict=True) if units
        )
        free |= not demands
        tasks.append(
            Task(
                activity.name,
                activity.seconds,
                (Alternative(demands or (Demand(UNLIMITED),)),),
                tuple(activities[other].name for other in sorted(before[number])),
            )
        )
    resources = [
        Resource(f"R{number}", capacity=units) for number, units in enumerate(capacity, 1) if units
    ]
    if free:
        resources.append(Resource(UNLIMITED, capacity=len(tasks)))
    return Problem((Workflow("project", tuple(tasks), earliest_start=0.0),), tuple(resources))


def _rounded(value: float, rng: np.random.Generator) -> int:
    # Rounds to a whole number of the same mean.
    whole = math.floor(value)
    return whole + int(rng.random() < value - whole)
