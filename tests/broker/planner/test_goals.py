from typing import Any

import pytest

from broker.planner.goals import CRITERIA, MAKESPAN_ONLY, Goal, Goals


def test_defaults_weigh_everything_once() -> None:
    """Weights of the defaults, and of a job shop's goals, sum to 1, in the order of the criteria."""
    for goals in (Goals(), MAKESPAN_ONLY):
        assert sum(goal.weight for goal in goals.by_criterion()) == pytest.approx(1)
    assert MAKESPAN_ONLY.by_criterion()[CRITERIA.index("makespan")].weight == 1


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Goal(1.5), "weight is 1.5"),
        (lambda: Goal(0.5, -1), "priority is -1"),
        (lambda: Goal(0.5, 5), "priority is 5"),
        (lambda: Goal(0.5, 0, 2), "threshold is 2"),
        (lambda: Goals(time=Goal(1.0)), "weights sum to 1.65"),
        (lambda: Goals(makespan=Goal(0.12, 2), utilization=Goal(0.08, 2)), "count up from 0"),
        (lambda: Goals(first_offender=0), "first_offender is 0"),
        (lambda: Goals(offenders_third=0), "offenders_third is 0"),
        (lambda: Goals(tardiness_third=float("nan")), "tardiness_third is nan"),
        (lambda: Goals(over_budget_third=float("inf")), "over_budget_third is inf"),
        (lambda: Goals(lost_limits=1.5), "lost_limits is 1.5"),
        (lambda: Goals(stability=1.0), "stability is 1.0"),
    ],
)
def test_numbers_out_of_bounds_are_refused(make: Any, message: str) -> None:
    """The error has the value and its bound."""
    with pytest.raises(ValueError, match=r".") as error:
        make()
    assert message in str(error.value)
