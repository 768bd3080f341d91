import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lrms_sim.workload.jobs import JobTable
from lrms_sim.workload.lublin import (
    BLOCK_JOBS,
    BUCKETS,
    REQUESTS,
    LublinParameters,
    day_weights,
    generate,
    generate_many,
)

COLUMNS = ("job_id", "submit_time", "processors", "requested_time", "run_time", "user")
PARAMETERS = LublinParameters()
DAY = 86400.0


def columns(jobs: JobTable) -> dict[str, list[float]]:
    return {name: getattr(jobs, name).tolist() for name in COLUMNS}


def load_of(jobs: JobTable, processors: int) -> float:
    return float(jobs.resource_consumption.sum() / (processors * jobs.submit_time[-1]))


@pytest.fixture(scope="module")
def large() -> JobTable:
    return generate(128, seed=20030101, jobs=400_000)


def test_sample_agrees_with_another_program(large: JobTable) -> None:
    """Means are those of an independent implementation on 128 processors.

    That one gave, on a sample of some ten thousand jobs: size 14.15, run time median 803 s and
    mean 9442 s, gap 3369 s, load .387. Standard errors of such a sample are 0.22, 25 s, 140 s,
    204 s and 8 %; the bounds are two of them.
    """
    assert large.processors.mean() == pytest.approx(14.15, abs=2 * 0.22)
    assert np.median(large.run_time) == pytest.approx(803, abs=2 * 25)
    assert large.run_time.mean() == pytest.approx(9442, abs=2 * 140)
    assert large.submit_time[-1] / len(large) == pytest.approx(3369, abs=2 * 204)
    assert load_of(large, 128) == pytest.approx(0.387, rel=2 * 0.08)


def test_sizes_follow_their_distribution(large: JobTable) -> None:
    """Serial jobs and each power of two come as often as the formula says, to 5 std. errors."""
    parallel = 1 - PARAMETERS.serial
    # log2 is uniform over [1.2, 5] with 0.875 and over [5, 7] else; rounding takes ± ½.
    stages = {1: 0.3 / 3.8, 2: 1 / 3.8, 3: 1 / 3.8, 4: 1 / 3.8, 5: 0.5 / 3.8}
    upper = {5: 0.25, 6: 0.5, 7: 0.25}
    rest = parallel - PARAMETERS.power_of_two

    def log_uniform(low: float, high: float, size: int) -> float:
        cut_low = max(low, math.log2(size - 0.5))
        cut_high = min(high, math.log2(size + 0.5))
        return max(0.0, cut_high - cut_low) / (high - low)

    expected = {1: PARAMETERS.serial}
    for size in range(2, 129):
        smooth = 0.875 * log_uniform(1.2, 5, size) + 0.125 * log_uniform(5, 7, size)
        expected[size] = rest * smooth
    for power in range(1, 8):
        rounded = 0.875 * stages.get(power, 0) + 0.125 * upper.get(power, 0)
        expected[2**power] += PARAMETERS.power_of_two * rounded
    assert sum(expected.values()) == pytest.approx(1)
    counts = np.bincount(large.processors, minlength=129)
    for size, probability in expected.items():
        error = math.sqrt(len(large) * probability * (1 - probability))
        assert counts[size] == pytest.approx(len(large) * probability, abs=5 * error + 1)


def test_wide_jobs_run_longer(large: JobTable) -> None:
    """The mean logarithm of run times rises with the size as the mixture says."""
    for size in (1, 16, 64):
        logs = np.log(large.run_time[large.processors == size] + 0.5)
        short = PARAMETERS.run_time_slope * size + PARAMETERS.run_time_intercept
        # Cutting at 12 takes a little from the short part.
        expected = short * 6.57 * 0.823 + (1 - short) * 639.1 * 0.0156
        assert logs.mean() == pytest.approx(expected, abs=0.06)


def test_run_times_stay_below_their_limit(large: JobTable) -> None:
    """Nothing runs longer than e^12 seconds, and everything runs."""
    assert large.run_time.max() <= math.exp(12)
    assert large.run_time.min() >= 1


def test_arrivals_follow_the_day(large: JobTable) -> None:
    """Half-hours get submissions in proportion to their weights."""
    bucket = (large.submit_time % DAY // 1800).astype(np.int64)
    share = np.bincount(bucket, minlength=BUCKETS) / len(large) * BUCKETS
    assert share == pytest.approx(day_weights(PARAMETERS), abs=0.1)


def test_day_weights_are_quiet_before_dawn_and_busy_after_noon() -> None:
    """Weights have the mean 1, the least at five o'clock and the most at one."""
    weights = day_weights(PARAMETERS)
    assert weights.shape == (BUCKETS,)
    assert weights.mean() == pytest.approx(1)
    assert int(np.argmin(weights)) == 9
    assert int(np.argmax(weights)) == 26


def test_day_weights_are_differences_of_the_distribution() -> None:
    """The weights agree with a numerical integral of the gamma density."""
    shape, scale = PARAMETERS.day_shape, PARAMETERS.day_scale
    expected = np.empty(BUCKETS)
    for index in range(11, 59):
        x = np.linspace(index - 0.5, index + 0.5, 2001)
        density = x ** (shape - 1) * np.exp(-x / scale)
        expected[(index - 1) % BUCKETS] = ((density[1:] + density[:-1]) / 2 * np.diff(x)).sum()
    expected /= expected.mean()
    assert day_weights(PARAMETERS) == pytest.approx(expected, rel=1e-6)


def test_start_hour_turns_the_day() -> None:
    """Time 0 may be another hour; the day's rhythm then begins there."""
    jobs = generate(8, seed=2, jobs=100_000, parameters=LublinParameters(start_hour=9.5))
    bucket = ((jobs.submit_time + 9.5 * 3600) % DAY // 1800).astype(np.int64)
    share = np.bincount(bucket, minlength=BUCKETS) / len(jobs) * BUCKETS
    assert share == pytest.approx(day_weights(PARAMETERS), abs=0.2)
    assert jobs.submit_time[0] >= 0


def test_requests_are_round_and_sufficient(large: JobTable) -> None:
    """Requests are values that users ask for, never less than the run time, never beyond 48 h."""
    assert set(large.requested_time) <= set(REQUESTS)
    assert (large.requested_time >= large.run_time).all()
    accuracy = large.run_time / large.requested_time
    assert 0.3 < accuracy.mean() < 0.6
    # Before rounding nobody asks for more than ten times what he needs.
    asked = np.searchsorted(REQUESTS, large.requested_time)
    below = np.asarray([0.0, *REQUESTS])[asked]
    assert (below <= large.run_time * 10).all()


def test_long_requests_are_whole_days() -> None:
    """Above the longest round value requests are whole days; a limit cuts what it may cut."""
    long = LublinParameters(run_time_log_max=14, run_time_scale_long=0.02, requested_time_max=1e6)
    jobs = generate(8, seed=3, jobs=5000, parameters=long)
    beyond = jobs.requested_time[jobs.requested_time > REQUESTS[-1]]
    assert len(beyond) > 100
    assert set(beyond % DAY) <= {0.0, 1e6 % DAY}
    tight = LublinParameters(requested_time_max=5000.0)
    jobs = generate(8, seed=3, jobs=5000, parameters=tight)
    fits = jobs.run_time <= 5000
    assert (jobs.requested_time[fits] <= 5000).all()
    assert set(jobs.requested_time[~fits]) <= set(REQUESTS)


def test_few_users_send_most_jobs(large: JobTable) -> None:
    """Users are numbered from 1, and the k-th sends a k-th of what the first sends."""
    counts = np.bincount(large.user, minlength=201)
    assert counts[0] == 0
    assert len(counts) == 201
    for user in (2, 5, 10):
        assert counts[user] * user == pytest.approx(counts[1], rel=0.06)


def test_seed_decides_everything() -> None:
    """One seed, one workload; another seed, another; a generator is as good as its seed."""
    assert columns(generate(64, seed=7, jobs=500)) == columns(generate(64, seed=7, jobs=500))
    assert columns(generate(64, seed=7, jobs=500)) != columns(generate(64, seed=8, jobs=500))
    same = generate(64, seed=np.random.default_rng(7), jobs=500)
    assert columns(same) == columns(generate(64, seed=7, jobs=500))


@pytest.mark.parametrize("count", [0, 1, 100, BLOCK_JOBS, BLOCK_JOBS + 1])
def test_short_workload_is_the_beginning_of_a_long_one(count: int) -> None:
    """The number of jobs does not change the jobs."""
    short = columns(generate(64, seed=7, jobs=count))
    long = columns(generate(64, seed=7, jobs=BLOCK_JOBS * 2 + 5))
    assert short == {name: column[:count] for name, column in long.items()}


def test_streams_do_not_disturb_each_other() -> None:
    """Other requests and users move no arrival, size or run time."""
    usual = generate(64, seed=7, jobs=1000)
    other = generate(
        64, seed=7, jobs=1000, parameters=LublinParameters(request_accuracy_min=1.0, users=3)
    )
    for name in ("submit_time", "processors", "run_time"):
        assert getattr(other, name).tolist() == getattr(usual, name).tolist()
    assert (other.requested_time < usual.requested_time).any()
    assert set(other.user) == {1, 2, 3}


def test_duration_bounds_submissions() -> None:
    """All jobs of the model up to a moment are there, and none after it."""
    jobs = generate(64, seed=7, duration=10 * DAY)
    longer = generate(64, seed=7, jobs=len(jobs) + 1)
    assert jobs.submit_time[-1] < 10 * DAY <= longer.submit_time[-1]
    assert columns(jobs) == {name: column[:-1] for name, column in columns(longer).items()}
    assert len(generate(64, seed=7, duration=0.001)) == 0


@pytest.mark.parametrize("load", [0.1, 0.7, 1.5])
def test_load_is_met(load: float) -> None:
    """Gaps are stretched until the work is the wanted part of what the machine can do."""
    jobs = generate(64, seed=7, jobs=5000, load=load)
    assert load_of(jobs, 64) == pytest.approx(load, rel=1e-4)
    plain = generate(64, seed=7, jobs=5000)
    for name in ("processors", "run_time", "requested_time", "user"):
        assert getattr(jobs, name).tolist() == getattr(plain, name).tolist()


def test_load_with_duration_decides_the_number_of_jobs() -> None:
    """Both are met: the last submission comes at the end, and the load is the wanted one."""
    jobs = generate(64, seed=7, duration=100 * DAY, load=0.8)
    assert load_of(jobs, 64) == pytest.approx(0.8, rel=1e-4)
    assert 98 * DAY < jobs.submit_time[-1] <= 100 * DAY
    assert len(generate(64, seed=7, duration=1.0, load=0.01)) == 0


def test_load_keeps_the_rhythm_of_the_day() -> None:
    """A stretched workload is as quiet at night as an unstretched one."""
    jobs = generate(64, seed=7, jobs=100_000, load=0.9)
    bucket = (jobs.submit_time % DAY // 1800).astype(np.int64)
    share = np.bincount(bucket, minlength=BUCKETS) / len(jobs) * BUCKETS
    assert share == pytest.approx(day_weights(PARAMETERS), abs=0.2)


@settings(max_examples=60)
@given(st.integers(1, 5000), st.integers(0, 2**64), st.integers(0, 60))
def test_any_machine_gets_jobs_that_fit(processors: int, seed: int, count: int) -> None:
    """Sizes are from 1 to the machine's, times are whole, on machines of any size."""
    jobs = generate(processors, seed=seed, jobs=count)
    assert len(jobs) == count
    assert jobs.processors.max(initial=1) <= processors
    assert (jobs.submit_time >= 0).all()
    assert (jobs.submit_time % 1 == 0).all()
    assert (jobs.run_time % 1 == 0).all()


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"processors": 0, "jobs": 1}, "processors is 0; it must be a whole number from 1"),
        ({"processors": 2**31, "jobs": 1}, "processors is 2147483648"),
        ({"processors": 8.5, "jobs": 1}, "processors is 8.5; it must be a whole number"),
        ({"jobs": -1}, "jobs is -1; it must be a whole number from 0"),
        ({"jobs": 2.5}, "jobs is 2.5; it must be a whole number"),
        ({"jobs": 2**31}, "jobs is 2147483648"),
        ({}, "one of jobs and duration"),
        ({"jobs": 1, "duration": 1.0}, "one of jobs and duration"),
        ({"duration": -1.0}, "duration is -1.0; it must be finite and more than 0"),
        ({"duration": 1e300}, "more than 2147483646 jobs; shorten its duration"),
        ({"duration": 1e300, "load": 0.5}, "more than 2147483646 jobs; shorten its duration"),
        ({"duration": math.inf}, "duration is inf"),
        ({"jobs": 1, "load": 0.0}, "load is 0.0; it must be finite and more than 0"),
        ({"jobs": 1, "load": math.nan}, "load is nan"),
        ({"jobs": 9, "load": 1e-300}, r"load is 1e-300; 9 jobs .* beyond 2\*\*53 s"),
        ({"jobs": 9, "load": 5e-324}, r"load is 5e-324; 9 jobs .* beyond 2\*\*53 s"),
        ({"jobs": 9, "load": 1e-13}, r"load is 1e-13; 9 jobs .* beyond 2\*\*53 s"),
    ],
)
def test_impossible_arguments_are_refused(arguments: dict[str, Any], problem: str) -> None:
    """The error names the argument, its value and its bound."""
    with pytest.raises(ValueError, match=problem):
        generate(**{"processors": 8, "seed": 1, **arguments})


@pytest.mark.parametrize(
    ("parameters", "problem"),
    [
        ({"serial": 1.5}, "serial is 1.5; it must be between 0 and 1"),
        ({"gap_scale": 0.0}, "gap_scale is 0.0; it must be more than 0"),
        ({"run_time_shape_long": -1.0}, "run_time_shape_long is -1.0; it must be more than 0"),
        ({"day_shape": math.nan}, "day_shape is nan; it must be finite"),
        ({"size_low": -1.0}, "size_low is -1.0; it must be 0 or more"),
        ({"run_time_log_max": 3.0}, "run_time_log_max is 3.0; it must be at least the mean"),
        ({"gap_log_max": 50.0}, "gap_log_max is 50.0; it must be at most 40"),
        ({"start_hour": 24.0}, "start_hour is 24.0; it must be from 0 to less than 24"),
        ({"request_accuracy_min": 0.0}, "request_accuracy_min is 0.0; it must be in"),
        ({"users": 0}, "users is 0; it must be from 1"),
    ],
)
def test_impossible_parameters_are_refused(parameters: dict[str, Any], problem: str) -> None:
    """A parameter that makes no distribution is refused with its name, value and bound."""
    with pytest.raises(ValueError, match=problem):
        LublinParameters(**parameters)


def test_many_machines_have_the_model_of_one() -> None:
    """Of 400 machines at once: mean size, run time and load are those of one machine's workload, to 3 std. errors."""
    made = generate_many(np.full(400, 128, np.int32), seed=4, jobs=500, load=np.full(400, 0.7))
    assert made.processors.mean() == pytest.approx(14.15, abs=3 * 0.22)
    assert np.median(made.run_time) == pytest.approx(803, abs=3 * 25)
    work = (made.run_time * made.processors).sum(1)
    assert (work / (128 * made.submit_time[:, -1])).tolist() == pytest.approx([0.7] * 400, rel=1e-4)
    assert np.all(np.diff(made.submit_time, axis=1) >= 0)
    assert np.all(made.requested_time >= made.run_time)


def test_many_machines_have_their_own_midnights() -> None:
    """A machine six hours ahead has its quiet hours six hours earlier; sizes and loads are as asked for."""
    hours = np.repeat([0.0, 6.0], 300)
    made = generate_many(
        np.full(600, 64, np.int32), seed=1, jobs=200, load=np.full(600, 0.5), start_hour=hours
    )
    clock = (made.submit_time / 3600 + hours[:, None]) % 24
    for rows in (slice(0, 300), slice(300, 600)):
        busy = np.count_nonzero((clock[rows] >= 9) & (clock[rows] < 17))
        quiet = np.count_nonzero((clock[rows] >= 0) & (clock[rows] < 8))
        assert busy > 2 * quiet


def test_more_machines_and_other_sizes_leave_workloads_as_they_are() -> None:
    """A machine's jobs depend on the seed, its size, and how many of that size come before it."""
    few = generate_many(np.array([64, 128], np.int32), seed=2, jobs=50, load=np.full(2, 0.6))
    many = generate_many(
        np.array([128, 32, 64, 64], np.int32), seed=2, jobs=50, load=np.full(4, 0.6)
    )
    for name in few._fields:
        one, other = getattr(few, name), getattr(many, name)
        assert one[0].tolist() == other[2].tolist()
        assert one[1].tolist() == other[0].tolist()
    assert many.run_time[3].tolist() != many.run_time[2].tolist()


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"jobs": 0}, "jobs is 0"),
        ({"load": np.full(2, 0.0)}, "load is 0"),
        ({"load": np.full(3, 0.5)}, "3 loads"),
        ({"load": np.full(2, 1e-16)}, "so small"),
        ({"start_hour": np.array([0.0, 24.0])}, "start_hour is 24"),
        ({"processors": np.array([1, 0], np.int32)}, "processors is 0"),
    ],
)
def test_arguments_of_many_machines_are_checked(changed: dict[str, Any], message: str) -> None:
    """Each is named with its value."""
    arguments: dict[str, Any] = {
        "processors": np.full(2, 8, np.int32), "seed": 1, "jobs": 5, "load": np.full(2, 0.5),
    }  # fmt: skip
    with pytest.raises(ValueError, match=message):
        generate_many(**arguments | changed)
