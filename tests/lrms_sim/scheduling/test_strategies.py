"""Strategies, tables and rules against their plain oracles, and what the values refuse."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lrms_sim.kernel._kernel import MachineKernel
from lrms_sim.machine.machine import simulate
from lrms_sim.machine.stepped import Machine
from lrms_sim.scheduling.criteria import (
    CRITERION_KINDS,
    GREEDY_DEFAULT,
    Criterion,
    CriterionOrder,
    GroupOrder,
    Order,
)
from lrms_sim.scheduling.disciplines import Easy, Fcfs, ListScheduling
from lrms_sim.scheduling.selection import (
    CLASSES,
    Policy,
    StrategyRule,
    StrategyRules,
    StrategyTable,
    class_number,
)
from lrms_sim.scheduling.situations import Calendar
from lrms_sim.scheduling.strategies import ALGORITHMS, Strategy, paper_strategies
from lrms_sim.workload.jobs import JobTable
from tests.examples import runs
from tests.oracles.disciplines import simulate_plainly
from tests.oracles.machine import plain_jobs
from tests.oracles.strategies import Chooser, class_of, pass_of
from tests.random_workloads import backlog, random_jobs
from tests.strategies import OneMachine, one_machine

WEEK = 604800.0


def calendar(rng: np.random.Generator, situations: int = 3) -> Calendar:
    """Returns situations that follow each other every few seconds of a workload."""
    steps = rng.choice((1.0, 3.0, 10.0, 60.0), 400)
    times = np.concatenate(([-50.0], np.cumsum(steps), [WEEK, 2 * WEEK]))
    return Calendar(times, rng.integers(0, situations, len(times), np.int32), situations)


def random_criterion(rng: np.random.Generator) -> Criterion:
    """Returns a criterion, now and then with parameters that papers do not look for."""
    kind = CRITERION_KINDS[int(rng.integers(4))]
    signs = rng.choice((1.0, 1.0, 1.0, -1.0, 0.0), 12)
    numbers = np.round(rng.random(12), 1) * signs * rng.choice((1.0, 0.01), 12)
    return Criterion.from_numbers(kind, numbers.tolist())


def random_order(rng: np.random.Generator) -> Order:
    """Returns an order of any kind."""
    orders: tuple[Order, ...] = ("arrival", "processors", "requested_time", random_groups(rng))
    kind = int(rng.integers(7))
    if kind < 4:
        return orders[kind]
    if kind == 4:
        return CriterionOrder((random_criterion(rng),))
    criteria = tuple(random_criterion(rng) for _ in range(3))
    return CriterionOrder(criteria, calendar=calendar(rng))


def random_groups(rng: np.random.Generator) -> GroupOrder:
    """Returns the groups in some order."""
    first, second, third, fourth, fifth = (int(group) for group in rng.permutation(5) + 1)
    return GroupOrder((first, second, third, fourth, fifth))


def random_strategy(rng: np.random.Generator) -> Strategy:
    """Returns any algorithm on any order."""
    return Strategy(ALGORITHMS[int(rng.integers(4))], random_order(rng))


def random_rules(rng: np.random.Generator, strategies: tuple[Strategy, ...]) -> StrategyRules:
    """Returns a few rules about the states that small workloads have."""
    rules = tuple(
        StrategyRule(
            (float(rng.uniform(1, 4)), *rng.uniform(0, 100, 6).tolist()),
            (float(rng.uniform(0.2, 2)), *rng.uniform(2, 60, 6).tolist()),
            tuple(rng.choice((-5.0, -1.0, 0.0, 1.0, 5.0), len(strategies)).tolist()),
        )
        for _ in range(int(rng.integers(1, 8)))
    )
    return StrategyRules(rules, strategies=strategies)


def whole_seconds(jobs: JobTable) -> JobTable:
    """Returns the workload in whole seconds, in which sums of work are exact."""
    return JobTable.from_columns(
        submit_time=np.rint(jobs.submit_time * 10),
        processors=jobs.processors,
        run_time=np.rint(jobs.run_time * 10),
        requested_time=np.rint(jobs.requested_time * 10),
    )


def starts(
    jobs: JobTable, processors: int, discipline: Policy, groups: Sequence[int]
) -> list[float]:
    """Returns the kernel's start times."""
    schedule = simulate(jobs, processors, discipline, groups=np.array(groups, np.int8))
    start_time: list[float] = schedule.start_time.tolist()
    return start_time


def plain_starts(
    jobs: JobTable, processors: int, discipline: Policy, groups: Sequence[int]
) -> list[float]:
    """Returns the oracle's start times."""
    if isinstance(discipline, Strategy):
        make_pass: Any = pass_of(discipline)
    else:
        make_pass = Chooser(discipline, plain_jobs(jobs, groups))
    machine = simulate_plainly(jobs, processors, make_pass, groups)
    return [machine.start_time[row] for row in range(len(jobs))]


@given(case=one_machine(), seed=st.integers(0, 2**32 - 1), algorithm=st.sampled_from(ALGORITHMS))
def test_every_strategy_equals_its_oracle(case: OneMachine, seed: int, algorithm: Any) -> None:
    """A small workload full of ties gets the oracle's start times to the last bit."""
    rng = np.random.default_rng(seed)
    strategy = Strategy(algorithm, random_order(rng))
    groups = rng.integers(1, 6, len(case.jobs)).tolist()
    assert starts(case.jobs, case.processors, strategy, groups) == plain_starts(
        case.jobs, case.processors, strategy, groups
    )


@pytest.mark.parametrize("seed", range(300))
def test_a_random_strategy_equals_its_oracle(seed: int) -> None:
    """Somewhat larger workloads, from light to hopeless load."""
    rng = np.random.default_rng(seed)
    processors = int(rng.integers(1, 40))
    jobs = random_jobs(rng, 50, processors)
    groups = rng.integers(1, 6, len(jobs)).tolist()
    strategy = random_strategy(rng)
    assert starts(jobs, processors, strategy, groups) == plain_starts(
        jobs, processors, strategy, groups
    ), strategy


@pytest.mark.parametrize("algorithm", ["fcfs", "list", "easy"])
@pytest.mark.parametrize("seed", range(runs(4, 8)))
def test_a_long_queue_equals_its_oracle(algorithm: Any, seed: int) -> None:
    """Hundreds of jobs wait, so that a search passes over whole blocks of them by their bounds."""
    rng = np.random.default_rng(seed)
    jobs = backlog(rng, 500, 30)
    groups = rng.choice((1, 2, 5), len(jobs), p=(0.7, 0.2, 0.1)).tolist()
    order = CriterionOrder(tuple(random_criterion(rng) for _ in range(3)), calendar=calendar(rng))
    for strategy in (Strategy(algorithm, order), Strategy(algorithm, random_order(rng))):
        assert starts(jobs, 30, strategy, groups) == plain_starts(jobs, 30, strategy, groups)


@pytest.mark.parametrize("algorithm", ["fcfs", "easy"])
@pytest.mark.parametrize("seed", range(6))
def test_values_that_only_rounding_tells_apart_equal_the_oracle(algorithm: Any, seed: int) -> None:
    """Where waiting hardly counts, or moments are huge, the value as it is written still decides."""
    rng = np.random.default_rng(seed)
    jobs = backlog(rng, 300, 30)
    moments = np.sort(
        np.rint(jobs.submit_time) * rng.choice((0.1, 1.0, 7.0)) + 3e7 * (seed % 3 - 1)
    )
    jobs = replace(jobs, submit_time=moments)
    groups = rng.choice((1, 2, 5), len(jobs), p=(0.5, 0.3, 0.2)).tolist()
    numbers = [1.0, 1.0, 0.0, 1.0, 1 / 3, 5.0, 5.0, 1.0, 0.0, 15.0]
    for kind in CRITERION_KINDS:
        waiting = float(10.0 ** -rng.integers(8, 19)) * rng.choice((1.0, 1.0, -1.0))
        criterion = Criterion.from_numbers(kind, [*numbers, waiting, rng.choice((0.0, 1e-9))])
        strategy = Strategy(algorithm, CriterionOrder((criterion,)))
        assert starts(jobs, 30, strategy, groups) == plain_starts(jobs, 30, strategy, groups)


@pytest.mark.parametrize("seed", range(60))
def test_a_table_equals_its_oracle(seed: int) -> None:
    """The features, the class and the strategy of every pass are the oracle's."""
    rng = np.random.default_rng(seed)
    processors = int(rng.integers(1, 30))
    jobs = whole_seconds(random_jobs(rng, 60, processors))
    groups = rng.integers(1, 6, len(jobs)).tolist()
    strategies = () if seed % 2 else tuple(random_strategy(rng) for _ in range(4))
    entries = rng.integers(0, len(strategies) or 13, CLASSES).tolist()
    table = StrategyTable(tuple(entries), strategies=strategies)
    assert starts(jobs, processors, table, groups) == plain_starts(jobs, processors, table, groups)


@pytest.mark.parametrize("seed", range(60))
def test_rules_equal_their_oracle(seed: int) -> None:
    """Rules choose what the plain sums of Gaussians choose, among any strategies."""
    rng = np.random.default_rng(seed)
    processors = int(rng.integers(1, 30))
    jobs = whole_seconds(random_jobs(rng, 60, processors))
    groups = rng.integers(1, 6, len(jobs)).tolist()
    strategies = paper_strategies() if seed % 2 else tuple(random_strategy(rng) for _ in range(5))
    rules = random_rules(rng, strategies)
    assert starts(jobs, processors, rules, groups) == plain_starts(jobs, processors, rules, groups)


@pytest.mark.parametrize("seed", range(10))
def test_passes_and_visits_are_counted(seed: int) -> None:
    """The scheduler tells the class of each pass in which somebody fitted, and who made it."""
    rng = np.random.default_rng(seed)
    jobs = whole_seconds(random_jobs(rng, 60, 9))
    groups = rng.integers(1, 6, len(jobs))
    table = StrategyTable(tuple(rng.integers(0, 13, CLASSES).tolist()))
    oracle = Chooser(table, plain_jobs(jobs, groups.tolist()))
    simulate_plainly(jobs, 9, oracle, groups.tolist())
    scheduler = table.scheduler()
    start_time, end_time = np.zeros((2, len(jobs)))
    kernel = MachineKernel(9, scheduler)
    kernel.bind(
        jobs.submit_time,
        jobs.processors,
        jobs.requested_time,
        jobs.run_time,
        start_time,
        end_time,
        groups.astype(np.int8),
    )
    kernel.run(len(jobs))
    visits = np.bincount([class_of(state) for state in oracle.visits], minlength=CLASSES)
    assert scheduler.visits == visits.tolist()
    assert scheduler.passes == np.bincount(oracle.chosen, minlength=13).tolist()
    assert sum(scheduler.passes) > 0


@pytest.mark.parametrize(
    ("algorithm", "plain"), [("fcfs", Fcfs()), ("easy", Easy()), ("list", ListScheduling())]
)
@given(case=one_machine())
def test_arrival_is_the_plain_discipline(algorithm: Any, plain: Any, case: OneMachine) -> None:
    """In order of arrival a strategy is the discipline of the same name."""
    schedule = simulate(case.jobs, case.processors, Strategy(algorithm))
    expected = simulate(case.jobs, case.processors, plain)
    assert schedule.start_time.tolist() == expected.start_time.tolist()


@given(case=one_machine())
def test_sorted_by_processors_all_algorithms_are_one(case: OneMachine) -> None:
    """Behind a blocked head nobody is narrower, so there is nothing to backfill."""
    schedules = [
        simulate(case.jobs, case.processors, Strategy(algorithm, "processors"))
        for algorithm in ALGORITHMS
    ]
    for schedule in schedules:
        assert schedule.start_time.tolist() == schedules[0].start_time.tolist()


@given(case=one_machine(), seed=st.integers(0, 2**32 - 1))
def test_a_machine_driven_step_by_step_is_the_same(case: OneMachine, seed: int) -> None:
    """Groups given job by job make the schedule of groups given at once."""
    rng = np.random.default_rng(seed)
    jobs = whole_seconds(case.jobs)
    groups = rng.integers(1, 6, len(jobs)).tolist()
    strategy = random_rules(rng, paper_strategies())
    machine = Machine(case.processors, strategy)
    for row in range(len(jobs)):
        machine.submit(
            submit_time=float(jobs.submit_time[row]),
            processors=int(jobs.processors[row]),
            requested_time=float(jobs.requested_time[row]),
            run_time=float(jobs.run_time[row]),
            group=groups[row],
        )
    machine.advance(float("inf"))
    assert machine.start_time.tolist() == starts(jobs, case.processors, strategy, groups)


@given(
    st.tuples(
        st.sampled_from((1.0, 2.0, 2.5)),
        st.sampled_from((0.0, 75.0, 80.0, 85.0, 90.0)),
        *[st.sampled_from((0.0, 20.0, 22.0, 25.0, 30.0))] * 5,
    )
)
def test_classes_are_the_oracles(state: tuple[float, ...]) -> None:
    """A value on a border belongs to the lower class."""
    assert class_number(state) == class_of(state)


def test_the_thirteen_strategies_have_the_papers_numbers() -> None:
    """Four sortings for each of three algorithms, then Greedy."""
    names = [strategy.name for strategy in paper_strategies()]
    assert names == [
        "fcfs-arrival", "fcfs-processors", "fcfs-requested-time", "fcfs-group",
        "easy-arrival", "easy-processors", "easy-requested-time", "easy-group",
        "conservative-arrival", "conservative-processors", "conservative-requested-time",
        "conservative-group", "greedy-f2",
    ]  # fmt: skip
    assert paper_strategies()[12].order is GREEDY_DEFAULT


def rule(**changes: Any) -> StrategyRule:
    """Returns a rule about the 13 strategies."""
    values: dict[str, Any] = {
        "means": (1.0,) * 7,
        "deviations": (1.0,) * 7,
        "recommendations": (0.0,) * 13,
    }
    return StrategyRule(**(values | changes))


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: StrategyTable((0,) * 191), "191 entries; 192 are needed"),
        (lambda: StrategyTable((0,) * 191 + (13,)), "entry 191 of the table is 13; .* 0 to 12"),
        (lambda: StrategyTable((-1,) + (0,) * 191), "entry 0 of the table is -1"),
        (lambda: StrategyRules(()), "0 rules; from 1"),
        (lambda: StrategyRules((rule(recommendations=(0.0,) * 12),)), "12 recommendations"),
        (lambda: rule(means=(1.0,) * 6), "means has 6 numbers; 7"),
        (lambda: rule(means=(float("nan"),) * 7), "one of means is nan"),
        (lambda: rule(deviations=(0.0,) * 7), "one of deviations is 0.0; .* more than 0"),
        (lambda: Strategy("sjf"), "'sjf' is no algorithm"),  # type: ignore[arg-type]  # the mistake
        (lambda: Strategy("easy", "width"), "'width' is no order"),  # type: ignore[arg-type]  # same
        (lambda: StrategyTable((0,) * 192, strategies=(Strategy("fcfs"),) * 65), "65 strategies"),
    ],
)
def test_what_is_wrong_is_refused(make: Any, said: str) -> None:
    """The error names the value and what is needed."""
    with pytest.raises(ValueError, match=said):
        make()


def test_situations_without_a_calendar_are_refused() -> None:
    """Criteria that differ need to know what time it is; a single one does not."""
    one, other = (Criterion("f1", (w,) * 5, (0.0,) * 5, 1.0) for w in (1.0, 0.5))
    strategy = Strategy("fcfs", CriterionOrder((one, other, one)))
    assert strategy.needs_calendar
    with pytest.raises(ValueError, match="differs from situation to situation"):
        strategy.scheduler()
    bound = strategy.at(calendar(np.random.default_rng(1)))
    assert not bound.needs_calendar
    assert bound.scheduler() is not bound.scheduler()
    assert not Strategy("fcfs", CriterionOrder((one, one, one))).needs_calendar


def test_a_job_without_a_group_is_refused() -> None:
    """A strategy by group is never run on jobs whose groups nobody knows."""
    jobs = JobTable.from_columns(submit_time=[0.0], processors=[1], run_time=[1.0])
    with pytest.raises(ValueError, match="does not say which user"):
        simulate(jobs, 1, Strategy("easy", GroupOrder()))
    machine = Machine(1, Strategy("easy", GroupOrder()))
    with pytest.raises(ValueError, match="needs the user group"):
        machine.submit(submit_time=0.0, processors=1, requested_time=1.0, run_time=1.0)
    with pytest.raises(ValueError, match=r"group is 6; it must be in 1\.\.5"):
        machine.submit(submit_time=0.0, processors=1, requested_time=1.0, run_time=1.0, group=6)
    for wrong in ([0], [6]):
        with pytest.raises(ValueError, match="groups run from"):
            simulate(jobs, 1, Strategy("easy", GroupOrder()), groups=np.array(wrong))
    with pytest.raises(ValueError, match=r"groups has shape \(2,\) for 1 jobs"):
        simulate(jobs, 1, Strategy("easy", GroupOrder()), groups=np.array([1, 1]))
