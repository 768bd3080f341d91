import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from grms.learning.evolution.genes import GeneSpace, Genome, bounded_reals
from grms.learning.evolution.nsga2 import (
    Nsga2,
    Nsga2Settings,
    crowded_order,
    crowding_distances,
    front_ranks,
    not_dominated,
)
from grms.learning.evolution.randomness import generator
from grms.learning.evolution.strategies import Figures
from tests.training_grids import check_resumed, same_genome

SPACE = bounded_reals(np.zeros(3), np.ones(3))


def zdt1(genome: Genome) -> tuple[float, float]:
    """ZDT1 (Zitzler, Deb, Thiele 2000): its front is g = 1, the second being 1 - √ of the first."""
    first, rest = float(genome.real[0]), genome.real[1:]
    g = 1.0 + 9.0 * float(rest.mean())
    return first, g * (1.0 - math.sqrt(first / g))


def told(strategy: Nsga2, generations: int, sign: float = 1.0) -> Nsga2:
    """Tells a strategy so many generations of ZDT1."""
    for _ in range(generations):
        pairs = [zdt1(genome) for genome in strategy.ask()]
        figures: list[Figures] = [((first, sign * second),) for first, second in pairs]
        strategy.tell([sum(pair) for pair in pairs], figures)
    return strategy


def search(population: int = 20, seed: int = 1, sign: float = 1.0, **more: Any) -> Nsga2:
    """Returns a search that has not begun."""
    settings = Nsga2Settings(population)
    return Nsga2(SPACE, settings, generator(seed), signs=(1.0, sign), **more)


def test_it_finds_the_front_of_a_known_problem_and_spreads_over_it() -> None:
    """All are near the curve, and no part of the curve is left out."""
    strategy = told(search(), 60)
    first, second = strategy.objectives.T
    assert (second - (1.0 - np.sqrt(first)) < 0.05).all()
    assert np.histogram(first, bins=5, range=(0.0, 1.0))[0].min() >= 1
    assert strategy.generation == 59
    assert strategy.best is not None
    assert strategy.best.value == pytest.approx(0.75, abs=0.03)  # x + 1 - √x is least at 1/4


def test_a_sign_says_that_large_is_good() -> None:
    """The same problem upside down gives the same search."""
    upright, turned = told(search(), 5), told(search(sign=-1.0), 5, sign=-1.0)
    pairs = zip(upright.parents, turned.parents, strict=True)
    assert all(same_genome(one, other) for one, other in pairs)
    assert upright.objectives.tolist() == turned.objectives.tolist()


def test_it_goes_on_bit_for_bit() -> None:
    """From its state as JSON, asked or not."""
    check_resumed(search(), lambda strategy: told(strategy, 1), told=3, asked=True)
    check_resumed(search(), lambda strategy: told(strategy, 1), told=3, asked=False)


def test_nobody_on_the_front_is_lost_while_there_is_room() -> None:
    """Who is better in an objective than all others stays, whatever its value is."""
    strategy = search(population=8)
    founders = strategy.ask()
    assert all(((one.real >= 0) & (one.real <= 1)).all() for one in founders)
    figures: list[Figures] = [*[((1.0, 1.0),)] * 6, ((0.0, 2.0),), ((2.0, 0.0),)]
    strategy.tell([1.0] * 6 + [9.0, 9.0], figures)
    for _ in range(3):
        children = strategy.ask()
        assert len(children) == 8
        assert all(((one.real >= 0) & (one.real <= 1)).all() for one in children)
        strategy.tell([5.0] * 8, [((3.0, 3.0),)] * 8)
    assert [0.0, 2.0] in strategy.objectives.tolist()
    assert [2.0, 0.0] in strategy.objectives.tolist()
    assert any(same_genome(one, founders[6]) for one in strategy.parents)


def test_what_was_given_up_is_behind_everybody() -> None:
    """It has no figures; where all are such, the search goes on all the same."""
    strategy = search(population=4)
    strategy.ask()
    strategy.tell([9.0] * 4, [()] * 4)
    strategy = Nsga2.from_state(json.loads(json.dumps(strategy.to_state())))
    asked = strategy.ask()
    strategy.tell([9.0, 9.0, 1.0, 9.0], [(), (), ((math.nan, 7.0),), ()])
    assert same_genome(strategy.parents[0], asked[2])
    assert strategy.objectives[0].tolist() == [0.0, 7.0]
    assert strategy.bound == math.inf
    assert not strategy.exhausted


def test_founders_begin() -> None:
    """Before those that are drawn; of too many the first."""
    founders = [Genome(np.full(3, number / 8), np.zeros(0, np.bool_)) for number in range(8)]
    asked = search(population=4, founders=founders[:2]).ask()
    assert all(same_genome(a, b) for a, b in zip(asked[:2], founders[:2], strict=True))
    assert len(asked) == 4
    assert len(search(population=4, founders=founders).ask()) == 4


def test_it_says_what_is_wrong() -> None:
    """Settings, genes and figures."""
    with pytest.raises(ValueError, match="population is 3; it must be even"):
        Nsga2Settings(3)
    with pytest.raises(ValueError, match=r"crossover_probability is 1\.5; it is a probability"):
        Nsga2Settings(crossover_probability=1.5)
    with pytest.raises(ValueError, match="mutation_index is nan; it must be from 0"):
        Nsga2Settings(mutation_index=math.nan)
    binary = GeneSpace(SPACE.low, SPACE.high, SPACE.step, bounded=True, binaries=1)
    with pytest.raises(ValueError, match="real genes within bounds"):
        Nsga2(binary, Nsga2Settings(), generator(1), signs=(1.0,))
    with pytest.raises(ValueError, match="1 or -1 is needed for each objective"):
        Nsga2(SPACE, Nsga2Settings(), generator(1), signs=(2.0,))
    strategy = search(population=2)
    with pytest.raises(ValueError, match="nothing was asked"):
        strategy.tell([1.0])
    strategy.ask()
    with pytest.raises(ValueError, match="1 rows of objectives for 2 genomes"):
        strategy.tell([1.0, 1.0], [((1.0, 1.0),)])
    with pytest.raises(ValueError, match="1 objectives; there are 2 signs"):
        strategy.tell([1.0, 1.0], [((1.0,),), ((1.0,),)])


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
