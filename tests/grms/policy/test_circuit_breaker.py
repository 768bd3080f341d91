"""When exchange stands still, by what it has brought own users."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grms.policy.circuit_breaker import CircuitBreaker

gains = st.floats(-2.0, 1.0) | st.just(math.nan)


@given(st.integers(0, 300), gains, st.floats(0.0, 1.0))
def test_it_stops_what_costs_more_than_it_may_and_nothing_else(
    jobs: int, gain: float, cost: float
) -> None:
    """Of too few jobs, and of none, nothing can be said."""
    expected = jobs >= 100 and not math.isnan(gain) and -gain > cost
    assert CircuitBreaker(cost=cost).stops(jobs, gain) == expected


def test_what_it_may_cost_is_no_breach() -> None:
    """The bound itself is allowed; a gain always is."""
    circuit_breaker = CircuitBreaker(cost=0.25, jobs=1)
    assert not circuit_breaker.stops(1, -0.25)
    assert circuit_breaker.stops(1, -0.2501)
    assert not CircuitBreaker(cost=0.0).stops(100, 0.0)
    assert CircuitBreaker(cost=0.0).stops(100, -1e-9)


def test_the_first_look_that_stops_exchange_is_kept_until_one_lets_it_go_on() -> None:
    """Each look replaces the numbers of the one before."""
    circuit_breaker = CircuitBreaker(cost=0.02, jobs=10)
    found, since = None, []
    for now, jobs, gain in (
        (1.0, 9, -0.5),
        (2.0, 10, -0.5),
        (3.0, 11, -0.03),
        (4.0, 12, 0.1),
        (5.0, 12, -0.9),
        (6.0, 0, math.nan),
    ):
        found = circuit_breaker.found(found, now, jobs, gain)
        assert (found.looked, found.jobs) == (now, jobs)
        assert found.stops == circuit_breaker.stops(jobs, gain)
        since.append(found.stopped_since if found.stops else None)
    assert since == [None, 2.0, 2.0, None, 5.0, None]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"cost": -0.01}, r"^cost is -0\.01; it must be finite and at least 0$"),
        ({"cost": math.nan}, r"^cost is nan; it must be finite and at least 0$"),
        ({"cost": math.inf}, r"^cost is inf; it must be finite and at least 0$"),
        ({"jobs": 0}, r"^jobs is 0; it must be at least 1$"),
        ({"window": 0.0}, r"^window is 0\.0; it must be finite and above 0$"),
        ({"window": math.inf}, r"^window is inf; it must be finite and above 0$"),
        ({"period": math.nan}, r"^period is nan; it must be finite and above 0$"),
        ({"since": math.nan}, r"^since is nan; it must be a moment$"),
        ({"since": math.inf}, r"^since is inf; it must be a moment$"),
    ],
)
def test_numbers_out_of_their_bounds_are_named(changes: dict[str, float], said: str) -> None:
    """Before anything is decided by them."""
    with pytest.raises(ValueError, match=said):
        CircuitBreaker(**changes)  # type: ignore[arg-type]  # each is a number


def test_numbers_may_be_just_within_their_bounds() -> None:
    """No cost, one job, and spans of less than a second."""
    circuit_breaker = CircuitBreaker(cost=0.0, jobs=1, window=0.5, period=0.5)
    assert (
        circuit_breaker.cost,
        circuit_breaker.jobs,
        circuit_breaker.window,
        circuit_breaker.period,
    ) == (0.0, 1, 0.5, 0.5)
