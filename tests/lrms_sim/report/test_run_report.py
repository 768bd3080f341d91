import json
import math

import numpy as np
import pytest

import lrms_sim.cli.main  # noqa: F401  # its commands say which models they print by
from lrms_sim.machine.machine import simulate
from lrms_sim.report.run_report import (
    RunReport,
    describe_log,
    print_log,
    print_run_json,
    print_tables,
)
from lrms_sim.scheduling.disciplines import Fcfs
from lrms_sim.workload.jobs import JobTable
from lrms_sim.workload.preparation import prepare
from lrms_sim.workload.preparation_report import PreparationEntry, PreparationReport
from lrms_sim.workload.swf_log import SwfHeader, SwfLog


def report_of(jobs: JobTable, *, origin: float = 0.0, name: str = "machine") -> RunReport:
    """Returns the report of some jobs on 1,024 processors."""
    entries = (
        PreparationEntry("too-wide", "wider than the machine (1024)", 1234, "dropped"),
        PreparationEntry("overrun", "run time above request, killed", 5, "altered"),
    )
    return RunReport(
        schedule=simulate(jobs, 1024, Fcfs(), name=name),
        discipline="fcfs",
        preparation=PreparationReport("log", len(jobs) + 1234, len(jobs), entries),
        origin=origin,
        processors_from_header=False,
    )


JOBS = JobTable.from_columns(
    submit_time=[100, 110, 120], processors=[1000, 1000, 10], run_time=[1e5, 2e5, 3], user=[1, 2, 3]
)


@pytest.fixture(autouse=True)
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes the terminal 80 columns wide."""
    monkeypatch.setenv("COLUMNS", "80")


def test_groups_share_the_jobs() -> None:
    """Each job is in one group, and a group's AWRT is that of its jobs."""
    report = report_of(JOBS)
    assert [(group, jobs) for group, jobs, _ in report.groups] == [
        (1, 2),
        (2, 0),
        (3, 0),
        (4, 0),
        (5, 1),
    ]
    response = report.schedule.response_time
    assert report.groups[0][2] == (1e8 * response[0] + 2e8 * response[1]) / 3e8
    assert report.groups[4][2] == response[2]
    assert math.isnan(report.groups[1][2])


def test_tables_by_hand(capsys: pytest.CaptureFixture[str]) -> None:
    """Long times are also told in words, and every rule of the preparation has its line."""
    print_tables(report_of(JOBS, origin=100.0), written=["a.csv"])
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 80
    words = " ".join(out.split())
    assert "machine, 1,024 processors queue discipline fcfs jobs 3 AWRT" in words
    assert "median wait time 99,980.0000 s 1 d 3 h" in words
    assert "makespan 300,000 s from the first submission" in words
    assert "1,237 records read, 1,234 dropped, 3 jobs prepared" in words
    assert "wider than the machine (1024) 1,234 dropped" in words
    assert "run time above request, killed 5 altered" in words
    assert words.endswith("Written to a.csv")


def test_names_are_not_markup(capsys: pytest.CaptureFixture[str]) -> None:
    """Brackets in a machine's or a file's name are printed as they are."""
    print_tables(report_of(JOBS, name="[red]x[/]"), written=["[bold].csv"])
    out = capsys.readouterr().out
    assert "[red]x[/], 1,024" in out
    assert "[bold].csv" in out


def test_json_has_no_nan(capsys: pytest.CaptureFixture[str]) -> None:
    """What has no value is null, so that strict readers of JSON accept it."""
    print_run_json(report_of(JobTable.empty()))
    out = capsys.readouterr().out
    values = json.loads(out, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert values["awrt_s"] is None
    assert values["jobs_executed"] == 0
    assert values["preparation"]["entries"][0]["reason"] == "too-wide"


def log_of(header: dict[str, object], count: int = 3) -> SwfLog:
    """Returns a log of jobs a day apart, each of 86,400 s on 2 processors."""
    return SwfLog.from_columns(
        {
            "submit_time": np.arange(count) * 86400.0,
            "run_time": np.full(count, 86400.0),
            "requested_time": np.full(count, 90000.0),
            "processors_allocated": np.full(count, 2),
            "user": np.arange(count) - 1,
        },
        SwfHeader.from_fields(header),
    )


def test_description_of_a_log() -> None:
    """Load is work over size and span; users without a number are not counted."""
    log = log_of({"Computer": "SP2", "Installation": "KTH", "UnixStartTime": 86400})
    found = describe_log(log, prepare(log, 4), 4)
    assert (found.computer, found.installation) == ("SP2", "KTH")
    assert found.start == "1970-01-02T00:00:00+00:00"
    assert (found.records, found.jobs, found.users, found.processors_max) == (3, 3, 2, 2)
    assert found.span_days == 2.0
    assert found.load == 3 * 2 / (4 * 2)
    assert found.run_time_median_s == 86400.0


@pytest.mark.parametrize("start", [10**17, -(10**17)])
def test_start_beyond_the_calendar_is_not_said(start: int) -> None:
    """A start time that no calendar holds is left out, not an error."""
    log = log_of({"UnixStartTime": start})
    assert describe_log(log, prepare(log, 4), 4).start is None


def test_log_that_says_little(capsys: pytest.CaptureFixture[str]) -> None:
    """A header without machine and start is said to be so; one job has no span and no load."""
    log = log_of({}, count=1)
    prepared = prepare(log, 4)
    description = describe_log(log, prepared, 4)
    print_log(description, prepared.report, as_json=False)
    words = " ".join(capsys.readouterr().out.split())
    assert "does not say whose log this is. The header does not say when time 0 is." in words
    assert "load - of the machine" in words
    print_log(description, prepared.report, as_json=True)
    assert json.loads(capsys.readouterr().out)["load"] is None
