import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grms.learning.evolution.genes import Genome
from grms.learning.transfer.encoding import (
    REALS_PER_RULE,
    RULES_MAX,
    SIGMA_MIN,
    RuleBaseSettings,
    compile_genome,
    decode,
    encode,
    feature_values,
    rule_count,
)
from grms.policy import files
from grms.policy._decisions import MembershipTable
from grms.policy.files import rule_base_from_document, rule_base_to_document
from grms.policy.transfer import Gaussian, Rule, RuleBase
from tests.training_grids import genomes, same_genome

gaussians = st.builds(
    Gaussian, st.floats(-1e6, 1e6), st.floats(-1e6, 1e6).filter(lambda x: abs(x) >= SIGMA_MIN)
)
rule_bases = st.lists(
    st.builds(Rule, gaussians, gaussians, st.booleans()), min_size=1, max_size=12
).map(lambda rules: RuleBase(tuple(rules)))


@given(rule_bases)
def test_a_rule_base_comes_back(rule_base: RuleBase) -> None:
    """Encoding and decoding changes no number and no recommendation."""
    assert decode(encode(rule_base)) == rule_base


@given(genomes())
def test_a_genome_comes_back(genome: Genome) -> None:
    """Decoding and encoding changes nothing but a σ that is 0, or as good as 0."""
    again = encode(decode(genome))
    assert again.binary.tobytes() == genome.binary.tobytes()
    sigma = np.arange(len(genome.real)) % 2 == 1
    changed = again.real != genome.real
    assert not changed[~sigma].any()
    assert (np.abs(genome.real[changed]) < SIGMA_MIN).all()
    assert (again.real[changed] == SIGMA_MIN).all()


@given(genomes())
def test_a_genome_comes_back_through_json(genome: Genome) -> None:
    """The state keeps every bit."""
    assert same_genome(Genome.from_state(json.loads(json.dumps(genome.to_state()))), genome)


@given(genomes())
def test_every_genome_can_be_saved_as_a_rule_base(genome: Genome) -> None:
    """Mutation may make any σ; what it decodes to is a rule base that a file can hold."""
    rule_base = decode(genome, name="x", seed=3)
    again = rule_base_from_document(rule_base_to_document(rule_base), source="memory")
    assert again == rule_base
    assert (again.name, again.provenance) == ("x", {"seed": 3})


def test_genes_stand_where_figure_3_has_them() -> None:
    """Rule by rule γ and σ of NWP, γ and σ of NJP; recommendations by themselves."""
    genome = Genome(np.arange(1.0, 9.0), np.array([True, False]))
    assert decode(genome).rules == (
        Rule(Gaussian(1, 2), Gaussian(3, 4), accept=True),
        Rule(Gaussian(5, 6), Gaussian(7, 8), accept=False),
    )
    assert feature_values(2, 0.5, 7.0).tolist() == [0.5, 0.5, 7.0, 7.0] * 2
    assert len(genome.binary) == 2


@given(genomes(), st.integers(1, 60), st.data())
def test_a_compiled_genome_decides_as_its_rule_base(
    genome: Genome, processors: int, data: st.DataObject
) -> None:
    """With a table of memberships and without, the output is that of the decoded rules."""
    plain = decode(genome).compiled
    compiled = compile_genome(genome)
    fast = compile_genome(genome, MembershipTable(processors, len(genome.binary)))
    states = st.tuples(st.integers(1, processors), st.integers(0, 300))
    for width, waiting in data.draw(st.lists(states, min_size=1, max_size=20)):
        nwp, njp = waiting / processors, 100.0 * width / processors
        assert compiled.output(nwp, njp) == plain.output(nwp, njp)
        answers = [
            policy.accept(
                width,
                processors=processors,
                processors_free=0,
                processors_waiting=waiting,
                own=True,
            )
            for policy in (fast, plain)
        ]
        assert answers[0] == answers[1]


@pytest.mark.parametrize(("reals", "rules"), [(0, 0), (4, 0), (3, 1), (4, 2), (9, 2)])
def test_parts_that_do_not_belong_together_are_refused(reals: int, rules: int) -> None:
    """Four real genes for each of at least one recommendation."""
    with pytest.raises(ValueError, match=f"{rules} recommendations"):
        rule_count(Genome(np.zeros(reals), np.zeros(rules, np.bool_)))
    assert REALS_PER_RULE == 4


def test_the_defaults_are_the_papers() -> None:
    """Section 4.5: ten rules, started in [0, 10] and [0, 100], steps 0.01 and 0.1."""
    settings = RuleBaseSettings()
    assert settings.rules == 10
    assert (settings.nwp_max, settings.njp_max) == (10, 100)
    assert (settings.nwp_step, settings.njp_step) == (0.01, 0.1)
    assert (len(settings.space.low), settings.space.binaries, settings.space.bounded) == (
        40,
        10,
        False,
    )


@pytest.mark.parametrize(
    "setting",
    [
        {"rules": 0},
        {"rules": RULES_MAX + 1},
        {"nwp_max": 0.0},
        {"njp_max": float("inf")},
        {"nwp_step": float("nan")},
        {"nwp_step": 2e6},
        {"njp_step": -0.1},
    ],
)
def test_settings_out_of_bounds_are_refused(setting: dict[str, Any]) -> None:
    """The text names the setting and its value."""
    name, value = next(iter(setting.items()))
    with pytest.raises(ValueError, match=f"{name} is {value}"):
        RuleBaseSettings(**setting)


def test_whatever_is_learned_fits_into_a_file() -> None:
    """A genome has no more rules than a rule base file."""
    assert RULES_MAX == files.RULES_MAX


def test_further_features_have_genes_after_the_papers() -> None:
    """γ and σ of each, in the order of files; the rule base of a genome can be saved and encoded again."""
    settings = RuleBaseSettings(2, further=("starts_now", "requested_time"))
    assert settings.further == ("requested_time", "starts_now")
    genome = Genome(np.arange(1.0, 17.0), np.array([True, False]))
    found = decode(genome, further=settings.further)
    assert found.rules[1] == Rule(
        Gaussian(9, 10),
        Gaussian(11, 12),
        accept=False,
        requested_time=Gaussian(13, 14),
        starts_now=Gaussian(15, 16),
    )
    assert same_genome(encode(found), genome)
    assert settings.space.high.tolist() == [10, 10, 100, 100, 6, 6, 1, 1] * 2
    assert settings.space.step.tolist() == [0.01, 0.01, 0.1, 0.1, 0.006, 0.006, 0.001, 0.001] * 2
    with pytest.raises(ValueError, match=r"2 recommendations .* 4 real genes"):
        rule_count(genome)
    with pytest.raises(ValueError, match="'load' is no feature"):
        RuleBaseSettings(2, further=("load",))


@pytest.mark.parametrize("rules", [2, 3, 10])
@pytest.mark.parametrize("further", [("starts_now",), ("requested_time", "starts_now")])
def test_rules_can_begin_by_always_agreeing(rules: int, further: tuple[str, ...]) -> None:
    """Every own job is offered and every guest taken, in queues of any length that there is."""
    settings = RuleBaseSettings(rules, further=further)
    compiled = compile_genome(settings.agreeing, None, further)
    for nwp in (0.0, 0.7, 5.0, 50.0, 200.0):
        for njp in (0.1, 40.0, 100.0):
            for request in (0.0, 60.0, 3600.0, 1e7):
                answers = [
                    compiled.output(nwp, njp, requested_time=request, starts_now=now) > 0
                    for now in (False, True)
                ]
                assert answers == [False, True]


def test_only_rules_that_can_tell_own_jobs_from_guests_begin_so() -> None:
    """And one rule cannot say both."""
    for settings in (RuleBaseSettings(4), RuleBaseSettings(1, further=("starts_now",))):
        with pytest.raises(ValueError, match="at least two rules that look at starts_now"):
            _ = settings.agreeing


def test_settings_of_the_paper_are_noted_as_before() -> None:
    """So runs of before go on."""
    assert list(RuleBaseSettings().plain) == ["rules", "nwp_max", "njp_max", "nwp_step", "njp_step"]
    assert RuleBaseSettings(further=("starts_now",)).plain["further"] == ["starts_now"]
