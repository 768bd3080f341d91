import math
import pickle
from dataclasses import replace

import numpy as np
import pytest

from grms.federation.federation import Federation, Site
from grms.learning.evolution.genes import Genome
from grms.learning.evolution.operators import uniform_genome
from grms.learning.evolution.randomness import generator
from grms.learning.evolution.self_play import joined, parted
from grms.learning.transfer.encoding import RuleBaseSettings, decode
from grms.learning.transfer.fitness import PENALTY
from grms.learning.transfer.self_play import MatchFitness, within_constraints_alone
from grms.policy.constraints import FAIR_EXCHANGE, STRICT_EXCHANGE, ExchangeConstraints
from grms.policy.transfer import Constrained
from lrms_sim.workload.jobs import JobTable
from tests.training_grids import two_sites

SETTINGS = RuleBaseSettings(4, further=("requested_time", "starts_now"))
CASES = [two_sites(1), two_sites(2)]


def random_meeting(seed: int) -> list[Genome]:
    return [uniform_genome(generator(2 * seed + place), SETTINGS.space) for place in range(2)]


@pytest.mark.parametrize("rails", [FAIR_EXCHANGE, STRICT_EXCHANGE], ids=["fair", "strict"])
def test_rules_that_always_agree_are_the_constraints_alone(rails: ExchangeConstraints) -> None:
    """To the last bit, guests included that may be sent home; so the value that all have to beat is 1."""
    fitness = MatchFitness(CASES, rails, SETTINGS)
    found = fitness(joined([SETTINGS.agreeing] * 2))
    assert found.value == 1.0
    assert found.figures == ((1.0, 1.0), *fitness.constant)
    for sites, constant, alone in zip(CASES, fitness.constant, fitness.alone, strict=True):
        constrained = Federation(within_constraints_alone(sites, rails))
        assert constant == tuple(constrained.awrt())
        assert constant != alone


def test_a_meeting_is_what_its_rule_bases_do_in_a_replay() -> None:
    """Cost and value of random rule bases, recomputed from a federation of them."""
    moved = 0
    egoistic = MatchFitness(CASES, FAIR_EXCHANGE, SETTINGS)
    careful = MatchFitness(CASES, FAIR_EXCHANGE, SETTINGS, "no_loser")
    for seed in range(6):
        match = random_meeting(seed)
        rule_bases = [decode(one, further=SETTINGS.further) for one in match]
        awrt = []
        for sites in CASES:
            a, b = (
                replace(site, transfer_policies={other: Constrained(FAIR_EXCHANGE, rules)})
                for site, other, rules in zip(sites, "ba", rule_bases, strict=True)
            )
            awrt.append(Federation([a, b]).awrt())
        parts = np.array(awrt) / np.array(egoistic.constant)
        over = np.maximum(parts - 1, 0)
        value = parts.mean() + PENALTY * over.sum() / 2
        one, other = egoistic(joined(match)), careful(joined(match))
        assert [list(row) for row in one.figures[1:]] == awrt
        assert one.value == other.value == pytest.approx(value, rel=1e-12)
        assert one.figures[0] == pytest.approx(parts.mean(axis=0), rel=1e-12)
        losses = PENALTY * over[:, ::-1].mean(axis=0)
        assert other.figures[0] == pytest.approx(parts.mean(axis=0) + losses, rel=1e-12)
        moved += one.value != 1.0
    assert moved > 3


def test_it_goes_to_other_processes() -> None:
    """Its room to work in does not."""
    fitness = MatchFitness(CASES[:1], FAIR_EXCHANGE, SETTINGS)
    match = joined(random_meeting(1))
    again = pickle.loads(pickle.dumps(fitness))  # noqa: S301  # its own
    assert again(match) == fitness(match)
    assert len(parted(match, 2)) == 2


def test_cases_that_cannot_be_are_refused() -> None:
    """With what is wrong."""
    a, b = two_sites(1)
    with pytest.raises(ValueError, match="at least one training case"):
        MatchFitness([], FAIR_EXCHANGE, SETTINGS)
    with pytest.raises(ValueError, match="names and sizes must agree"):
        MatchFitness([[a, b], [a, replace(b, processors=99)]], FAIR_EXCHANGE, SETTINGS)
    with pytest.raises(ValueError, match="site 'b' has no jobs"):
        MatchFitness([[a, replace(b, jobs=JobTable.empty())]], FAIR_EXCHANGE, SETTINGS)
    with pytest.raises(ValueError, match="the objective is 'fair'"):
        MatchFitness([[a, b]], FAIR_EXCHANGE, SETTINGS, "fair")  # type: ignore[arg-type]  # not one of the two


def test_who_does_not_exchange_is_not_made_to() -> None:
    """Exchange constraints come where policies were."""
    a, b = two_sites(1)
    stranger = Site("c", 5, b.jobs.__class__.empty())
    constrained = within_constraints_alone([a, b, stranger], FAIR_EXCHANGE)
    assert [list(site.transfer_policies) for site in constrained] == [["b"], ["a"], []]
    assert all(math.isfinite(x) for x in Federation(constrained).awrt()[:2])
