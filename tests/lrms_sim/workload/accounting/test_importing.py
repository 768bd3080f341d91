"""Accounting files of batch systems become logs, and every rule is counted."""

from datetime import timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from lrms_sim.workload.accounting.importing import import_lines
from lrms_sim.workload.accounting.records import AccountingError, Import, seconds_of
from lrms_sim.workload.preparation import prepare

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


def test_the_hour_that_comes_twice() -> None:
    """Berlin, 27 October 2024: 2:00 to 3:00 comes twice. Where its first time does not fit, it is the second."""
    lines = [
        SACCT[0],
        # From 2:50 to 2:10, 20 minutes; submitted at 2:55, started at 2:05, ended at 3:05: 10 and 60 minutes.
        "1|a|g|q|2024-10-27T01:30:00|2024-10-27T02:50:00|2024-10-27T02:10:00|02:00:00|8|8|COMPLETED",
        "2|a|g|q|2024-10-27T02:55:00|2024-10-27T02:05:00|2024-10-27T03:05:00|02:00:00|8|8|COMPLETED",
        # Cancelled in the queue, submitted at 2:40 and ended at 2:20.
        "3|a|g|q|2024-10-27T02:40:00|None|2024-10-27T02:20:00|02:00:00|0|8|CANCELLED",
        # A day later the same clock times are disorder.
        "4|a|g|q|2024-10-28T01:30:00|2024-10-28T02:50:00|2024-10-28T02:10:00|02:00:00|8|8|COMPLETED",
    ]
    found = read("sacct", lines, zone=ZoneInfo("Europe/Berlin"))
    assert found.log.submit_time.tolist() == [0, 4200, 5100]
    assert found.log.wait_time.tolist() == [4800, -1, 600]
    assert found.log.run_time.tolist() == [1200, -1, 3600]
    assert found.counts == {"disorder": 1, "twice": 2 + 1, "never": 1}
    assert read("sacct", lines).counts["disorder"] == 4  # in UTC no hour comes twice


def test_pbs() -> None:
    """Ends of jobs are read, whichever way processors and limits are written."""
    found = read("pbs", PBS)
    assert found.counts == {"other": 1}
    assert found.log.submit_time.tolist() == [0, 5]
    assert found.log.run_time.tolist() == [60, 10]
    assert found.log.processors_allocated.tolist() == [6, 9]
    assert found.log.requested_time.tolist() == [600, 600]
    assert found.log.status.tolist() == [1, 0]


ENDED = (
    "11/14/2023 23:00:00;E;{job};user=zoe group=g jobname=j queue=q ctime=1000 qtime=1000 etime=1000 "
    "start=1100 {held} end=4700 Exit_status=0"
)


@pytest.mark.parametrize(
    ("held", "width"),
    [
        ("exec_host=n1/0+n1/1+n2/0+n2/1 Resource_List.ncpus=1", 4),
        ("exec_host=n1/0-7+n2/0-7 Resource_List.procs=16 Resource_List.nodes=1", 16),
        ("exec_host=n1/0,2-4 Resource_List.ncpus=1", 4),
        ("exec_host=n1/0*8+n2/1*4 Resource_List.ncpus=1", 12),
        ("exec_vnode=(n1:ncpus=8:mem=2gb+n2[1]:ncpus=4)+(n3:ncpus=1) exec_host=n1/0+n2/0+n3/0", 13),
        ("exec_host=n1/0*0 resources_used.ncpus=6 Resource_List.ncpus=1", 6),
        ("total_execution_slots=10 Resource_List.nodes=1", 10),
        ("exec_host=login Resource_List.ncpus=1 Resource_List.procs=16 Resource_List.nodes=1", 16),
        ("Resource_List.ncpus=1 Resource_List.nodes=2:ppn=4:gpus=1+1", 9),
        ("Resource_List.select=2:ncpus=4:mpiprocs=4+1:ncpus=2", 10),
        ("Resource_List.mppwidth=24", 24),
        ("Resource_List.nodes=n1.cluster:ppn=8+n2:ppn=4#excl", 12),
    ],
)
def test_pbs_widths(held: str, width: int) -> None:
    """What a job held counts, then what it was given, then the widest that it asked for."""
    found = read("pbs", [ENDED.format(job="1.srv", held=held)], unreadable="error")
    assert found.log.processors_allocated.tolist() == [width]


@pytest.mark.parametrize(
    ("heads", "cells", "width"),
    [
        ("AllocCPUS|NCPUS|ReqCPUS", "8|8|4", 8),
        ("AllocCPUS|AllocTRES|ReqCPUS", "0|billing=6,cpu=6,mem=8G|4", 6),
        ("ReqTRES", "cpu=5,node=1", 5),
        ("AllocTRES|ReqTRES", "|billing=3,cpu=2", 2),
    ],
)
def test_sacct_widths(heads: str, cells: str, width: int) -> None:
    """What a job held counts, then what it asked for, whichever columns say it."""
    lines = [
        f"JobID|Submit|Start|End|State|{heads}",
        f"1|2024-01-01T00:00:00|2024-01-01T00:00:10|2024-01-01T01:00:00|COMPLETED|{cells}",
    ]
    assert read("sacct", lines).log.processors_requested.tolist() == [width]


ODD = [
    "",
    "   ",
    SACCT[1].replace("zoe", "zo|e"),
    SACCT[1].replace("11|zoe", "11|zo"),
    "second half of a name",
    SACCT[1].replace("2024-01-01T00:00:10", "Unknown"),
    SACCT[1].replace("8|8", "0|"),
    SACCT[1].replace("8|8", "99999999999|8"),
    SACCT[1].replace("11|zoe", "15|zo\ufffd"),
    SACCT[4].replace("2024-01-01T00:03:00", "None", 1).replace("0|16", "0|0"),
]


def test_one_odd_line_ends_nothing() -> None:
    """Each is left out and counted by its rule, the first with its line; the others are read."""
    found = read("sacct", [*SACCT, *ODD, SACCT[0], SACCT[1]])
    assert found.log.submit_time.tolist() == [0, 10, 10, 120, 300]
    assert found.counts == {
        "step": 1, "open": 1, "repeated": 2, "columns": 2, "moment": 1, "width": 1, "cancelled": 1,
        "beyond": 1, "never": 1, "request": 2, "bytes": 1,
    }  # fmt: skip
    assert {rule: example.line for rule, example in found.examples.items()} == {
        "columns": 10, "moment": 13, "width": 14
    }  # fmt: skip
    assert found.examples["columns"].problem == "12 columns, the header has 11"
    with pytest.raises(AccountingError, match=r"jobs\.txt:10: 12 columns, the header has 11"):
        read("sacct", [*SACCT, *ODD], unreadable="error")


def test_a_job_counts_once() -> None:
    """Where two outputs overlap; a job that was started anew under its number is two runs."""
    again = SACCT[1].replace("T00:01:00", "T02:00:00").replace("T01:01:00", "T03:00:00")
    found = read("sacct", [*SACCT[:2], *SACCT[:2], again])
    assert found.counts == {"repeated": 1}
    assert found.log.wait_time.tolist() == [50, 7190]
    assert read("pbs", [*PBS, *PBS]).counts == {"repeated": 2, "other": 2}
    other = ENDED.format(job="2.srv", held="Resource_List.ncpus=1")
    assert (
        len(read("pbs", [ENDED.format(job="1.srv", held="Resource_List.ncpus=1"), other]).log) == 2
    )


def test_ways_of_sacct() -> None:
    """Another separator, names in other letters, raw limits, times in seconds, a line of names that is lacking."""
    lines = [line.replace("|", ";") for line in SACCT]
    assert read("sacct", lines).log.run_time.tolist() == [1800, 3600, -1, 60]
    raw = [
        "jobidraw|submit|start|end|state|timelimitraw|alloccpus",
        "7|100|110.5|120.25|COMPLETED|3|4",
    ]
    log = read("sacct", raw).log
    assert (log.wait_time[0], log.run_time[0], log.requested_time[0]) == (10.5, 9.75, 180)
    with pytest.raises(AccountingError, match=r"no column End; .* say the same --format here"):
        read("sacct", SACCT[1:])
    found = read("sacct", SACCT[1:], columns=SACCT[0].split("|"))
    assert found.log.processors_allocated.tolist() == [4, 8, -1, 2]


def test_arrays_and_odd_records_of_pbs() -> None:
    """The record of a whole array is none of a job; times may have decimals; what is no record is left out."""
    whole = (
        "11/14/2023 23:00:00;E;77[].srv;user=a queue=q ctime=1000 qtime=1000 end=4700 Exit_status=0"
    )
    task = ENDED.format(job="77[1].srv", held="Resource_List.ncpus=2").replace("=1100", "=1100.5")
    found = read(
        "pbs", [whole, task, "11/14/2023 23:00:00;E", "", task.replace("start=1100.5", "")]
    )
    assert found.counts == {"array": 1, "unreadable": 1, "moment": 1, "request": 1}
    assert found.log.wait_time.tolist() == [100.5]


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
        read(kind, lines, unreadable="error")


def test_spans() -> None:
    """Slurm's and PBS's ways of writing a time limit."""
    spans = {"01:00:00": 3600, "1-00:00:00": 86400, "2-12:30": 217800, "05:30": 330, "x": None}
    spans["3-12"] = 302400
    assert {text: seconds_of(text) for text in spans} == spans


@pytest.mark.parametrize("system", ["sacct", "gridengine", "cobalt", "oar"])
def test_blank_lines_before_the_first_count_as_lines(system: str) -> None:
    """What cannot be read is named by its line in the file, also where the file begins with blank lines."""
    heading = {"sacct": ["JobID|Submit|Start|End|State|NCPUS"], "oar": ["job_id,state"]}
    lines = ["", " ", *heading.get(system, []), "nonsense"]
    with pytest.raises(AccountingError, match=rf"log:{len(lines)}: "):
        import_lines(system, lines, name="log", unreadable="error")
