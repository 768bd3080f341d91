import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grms.learning.evolution.catalog import strategy_from_state
from grms.learning.evolution.genes import Genome
from grms.learning.evolution.randomness import generator
from grms.learning.evolution.symbiotic import (
    LEVELS,
    WIDTH_MIN,
    RuleSpace,
    SymbioticEvolution,
    SymbioticSettings,
    clustered,
    compose,
    confined_rules,
    random_rules,
    selected,
    similarity,
)

SPACE = RuleSpace(np.array([1.0, 0.0]), np.array([5.0, 100.0]), 3)
SMALL = SymbioticSettings(
    parents=12, offspring=30, base_rules=6, bases_per_rule=4, recombined=5, similar=2, clusters=3
)


def choice(genome: Genome, x: float, y: float) -> int:
    """Returns which alternative a rule base recommends in a state, as docs/strategies.md has it."""
    real = genome.real.reshape(-1, 4)
    places = genome.integer.reshape(-1, 3)
    deviation = (np.array([x, y]) - real[:, :2]) / real[:, 2:]
    weight = np.exp(-0.5 * (deviation**2).sum(axis=1)) / real[:, 2:].prod(axis=1)
    return int((weight @ np.array(LEVELS)[places]).argmax())


def worth(genome: Genome) -> float:
    """Returns 1, and 1 more for each state of a grid in which the wrong alternative is chosen."""
    wrong = 0
    for x in (1.2, 3.0, 4.8):
        for y in (5.0, 50.0, 95.0):
            wanted = 0 if y < 30 else (1 if x < 2 else 2)
            wrong += choice(genome, x, y) != wanted
    return 1.0 + wrong


def step(evolution: SymbioticEvolution) -> list[float]:
    values = [worth(genome) for genome in evolution.ask()]
    evolution.tell(values)
    return values


def test_the_defaults_are_the_papers() -> None:
    """50 rules of 350 survive; 50 rules a base, each in 10: 70 bases a generation."""
    settings = SymbioticSettings()
    assert (settings.parents, settings.offspring, settings.bases) == (50, 350, 70)


def test_similarity_is_equation_11() -> None:
    """By hand for one feature; a mean over several; most alike to itself."""
    rules = np.array([[0.2, 0.1], [0.5, 0.3]])
    found = similarity(rules, 1)
    both = 0.1**2 + 0.3**2
    expected = np.exp(-(0.3**2) / (2 * both)) / np.sqrt(2 * np.pi * both)
    assert found[0, 1] == found[1, 0] == pytest.approx(expected, rel=1e-14)
    assert found[0, 0] == pytest.approx(1 / np.sqrt(2 * np.pi * 0.02), rel=1e-14)
    two = np.array([[0.2, 0.2, 0.1, 0.1], [0.5, 0.5, 0.3, 0.3]])
    assert similarity(two, 2)[0, 1] == pytest.approx(expected, rel=1e-14)


@given(
    st.integers(0, 2**32),
    st.sampled_from([(10, 4, 10), (12, 6, 2), (7, 7, 3), (6, 1, 6), (9, 3, 1)]),
)
def test_every_rule_is_in_equally_many_bases(seed: int, sizes: tuple[int, int, int]) -> None:
    """Each base has as many different rules as it should; quotas are met exactly."""
    count, base_rules, each = sizes
    rng = np.random.default_rng(seed)
    alike = similarity(random_rules(rng, SPACE, count), 2)
    if count * each % base_rules:
        each *= base_rules
    bases = count * each // base_rules
    if bases < each:
        return
    composed = compose(rng, alike, bases, base_rules)
    assert len(composed) == bases
    assert all(len(set(base)) == len(base) == base_rules for base in composed)
    counts = np.bincount(np.concatenate(composed), minlength=count)
    assert (counts == each).all()


def test_the_next_rule_of_a_base_is_the_least_similar() -> None:
    """Of those that have places left, to the rule before."""
    alike = np.array([[9, 1, 5, 4], [1, 9, 3, 2], [5, 3, 9, 6], [4, 2, 6, 9]], np.float64)
    (base,) = (compose(generator(1), alike, 2, 2)[0],)
    assert base[1] == {0: 1, 1: 0, 2: 1, 3: 1}[base[0]]


@given(st.integers(0, 2**32), st.integers(1, 40), st.integers(1, 12))
def test_clusters_hold_what_is_near(seed: int, count: int, clusters: int) -> None:
    """Every point belongs to one; the same points fall into the same one."""
    rng = np.random.default_rng(seed)
    points = rng.random((count, 3))
    member = clustered(rng, np.concatenate([points, points]), clusters)
    assert (member[:count] == member[count:]).all()
    assert member.min() >= 0
    assert member.max() < clusters


def test_far_groups_are_found() -> None:
    """Points around two centres: two clusters, whichever the start."""
    rng = np.random.default_rng(4)
    points = np.concatenate([rng.normal(0, 0.01, (20, 2)), rng.normal(5, 0.01, (20, 2))])
    for seed in range(10):
        member = clustered(generator(seed), points, 2)
        assert len(set(member[:20])) == len(set(member[20:])) == 1
        assert member[0] != member[20]


def test_better_clusters_send_more() -> None:
    """Shares by 1/f; the best of each; what is missing is filled by the best of the rest."""
    values = np.array([1.0, 2.0, 3.0, 4.0, 10.0, 11.0, 12.0, 13.0])
    member = np.array([0, 0, 0, 0, 1, 1, 1, 1], np.int64)
    # f = 1.5 and 10.5: shares 3.5 and 0.5 of 4, rounded half up 4 and 1, the worst dropped.
    assert selected(values, member, 4, 2).tolist() == [0, 1, 2, 3]
    # f = 1 and 10: shares 5.45 and 0.55 of 6; cluster 0 has four only, so one more is filled in.
    assert selected(values, member, 6, 1).tolist() == [0, 1, 2, 3, 4, 5]
    assert selected(values[::-1].copy(), member, 2, 4).tolist() == [7, 6]


def test_rules_stay_rules() -> None:
    """Widths are positive and not too narrow; recommendations are among the levels."""
    wild = np.array([[0.5, 0.5, -0.2, 0.0, -3.0, 9.0, 1.4]])
    assert confined_rules(wild, 2).tolist() == [[0.5, 0.5, 0.2, WIDTH_MIN, 0.0, 4.0, 1.4]]
    genome = SPACE.rule_base(confined_rules(wild, 2))
    assert genome.real.tolist() == [3.0, 50.0, 0.8, WIDTH_MIN * 100]
    assert genome.integer.tolist() == [0, 4, 1]


def test_it_finds_rules_that_are_right() -> None:
    """Three areas with an alternative each: far better than random rules, with few wrong states."""
    evolution = SymbioticEvolution(SPACE, SMALL, generator(1))
    first = step(evolution)
    for _ in range(40):
        step(evolution)
    assert evolution.best is not None
    assert evolution.best.value <= 2.0 < np.median(first)
    assert evolution.generation == 40


def test_the_best_base_ever_is_the_result() -> None:
    """Rules alone are no policy; a base that was better once is not forgotten."""
    evolution = SymbioticEvolution(SPACE, SMALL, generator(2))
    asked = evolution.ask()
    evolution.tell([5.0] * 7 + [3.0] + [5.0] * (len(asked) - 8))
    for _ in range(3):
        evolution.tell([4.0] * len(evolution.ask()))
    assert evolution.best is not None
    assert evolution.best.value == 3.0
    assert evolution.best.genome.to_state() == asked[7].to_state()


def test_founders_are_judged_and_teach_nothing() -> None:
    """A rule base that recommends one alternative everywhere may be the best; rules evolve as without it."""
    plain = SymbioticEvolution(SPACE, SMALL, generator(5))
    constant = SPACE.constant(1, SMALL.base_rules)
    assert {choice(constant, x, y) for x in (0.0, 1.0, 3.0, 9.0) for y in (0.0, 50.0, 300.0)} == {1}
    begun = SymbioticEvolution(SPACE, SMALL, generator(5), [constant])
    values = step(plain)
    asked = begun.ask()
    assert len(asked) == SMALL.bases + 1
    again = strategy_from_state(json.loads(json.dumps(begun.to_state())))
    for one in (begun, again):
        one.ask()
        one.tell([*values, 0.5])
        assert one.best is not None
        assert (one.best.value, one.best.genome.to_state()) == (0.5, constant.to_state())
        assert [genome.to_state() for genome in one.ask()] == [
            genome.to_state() for genome in plain.ask()
        ]


def test_the_step_follows_success() -> None:
    """Up by 1.224 where more than an eighth of the children beat a parent, else down."""
    evolution = SymbioticEvolution(SPACE, SMALL, generator(3))
    evolution.tell([5.0] * len(evolution.ask()))
    evolution.tell([4.0] * len(evolution.ask()))
    assert evolution.step == pytest.approx(0.1 * 1.224)
    evolution.tell([4.0] * len(evolution.ask()))
    assert evolution.step == pytest.approx(0.1)


@pytest.mark.parametrize("plus", [False, True])
@pytest.mark.parametrize("told", [0, 1, 3])
@pytest.mark.parametrize("asked", [False, True])
def test_a_saved_evolution_goes_on_bit_for_bit(told: int, *, plus: bool, asked: bool) -> None:
    """Through JSON, between asking and telling too."""
    settings = SymbioticSettings(
        parents=12, offspring=30, base_rules=6, bases_per_rule=4, recombined=5, similar=2, plus=plus
    )
    evolution = SymbioticEvolution(SPACE, settings, generator(4))
    for _ in range(told):
        step(evolution)
    if asked:
        evolution.ask()
    again = strategy_from_state(json.loads(json.dumps(evolution.to_state())))
    assert isinstance(again, SymbioticEvolution)
    for _ in range(3):
        assert step(evolution) == step(again)
    assert again.to_state() == evolution.to_state()


@pytest.mark.parametrize(
    ("setting", "complaint"),
    [
        ({"parents": 0}, "parents is 0"),
        ({"step": 0.0}, "step is 0.0"),
        ({"recombined": 60}, "each must not be more than the next"),
        ({"similar": 12}, "each must not be more than the next"),
        ({"offspring": 351}, "do not fill rule bases of 50"),
        ({"base_rules": 400}, "do not fill"),
    ],
)
def test_settings_out_of_bounds_are_refused(setting: dict[str, Any], complaint: str) -> None:
    """The text names the setting and its value."""
    with pytest.raises(ValueError, match=complaint):
        SymbioticSettings(**setting)


def test_values_must_be_above_zero() -> None:
    """Shares are by 1/f."""
    evolution = SymbioticEvolution(SPACE, SMALL, generator(3))
    count = len(evolution.ask())
    with pytest.raises(ValueError, match=r"a value is 0\.0; it must be more than 0"):
        evolution.tell([0.0] * count)
    with pytest.raises(ValueError, match=f"1 values for {count} genomes"):
        evolution.tell([1.0])


def test_a_space_that_cannot_be_is_refused() -> None:
    """An empty range, no alternative."""
    for low, high, alternatives in (([0.0], [0.0], 2), ([0.0], [1.0], 0), ([], [], 2)):
        with pytest.raises(ValueError, match="ranges that are not empty, and alternatives"):
            RuleSpace(np.array(low), np.array(high), alternatives)
