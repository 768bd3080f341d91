from typing import Any

import numpy as np
import pytest

from grms.learning.evolution.cma_strategy import CmaStrategy, flip_margin, versions
from grms.learning.evolution.genes import Genome
from grms.learning.evolution.strategies import StrategySettings
from tests.training_grids import check_resumed, rule_space, same_genome, sphere

SPACE = rule_space(2)
SMALL = StrategySettings(offspring=8)


def step(strategy: CmaStrategy) -> None:
    strategy.tell([sphere(genome).value for genome in strategy.ask()])


def test_real_genes_and_recommendations_are_found() -> None:
    """Both parts of the optimum: real genes of either scale, recommendations that are binary."""
    strategy = CmaStrategy(SPACE, StrategySettings(offspring=12), 1)
    for _ in range(150):
        step(strategy)
    assert strategy.best is not None
    assert strategy.generation == 150
    assert strategy.best.value < 1e-4
    assert not strategy.best.genome.binary.any()
    assert np.abs(strategy.best.genome.real - 3).max() < 0.01


def test_the_best_never_worsens_and_is_the_first_of_equals() -> None:
    """A later genome of the same value does not take its place."""
    strategy = CmaStrategy(SPACE, SMALL, 3)
    first = strategy.ask()[0]
    strategy.tell([1.0] * 8)
    assert strategy.best is not None
    assert same_genome(strategy.best.genome, first)
    strategy.ask()
    strategy.tell([2.0, 1.0] * 4)
    assert same_genome(strategy.best.genome, first)
    strategy.ask()
    strategy.tell([2.0, 0.5] * 4)
    assert strategy.best.value == 0.5


def test_recommendations_never_freeze() -> None:
    """However long selection wants one of them, the other is tried now and then."""
    strategy = CmaStrategy(SPACE, SMALL, 2)
    tried = []
    for _ in range(300):
        genomes = strategy.ask()
        tried.append(sum(int(genome.binary.sum()) for genome in genomes))
        strategy.tell([sphere(genome).value for genome in genomes])
    # About one flip in a generation is meant.
    late = tried[150:]
    assert 0.2 < np.mean(late) < 4
    assert 0.3 < flip_margin(10, 91) < flip_margin(1, 2) < 2


def test_numpys_global_generator_is_left_alone() -> None:
    """Neither read nor reseeded: two runs agree whatever others draw."""
    np.random.seed(5)  # noqa: NPY002  # the generator that must not be touched
    before = str(np.random.get_state())  # noqa: NPY002  # same
    one, other = CmaStrategy(SPACE, SMALL, 7), CmaStrategy(SPACE, SMALL, 7)
    for _ in range(4):
        step(one)
        np.random.seed(5)  # noqa: NPY002  # same
        step(other)
    assert str(np.random.get_state()) == before  # noqa: NPY002  # same
    assert all(same_genome(a, b) for a, b in zip(one.ask(), other.ask(), strict=True))
    assert not same_genome(
        CmaStrategy(SPACE, SMALL, 8).ask()[0], CmaStrategy(SPACE, SMALL, 7).ask()[0]
    )


@pytest.mark.parametrize("asked", [False, True])
@pytest.mark.parametrize("told", [0, 1, 30])
def test_a_saved_strategy_goes_on_bit_for_bit(*, asked: bool, told: int) -> None:
    """Through JSON, also between asking and telling."""
    strategy = CmaStrategy(SPACE, SMALL, 4)
    check_resumed(strategy, step, told=told, asked=asked)
    assert strategy.generation == told + 3


def test_values_that_are_all_equal_do_no_harm() -> None:
    """A policy that changes nothing gives such values; genes stay finite, nothing is warned of."""
    strategy = CmaStrategy(SPACE, SMALL, 6)
    for _ in range(400):
        strategy.ask()
        strategy.tell([1.0] * 8)
    genomes: list[Genome] = strategy.ask()
    assert all(np.isfinite(genome.real).all() for genome in genomes)


@pytest.mark.parametrize("package", ["cma", "numpy"])
def test_other_versions_are_refused(package: str) -> None:
    """Another version might go another way, which nobody would notice."""
    state: dict[str, Any] = CmaStrategy(SPACE, SMALL, 1).to_state()
    state["versions"] = versions() | {package: "0.1"}
    with pytest.raises(ValueError, match=f"made with {package} 0.1, and here is {package} "):
        CmaStrategy.from_state(state)


def test_what_it_cannot_work_with_is_refused() -> None:
    """One child, a negative seed, values that were not asked for."""
    with pytest.raises(ValueError, match="offspring is 1; CMA-ES needs at least 2"):
        CmaStrategy(SPACE, StrategySettings(offspring=1), 1)
    with pytest.raises(ValueError, match="seed is -1"):
        CmaStrategy(SPACE, SMALL, -1)
    strategy = CmaStrategy(SPACE, SMALL, 1)
    with pytest.raises(ValueError, match="nothing was asked"):
        strategy.tell([1.0] * 8)
    strategy.ask()
    with pytest.raises(ValueError, match="a value is nan"):
        strategy.tell([float("nan")] * 8)
    with pytest.raises(ValueError, match="7 values for 8 genomes"):
        strategy.tell([1.0] * 7)
    step(strategy)
