"""A small problem that everything which plans can be tried on: it takes milliseconds."""

from typing import Any

from broker.model.problem import Problem
from broker.model.resources import Resource
from broker.model.workflow import Alternative, Task, Workflow

POOL = (
    Resource("slow", price=1.0),
    Resource("fast", performance=2.0, price=4.0),
    Resource("wide", performance=0.5, price=0.25, capacity=3),
)
EVERYWHERE = tuple(Alternative.of(each.name) for each in POOL)


def flow(name: str, count: int, **limits: Any) -> Workflow:
    """Returns a workflow: every task but the first waits for the one before the previous."""
    tasks = tuple(
        Task(f"t{n}", 2.0 + n % 3, EVERYWHERE, (f"t{n - 2}",) if n > 1 else ())
        for n in range(count)
    )
    return Workflow(name, tasks, **limits)


SMALL = Problem(
    (
        flow("alpha", 6, due_date=12.0, budget=30.0),
        flow("beta", 4, due_date=6.0, budget=3.0),
        flow("gamma", 2),
    ),
    POOL,
)
