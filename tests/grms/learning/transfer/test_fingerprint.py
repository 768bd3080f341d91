import json
from dataclasses import replace
from datetime import UTC

import pytest

from grms.federation.federation import Federation, Site
from grms.learning.fingerprint import first_difference
from grms.learning.transfer.encoding import RuleBaseSettings
from grms.learning.transfer.fingerprint import (
    describe_fitness,
    describe_matches,
    discipline_words,
    policy_words,
)
from grms.learning.transfer.fitness import Fitness, TrainingCase
from grms.learning.transfer.self_play import MatchFitness
from grms.policy.constraints import FAIR_EXCHANGE, START_NOW, ExchangeConstraints
from grms.policy.location import FixedOrder
from grms.policy.transfer import AcceptWhenFit, AlwaysKeep, Constrained, Gaussian, Rule, RuleBase
from lrms_sim.machine.nodes import Demands, NodeKind, NodeMachine
from lrms_sim.scheduling.criteria import GREEDY_DEFAULT, GroupOrder
from lrms_sim.scheduling.disciplines import Easy, Fcfs
from lrms_sim.scheduling.selection import CLASSES, Policy, StrategyTable
from lrms_sim.scheduling.situations import make_calendar
from lrms_sim.scheduling.strategies import Strategy
from lrms_sim.workload.jobs import JobTable
from lrms_sim.workload.requests import Gpus
from tests.training_grids import YES, two_sites


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
