from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grms.learning.evolution.genes import uniform_genome
from grms.learning.evolution.randomness import generator
from grms.learning.evolution.rule_genes import LEVELS, random_rules
from grms.learning.queueing.encoding import CriterionEncoding, RulesEncoding, TableEncoding
from lrms_sim.scheduling.criteria import PAPER_BOUNDS, CriterionKind, CriterionOrder
from lrms_sim.scheduling.selection import StrategyRules, StrategyTable
from lrms_sim.scheduling.strategies import Strategy

KINDS: tuple[CriterionKind, ...] = get_args(CriterionKind)


def test_a_criterion_for_each_situation_has_33_to_36_parameters() -> None:
    """Paper 001, section IV-C: 36, and 33 without b, which is f3."""
    sizes = [len(CriterionEncoding((kind,) * 3).space.low) for kind in KINDS]
    assert sizes == [36, 36, 33, 36]
    space = CriterionEncoding(("f1", "f3", "f2")).space
    assert space.bounded
    assert len(space.low) == 12 + 11 + 12
    assert space.high.tolist() == [high for kind in (12, 11, 12) for _, high in PAPER_BOUNDS[:kind]]


@given(st.integers(0, 2**32), st.lists(st.sampled_from(KINDS), min_size=3, max_size=3))
def test_parameters_come_back(seed: int, kinds: list[CriterionKind]) -> None:
    """Decoding and encoding changes no gene; f3's b is 0."""
    encoding = CriterionEncoding((kinds[0], kinds[1], kinds[2]))
    genome = uniform_genome(generator(seed), encoding.space)
    policy = encoding.decode(genome)
    assert isinstance(policy, Strategy)
    assert isinstance(policy.order, CriterionOrder)
    assert policy.algorithm == "fcfs"
    assert encoding.encode(policy.order).real.tolist() == genome.real.tolist()
    for criterion in policy.order.criteria:
        assert criterion.kind != "f3" or criterion.size == 0


def test_a_single_criterion_for_all_moments() -> None:
    """One situation, 12 parameters, and EASY on its order."""
    encoding = CriterionEncoding(("f2",), algorithm="easy")
    policy = encoding.decode(uniform_genome(generator(1), encoding.space))
    assert isinstance(policy, Strategy)
    assert (policy.algorithm, policy.needs_calendar) == ("easy", False)
    assert encoding.words["algorithm"] == "easy"


def test_two_situations_are_not_a_week() -> None:
    """A calendar has three; the text says so."""
    with pytest.raises(ValueError, match="2 criteria; one is needed, or one for each of the 3"):
        CriterionEncoding(("f1", "f1"))
    encoding = CriterionEncoding(("f1",))
    genome = uniform_genome(generator(1), CriterionEncoding(("f1",) * 3).space)
    with pytest.raises(ValueError, match="36 real genes; 12 are needed"):
        encoding.decode(genome)


def test_a_table_has_a_strategy_for_each_class() -> None:
    """192 integer genes of 13 choices; a constant table by its strategy's name."""
    encoding = TableEncoding()
    assert encoding.space.choices.tolist() == [13] * 192
    policy = encoding.decode(encoding.standard("fcfs-group"))
    assert isinstance(policy, StrategyTable)
    assert {policy.strategies[one].name for one in policy.table} == {"fcfs-group"}
    with pytest.raises(ValueError, match="no strategy 'fcfs-grup'; there are: fcfs-arrival"):
        encoding.standard("fcfs-grup")


def test_rules_have_seven_gaussians_and_thirteen_recommendations() -> None:
    """27 genes a rule (paper 000, figure 2); recommendations are among the five levels."""
    encoding = RulesEncoding()
    assert encoding.space.genes == 27
    rules = random_rules(generator(2), encoding.space, 50)
    policy = encoding.decode(encoding.space.rule_base(rules))
    assert isinstance(policy, StrategyRules)
    assert len(policy.rules) == 50
    for rule, genes in zip(policy.rules, rules, strict=True):
        assert rule.means[0] == pytest.approx(1 + 4 * genes[0])
        assert rule.means[6] == pytest.approx(100 * genes[6])
        assert rule.deviations[1] == pytest.approx(100 * genes[8])
        assert set(rule.recommendations) <= set(map(float, LEVELS))
    assert np.isfinite([rule.deviations for rule in policy.rules]).all()
