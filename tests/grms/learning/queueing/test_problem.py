from pathlib import Path
from typing import Any

import numpy as np
import pytest

from grms.learning.evolution.strategies import EvolutionStrategy, StrategySettings
from grms.learning.evolution.symbiotic import SymbioticSettings
from grms.learning.evolution.termination import Limits
from grms.learning.queueing.encoding import CriterionEncoding, RulesEncoding, TableEncoding
from grms.learning.queueing.fitness import TuningFitness
from grms.learning.queueing.options import WorkloadOptions
from grms.learning.queueing.problem import (
    TuneOptions,
    WorkloadError,
    constant_genome,
    constant_rule_bases,
    problem,
    read_workload,
    read_workloads,
    shared_order,
    split,
)
from lrms_sim.scheduling.criteria import GroupOrder
from lrms_sim.scheduling.situations import KINDS
from lrms_sim.scheduling.strategies import Strategy
from lrms_sim.workload.groups import user_groups
from tests.tuning_cases import HEADER, busy_case, busy_jobs, busy_log

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


def test_a_log_becomes_what_is_learned_on_and_what_is_unseen(tmp_path: Path) -> None:
    """Days for each; the groups of each part are its own; the calendar is the header's."""
    path = busy_log(tmp_path / "busy.swf")
    workload = read_workload(path, WorkloadOptions(training=(0, 1)))
    assert workload.name == "busy"
    assert workload.unseen is not None
    training, unseen = workload.training.trial, workload.unseen.trial
    assert len(training.jobs) + len(unseen.jobs) == 300
    assert training.jobs.submit_time.max() < 86400 <= unseen.jobs.submit_time.min()
    for trial in (training, unseen):
        assert trial.processors == 16
        assert trial.groups.tolist() == user_groups(trial.jobs).tolist()
    assert workload.training.calendar is not None
    assert workload.warnings == ()
    assert workload.provenance["jobs"] == len(training.jobs)


def test_a_number_of_jobs_is_a_training_too(tmp_path: Path) -> None:
    """The first so many; all others are unseen, none is in both."""
    workload = read_workload(busy_log(tmp_path / "a.swf"), WorkloadOptions(first_jobs=100))
    assert workload.unseen is not None
    assert len(workload.training.trial.jobs) == 100
    assert len(workload.unseen.trial.jobs) == 200
    both = np.intersect1d(workload.training.trial.jobs.job_id, workload.unseen.trial.jobs.job_id)
    assert len(both) == 0


def test_without_days_nothing_is_unseen_and_that_is_said(tmp_path: Path) -> None:
    """A header without a time zone is said, too; it matters to some criteria only."""
    path = busy_log(tmp_path / "a.swf", header="; MaxProcs: 16\n")
    workload = read_workload(path, WorkloadOptions())
    assert workload.unseen is None
    assert workload.training.calendar is None
    assert "UnixStartTime" in workload.warnings[0]
    assert "no unseen jobs" in workload.warnings[1]


def test_a_larger_machine(tmp_path: Path) -> None:
    """Scaled before it is cut, as the papers did it; the seed decides."""
    path = busy_log(tmp_path / "a.swf")
    one, same, other = (
        read_workload(path, WorkloadOptions(scale_to=64, scale_seed=seed)) for seed in (1, 1, 2)
    )
    assert one.training.trial.processors == 64
    assert one.provenance["jobs_sha256"] == same.provenance["jobs_sha256"]
    assert one.provenance["jobs_sha256"] != other.provenance["jobs_sha256"]
    assert len(one.training.trial.jobs) > 600


@pytest.mark.parametrize(
    ("header", "options", "complaint"),
    [
        ("", WorkloadOptions(), "how large the machine is; say it with --processors"),
        (HEADER, WorkloadOptions(training=(90, 100)), "no job is left to tune on"),
        (HEADER, WorkloadOptions(training=(0, 1), unseen=(0.5, 2)), "share jobs with those"),
        (HEADER, WorkloadOptions(scale_to=8), "processors_to is 8"),
        (HEADER, WorkloadOptions(theta=(0, 0, 0, 0, 0)), "theta is 0 for every group"),
    ],
)
def test_what_nothing_can_be_tuned_on_is_named(
    tmp_path: Path, header: str, options: WorkloadOptions, complaint: str
) -> None:
    """The file, what is wrong, and what to do."""
    path = busy_log(tmp_path / "a.swf", header=header)
    with pytest.raises(WorkloadError, match=complaint) as caught:
        read_workload(path, options)
    assert str(caught.value).startswith(str(path))


def test_logs_that_are_none(tmp_path: Path) -> None:
    """No log, text that is no log, a log without users."""
    with pytest.raises(WorkloadError, match="at least one log"):
        read_workloads([], WorkloadOptions())
    path = tmp_path / "a.swf"
    path.write_text("hello\n")
    with pytest.raises(WorkloadError, match=r"a\.swf"):
        read_workload(path, WorkloadOptions())
    path.write_text("; MaxProcs: 4\n1 0 -1 10 2 -1 -1 2 20 -1 1 -1 1 -1 1 -1 -1 -1\n")
    with pytest.raises(WorkloadError, match="which user any of its jobs belongs to"):
        read_workload(path, WorkloadOptions())


def test_the_rest_is_unseen_also_where_jobs_come_at_one_instant() -> None:
    """A cut between two jobs of one second leaves each on its side."""
    jobs = busy_jobs()
    same = type(jobs).from_columns(
        submit_time=np.zeros(10), processors=np.ones(10), run_time=np.ones(10), user=np.arange(10)
    )
    training, unseen = split(same, WorkloadOptions(first_jobs=4))
    assert training.job_id.tolist() + unseen.job_id.tolist() == same.job_id.tolist()
