import math

import pytest

from broker.benchmark import benchmark_problem
from broker.instances import critical_path
from broker.problem import Problem


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


def test_the_seed_says_it_all() -> None:
    """The same seed gives the same problem, another one another."""
    problems = [benchmark_problem("lRsD", 20, resources=4, seed=seed) for seed in (3, 3, 4)]
    assert problems[0] == problems[1] != problems[2]


def test_what_there_is_not_is_refused() -> None:
    """The text names the classes."""
    with pytest.raises(ValueError, match="sRsD, sRlD, lRsD, lRlD"):
        benchmark_problem("mRmD", 20)
