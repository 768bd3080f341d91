"""The machine: what holds whatever the discipline, and the step-by-step face."""

import math
from itertools import pairwise
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lrms_sim.disciplines import discipline_by_name
from lrms_sim.jobs import JobTable
from lrms_sim.machine import Machine, simulate
from tests.oracles.checks import Replay
from tests.oracles.machine import PlainJob, plain_jobs
from tests.random_workloads import random_jobs
from tests.strategies import DISCIPLINES, OneMachine, disciplines, one_machine

BATCHED = tuple(name for name in DISCIPLINES if name != "easy-per-event")


def submit(machine: Machine, job: PlainJob) -> None:
    """Hands a job to a machine; jobs come in order of rows."""
    row = machine.submit(
        submit_time=job.submit_time,
        processors=job.processors,
        requested_time=job.requested_time,
        run_time=job.run_time,
    )
    assert row == job.row


def new_machine(case: OneMachine, discipline: str) -> Machine:
    """Returns a machine of the drawn size."""
    return Machine(case.processors, discipline_by_name(discipline))


def full_speed(case: OneMachine, discipline: str) -> list[float]:
    """Returns the start times of the full-speed face."""
    schedule = simulate(case.jobs, case.processors, discipline_by_name(discipline))
    start_time: list[float] = schedule.start_time.tolist()
    return start_time


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
    with patch("lrms_sim.machine.PROGRESS_ROWS", rows):
        interrupted = simulate(
            case.jobs, case.processors, discipline_by_name(name), progress=seen.append
        )
    assert interrupted.start_time.tolist() == full_speed(case, name)
    assert seen[-1] == len(case.jobs)


# The caller's mistakes.


@pytest.mark.parametrize("processors", [0, -1, 2**31])
def test_a_machine_of_impossible_size_is_refused(processors: int) -> None:
    """A machine has at least one processor and fewer than 2^31; the error names the number."""
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


BAD_SUBMISSIONS: list[tuple[str, dict[str, float]]] = [
    ("submit_time", {"submit_time": 9.0}),
    ("submit_time", {"submit_time": math.nan}),
    ("submit_time", {"submit_time": math.inf}),
    ("processors", {"processors": 5}),
    ("processors", {"processors": 0}),
    ("processors", {"processors": -1}),
    ("run_time", {"run_time": 0.0}),
    ("run_time", {"run_time": -1.0}),
    ("run_time", {"run_time": math.nan}),
    ("requested_time", {"requested_time": 0.5}),
    ("requested_time", {"requested_time": math.inf}),
    ("requested_time", {"requested_time": math.nan}),
]


@pytest.mark.parametrize("name", DISCIPLINES)
@pytest.mark.parametrize(("column", "wrong"), BAD_SUBMISSIONS)
def test_a_submission_out_of_bounds_is_refused(
    name: str, column: str, wrong: dict[str, float]
) -> None:
    """The error names the argument and its value, and the machine is as it was before."""
    machine = Machine(4, discipline_by_name(name))
    machine.advance(10.0)
    good = {"submit_time": 10.0, "processors": 4, "requested_time": 2.0, "run_time": 1.0}
    before = machine.state
    with pytest.raises(ValueError, match=f"{column} is {next(iter(wrong.values()))}"):
        machine.submit(**(good | wrong))  # type: ignore[arg-type]  # wrong on purpose
    assert machine.state == before
    assert machine.submit(**good) == 0  # type: ignore[arg-type]  # one dict of int and float
    machine.advance(math.inf)
    assert machine.collect() == ([0], [0])


@pytest.mark.parametrize("to", [9.0, -math.inf, math.nan])
def test_the_clock_does_not_go_back(to: float) -> None:
    """Advancing to a moment that is past, or to none, is refused."""
    machine = Machine(4)
    machine.advance(10.0)
    with pytest.raises(ValueError, match=rf"{to}.*10\.0"):
        machine.advance(to)
    assert machine.state.now == 10.0


def test_a_submission_moves_the_clock() -> None:
    """After a submission at 10 one at 9 is in the past, though nobody advanced."""
    machine = Machine(4)
    machine.submit(submit_time=10, processors=1, requested_time=1, run_time=1)
    with pytest.raises(ValueError, match=r"submit_time is 9"):
        machine.submit(submit_time=9, processors=1, requested_time=1, run_time=1)


# Step by step.


@given(case=one_machine(), name=disciplines)
def test_submissions_alone_drive_the_machine(case: OneMachine, name: str) -> None:
    """Submitting everything and advancing once gives the full-speed schedule."""
    machine = new_machine(case, name)
    for job in plain_jobs(case.jobs):
        submit(machine, job)
    machine.advance(math.inf)
    assert machine.start_time.tolist() == full_speed(case, name)


@given(case=one_machine(), name=disciplines)
def test_event_by_event(case: OneMachine, name: str) -> None:
    """Advancing to each next event time by itself gives the full-speed schedule."""
    machine = new_machine(case, name)
    for job in plain_jobs(case.jobs):
        while machine.next_event_time < job.submit_time:
            advance_to_next_event(machine)
        submit(machine, job)
    while machine.next_event_time < math.inf:
        advance_to_next_event(machine)
    assert machine.start_time.tolist() == full_speed(case, name)
    assert machine.state.jobs_running == machine.state.jobs_waiting == 0


@pytest.mark.parametrize("name", DISCIPLINES)
def test_hundreds_of_random_workloads_step_by_step(name: str) -> None:
    """The same for somewhat larger workloads, by submissions alone and event by event."""
    discipline = discipline_by_name(name)
    for seed in range(150):
        rng = np.random.default_rng(seed)
        processors = int(rng.integers(1, 40))
        jobs = random_jobs(rng, 60, processors)
        expected = simulate(jobs, processors, discipline).start_time.tolist()
        for event_by_event in (False, True):
            machine = Machine(processors, discipline)
            for job in plain_jobs(jobs):
                while event_by_event and machine.next_event_time < job.submit_time:
                    advance_to_next_event(machine)
                submit(machine, job)
            machine.advance(math.inf)
            assert machine.start_time.tolist() == expected, f"seed {seed}"


def advance_to_next_event(machine: Machine) -> None:
    """Advances to the next event, which is not before the clock and is done afterwards."""
    moment = machine.next_event_time
    assert moment >= machine.state.now
    machine.advance(moment)
    assert machine.state.now == moment
    assert machine.next_event_time > moment


@given(case=one_machine(), name=disciplines, data=st.data())
def test_any_split_of_advances(case: OneMachine, name: str, data: st.DataObject) -> None:
    """However the time between submissions is cut up, the schedule is the same.

    A batched discipline may even be advanced to an instant between two submissions of it. With
    a pass for each event that would let terminations come before the second submission.
    """
    machine = new_machine(case, name)
    expected = Replay(case.jobs, full_speed(case, name), case.processors)
    jobs = plain_jobs(case.jobs)
    cuts = sorted(
        data.draw(
            st.lists(
                st.one_of(
                    st.sampled_from([*expected.moments(), 0.0]),
                    st.floats(-3, 100, allow_nan=False),
                ),
                max_size=12,
            )
        )
    )
    for job in jobs:
        while cuts and (
            cuts[0] < job.submit_time or (name in BATCHED and cuts[0] == job.submit_time)
        ):
            machine.advance(cuts.pop(0))
        cuts = [cut for cut in cuts if name in BATCHED or cut != job.submit_time]
        submit(machine, job)
    for cut in cuts:
        machine.advance(cut)
    machine.advance(math.inf)
    assert machine.start_time.tolist() == expected.start_time
    assert machine.end_time.tolist() == [expected.end_time(job) for job in jobs]


@given(case=one_machine(), name=st.sampled_from(BATCHED))
def test_each_submission_advanced_by_itself(case: OneMachine, name: str) -> None:
    """A pass after every single arrival of an instant starts what one pass for all starts."""
    machine = new_machine(case, name)
    for job in plain_jobs(case.jobs):
        machine.advance(job.submit_time)
        submit(machine, job)
        machine.advance(job.submit_time)
    machine.advance(math.inf)
    assert machine.start_time.tolist() == full_speed(case, name)


@given(case=one_machine(), name=disciplines)
def test_state_and_log_tell_what_the_schedule_tells(case: OneMachine, name: str) -> None:
    """At every instant counts and collected jobs are those of the finished schedule.

    So each job is collected once as started and once as ended, in order.
    """
    machine = new_machine(case, name)
    expected = Replay(case.jobs, full_speed(case, name), case.processors)
    todo = plain_jobs(case.jobs)
    starts: list[int] = []
    for moment in expected.moments():
        while todo and todo[0].submit_time == moment:
            submit(machine, todo.pop(0))
        machine.advance(moment)
        state = machine.state
        running = expected.running(moment)
        waiting = expected.waiting(moment)
        assert state.now == moment
        assert state.processors == case.processors
        assert state.processors_free == expected.processors_free(moment)
        assert state.processors_waiting == sum(job.processors for job in waiting)
        assert state.jobs_running == len(running)
        assert state.jobs_waiting == len(waiting)
        started, ended = machine.collect()
        assert sorted(started) == [
            job.row for job in expected.jobs if expected.start_time[job.row] == moment
        ]
        starts += started
        rows = [job.row for job in expected.jobs if expected.end_time(job) == moment]
        assert ended == (rows if name in BATCHED else sorted(rows, key=starts.index))
        assert machine.collect() == ([], [])
    assert machine.next_event_time == math.inf


@given(case=one_machine(), name=disciplines)
def test_the_log_of_a_whole_run_is_in_order(case: OneMachine, name: str) -> None:
    """Collected at the end, starts come in order of time and ends in order of (time, job).

    Where a pass follows every event, jobs that end together do so in the order of their starts.
    """
    machine = new_machine(case, name)
    for job in plain_jobs(case.jobs):
        submit(machine, job)
    machine.advance(math.inf)
    started, ended = machine.collect()
    start_time = machine.start_time
    end_time = machine.end_time
    rows = list(range(len(case.jobs)))
    assert sorted(started) == rows
    order = rows if name in BATCHED else started
    assert ended == sorted(rows, key=lambda row: (end_time[row], order.index(row)))
    assert [start_time[row] for row in started] == sorted(start_time)


def test_a_submitted_job_waits_for_the_pass() -> None:
    """Submissions of one instant share the pass that the next advance makes."""
    machine = Machine(2)
    for _ in range(2):
        machine.submit(submit_time=1, processors=2, requested_time=5, run_time=3)
    waiting = machine.state
    assert (waiting.processors_free, waiting.processors_waiting) == (2, 4)
    assert (waiting.jobs_running, waiting.jobs_waiting) == (0, 2)
    assert machine.next_event_time == 1
    machine.advance(1)
    started = machine.state
    assert (started.processors_free, started.processors_waiting) == (0, 2)
    assert machine.next_event_time == 4
    assert machine.collect() == ([0], [])


def test_a_submission_lets_everything_before_it_happen() -> None:
    """Ends before the submission, and at its instant, free processors; starts between them count."""
    machine = Machine(2)
    machine.submit(submit_time=0, processors=2, requested_time=5, run_time=3)
    machine.submit(submit_time=0, processors=2, requested_time=5, run_time=4)
    machine.submit(submit_time=7, processors=1, requested_time=5, run_time=4)
    assert machine.collect() == ([0, 1], [0, 1])
    assert machine.state.processors_free == 2
    assert machine.state.jobs_waiting == 1


def test_a_machine_in_steps_takes_more_jobs_than_it_made_room_for() -> None:
    """Thousands of jobs, running and waiting, survive the growth of the columns."""
    machine = Machine(3)
    for row in range(5000):
        machine.submit(submit_time=row, processors=1 + row % 3, requested_time=9, run_time=3)
    machine.advance(math.inf)
    jobs = JobTable.from_columns(
        submit_time=np.arange(5000),
        processors=1 + np.arange(5000) % 3,
        requested_time=np.full(5000, 9),
        run_time=np.full(5000, 3),
    )
    assert machine.start_time.tolist() == simulate(jobs, 3).start_time.tolist()


def test_what_is_due_at_a_moment_can_be_left_for_later() -> None:
    """An exclusive advance stops before the ends of that moment."""
    machine = Machine(1)
    machine.submit(submit_time=0, processors=1, requested_time=5, run_time=5)
    machine.advance(5, inclusive=False)
    assert machine.state.now == 5
    assert machine.state.processors_free == 0
    machine.advance(5)
    assert machine.state.processors_free == 1


@pytest.mark.parametrize(("requested_time", "free"), [(5, 1), (6, 0)])
def test_a_per_event_machine_is_free_when_an_estimated_end_has_come(
    requested_time: float, free: int
) -> None:
    """The end is handled later, but everybody knows that it is due; an early end nobody knows."""
    machine = Machine(1, discipline_by_name("easy-per-event"))
    machine.submit(submit_time=0, processors=1, requested_time=requested_time, run_time=5)
    machine.advance(5, inclusive=False)
    assert machine.state.processors_free == free
    assert machine.state.jobs_running == 1
    assert machine.collect() == ([0], [])
    machine.submit(submit_time=5, processors=1, requested_time=3, run_time=3)
    assert machine.collect() == ([1] if free else [], [])
    machine.advance(5)
    assert machine.collect() == ([] if free else [1], [0])
    assert machine.state.processors_free == 0
    machine.advance(math.inf)
    assert machine.state.processors_free == 1


def test_the_times_of_one_job() -> None:
    """Start and end where they are known; a job that was never submitted is a mistake."""
    machine = Machine(1)
    for _ in range(2):
        machine.submit(submit_time=1.0, processors=1, requested_time=5.0, run_time=3.0)
    machine.advance(1.0)
    assert machine.times_of(0) == (1.0, 4.0)
    assert [math.isnan(time) for time in machine.times_of(1)] == [True, True]
    for job in (-1, 2):
        with pytest.raises(ValueError, match=f"job is {job}; this machine has taken 2 jobs"):
            machine.times_of(job)
