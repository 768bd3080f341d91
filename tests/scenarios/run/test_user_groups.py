"""The user groups of each site, beside plain sums."""

import numpy as np
import pytest

from lrms_sim.machine.machine import simulate
from lrms_sim.scheduling.disciplines import Easy, Fcfs
from lrms_sim.workload.jobs import JobTable
from lrms_sim.workload.schedule import Schedule
from scenarios.run.user_groups import group_results


def _plain(schedule: Schedule, mine: list[int]) -> float:
    jobs = schedule.jobs
    work = [float(jobs.processors[row] * jobs.run_time[row]) for row in mine]
    response = [float(schedule.end_time[row] - jobs.submit_time[row]) for row in mine]
    return sum(w * r for w, r in zip(work, response, strict=True)) / sum(work)


def test_groups_have_the_awrt_of_their_own_jobs() -> None:
    """A group without jobs has no row; an improvement is what the AWRT fell by."""
    jobs = JobTable.from_columns(
        submit_time=[0, 1, 2, 3, 4],
        processors=[4, 2, 3, 1, 4],
        run_time=[10, 20, 5, 7, 3],
    )
    alone, federated = (simulate(jobs, 4, one) for one in (Fcfs(), Easy()))
    groups = np.array([1, 5, 5, 1, 2], np.int8)
    found = group_results(federated, alone, groups)
    assert [(one.group, one.jobs) for one in found] == [(1, 2), (2, 1), (5, 2)]
    for one in found:
        mine = [row for row, group in enumerate(groups) if group == one.group]
        assert one.awrt_alone == pytest.approx(_plain(alone, mine))
        assert one.awrt == pytest.approx(_plain(federated, mine))
        assert one.awrt_improvement == pytest.approx(1 - one.awrt / one.awrt_alone)
