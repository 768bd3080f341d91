import math
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lrms_sim.analysis import metrics, occupancy
from lrms_sim.analysis.metrics import user_fairness
from lrms_sim.workload.jobs import JobTable
from lrms_sim.workload.schedule import MachineInfo, Schedule
from lrms_sim.workload.swf import read_swf

MACHINES = (MachineInfo("north", 8), MachineInfo("south", 4), MachineInfo("idle", 2))

Metric = Callable[[Schedule], float]

PER_JOB: list[Metric] = [
    metrics.awrt,
    metrics.mean_response_time,
    metrics.mean_wait_time,
    metrics.median_wait_time,
    metrics.mean_slowdown,
    metrics.mean_bounded_slowdown,
]


def schedule_of(
    rows: list[tuple[float, int, float, float, int, int]],
    machines: tuple[MachineInfo, ...] = MACHINES,
) -> Schedule:
    """Returns the schedule of rows (submit, processors, run, wait, submitted_to, executed_on)."""
    rows = sorted(rows, key=lambda row: row[0])
    submit, width, run, wait, home, host = (
        np.array([row[at] for row in rows], np.float64) for at in range(6)
    )
    jobs = JobTable.from_columns(submit_time=submit, processors=width.astype(int), run_time=run)
    return Schedule(
        jobs=jobs,
        start_time=submit + wait,
        end_time=submit + wait + run,
        machines=machines,
        submitted_to=home.astype(np.int16),
        executed_on=host.astype(np.int16),
        log_job_id=jobs.job_id,
    )


@st.composite
def schedules(draw: st.DrawFn, *, whole: bool = True) -> Schedule:
    """Draws a schedule on three machines, the last of which has no jobs."""
    times = st.integers(0, 10**6) if whole else st.floats(0, 1e6)
    spans = st.integers(1, 10**5) if whole else st.floats(1e-3, 1e5)
    row = st.tuples(times, st.integers(1, 4), spans, times, st.integers(0, 1), st.integers(0, 1))
    return schedule_of(draw(st.lists(row, max_size=30)))


# Two jobs of users of "north": one at home, one in the "south"; one guest of "south" in "north".
HAND = schedule_of(
    [
        (0.0, 2, 10.0, 0.0, 0, 0),
        (5.0, 4, 20.0, 5.0, 0, 1),
        (6.0, 8, 5.0, 4.0, 1, 0),
    ]
)


def test_awrt_follows_own_jobs_to_other_machines() -> None:
    """AWRT of a machine weights its users' response times by p·m, wherever the jobs ran."""
    assert metrics.awrt(HAND, 0) == (20 * 10 + 80 * 25) / 100
    assert metrics.awrt(HAND, 1) == 9.0
    assert metrics.awrt(HAND) == (20 * 10 + 80 * 25 + 40 * 9) / 140


def test_squashed_area_counts_executed_jobs() -> None:
    """The squashed area of a machine and its change count guests and not the delegated."""
    assert metrics.squashed_area(HAND, 0) == 20 + 40
    assert metrics.squashed_area(HAND, 1) == 80
    assert metrics.squashed_area(HAND) == 140
    assert metrics.squashed_area_change(HAND, 0) == 60 / 100 - 1
    assert metrics.squashed_area_change(HAND, 1) == 80 / 40 - 1


def test_utilization_spans_first_start_to_last_end() -> None:
    """Utilization divides by the machine's size and its own span, or the joint ones."""
    assert metrics.utilization(HAND, 0) == 60 / (8 * 15)
    assert metrics.utilization(HAND, 1) == 80 / (4 * 20)
    assert metrics.utilization(HAND) == 140 / (14 * 30)


def test_makespan_counts_from_the_given_origin() -> None:
    """The makespan is the latest end, less the origin."""
    assert metrics.makespan(HAND, 0) == 15.0
    assert metrics.makespan(HAND) == 30.0
    assert metrics.makespan(HAND, 1, origin=6.0) == 24.0


def test_waits_and_slowdowns_by_hand() -> None:
    """Wait, response, slowdown and bounded slowdown follow their formulas."""
    assert metrics.mean_wait_time(HAND) == 3.0
    assert metrics.median_wait_time(HAND) == 4.0
    assert metrics.median_wait_time(HAND, 0) == 2.5
    assert metrics.mean_response_time(HAND, 0) == (10 + 25) / 2
    assert metrics.mean_slowdown(HAND) == pytest.approx((1 + 25 / 20 + 9 / 5) / 3, rel=1e-15)
    # The job of 5 s counts as one of 10 s, and no job as faster than alone on the machine.
    assert metrics.mean_bounded_slowdown(HAND) == pytest.approx((1 + 1.25 + 1) / 3, rel=1e-15)
    assert metrics.mean_bounded_slowdown(HAND, 1, threshold=1.0) == 9 / 5


def test_where_narrows_the_selection() -> None:
    """A mask selects among the jobs submitted to the machine."""
    wide = np.array([False, True, True])
    assert metrics.awrt(HAND, 0, where=wide) == 25.0
    assert metrics.mean_wait_time(HAND, where=wide) == 4.5


def test_awrt_by_group() -> None:
    """Each group has its own AWRT and a group without jobs has none."""
    groups = np.array([1, 5, 1])
    assert metrics.awrt_by_group(HAND, groups).tolist()[:1] == [(20 * 10 + 40 * 9) / 60]
    assert metrics.awrt_by_group(HAND, groups)[4] == 25.0
    assert np.isnan(metrics.awrt_by_group(HAND, groups)[1:4]).all()
    assert metrics.awrt_by_group(HAND, groups, 0)[0] == 10.0


def test_steps_by_hand() -> None:
    """Busy and waiting processors change when jobs start, end and arrive, and at no other time."""
    times, values = occupancy.busy_processors(HAND, 0)
    assert times.tolist() == [0.0, 10.0, 15.0]
    assert values.tolist() == [2, 8, 0]
    times, values = occupancy.waiting_processors(HAND, 1)
    assert times.tolist() == [5.0, 10.0]
    assert values.tolist() == [4, 0]
    times, values = occupancy.waiting_processors(HAND)
    assert times.tolist() == [5.0, 6.0, 10.0]
    assert values.tolist() == [4, 12, 0]


def test_jobs_end_and_start_at_one_instant_without_a_step() -> None:
    """Where one job ends as another of the same width starts, the level does not change."""
    schedule = schedule_of([(0.0, 3, 10.0, 0.0, 0, 0), (0.0, 3, 5.0, 10.0, 0, 0)])
    times, values = occupancy.busy_processors(schedule, 0)
    assert times.tolist() == [0.0, 15.0]
    assert values.tolist() == [3, 0]


@given(schedules())
def test_sums_of_whole_seconds_are_exact(schedule: Schedule) -> None:
    """With whole seconds AWRT and utilization are the exact quotients, correctly rounded."""
    for machine in (0, 1, None):
        own = [row for row in plain(schedule) if machine in {None, row[4]}]
        weight = sum(row[1] * row[2] for row in own)
        total = sum(row[1] * row[2] * (row[2] + row[3]) for row in own)
        expected = float(Fraction(total) / Fraction(weight)) if own else math.nan
        assert same(metrics.awrt(schedule, machine), expected)
        ran = [row for row in plain(schedule) if machine in {None, row[5]}]
        assert metrics.squashed_area(schedule, machine) == sum(row[1] * row[2] for row in ran)


@given(schedules(whole=False))
def test_agrees_with_correctly_rounded_sums(schedule: Schedule) -> None:
    """With fractions of seconds every mean agrees with math.fsum to 13 digits."""
    for machine in (0, 1, None):
        rows = [row for row in plain(schedule) if machine in {None, row[4]}]
        weight = [width * run for _, width, run, _, _, _ in rows]
        mine = np.ones(len(schedule), bool) if machine is None else schedule.submitted_to == machine
        response = (schedule.end_time - schedule.jobs.submit_time)[mine].tolist()
        waits = [wait for _, _, _, wait, _, _ in rows]
        runs = [run for _, _, run, _, _, _ in rows]
        count = len(rows)
        weighted = math.fsum(w * r for w, r in zip(weight, response, strict=True))
        slow = math.fsum(r / p for r, p in zip(response, runs, strict=True))
        bounded = math.fsum(max(1.0, r / max(p, 10.0)) for r, p in zip(response, runs, strict=True))
        for actual, total, number in (
            (metrics.awrt(schedule, machine), weighted, math.fsum(weight)),
            (metrics.mean_response_time(schedule, machine), math.fsum(response), count),
            (metrics.mean_wait_time(schedule, machine), math.fsum(waits), count),
            (metrics.mean_slowdown(schedule, machine), slow, count),
            (metrics.mean_bounded_slowdown(schedule, machine), bounded, count),
        ):
            expected = total / number if count else math.nan
            assert same(actual, expected) or actual == pytest.approx(expected, rel=1e-13)


@given(schedules())
def test_step_functions_agree_with_counting(schedule: Schedule) -> None:
    """At every instant the steps hold what counting the jobs one by one gives."""
    rows = plain(schedule)
    instants = sorted({t for r in rows for t in (r[0], r[0] + r[3], r[0] + r[3] + r[2])})
    for machine in (0, 1, 2, None):
        mine = [row for row in rows if machine in {None, row[5]}]
        busy = occupancy.busy_processors(schedule, machine)
        waiting = occupancy.waiting_processors(schedule, machine)
        for now in instants:
            started = [r for r in mine if r[0] + r[3] <= now < r[0] + r[3] + r[2]]
            queued = [r for r in mine if r[0] <= now < r[0] + r[3]]
            assert at(busy, now) == sum(row[1] for row in started)
            assert at(waiting, now) == sum(row[1] for row in queued)
        for times, values in (busy, waiting):
            assert (np.diff(times) > 0).all()
            assert (np.diff(values, prepend=0) != 0).all()


@given(schedules())
def test_area_under_busy_processors_is_the_squashed_area(schedule: Schedule) -> None:
    """The integral of the busy processors of a machine is its squashed area."""
    for machine in (0, 1, 2):
        times, values = occupancy.busy_processors(schedule, machine)
        area = float(np.sum(np.diff(times) * values[:-1]))
        assert area == metrics.squashed_area(schedule, machine)


def test_large_schedules_keep_their_digits() -> None:
    """A million jobs over 30 years add up as exactly as with math.fsum."""
    rng = np.random.default_rng(5)
    count = 1_000_000
    submit = np.sort(rng.integers(0, 10**9, count)).astype(float)
    run, wait = rng.integers(1, 10**6, count) / 8, rng.integers(0, 10**7, count) / 8
    jobs = JobTable.from_columns(
        submit_time=submit, processors=rng.integers(1, 10**4, count), run_time=run
    )
    zeros = np.zeros(count, np.int16)
    start = submit + wait
    schedule = Schedule(jobs, start, start + run, MACHINES[:1], zeros, zeros, jobs.job_id)
    weight = jobs.processors * run
    exact = math.fsum((weight * (wait + run)).tolist()) / math.fsum(weight.tolist())
    assert metrics.awrt(schedule) == pytest.approx(exact, rel=1e-14)


@pytest.mark.parametrize("metric", PER_JOB)
def test_nothing_selected_has_no_mean(metric: Metric) -> None:
    """An empty selection gives nan, without a warning."""
    assert math.isnan(metric(schedule_of([])))


def test_machine_without_jobs() -> None:
    """A machine without jobs has no utilization, makespan or change, and an area of 0."""
    assert math.isnan(metrics.utilization(HAND, 2))
    assert math.isnan(metrics.makespan(HAND, 2))
    assert math.isnan(metrics.squashed_area_change(HAND, 2))
    assert metrics.squashed_area(HAND, 2) == 0.0
    for steps in (occupancy.busy_processors(HAND, 2), occupancy.waiting_processors(HAND, 2)):
        assert [len(column) for column in steps] == [0, 0]
    found = metrics.machine_metrics(HAND, 2)
    assert (found.machine, found.jobs_submitted, found.jobs_executed) == ("idle", 0, 0)


def test_machine_metrics_gathers_the_functions() -> None:
    """The summary of a machine holds what the functions return."""
    found = metrics.machine_metrics(HAND, 0, origin=-5.0)
    assert (found.machine, found.processors) == ("north", 8)
    assert (found.jobs_submitted, found.jobs_executed) == (2, 2)
    assert found.awrt_s == metrics.awrt(HAND, 0)
    assert found.makespan_s == 20.0
    assert found.median_wait_time_s == metrics.median_wait_time(HAND, 0)


@pytest.mark.parametrize("machine", [-1, 3])
def test_unknown_machine_is_an_error(machine: int) -> None:
    """A machine that the schedule does not have is refused, also a negative one."""
    for call in (metrics.awrt, metrics.utilization, occupancy.busy_processors):
        with pytest.raises(ValueError, match=f"machine {machine} does not exist.*has 3"):
            call(HAND, machine)


def test_bad_arguments_are_errors() -> None:
    """Masks, groups and thresholds out of bounds are named."""
    with pytest.raises(ValueError, match=r"boolean mask of shape \(3,\), not int64"):
        metrics.awrt(HAND, where=np.array([0, 1, 1]))
    with pytest.raises(ValueError, match=r"boolean mask of shape \(3,\).*\(2,\)"):
        metrics.mean_wait_time(HAND, where=np.array([True, False]))
    with pytest.raises(ValueError, match=r"groups has shape \(2,\) for 3 jobs"):
        metrics.awrt_by_group(HAND, np.array([1, 2]))
    with pytest.raises(ValueError, match=r"groups run from 0 to 5; they must be in 1\.\.5"):
        metrics.awrt_by_group(HAND, np.array([0, 2, 5]))
    with pytest.raises(ValueError, match="threshold is 0"):
        metrics.mean_bounded_slowdown(HAND, threshold=0)


@pytest.mark.traces
def test_metrics_of_a_recorded_trace(traces_folder: Path) -> None:
    """On a recorded log, as it really ran, all sums agree with math.fsum to the last bit."""
    log = read_swf(traces_folder / "KTH-SP2-1996-2.swf.gz")
    ran = (log.run_time > 0) & (log.wait_time >= 0) & (log.processors_allocated > 0)
    rows = np.flatnonzero(ran)
    rows = rows[np.argsort(log.submit_time[rows], kind="stable")]
    submit, run = log.submit_time[rows], log.run_time[rows]
    jobs = JobTable.from_columns(
        submit_time=submit, processors=log.processors_allocated[rows], run_time=run
    )
    start = submit + log.wait_time[rows]
    home = np.zeros(len(rows), np.int16)
    schedule = Schedule(
        jobs, start, start + run, (MachineInfo("kth", 100),), home, home, jobs.job_id
    )
    weight = (run * jobs.processors).tolist()
    response = (start + run - submit).tolist()
    area = math.fsum(weight)
    total = math.fsum(w * r for w, r in zip(weight, response, strict=True))
    assert len(rows) > 28_000
    assert metrics.awrt(schedule) == total / area
    assert metrics.squashed_area(schedule) == area
    assert metrics.mean_response_time(schedule) == math.fsum(response) / len(rows)


def plain(schedule: Schedule) -> list[tuple[float, int, float, float, int, int]]:
    """Returns the rows (submit, processors, run, wait, submitted_to, executed_on)."""
    jobs = schedule.jobs
    columns = (
        jobs.submit_time,
        jobs.processors,
        jobs.run_time,
        schedule.wait_time,
        schedule.submitted_to,
        schedule.executed_on,
    )
    return list(zip(*(column.tolist() for column in columns), strict=True))


def at(steps: tuple[np.ndarray, np.ndarray], now: float) -> int:
    """Returns the value of a step function at an instant."""
    times, values = steps
    place = int(np.searchsorted(times, now, side="right")) - 1
    return int(values[place]) if place >= 0 else 0


def same(actual: float, expected: float) -> bool:
    """Tells whether two numbers are equal, nan being equal to nan."""
    return actual == expected or (math.isnan(actual) and math.isnan(expected))


def users_of(waits: dict[int, list[float]]) -> Schedule:
    """Returns a schedule of jobs of 100 s that wait so long, by user."""
    rows = [(user, wait) for user, found in waits.items() for wait in found]
    jobs = JobTable.from_columns(
        submit_time=[0.0] * len(rows),
        processors=[1] * len(rows),
        run_time=[100.0] * len(rows),
        user=[user for user, _ in rows],
    )
    start = np.array([wait for _, wait in rows], np.float64)
    home = np.zeros(len(rows), np.int16)
    return Schedule(jobs, start, start + 100.0, MACHINES[:1], home, home, jobs.job_id)


def test_fairness_is_over_users_and_not_over_jobs() -> None:
    """Worked out by hand: slowdowns 1 and 3, however many jobs each user has."""
    found = user_fairness(users_of({7: [0.0] * 8, 9: [100.0, 300.0], -1: [9999.0]}))
    assert (found.users, found.worst_user) == (2, 9)
    assert (found.median, found.worst) == (2.0, 3.0)
    assert found.jain == (1 + 3) ** 2 / (2 * (1 + 9))


@given(
    st.dictionaries(
        st.integers(0, 9), st.lists(st.floats(0, 1e6), min_size=1, max_size=3), min_size=1
    )
)
def test_fairness_lies_between_one_for_all_and_one_of_all(waits: dict[int, list[float]]) -> None:
    """Jain's index is 1/n to 1, and 1 where there is one user; the worst is no better than the median."""
    found = user_fairness(users_of(waits))
    assert 1 / found.users - 1e-12 <= found.jain <= 1 + 1e-12
    assert found.users > 1 or found.jain == pytest.approx(1)
    assert found.worst >= found.median >= 1
    assert found.worst_user in waits


def test_fairness_of_nobody_has_no_meaning() -> None:
    """Nor of jobs whose users nobody knows; a threshold of 0 is refused."""
    found = user_fairness(users_of({-1: [5.0]}))
    assert (found.users, found.worst_user) == (0, -1)
    assert math.isnan(found.jain)
    with pytest.raises(ValueError, match="more than 0"):
        user_fairness(users_of({1: [5.0]}), threshold=0.0)
