"""Problems of the paper's benchmark classes with due dates and budgets, from a seed."""

import numpy as np

from broker.instances import paper_problem, with_limits
from broker.planner.planning import Planner
from broker.problem import Problem


def benchmark_problem(
    benchmark: str,
    tasks: int,
    *,
    resources: int | None = None,
    reduction: float = 0.1,
    seed: int = 1,
) -> Problem:
    """Returns a problem of one of the paper's classes (004, section 3.5).

    Args:
        benchmark: "sRsD", "sRlD", "lRsD" or "lRlD".
        tasks: in all workflows together.
        resources: how many; a tenth of the tasks if not given.
        reduction: how much due dates and budgets are below what the heuristics of the first
            planning achieve on average, from 0 to 1; never below what is possible at all.
        seed: of all chance.

    Raises:
        ValueError: there is no such class, no task, or the reduction is out of bounds.
    """
    problem = paper_problem(benchmark, tasks, np.random.default_rng(seed), resources=resources)
    planner = Planner(problem)
    plans = [
        planner.plan(each.heuristic.genes, each.heuristic.strategy)[0]
        for each in planner.heuristics
    ]
    return with_limits(problem, plans, reduction)
