"""Fronts and crowding, against the definitions written out."""

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from grms.learning.evolution.nsga2 import (
    crowded_order,
    crowding_distances,
    front_ranks,
    not_dominated,
)

VALUES = st.tuples(st.integers(1, 12), st.integers(1, 4)).flatmap(
    lambda shape: arrays(np.float64, shape, elements=st.sampled_from((-1.0, 0.0, 0.5, 2.0, np.inf)))
)
"""Few different numbers, so that there are ties in plenty."""


def dominates(one: list[float], other: list[float]) -> bool:
    """Says whether one is as small in all and smaller in one."""
    pairs = list(zip(one, other, strict=True))
    return all(a <= b for a, b in pairs) and any(a < b for a, b in pairs)


def plain_ranks(rows: list[list[float]]) -> list[int]:
    """Returns the front of each row: one behind the last front of those that dominate it."""

    def rank(one: list[float]) -> int:
        return max((rank(other) + 1 for other in rows if dominates(other, one)), default=0)

    return [rank(one) for one in rows]


def plain_crowding(rows: list[list[float]]) -> list[float]:
    """Returns the crowding distances as the paper's listing has them."""
    found = [0.0] * len(rows)
    for objective in range(len(rows[0])):
        order = sorted(range(len(rows)), key=lambda row: (rows[row][objective], row))
        least, most = rows[order[0]][objective], rows[order[-1]][objective]
        if math.isinf(least) or math.isinf(most) or least == most:
            continue
        found[order[0]] = found[order[-1]] = math.inf
        for before, row, after in zip(order, order[1:], order[2:], strict=False):
            gap = rows[after][objective] - rows[before][objective]
            found[row] += gap / (most - least)
    return found


@given(values=VALUES)
def test_fronts_equal_the_plain_definition(values: np.ndarray) -> None:
    """Also with equal rows, and with some that were given up."""
    ranks = plain_ranks(values.tolist())
    assert front_ranks(values).tolist() == ranks
    assert not_dominated(values).tolist() == [rank == 0 for rank in ranks]


@given(values=VALUES)
def test_crowding_equals_the_papers_listing(values: np.ndarray) -> None:
    """An objective that is infinite somewhere, or the same everywhere, counts for nothing."""
    assert crowding_distances(values).tolist() == plain_crowding(values.tolist())


@given(values=VALUES)
def test_the_order_is_by_front_then_by_crowding_then_by_age(values: np.ndarray) -> None:
    """A total order: the same for the same values, always."""
    ranks = plain_ranks(values.tolist())
    lonely: dict[int, float] = {}
    for rank in set(ranks):
        rows = [row for row in range(len(ranks)) if ranks[row] == rank]
        distances = plain_crowding([values[row].tolist() for row in rows])
        lonely |= dict(zip(rows, distances, strict=True))
    expected = sorted(range(len(ranks)), key=lambda row: (ranks[row], -lonely[row], row))
    assert crowded_order(values).tolist() == expected


def test_nobody_is_ordered_where_nobody_is() -> None:
    """No row, no front."""
    none = np.zeros((0, 3))
    assert crowded_order(none).tolist() == front_ranks(none).tolist() == []
    assert crowding_distances(none).tolist() == []
