"""The machine of picks against the house's disciplines, job by job."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lrms_sim.analysis.metrics import awrt, mean_bounded_slowdown, mean_wait_time
from lrms_sim.machine.machine import simulate
from lrms_sim.machine.picks import PickMachine, pick_machine, step_all
from lrms_sim.scheduling.disciplines import discipline_by_name
from lrms_sim.workload.jobs import JobTable

Key = Callable[[JobTable, npt.NDArray[np.int64], float], npt.NDArray[np.float64]]

KEYS: dict[str, Key] = {
    "fcfs": lambda _jobs, rows, _now: rows.astype(np.float64),
    "sjf": lambda jobs, rows, _now: jobs.requested_time[rows],
    "saf": lambda jobs, rows, _now: jobs.requested_time[rows] * jobs.processors[rows],
    "wfp3": lambda jobs, rows, now: (
        -(((now - jobs.submit_time[rows]) / jobs.requested_time[rows]) ** 3) * jobs.processors[rows]
    ),
    "f1": lambda jobs, rows, _now: (
        np.log10(jobs.requested_time[rows]) * jobs.processors[rows]
        + 870 * np.log10(np.maximum(jobs.submit_time[rows], 1.0))
    ),
}


def workload(seed: int, count: int = 300) -> JobTable:
    """Returns a busy machine's jobs; several are submitted at the same second."""
    random = np.random.default_rng(seed)
    run_time = np.ceil(random.lognormal(5.0, 2.0, count))
    return JobTable.from_columns(
        submit_time=np.floor(np.cumsum(random.exponential(150.0, count))),
        processors=random.integers(1, 17, count) ** 2 // 8 + 1,
        run_time=run_time,
        requested_time=np.ceil(run_time * random.uniform(1.0, 5.0, count)),
    )


def picked(
    jobs: JobTable, key: Key, *, first: int = 0, count: int | None = None, **options: object
) -> tuple[PickMachine, float]:
    """Lets the first job of an order be picked always; returns the machine and the sum of rewards."""
    length = len(jobs) - first if count is None else count
    machine = pick_machine(jobs, 64, window=len(jobs), **options)  # type: ignore[arg-type]  # some of its own
    machine.reset(first, length)
    total, ended = 0.0, False
    while not ended:
        rows = machine.rows_seen()
        reward, ended = machine.step(int(np.argmin(key(jobs, rows, machine.now))))
        total += reward
    return machine, total


@pytest.mark.parametrize("name", KEYS)
@pytest.mark.parametrize("seed", [1, 2])
def test_picks_in_an_order_are_the_discipline_of_that_order(name: str, seed: int) -> None:
    jobs = workload(seed)
    machine, _ = picked(jobs, KEYS[name])
    expected = simulate(jobs, 64, discipline_by_name(name)).start_time
    assert machine.start_times.tolist() == expected.tolist()


@given(st.integers(0, 10_000))
@settings(max_examples=25, deadline=None)
def test_the_oldest_with_backfilling_is_easy(seed: int) -> None:
    jobs = workload(seed, 120)
    machine, _ = picked(jobs, KEYS["fcfs"], backfill=True)
    assert (
        machine.start_times.tolist()
        == simulate(jobs, 64, discipline_by_name("easy")).start_time.tolist()
    )


def test_committed_picks_of_the_oldest_are_fcfs_and_easy() -> None:
    jobs = workload(5)
    for backfill, name in ((False, "fcfs"), (True, "easy")):
        machine, _ = picked(jobs, KEYS["fcfs"], backfill=backfill, commit=True)
        expected = simulate(jobs, 64, discipline_by_name(name)).start_time
        assert machine.start_times.tolist() == expected.tolist()


def test_nobody_passes_a_committed_pick() -> None:
    # 4 processors: the first job runs; the wide one is picked at 1 and comes before the short one of 2.
    jobs = JobTable.from_columns(submit_time=[0, 1, 2], processors=[3, 4, 1], run_time=[10, 5, 1])
    starts = {}
    for commit in (False, True):
        machine = pick_machine(jobs, 4, window=3, commit=commit)
        machine.reset(0, 3)
        ended = False
        while not ended:
            rows = machine.rows_seen()
            _, ended = machine.step(int(np.argmin(jobs.requested_time[rows])))
        starts[commit] = machine.start_times.tolist()
    assert starts == {False: [0.0, 10.0, 2.0], True: [0.0, 10.0, 15.0]}


@pytest.mark.parametrize(
    ("objective", "metric"),
    [("bounded-slowdown", mean_bounded_slowdown), ("wait", mean_wait_time), ("awrt", awrt)],
)
@pytest.mark.parametrize("at_end", [False, True])
def test_rewards_sum_up_to_the_objective(
    objective: str, metric: Callable[..., float], at_end: bool
) -> None:
    jobs = workload(3)
    _, total = picked(
        jobs, KEYS["sjf"], objective=objective, reward_at_end=at_end, first=40, count=200
    )
    schedule = simulate(jobs.select(np.arange(40, 240)), 64, discipline_by_name("sjf"))
    assert -total == pytest.approx(metric(schedule), rel=1e-12)


def test_a_reward_at_the_end_comes_with_no_other_step() -> None:
    machine = pick_machine(workload(4), 64, window=8, reward_at_end=True)
    machine.reset(0, 50)
    rewards, ended = [], False
    while not ended:
        reward, ended = machine.step(0)
        rewards.append(reward)
    assert set(rewards[:-1]) == {0.0}
    assert rewards[-1] < 0


def test_an_observation_is_the_window() -> None:
    jobs = JobTable.from_columns(
        submit_time=[0, 0, 0],
        processors=[3, 2, 1],
        run_time=[10, 5, 1],
        requested_time=[99, 9, 1e9],
    )
    machine = pick_machine(jobs, 4, window=4)
    machine.reset(0, 3)
    machine.step(0)
    seen = np.full((4, 6), 7.0, np.float32)
    machine.observe(seen)
    assert machine.rows_seen().tolist() == [1, 2]
    assert machine.processors_free == 1
    scale = np.log1p(1e7)
    np.testing.assert_allclose(seen[0], [1, 0, np.log1p(9) / scale, 0.5, 0, 0.25], rtol=1e-6)
    np.testing.assert_allclose(seen[1], [1, 0, 1, 0.25, 1, 0.25], rtol=1e-6)
    assert not seen[2:].any()
    machine.step(3)  # an empty place: the first job, which blocks until 10
    assert machine.now == 10.0
    machine.observe(seen)
    assert seen[0, 1] == pytest.approx(np.log1p(10) / scale)


def test_a_machine_begins_anew_from_the_middle_of_a_sequence() -> None:
    jobs = workload(6)
    machine = pick_machine(jobs, 64, window=300)
    machine.reset(100, 100)
    for _ in range(30):
        machine.step(0)
    machine.reset(0, 300)
    ended = False
    while not ended:
        _, ended = machine.step(0)
    assert machine.start_times.tolist() == simulate(jobs, 64).start_time.tolist()


def test_what_is_impossible_is_refused() -> None:
    jobs = workload(7, 20)
    machine = pick_machine(jobs, 64, window=4)
    with pytest.raises(RuntimeError, match="reset first"):
        machine.step(0)
    with pytest.raises(ValueError, match="there are 20 jobs; no 4 from row 17 on"):
        machine.reset(17, 4)
    with pytest.raises(ValueError, match="no 4 from row -1 on"):
        machine.reset(-1, 4)
    machine.reset(0, 4)
    for place in (-1, 4):
        with pytest.raises(ValueError, match="outside the window of 4 jobs"):
            machine.step(place)
    with pytest.raises(ValueError, match="has shape \\(4, 6\\)"):
        machine.observe(np.zeros((3, 6), np.float32))
    with pytest.raises(ValueError, match="window is 0"):
        pick_machine(jobs, 64, window=0)
    with pytest.raises(ValueError, match="must be one of bounded-slowdown, wait, awrt"):
        pick_machine(jobs, 64, objective="makespan")  # type: ignore[arg-type]  # none of them
    with pytest.raises(ValueError, match="needs 11 processors; machine 'machine' has 8"):
        pick_machine(jobs, 8)
    with pytest.raises(ValueError, match="at least one"):
        pick_machine(JobTable.empty(), 8)
    with pytest.raises(ValueError, match="as many rows"):
        step_all(
            [machine],
            np.zeros(2, np.int64),
            np.zeros((1, 4, 6), np.float32),
            np.zeros(1),
            np.zeros(1, np.uint8),
        )
