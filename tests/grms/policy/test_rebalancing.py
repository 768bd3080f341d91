"""When waiting jobs are offered again."""

import math
from typing import Any

import pytest

from grms.policy.rebalancing import PERIOD_MIN, QUESTIONS_MAX, Rebalancing, period_of


def test_bounds_are_what_the_kernel_takes() -> None:
    """No bound is a large one, no pause none at all."""
    assert Rebalancing(900.0).bounds == (QUESTIONS_MAX, 0.0, False)
    assert Rebalancing(900.0, "widest", 20, 3600.0).bounds == (20, 3600.0, True)


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({"period": 0.5}, "at least 1 s is needed"),
        ({"period": math.inf}, "at least 1 s is needed"),
        ({"period": math.nan}, "at least 1 s is needed"),
        ({"order": "narrowest"}, "order is 'narrowest'; there are: queue, widest"),
        ({"questions": 0}, "questions is 0; it must be at least 1"),
        ({"pause": 899.0}, "it must be at least the period, 900 s"),
        ({"pause": math.inf}, "it must be at least the period, 900 s"),
    ],
)
def test_what_makes_no_sense_is_refused(values: dict[str, Any], text: str) -> None:
    """The error says what is possible."""
    with pytest.raises(ValueError, match=text):
        Rebalancing(**{"period": 900.0, **values})


def test_values_may_be_at_their_bounds() -> None:
    """The shortest period, a pause of one period, and a bound on questions that is none."""
    least = Rebalancing(PERIOD_MIN, questions=QUESTIONS_MAX, pause=PERIOD_MIN)
    assert least.bounds == (QUESTIONS_MAX, PERIOD_MIN, False)
    assert Rebalancing(PERIOD_MIN, questions=1).bounds[0] == 1


def test_the_period_is_the_same_however_it_is_said() -> None:
    """A number of seconds, or with what spares questions; no rounds never come."""
    assert period_of(60.0) == period_of(Rebalancing(60.0, "widest")) == 60.0
    assert period_of(None) == math.inf
