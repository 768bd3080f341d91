"""The machine in steps: it makes the schedule that it makes at full speed, and says what is wrong."""

import math
from collections import deque

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lrms_sim.machine.machine import simulate
from lrms_sim.machine.stepped import SUBMITTED, Machine
from lrms_sim.scheduling.disciplines import discipline_by_name
from lrms_sim.workload.jobs import JobTable
from tests.oracles.checks import Replay
from tests.oracles.machine import PlainJob, plain_jobs
from tests.random_workloads import random_jobs
from tests.strategies import DISCIPLINES, OneMachine, disciplines, full_speed, one_machine

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


@pytest.mark.parametrize(("column", "wrong"), [*BAD_SUBMISSIONS, ("group", {"group": 6})])
def test_none_of_several_is_submitted_where_one_is_out_of_bounds(
    column: str, wrong: dict[str, float]
) -> None:
    """The machine is as it was before, and takes the others."""
    machine = Machine(4)
    machine.advance(10.0)
    good = {"processors": 4, "requested_time": 2.0, "run_time": 1.0, "group": 1}
    moment = wrong.get("submit_time", 10.0)
    rows = together([good, good | wrong, good], moment)
    before = machine.state
    with pytest.raises(ValueError, match="out of its bounds"):
        machine.submit_all(moment, rows)
    assert machine.state == before, column
    assert machine.submit_all(10.0, rows[[0, 2]]) == 0
    machine.advance(math.inf)
    assert machine.collect() == ([0, 1], [0, 1])


def test_nothing_is_submitted_of_nothing() -> None:
    """An empty table has no number that anybody needs."""
    machine = Machine(4)
    machine.submit_all(10.0, together([], 10.0))
    assert machine.state.jobs_waiting == 0


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


@given(case=one_machine(jobs_max=20), name=disciplines, data=st.data())
def test_several_at_once_are_one_after_the_other(
    case: OneMachine, name: str, data: st.DataObject
) -> None:
    """Jobs of one moment, submitted in groups of any size, or one by one; the queue is the same."""
    one, other = new_machine(case, name), new_machine(case, name)
    jobs = deque(plain_jobs(case.jobs))
    while jobs:
        size = data.draw(st.integers(1, len(jobs)), label="in this group")
        group = [jobs.popleft() for _ in range(size)]
        moment = group[-1].submit_time
        rows = [
            {
                "processors": job.processors,
                "requested_time": job.requested_time,
                "run_time": job.run_time,
                "group": 1 + job.row % 5,
                "waiting_since": job.submit_time,
            }
            for job in group
        ]
        for job, row in zip(group, rows, strict=True):
            number = one.submit(submit_time=moment, **row)  # type: ignore[arg-type]  # as named
            assert number == job.row
        assert other.submit_all(moment, together(rows, moment)) == group[0].row
        assert other.state == one.state
        if data.draw(st.booleans(), label="looked at"):
            one.advance(moment)
            other.advance(moment)
            assert other.collect() == one.collect()
    one.advance(math.inf)
    other.advance(math.inf)
    assert other.start_time.tolist() == one.start_time.tolist()
    assert other.collect() == one.collect()


def together(jobs: list[dict[str, float]], moment: float) -> npt.NDArray[np.void]:
    """Returns the rows of jobs that are submitted at a moment."""
    names = SUBMITTED.names
    assert names is not None
    rows = [tuple({"waiting_since": moment, **job}[name] for name in names) for job in jobs]
    return np.array(rows, SUBMITTED)


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
