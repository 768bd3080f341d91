"""What conservative backfilling promises."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lrms_sim.kernel._conservative import ConservativeScheduler
from lrms_sim.machine.machine import simulate
from lrms_sim.machine.stepped import Machine
from lrms_sim.scheduling.disciplines import Conservative
from lrms_sim.workload.jobs import JobTable
from tests.examples import runs
from tests.long_queues import NEVER, LongFrom, flood
from tests.oracles.disciplines import simulate_plainly
from tests.oracles.machine import plain_jobs
from tests.random_workloads import random_jobs
from tests.strategies import OneMachine, one_machine


def starts(jobs: JobTable, processors: int, long_queue: int) -> list[float]:
    """Returns the start times where a queue counts as long from so many jobs on."""
    start_time: list[float] = simulate(jobs, processors, LongFrom(long_queue)).start_time.tolist()
    return start_time


@given(case=one_machine())
def test_conservative_keeps_every_reservation(case: OneMachine) -> None:
    """Every job starts no later than it was promised on arrival."""
    start_time = simulate(case.jobs, case.processors, Conservative()).start_time
    oracle = simulate_plainly(case.jobs, case.processors, "conservative")
    assert len(oracle.first_reservation) == len(case.jobs)
    for row, promised in oracle.first_reservation.items():
        assert start_time[row] <= promised


@given(case=one_machine(jobs_max=9))
def test_conservative_promises_what_the_estimates_give(case: OneMachine) -> None:
    """A job starts no later than it would had nobody come after it and every estimate held.

    The promise is taken from the kernel itself: the jobs up to this one, where each that still
    ran when it came takes all the time it requested.
    """
    start_time = simulate(case.jobs, case.processors, Conservative()).start_time
    rows = np.arange(len(case.jobs))
    end_time = start_time + case.jobs.run_time
    for last in rows:
        first = case.jobs.select(rows <= last)
        # What ended by then stays as it was; for the others the estimates become the truth.
        over = end_time[: last + 1] <= first.submit_time[last]
        held = JobTable.from_columns(
            submit_time=first.submit_time,
            processors=first.processors,
            requested_time=first.requested_time,
            run_time=np.where(over, first.run_time, first.requested_time),
        )
        promised = simulate(held, case.processors, Conservative()).start_time[last]
        assert start_time[last] <= promised


@given(case=one_machine(exact=True))
def test_conservative_with_exact_estimates_ignores_later_jobs(case: OneMachine) -> None:
    """Where all estimates are exact, later arrivals change nothing for earlier ones."""
    rows = np.arange(len(case.jobs))
    whole = simulate(case.jobs, case.processors, Conservative()).start_time
    for last in rows:
        part = simulate(case.jobs.select(rows <= last), case.processors, Conservative())
        assert part.start_time.tolist() == whole[: last + 1].tolist()


@given(case=one_machine(), long_queue=st.integers(1, 5))
def test_the_plan_of_a_long_queue_is_the_same_plan(case: OneMachine, long_queue: int) -> None:
    """Wherever a queue begins to count as long, every job starts when the oracle says."""
    oracle = simulate_plainly(case.jobs, case.processors, "conservative")
    expected = [oracle.start_time[row] for row in range(len(case.jobs))]
    assert starts(case.jobs, case.processors, long_queue) == expected


def test_random_workloads_with_the_plan_of_a_long_queue_equal_oracle() -> None:
    """The same on somewhat larger workloads, from light to hopeless load."""
    for seed in range(runs(100, 400)):
        rng = np.random.default_rng(seed)
        processors = int(rng.integers(1, 40))
        jobs = random_jobs(rng, 60, processors)
        oracle = simulate_plainly(jobs, processors, "conservative")
        expected = [oracle.start_time[row] for row in range(len(jobs))]
        assert starts(jobs, processors, 1 + seed % 7) == expected, f"seed {seed}"


@pytest.mark.parametrize("seed", range(12))
def test_a_flood_has_the_same_schedule_with_either_plan(seed: int) -> None:
    """Hundreds of reservations in blocks that split and join start as in flat arrays."""
    processors = (128, 100, 7, 430)[seed % 4]
    jobs = flood(seed, runs(350, 700), processors, (1.0, 0.1, 1 / 3)[seed % 3])
    plain = starts(jobs, processors, NEVER)
    for long_queue in (1, 40, 256):
        assert starts(jobs, processors, long_queue) == plain, f"long from {long_queue}"


@given(
    draws=st.lists(
        st.tuples(
            st.sampled_from((0.0, 4.0, 8.0)),
            st.integers(1, 3),
            st.sampled_from((4.0, 6.0, 9.0)),
            st.sampled_from((0.0, 2.0, 5.0, 16.0)),
        ),
        max_size=12,
    )
)
def test_requests_that_the_clock_rounds(
    draws: list[tuple[float, int, float, float]],
) -> None:
    """Where start + request rounds, both plans round alike."""
    late = 2.0**54  # from here on doubles are 4 seconds apart
    jobs = JobTable.from_columns(
        submit_time=[late + submit for submit, _, _, _ in draws],
        processors=[width for _, width, _, _ in draws],
        run_time=[run for _, _, run, _ in draws],
        requested_time=[run + surplus for _, _, run, surplus in draws],
    )
    assert starts(jobs, 3, 1) == starts(jobs, 3, NEVER)


def test_step_by_step_with_the_plan_of_a_long_queue() -> None:
    """A machine that is given its jobs one by one starts them as at full speed."""
    jobs = flood(3, 300, 24, 1.0)
    machine = Machine(24, LongFrom(5))
    for job in plain_jobs(jobs):
        machine.submit(
            submit_time=job.submit_time,
            processors=job.processors,
            requested_time=job.requested_time,
            run_time=job.run_time,
        )
        machine.advance(job.submit_time)
    while machine.next_event_time < math.inf:
        machine.advance(machine.next_event_time)
    assert machine.start_time.tolist() == starts(jobs, 24, NEVER)


def test_a_queue_is_long_from_one_job_on_at_least() -> None:
    """Nothing would ever be short below that."""
    with pytest.raises(ValueError, match="long_queue is 0; it has to be at least 1"):
        ConservativeScheduler(0)
