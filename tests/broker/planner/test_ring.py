from hypothesis import given
from hypothesis import strategies as st

from broker.planner._ring import parents_by_step


@given(st.integers(2, 200), st.integers(1, 6))
def test_parents_of_a_step_do_not_touch_each_others_demes(size: int, radius: int) -> None:
    """Every individual is a parent once in a generation; two of a step are far apart."""
    steps = parents_by_step(size, radius)
    assert sorted(parent for parents in steps for parent in parents) == list(range(size))
    for parents in steps:
        for one in parents:
            for other in parents:
                distance = min((one - other) % size, (other - one) % size)
                assert one == other or distance > radius
