import math

import pytest

from broker.model.measures import measure
from broker.model.plan import Placement, Plan
from broker.model.problem import Problem
from broker.model.resources import Resource
from broker.model.workflow import Alternative, Demand, Task, Workflow

R = (Alternative.of("r"),)
PROBLEM = Problem(
    (
        Workflow("v", (Task("a", 4.0, R), Task("b", 4.0, R)), due_date=16.0, budget=6.0),
        Workflow("w", (Task("x", 2.0, R),), earliest_start=12.0, due_date=20.0),
    ),
    (Resource("r", capacity=2), Resource("s")),
    now=10.0,
)


def place(workflow: str, task: str, start: float, end: float, cost: float) -> Placement:
    return Placement(workflow, task, (Demand("r"),), start, end, cost)


def test_every_figure_is_what_it_says() -> None:
    """Checked by hand: 10 of 30 unit-seconds, one workflow late by 4 and over by 2."""
    plan = Plan(
        (place("v", "a", 10, 14, 4.0), place("v", "b", 16, 20, 4.0), place("w", "x", 14, 16, 1.0))
    )
    found = measure(PROBLEM, plan)
    assert (found.makespan, found.cost, found.completion) == (10.0, 9.0, (10 + 4) / 2)
    assert (found.late, found.tardiness, found.over_budget, found.overspent) == (1, 4.0, 1, 2.0)
    assert (found.keeping, found.unplanned) == (1, 0)
    assert found.utilization == pytest.approx(10 / 30)


def test_what_has_no_place_never_ends() -> None:
    """A plan that leaves a task out is late without end."""
    found = measure(PROBLEM, Plan((place("w", "x", 14, 16, 1.0),), (("v", "a"), ("v", "b"))))
    assert (found.makespan, found.completion, found.tardiness) == (math.inf,) * 3
    assert (found.late, found.unplanned) == (1, 2)


def test_what_was_before_now_is_not_in_use() -> None:
    """A fixed task counts from now on; a plan that ends in the past uses nothing."""
    plan = Plan((place("v", "a", 6, 12, 6.0),), (("v", "b"), ("w", "x")))
    assert measure(PROBLEM, plan).utilization == pytest.approx(2 / 6)
    over = Plan((place("v", "a", 2, 8, 6.0),))
    assert measure(PROBLEM, over).utilization == 0.0
    assert measure(PROBLEM, over).makespan == 0.0


def test_a_plan_that_ends_now_uses_nothing() -> None:
    """There is no time left of which it could take a share."""
    found = measure(PROBLEM, Plan((place("v", "a", 6, 10, 4.0),)))
    assert (found.utilization, found.makespan) == (0.0, 0.0)
