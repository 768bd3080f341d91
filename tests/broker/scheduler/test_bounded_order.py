"""The next entry within a bound, beside a list of all of them."""

import math

from hypothesis import given
from hypothesis import strategies as st

from broker.scheduler.bounded_order import BoundedOrder
from tests.examples import FEW

STARTS = st.sampled_from((0.0, 1.0, 2.5))
VALUES = st.integers(0, 4).map(float)


@FEW
@given(
    st.lists(st.tuples(STARTS, VALUES), max_size=40),
    st.sets(st.integers(0, 39)),
    STARTS,
    st.integers(-1, 40),
    VALUES,
)
def test_what_comes_next_is_what_a_list_says(
    entries: list[tuple[float, float]], gone: set[int], start: float, number: int, bound: float
) -> None:
    """Also after entries have been removed, and where none of a key was there."""
    order = BoundedOrder[str]()
    plain = {}
    for each, (begin, value) in enumerate(entries):
        order.add((begin, each), value, str(each))
        plain[begin, each] = value
    for each in gone:
        for begin in (0.0, 1.0, 2.5):
            order.remove((begin, each))
            plain.pop((begin, each), None)
    assert bool(order) == bool(plain)
    behind = sorted(key for key in plain if key > (start, number) and plain[key] <= bound)
    expected = (behind[0], str(behind[0][1])) if behind else None
    assert order.after((start, number), bound) == expected


def test_of_many_entries_few_are_looked_at() -> None:
    """The tree stays flat where entries come in their order, as a plan's do."""
    order = BoundedOrder[int]()
    for number in range(4096):
        order.add((float(number), number), 1.0, number)

    def depth(node: object) -> int:
        if node is None:
            return 0
        return 1 + max(depth(getattr(node, side)) for side in ("left", "right"))

    assert depth(order._root) < 5 * math.log2(4096)
