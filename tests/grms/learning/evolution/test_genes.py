import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grms.learning.evolution.catalog import STRATEGIES, new_strategy, strategy_from_state
from grms.learning.evolution.genes import (
    GENES_MAX,
    GeneSpace,
    Genome,
    bounded_reals,
    discrete_recombination,
    flip_mutation,
    gaussian_mutation,
    lognormal_steps,
    polynomial_mutation,
    redraw_mutation,
    simulated_binary_crossover,
    uniform_genome,
)
from grms.learning.evolution.randomness import generator, generator_state
from grms.learning.evolution.strategies import StrategySettings
from grms.learning.transfer.encoding import feature_values
from tests.training_grids import genomes, no_genome, rule_space, same_genome

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


seeds = st.integers(0, 2**32)

# What the generator of seed 7 makes of three individuals of two rules.
FIRST = Genome(
    np.array(
        [
            *(6.2509546660466695, 8.972138009695755, 77.56856902451935, 22.520718999059184),
            *(3.0016628491122543, 8.735534453962618, 0.5265304565574724, 82.12284183827663),
        ]
    ),
    np.array([False, True]),
)

SECOND = Genome(
    np.array(
        [
            *(3.0303242681931355, 2.7842561210077332, 25.48695876541246, 44.50763058826466),
            *(5.045482589579533, 5.534973520744924, 99.55002834343927, 79.26619192137531),
        ]
    ),
    np.array([False, False]),
)

THIRD = Genome(
    np.array(
        [
            *(2.1530869823559895, 1.6021203385784455, 61.25396042730308, 4.394200796138337),
            *(0.3568027877359614, 5.148888202713703, 46.620602532528906, 91.71677731928523),
        ]
    ),
    np.array([False, False]),
)


def test_golden_founders() -> None:
    """A seed means the same individuals for ever: real genes first, then recommendations."""
    rng = generator(7)
    for expected in (FIRST, SECOND, THIRD):
        assert same_genome(uniform_genome(rng, rule_space(2)), expected)


def test_golden_recombination() -> None:
    """Each gene of the child is that of the parent drawn for it."""
    child = discrete_recombination(generator(8), [FIRST, SECOND, THIRD])
    chosen = [THIRD, FIRST, FIRST, THIRD, FIRST, FIRST, SECOND, THIRD]
    assert child.real.tolist() == [parent.real[i] for i, parent in enumerate(chosen)]
    assert child.binary.tolist() == [False, False]


def test_golden_mutations() -> None:
    """Normal steps of 0.01 and 0.1; flips one by one; steps that adapt themselves."""
    mutant = gaussian_mutation(generator(9), FIRST, feature_values(2, 0.01, 0.1))
    assert mutant.real.tolist() == [
        *(6.242926296686841, 8.974566508766545, 77.40293448181512, 22.58632948681485),
        *(3.0130973793391753, 8.731008343932539, 0.5695790311129033, 82.14793509518505),
    ]
    assert mutant.binary.tolist() == FIRST.binary.tolist()
    flipped = flip_mutation(generator(10), no_genome(8), 0.5)
    assert np.flatnonzero(flipped.binary).tolist() == [1, 3, 5]
    steps = lognormal_steps(generator(11), np.array([1.0, 2.0, 3.0]), 0.1, 0.2)
    # The last digits of an exponential depend on the processor.
    golden = [1.317016280889094, 2.5638516357251535, 2.718200689055047]
    assert steps.tolist() == pytest.approx(golden, rel=1e-13)


@given(seeds, st.integers(1, 20), st.floats(0.1, 20), st.floats(0.1, 200))
def test_founders_are_in_their_range(seed: int, rules: int, nwp_max: float, njp_max: float) -> None:
    """Every gene lies in the range of its feature."""
    space = rule_space(rules, nwp_max=nwp_max, njp_max=njp_max)
    genome = uniform_genome(generator(seed), space)
    assert len(genome.binary) == rules
    assert (genome.real >= 0).all()
    assert (genome.real <= feature_values(rules, nwp_max, njp_max)).all()


@given(seeds, st.integers(1, 6), st.integers(1, 6), st.data())
def test_recombination_takes_each_gene_from_some_parent_at_the_same_place(
    seed: int, rules: int, parents: int, data: st.DataObject
) -> None:
    """No gene is invented or moved, and every parent takes part sooner or later."""
    family = [data.draw(genomes(rules=rules)) for _ in range(parents)]
    child = discrete_recombination(generator(seed), family)
    assert len(child.binary) == rules
    for place, gene in enumerate(child.real):
        assert gene in [parent.real[place] for parent in family]
    for place, recommendation in enumerate(child.binary):
        assert recommendation in [parent.binary[place] for parent in family]


def test_recombination_draws_all_parents_alike() -> None:
    """Over many genes each of five parents gives about a fifth."""
    family = [Genome(np.full(4000, i, np.float64), np.zeros(1000, np.bool_)) for i in range(5)]
    counts = np.bincount(discrete_recombination(generator(1), family).real.astype(int))
    assert len(counts) == 5
    assert (np.abs(counts - 800) < 120).all()  # about five standard deviations


def test_mutations_have_the_deviations_they_are_given() -> None:
    """Over many genes: the mean stays, the deviation is the step, a tenth of flips."""
    rules = 5000
    step = feature_values(rules, 0.01, 0.1)
    moved = gaussian_mutation(generator(2), no_genome(rules), step).real / step
    assert abs(moved.mean()) < 0.04
    assert abs(moved.std() - 1) < 0.03
    flips = np.count_nonzero(flip_mutation(generator(3), no_genome(rules), 0.1).binary)
    assert abs(flips - 500) < 110


@given(genomes(), seeds)
def test_certain_flips_turn_everything_round(genome: Genome, seed: int) -> None:
    """With probability 1 all recommendations turn, with 0 none; real genes stay."""
    turned = flip_mutation(generator(seed), genome, 1.0)
    assert (turned.binary == ~genome.binary).all()
    assert same_genome(flip_mutation(generator(seed), genome, 0.0), genome)
    assert turned.real.tobytes() == genome.real.tobytes()


OPERATORS: dict[str, Callable[[np.random.Generator, Genome], object]] = {
    "uniform": lambda rng, genome: uniform_genome(rng, rule_space(len(genome.binary))),
    "recombination": lambda rng, genome: discrete_recombination(rng, [genome, genome]),
    "gaussian": lambda rng, genome: gaussian_mutation(rng, genome, np.ones(len(genome.real))),
    "flip": lambda rng, genome: flip_mutation(rng, genome, 0.3),
    "lognormal": lambda rng, genome: lognormal_steps(rng, np.ones(len(genome.real)), 0.1, 0.2),
}


@pytest.mark.parametrize("name", OPERATORS)
@given(one=genomes(), seed=seeds, data=st.data())
def test_how_much_is_drawn_depends_on_the_size_alone(
    name: str, one: Genome, seed: int, data: st.DataObject
) -> None:
    """Whatever the genes are, the generator is left in the same state, and the parent untouched."""
    other = data.draw(genomes(rules=len(one.binary)))
    before = json.dumps(one.to_state())
    states = []
    for genome in (one, other):
        rng = generator(seed)
        OPERATORS[name](rng, genome)
        states.append(generator_state(rng))
    assert states[0] == states[1]
    assert json.dumps(one.to_state()) == before


@given(seeds, st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=40))
def test_adapted_steps_stay_positive(seed: int, steps: list[float]) -> None:
    """A step is multiplied, so it never vanishes or turns round."""
    adapted = lognormal_steps(generator(seed), np.array(steps), 0.3, 0.5)
    assert (adapted > 0).all()
    assert np.isfinite(adapted).all()


def test_children_of_simulated_binary_crossover_have_the_sum_of_their_parents() -> None:
    """Gene by gene; half of the genes stay as they are; larger indices stay nearer."""
    rng = np.random.default_rng(1)
    first, second = rng.random(2000), rng.random(2000)
    one, other = simulated_binary_crossover(rng, first, second, 20.0)
    assert np.allclose(one + other, first + second, rtol=0, atol=1e-12)
    stayed = (one == first) & (other == second)
    assert 850 < stayed.sum() < 1150
    near, far = (
        np.abs(simulated_binary_crossover(rng, first, second, index)[0] - first).mean()
        for index in (50.0, 1.0)
    )
    assert near < far


def test_polynomial_mutation_moves_few_genes_by_a_part_of_their_range() -> None:
    """Either way alike, less than the range; a gene that is not drawn stays to the bit."""
    rng = np.random.default_rng(2)
    space = bounded_reals(np.zeros(2000), np.full(2000, 4.0))
    genome = Genome(np.full(2000, 2.0), np.zeros(0, np.bool_))
    step = polynomial_mutation(rng, genome, space, 20.0, 0.25).real - 2.0
    assert 400 < (step != 0).sum() < 600
    assert np.abs(step).max() < 4.0
    assert abs((step > 0).sum() - (step < 0).sum()) < 120
    assert polynomial_mutation(rng, genome, space, 20.0, 0.0).real.tolist() == [2.0] * 2000
