import math

import pytest

from broker.model.limits import Limits, with_limits
from broker.model.problem import Problem
from broker.model.resources import Resource
from broker.model.workflow import Alternative, Task, Workflow

SLOW = Resource("slow", performance=1.0, price=1.0)
FAST = Resource("fast", performance=4.0, price=2.0)
BOTH = (Alternative.of("slow"), Alternative.of("fast", "slow"))
DIAMOND = Workflow(
    "w",
    (
        Task("d", 4.0, BOTH[:1], ("b", "c")),
        Task("a", 8.0, BOTH),
        Task("b", 12.0, BOTH, ("a",)),
        Task("c", 4.0, BOTH, ("a",)),
    ),
    earliest_start=100.0,
)


def limited_by(limits: Limits, workflow: Workflow = DIAMOND, now: float = 0.0) -> Workflow:
    (found,) = with_limits(Problem((workflow,), (SLOW, FAST), now), limits).workflows
    return found


@pytest.mark.parametrize(
    ("limits", "due_date", "budget"),
    [
        (Limits(), math.inf, math.inf),
        (Limits(due_factor=2.0, budget_factor=1.5), 100 + 18.0, 33.0),
        (Limits(due_in=50.0, due_factor=2.0, budget=7.0, budget_factor=1.5), 150.0, 7.0),
    ],
)
def test_limits_are_added(limits: Limits, due_date: float, budget: float) -> None:
    """Sums go before factors; both count from the earliest start."""
    limited = limited_by(limits)
    assert (limited.due_date, limited.budget) == (due_date, budget)
    assert limited.tasks == DIAMOND.tasks


def test_own_limits_stay() -> None:
    """What a workflow says itself is not touched, its preference apart."""
    own = Workflow("w", DIAMOND.tasks, due_date=5.0, budget=6.0, preference=0.1)
    limits = Limits(due_in=1.0, budget=1.0, preference=0.9)
    limited = limited_by(limits, own)
    assert (limited.due_date, limited.budget, limited.preference) == (5.0, 6.0, 0.9)


def test_time_counts_from_now_where_that_is_later() -> None:
    """A workflow that could have started long ago starts now."""
    assert limited_by(Limits(due_in=1.0), now=200.0).due_date == 201.0


def test_numbers_at_their_bounds_are_taken() -> None:
    """No time, no money and either end of the preference are limits as any other."""
    limited = limited_by(Limits(due_in=0.0, budget=0.0, preference=0.0))
    assert (limited.due_date, limited.budget, limited.preference) == (100.0, 0.0, 0.0)
    limited = limited_by(Limits(due_factor=0.0, budget_factor=0.0, preference=1.0))
    assert (limited.due_date, limited.budget, limited.preference) == (100.0, 0.0, 1.0)


def test_numbers_out_of_bounds_are_refused() -> None:
    """Negative limits and preferences beyond 1 make no sense."""
    for name, words in (
        ("due_in", "time until the due date"),
        ("due_factor", "factor of the due date"),
        ("budget", "budget"),
        ("budget_factor", "factor of the budget"),
    ):
        for value in (-1.0, math.nan):
            says = f"^the {words} is {value}; it must be at least 0$"
            with pytest.raises(ValueError, match=says):
                Limits(**{name: value})
    for value in (-0.1, 1.5, math.nan):
        with pytest.raises(ValueError, match=f"^the preference is {value}; it is from 0 to 1$"):
            Limits(preference=value)
