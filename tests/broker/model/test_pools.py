from pathlib import Path

import numpy as np
import pytest

from broker.io.pools import read_file
from broker.model.pools import RESOURCES_MAX, generate_pool

EXAMPLE = Path(__file__).parents[3] / "docs" / "examples" / "pool-20.toml"


def test_the_example_is_what_is_generated() -> None:
    """The file in the documentation comes of `gorba generate pool --resources 20 --seed 1`."""
    assert read_file(EXAMPLE).pool.resources == generate_pool(20, np.random.default_rng(1))


def test_a_pool_is_heterogeneous() -> None:
    """Speed, price, size and hours differ; the first resource never closes."""
    pool = generate_pool(60, np.random.default_rng(7))
    assert len({each.name for each in pool}) == 60
    assert len({each.performance for each in pool}) > 40
    assert len({each.capacity for each in pool}) > 3
    assert sum(bool(each.calendar.opening) for each in pool) == 12
    assert sum(bool(each.price_rules) for each in pool) == 20
    assert not pool[0].calendar.opening
    assert all(each.price > 0 for each in pool)
    fast, slow = (
        np.mean([each.price / each.performance for each in pool if (each.performance > 2) == fast])
        for fast in (True, False)
    )
    assert fast > slow


def test_the_same_seed_gives_the_same_pool() -> None:
    """And a larger pool begins with the smaller one."""
    pools = [generate_pool(n, np.random.default_rng(3)) for n in (5, 5, 9)]
    assert pools[0] == pools[1] == pools[2][:5]


@pytest.mark.parametrize("count", [0, RESOURCES_MAX + 1])
def test_a_count_out_of_bounds_is_refused(count: int) -> None:
    """The text has the bounds."""
    with pytest.raises(ValueError, match="from 1 to 100000"):
        generate_pool(count, np.random.default_rng(1))


def test_the_bounds_themselves_are_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    """One resource is a pool, and so are as many as there may be."""
    monkeypatch.setattr("broker.model.pools.RESOURCES_MAX", 3)
    for count in (1, 3):
        assert len(generate_pool(count, np.random.default_rng(1))) == count
