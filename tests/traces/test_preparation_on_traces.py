"""Recorded traces: what is read, prepared and cut is what the literature counts.

The numbers are those of Fölling, Grimme, Lepping and Papaspyrou 2009, Table 1, for the versions
of the logs that the Parallel Workloads Archive has now.
"""

import gzip
from pathlib import Path

import numpy as np
import pytest

from lrms_sim.workload.groups import user_groups
from lrms_sim.workload.jobs import window_by_days
from lrms_sim.workload.preparation import prepare
from lrms_sim.workload.swf import FIELD_NAMES, read_swf, write_swf
from tests.recorded import LOGS, PROCESSORS, recorded, whole_log

pytestmark = pytest.mark.traces

REPORTS = {
    "KTH": (28_489, 28_481, {"run-time-zero": 8, "overrun": 475}),
    "CTC": (
        77_222,
        77_199,
        {"run-time-zero": 17, "requested-time-missing": 6, "overrun": 7174},
    ),
    "SDSC05": (
        96_069,
        84_893,
        {"run-time-unknown": 11_024, "run-time-zero": 152, "overrun": 10_658},
    ),
    "SDSC00": (
        59_715,
        53_999,
        {
            "run-time-unknown": 5671,
            "run-time-zero": 10,
            "requested-time-missing": 35,
            "overrun": 4134,
        },
    ),
}


@pytest.mark.parametrize("site", LOGS)
def test_every_field_is_read_as_a_plain_reader_does(traces_folder: Path, site: str) -> None:
    """All 18 columns equal those that float() finds, to the last bit."""
    path = traces_folder / LOGS[site]
    log = read_swf(path)
    with gzip.open(path, "rt", encoding="latin-1") as file:
        rows = [line.split() for line in file if not line.startswith(";")]
    plain = np.array(rows, dtype=np.float64)
    for at, name in enumerate(FIELD_NAMES):
        assert np.array_equal(getattr(log, name), plain[:, at])


@pytest.mark.parametrize(
    ("site", "max_procs", "time_zone"),
    [
        ("KTH", 100, "Europe/Stockholm"),
        ("CTC", 338, "US/Eastern"),
        ("SDSC05", 1664, "US/Pacific"),
        ("SDSC00", 128, "US/Pacific"),
    ],
)
def test_headers_are_understood(
    traces_folder: Path, site: str, max_procs: int, time_zone: str
) -> None:
    """Machine size, time zone and start are found in the header."""
    header = read_swf(traces_folder / LOGS[site]).header
    assert header.max_procs == max_procs
    assert header.fields["TimeZoneString"] == time_zone
    assert header.time_zone in {3600, -18000, -28800}
    assert 800_000_000 < (header.unix_start_time or 0) < 1_100_000_000


@pytest.mark.parametrize("site", REPORTS)
def test_reports_count_every_treated_record(traces_folder: Path, site: str) -> None:
    """Records read, jobs prepared and the count of each reason are as found by other means."""
    records, jobs, reasons = REPORTS[site]
    report = prepare(read_swf(traces_folder / LOGS[site]), PROCESSORS[site]).report
    assert report.records_read == records
    assert report.jobs_prepared == jobs
    assert {entry.reason: entry.count for entry in report.entries} == reasons


@pytest.mark.parametrize(
    ("workload", "jobs"),
    [
        ("KTH-5", 11_775),
        ("CTC-5", 35_360),
        ("SDSC05-5", 28_185),
        ("KTH-6", 16_699),
        ("CTC-6", 41_839),
        ("SDSC05-6", 46_732),
        ("SDSC00-6", 16_316),
    ],
)
def test_windows_have_the_numbers_of_jobs(traces_folder: Path, workload: str, jobs: int) -> None:
    """The cuts at day 150 give the counts that are known for these versions of the logs."""
    assert len(recorded(traces_folder, workload)) == jobs


def test_window_from_day_150_starts_at_time_zero_on_demand(traces_folder: Path) -> None:
    """Day 150 of every log can become time 0, so that the logs stay in step."""
    jobs = whole_log(traces_folder, "KTH")
    plain = window_by_days(jobs, 150, first_jobs=100)
    shifted = window_by_days(jobs, 150, first_jobs=100, shift="window")
    assert plain.submit_time[0] - shifted.submit_time[0] == 150 * 86400
    assert shifted.submit_time[0] == 848


@pytest.mark.parametrize("site", LOGS)
def test_logs_survive_writing(traces_folder: Path, tmp_path: Path, site: str) -> None:
    """A log that is read, written and read again is the same, header included."""
    log = read_swf(traces_folder / LOGS[site])
    write_swf(tmp_path / "again.swf", log)
    again = read_swf(tmp_path / "again.swf")
    assert again.header == log.header
    for name in FIELD_NAMES:
        assert np.array_equal(getattr(again, name), getattr(log, name))


@pytest.mark.parametrize("site", LOGS)
def test_groups_add_up(traces_folder: Path, site: str) -> None:
    """A user's jobs share a group, and each group's users have shares within its borders."""
    jobs = whole_log(traces_folder, site)
    groups = user_groups(jobs)
    total = jobs.resource_consumption.sum()
    for user in np.unique(jobs.user):
        mine = jobs.user == user
        share = jobs.resource_consumption[mine].sum() / total
        expected = 1 + sum(share < border for border in (0.08, 0.02, 0.01, 0.001))
        assert set(groups[mine]) == {expected}
