"""Plans as the kernel builds them."""

from collections.abc import Sequence

import numpy as np

from broker.model.plan import Plan
from broker.model.problem import Problem
from broker.planner._builder import Workspace
from broker.planner.compilation import compile_problem
from tests.oracles.plan_checker import plan_violations


def built(
    problem: Problem, strategy: int = 3, order: Sequence[int] = (), *, complete: bool = True
) -> Plan:
    """Returns the plan of all tasks in an order, theirs by default; `complete` if all have to have places."""
    compilation = compile_problem(problem)
    count = len(compilation.tasks)
    workspace = Workspace(compilation.compiled, 100.0)
    for _ in range(2):  # the second time where links have been used before
        workspace.build(np.array(order or range(count), np.int32), strategy)
    columns = workspace.columns
    plan = compilation.plan(
        columns["choice"][:count], columns["start"][:count], columns["order"][: workspace.planned]
    )
    assert plan_violations(problem, plan, complete=complete) == []
    return plan
