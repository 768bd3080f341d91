from pathlib import Path

import numpy as np
import pytest

from grms.learning.queueing.options import WorkloadOptions
from grms.learning.queueing.workloads import WorkloadError, read_workload, read_workloads, split
from lrms_sim.workload.groups import user_groups
from tests.tuning_cases import HEADER, busy_jobs, busy_log


def test_a_log_becomes_what_is_learned_on_and_what_is_unseen(tmp_path: Path) -> None:
    """Days for each; the groups of each part are its own; the calendar is the header's."""
    path = busy_log(tmp_path / "busy.swf")
    workload = read_workload(path, WorkloadOptions(training=(0, 1)))
    assert workload.name == "busy"
    assert workload.unseen is not None
    training, unseen = workload.training.trial, workload.unseen.trial
    assert len(training.jobs) + len(unseen.jobs) == 300
    assert training.jobs.submit_time.max() < 86400 <= unseen.jobs.submit_time.min()
    for trial in (training, unseen):
        assert trial.processors == 16
        assert trial.groups.tolist() == user_groups(trial.jobs).tolist()
    assert workload.training.calendar is not None
    assert workload.warnings == ()
    assert workload.provenance["jobs"] == len(training.jobs)


def test_a_number_of_jobs_is_a_training_too(tmp_path: Path) -> None:
    """The first so many; all others are unseen, none is in both."""
    workload = read_workload(busy_log(tmp_path / "a.swf"), WorkloadOptions(first_jobs=100))
    assert workload.unseen is not None
    assert len(workload.training.trial.jobs) == 100
    assert len(workload.unseen.trial.jobs) == 200
    both = np.intersect1d(workload.training.trial.jobs.job_id, workload.unseen.trial.jobs.job_id)
    assert len(both) == 0


def test_without_days_nothing_is_unseen_and_that_is_said(tmp_path: Path) -> None:
    """A header without a time zone is said, too; it matters to some criteria only."""
    path = busy_log(tmp_path / "a.swf", header="; MaxProcs: 16\n")
    workload = read_workload(path, WorkloadOptions())
    assert workload.unseen is None
    assert workload.training.calendar is None
    assert "UnixStartTime" in workload.warnings[0]
    assert "no unseen jobs" in workload.warnings[1]


def test_a_larger_machine(tmp_path: Path) -> None:
    """Scaled before it is cut, as the papers did it; the seed decides."""
    path = busy_log(tmp_path / "a.swf")
    one, same, other = (
        read_workload(path, WorkloadOptions(scale_to=64, scale_seed=seed)) for seed in (1, 1, 2)
    )
    assert one.training.trial.processors == 64
    assert one.provenance["jobs_sha256"] == same.provenance["jobs_sha256"]
    assert one.provenance["jobs_sha256"] != other.provenance["jobs_sha256"]
    assert len(one.training.trial.jobs) > 600


@pytest.mark.parametrize(
    ("header", "options", "complaint"),
    [
        ("", WorkloadOptions(), "how large the machine is; say it with --processors"),
        (HEADER, WorkloadOptions(training=(90, 100)), "no job is left to tune on"),
        (HEADER, WorkloadOptions(training=(0, 1), unseen=(0.5, 2)), "share jobs with those"),
        (HEADER, WorkloadOptions(scale_to=8), "processors_to is 8"),
        (HEADER, WorkloadOptions(theta=(0, 0, 0, 0, 0)), "theta is 0 for every group"),
    ],
)
def test_what_nothing_can_be_tuned_on_is_named(
    tmp_path: Path, header: str, options: WorkloadOptions, complaint: str
) -> None:
    """The file, what is wrong, and what to do."""
    path = busy_log(tmp_path / "a.swf", header=header)
    with pytest.raises(WorkloadError, match=complaint) as caught:
        read_workload(path, options)
    assert str(caught.value).startswith(str(path))


def test_logs_that_are_none(tmp_path: Path) -> None:
    """No log, text that is no log, a log without users."""
    with pytest.raises(WorkloadError, match="at least one log"):
        read_workloads([], WorkloadOptions())
    path = tmp_path / "a.swf"
    path.write_text("hello\n")
    with pytest.raises(WorkloadError, match=r"a\.swf"):
        read_workload(path, WorkloadOptions())
    path.write_text("; MaxProcs: 4\n1 0 -1 10 2 -1 -1 2 20 -1 1 -1 1 -1 1 -1 -1 -1\n")
    with pytest.raises(WorkloadError, match="which user any of its jobs belongs to"):
        read_workload(path, WorkloadOptions())


def test_the_rest_is_unseen_also_where_jobs_come_at_one_instant() -> None:
    """A cut between two jobs of one second leaves each on its side."""
    jobs = busy_jobs()
    same = type(jobs).from_columns(
        submit_time=np.zeros(10), processors=np.ones(10), run_time=np.ones(10), user=np.arange(10)
    )
    training, unseen = split(same, WorkloadOptions(first_jobs=4))
    assert training.job_id.tolist() + unseen.job_id.tolist() == same.job_id.tolist()
