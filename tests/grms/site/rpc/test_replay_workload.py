"""Blocks of a workload: what is taken, and what is said of one that is none."""

import math
from typing import Any

import pytest

from grms.site.rpc import replay_workload
from grms.site.rpc.replay_workload import ReplayWorkload
from grms.v1 import replay_pb2

SITE = 4


def block(**change: Any) -> replay_pb2.LoadRequest:
    """Returns a workload of five rows in one block, with something changed."""
    columns = {
        "replay_id": "r",
        "jobs_total": 5,
        "submit_time_s": [0, 1, 1, 2, 50],
        "processors": [3, 2, 4, 1, 4],
        "requested_time_s": [10, 9, 3, 30, 2],
        "run_time_s": [10, 5, 3, 20, 1],
    }
    return replay_pb2.LoadRequest(**{**columns, **change})


def told(*blocks: replay_pb2.LoadRequest) -> str:
    """Returns what is said of a workload."""
    workload = ReplayWorkload()
    for each in blocks:
        problem = workload.take(each)
        if problem:
            return problem
    return workload.problem(SITE)


def test_blocks_follow_one_another() -> None:
    """The first names the replay and the rows it has; the others may be silent about both."""
    workload = ReplayWorkload()
    second = block(replay_id="", jobs_total=0, submit_time_s=[50] * 5, user_group=[1, 2, 3, 4, 5])
    first = block(jobs_total=10, user_group=[1] * 5)
    assert [workload.take(each) for each in (first, second)] == ["", ""]
    assert workload.problem(SITE) == ""
    assert (workload.replay_id, workload.total) == ("r", 10)
    assert workload.submit_time == [0, 1, 1, 2, 50] + [50] * 5
    assert workload.processors == [3, 2, 4, 1, 4] * 2
    assert workload.requested_time == [10, 9, 3, 30, 2] * 2
    assert workload.run_time == [10, 5, 3, 20, 1] * 2
    assert workload.user_group == [1] * 5 + [1, 2, 3, 4, 5]


def test_a_workload_without_jobs_is_one() -> None:
    """It has a name, and no rows."""
    columns = ("submit_time_s", "processors", "requested_time_s", "run_time_s")
    assert told(block(jobs_total=0, **{name: [] for name in columns})) == ""


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"replay_id": ""}, "the first block has no replay_id"),
        ({"jobs_total": 9}, "5 rows came; jobs_total is 9"),
        ({"jobs_total": 4}, "more rows than jobs_total, 4"),
        ({"processors": [1, 2]}, "the columns of a block have different lengths"),
        ({"processors": [5, 1, 1, 1, 1]}, "row 0: processors is 5; this site has 4"),
        ({"processors": [1, 1, 1, 1, 0]}, "row 4: processors is 0; this site has 4"),
        (
            {"submit_time_s": [1, 0, 1, 1, 1]},
            "row 1: submit_time_s is 0.0; rows are in order of arrival",
        ),
        (
            {"submit_time_s": [0, 1, 1, 2, math.inf]},
            "row 4: submit_time_s is inf; rows are in order of arrival",
        ),
        (
            {"run_time_s": [11, 5, 3, 20, 1]},
            "row 0: run_time_s is 11.0, requested_time_s 10.0; 0 < run ≤ request",
        ),
        (
            {"run_time_s": [math.nan] * 5},
            "row 0: run_time_s is nan, requested_time_s 10.0; 0 < run ≤ request",
        ),
        (
            {"run_time_s": [10, 0, 3, 20, 1]},
            "row 1: run_time_s is 0.0, requested_time_s 9.0; 0 < run ≤ request",
        ),
        (
            {"requested_time_s": [10, 9, 3, math.inf, 2]},
            "row 3: run_time_s is 20.0, requested_time_s inf; 0 < run ≤ request",
        ),
        ({"user_group": [1, 2]}, "2 rows have a user_group; all or none must"),
        ({"user_group": [1, 2, 6, 1, 1]}, "row 2: user_group is 6; it must be from 1 to 5"),
        ({"user_group": [0] * 5}, "row 0: user_group is 0; it must be from 1 to 5"),
    ],
)
def test_what_is_no_workload_is_told(change: dict[str, Any], text: str) -> None:
    """With the row, its value and what it must be."""
    assert told(block(**change)) == text


def test_rows_have_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the first block says, no more are kept than the most of one workload."""
    monkeypatch.setattr(replay_workload, "ROWS_MAX", 4)
    assert told(block()) == "more rows than jobs_total, 5"
