"""HTCondor's event logs: what becomes of a job, in text, in XML and in JSON."""

import json
from datetime import UTC
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lrms_sim.workload.accounting.importing import import_lines
from lrms_sim.workload.accounting.records import AccountingError, Import
from tests.lrms_sim.workload.accounting.test_htcondor import xml

LOG = """\
000 (7.000.000) 2024-01-05 12:00:00 Job submitted from host: <192.0.2.1:9618?addrs=192.0.2.1-9618>
    DAG Node: align
...
028 (7.000.000) 2024-01-05 12:00:00 Job ad information event triggered.
Proc = 0
EventTime = "2024-01-05T12:00:00"
TriggerEventTypeNumber = 0
Owner = "zoe"
AllowedExecuteDuration = 3600
...
001 (7.000.000) 2024-01-05 12:00:10 Job executing on host: <192.0.2.7:9618>
\tSlotName: slot1_1@node7
...
006 (7.000.000) 2024-01-05 12:00:20 Image size of job updated: 1000
\t1  -  MemoryUsage of job (MB)
...
004 (7.000.000) 2024-01-05 12:01:00 Job was evicted.
\t(0) CPU times
...
000 (7.001.000) 2024-01-05 12:01:30 Job submitted from host: <192.0.2.1:9618>
...
001 (7.000.000) 2024-01-05 12:02:00 Job executing on host: <192.0.2.8:9618>
...
005 (7.000.000) 2024-01-05 12:04:00 Job terminated.
\t(1) Normal termination (return value 2)
\t\tUsr 0 00:01:40, Sys 0 00:00:00  -  Run Remote Usage
\tPartitionable Resources :    Usage  Request Allocated
\t   Cpus                 :     1.00        6         8
\t   Disk (KB)            :       40       30   4203309
...
001 (7.001.000) 2024-01-05 12:04:10 Job executing on host: <192.0.2.7:9618>
...
012 (7.001.000) 2024-01-05 12:04:40 Job was held.
\tvia condor_hold (by user zoe)
...
009 (7.001.000) 2024-01-05 13:00:00 Job was aborted.
\tvia condor_rm (by user zoe)
...
000 (8.000.000) 2024-01-05 13:00:00 Job submitted from host: <192.0.2.1:9618>
...
009 (8.000.000) 2024-01-05 13:01:00 Job was aborted.
...
000 (9.000.000) 2024-01-05 13:02:00 Job submitted from host: <192.0.2.1:9618>
...
005 (3.000.000) 2024-01-05 13:03:00 Job terminated.
...
"""
"""A job that ran twice, one that was held and removed, one that never ran, one that is open, one from before."""


def read(text: str, **options: Any) -> Import:
    """Returns what a log says."""
    return import_lines("htcondor", text.splitlines(keepends=True), name="log", **options)


def test_what_became_of_jobs() -> None:
    """The last run counts, held time does not, and what was there before the log is left out."""
    found = read(LOG)
    log = found.log
    assert found.counts == {"open": 1, "before": 1, "never": 1, "restart": 1, "request": 2}
    assert log.submit_time.tolist() == [0, 90, 3600]
    assert log.wait_time.tolist() == [120, 160, -1]
    assert log.run_time.tolist() == [120, 30, -1]
    assert log.processors_requested.tolist() == [8, 1, 1]
    assert log.requested_time.tolist() == [3600, -1, -1]
    assert log.status.tolist() == [0, 5, 5]
    assert log.user.tolist() == [1, -1, -1]
    assert log.header.fields["UnixStartTime"] == "1704456000"


EVENTS: list[dict[str, Any]] = [
    {"MyType": "SubmitEvent", "EventTypeNumber": 0, "EventTime": "2024-01-05T12:00:00"},
    {"MyType": "NodeExecuteEvent", "EventTypeNumber": 14, "EventTime": "2024-01-05T12:00:05.250", "Node": 0},
    {"MyType": "NodeExecuteEvent", "EventTypeNumber": 14, "EventTime": "2024-01-05T12:00:05.250", "Node": 1},
    {
        "MyType": "JobTerminatedEvent",
        "EventTypeNumber": 5,
        "EventTime": "2024-01-05T12:01:05.250",
        "TerminatedNormally": True,
        "ReturnValue": 0,
        "RequestCpus": 4,
    },
]  # fmt: skip


@pytest.mark.parametrize("way", ["xml", "json"])
def test_classads_of_events(way: str) -> None:
    """XML without an outermost element and JSON say the same; nodes of a parallel job add up."""
    ads = [event | {"Cluster": 5, "Proc": 0} for event in EVENTS]
    text = "\n".join(json.dumps(ad, indent=1) for ad in ads)
    if way == "xml":
        text = xml(ads).split("<classads>\n")[1].replace("</classads>\n", "")
    found = read(text, zone=ZoneInfo("Europe/Stockholm"))
    assert found.log.wait_time.tolist() == [5.25]
    assert found.log.run_time.tolist() == [60]
    assert found.log.processors_allocated.tolist() == [8]
    assert found.log.status.tolist() == [1]
    assert found.log.header.fields["UnixStartTime"] == "1704452400"


def line(number: int, when: str, job: str = "1.000.000") -> str:
    """Returns an event of one line."""
    return f"{number:03} ({job}) {when} something\n...\n"


def test_dates_without_years() -> None:
    """The new year and a 29 February are noticed; that years are taken from nowhere is counted."""
    text = line(0, "12/31 23:59:50") + line(1, "01/01 00:00:10") + line(5, "01/01 00:01:10")
    found = read(text)
    assert (found.log.wait_time.tolist(), found.log.run_time.tolist()) == ([20], [60])
    assert found.counts["year"] == 3
    text = line(0, "02/28 12:00:00") + line(1, "02/29 12:00:00") + line(5, "03/01 12:00:00")
    assert read(text).log.run_time.tolist() == [86400]


def test_moments_may_have_a_zone() -> None:
    """That of the event goes before that of the site."""
    text = line(0, "2024-01-05T12:00:00Z") + line(1, "2024-01-05T13:00:10+01:00") + line(5, "2024-01-05T12:01:00Z")  # fmt: skip
    for zone in (UTC, ZoneInfo("Asia/Tokyo")):
        assert read(text, zone=zone).log.wait_time.tolist() == [10]


def test_a_log_that_breaks_off() -> None:
    """An event without its end is one, and a number that comes again is another job."""
    text = "000 (1.000.000) 2024-01-05 12:00:00 Job submitted\n000 (1.000.000) 2024-01-06 12:00:00 Job submitted\n"
    assert read(text).counts == {"open": 2}


def test_what_runs_where_it_is_submitted_is_left_out() -> None:
    """As DAGMan does, where the log says so."""
    said = line(28, "2024-01-05 12:00:00").replace("...", "JobUniverse = 7\n...")
    found = read(line(0, "2024-01-05 12:00:00") + said + line(5, "2024-01-05 12:01:00"))
    assert (len(found.log), found.counts) == (0, {"other": 1})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (line(0, "2024-01-05 12:00:00") + "hello\n", "log:3: no event as 005"),
        (line(0, "2024-01-05 32:00:00"), "log:2: EventTime is '2024-01-05T32:00:00'; it must be"),
        (line(0, "02/30 12:00:00"), "log:1: 02/30 is no date"),
        ('{"EventTypeNumber": 0, "Cluster": 1}', "log:1: the event that ends here lacks"),
        ('{"EventTypeNumber": 0, "Cluster": 1, "Proc": 0, "EventTime": 5}', "log:1: EventTime is"),
    ],
)
def test_what_cannot_be_read(text: str, words: str) -> None:
    """The error has file, line and what is expected."""
    with pytest.raises(AccountingError, match=words):
        read(text, unreadable="error")


REMOVED = """\
000 (007.000.000) 2026-05-27 08:00:00 Job submitted from host: <192.0.2.1:9618>
...
001 (007.000.000) 2026-05-27 08:01:00 Job executing on host: <192.0.2.2:9618>
\tSlotName: slot1_1@n1
\tCpus = 16
\tMemory = 1024
...
009 (007.000.000) 2026-05-27 18:01:00 Job was aborted.
\tvia condor_rm (by user alice)
...
"""


def test_what_a_removed_job_held() -> None:
    """Its last start says so, in text, JSON and XML."""
    assert read(REMOVED).log.processors_allocated.tolist() == [16]
    events = [
        {
            "EventTypeNumber": number,
            "Cluster": 7,
            "Proc": 0,
            "EventTime": f"2026-05-27T{hour:02}:00:00",
        }
        for number, hour in ((0, 8), (1, 9), (9, 18))
    ]
    held: list[dict[str, Any]] = [events[0], events[1] | {"ExecuteProps": {"Cpus": 4}}, events[2]]
    assert read("\n".join(json.dumps(event) for event in held)).log.processors_allocated[0] == 4
    inner = '<a n="ExecuteProps"><c><a n="Cpus"><i>4</i></a></c></a>'
    text = xml(events).replace(
        '<a n="EventTypeNumber"><i>1</i></a>', f'<a n="EventTypeNumber"><i>1</i></a>{inner}'
    )
    assert inner in text
    assert read(text).log.processors_allocated[0] == 4


def test_odd_events_end_nothing() -> None:
    """What is no event, or has no date, is left out and counted; the job beside it is read."""
    odd = "hello\n001 (8.0.0) 02/30 12:00:00 Job executing\n...\n" + REMOVED
    found = read(odd)
    assert found.counts == {"unreadable": 1, "moment": 1, "request": 1}
    assert len(found.log) == 1


PIECES = st.sampled_from([*LOG.splitlines(keepends=True), "\n", "\0", "Cpus : 99999999999 ²\n", "= =\n"])  # fmt: skip


@given(pieces=st.lists(PIECES, max_size=12))
def test_any_lines_are_read_or_refused(pieces: list[str]) -> None:
    """No file ends the command in another way."""
    try:
        read(LOG.splitlines(keepends=True)[0] + "".join(pieces), unreadable="error")
    except AccountingError as error:
        assert str(error).startswith("log:")  # noqa: PT017  # either way is right
