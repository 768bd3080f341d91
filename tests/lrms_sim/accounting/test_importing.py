"""Accounting files of batch systems become logs, and every rule is counted."""

from datetime import timedelta, timezone
from typing import Any

import numpy as np
import pytest

from lrms_sim.accounting.importing import import_lines
from lrms_sim.accounting.records import AccountingError, Import, seconds_of
from lrms_sim.preparation import prepare

SACCT = """JobID|User|Group|Partition|Submit|Start|End|Timelimit|AllocCPUS|ReqCPUS|State
11|zoe|phys|long|2024-01-01T00:00:10|2024-01-01T00:01:00|2024-01-01T01:01:00|1-02:00:00|8|8|COMPLETED
11.batch||phys||2024-01-01T00:01:00|2024-01-01T00:01:00|2024-01-01T01:01:00||8|8|COMPLETED
10|ann|phys|short|2024-01-01T00:00:00|2024-01-01T00:00:00|2024-01-01T00:30:00|00:30:00|4|4|TIMEOUT
12_3|zoe|phys|long|2024-01-01T00:02:00|2024-01-01T00:03:00|2024-01-01T00:03:00|UNLIMITED|0|16|CANCELLED by 1001
13|ann|phys|long|2024-01-01T00:04:00|Unknown|Unknown|01:00:00|0|2|PENDING
14|bob|bio|long|2024-01-01T00:05:00|2024-01-01T00:06:00|2024-01-01T00:07:00|Partition_Limit|2|2|FAILED
""".splitlines()

PBS = """01/01/2024 00:00:00;Q;1.srv;queue=batch
01/01/2024 01:00:00;E;1.srv;user=zoe group=phys queue=batch ctime=990 qtime=1000 start=1010 end=1070 Resource_List.ncpus=6 Resource_List.walltime=00:10:00 Exit_status=0
01/01/2024 01:00:00;E;2.srv;user=ann group=phys queue=batch ctime=1005 qtime=1005 start=1010 end=1020 Resource_List.nodes=2:ppn=4+1 Resource_List.walltime=600 Exit_status=271
""".splitlines()


def read(kind: str, lines: list[str], **options: Any) -> Import:
    """Returns what a file says."""
    return import_lines(kind, lines, name="jobs.txt", **options)


def test_sacct() -> None:
    """Jobs are sorted by submission, names become numbers, steps and open jobs are left out."""
    found = read("sacct", SACCT)
    log = found.log
    assert found.counts == {"step": 1, "open": 1, "never": 1, "request": 2}
    assert log.submit_time.tolist() == [0, 10, 120, 300]
    assert log.wait_time.tolist() == [0, 50, -1, 60]
    assert log.run_time.tolist() == [1800, 3600, -1, 60]
    assert log.processors_allocated.tolist() == [4, 8, -1, 2]
    assert log.processors_requested.tolist() == [4, 8, 16, 2]
    assert log.requested_time.tolist() == [1800, 93600, -1, -1]
    assert log.status.tolist() == [0, 1, 5, 0]
    assert log.user.tolist() == [1, 2, 2, 3]
    assert log.header.fields["UnixStartTime"] == "1704067200"
    assert len(prepare(log, 64).jobs) == 2


def test_the_zone_of_the_site() -> None:
    """Times without a zone are the site's."""
    log = read("sacct", SACCT, zone=timezone(timedelta(hours=1))).log
    assert log.header.fields["UnixStartTime"] == "1704063600"


def test_pbs() -> None:
    """Ends of jobs are read, whichever way processors and limits are written."""
    found = read("pbs", PBS)
    assert found.counts == {"other": 1}
    assert found.log.submit_time.tolist() == [0, 5]
    assert found.log.run_time.tolist() == [60, 10]
    assert found.log.processors_allocated.tolist() == [6, 9]
    assert found.log.requested_time.tolist() == [600, 600]
    assert found.log.status.tolist() == [1, 0]


def test_times_out_of_order() -> None:
    """Such a job is left out and counted; the others are read."""
    late = [line.replace("T00:00:10", "T09:00:10") for line in SACCT]
    found = read("sacct", late)
    assert found.counts == {"step": 1, "open": 1, "disorder": 1, "never": 1, "request": 2}
    assert found.log.submit_time.tolist() == [0, 120, 300]
    backward = [line.replace("start=1010 end=1070", "start=1080 end=1070") for line in PBS]
    found = read("pbs", backward)
    assert found.counts == {"other": 1, "disorder": 1}
    assert found.log.processors_requested.tolist() == [9]


def test_anonymous() -> None:
    """Nothing says who was first or when the log began; who is the same stays the same."""
    logs = [read("sacct", SACCT, rng=np.random.default_rng(seed)).log for seed in range(8)]
    users = {tuple(log.user.tolist()) for log in logs}
    assert len(users) > 2
    assert all(one[1] == one[2] and sorted({*one}) == [1, 2, 3] for one in users)
    assert all("UnixStartTime" not in log.header.fields for log in logs)


@pytest.mark.parametrize(
    ("kind", "lines", "text"),
    [
        ("sacct", ["JobID|User"], r"jobs.txt:1: no column End; write the file with sacct"),
        ("sacct", [*SACCT[:1], "1|2"], "jobs.txt:2: 2 columns, the header has 11"),
        ("sacct", [SACCT[0], SACCT[1].replace("8|8", "0|0")], "neither AllocCPUS nor ReqCPUS"),
        ("sacct", [SACCT[0], SACCT[1].replace("2024-01-01T00:00:10", "soon")], "Submit is 'soon'"),
        ("pbs", ["hello"], "jobs.txt:1: no PBS accounting record"),
        ("pbs", [PBS[1].replace("start=1010", "")], "start is ''; a Unix time is expected"),
        ("pbs", [PBS[1].replace("ncpus=6", "ncpus=x")], "how many processors the job had"),
    ],
)
def test_what_cannot_be_read(kind: str, lines: list[str], text: str) -> None:
    """The error has file, line and what is expected."""
    with pytest.raises(AccountingError, match=text):
        read(kind, lines)


def test_spans() -> None:
    """Slurm's and PBS's ways of writing a time limit."""
    spans = {"01:00:00": 3600, "1-00:00:00": 86400, "2-12:30": 217800, "05:30": 330, "x": None}
    assert {text: seconds_of(text) for text in spans} == spans
