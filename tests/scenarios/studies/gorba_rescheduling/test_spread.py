import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scenarios.studies.gorba_rescheduling.spread import Spread


def test_intervals_are_students() -> None:
    """Checked by hand: five values of standard deviation √2.5, t = 4.604."""
    found = Spread.of([1.0, 2.0, 3.0, 4.0, 5.0])
    assert found.mean == 3.0
    assert found.half == pytest.approx(4.604 * math.sqrt(2.5 / 5), rel=1e-4)
    assert (found.low, found.high) == (3.0 - found.half, 3.0 + found.half)


def test_one_run_has_no_interval() -> None:
    """Its width is not known, and nothing is drawn."""
    found = Spread.of([7.0])
    assert (found.low, found.mean, found.high, found.half) == (7.0, 7.0, 7.0, math.inf)
    with pytest.raises(ValueError, match="no values"):
        Spread.of([])


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=40))
def test_the_mean_is_inside(values: list[float]) -> None:
    """Whatever the values."""
    found = Spread.of(values)
    assert found.low <= found.mean <= found.high
    assert found.count == len(values)
