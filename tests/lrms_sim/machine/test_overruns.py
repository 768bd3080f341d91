"""Jobs that run for longer than they have requested, unknown to every discipline before it happens."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lrms_sim.analysis.comparison import compare
from lrms_sim.analysis.trial import Trial
from lrms_sim.kernel._conservative import ConservativeScheduler
from lrms_sim.machine.closed_loop import simulate_closed
from lrms_sim.machine.machine import simulate
from lrms_sim.machine.nodes import NODE_DISCIPLINES, Demands, simulate_on_nodes
from lrms_sim.machine.picks import pick_machine
from lrms_sim.machine.stepped import Machine
from lrms_sim.malleable.jobs import UtilityJobs
from lrms_sim.scheduling.disciplines import Batched, discipline_by_name
from lrms_sim.scheduling.user_defined import MachineView, UserDefinedDiscipline
from lrms_sim.workload.jobs import JobTable, OverrunTable, concatenate, window_by_days
from tests.lrms_sim.machine.test_nodes import crowd
from tests.oracles.disciplines import PASSES, simulate_plainly
from tests.oracles.machine import PlainMachine
from tests.oracles.nodes import simulate_plainly as simulate_nodes_plainly

NAMES = tuple(PASSES)


def overrunning(rng: np.random.Generator, count: int, processors: int) -> JobTable:
    """Returns jobs many of which run on, past one correction or many, with ties of all kinds."""
    unit = float(rng.choice((1.0, 0.1, 20.0, 60.0, 900.0)))
    widths = rng.integers(1, processors + 1, count)
    narrow = rng.random(count) < 0.4
    widths[narrow] = np.minimum(2 ** rng.integers(0, 3, count), processors)[narrow]
    request = rng.integers(1, int(rng.choice((4, 20))), count).astype(float)
    over = rng.choice((-1, 0, 1, 3, 16, 200), count, p=(0.3, 0.3, 0.1, 0.1, 0.15, 0.05))
    run = np.maximum(request + over, 1.0)
    span = float(np.sum(widths * run)) / processors * rng.uniform(0.1, 1.5)
    return OverrunTable.from_columns(
        submit_time=np.floor(rng.random(count) * span) * unit,
        processors=widths,
        run_time=run * unit,
        requested_time=request * unit,
        user=rng.integers(-1, 3, count),
    )


class LongConservative(Batched):
    """Conservative backfilling with its plan for long queues from so many waiting jobs on."""

    name = "conservative-long"

    def __init__(self, long_queue: int) -> None:
        self.long_queue = long_queue

    def scheduler(self) -> ConservativeScheduler:
        """Returns a new compiled scheduler."""
        return ConservativeScheduler(long_queue=self.long_queue)


def starts(machine: PlainMachine) -> list[float]:
    return [machine.start_time[row] for row in sorted(machine.start_time)]


@given(seed=st.integers(0, 10**6), name=st.sampled_from(NAMES))
def test_kernel_equals_oracle(seed: int, name: str) -> None:
    """To the last bit, under every discipline, whoever outlives what."""
    rng = np.random.default_rng(seed)
    processors = int(rng.integers(1, 12))
    jobs = overrunning(rng, int(rng.integers(1, 15)), processors)
    groups = rng.integers(1, 6, len(jobs))
    found = simulate(jobs, processors, discipline_by_name(name), groups=groups)
    oracle = simulate_plainly(jobs, processors, name, groups.tolist())
    assert found.start_time.tolist() == starts(oracle)
    assert (found.end_time == found.start_time + jobs.run_time).all()


@pytest.mark.parametrize("name", NAMES)
def test_random_workloads_equal_oracle(name: str) -> None:
    """Somewhat larger ones; one whose jobs outlive nothing has the schedule that it had."""
    for seed in range(8):
        rng = np.random.default_rng(seed)
        jobs = overrunning(rng, 60, 16)
        groups = rng.integers(1, 6, len(jobs))
        found = simulate(jobs, 16, discipline_by_name(name), groups=groups)
        assert found.start_time.tolist() == starts(
            simulate_plainly(jobs, 16, name, groups.tolist())
        ), seed
        columns = jobs.columns() | {"run_time": np.minimum(jobs.run_time, jobs.requested_time)}
        killed = JobTable.from_columns(**columns)
        allowed = OverrunTable.from_columns(**columns)
        one, other = (
            simulate(each, 16, discipline_by_name(name), groups=groups).start_time
            for each in (killed, allowed)
        )
        assert one.tolist() == other.tolist()


@pytest.mark.parametrize("long_queue", [1, 3, 20])
def test_plans_of_long_queues_are_made_anew(long_queue: int) -> None:
    """In whatever form the plan is kept, and when it changes from one to the other."""
    for seed in range(25):
        rng = np.random.default_rng(seed)
        jobs = overrunning(rng, 60, 16)
        found = simulate(jobs, 16, LongConservative(long_queue))
        plain = simulate(jobs, 16, discipline_by_name("conservative"))
        assert found.start_time.tolist() == plain.start_time.tolist(), seed


@pytest.mark.parametrize("discipline", NODE_DISCIPLINES)
def test_nodes_equal_oracle(discipline: str) -> None:
    """On machines of nodes what a job runs on stays taken with it."""
    for seed in range(3):
        rng = np.random.default_rng(seed)
        machine, table, asked = crowd(seed, 20 if discipline == "conservative" else 45)
        unit = float(rng.choice((1.0, 20.0)))
        request = rng.integers(1, 60, len(table)) * unit
        over = rng.choice((-1, 0, 2, 80, 4000), len(table))
        jobs = OverrunTable.from_columns(
            submit_time=table.submit_time * float(rng.choice((1, 10))),
            processors=table.processors,
            run_time=np.maximum(request + over, 1.0),
            requested_time=request,
            user=table.user,
        )
        found = simulate_on_nodes(jobs, machine, discipline, demands=Demands.of(asked))
        plain = simulate_nodes_plainly(jobs, asked, machine, discipline)
        assert found.schedule.start_time.tolist() == [job.start_time for job in plain], seed


@pytest.mark.parametrize("name", NAMES)
def test_step_by_step_and_with_feedback_it_is_the_same(name: str) -> None:
    """The machine that is driven step by step has the schedule of the one at full speed."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        jobs = overrunning(rng, 40, 16)
        expected = simulate(jobs, 16, discipline_by_name(name), groups=(1 + jobs.user % 5))
        machine = Machine(16, discipline_by_name(name), overruns=True)
        for row in range(len(jobs)):
            machine.submit(
                submit_time=jobs.submit_time.item(row),
                processors=jobs.processors.item(row),
                requested_time=jobs.requested_time.item(row),
                run_time=jobs.run_time.item(row),
                group=1 + jobs.user.item(row) % 5,
                user=jobs.user.item(row),
            )
        machine.advance(np.inf)
        assert machine.start_time.tolist() == expected.start_time.tolist(), seed
    jobs = overrunning(np.random.default_rng(9), 40, 16)
    closed = simulate_closed(jobs, 16, discipline_by_name(name), waits={})
    assert (
        closed.start_time.tolist()
        == simulate(jobs, 16, discipline_by_name(name)).start_time.tolist()
    )
    assert closed.jobs.overruns


def test_a_discipline_in_python_sees_the_longer_estimate() -> None:
    """`estimated_end` moves on, minute by minute at first; `requested_time` stays what was requested."""
    seen: list[tuple[float, float | None, float]] = []

    def decide(machine: MachineView) -> None:
        seen.extend((machine.now, job.estimated_end, job.requested_time) for job in machine.running)
        for job in machine.waiting:
            if machine.fits(job):
                machine.start(job)

    jobs = OverrunTable.from_columns(
        submit_time=[0, 1, 6, 7, 80],
        processors=[2, 3, 1, 2, 1],
        run_time=[100, 5, 1, 1, 1],
        requested_time=[5, 5, 5, 5, 5],
    )
    simulate(jobs, 4, UserDefinedDiscipline(decide))
    of_the_first = {now: end for now, end, _ in seen if end is not None and now in {6, 7, 80}}
    assert of_the_first[6] == 65
    assert (80, 305, 5) in seen
    assert {request for _, _, request in seen} == {5}


def test_estimates_grow_without_end() -> None:
    """Past 100 hours each correction is twice the last, so that a job of years is looked at a few times."""
    year = 365 * 86400.0
    jobs = OverrunTable.from_columns(
        submit_time=[0, 0], processors=[1, 1], run_time=[30 * year, 1], requested_time=[1, 1]
    )
    machine = Machine(1, discipline_by_name("conservative"), overruns=True)
    for row in range(2):
        machine.submit(
            submit_time=0.0, processors=1, requested_time=1.0, run_time=jobs.run_time.item(row)
        )
    machine.advance(0.0)
    looked = []
    while (moment := machine.next_event_time) < 30 * year:
        looked.append(moment)
        machine.advance(moment)
    assert looked[:12] == [1, 61, 301, 901, 1801, 3601, 7201, 18001, 36001, 72001, 180001, 360001]
    assert looked[12:15] == [720001, 1440001, 2880001]
    assert len(looked) < 25
    machine.advance(np.inf)
    assert machine.start_time.tolist() == [0, 30 * year]


def test_requests_too_short_for_the_clock_are_refused() -> None:
    """A job whose estimated end is its start would hold nothing in a plan."""
    late = 2.0**52
    with pytest.raises(
        ValueError, match=r"requested_time of job 1 .* is 0.1; .* long enough for a clock"
    ):
        OverrunTable.from_columns(
            submit_time=[late], processors=[2], run_time=[50], requested_time=[0.1]
        )
    machine = Machine(4, overruns=True)
    with pytest.raises(ValueError, match=r"requested_time is 0\.1"):
        machine.submit(submit_time=late, processors=1, requested_time=0.1, run_time=50)


# What carries the jobs, and who refuses them.


def small(**columns: object) -> JobTable:
    known = {
        "submit_time": [0, 90_000],
        "processors": [1, 1],
        "run_time": [9, 2],
        "requested_time": [5, 5],
    }
    return OverrunTable.from_columns(**known | columns)  # type: ignore[arg-type]  # lists are columns too


def test_tables_keep_their_overruns() -> None:
    """Through windows, shifts, joins, frames and comparisons."""
    jobs = small()
    assert jobs.outlives_requests
    assert window_by_days(jobs, 0, 1).outlives_requests
    assert not window_by_days(jobs, 1, 2).outlives_requests
    assert concatenate([jobs.shifted(5), jobs])[0].overruns
    assert OverrunTable.from_frame(jobs.columns()).outlives_requests
    found = compare({"log": (jobs, 1)}, ["fcfs", "easy"], shifts=2, seconds=60)
    assert {replay.figures["utilization"] > 0 for replay in found.replays} == {True}


def test_without_the_word_a_table_refuses_them() -> None:
    with pytest.raises(ValueError, match="requested_time of job 1"):
        JobTable.from_columns(submit_time=[0], processors=[1], run_time=[9], requested_time=[5])
    with pytest.raises(ValueError, match="finite and more than 0"):
        small(requested_time=[0, 5])
    with pytest.raises(ValueError, match="finite and more than 0"):
        small(requested_time=[np.nan, 5])


def test_what_rests_on_requests_refuses_them() -> None:
    """Federations, malleable jobs, learned picks and searches say so, and name the job."""
    jobs = small()
    text = "job 1 runs for 9 s and has requested 5 s"
    with pytest.raises(ValueError, match=text):
        pick_machine(jobs, 4)
    with pytest.raises(ValueError, match=text):
        Trial(jobs, 4, groups=np.array([1, 1]))
    with pytest.raises(ValueError, match=text):
        UtilityJobs.of(jobs)
    machine = Machine(4, overruns=True)
    number = machine.submit(submit_time=0, processors=1, requested_time=5, run_time=9)
    machine.advance(0)
    with pytest.raises(ValueError, match="past the queue"):
        machine.start_guest(now=0, processors=1, requested_time=1, run_time=1, seen=True)
    with pytest.raises(ValueError, match="sees all of them"):
        machine.hide(number)
    with pytest.raises(ValueError, match="finite and more than 0"):
        machine.submit(submit_time=1, processors=1, requested_time=0, run_time=9)
