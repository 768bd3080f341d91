import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lrms_sim.workload.jobs import JobTable
from lrms_sim.workload.windows import SECONDS_PER_DAY, window_by_days

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
