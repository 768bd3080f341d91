import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grms.learning.evolution.catalog import STRATEGIES, new_strategy, strategy_from_state
from grms.learning.evolution.genes import GENES_MAX, GeneSpace, Genome, bounded_reals
from grms.learning.evolution.operators import redraw_mutation, uniform_genome
from grms.learning.evolution.randomness import generator
from grms.learning.evolution.strategies import StrategySettings

MIXED = GeneSpace(
    np.array([0.0, -5.0]),
    np.array([1.0, 5.0]),
    np.array([0.1, 1.0]),
    bounded=True,
    choices=np.array([13, 2, 5], np.int64),
    binaries=3,
)
"""All kinds of genes, the real ones bounded."""


def worth(genome: Genome) -> float:
    """Returns 0 for reals of 0.25, integers of 1 and nothing true; more for all else."""
    return float(
        np.abs(genome.real - 0.25).sum()
        + np.abs(genome.integer - 1).sum()
        + np.count_nonzero(genome.binary)
    )


def same(one: Genome, other: Genome) -> bool:
    return one.to_state() == other.to_state()


def test_a_genome_goes_through_json() -> None:
    """Exact to the last bit, all kinds of genes."""
    genome = uniform_genome(generator(1), MIXED)
    again = Genome.from_state(json.loads(json.dumps(genome.to_state())))
    assert again.real.tobytes() == genome.real.tobytes()
    assert same(genome, again)


def test_a_space_goes_through_json() -> None:
    """Exact to the last bit."""
    state = json.loads(json.dumps(MIXED.to_state()))
    assert GeneSpace.from_state(state).to_state() == MIXED.to_state()


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"high": np.array([1.0])}, "1 upper bounds"),
        ({"high": np.array([1.0, -5.0])}, "must be finite and not empty"),
        ({"low": np.array([0.0, -np.inf])}, "must be finite and not empty"),
        ({"step": np.array([0.1, 0.0])}, "finite number above 0"),
        ({"step": np.array([0.1, np.nan])}, "finite number above 0"),
        ({"choices": np.array([0], np.int64)}, "0 choices"),
        ({"binaries": GENES_MAX + 1}, "at most"),
        ({"binaries": -1}, "at most"),
    ],
)
def test_a_space_that_cannot_be_is_refused(change: dict[str, Any], complaint: str) -> None:
    """The text says what is wrong."""
    usual = {"low": MIXED.low, "high": MIXED.high, "step": MIXED.step}
    with pytest.raises(ValueError, match=complaint):
        GeneSpace(**usual | change)


def test_a_space_has_a_gene() -> None:
    """An empty one is refused."""
    none = np.zeros(0)
    with pytest.raises(ValueError, match="0 real, 0 integer and 0 binary genes"):
        GeneSpace(none, none, none)


@pytest.mark.parametrize("name", STRATEGIES)
@given(seed=st.integers(0, 2**32), values=st.lists(st.floats(-1e9, 1e9), min_size=60, max_size=60))
def test_genes_never_leave_their_space(name: str, seed: int, values: list[float]) -> None:
    """Whatever is told: bounded reals in bounds, integers among their choices."""
    strategy = new_strategy(name, MIXED, StrategySettings(parents=3, offspring=6), seed)
    told = iter(values)
    for _ in range(6):
        genomes = strategy.ask()
        for genome in genomes:
            assert ((genome.real >= MIXED.low) & (genome.real <= MIXED.high)).all()
            assert ((genome.integer >= 0) & (genome.integer < MIXED.choices)).all()
            assert genome.binary.shape == (3,)
        strategy.tell([next(told) for _ in genomes])


@pytest.mark.parametrize("name", ["self-adaptive", "two-parents", "cma"])
def test_mixed_genes_are_found(name: str) -> None:
    """Reals, integers and binaries together, by every strategy that adapts its steps."""
    strategy = new_strategy(name, MIXED, StrategySettings(parents=8, offspring=40), 1)
    for _ in range(150):
        strategy.tell([worth(genome) for genome in strategy.ask()])
    assert strategy.best is not None
    assert strategy.best.value < 0.05


@pytest.mark.parametrize("name", STRATEGIES)
def test_a_strategy_over_mixed_genes_goes_on_bit_for_bit(name: str) -> None:
    """Through JSON, between asking and telling too."""
    one = new_strategy(name, MIXED, StrategySettings(parents=3, offspring=6), 2)
    for _ in range(4):
        one.tell([worth(genome) for genome in one.ask()])
    one.ask()
    other = strategy_from_state(json.loads(json.dumps(one.to_state())))
    for _ in range(3):
        assert all(same(a, b) for a, b in zip(one.ask(), other.ask(), strict=True))
        one.tell([worth(genome) for genome in one.ask()])
        other.tell([worth(genome) for genome in other.ask()])
    assert one.bound == other.bound


def test_a_bounded_vector_is_a_space() -> None:
    """Steps are a part of each range."""
    space = bounded_reals(np.zeros(2), np.array([1.0, 5.0]))
    assert space.step.tolist() == [0.1, 0.5]
    assert space.bounded


def test_redrawing_never_or_always() -> None:
    """With probability 0 nothing changes; with 1 every choice comes up."""
    rng = generator(3)
    genome = uniform_genome(rng, MIXED)
    assert same(redraw_mutation(rng, genome, MIXED, 0.0), genome)
    seen = {redraw_mutation(rng, genome, MIXED, 1.0).integer[0] for _ in range(500)}
    assert seen == set(range(13))
