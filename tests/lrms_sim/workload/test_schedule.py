import dataclasses
from typing import Any

import numpy as np
import pytest

from lrms_sim.machine.machine import simulate
from lrms_sim.workload.jobs import JobTable

JOBS = JobTable.from_columns(submit_time=[0, 1], processors=[2, 2], run_time=[10, 5])


def test_times_follow_from_start_and_end() -> None:
    """Wait is start minus submission, response end minus submission."""
    schedule = simulate(JOBS, 2)
    assert schedule.wait_time.tolist() == [0, 9]
    assert schedule.response_time.tolist() == [10, 14]
    assert len(schedule) == 2


@pytest.mark.parametrize(
    "column", ["start_time", "end_time", "submitted_to", "executed_on", "log_job_id"]
)
def test_every_column_has_one_row_for_each_job(column: str) -> None:
    """A column of another length is refused by name."""
    schedule = simulate(JOBS, 2)
    wrong: dict[str, Any] = {column: np.zeros(3)}
    with pytest.raises(ValueError, match=column):
        dataclasses.replace(schedule, **wrong)


def test_a_schedule_needs_a_machine() -> None:
    """Jobs that ran nowhere are no schedule."""
    with pytest.raises(ValueError, match="at least one machine"):
        dataclasses.replace(simulate(JOBS, 2), machines=())


def test_some_jobs_of_a_schedule_are_a_schedule() -> None:
    """Rows are taken from every column; the machines stay."""
    schedule = simulate(JOBS, 2)
    part = schedule.select(np.array([1]))
    assert part.start_time.tolist() == [10]
    assert part.end_time.tolist() == [15]
    assert part.jobs.processors.tolist() == [2]
    assert part.log_job_id.tolist() == [2]
    assert part.machines == schedule.machines
