import math
import pickle
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from grms.federation.federation import Federation, ReplayWorkspace, Site
from grms.learning.evolution.genes import Genome
from grms.learning.evolution.operators import uniform_genome
from grms.learning.evolution.randomness import generator
from grms.learning.transfer.encoding import RuleBaseSettings, compile_genome, decode, encode
from grms.learning.transfer.fitness import PENALTY, Fitness, TrainingCase
from grms.learning.transfer.self_play import within_constraints_alone
from grms.policy._decisions import MembershipTable
from grms.policy.constraints import FAIR_EXCHANGE
from grms.policy.transfer import AcceptWhenFit, AlwaysKeep, Constrained
from lrms_sim.analysis.metrics import awrt
from lrms_sim.workload.jobs import JobTable, concatenate
from tests.kernel_sites import kernel_site, plain_policy
from tests.oracles.federation import PlainSite, replay_plainly
from tests.random_workloads import random_sites
from tests.strategies import federations
from tests.training_grids import (
    YES,
    genomes,
    grid_of_known_optimum,
    rule_space,
    small_fitness,
    two_sites,
)

NEVER = Genome(np.array([0.0, 1e9, 0.0, 1e9]), np.array([False]))
"""Gives every own job away and takes no other."""


def fast_awrt(sites: Sequence[Site], genome: Genome, partners: Sequence[str]) -> list[float]:
    """Returns the AWRT of each site as a fitness computes it, the first using the genome."""
    federation = Federation(sites)
    table = MembershipTable(sites[0].processors, len(genome.binary))
    policy = compile_genome(genome, table)
    instead = {(sites[0].name, partner): policy for partner in partners}
    return federation.awrt(instead, ReplayWorkspace(len(federation.jobs)))


def plain_awrt(sites: Sequence[Site], genome: Genome, partners: Sequence[str]) -> list[float]:
    """Returns the same without tables of memberships and with nothing compiled beforehand."""
    policies = {**sites[0].transfer_policies, **dict.fromkeys(partners, decode(genome))}
    return Federation([replace(sites[0], transfer_policies=policies), *sites[1:]]).awrt()


def oracle_awrt(sites: Sequence[PlainSite], genome: Genome) -> list[float] | None:
    """Returns what the oracle finds; None where rounding decides."""
    policies = dict.fromkeys(sites[0].policies, plain_policy(decode(genome)))
    changed = [replace(sites[0], policies=policies), *sites[1:]]
    oracle = replay_plainly(changed)
    if oracle.closest_call < 1e-9:
        return None
    jobs, origin, _ = concatenate([site.jobs for site in sites])
    weighted = jobs.resource_consumption * (np.array(oracle.end_time()) - jobs.submit_time)
    return [
        math.fsum(weighted[origin == index]) / math.fsum(jobs.resource_consumption[origin == index])
        if (origin == index).any()
        else math.nan
        for index in range(len(sites))
    ]


@given(sites=federations(), genome=genomes())
def test_the_fast_evaluation_is_the_plain_one(sites: list[PlainSite], genome: Genome) -> None:
    """Memberships computed once each and one compiled policy in place of another: same bits."""
    partners = tuple(sites[0].policies)
    kernel_sites = [kernel_site(site) for site in sites]
    fast = fast_awrt(kernel_sites, genome, partners)
    plain = plain_awrt(kernel_sites, genome, partners)
    assert np.array(fast).tobytes() == np.array(plain).tobytes()


@given(sites=federations(), genome=genomes())
def test_small_federations_equal_the_oracle(sites: list[PlainSite], genome: Genome) -> None:
    """Whatever the genes, a plain second reading of the paper finds the same AWRT."""
    expected = oracle_awrt(sites, genome)
    assume(expected is not None)
    fast = fast_awrt([kernel_site(site) for site in sites], genome, tuple(sites[0].policies))
    assert fast == pytest.approx(expected, rel=1e-12, nan_ok=True)


def test_hundreds_of_random_federations_equal_plain_and_oracle() -> None:
    """Larger ones, with founders as a strategy draws them, so that queues and histories grow."""
    compared = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        sites = random_sites(rng, jobs_max=60)
        genome = uniform_genome(rng, rule_space(int(rng.integers(1, 11))))
        kernel_sites = [kernel_site(site) for site in sites]
        partners = tuple(sites[0].policies)
        fast = fast_awrt(kernel_sites, genome, partners)
        plain = plain_awrt(kernel_sites, genome, partners)
        assert np.array(fast).tobytes() == np.array(plain).tobytes(), f"seed {seed}"
        expected = oracle_awrt(sites, genome)
        if expected is not None:
            assert fast == pytest.approx(expected, rel=1e-12), f"seed {seed}"
            compared += 1
    assert compared >= 190


def test_one_fitness_for_many_genomes() -> None:
    """Tables and room are used again for every individual and number of rules; nothing is left."""
    fitness = small_fitness()
    rng = generator(1)
    individuals = [uniform_genome(rng, rule_space(rules)) for rules in (1, 3, 10, 3, 1) * 10]
    values = [fitness(genome) for genome in individuals]
    for genome, found in zip(individuals, values, strict=True):
        assert plain_awrt(two_sites(), genome, ["b"]) == list(found.figures[0])
        assert found.value == found.figures[0][0]
    assert [fitness(genome) for genome in reversed(individuals)] == values[::-1]
    assert len({found.value for found in values}) > 10


def test_what_is_compared_with_is_each_site_alone() -> None:
    """`alone` has the AWRT of every site without exchange."""
    fitness = small_fitness(3)
    schedule = fitness.cases[0].federation.replay_alone()
    expected = [awrt(schedule, submitted_to=index) for index in (0, 1)]
    assert list(fitness.alone[0]) == pytest.approx(expected, rel=1e-12)


def test_threads_do_not_disturb_each_other() -> None:
    """Four threads find what one finds."""
    fitness = small_fitness(2)
    rng = generator(5)
    individuals = [uniform_genome(rng, rule_space(4)) for _ in range(200)]
    expected = [fitness(genome) for genome in individuals]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(fitness, individuals)) == expected


def test_a_fitness_can_be_sent_to_another_process() -> None:
    """Pickled and back, before and after use, it finds the same."""
    fitness = small_fitness(4, "no_loser")
    genome = uniform_genome(generator(1), rule_space(3))
    fresh = pickle.loads(pickle.dumps(fitness))  # noqa: S301  # written one line above
    value = fitness(genome)
    used = pickle.loads(pickle.dumps(fitness))  # noqa: S301  # same
    assert fresh(genome) == used(genome) == value


def test_several_cases_are_averaged() -> None:
    """The fitness is the mean over replays; each replay's AWRT can be looked up."""
    cases = [TrainingCase(Federation(two_sites(seed)), "a", ("b",)) for seed in (1, 2, 3)]
    genome = uniform_genome(generator(3), rule_space(3))
    single = [Fitness([case])(genome) for case in cases]
    together = Fitness(cases)(genome)
    assert together.figures == tuple(one.figures[0] for one in single)
    assert together.value == sum(one.value for one in single) / 3


def test_the_optimum_of_the_known_grid_is_what_it_is_said_to_be() -> None:
    """Narrow jobs kept and wide ones given away reach the least AWRT; what is simpler does not."""
    fitness, least = grid_of_known_optimum()
    wise = Genome(np.array([0.0, 1e9, 25.0, 10.0, 0.0, 1e9, 75.0, 10.0]), np.array([True, False]))
    assert fitness(wise).value == pytest.approx(least, rel=1e-12)
    assert fitness(encode(YES)).value > 1.2 * least
    assert fitness(NEVER).value > 1.2 * least


# No loser.


def crowded_partner() -> list[Site]:
    """Returns `a`, which gains by giving its jobs away, and `b`, which loses by taking them."""
    mine = JobTable.from_columns(submit_time=[0, 0, 0], processors=[1] * 3, run_time=[100] * 3)
    theirs = JobTable.from_columns(submit_time=[1, 2], processors=[2, 2], run_time=[10, 10])
    return [
        Site("a", 1, mine, transfer_policies={"b": AlwaysKeep()}),
        Site("b", 2, theirs, transfer_policies={"a": YES}),
    ]


def test_a_partners_loss_is_penalised() -> None:
    """AWRT relative to being alone, plus the penalty times a partner's relative loss, by hand."""
    federation = Federation(crowded_partner())
    egoistic = Fitness([TrainingCase(federation, "a", ("b",))])
    no_loser = Fitness([TrainingCase(federation, "a", ("b",))], "no_loser")
    # Alone, a ends at 100, 200, 300; b starts at once and then after its first job.
    assert no_loser.alone == ((200.0, (10.0 + 19.0) / 2),)
    keep = encode(YES)
    assert egoistic(keep).value == 200.0
    assert no_loser(keep).value == 1.0
    # Given away, two run on b at once and the third in front of b's own.
    given = egoistic(NEVER)
    assert given.figures == (((100.0 + 100.0 + 200.0) / 3, (209.0 + 218.0) / 2),)
    loss = given.figures[0][1] / no_loser.alone[0][1] - 1.0
    assert no_loser(NEVER).value == given.figures[0][0] / 200.0 + PENALTY * loss
    assert egoistic(NEVER).value < egoistic(keep).value
    assert no_loser(NEVER).value > no_loser(keep).value


def test_a_partners_gain_is_no_penalty_and_no_credit() -> None:
    """Where nobody loses the value is the site's own AWRT, relative to being alone."""
    sites = [replace(site, transfer_policies={}) for site in crowded_partner()]
    sites[1] = Site("b", 2, JobTable.empty(), transfer_policies={"a": YES})
    fitness = Fitness([TrainingCase(Federation(sites), "a", ("b",))], "no_loser")
    # The partner has no jobs, so it can lose nothing.
    assert math.isnan(fitness.alone[0][1])
    found = fitness(NEVER)
    assert found.value == pytest.approx((400.0 / 3) / 200.0)
    assert math.isnan(found.figures[0][1])


@given(seed=st.integers(0, 50), genome=genomes())
def test_both_objectives_see_the_same_replays(seed: int, genome: Genome) -> None:
    """`no_loser` is at least the relative AWRT, and just that where no partner loses."""
    egoistic, no_loser = small_fitness(seed)(genome), small_fitness(seed, "no_loser")(genome)
    assert egoistic.figures == no_loser.figures
    alone = small_fitness(seed).alone[0]
    relative = [after / before for after, before in zip(egoistic.figures[0], alone, strict=True)]
    assert no_loser.value == relative[0] + PENALTY * max(0.0, relative[1] - 1.0)


# The caller's mistakes.


@pytest.mark.parametrize(
    ("site", "partners", "complaint"),
    [
        ("c", ("b",), "no site 'c'; the sites are a, b"),
        ("a", ("c",), "no site 'c'"),
        ("a", (), "'a' needs a partner"),
        ("a", ("a",), "'a' needs a partner other than itself"),
    ],
)
def test_names_that_are_not_there_are_refused(
    site: str, partners: tuple[str, ...], complaint: str
) -> None:
    """The text names the site, and those there are."""
    with pytest.raises(ValueError, match=complaint):
        TrainingCase(Federation(two_sites()), site, partners)


def test_cases_that_do_not_belong_together_are_refused() -> None:
    """None at all, a site of two sizes, a site without jobs, an unknown objective."""
    case = TrainingCase(Federation(two_sites()), "a", ("b",))
    with pytest.raises(ValueError, match="at least one training case"):
        Fitness([])
    larger = [replace(two_sites()[0], processors=11), two_sites()[1]]
    with pytest.raises(ValueError, match=r"\[10, 11\] processors"):
        Fitness([case, TrainingCase(Federation(larger), "a", ("b",))])
    idle = [replace(two_sites()[0], jobs=JobTable.empty()), two_sites()[1]]
    with pytest.raises(ValueError, match="'a' has no jobs"):
        Fitness([TrainingCase(Federation(idle), "a", ("b",))])
    with pytest.raises(ValueError, match="'selfless'; there are: egoistic, no_loser"):
        Fitness([case], "selfless")  # type: ignore[arg-type]  # the mistake in question
    assert isinstance(two_sites()[0].transfer_policies["b"], AcceptWhenFit)


def test_within_constraints_the_rules_decide_what_is_left() -> None:
    """Fitness and constant are those of a federation with the same policies."""
    further = ("requested_time", "starts_now")
    settings = RuleBaseSettings(3, further=further)
    changed = 0
    for seed in range(6):
        a, b = within_constraints_alone(two_sites(seed), FAIR_EXCHANGE)
        fitness = Fitness(
            [TrainingCase(Federation([a, b]), "a", ("b",))], rails=FAIR_EXCHANGE, further=further
        )
        assert fitness.constant() == (tuple(Federation([a, b]).awrt()),)
        assert fitness(settings.agreeing).figures == fitness.constant()
        genome = uniform_genome(generator(seed), settings.space)
        constrained = Constrained(FAIR_EXCHANGE, decode(genome, further=further))
        expected = Federation([replace(a, transfer_policies={"b": constrained}), b]).awrt()
        assert fitness(genome).figures == (tuple(expected),)
        changed += fitness(genome).figures != fitness.constant()
    assert changed > 1


def test_the_constant_without_constraints_is_accept_when_fit() -> None:
    """At the site that learns; its partners do what they do."""
    fitness = small_fitness()
    assert fitness.constant() == (tuple(Federation(two_sites(1)).awrt()),)
