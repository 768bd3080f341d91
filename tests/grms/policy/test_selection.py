import pytest
from hypothesis import given
from hypothesis import strategies as st

from grms.policy.selection import nearest_size
from grms.policy.transfer import AcceptWhenFit, AlwaysKeep, TransferPolicy

SMALL, LARGE = AcceptWhenFit(), AlwaysKeep()


@pytest.mark.parametrize(("processors", "expected"), [(1, SMALL), (128, SMALL), (4096, LARGE)])
def test_the_nearest_size_is_chosen(processors: int, expected: TransferPolicy) -> None:
    """A partner is dealt with as the known partner of the most similar size."""
    assert nearest_size({430: LARGE, 100: SMALL}, processors) is expected


def test_of_two_as_near_the_smaller_is_chosen() -> None:
    """The tie rule does not depend on the pool's order."""
    assert nearest_size({300: LARGE, 100: SMALL}, 200) is SMALL
    assert nearest_size({100: SMALL, 300: LARGE}, 200) is SMALL


@given(st.dictionaries(st.integers(1, 500), st.just(SMALL), min_size=1), st.integers(1, 500))
def test_a_known_size_gets_its_own_policy(pool: dict[int, TransferPolicy], processors: int) -> None:
    """Distance zero always wins."""
    assert nearest_size(pool | {processors: LARGE}, processors) is LARGE


def test_bad_pools_are_refused() -> None:
    """An empty pool and a machine without processors are errors."""
    with pytest.raises(ValueError, match="is empty"):
        nearest_size({}, 5)
    with pytest.raises(ValueError, match="0 processors"):
        nearest_size({100: SMALL}, 0)
