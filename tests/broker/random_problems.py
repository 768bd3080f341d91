"""Small planning problems of chance in which everything happens at once.

Times, works and performances are small whole numbers or halves of them, so that starts, ends,
closures and opening hours coincide, and every sum is exact. A problem is a function of a seed, which
Hypothesis draws: drawing every number of a problem by itself would take most of the tests' time.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np
from hypothesis import strategies as st

from broker.model.network import Copy, DataFile, Link, Network
from broker.model.plan import Placement, Transfer
from broker.model.problem import Problem
from broker.model.resources import Calendar, PriceRule, Resource, WeeklyWindow
from broker.model.workflow import Alternative, Demand, Task, Workflow

Chosen = TypeVar("Chosen")

HOUR = 3600.0
NOW = 7 * 86_400.0 * 2000 + 4 * 86_400.0
"""A Monday at 0:00 UTC."""

WINDOWS = (
    WeeklyWindow(0, 24 * HOUR),
    WeeklyWindow(8 * HOUR, 18 * HOUR),
    WeeklyWindow(0, 24 * HOUR, (0, 5, 6)),
    WeeklyWindow(20 * HOUR, 24 * HOUR, (6,)),
    WeeklyWindow(0, 9 * HOUR, (0, 1)),
)
OPENINGS: tuple[tuple[WeeklyWindow, ...], ...] = (
    (),
    (),
    (),
    (WINDOWS[1],),
    (WINDOWS[2],),
    WINDOWS[3:],
)
RULES: tuple[tuple[PriceRule, ...], ...] = (
    (),
    (),
    (PriceRule(0.5, WINDOWS[1]),),
    (PriceRule(3, WINDOWS[2]),),
)


def one_of(rng: np.random.Generator, values: Sequence[Chosen]) -> Chosen:
    """Returns one of some values."""
    return values[int(rng.integers(len(values)))]


def random_calendar(rng: np.random.Generator) -> Calendar:
    """Returns opening hours, often none, and closures."""
    spans = [(rng.integers(-3, 31), rng.integers(1, 9)) for _ in range(rng.integers(0, 3))]
    closures = tuple((NOW + float(a) * HOUR, NOW + float(a + d) * HOUR) for a, d in spans)
    return Calendar(one_of(rng, OPENINGS), closures)


def random_pool(rng: np.random.Generator, *, plain: bool) -> tuple[Resource, ...]:
    """Returns one to five resources; plain ones are exclusive, always open and of one price."""
    pool = []
    for number in range(rng.integers(1, 6)):
        name, performance = f"r{number}", one_of(rng, (0.5, 1.0, 1.0, 2.0))
        price = one_of(rng, (0.0, 1.0, 2.0, 2.0))
        if plain:
            pool.append(Resource(name, performance=performance, price=price))
            continue
        pool.append(
            Resource(
                name,
                performance=performance,
                price=price,
                price_rules=one_of(rng, RULES),
                calendar=random_calendar(rng),
                capacity=one_of(rng, (1, 1, 2, 4)),
                utc_offset=one_of(rng, (0.0, HOUR, -5 * HOUR)),
            )
        )
    return tuple(pool)


def random_alternative(rng: np.random.Generator, pool: tuple[Resource, ...]) -> Alternative:
    """Returns one or two resources, within their capacities."""
    count = min(len(pool), one_of(rng, (1, 1, 2)))
    members = [pool[i] for i in rng.permutation(len(pool))[:count]]
    return Alternative(tuple(Demand(r.name, int(rng.integers(1, r.capacity + 1))) for r in members))


def random_workflow(rng: np.random.Generator, name: str, pool: tuple[Resource, ...]) -> Workflow:
    """Returns a workflow of one to five tasks, which may come before their predecessors."""
    tasks = [
        Task(
            name=f"t{number}",
            work=int(rng.integers(1, 7)) * HOUR / 2,
            alternatives=tuple(random_alternative(rng, pool) for _ in range(rng.integers(1, 7))),
            predecessors=tuple(f"t{i}" for i in range(number) if rng.random() < 0.4),
        )
        for number in range(rng.integers(1, 6))
    ]
    return Workflow(
        name=name,
        tasks=tuple(tasks[i] for i in rng.permutation(len(tasks))),
        earliest_start=NOW + one_of(rng, (-HOUR, 0.0, 0.0, 3 * HOUR)),
        due_date=NOW + int(rng.integers(1, 41)) * HOUR,
        budget=int(rng.integers(0, 41)) * HOUR,
        preference=one_of(rng, (0.0, 0.5, 1.0)),
    )


def fixed_placements(rng: np.random.Generator, problem: Problem) -> tuple[Placement, ...]:
    """Returns fixed tasks without predecessors, one after another on their resources."""
    free_from: dict[str, float] = {}
    found = []
    for workflow in problem.workflows:
        for task in workflow.tasks:
            if task.predecessors or rng.random() < 0.6:
                continue
            alternative = task.alternatives[0]
            resources = [problem.resource[name] for name in alternative.resources]
            start = max([NOW - 2 * HOUR, *(free_from.get(r.name, NOW - HOUR) for r in resources)])
            end = start + task.work / resources[0].performance
            free_from |= {resource.name: end for resource in resources}
            cost = sum(
                demand.units * resource.cost(start, end)
                for demand, resource in zip(alternative.demands, resources, strict=True)
            )
            found.append(Placement(workflow.name, task.name, alternative.demands, start, end, cost))
    return tuple(found)


def random_problem(seed: int, *, plain: bool, workflows_max: int, fixed: bool) -> Problem:
    """Returns the problem of a seed."""
    rng = np.random.default_rng(seed)
    pool = random_pool(rng, plain=plain)
    count = int(rng.integers(1, workflows_max + 1))
    flows = tuple(random_workflow(rng, f"w{number}", pool) for number in range(count))
    try:
        problem = Problem(flows, pool, NOW)
    except ValueError:
        # Opening hours that are too short for a task: the same pool, always open.
        pool = tuple(
            Resource(r.name, r.kind, r.performance, r.price, capacity=r.capacity) for r in pool
        )
        problem = Problem(flows, pool, NOW)
    if not fixed:
        return problem
    return Problem(flows, pool, NOW, fixed_placements(rng, problem))


def with_times(problem: Problem, seed: int) -> Problem:
    """Returns the problem with durations and set-ups of their own for alternatives of most tasks."""
    rng = np.random.default_rng(seed)
    fixed = {placement.key for placement in problem.fixed}

    def timed(workflow: Workflow, task: Task) -> Task:
        if (workflow.name, task.name) in fixed or rng.random() < 0.25:
            return task
        alternatives = tuple(
            replace(
                each,
                seconds=one_of(rng, (None, HOUR / 2, HOUR, 2.5 * HOUR)),
                setup=one_of(rng, (0.0, 0.0, HOUR / 2)),
            )
            for each in {each.demands: each for each in task.alternatives}.values()
        )
        return replace(task, alternatives=alternatives)

    flows = tuple(
        replace(each, tasks=tuple(timed(each, task) for task in each.tasks))
        for each in problem.workflows
    )
    try:
        return replace(problem, workflows=flows)
    except ValueError:
        return problem  # one takes longer than anything is open


def with_data(problem: Problem, seed: int) -> Problem:
    """Returns the problem with a network, files of its workflows, and copies of some."""
    rng = np.random.default_rng(seed)
    sites = {each.name: one_of(rng, ("x", "y", "z", each.name)) for each in problem.resources}
    sites = {name: site for name, site in sites.items() if site != name}
    names = list(dict.fromkeys([*(sites.get(r.name, r.name) for r in problem.resources), "home"]))
    price = one_of(rng, (0.0, 0.0, 0.125))

    def link() -> Link:
        bandwidth = one_of(rng, (1.0, 2.0, 8.0, np.inf))
        return Link(float(bandwidth), one_of(rng, (0.0, 0.0, 900.0)), price)

    links = {(a, b): link() for a in names for b in names if a != b and rng.random() < 0.4}
    network = Network(link(), sites, links, one_of(rng, ("home", *names)))
    flows, copies = [], []
    for workflow in problem.workflows:
        files = []
        for task in workflow.tasks:
            after = [each.name for each in workflow.tasks if task.name in each.predecessors]
            for number in range(rng.integers(0, 3)):
                readers = tuple(name for name in after if rng.random() < 0.7)
                if readers:
                    size = float(rng.integers(0, 9) * 1800)
                    files.append(DataFile(f"{task.name}.{number}", size, readers, task.name))
        for number in range(rng.integers(0, 4)):
            readers = tuple(each.name for each in workflow.tasks if rng.random() < 0.5)
            if readers:
                size = float(rng.integers(0, 9) * 900)
                files.append(DataFile(f"i{number}", size, readers, site=one_of(rng, ("", *names))))
                if rng.random() < 0.3:
                    since = NOW + one_of(rng, (-HOUR, 0.0, HOUR))
                    copies.append(Copy(workflow.name, f"i{number}", one_of(rng, names), since))
        flows.append(replace(workflow, files=tuple(files)))
    return replace(problem, workflows=tuple(flows), network=network, copies=tuple(copies))


def contended(problem: Problem, seed: int) -> Problem:
    """Returns the problem with links that carry one transfer at a time, some of which are taken at first."""
    rng = np.random.default_rng(seed)
    network = problem.network
    assert network is not None, "problems with data have one"
    names = [*dict.fromkeys(network.site(each.name) for each in problem.resources), "home"]
    under_way = []
    for number in range(rng.integers(0, 4)):
        source, target = (one_of(rng, names) for _ in range(2))
        begin = NOW + int(rng.integers(-4, 20)) * HOUR / 2
        end = begin + int(rng.integers(0, 6)) * HOUR / 2
        if source != target:
            files = (f"f{number}",)
            under_way.append(Transfer("other", "t", files, source, target, begin, end, 1.0, 0.0))
    network = replace(network, contention="link")
    return replace(problem, network=network, under_way=tuple(under_way))


def contended_problems() -> st.SearchStrategy[Problem]:
    """Returns problems with files and links that carry one transfer at a time."""
    return st.integers(0, 2**32).map(lambda seed: contended(data_problem(seed), seed))


def data_problem(seed: int) -> Problem:
    """Returns the problem of a seed with data; half of them with set-ups and durations of their own."""
    problem = random_problem(seed, plain=False, workflows_max=4, fixed=seed % 3 > 0)
    return with_data(with_times(problem, seed) if seed % 2 else problem, seed)


def data_problems() -> st.SearchStrategy[Problem]:
    """Returns problems with files and a network."""
    return st.integers(0, 2**32).map(data_problem)


def timed_problems(*, plain: bool = False) -> st.SearchStrategy[Problem]:
    """Returns problems in which alternatives have durations and set-ups of their own."""
    return st.integers(0, 2**32).map(
        lambda seed: with_times(
            random_problem(seed, plain=plain, workflows_max=4, fixed=True), seed
        )
    )


def problems(
    *, plain: bool = False, workflows_max: int = 5, fixed: bool = True
) -> st.SearchStrategy[Problem]:
    """Returns problems in which every task can run somewhere.

    Args:
        plain: whether resources are exclusive, always open and of one price.
        workflows_max: most workflows.
        fixed: whether some tasks may be fixed.
    """
    return st.integers(0, 2**32).map(
        lambda seed: random_problem(seed, plain=plain, workflows_max=workflows_max, fixed=fixed)
    )
