"""Problems of the paper's benchmark classes with due dates and budgets, from a seed."""

import math
from dataclasses import replace
from typing import Final

import numpy as np

from broker.model.instances import cheapest_cost, critical_path, paper_problem
from broker.model.plan import Plan, WorkflowOutcome
from broker.model.problem import Problem
from broker.planner.planning import Planner

REDUCTION: Final = 0.08
"""Default by which limits are tighter than what the best heuristic can keep."""

LEAST: Final = 1.1
"""Due dates and budgets are at least this multiple of what is possible at all."""


def benchmark_problem(
    benchmark: str,
    tasks: int,
    *,
    resources: int | None = None,
    reduction: float = REDUCTION,
    seed: int = 1,
) -> Problem:
    """Returns a problem of one of the paper's classes (004, section 3.5).

    `benchmark` is "sRsD", "sRlD", "lRsD" or "lRlD", `tasks` counts those of all workflows, `resources`
    defaults to a tenth of them, and `reduction` (0 to 1) says how much tighter limits are than the best
    heuristic can keep.

    Raises:
        ValueError: there is no such class, no task, or the reduction is out of bounds.
    """
    problem = paper_problem(benchmark, tasks, np.random.default_rng(seed), resources=resources)
    return with_hard_limits(problem, reduction)


def with_hard_limits(problem: Problem, reduction: float, *, old: Plan | None = None) -> Problem:
    """Returns a problem whose limits the heuristics just cannot keep (004, section 3.5).

    Due dates and budgets are the heuristics' mean results times a factor shared by all workflows. It is
    just large enough that one heuristic keeps all limits, and then reduced. No limit is below what is
    possible at all, plus a tenth.

    Existing due dates matter, by their order, to one heuristic; `old` adds heuristics.

    Raises:
        ValueError: the reduction is out of bounds.
    """
    if not 0 <= reduction <= 1:
        raise ValueError(f"the reduction is {reduction}; from 0 to 1")
    if math.inf in {workflow.due_date for workflow in problem.workflows}:
        # One of the heuristics uses due dates, so there must be some.
        problem = _limited(problem, _averages(problem, _outcomes(problem, old)), 1.0)
    outcomes = _outcomes(problem, old)
    averages = _averages(problem, outcomes)
    needed = min(
        max(
            max((each.completion - begin) / span, each.cost / cost)
            for each, (begin, span, cost) in zip(found, averages, strict=True)
        )
        for found in outcomes
    )
    return _limited(problem, averages, needed * (1 - reduction))


def _outcomes(problem: Problem, old: Plan | None) -> list[list[WorkflowOutcome]]:
    planner = Planner(problem, old=old)
    plans = [
        planner.plan(each.heuristic.genes, each.heuristic.strategy)[0]
        for each in planner.heuristics
    ]
    return [plan.outcomes(problem.workflows) for plan in plans]


def _averages(
    problem: Problem, outcomes: list[list[WorkflowOutcome]]
) -> list[tuple[float, float, float]]:
    """Returns begin, seconds until completion and cost of each workflow, over all heuristics."""
    found = []
    for workflow, each in zip(problem.workflows, zip(*outcomes, strict=True), strict=True):
        # A partly fixed workflow began before now.
        begin = min([workflow.earliest_start, *(outcome.start for outcome in each)])
        span = math.fsum(outcome.completion - begin for outcome in each) / len(each)
        found.append((begin, span, math.fsum(outcome.cost for outcome in each) / len(each)))
    return found


def _limited(
    problem: Problem, averages: list[tuple[float, float, float]], factor: float
) -> Problem:
    return replace(
        problem,
        workflows=tuple(
            replace(
                workflow,
                due_date=begin + max(span * factor, LEAST * critical_path(problem, workflow)),
                budget=max(cost * factor, LEAST * cheapest_cost(problem, workflow)),
            )
            for workflow, (begin, span, cost) in zip(problem.workflows, averages, strict=True)
        ),
    )
