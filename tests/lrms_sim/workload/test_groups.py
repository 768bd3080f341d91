import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lrms_sim.workload.groups import GROUPS, user_groups
from lrms_sim.workload.jobs import JobTable


def table(consumption: dict[int, float]) -> JobTable:
    """Returns one job for each user, of that many processor-seconds."""
    return JobTable.from_columns(
        submit_time=np.zeros(len(consumption)),
        processors=np.ones(len(consumption), np.int64),
        run_time=list(consumption.values()),
        user=list(consumption),
    )


@pytest.mark.parametrize(
    ("share", "group"),
    [
        (9_000, 1),
        (8_001, 1),
        (8_000, 2),
        (2_000, 2),
        (1_999, 3),
        (1_000, 3),
        (999, 4),
        (100, 4),
        (99, 5),
        (1, 5),
    ],
)
def test_borders_of_the_groups(share: int, group: int) -> None:
    """Shares of exactly 8, 2, 1 and 0.1 % are in groups 2, 2, 3 and 4 (shares in 1/100000)."""
    groups = user_groups(table({1: share, 2: 100_000 - share}))
    assert groups.dtype == np.int8
    assert groups[0] == group
    assert groups[1] == 1


def test_users_are_judged_by_all_their_jobs() -> None:
    """Processors count as much as time, all jobs of a user add up and share his group."""
    jobs = JobTable.from_columns(
        submit_time=[0, 1, 2, 3],
        processors=[1, 10, 1, 1],
        run_time=[50.0, 1.0, 930.0, 10.0],
        user=[7, 7, 8, -1],
    )
    # 60, 930 and 10 of 1000 processor-seconds.
    assert user_groups(jobs).tolist() == [2, 2, 1, 3]


def test_unknown_users_are_one_user() -> None:
    """Jobs of user -1 count together."""
    jobs = JobTable.from_columns(submit_time=[0, 1], processors=[1, 1], run_time=[5.0, 5.0])
    assert user_groups(jobs).tolist() == [1, 1]


def test_workload_without_jobs_has_no_groups() -> None:
    """An empty workload gives an empty result."""
    assert user_groups(JobTable.empty()).shape == (0,)


@given(st.lists(st.tuples(st.integers(1, 8), st.integers(1, 100_000)), min_size=1, max_size=20))
def test_groups_follow_consumption(rows: list[tuple[int, int]]) -> None:
    """Jobs of one user share a group, and who consumes more is in no lighter group."""
    jobs = JobTable.from_columns(
        submit_time=np.zeros(len(rows)),
        processors=np.ones(len(rows), np.int64),
        run_time=[run_time for _, run_time in rows],
        user=[user for user, _ in rows],
    )
    groups = user_groups(jobs)
    assert set(groups.tolist()) <= set(GROUPS)
    totals: dict[int, float] = {}
    group_of: dict[int, int] = {}
    for user, run_time, group in zip(jobs.user, jobs.run_time, groups, strict=True):
        totals[int(user)] = totals.get(int(user), 0) + run_time
        assert group_of.setdefault(int(user), int(group)) == group
    ranking = sorted(totals, key=totals.__getitem__, reverse=True)
    assert [group_of[user] for user in ranking] == sorted(group_of.values())
