import csv
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from lrms_sim.malleable.jobs import UtilityJobs
from lrms_sim.malleable.machine import simulate
from lrms_sim.malleable.model import PaperModel
from lrms_sim.malleable.options import MachineOptions
from lrms_sim.malleable.policies import POLICIES
from lrms_sim.malleable.workload_files import (
    WorkloadError,
    read_workload,
    write_log,
    write_results,
    write_workload,
)
from tests.lrms_sim.malleable.utility_runs import workloads


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(jobs=workloads(8))
def test_a_workload_comes_back_to_the_last_bit(tmp_path: Path, jobs: UtilityJobs) -> None:
    """Every column is written and read."""
    path = tmp_path / "w.csv"
    write_workload(jobs, path)
    read = read_workload(path)
    for name in ("weight", "plateau", "zero", "floor", "shape", "processors_min"):
        assert np.array_equal(getattr(read, name), getattr(jobs, name))
    for name in ("job_id", "submit_time", "processors", "requested_time", "run_time"):
        assert np.array_equal(getattr(read.jobs, name), getattr(jobs.jobs, name))


def test_three_columns_are_enough(tmp_path: Path) -> None:
    """The rest is the paper's utility, and rows may come in any order."""
    path = tmp_path / "w.csv"
    path.write_text("submit_time,processors,run_time\n5,4,10\n0,2,3.5\n")
    jobs = read_workload(path)
    assert jobs.jobs.submit_time.tolist() == [0.0, 5.0]
    assert jobs.jobs.requested_time.tolist() == [3.5, 10.0]
    assert jobs.jobs.job_id.tolist() == [2, 1]
    assert (jobs.zero.tolist(), jobs.processors_min.tolist()) == ([2.0, 2.0], [1, 1])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is empty"),
        ("submit_time,processors\n", "w.csv:1: the column run_time is missing"),
        ("submit_time,processors,run_time,colour\n", "w.csv:1: 'colour' is no column"),
        ("submit_time,processors,run_time,run_time\n", "comes twice"),
        ("submit_time,processors,run_time\n1,2\n", "w.csv:2: 2 fields; 3 are expected"),
        ("submit_time,processors,run_time\n1,2,x\n", "w.csv:2: run_time is 'x'; a number"),
        ("submit_time,processors,run_time\n1,2,nan\n", "w.csv:2: run_time is nan"),
        ("submit_time,processors,run_time\n1,2.5,3\n", "processors is 2.5; a whole number"),
        ("submit_time,processors,run_time,shape\n1,2,3,wavy\n", "shape is 'wavy'; one of linear"),
        ("submit_time,processors,run_time,weight\n1,2,3,-1\n", "w.csv: weight of job 1"),
        ("submit_time,processors,run_time,zero\n1,2,3,0.5\n", "at least the plateau"),
        ("submit_time,processors,run_time\n1,0,3\n", "w.csv: processors of job 1"),
    ],
)
def test_a_file_that_is_no_workload_is_refused(tmp_path: Path, text: str, words: str) -> None:
    """File, line, column and bound are named."""
    path = tmp_path / "w.csv"
    path.write_text(text)
    with pytest.raises(WorkloadError, match=words):
        read_workload(path)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    """So is one that is no text."""
    with pytest.raises(WorkloadError, match="cannot be read: No such file"):
        read_workload(tmp_path / "none.csv")
    (tmp_path / "b.csv").write_bytes(b"submit_time\xff\n")
    with pytest.raises(WorkloadError, match="no CSV"):
        read_workload(tmp_path / "b.csv")


def test_results_and_log_say_the_same_as_the_run(tmp_path: Path) -> None:
    """Utilities, suspensions and held processor-seconds add up to the outcome's."""
    outcome = simulate(
        PaperModel(0.3).draw(400, 2),
        24,
        POLICIES["both-aggressive"],
        options=MachineOptions(step=1.0),
        horizon=400.0,
        log=True,
    )
    assert outcome.log is not None
    write_results(outcome, tmp_path / "r.csv")
    write_log(outcome.log, tmp_path / "l.csv", 400.0)
    with (tmp_path / "r.csv").open() as file:
        results = list(csv.DictReader(file))
    with (tmp_path / "l.csv").open() as file:
        stretches = list(csv.DictReader(file))
    (machine,) = outcome.machines
    assert sum(float(row["utility"]) for row in results) == pytest.approx(machine.utility)
    assert sum(int(row["suspensions"]) for row in results) == machine.suspensions > 0
    held = sum(
        int(row["processors"]) * (float(row["to"]) - float(row["from"])) for row in stretches
    )
    assert held == pytest.approx(machine.busy)
    assert {row["ended_by"] for row in stretches} >= {"end", "suspend", "resize"}
    assert {row["status"] for row in results} >= {"completed", "left"}
    assert [row["end_time"] == "" for row in results] == np.isnan(outcome.end).tolist()
