from pathlib import Path
from typing import Any

import pytest

from grms.learning.evolution.strategies import EvolutionStrategy, StrategySettings
from grms.learning.evolution.symbiotic import SymbioticSettings
from grms.learning.limits import Limits
from grms.learning.queueing.encoding import CriterionEncoding, RulesEncoding, TableEncoding
from grms.learning.queueing.fitness import TuningFitness
from grms.learning.queueing.options import WorkloadOptions
from grms.learning.queueing.problem import (
    TuneOptions,
    constant_genome,
    constant_rule_bases,
    problem,
    shared_order,
)
from lrms_sim.scheduling.criteria import GroupOrder
from lrms_sim.scheduling.situations import KINDS
from lrms_sim.scheduling.strategies import Strategy
from tests.tuning_cases import busy_case

LOGS = (Path("a.swf"),)
FEW_RULES = SymbioticSettings(
    parents=6, offspring=10, base_rules=5, bases_per_rule=2, recombined=3, similar=1, clusters=2
)


def options(**changes: Any) -> TuneOptions:
    return TuneOptions(LOGS, **changes)


@pytest.mark.parametrize(
    ("method", "calendar", "kinds"),
    [
        ("f3", "week", ("f3",) * 3),
        ("f1,f2,f4", "week", ("f1", "f2", "f4")),
        ("f4", "hours", ("f4",) * 24),
        ("iterative", "week", ()),
    ],
)
def test_a_method_names_a_criterion_for_each_situation(
    method: str, calendar: str, kinds: tuple[str, ...]
) -> None:
    """One stands for all situations."""
    assert options(method=method, workloads=WorkloadOptions(calendar=calendar)).kinds == kinds
    assert not kinds or len(kinds) == KINDS[calendar]


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"method": "f5"}, "'f5' is no method"),
        ({"method": "f1,f2"}, "names 2 criteria; one is needed, or one for each of the 3"),
        ({"search": "tabu"}, "'tabu' is no strategy"),
        ({"choices": "all"}, "'all' is no set of choices"),
        ({"combination": "max"}, "'max' is no combination"),
        ({"method": "iterative", "standard": "bst"}, "no strategy 'bst'"),
        ({"limits": Limits(generations=0)}, "generation limit is 0"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_read(
    changes: dict[str, Any], complaint: str
) -> None:
    """The text says what is wrong, and what there is."""
    with pytest.raises(ValueError, match=complaint):
        options(**changes)


@pytest.mark.parametrize("kind", ["f1", "f2", "f3", "f4"])
@pytest.mark.parametrize("groups", [(1, 2, 3, 4, 5), (2, 1, 3, 5, 4)])
def test_a_constant_order_lies_within_the_search_space(
    kind: Any, groups: tuple[int, int, int, int, int]
) -> None:
    """As a criterion it is worth exactly what the order itself is, under either algorithm."""
    case = busy_case()
    for algorithm in ("fcfs", "easy"):
        encoding = CriterionEncoding((kind,) * 3, algorithm)
        genome = constant_genome(encoding, GroupOrder(groups))
        space = encoding.space
        assert (genome.real >= space.low).all()
        assert (genome.real <= space.high).all()
        value = TuningFitness([case], encoding)(genome).value
        assert value == case.run(Strategy(algorithm, GroupOrder(groups))).value


def test_a_search_begins_with_the_constant_order_unless_it_is_told_not_to() -> None:
    """So nothing learned is worse on the training jobs than what needs no learning."""
    small = StrategySettings(3, 6)
    order = GroupOrder((2, 1, 3, 4, 5))
    for start, equal in (("constant", True), ("random", False)):
        encoding, search = problem(options(start=start, settings=small), order)
        assert isinstance(encoding, CriterionEncoding)
        assert isinstance(search, EvolutionStrategy)
        first = search.ask()[0].real
        assert (first == constant_genome(encoding, order).real).all() == equal


@pytest.mark.parametrize(
    "changes",
    [
        *({"method": method} for method in ("f1", "f2", "f3", "f4", "iterative", "symbiotic")),
        *({"method": "f2", "search": search} for search in ("self-adaptive", "cma")),
        {"method": "f1,f2,f3"},
        *({"method": method, "algorithm": "easy"} for method in ("f1", "f2", "f3", "f4")),
        *(
            {"method": method, "choices": choices}
            for method in ("iterative", "symbiotic")
            for choices in ("smith", "orders")
        ),
    ],
)
def test_no_search_ends_below_a_constant_in_its_space(changes: dict[str, Any]) -> None:
    """The order of groups for criteria, every single choice for tables and rules: they are judged first."""
    small: dict[str, Any] = {"settings": StrategySettings(2, 4), "symbiotic": FEW_RULES}
    case, order = busy_case(), GroupOrder((2, 1, 3, 4, 5))
    encoding, search = problem(options(**changes, **small), order)
    fitness = TuningFitness([case], encoding)
    judged = [fitness(genome) for genome in search.ask()]
    search.tell([one.value for one in judged], [one.figures for one in judged])
    assert search.best is not None
    constants = [Strategy(changes.get("algorithm", "fcfs"), order)]
    if isinstance(encoding, TableEncoding | RulesEncoding):
        constants = list(encoding.strategies)
    assert search.best.value <= min(case.run(one).value for one in constants)


def test_symbiotic_evolution_begins_with_every_strategy_unless_it_is_told_not_to() -> None:
    """Each is a rule base that is worth exactly what the strategy is, in every state."""
    order = GroupOrder((2, 1, 3, 4, 5))
    settings = FEW_RULES
    counts = []
    for start in ("constant", "random"):
        encoding, search = problem(
            options(method="symbiotic", symbiotic=settings, start=start), order
        )
        counts.append(len(search.ask()))
    assert counts == [13, settings.bases]
    assert isinstance(encoding, RulesEncoding)
    case = busy_case()
    fitness = TuningFitness([case], encoding)
    genomes = constant_rule_bases(encoding, settings)
    assert [fitness(genome).value for genome in genomes] == [
        case.run(one).value for one in encoding.strategies
    ]


@pytest.mark.parametrize("choices", ["paper", "smith", "orders"])
def test_tables_choose_among_strategies_or_orders(choices: Any) -> None:
    """The standard is found by its plain name whatever the order of groups is."""
    order = GroupOrder((2, 1, 3, 4, 5))
    encoding, search = problem(
        options(method="iterative", standard="fcfs-group", choices=choices), order
    )
    assert isinstance(encoding, TableEncoding)
    standard = encoding.strategies[int(search.ask()[0].integer[0])]
    assert (standard.algorithm, type(standard.order)) == ("fcfs", GroupOrder)
    assert standard.order == (GroupOrder() if choices == "paper" else order)
    if choices == "orders":
        assert {one.algorithm for one in encoding.strategies} == {"easy", "fcfs"}
    for one in encoding.strategies:
        assert busy_case().run(one).objectives is not None


def test_limits_and_folders_have_defaults() -> None:
    """Each method its own number of generations; a limit of any kind takes its place."""
    assert options().limits_in_force.generations == 100
    assert options(method="iterative").limits_in_force.generations == 192
    assert options(limits=Limits(seconds=3.0)).limits_in_force.generations is None
    assert options(method="f1,f2,f3").folder == Path("out/tune-a-fcfs-f1-f2-f3")


def test_several_logs_share_an_order() -> None:
    """Work counts as a share, so that the largest log does not decide alone."""
    cases = [busy_case(1), busy_case(2)]
    assert sorted(shared_order(cases).groups) == [1, 2, 3, 4, 5]
    assert shared_order(cases[:1]) == shared_order([cases[0], cases[0]])
