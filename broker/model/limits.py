"""Due dates and budgets for workflows without, as multiples of their least needs.

No plan can end a workflow sooner than its critical path on its tasks' fastest resources, nor make it
cheaper than each task on its cheapest resource (at mean prices, if they vary). A factor says how far
above that the limit lies: near 1 hardly any plan keeps it, large ones bind none.
"""

import math
from dataclasses import dataclass, replace

from broker.model.instances import cheapest_cost, critical_path
from broker.model.problem import Problem
from broker.model.workflow import Workflow


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits for workflows without their own.

    Attributes:
        due_in: seconds from the earliest start, or from now if that is later.
        due_factor: the same as a multiple of the critical path; `due_in` takes precedence.
        budget_factor: multiple of the least cost; `budget` takes precedence.
        preference: from 0, fast, to 1, cheap, for every workflow; `None` changes nothing.
    """

    due_in: float | None = None
    due_factor: float | None = None
    budget: float | None = None
    budget_factor: float | None = None
    preference: float | None = None

    def __post_init__(self) -> None:
        for word, value in (
            ("time until the due date", self.due_in),
            ("factor of the due date", self.due_factor),
            ("budget", self.budget),
            ("factor of the budget", self.budget_factor),
        ):
            if value is not None and not value >= 0:
                raise ValueError(f"the {word} is {value}; it must be at least 0")
        if self.preference is not None and not 0 <= self.preference <= 1:
            raise ValueError(f"the preference is {self.preference}; it is from 0 to 1")


def with_limits(problem: Problem, limits: Limits) -> Problem:
    """Returns the problem with limits added to workflows that had none."""
    return replace(
        problem, workflows=tuple(_limited(problem, each, limits) for each in problem.workflows)
    )


def _limited(problem: Problem, workflow: Workflow, limits: Limits) -> Workflow:
    begin = max(problem.now, workflow.earliest_start)
    due_date, budget = workflow.due_date, workflow.budget
    if due_date == math.inf and limits.due_in is not None:
        due_date = begin + limits.due_in
    elif due_date == math.inf and limits.due_factor is not None:
        due_date = begin + limits.due_factor * critical_path(problem, workflow)
    if budget == math.inf and limits.budget is not None:
        budget = limits.budget
    elif budget == math.inf and limits.budget_factor is not None:
        budget = limits.budget_factor * cheapest_cost(problem, workflow)
    preference = workflow.preference if limits.preference is None else limits.preference
    return replace(workflow, due_date=due_date, budget=budget, preference=preference)
