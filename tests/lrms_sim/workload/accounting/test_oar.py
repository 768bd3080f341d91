"""Jobs of OAR: oarstat's JSON, answers of its REST interface, and its table of jobs."""

import json
from typing import Any

import pytest

from lrms_sim.workload.accounting.importing import import_lines
from lrms_sim.workload.accounting.records import AccountingError, Import

JOB: dict[str, Any] = {
    "Job_Id": 72, "state": "Terminated", "owner": "zoe", "project": "phys", "queue": "default",
    "submissionTime": "1285579829", "startTime": 1285579830, "stopTime": 1285583430, "walltime": "7200",
    "assigned_resources": ["38", "39"], "exit_code": None, "message": "R=9,W=12:0:0,J=B", "events": [],
}  # fmt: skip


def read(document: Any, **options: Any) -> Import:
    """Returns what a file says."""
    text = document if isinstance(document, str) else json.dumps(document, indent=1)
    return import_lines("oar", text.splitlines(), name="jobs", **options)


def test_ways_of_json() -> None:
    """By number, as a list, or as a page of the REST interface: the same jobs."""
    never = JOB | {"state": "Error", "startTime": 0}
    del never["Job_Id"]
    wanted = JOB | {
        "Job_Id": "73", "assigned_resources": [], "walltime": None, "exit_code": "256", "stopTime": 1285579930,
    }  # fmt: skip
    open_ones = [JOB | {"state": state} for state in ("Running", "Waiting", "Hold")]
    by_number = {
        "71": never,
        "72": JOB,
        "73": wanted,
        **{str(k): one for k, one in enumerate(open_ones)},
    }
    found = read(by_number, unreadable="error")
    log = found.log
    assert found.counts == {"open": 3, "never": 1}
    assert log.processors_requested.tolist() == [9, 2, 2]
    assert log.requested_time.tolist() == [43200, 7200, 7200]
    assert log.run_time.tolist() == [100, -1, 3600]
    assert log.status.tolist() == [0, 5, 1]
    assert (
        len(read([JOB, JOB, wanted]).log)
        == len(read({"items": [JOB, wanted], "total": 2}).log)
        == 2
    )


def test_the_table_of_jobs() -> None:
    """Its names are those of the database; times may be dates."""
    text = (
        "job_id,state,job_user,queue_name,submission_time,start_time,stop_time,message,exit_code\n"
        '5,Terminated,zoe,default,2024-01-01 00:00:00,2024-01-01 00:00:10,2024-01-01 01:00:10,"R=16,W=2:0:0,J=B",0\n'
        "6,Waiting,zoe,default,1704067200,0,0,,\n"
    )
    found = read(text, unreadable="error")
    assert found.counts == {"open": 1}
    assert found.log.processors_allocated.tolist() == [16]
    assert found.log.requested_time.tolist() == [7200]
    assert found.log.header.unix_start_time == 1704067200


@pytest.mark.parametrize(
    ("job", "words"),
    [
        (3, "jobs: 3 is no job"),
        (JOB | {"submissionTime": None}, "job 72 has no submissionTime"),
        (JOB | {"startTime": "soon"}, "startTime of job 72 is 'soon'; a moment"),
        (JOB | {"assigned_resources": [], "message": ""}, "how many resources job 72 had"),
    ],
)
def test_what_cannot_be_read(job: Any, words: str) -> None:
    """It is left out and counted, or an error that names the job."""
    assert len(read([JOB, job]).log) == 1
    with pytest.raises(AccountingError, match=words):
        read([JOB, job], unreadable="error")
    with pytest.raises(AccountingError, match="jobs:1: no JSON"):
        read("{")


@pytest.mark.parametrize("document", [{"items": None}, {"items": 5}, {"jobs": "none"}, []])
def test_a_document_without_a_list(document: Any) -> None:
    """It is no mistake of the program."""
    if document == []:
        assert len(read(document).log) == 0
        return
    with pytest.raises(AccountingError, match="in place of a list of jobs"):
        read(document)
