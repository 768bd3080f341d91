"""Every discipline against its oracle, and what each of them promises."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lrms_sim.disciplines import Conservative, Easy, Fcfs, discipline_by_name
from lrms_sim.jobs import JobTable
from lrms_sim.machine import simulate
from tests.oracles.checks import Replay
from tests.oracles.disciplines import simulate_plainly
from tests.random_workloads import backlog, random_jobs
from tests.strategies import DISCIPLINES, OneMachine, one_machine

easy_variants = st.booleans().map(lambda per_event: Easy(per_event=per_event))


def replayed(case: OneMachine, discipline: str) -> Replay:
    """Returns the kernel's schedule of a drawn workload."""
    schedule = simulate(case.jobs, case.processors, discipline_by_name(discipline))
    return Replay(case.jobs, schedule.start_time.tolist(), case.processors)


@pytest.mark.parametrize("name", DISCIPLINES)
@given(case=one_machine())
def test_kernel_equals_oracle(name: str, case: OneMachine) -> None:
    """A small workload full of ties gets the oracle's start times to the last bit."""
    schedule = simulate(case.jobs, case.processors, discipline_by_name(name))
    oracle = simulate_plainly(case.jobs, case.processors, name)
    assert schedule.start_time.tolist() == [oracle.start_time[row] for row in range(len(case.jobs))]
    assert schedule.end_time.tolist() == [oracle.end_time[row] for row in range(len(case.jobs))]


@pytest.mark.parametrize("name", DISCIPLINES)
def test_a_thousand_random_workloads_equal_oracle(name: str) -> None:
    """Somewhat larger workloads, from light to hopeless load."""
    for seed in range(1000):
        rng = np.random.default_rng(seed)
        processors = int(rng.integers(1, 40))
        jobs = random_jobs(rng, 60, processors)
        schedule = simulate(jobs, processors, discipline_by_name(name))
        oracle = simulate_plainly(jobs, processors, name)
        expected = [oracle.start_time[row] for row in range(len(jobs))]
        assert schedule.start_time.tolist() == expected, f"seed {seed}"


@pytest.mark.parametrize("name", DISCIPLINES)
@pytest.mark.parametrize("seed", range(5))
def test_a_long_queue_equals_oracle(name: str, seed: int) -> None:
    """Hundreds of jobs wait, and over long stretches of the queue nobody fits."""
    rng = np.random.default_rng(seed)
    # A plan of hundreds of reservations is more than the oracle can rebuild at every early end.
    jobs = backlog(rng, 110 if name == "conservative" else 1200, 30)
    schedule = simulate(jobs, 30, discipline_by_name(name))
    oracle = simulate_plainly(jobs, 30, name)
    assert schedule.start_time.tolist() == [oracle.start_time[row] for row in range(len(jobs))]


@pytest.mark.parametrize("name", ["fcfs", "list", "easy", "easy-per-event"])
@given(
    draws=st.lists(
        st.tuples(
            st.sampled_from((0.0, 4.0, 8.0)),
            st.integers(1, 3),
            st.sampled_from((0.5, 1.0, 4.0, 8.0)),
            st.sampled_from((0.0, 4.0)),
        ),
        max_size=10,
    )
)
def test_a_job_too_short_for_the_clock(
    name: str, draws: list[tuple[float, int, float, float]]
) -> None:
    """Where start + run time rounds to start, the job ends in a further batch of that instant."""
    late = 2.0**54  # from here on doubles are 4 seconds apart
    jobs = JobTable.from_columns(
        submit_time=[late + submit for submit, _, _, _ in draws],
        processors=[width for _, width, _, _ in draws],
        run_time=[run for _, _, run, _ in draws],
        requested_time=[run + surplus for _, _, run, surplus in draws],
    )
    schedule = simulate(jobs, 3, discipline_by_name(name))
    oracle = simulate_plainly(jobs, 3, name)
    assert schedule.start_time.tolist() == [oracle.start_time[row] for row in range(len(jobs))]


@given(case=one_machine())
def test_fcfs_keeps_the_order(case: OneMachine) -> None:
    """Nobody starts before somebody who came earlier."""
    start_time = simulate(case.jobs, case.processors, Fcfs()).start_time
    assert (np.diff(start_time) >= 0).all()


@given(case=one_machine())
def test_fcfs_head_waits_for_processors_only(case: OneMachine) -> None:
    """Whenever jobs wait, the first of them does not fit."""
    replay = replayed(case, "fcfs")
    for moment in replay.moments():
        for head in replay.waiting(moment)[:1]:
            assert head.processors > replay.processors_free(moment)


@given(case=one_machine())
def test_list_leaves_no_fitting_job_waiting(case: OneMachine) -> None:
    """Whenever jobs wait, none of them fits."""
    replay = replayed(case, "list")
    for moment in replay.moments():
        for job in replay.waiting(moment):
            assert job.processors > replay.processors_free(moment)


@given(case=one_machine(), discipline=easy_variants)
def test_easy_keeps_the_heads_shadow_time(case: OneMachine, discipline: Easy) -> None:
    """The head starts no later than the shadow time it has at any moment of its being blocked."""
    replay = replayed(case, discipline.name)
    for moment in replay.moments():
        for head in replay.waiting(moment)[:1]:
            assert head.processors > replay.processors_free(moment)
            assert replay.start_time[head.row] <= replay.shadow_time(head, moment)


@given(case=one_machine(), discipline=easy_variants)
def test_easy_keeps_the_oracles_first_shadow_time(case: OneMachine, discipline: Easy) -> None:
    """The head starts no later than the shadow time of the pass in which it became the head."""
    start_time = simulate(case.jobs, case.processors, discipline).start_time
    oracle = simulate_plainly(case.jobs, case.processors, discipline.name)
    for row, shadow_time in oracle.first_shadow.items():
        assert start_time[row] <= shadow_time


@given(case=one_machine(), discipline=easy_variants)
def test_easy_leaves_no_harmless_job_waiting(case: OneMachine, discipline: Easy) -> None:
    """A waiting job that fits would end after the shadow time on processors the head needs."""
    replay = replayed(case, discipline.name)
    for moment in replay.moments():
        if not replay.waiting(moment):
            continue
        head, *later = replay.waiting(moment)
        shadow = replay.shadow_time(head, moment)
        in_use = sum(
            job.processors
            for job in replay.running(moment)
            if replay.start_time[job.row] + job.requested_time > shadow
        )
        extra = case.processors - in_use - head.processors
        for job in later:
            if job.processors <= replay.processors_free(moment):
                assert moment + job.requested_time > shadow
                assert job.processors > extra


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


@given(case=one_machine())
def test_disciplines_agree_when_nobody_can_pass(case: OneMachine) -> None:
    """With jobs as wide as the machine all disciplines are one."""
    wide = JobTable.from_columns(
        submit_time=case.jobs.submit_time,
        processors=np.full(len(case.jobs), case.processors),
        requested_time=case.jobs.requested_time,
        run_time=case.jobs.run_time,
    )
    starts = [
        simulate(wide, case.processors, discipline_by_name(name)).start_time.tolist()
        for name in DISCIPLINES
    ]
    assert all(start == starts[0] for start in starts)
