import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lrms_sim.workload.jobs import (
    SECONDS_PER_DAY,
    JobTable,
    concatenate,
    jobs_sha256,
    scale_to,
    window_by_days,
)

GOOD: dict[str, Any] = {
    "submit_time": [0.0, 5.0],
    "processors": [1, 4],
    "run_time": [10.0, 20.0],
    "requested_time": [10.0, 60.0],
    "job_id": [7, 9],
    "user": [1, -1],
}


@pytest.mark.parametrize(
    ("column", "values", "complaint"),
    [
        ("submit_time", [0.0, math.nan], "submit_time of job 9 .* is nan; it must be finite"),
        ("submit_time", [0.0, math.inf], "submit_time of job 9"),
        ("processors", [0, 4], r"processors of job 7 \(row 0\) is 0; it must be at least 1"),
        ("processors", [1, 2.5], "processors in row 1 is 2.5, which is no int32"),
        ("processors", [1, 2**31], "processors in row 1 is 2147483648"),
        ("processors", [1, math.nan], "processors in row 1 is nan"),
        ("run_time", [10.0, 0.0], "run_time of job 9 .* more than 0"),
        ("run_time", [10.0, -1.0], "run_time of job 9"),
        ("run_time", [10.0, math.nan], "run_time of job 9"),
        ("requested_time", [10.0, 19.0], "requested_time of job 9 .* at least the job's run_time"),
        ("requested_time", [10.0, math.inf], "requested_time of job 9"),
        ("user", [1], "column user has 1 rows"),
    ],
)
def test_a_broken_promise_is_named(column: str, values: list[float], complaint: str) -> None:
    """Column, job, value and bound are in the text; nothing is rounded or wrapped silently."""
    with pytest.raises(ValueError, match=complaint):
        JobTable.from_columns(**GOOD | {column: values})


def test_repeated_job_ids_at_one_instant_are_refused() -> None:
    """The order of arrival must be total."""
    with pytest.raises(ValueError, match="without repeats: job 7 in row 1"):
        JobTable.from_columns(**GOOD | {"submit_time": [0.0, 0.0], "job_id": [7, 7]})


def test_rows_out_of_order_are_refused_and_from_columns_sorts_them() -> None:
    """The constructor checks the order; the helper makes it."""
    columns = {name: np.array(values)[::-1] for name, values in GOOD.items()}
    with pytest.raises(ValueError, match="must be sorted"):
        JobTable(**columns)
    assert JobTable.from_columns(**columns).job_id.tolist() == [7, 9]


def test_left_out_columns_get_their_defaults() -> None:
    """Requested times default to run times, ids count from 1, users are unknown."""
    table = JobTable.from_columns(submit_time=[5, 0], processors=[1, 2], run_time=[3, 4])
    assert table.job_id.tolist() == [2, 1]
    assert table.requested_time.tolist() == [4, 3]
    assert table.user.tolist() == [-1, -1]


def test_tables_cannot_be_written_to() -> None:
    """A table that kernels point into does not change."""
    table = JobTable.from_columns(**GOOD)
    with pytest.raises(ValueError, match="read-only"):
        table.run_time[0] = 1


def test_selection_and_shift_keep_everything_else() -> None:
    """Rows are chosen by mask or number; a shift moves submissions only."""
    table = JobTable.from_columns(**GOOD)
    chosen = table.select(table.processors > 1).shifted(-5)
    assert (chosen.job_id.tolist(), chosen.submit_time.tolist()) == ([9], [0])
    assert chosen.resource_consumption.tolist() == [80]
    assert len(JobTable.empty()) == 0


@given(st.lists(st.lists(st.integers(0, 5), max_size=6), max_size=4))
def test_merging_orders_by_time_then_table_then_row(submissions: list[list[int]]) -> None:
    """The merged order is (submit time, table, row), and origins lead back to the rows."""
    tables = [
        JobTable.from_columns(
            submit_time=times, processors=[1] * len(times), run_time=[1] * len(times)
        )
        for times in submissions
    ]
    merged, origin, row = concatenate(tables)
    keys = [
        (float(time), table, place)
        for time, table, place in zip(merged.submit_time, origin, row, strict=True)
    ]
    assert keys == sorted(
        (float(time), number, place)
        for number, table in enumerate(tables)
        for place, time in enumerate(table.submit_time)
    )
    assert merged.job_id.tolist() == list(range(1, len(keys) + 1))


def test_an_id_is_of_one_job() -> None:
    """Also where two jobs of it come at different times, and in tables whose ids are in no order."""
    with pytest.raises(ValueError, match="job_id 7 stands in rows 0 and 2; an id is of one job"):
        JobTable.from_columns(
            job_id=[7, 3, 7], submit_time=[0, 1, 2], processors=[1, 1, 1], run_time=[1, 1, 1]
        )
    ids = [9, 3, 7]
    columns = {"submit_time": [0, 1, 2], "processors": [1, 1, 1], "run_time": [1, 1, 1]}
    assert JobTable.from_columns(job_id=ids, **columns).job_id.tolist() == ids


def test_dates_and_spans_become_seconds() -> None:
    """The first submission is time 0; a column of another kind than it must be is refused by its name."""
    days = np.array(["2024-01-02", "2024-01-01"], "datetime64[D]")
    hours = np.array([2, 1], "timedelta64[h]")
    jobs = JobTable.from_columns(submit_time=days, processors=[1, 2], run_time=hours, user=[4, 5])
    assert jobs.submit_time.tolist() == [0, 86400]
    assert jobs.run_time.tolist() == jobs.requested_time.tolist() == [3600, 7200]
    assert jobs.processors.tolist() == [2, 1]
    good: dict[str, Any] = {"submit_time": [0, 1], "processors": [1, 2], "run_time": [5, 6]}
    for wrong, words in (
        ({"run_time": days}, "run_time is of dates; seconds or spans of time are expected"),
        ({"processors": hours}, "processors is of spans of time; numbers are expected"),
        ({"user": days}, "user is of dates; numbers are expected"),
        ({"requested_time": ["9", "9"]}, "requested_time in row 0 is '9', a text"),
        ({"job_id": [True, False]}, "job_id in row 0 is True, a truth value"),
    ):
        with pytest.raises(ValueError, match=words):
            JobTable.from_columns(**good | wrong)
    table = JobTable.from_columns(**good).columns()
    with pytest.raises(ValueError, match="run_time is of spans of time; numbers are expected"):
        JobTable(**table | {"run_time": hours})


DAY = SECONDS_PER_DAY


def table(*submit_times: float) -> JobTable:
    count = len(submit_times)
    return JobTable.from_columns(
        submit_time=submit_times, processors=[1] * count, run_time=[1.0] * count
    )


JOBS = table(-5, 0, DAY - 1, DAY, DAY + 5, 2 * DAY, 3 * DAY)


@pytest.mark.parametrize(
    ("window", "job_ids"),
    [
        ({}, [1, 2, 3, 4, 5, 6, 7]),
        ({"first_day": 0}, [2, 3, 4, 5, 6, 7]),
        ({"last_day": 1}, [1, 2, 3]),
        ({"first_day": 1, "last_day": 2}, [4, 5]),
        ({"first_day": 1, "first_jobs": 3}, [4, 5, 6]),
        ({"first_day": 1, "last_day": 2, "first_jobs": 3}, [4, 5]),
        ({"first_jobs": 0}, []),
        ({"first_day": 0.5, "last_day": 1.0 + 6 / DAY}, [3, 4, 5]),
        ({"first_day": 10}, []),
        ({"last_day": -1}, []),
    ],
)
def test_span_includes_its_beginning_and_not_its_end(
    window: dict[str, Any], job_ids: list[int]
) -> None:
    """A day belongs to the window from its first second to the one before the next day's."""
    assert window_by_days(JOBS, **window).job_id.tolist() == job_ids


def test_shift_moves_time_zero() -> None:
    """Times stay, or count from the window's start, or from its first job."""
    kept = window_by_days(JOBS, 1, 3)
    assert kept.submit_time.tolist() == [DAY, DAY + 5, 2 * DAY]
    assert window_by_days(JOBS, 1, 3, shift="window").submit_time.tolist() == [0, 5, DAY]
    late = window_by_days(JOBS, 1.5, shift="first_job")
    assert late.submit_time.tolist() == [0, DAY]
    assert window_by_days(JOBS, 1.5, shift="window").submit_time.tolist() == [DAY / 2, DAY * 1.5]
    # Without a first day the window starts where the log does, at time 0.
    assert window_by_days(JOBS, shift="window").submit_time[1] == 0
    assert len(window_by_days(JOBS, 10, shift="first_job")) == 0


@pytest.mark.parametrize(
    ("window", "problem"),
    [
        ({"first_day": 2, "last_day": 1}, "last_day is 1; it must be more than first_day, 2"),
        ({"first_day": 1, "last_day": 1}, "last_day is 1"),
        ({"first_day": math.nan}, "first_day is nan; it must be finite"),
        ({"last_day": math.inf}, "last_day is inf; it must be finite"),
        ({"first_jobs": -1}, "first_jobs is -1; it must not be negative"),
        ({"shift": "left"}, "shift is 'left'; it must be one of none, window, first_job"),
    ],
)
def test_impossible_windows_are_refused(window: dict[str, Any], problem: str) -> None:
    """The error names the argument, its value and its bound."""
    with pytest.raises(ValueError, match=problem):
        window_by_days(JOBS, **window)


submissions = st.lists(st.integers(-2, 8).map(lambda half: half * DAY / 2), max_size=10)


@given(submissions, st.integers(-1, 4))
def test_two_windows_share_the_jobs(times: list[float], day: int) -> None:
    """What lies before and what lies from a day on is together everything, once."""
    jobs = table(*times)
    before, after = window_by_days(jobs, last_day=day), window_by_days(jobs, day)
    assert [*before.job_id, *after.job_id] == jobs.job_id.tolist()
    assert all(time < day * DAY for time in before.submit_time)
    assert all(time >= day * DAY for time in after.submit_time)


def workload(count: int, processors: int = 3) -> JobTable:
    return JobTable.from_columns(
        submit_time=np.arange(count) // 2,
        processors=np.full(count, processors),
        run_time=np.arange(count) % 7 + 1.0,
        requested_time=np.arange(count) % 7 + 2.0,
        user=np.arange(count) % 5,
    )


def rng(seed: int = 1) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_half_is_copied_and_half_is_widened() -> None:
    """Number of jobs and load are as the procedure promises, within five standard errors."""
    jobs = workload(100_000)
    factor = 2.4
    scaled = scale_to(jobs, processors_from=10, processors_to=24, rng=rng())
    narrow = scaled.processors == 3
    # n (1 + f) / 2; a copied job becomes 2.4 on average, with a standard deviation of 0.49.
    assert len(scaled) == pytest.approx(100_000 * (1 + factor) / 2, abs=5 * 0.76 * 316)
    assert np.count_nonzero(~narrow) == pytest.approx(50_000, abs=5 * 158)
    assert set(scaled.processors[~narrow]) == {7}  # 7.2, rounded
    growth = scaled.resource_consumption.sum() / jobs.resource_consumption.sum()
    assert growth == pytest.approx((2.4 + 7 / 3) / 2, rel=0.01)


def test_whole_factor_copies_exactly() -> None:
    """With f = 4 every job becomes four of its kind or one of four times the width."""
    jobs = workload(50)
    scaled = scale_to(jobs, processors_from=8, processors_to=32, rng=rng())
    at = 0
    for row in range(len(jobs)):
        count = 4 if scaled.processors[at] == 3 else 1
        for copy in range(at, at + count):
            assert scaled.submit_time[copy] == jobs.submit_time[row]
            assert scaled.run_time[copy] == jobs.run_time[row]
            assert scaled.requested_time[copy] == jobs.requested_time[row]
            assert scaled.user[copy] == jobs.user[row]
            assert scaled.processors[copy] == (3 if count == 4 else 12)
        at += count
    assert at == len(scaled)


def test_same_size_changes_nothing() -> None:
    """With f = 1 a workload stays as it is."""
    jobs = workload(20)
    scaled = scale_to(jobs, processors_from=128, processors_to=128, rng=rng())
    for name in ("job_id", "submit_time", "processors", "requested_time", "run_time", "user"):
        assert getattr(scaled, name).tolist() == getattr(jobs, name).tolist()


def test_widths_are_capped_at_the_machine() -> None:
    """A factor above the ratio of the machines cannot make a job wider than the new one."""
    scaled = scale_to(
        workload(200, processors=100),
        processors_from=100,
        processors_to=1024,
        rng=rng(),
        factor=10.75,
    )
    assert set(scaled.processors) == {100, 1024}


def test_same_generator_same_workload() -> None:
    """The result depends on the generator alone, and an empty workload stays empty."""
    sizes: dict[str, Any] = {"processors_from": 4, "processors_to": 10}
    first, second = (scale_to(workload(99), rng=rng(5), **sizes) for _ in range(2))
    assert first.processors.tolist() == second.processors.tolist()
    assert len(scale_to(JobTable.empty(), rng=rng(), **sizes)) == 0


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"processors_from": 0, "processors_to": 5}, "processors_from is 0"),
        ({"processors_from": 8, "processors_to": 5}, "processors_to is 5; it must be at least"),
        ({"processors_from": 8, "processors_to": 9, "factor": 0.5}, "factor is 0.5; it must be"),
        ({"processors_from": 8, "processors_to": 9, "factor": np.nan}, "factor is nan"),
        (
            {"processors_from": 2, "processors_to": 9},
            "processors of job 1 is 3; it must be at most",
        ),
        ({"processors_from": 3, "processors_to": 9, "factor": 1e12}, "may be more than"),
    ],
)
def test_impossible_scalings_are_refused(arguments: dict[str, Any], problem: str) -> None:
    """The error names the argument, its value and its bound."""
    with pytest.raises(ValueError, match=problem):
        scale_to(workload(5), rng=rng(), **arguments)


@given(st.lists(st.integers(1, 6), max_size=15), st.integers(6, 40), st.integers(0, 99))
def test_every_job_comes_again_and_fits(widths: list[int], size: int, seed: int) -> None:
    """Every job stays at least once, at its time, and fits the new machine."""
    jobs = JobTable.from_columns(
        submit_time=np.arange(len(widths)), processors=widths, run_time=np.ones(len(widths))
    )
    scaled = scale_to(jobs, processors_from=6, processors_to=size, rng=rng(seed))
    assert sorted(set(scaled.submit_time)) == jobs.submit_time.tolist()
    assert (scaled.processors <= size).all()
    assert scaled.job_id.tolist() == list(range(1, len(scaled) + 1))


COLUMNS = {
    "submit_time": [0, 5],
    "processors": [1, 2],
    "run_time": [10, 20],
    "requested_time": [10, 30],
}


def test_a_checksum_sees_what_a_replay_sees() -> None:
    """Each column matters; job numbers and users do not. The bytes are the same everywhere."""
    jobs = JobTable.from_columns(**COLUMNS)
    checksum = jobs_sha256(jobs)
    assert checksum == "e6a5ef0f6c53fb1fde40919ae048cd39c024e19cceef025e8e8ea06d7bb209bc"
    assert jobs_sha256(JobTable.from_columns(**COLUMNS, job_id=[7, 9], user=[3, 4])) == checksum
    for column, value in (
        ("submit_time", [0, 6]),
        ("processors", [1, 1]),
        ("run_time", [10, 21]),
        ("requested_time", [10, 31]),
    ):
        assert jobs_sha256(JobTable.from_columns(**COLUMNS | {column: value})) != checksum
