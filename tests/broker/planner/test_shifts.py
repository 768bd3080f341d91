import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.model.instances import flexible_job_shop, job_shop, paper_problem
from broker.model.problem import Problem
from broker.planner._builder import Workspace
from broker.planner._critical import CriticalGraph, choices_by_task, is_flexible
from broker.planner.compilation import compile_problem
from broker.planner.gleam import GleamSettings
from broker.planner.goals import MAKESPAN_ONLY
from broker.planner.memetic import Memetic, Searcher
from broker.planner.search import Budget, Found, Search
from tests.broker.random_problems import timed_problems
from tests.oracles.plan_checker import plan_violations

Jobs = list[list[list[tuple[int, float]]]]

BLOCKS = GleamSettings(
    population=6, memetic=Memetic(Searcher.BLOCKS, best_only=True, iterations=300)
)


def random_jobs(seed: int, jobs: int, machines: int) -> Jobs:
    """Returns a flexible job shop of chance; any machine can do some operations."""
    rng = np.random.default_rng(seed)
    return [
        [
            [
                (int(machine), float(rng.integers(1, 10)))
                for machine in rng.permutation(machines)[: rng.integers(1, machines + 1)]
            ]
            for _ in range(rng.integers(1, machines + 2))
        ]
        for _ in range(jobs)
    ]


def searched(problem: Problem, evaluations: int, **given: object) -> Found:
    """Returns what tabu search within GLEAM finds."""
    settings = {"settings": BLOCKS, "goals": MAKESPAN_ONLY, "seed": 1, "workers": 1, **given}
    return Search(problem, budget=Budget(np.inf, evaluations), **settings).run()  # type: ignore[arg-type]  # by name


def shortest(jobs: Jobs, machines: int) -> float:
    """Returns the least makespan: every choice and every order of operations, built one by one."""
    best = np.inf

    def go_on(done: list[int], ready: list[float], free: list[float]) -> None:
        nonlocal best
        if max(ready) >= best:
            return
        if all(step == len(job) for step, job in zip(done, jobs, strict=True)):
            best = max(ready)
            return
        for number, job in enumerate(jobs):
            if done[number] == len(job):
                continue
            for machine, seconds in job[done[number]]:
                end = max(ready[number], free[machine]) + seconds
                go_on(
                    [step + (each == number) for each, step in enumerate(done)],
                    [end if each == number else old for each, old in enumerate(ready)],
                    [end if each == machine else old for each, old in enumerate(free)],
                )

    go_on([0] * len(jobs), [0.0] * len(jobs), [0.0] * machines)
    return best


@pytest.mark.parametrize("seed", range(12))
def test_small_shops_are_solved(seed: int) -> None:
    """As short as any order of any choices."""
    jobs = random_jobs(seed, 3, 2)
    problem = flexible_job_shop(jobs, 2)
    found = searched(problem, 3000)
    assert plan_violations(problem, found.plan) == []
    assert found.plan.makespan_end == shortest(jobs, 2)


@given(timed_problems(plain=True))
def test_plans_of_any_machines_are_valid(problem: Problem) -> None:
    """Also with set-ups, precedence of any kind, and things fixed, where there is no tabu search."""
    found = searched(problem, 500)
    if not found.plan.unplanned:
        assert plan_violations(problem, found.plan) == []


def test_runs_go_on_as_if_not_stopped() -> None:
    """Choices are saved with the genes; threads do not matter."""
    problem = flexible_job_shop(random_jobs(5, 12, 4), 4)
    whole = searched(problem, 30_000)
    half = searched(problem, 10_000)
    assert half.state["assigned"]
    again = searched(problem, 30_000, resume=half.state)
    assert again.plan == whole.plan == searched(problem, 30_000, workers=2).plan
    assert again.progress.evaluations == whole.progress.evaluations


def test_what_a_flexible_job_shop_is() -> None:
    """Exclusive resources, one at a time; memory only where it is asked for."""
    flexible = compile_problem(flexible_job_shop(random_jobs(1, 4, 3), 3)).compiled
    assert is_flexible(flexible)
    assert CriticalGraph(flexible, True).usable
    assert not CriticalGraph(flexible).usable
    plain = compile_problem(job_shop([[(0, 1.0), (1, 2.0)]])).compiled
    assert is_flexible(plain)  # of one choice each
    assert CriticalGraph(plain).usable
    assert not is_flexible(compile_problem(job_shop([[(0, 1.0), (1, 0.0)]])).compiled)
    many = compile_problem(paper_problem("lRsD", 50, np.random.default_rng(1))).compiled
    assert sum(map(len, choices_by_task(many))) > 50


def test_choices_are_checked() -> None:
    """Each is one of its task's."""
    compilation = compile_problem(flexible_job_shop([[[(0, 2.0), (1, 5.0)]], [[(0, 3.0)]]], 2))
    workspace = Workspace(compilation.compiled, 10.0)
    genes = np.array([0, 1], np.int32)
    slow = next(n for n, each in enumerate(compilation.choices) if each.seconds == 5)
    other = next(n for n, each in enumerate(compilation.choices) if each.seconds == 3)
    workspace.build(genes, 0, np.array([slow, other], np.int32))
    assert workspace.columns["end"].tolist() == [5.0, 3.0]
    for wrong in ([slow, slow], [9, other], [-1, other], [slow]):
        with pytest.raises(ValueError, match="choice"):
            workspace.build(genes, 0, np.array(wrong, np.int32))


@given(st.integers(0, 2**32))
def test_more_iterations_are_no_worse(seed: int) -> None:
    """The best schedule so far stays."""
    problem = flexible_job_shop(random_jobs(seed, 5, 3), 3)
    few = searched(problem, 200)
    many = searched(problem, 3000, resume=few.state)
    assert many.plan.makespan_end <= few.plan.makespan_end
