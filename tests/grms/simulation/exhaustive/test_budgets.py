"""What may still go wrong, as small numbers."""

import pytest

from grms.simulation.exhaustive.budgets import Budgets


def test_a_budget_is_paid_from() -> None:
    """What is left is a budget too; what it does not have cannot be paid."""
    budgets = Budgets({"loss": 2, "busy": 1, "late": 0})
    loss, both = budgets.cost("loss"), budgets.cost("busy", "loss")
    once = budgets.left[loss][0]
    twice = budgets.left[loss][once]
    assert len({0, once, twice}) == 3
    assert budgets.left[loss][twice] == -1
    assert budgets.left[both][once] == budgets.left[budgets.cost("busy")][twice]
    assert budgets.left[both][twice] == -1


def test_the_order_of_what_is_paid_does_not_matter() -> None:
    """Nor does a fault without a name, which costs nothing."""
    budgets = Budgets({"loss": 1, "busy": 1})
    assert budgets.cost("busy", "loss") == budgets.cost("loss", "", "busy")
    assert budgets.cost() == budgets.cost("") == 0


def test_what_can_never_be_paid_has_no_cost() -> None:
    """Such moves are left out from the beginning."""
    budgets = Budgets({"loss": 1})
    assert budgets.cost("crash 0") == -1
    assert budgets.cost("loss", "loss") == -1


def test_too_many_budgets_are_refused() -> None:
    """Their numbers would not fit into a state."""
    with pytest.raises(ValueError, match="at most"):
        Budgets({"loss": 300, "busy": 300})


def test_a_budget_covers_those_with_no_more_of_anything() -> None:
    """Itself among them, and none that has more of one fault though less of another."""
    budgets = Budgets({"loss": 2, "busy": 1})
    loss, busy = budgets.cost("loss"), budgets.cost("busy")
    without_loss = budgets.left[loss][budgets.left[loss][0]]
    without_busy = budgets.left[busy][0]
    nothing = budgets.left[busy][without_loss]
    assert budgets.below(0) == (1 << 6) - 1
    assert budgets.below(without_loss) == 1 << without_loss | 1 << nothing
    assert not budgets.below(without_busy) >> without_loss & 1
    assert budgets.below(nothing) == 1 << nothing
