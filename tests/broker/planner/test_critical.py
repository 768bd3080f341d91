from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.model.instances import job_shop, paper_problem
from broker.model.plan import Placement, Plan
from broker.model.problem import Problem
from broker.model.resources import Calendar, Resource
from broker.model.workflow import Alternative, Task, Workflow
from broker.planner._critical import CriticalGraph, is_job_shop
from broker.planner.compilation import compile_problem
from broker.planner.gleam import GleamSettings
from broker.planner.goals import MAKESPAN_ONLY
from broker.planner.memetic import Memetic, Searcher
from broker.planner.search import Budget, Found, Search
from tests.broker.random_problems import problems
from tests.examples import FEW, runs
from tests.oracles.critical import Orders, Shop, changed
from tests.oracles.plan_checker import plan_violations


def overlapping(plan: Plan) -> list[tuple[Placement, Placement]]:
    """Returns placements of one machine neither of which ends before the other begins."""
    return [
        (first, second)
        for first, second in combinations(plan.placements, 2)
        if first.demands == second.demands
        and not (first.end <= second.start or second.end <= first.start)
    ]


Jobs = list[list[tuple[int, float]]]

FT06: Jobs = [
    [(2, 1), (0, 3), (1, 6), (3, 7), (5, 3), (4, 6)],
    [(1, 8), (2, 5), (4, 10), (5, 10), (0, 10), (3, 4)],
    [(2, 5), (3, 4), (5, 8), (0, 9), (1, 1), (4, 7)],
    [(1, 5), (0, 5), (2, 5), (3, 3), (4, 8), (5, 9)],
    [(2, 9), (1, 3), (4, 5), (5, 4), (0, 3), (3, 1)],
    [(1, 3), (3, 3), (5, 9), (0, 10), (4, 4), (2, 1)],
]
"""Fisher and Thompson 1963, six jobs on six machines; the shortest makespan is 55."""

BLOCKS = GleamSettings(
    population=10, memetic=Memetic(Searcher.BLOCKS, best_only=True, iterations=500)
)


def shortest(problem: Problem, seed: int, evaluations: int) -> Found:
    """Returns what tabu search within GLEAM finds."""
    budget = Budget(evaluations=evaluations)
    search = Search(
        problem, budget=budget, settings=BLOCKS, goals=MAKESPAN_ONLY, seed=seed, workers=1
    )
    return search.run()


@pytest.mark.parametrize("seed", range(3))
def test_a_small_job_shop_is_solved(seed: int) -> None:
    """The optimum of ft06, 55, within twenty thousand schedules."""
    problem = job_shop(FT06)
    found = shortest(problem, seed, 20_000)
    assert found.worth is not None
    assert found.worth.makespan == 55
    assert plan_violations(problem, found.plan) == []


@FEW
@given(st.integers(1, 4), st.integers(1, 3), st.data())
def test_tiny_job_shops_are_solved_as_by_trying_everything(
    jobs: int, machines: int, data: st.DataObject
) -> None:
    """The makespan is the least over all sequences in which jobs take turns.

    Some operations take no time; they do not run within others on their machine either.
    """
    routes: Jobs = [
        [
            (machine, float(data.draw(st.integers(0, 9))))
            for machine in data.draw(st.permutations(range(machines)))
        ]
        for _ in range(jobs)
    ]
    found = shortest(job_shop(routes), 1, 4000)
    assert found.worth is not None
    assert found.worth.makespan == least_makespan(routes)
    assert plan_violations(job_shop(routes), found.plan) == []
    assert overlapping(found.plan) == []


def least_makespan(routes: Jobs) -> float:
    """Returns the shortest makespan: branch over which job goes next, with a bound."""
    jobs, machines = len(routes), 1 + max(m for route in routes for m, _ in route)
    best = sum(seconds for route in routes for _, seconds in route)
    waiting = [((0,) * jobs, (0.0,) * jobs, (0.0,) * machines)]
    seen = set()
    while waiting:
        state = waiting.pop()
        steps, job_free, machine_free = state
        if state in seen or max(job_free) >= best:
            continue
        seen.add(state)
        if all(step == len(route) for step, route in zip(steps, routes, strict=True)):
            best = max(job_free)
            continue
        for job, (step, route) in enumerate(zip(steps, routes, strict=True)):
            if step == len(route):
                continue
            machine, seconds = route[step]
            end = max(job_free[job], machine_free[machine]) + seconds
            waiting.append(
                (
                    (*steps[:job], step + 1, *steps[job + 1 :]),
                    (*job_free[:job], end, *job_free[job + 1 :]),
                    (*machine_free[:machine], end, *machine_free[machine + 1 :]),
                )
            )
    return best


def graph_problem(seed: int) -> Problem:
    """Returns workflows with branches and releases, every task on one exclusive resource."""
    rng = np.random.default_rng(seed)
    on = [(Alternative.of(f"m{i}"),) for i in range(4)]
    flows = []
    for number in range(6):
        tasks: list[Task] = []
        for step in range(5):
            before = tuple(t.name for t in tasks if rng.random() < 0.4)
            tasks.append(Task(f"t{step}", float(rng.integers(1, 9)), on[rng.integers(4)], before))
        flows.append(Workflow(f"w{number}", tuple(tasks), float(rng.integers(0, 9))))
    return Problem(tuple(flows), tuple(Resource(f"m{i}") for i in range(4)))


@pytest.mark.parametrize("seed", range(runs(3, 8)))
def test_any_precedence_and_releases_will_do(seed: int) -> None:
    """Not only chains: plans are valid, and shorter than or as short as without tabu search."""
    problem = graph_problem(seed)
    found = shortest(problem, seed, 30_000)
    assert plan_violations(problem, found.plan) == []
    plain = Search(
        problem,
        budget=Budget(evaluations=2000),
        settings=GleamSettings(population=10),
        goals=MAKESPAN_ONLY,
        workers=1,
    ).run()
    assert found.worth is not None
    assert plain.worth is not None
    assert found.worth.makespan <= plain.worth.makespan
    busiest = max(
        sum(t.work for w in problem.workflows for t in w.tasks if t.alternatives[0].primary == m)
        for m in problem.resource
    )
    assert found.worth.makespan >= busiest


def test_other_problems_are_left_alone() -> None:
    """Several alternatives, capacities, hours: then there is no tabu search, and no harm."""
    assert is_job_shop(compile_problem(job_shop(FT06)).compiled)
    others = [paper_problem("lRsD", 30, np.random.default_rng(1))]
    shop = job_shop(FT06)
    two = tuple(Resource(each.name, capacity=2) for each in shop.resources)
    closed = tuple(Resource(each.name, calendar=Calendar(closures=((1, 2),))) for each in two)
    others += [Problem(shop.workflows, two), Problem(shop.workflows, closed)]
    for problem in others:
        assert not CriticalGraph(compile_problem(problem).compiled).usable
        found = shortest(problem, 1, 300)
        assert plan_violations(problem, found.plan) == []


@given(problems(plain=True, workflows_max=3))
def test_whatever_is_of_the_kind_stays_valid(problem: Problem) -> None:
    """Small random problems, some of them of the kind: the plan found is valid."""
    found = shortest(problem, 1, 200)
    assert plan_violations(problem, found.plan) == []


def shop_of(problem: Problem) -> tuple[Shop, Orders]:
    """Returns a problem for the oracle, and an order of the tasks of each resource: by workflow."""
    names = [(w.name, t.name) for w in problem.workflows for t in w.tasks]
    tasks = [(w, t) for w in problem.workflows for t in w.tasks]
    orders = [
        [n for n, (_, t) in enumerate(tasks) if t.alternatives[0].primary == each.name]
        for each in problem.resources
    ]
    return (
        Shop(
            [t.work for _, t in tasks],
            [w.earliest_start for w, _ in tasks],
            [[names.index((w.name, each)) for each in t.predecessors] for w, t in tasks],
        ),
        orders,
    )


@pytest.mark.parametrize("seed", range(runs(8, 100)))
def test_moves_are_what_the_longest_paths_say(seed: int) -> None:
    """Moves close no cycle, and the first is one of the least estimate.

    The estimate of an exchange of two neighbours is the longest path through them, and so a lower
    bound of the makespan. What is recomputed after a move is all that has changed.
    """
    rng = np.random.default_rng(seed)
    problem = graph_problem(seed)
    if seed % 2:
        spans = rng.integers(1, 20, (8, 5))
        problem = job_shop(
            [
                [(int(machine), float(spans[job, machine])) for machine in rng.permutation(5)]
                for job in range(8)
            ]
        )
    shop, orders = shop_of(problem)
    walked = CriticalGraph(compile_problem(problem).compiled).walk(orders, 40, seed)
    assert len(walked) > 20
    for number, (path, moved, pivot, behind, estimate, makespan, heads, tails, order) in enumerate(
        walked
    ):
        now, _ = shop.times(orders)
        assert now[path[-1]] + shop.durations[path[-1]] == shop.makespan(orders)
        estimates = {}
        for change in shop.changes(orders, path):
            new, passed = changed(orders, change)
            longest = shop.makespan(new)
            estimates[change] = shop.estimate(orders, change)
            if len(passed) == 2:
                assert estimates[change] == shop.through(new, passed) <= longest
        assert estimates[moved, pivot, behind] == estimate
        assert number or estimate == min(estimates.values())
        orders, _ = changed(orders, (moved, pivot, behind))
        assert (heads, tails) == shop.times(orders)
        assert makespan == shop.makespan(orders)
        place = {task: each for each, task in enumerate(order)}
        assert sorted(order) == list(range(len(place)))
        for task, before in enumerate(shop.predecessors):
            assert all(place[each] < place[task] for each in before)
        for each in orders:
            assert each == sorted(each, key=place.__getitem__)


def test_walks_need_a_job_shop_and_orders_that_agree() -> None:
    """Orders against precedence, and other problems, are refused."""
    graph = CriticalGraph(
        compile_problem(job_shop([[(0, 1.0), (1, 2.0)], [(1, 3.0), (0, 1.0)]])).compiled
    )
    assert graph.walk([[0, 3], [2, 1]], 5, 1)
    with pytest.raises(ValueError, match="contradict"):
        graph.walk([[3, 0], [1, 2]], 5, 1)
    other = CriticalGraph(
        compile_problem(paper_problem("lRsD", 30, np.random.default_rng(1))).compiled
    )
    with pytest.raises(ValueError, match="job shop"):
        other.walk([], 1, 1)


def test_a_long_search_ends_in_time() -> None:
    """Also in the middle of the iterations of one child."""
    rng = np.random.default_rng(1)
    shop = job_shop(
        [
            [(int(machine), float(rng.integers(1, 99))) for machine in rng.permutation(10)]
            for _ in range(20)
        ]
    )
    iterations = 3_000_000
    memetic = Memetic(Searcher.BLOCKS, best_only=True, iterations=iterations)
    found = Search(
        shop,
        budget=Budget(seconds=0.1),
        settings=GleamSettings(population=4, memetic=memetic),
        goals=MAKESPAN_ONLY,
        workers=1,
        shrinking=False,
    ).run()
    assert found.reason == "seconds"
    assert found.progress.evaluations < iterations
    assert plan_violations(shop, found.plan) == []
