import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grms.learning.evolution.randomness import generator
from grms.learning.evolution.rule_genes import (
    WIDTH_MIN,
    RuleSpace,
    clustered,
    compose,
    confined_rules,
    random_rules,
    selected,
    similarity,
)

SPACE = RuleSpace(np.array([1.0, 0.0]), np.array([5.0, 100.0]), 3)


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


def test_a_space_that_cannot_be_is_refused() -> None:
    """An empty range, no alternative."""
    for low, high, alternatives in (([0.0], [0.0], 2), ([0.0], [1.0], 0), ([], [], 2)):
        with pytest.raises(ValueError, match="ranges that are not empty, and alternatives"):
            RuleSpace(np.array(low), np.array(high), alternatives)
