import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lrms_sim.jobs import JobTable, concatenate

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
