import math
from typing import Any

import pytest

from broker.model.plan import COST_TOLERANCE, TIME_TOLERANCE, Placement, Plan
from broker.model.workflow import Alternative, Demand, Task, Workflow

ON_A = Alternative.of("a")


def placement(task: str, start: float, end: float, cost: float = 1.0) -> Placement:
    """Returns a placement of workflow w on resource a."""
    return Placement("w", task, ON_A.demands, start, end, cost)


def workflow(**limits: Any) -> Workflow:
    """Returns a workflow of two tasks."""
    tasks = (Task("x", 1.0, (ON_A,)), Task("y", 1.0, (ON_A,), ("x",)))
    return Workflow("w", tasks, **limits)


def test_placements_are_in_order_of_time() -> None:
    """A plan sorts by start, workflow and task, and finds placements by name."""
    late, early = placement("y", 5, 7), placement("x", 1, 3)
    plan = Plan((late, early))
    assert list(plan) == [early, late]
    assert len(plan) == 2
    assert plan.placement("w", "y") == late
    assert plan.placement("w", "z") is None
    assert plan.makespan_end == 7
    assert Plan(()).makespan_end == -math.inf


def test_an_outcome_counts_what_is_beyond_the_limits() -> None:
    """Tardiness and excess are zero within the limits and the difference beyond."""
    plan = Plan((placement("x", 1, 3, 2.0), placement("y", 5, 7, 2.5)))
    (kept,) = plan.outcomes([workflow(due_date=7, budget=4.5)])
    assert (kept.start, kept.completion, kept.cost) == (1, 7, 4.5)
    assert kept.keeps_its_limits
    (missed,) = plan.outcomes([workflow(due_date=6, budget=4)])
    assert (missed.tardiness, missed.over_budget) == (1, 0.5)
    assert not missed.keeps_its_limits


def test_both_limits_have_to_be_kept() -> None:
    """A workflow that misses only one of them does not keep its limits."""
    plan = Plan((placement("x", 1, 3, 2.0), placement("y", 5, 7, 2.5)))
    (late,) = plan.outcomes([workflow(due_date=6, budget=4.5)])
    assert (late.tardiness, late.over_budget, late.keeps_its_limits) == (1, 0, False)
    (dear,) = plan.outcomes([workflow(due_date=7, budget=4)])
    assert (dear.tardiness, dear.over_budget, dear.keeps_its_limits) == (0, 0.5, False)


def test_rounding_does_not_count() -> None:
    """The tolerances are within the limits, and what is beyond them counts in full."""
    limits = workflow(due_date=7, budget=4)
    time, cost = 7 + TIME_TOLERANCE, 4 + 4 * COST_TOLERANCE
    (kept,) = Plan((placement("x", 1, 3, 0), placement("y", 5, time, cost))).outcomes([limits])
    assert (kept.tardiness, kept.over_budget) == (0, 0)
    time, cost = math.nextafter(time, 8), math.nextafter(cost, 5)
    (missed,) = Plan((placement("x", 1, 3, 0), placement("y", 5, time, cost))).outcomes([limits])
    assert (missed.tardiness, missed.over_budget) == (time - 7, cost - 4)


def test_a_task_without_a_place_is_never_done() -> None:
    """Completion and tardiness are infinite then."""
    plan = Plan((placement("x", 1, 3),), unplanned=(("w", "y"),))
    (outcome,) = plan.outcomes([workflow(due_date=6)])
    assert outcome.completion == outcome.tardiness == math.inf


def test_a_task_has_one_place() -> None:
    """Two placements of one task are an error that names it."""
    with pytest.raises(ValueError, match=r"^placed twice: w/x$"):
        Plan((placement("x", 1, 3), placement("once", 1, 3), placement("x", 4, 6)))


def test_a_placement_knows_its_resources() -> None:
    """Names come in the order of the demands."""
    both = Placement("w", "x", (Demand("b", 2), Demand("a")), 0, 1, 0)
    assert both.resources == ("b", "a")
    assert both.key == ("w", "x")
