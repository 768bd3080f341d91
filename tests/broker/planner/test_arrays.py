from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from broker.model.problem import Problem
from broker.model.resources import PriceRule, Resource, WeeklyWindow
from broker.model.workflow import Alternative, Task, Workflow
from broker.planner.arrays import Prices, bit_sets, concatenated
from tests.broker.random_problems import HOUR, NOW

LISTS = st.lists(st.lists(st.integers(0, 191), max_size=5, unique=True), max_size=5)


@given(LISTS)
def test_lists_are_found_again_in_all_of_them(lists: list[list[int]]) -> None:
    """Also empty ones, and where there is none at all; kernels find an element in any case."""
    begin, flat = concatenated(lists)
    assert len(flat) >= 1
    found = [flat[first:last].tolist() for first, last in pairwise(begin)]
    assert found == lists


@given(LISTS)
def test_sets_of_bits_hold_their_numbers(lists: list[list[int]]) -> None:
    """Bit k of word w is number 64 w + k."""
    sets = bit_sets([np.array(each, np.int64) for each in lists], 3).reshape(-1, 3)
    assert len(sets) == max(1, len(lists))
    for row, each in zip(sets.tolist(), lists, strict=False):
        assert [n for n in range(192) if row[n // 64] >> (n % 64) & 1] == sorted(each)


def test_the_price_of_work_is_averaged_over_the_week() -> None:
    """Over all resources of an alternative, for what the primary one does in a second."""
    half = PriceRule(0.0, WeeklyWindow(0, 12 * HOUR))
    pool = (Resource("a", performance=4, price=2, price_rules=(half,)), Resource("b", price=3))
    flow = Workflow("w", (Task("t", 1.0, (Alternative.of("a", "b"),)),))
    problem = Problem((flow,), pool, NOW)
    prices, (alternative,) = Prices(problem), flow.tasks[0].alternatives
    assert prices.of_work(alternative) == (1 + 3) / 4
    assert prices.lowest_of_work(alternative) == (0 + 3) / 4
