"""EASY on an order of users, against the plain machine."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lrms_sim.kernel._strategies import StrategyScheduler
from lrms_sim.machine.machine import simulate, user_numbers
from lrms_sim.scheduling.disciplines import EasyByUser, _UserWords
from lrms_sim.workload.jobs import JobTable
from tests.oracles.disciplines import easy, on_order, simulate_plainly
from tests.oracles.machine import PlainJob, PlainMachine
from tests.random_workloads import backlog
from tests.strategies import OneMachine, one_machine


def with_users(jobs: JobTable, users: int, seed: int) -> JobTable:
    """Returns the same jobs, of users whose numbers have gaps, and some of unknown ones."""
    drawn = np.random.default_rng(seed).integers(-1, users, len(jobs))
    return JobTable(
        jobs.job_id,
        jobs.submit_time,
        jobs.processors,
        jobs.requested_time,
        jobs.run_time,
        np.where(drawn < 0, -1, 3 * drawn + 7).astype(np.int32),
    )


def plain_starts(jobs: JobTable, processors: int, keys: tuple[float, ...]) -> list[float]:
    """Returns the starts that follow of the definition."""
    numbers = user_numbers(jobs.user).tolist()

    def key(job: PlainJob) -> float:
        number = numbers[job.row]
        return keys[number] if 0 <= number < len(keys) else math.inf

    def one_pass(machine: PlainMachine, now: float) -> None:
        on_order(machine, now, easy, key)

    oracle = simulate_plainly(jobs, processors, one_pass)
    return [oracle.start_time[row] for row in range(len(jobs))]


@given(
    case=one_machine(),
    keys=st.lists(st.sampled_from((-1.5, 0.0, 0.25, 2.0)), min_size=1, max_size=4).map(tuple),
    seed=st.integers(0, 9),
)
def test_kernel_equals_oracle(case: OneMachine, keys: tuple[float, ...], seed: int) -> None:
    """Ties by arrival; unknown users, and those without a key, come last."""
    jobs = with_users(case.jobs, 4, seed)
    schedule = simulate(jobs, case.processors, EasyByUser(keys))
    assert schedule.start_time.tolist() == plain_starts(jobs, case.processors, keys)


def test_a_long_queue_equals_oracle() -> None:
    """Hundreds of jobs wait, over several blocks of the queue, whose holes are closed on the way."""
    jobs = with_users(backlog(np.random.default_rng(1), 300, 30), 9, 1)
    keys = tuple(np.random.default_rng(2).random(9).tolist())
    schedule = simulate(jobs, 30, EasyByUser(keys))
    assert schedule.start_time.tolist() == plain_starts(jobs, 30, keys)


def test_equal_keys_are_the_order_of_arrival() -> None:
    """Then it is EASY."""
    jobs = with_users(backlog(np.random.default_rng(3), 60, 16), 5, 1)
    known = JobTable(**{name: getattr(jobs, name) for name in ("job_id", "submit_time", "processors", "requested_time", "run_time")}, user=np.maximum(jobs.user, 7))  # fmt: skip
    ours = simulate(known, 16, EasyByUser((1.0,) * 5)).start_time
    assert ours.tolist() == plain_starts(known, 16, (0.0,) * 5)
    without = simulate(
        JobTable(
            jobs.job_id,
            jobs.submit_time,
            jobs.processors,
            jobs.requested_time,
            jobs.run_time,
            np.full(len(jobs), -1, np.int32),
        ),
        16,
        EasyByUser((3.0,)),
    )
    assert without.start_time.tolist() == ours.tolist()


def test_it_says_what_is_wrong_with_its_keys() -> None:
    """No key, or one that orders nothing."""
    with pytest.raises(ValueError, match="needs a key for each of them; there is none"):
        EasyByUser(())
    with pytest.raises(ValueError, match="the key of user 1 is nan"):
        EasyByUser((1.0, math.nan))
    with pytest.raises(ValueError, match="an order by users needs a key for each user"):
        StrategyScheduler([_UserWords()])
    assert EasyByUser((1.0,)).name == "easy-by-user"
    assert not EasyByUser((1.0,)).per_event
