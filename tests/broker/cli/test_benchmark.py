import math

import pytest

from broker.cli.benchmark import benchmark_problem, with_hard_limits
from broker.model.heft import heft
from broker.model.instances import critical_path
from broker.model.problem import Problem
from broker.planner.planning import Planner


def tightness(problem: Problem) -> float:
    """Returns what workflows are given over the shortest that they can take, on average."""
    given = [
        (workflow.due_date - problem.now) / critical_path(problem, workflow)
        for workflow in problem.workflows
    ]
    return math.fsum(given) / len(given)


def test_every_workflow_has_limits() -> None:
    """Harder ones for a larger reduction, but never impossible."""
    loose, tight = (benchmark_problem("sRlD", 60, reduction=each) for each in (0.0, 0.5))
    for problem in (loose, tight):
        assert len(problem.resources) == 6
        assert sum(len(workflow.tasks) for workflow in problem.workflows) == 60
        assert all(workflow.budget < math.inf for workflow in problem.workflows)
        assert all(
            workflow.due_date > problem.now + critical_path(problem, workflow)
            for workflow in problem.workflows
        )
    assert 1 < tightness(tight) < tightness(loose)


def test_the_heuristics_just_cannot_keep_them() -> None:
    """Without reduction the best of them nearly does; with a little, none does."""
    best = Planner(benchmark_problem("lRlD", 60, reduction=0.0)).heuristics[0].worth
    assert best.late + best.over_budget <= 2
    planner = Planner(benchmark_problem("lRlD", 60, reduction=0.1))
    assert not any(each.worth.keeps_all_limits for each in planner.heuristics)
    with pytest.raises(ValueError, match=r"the reduction is 1\.5; from 0 to 1"):
        benchmark_problem("lRlD", 60, reduction=1.5)


def test_limits_start_from_an_old_plan_too() -> None:
    """Its sequence adds heuristics; what has begun counts from its beginning."""
    problem = benchmark_problem("sRlD", 40)
    plan = heft(problem)
    now = plan.makespan_end / 3
    fixed = tuple(each for each in plan if each.start < now)
    running = Problem(problem.workflows, problem.resources, now, fixed)
    limited = with_hard_limits(running, 0.0, old=plan)
    planner = Planner(limited, old=plan)
    assert len(planner.heuristics) == 18
    assert planner.heuristics[0].worth.late + planner.heuristics[0].worth.over_budget <= 3


def test_the_seed_says_it_all() -> None:
    """The same seed gives the same problem, another one another."""
    problems = [benchmark_problem("lRsD", 20, resources=4, seed=seed) for seed in (3, 3, 4)]
    assert problems[0] == problems[1] != problems[2]


def test_what_there_is_not_is_refused() -> None:
    """The text names the classes."""
    with pytest.raises(ValueError, match="sRsD, sRlD, lRsD, lRlD"):
        benchmark_problem("mRmD", 20)
