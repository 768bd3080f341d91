"""Queue orders of comparison papers and EASY++, against their oracles and a reference."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lrms_sim.machine.machine import simulate
from lrms_sim.machine.stepped import Machine
from lrms_sim.scheduling.criteria import KEY_ORDERS, ORDER_WORDS
from lrms_sim.scheduling.disciplines import EasyPlusPlus, discipline_by_name
from lrms_sim.scheduling.strategies import ALGORITHMS, Strategy
from lrms_sim.scheduling.strategy_files import (
    StrategyFile,
    StrategyFileError,
    strategy_from_document,
    strategy_to_document,
)
from lrms_sim.workload.jobs import JobTable
from tests.oracles.disciplines import KEYS, by_key, easy_by, simulate_plainly
from tests.oracles.predictions import PredictingMachine
from tests.oracles.strategies import ALGORITHMS as PASSES_OF_ALGORITHMS
from tests.random_workloads import backlog, random_jobs
from tests.strategies import ORDERED, OneMachine, one_machine


def with_users(jobs: JobTable, users: int, seed: int = 0) -> JobTable:
    """Returns the same jobs, of users 0, 1, … and some of unknown ones."""
    drawn = np.random.default_rng(seed).integers(-1, users, len(jobs))
    return JobTable(
        jobs.job_id,
        jobs.submit_time,
        jobs.processors,
        jobs.requested_time,
        jobs.run_time,
        drawn.astype(np.int32),
    )


@given(case=one_machine(), name=st.sampled_from(ORDERED), users=st.integers(1, 3))
def test_kernel_equals_oracle(case: OneMachine, name: str, users: int) -> None:
    """A small workload full of ties gets the oracle's start times to the last bit."""
    jobs = with_users(case.jobs, users)
    schedule = simulate(jobs, case.processors, discipline_by_name(name))
    oracle = simulate_plainly(jobs, case.processors, name)
    assert schedule.start_time.tolist() == [oracle.start_time[row] for row in range(len(jobs))]


@pytest.mark.parametrize("name", ORDERED)
def test_random_workloads_equal_oracle(name: str) -> None:
    """Somewhat larger workloads, from light to hopeless load."""
    for seed in range(25):
        rng = np.random.default_rng(seed)
        processors = int(rng.integers(1, 40))
        jobs = with_users(random_jobs(rng, 60, processors), 5, seed)
        schedule = simulate(jobs, processors, discipline_by_name(name))
        oracle = simulate_plainly(jobs, processors, name)
        expected = [oracle.start_time[row] for row in range(len(jobs))]
        assert schedule.start_time.tolist() == expected, f"seed {seed}"


@pytest.mark.parametrize("name", ORDERED)
def test_a_long_queue_equals_oracle(name: str) -> None:
    """Hundreds of jobs wait, over several blocks of the queue."""
    jobs = with_users(backlog(np.random.default_rng(1), 300, 30), 4)
    schedule = simulate(jobs, 30, discipline_by_name(name))
    oracle = simulate_plainly(jobs, 30, name)
    assert schedule.start_time.tolist() == [oracle.start_time[row] for row in range(len(jobs))]


@given(case=one_machine(), algorithm=st.sampled_from(ALGORITHMS), order=st.sampled_from(KEY_ORDERS))
def test_every_algorithm_on_every_key(case: OneMachine, algorithm: str, order: str) -> None:
    """FCFS, LIST, EASY and conservative backfilling take any of these orders."""
    strategy = Strategy(algorithm, order)  # type: ignore[arg-type]  # drawn
    assert strategy.name == f"{algorithm}-by-{order}"
    schedule = simulate(case.jobs, case.processors, strategy)
    oracle = simulate_plainly(
        case.jobs, case.processors, by_key(order, PASSES_OF_ALGORITHMS[algorithm])
    )
    assert schedule.start_time.tolist() == [oracle.start_time[row] for row in range(len(case.jobs))]


@given(case=one_machine(), backfill=st.sampled_from(tuple(KEYS)))
def test_easy_with_any_backfill_order(case: OneMachine, backfill: str) -> None:
    """The head is that of the queue; those behind it are looked at in another order."""
    strategy = Strategy("easy", backfill=backfill)  # type: ignore[arg-type]  # drawn
    schedule = simulate(case.jobs, case.processors, strategy)
    oracle = simulate_plainly(case.jobs, case.processors, easy_by(backfill))
    assert schedule.start_time.tolist() == [oracle.start_time[row] for row in range(len(case.jobs))]


def test_a_strategy_says_what_is_wrong_with_its_orders() -> None:
    """Words are checked, and backfill goes with EASY alone."""
    with pytest.raises(ValueError, match="'widest' is no order; there are: arrival"):
        Strategy("fcfs", "widest")  # type: ignore[arg-type]  # the mistake
    with pytest.raises(ValueError, match="'widest' is no backfill order"):
        Strategy("easy", backfill="widest")  # type: ignore[arg-type]  # the mistake
    with pytest.raises(ValueError, match="backfill goes with the algorithm easy, not with list"):
        Strategy("list", backfill="area")


@pytest.mark.parametrize("order", ORDER_WORDS)
def test_files_hold_orders_and_backfill_orders(order: str) -> None:
    """A strategy comes back from its document as it was."""
    for strategy in (
        Strategy("list", order),  # type: ignore[arg-type]  # one of the words
        Strategy("easy", "wfp3", "mine", order),  # type: ignore[arg-type]  # same
    ):
        document = strategy_to_document(StrategyFile(strategy))
        assert strategy_from_document(document, source="test").policy == strategy
    with pytest.raises(StrategyFileError, match="backfill is 3; a word is expected"):
        strategy_from_document(
            {
                "schema": "hanse.strategy-rules/1",
                "strategy": {"algorithm": "easy", "backfill": 3},
            },
            source="test",
        )


@given(case=one_machine(), steps=st.lists(st.floats(0, 3), max_size=6))
def test_easy_plus_plus_step_by_step(case: OneMachine, steps: list[float]) -> None:
    """However the machine is advanced between submissions, the schedule is that of a replay."""
    jobs = with_users(case.jobs, 2)
    machine = Machine(case.processors, EasyPlusPlus())
    for row in range(len(jobs)):
        submit = float(jobs.submit_time[row])
        for step in steps[:row]:
            if machine.now + step < submit:
                machine.advance(machine.now + step)
        machine.submit(
            submit_time=submit,
            processors=int(jobs.processors[row]),
            requested_time=float(jobs.requested_time[row]),
            run_time=float(jobs.run_time[row]),
            user=int(jobs.user[row]),
        )
    machine.advance(math.inf)
    whole = simulate(jobs, case.processors, EasyPlusPlus())
    assert machine.start_time.tolist() == whole.start_time.tolist()


def test_corrections_come_one_after_the_other_until_the_request() -> None:
    """A job predicted to run 10 s gets 10 s and 1 min, 5 min, …, 100 h more, then its request."""
    hour = 3600
    jobs = JobTable.from_columns(
        submit_time=[0, 20, 40],
        processors=[1, 1, 1],
        run_time=[10, 10, 150 * hour],
        requested_time=[10, 10, 200 * hour],
        user=[7, 7, 7],
    )
    oracle = simulate_plainly(jobs, 1, "easy-plus-plus")
    assert isinstance(oracle, PredictingMachine)
    later = [60, 300, 900, 1800, *(h * hour for h in (1, 2, 5, 10, 20, 50, 100))]
    assert oracle.predictions[2] == [10, *(10 + more for more in later), 200 * hour]
    # Who waits sees it: after every correction a filler fits before the head's shadow time or not.
    rng = np.random.default_rng(5)
    fillers = JobTable.from_columns(
        submit_time=[0, 20, 40, 50, *np.sort(rng.integers(60, 160 * hour, 120))],
        processors=[1, 1, 1, 2, *rng.integers(1, 3, 120)],
        run_time=[10, 10, 150 * hour, 50, *np.full(120, 40)],
        requested_time=[10, 10, 200 * hour, 50, *rng.integers(40, 20 * hour, 120)],
        user=[7, 7, 7, 8, *np.full(120, -1)],
    )
    expected = simulate_plainly(fillers, 2, "easy-plus-plus")
    starts = simulate(fillers, 2, EasyPlusPlus()).start_time.tolist()
    assert starts == [expected.start_time[row] for row in range(len(fillers))]


def test_a_machine_hands_its_history_to_the_next() -> None:
    """What EASY++ knows of users outlives a machine; an unknown user is nobody."""
    machine = Machine(2, EasyPlusPlus())
    for submit, user in ((0, 3), (10, 3), (20, 5), (30, -1)):
        machine.submit(
            submit_time=submit, processors=1, requested_time=9, run_time=4 + submit / 10, user=user
        )
    machine.advance(100)
    history = machine.history
    assert history is not None
    assert [row[:2] for row in history] == [(3, 5.0), (5, 6.0)]  # type: ignore[index]  # rows
    after = Machine(2, EasyPlusPlus())
    after.remember(history)
    after.remember(None)
    assert repr(after.history) == repr(history)
    with pytest.raises(ValueError, match="user is -2; it must be from -1"):
        after.submit(submit_time=200, processors=1, requested_time=9, run_time=4, user=-2)


def test_users_with_large_numbers_cost_no_memory() -> None:
    """Numbers of users may be anything; a replay numbers them anew."""
    jobs = JobTable.from_columns(
        submit_time=[0, 5, 10], processors=[1, 1, 1], run_time=[2, 2, 2], user=[2**31 - 1, 0, 9]
    )
    assert simulate(jobs, 1, EasyPlusPlus()).start_time.tolist() == [0, 5, 10]


@pytest.mark.parametrize("name", ORDERED)
def test_a_withdrawn_job_leaves_no_trace(name: str) -> None:
    """Those who wait start as if a job that was taken back had never come."""
    draws = [(0, 2, 9), (1, 2, 7), (2, 1, 4), (3, 1, 5), (4, 2, 3), (5, 1, 6)]

    def starts(left_out: int, withdrawn: int) -> list[float]:
        machine = Machine(2, discipline_by_name(name))
        for number, (submit, width, run) in enumerate(draws):
            if number != left_out:
                machine.submit(
                    submit_time=submit, processors=width, requested_time=run, run_time=run
                )
        if withdrawn >= 0:
            machine.withdraw(withdrawn)
        machine.advance(math.inf)
        found = machine.start_time.tolist()
        return [start for start in found if not math.isnan(start)]

    for number in range(1, len(draws)):
        assert starts(number, -1) == starts(-1, number)
