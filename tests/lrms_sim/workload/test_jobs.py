import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lrms_sim.workload.jobs import JobTable, concatenate

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
