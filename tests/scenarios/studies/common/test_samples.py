import os
import statistics

from hypothesis import given
from hypothesis import strategies as st

from scenarios.studies.common.samples import Spread, machine_words


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=9))
def test_a_spread_is_median_and_ends(values: list[float]) -> None:
    """However the values are ordered."""
    spread = Spread.of(values)
    assert spread == Spread.of(reversed(values))
    assert spread.low <= spread.median <= spread.high
    assert spread.median == statistics.median(values)
    assert (spread.low, spread.high, spread.count) == (min(values), max(values), len(values))


def test_a_machine_has_a_name_and_processors() -> None:
    """Those this process may use count."""
    assert machine_words().endswith(f", {len(os.sched_getaffinity(0))} processors")
