"""The machine: what holds whatever the discipline."""

import math
from itertools import pairwise
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lrms_sim.machine.machine import simulate
from lrms_sim.machine.stepped import Machine
from lrms_sim.scheduling.disciplines import discipline_by_name
from lrms_sim.workload.jobs import JobTable
from tests.oracles.checks import Replay
from tests.strategies import DISCIPLINES, OneMachine, disciplines, full_speed, one_machine

# What holds for every schedule.


@given(case=one_machine(), name=disciplines)
def test_never_more_processors_in_use_than_there_are(case: OneMachine, name: str) -> None:
    """At every instant the running jobs fit into the machine."""
    replay = Replay(case.jobs, full_speed(case, name), case.processors)
    for moment in replay.moments():
        assert replay.processors_free(moment) >= 0


@given(case=one_machine(), name=disciplines)
def test_nobody_starts_before_submission(case: OneMachine, name: str) -> None:
    """Every start is at or after the job's submission."""
    schedule = simulate(case.jobs, case.processors, discipline_by_name(name))
    assert (schedule.start_time >= case.jobs.submit_time).all()


@given(case=one_machine(), name=st.sampled_from([n for n in DISCIPLINES if n != "conservative"]))
def test_jobs_start_only_when_something_happens(case: OneMachine, name: str) -> None:
    """Every start is at a submission or an end; only a reservation makes a moment of its own."""
    replay = Replay(case.jobs, full_speed(case, name), case.processors)
    events = {job.submit_time for job in replay.jobs}
    events |= {replay.end_time(job) for job in replay.jobs}
    assert set(replay.start_time) <= events


@given(case=one_machine(), name=disciplines)
def test_every_job_ends_once_after_its_run_time(case: OneMachine, name: str) -> None:
    """The schedule holds each job once; its end is its start plus its run time."""
    schedule = simulate(case.jobs, case.processors, discipline_by_name(name))
    assert len(schedule) == len(case.jobs)
    assert (schedule.end_time == schedule.start_time + case.jobs.run_time).all()
    assert np.isfinite(schedule.end_time).all()


@given(case=one_machine(), name=disciplines)
def test_same_input_same_arrays(case: OneMachine, name: str) -> None:
    """Two replays give the same bytes, and leave their input as it was."""
    before = [column.tobytes() for column in (case.jobs.submit_time, case.jobs.run_time)]
    first = simulate(case.jobs, case.processors, discipline_by_name(name))
    second = simulate(case.jobs, case.processors, discipline_by_name(name))
    assert first.start_time.tobytes() == second.start_time.tobytes()
    assert first.end_time.tobytes() == second.end_time.tobytes()
    assert before == [column.tobytes() for column in (case.jobs.submit_time, case.jobs.run_time)]


@given(case=one_machine(), name=disciplines, later=st.integers(-1000, 1000))
def test_only_differences_of_time_matter(case: OneMachine, name: str, later: int) -> None:
    """The same whole-second workload some seconds later has the same waits."""
    whole = JobTable.from_columns(
        submit_time=np.rint(case.jobs.submit_time),
        processors=case.jobs.processors,
        run_time=np.ceil(case.jobs.run_time),
        requested_time=np.ceil(case.jobs.requested_time),
    )
    discipline = discipline_by_name(name)
    here = simulate(whole, case.processors, discipline).wait_time
    there = simulate(whole.shifted(later), case.processors, discipline).wait_time
    assert here.tolist() == there.tolist()


@pytest.mark.parametrize("name", DISCIPLINES)
def test_a_machine_of_one_processor(name: str) -> None:
    """One processor serves one job after the other."""
    jobs = JobTable.from_columns(
        submit_time=[0, 0, 5], processors=[1, 1, 1], run_time=[3, 4, 5], requested_time=[9, 9, 9]
    )
    schedule = simulate(jobs, 1, discipline_by_name(name))
    assert schedule.start_time.tolist() == [0, 3, 7]


@pytest.mark.parametrize("name", DISCIPLINES)
def test_a_workload_without_jobs(name: str) -> None:
    """Nothing to do is no error."""
    schedule = simulate(JobTable.empty(), 4, discipline_by_name(name))
    assert len(schedule) == 0


def test_the_schedule_names_the_machine_and_the_logs_job_ids() -> None:
    """Name, size and the jobs' own numbers arrive in the schedule; FCFS is the default."""
    jobs = JobTable.from_columns(
        submit_time=[1, 0, 1], processors=[2, 2, 1], run_time=[2, 2, 2], job_id=[8, 9, 4]
    )
    schedule = simulate(jobs, 2, name="kth")
    assert [(machine.name, machine.processors) for machine in schedule.machines] == [("kth", 2)]
    assert schedule.log_job_id.tolist() == [9, 4, 8]
    assert schedule.executed_on.tolist() == schedule.submitted_to.tolist() == [0, 0, 0]
    assert schedule.start_time.tolist() == [0, 2, 4]


def test_progress_counts_up_to_all_jobs() -> None:
    """The progress function sees growing counts, the last of them all jobs."""
    count = 600_000
    jobs = JobTable.from_columns(
        submit_time=np.arange(count), processors=np.ones(count), run_time=np.ones(count)
    )
    seen: list[int] = []
    simulate(jobs, 1, progress=seen.append)
    assert len(seen) > 1
    assert all(earlier < later for earlier, later in pairwise(seen))
    assert seen[-1] == count


@given(case=one_machine(), name=disciplines, rows=st.integers(1, 5))
def test_a_replay_may_be_interrupted_anywhere(case: OneMachine, name: str, rows: int) -> None:
    """However many arrivals lie between two calls of a progress function, nothing changes."""
    seen: list[int] = []
    with patch("lrms_sim.machine.machine.PROGRESS_ROWS", rows):
        interrupted = simulate(
            case.jobs, case.processors, discipline_by_name(name), progress=seen.append
        )
    assert interrupted.start_time.tolist() == full_speed(case, name)
    assert seen[-1] == len(case.jobs)


# The caller's mistakes.


@pytest.mark.parametrize("processors", [0, -1, 2**31, 8.5, math.inf, True, "8", None])
def test_a_machine_of_impossible_size_is_refused(processors: Any) -> None:
    """A machine has at least one processor and fewer than 2^31, a whole number; the error names it."""
    with pytest.raises(ValueError, match=str(processors)):
        simulate(JobTable.empty(), processors)
    with pytest.raises(ValueError, match=str(processors)):
        Machine(processors)


def test_a_job_wider_than_the_machine_is_refused() -> None:
    """The error names the job, its width and the machine's size."""
    jobs = JobTable.from_columns(
        submit_time=[0, 1], processors=[4, 5], run_time=[1, 1], job_id=[17, 23]
    )
    with pytest.raises(ValueError, match=r"job 23 needs 5 processors.*has 4"):
        simulate(jobs, 4)
