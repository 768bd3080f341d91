import json
import math
import pickle
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from grms.federation.federation import Federation, ReplayWorkspace, Site
from grms.learning.checkpoint import first_difference
from grms.learning.evolution.genes import Genome, uniform_genome
from grms.learning.evolution.randomness import generator
from grms.learning.evolution.self_play import joined, parted
from grms.learning.transfer.encoding import RuleBaseSettings, compile_genome, decode, encode
from grms.learning.transfer.fitness import (
    PENALTY,
    Fitness,
    MatchFitness,
    TrainingCase,
    describe_fitness,
    describe_matches,
    discipline_words,
    policy_words,
    within_constraints_alone,
)
from grms.policy._decisions import MembershipTable
from grms.policy.constraints import FAIR_EXCHANGE, START_NOW, STRICT_EXCHANGE, ExchangeConstraints
from grms.policy.location import FixedOrder
from grms.policy.transfer import AcceptWhenFit, AlwaysKeep, Constrained, Gaussian, Rule, RuleBase
from lrms_sim.analysis.metrics import awrt
from lrms_sim.machine.nodes import Demands, NodeKind, NodeMachine
from lrms_sim.scheduling.criteria import GREEDY_DEFAULT, GroupOrder
from lrms_sim.scheduling.disciplines import Easy, Fcfs
from lrms_sim.scheduling.selection import CLASSES, Policy, StrategyTable
from lrms_sim.scheduling.situations import make_calendar
from lrms_sim.scheduling.strategies import Strategy
from lrms_sim.workload.jobs import JobTable, concatenate
from lrms_sim.workload.requests import Gpus
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


def describe(sites: list[Site], objective: str = "egoistic") -> dict[str, object]:
    return describe_fitness(
        Fitness([TrainingCase(Federation(sites), "a", ("b",))], objective)  # type: ignore[arg-type]  # one of the two
    )


def test_a_rule_base_is_told_by_its_rules() -> None:
    """Two of one name are two, the same rules of another provenance are one."""
    one = RuleBase((Rule(Gaussian(0, 1), Gaussian(0, 1), accept=True),), "x", {"seed": 1})
    other = RuleBase((Rule(Gaussian(0, 2), Gaussian(0, 1), accept=True),), "x", {"seed": 1})
    assert policy_words(one) == policy_words(replace(one, provenance={}))
    assert policy_words(one) != policy_words(other)
    assert policy_words(AcceptWhenFit()) == "awf"


def test_a_strategy_is_told_by_what_it_does() -> None:
    """Two strategies of one name are two, at another calendar too; the built-in ones go by name."""
    one = Strategy("easy", GREEDY_DEFAULT, "ours")
    other = Strategy("fcfs", GREEDY_DEFAULT, "ours")
    tables = [StrategyTable((place,) * CLASSES, name="ours") for place in (0, 1)]
    week = [make_calendar("week", zone=UTC, unix_start=s, first=0, last=1e6) for s in (0, 3600)]
    policies: list[Policy] = [one, other, *tables, *(one.at(calendar) for calendar in week)]
    words = [discipline_words(policy) for policy in policies]
    assert len(set(words)) == len(words)
    assert all(word.startswith("ours (SHA-256 of what it does: ") for word in words)
    assert discipline_words(Strategy("easy", GREEDY_DEFAULT, "ours")) == words[0]
    assert discipline_words(Strategy("easy", GroupOrder())) == "easy-group"
    assert discipline_words(Easy()) == "easy"


def test_a_description_is_plain_and_repeatable() -> None:
    """JSON keeps it, and two readings of the same are equal."""
    described = describe(two_sites())
    assert json.loads(json.dumps(described)) == described
    assert first_difference(described, describe(two_sites())) is None


def test_what_is_learned_is_not_part_of_what_it_rests_on() -> None:
    """The policies that evolve are left out; those of everybody else are in."""
    described = describe(two_sites())
    sites = described["cases"][0]["sites"]  # type: ignore[index]  # nested plain values
    assert sites[0]["policies"] == {}
    assert sites[1]["policies"] == {"a": "awf"}
    mine = [replace(two_sites()[0], transfer_policies={"b": AlwaysKeep()}), two_sites()[1]]
    assert describe(mine) == described


def test_nodes_and_requests_are_part_of_it() -> None:
    """Another node, another request, or what is told of it makes another description."""
    a, b = two_sites()
    machine = NodeMachine((NodeKind("n", 1, b.processors, 0, 2, "", frozenset({"ib"})),))
    b = replace(b, nodes=machine, discipline=Fcfs())
    described = describe([a, b])
    assert json.loads(json.dumps(described)) == described
    assert first_difference(described, describe([a, replace(b, nodes=None)]))
    larger = replace(machine, kinds=(replace(machine.kinds[0], gpus=4),))
    wanted = [replace(request, gpus=Gpus(1)) for request in Demands.of_processors(b.jobs).requests]
    changed = replace(Demands.of_processors(b.jobs), requests=tuple(wanted))
    for other in (
        replace(b, nodes=larger),
        replace(b, demands=changed),
        replace(b, tells="processors"),
    ):
        assert first_difference(described, describe([a, other])) is not None


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"discipline": Easy()}, r"cases[0].sites[1].discipline was 'fcfs' and is 'easy'"),
        ({"processors": 26}, "cases[0].sites[1].processors was 25 and is 26"),
        (
            {"transfer_policies": {"a": YES}},
            "cases[0].sites[1].policies.a was 'awf' and is 'yes (SHA-256 of its rules: ",
        ),
        (
            {"location_policy": FixedOrder(("a",))},
            "cases[0].sites[1].location was 'awrt' and is ['a']",
        ),
        (
            {"jobs": JobTable.from_columns(submit_time=[0], processors=[1], run_time=[10])},
            "cases[0].sites[1].jobs was ",
        ),
        ({"transfer_policies": {}}, "cases[0].sites[1].policies.a is there no more"),
    ],
)
def test_a_difference_is_named_with_its_place(change: dict[str, object], place: str) -> None:
    """Whatever the values of a fitness depend on."""
    a, b = two_sites()
    changed = [a, replace(b, **change)]  # type: ignore[arg-type]  # one field of a site
    difference = first_difference(describe(two_sites()), describe(changed))
    assert difference is not None
    assert difference.startswith(place)


def test_constraints_and_features_are_told() -> None:
    """Those of a policy, of a fitness and of matches; a run of the paper says nothing of them."""
    assert policy_words(Constrained(START_NOW, YES)) != policy_words(
        Constrained(FAIR_EXCHANGE, YES)
    )
    assert policy_words(Constrained(START_NOW)).startswith("agree within ExchangeConstraints(")
    case = TrainingCase(Federation(two_sites()), "a", ("b",))
    assert not {"rails", "features"} & set(describe_fitness(Fitness([case])))
    constrained = describe_fitness(Fitness([case], rails=START_NOW, further=("starts_now",)))
    assert constrained["rails"]["rules"] == "start-now"
    assert constrained["rails"]["promise"] is None
    assert constrained["features"] == ["nwp", "njp", "starts_now"]
    own = describe_fitness(Fitness([case], rails=ExchangeConstraints(guest_length=3.0)))
    assert (own["rails"]["rules"], own["rails"]["guest_length"]) == ("own", 3.0)
    settings = RuleBaseSettings(2, further=("starts_now",))
    matches = describe_matches(MatchFitness([two_sites()], FAIR_EXCHANGE, settings))
    assert matches["self_play"] == ["a", "b"]
    assert matches["rails"]["balance"] == 86400.0
    assert [site["policies"] for site in matches["cases"][0]["sites"]] == [{}, {}]
    json.dumps(matches)
