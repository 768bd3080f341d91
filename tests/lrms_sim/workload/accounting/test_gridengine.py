"""Grid Engine's accounting file, with colons and as JSON: jobs, tasks of arrays, parallel jobs."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from lrms_sim.workload.accounting.importing import import_lines
from lrms_sim.workload.accounting.records import AccountingError, Import
from tests.clusters.gridengine import GridEngineCluster, need_gridengine
from tests.clusters.slurm import wait_for
from tests.clusters.up import up

USAGE = ":".join(["0"] * 18)


def line(**changed: Any) -> str:
    """Returns a record; its fields are those of accounting(5)."""
    row = {
        "qname": "all.q", "owner": "zoe", "name": "job", "number": 7, "submit": 1704067200,
        "start": 1704067210, "end": 1704070810, "failed": 0, "exit": 0, "pe": "mpi", "slots": 8, "task": 0,
        "category": "-U x -l h_rt=7200,h_vmem=1G -pe mpi 8", "pe_task": "NONE",
    } | changed  # fmt: skip
    return (
        "{qname}:node1:phys:{owner}:{name}:{number}:sge:0:{submit}:{start}:{end}:{failed}:{exit}:{usage}:"
        "NONE:defaultdepartment:{pe}:{slots}:{task}:1.0:2.0:0.0:{category}:0.0:{pe_task}:1024:0:0"
    ).format(**row, usage=USAGE)


def read(*lines: str, **options: Any) -> Import:
    """Returns what a file says."""
    return import_lines("gridengine", lines, name="accounting", **options)


def test_jobs_and_tasks() -> None:
    """Slots are those of the parallel job, a task of an array is a job, and lines of its parts are none."""
    found = read(
        "# Version: 8.1.9",
        "",
        line(),
        line(pe_task="1.node2", start=1704067211),
        line(number=8, task=1, category="-l s_rt=01:00:00", pe="NONE", slots=1),
        line(number=8, task=2, category="", pe="NONE", slots=1, exit=1),
        line(number=9, start=0, end=0, failed=26, owner="ann"),
        unreadable="error",
    )
    log = found.log
    assert found.counts == {"step": 1, "never": 1, "request": 1}
    assert log.processors_requested.tolist() == [8, 8, 1, 1]
    assert log.run_time.tolist() == [-1, 3600, 3600, 3600]
    assert log.wait_time.tolist() == [-1, 10, 10, 10]
    assert log.requested_time.tolist() == [7200, 7200, 3600, -1]
    assert log.status.tolist() == [5, 1, 1, 0]
    assert log.header.unix_start_time == 1704067200


def test_a_job_that_ran_again() -> None:
    """Its record that says so is none of its end; the same record twice counts once."""
    again = line(start=1704070820, end=1704074420)
    found = read(line(failed=25, exit=0), again, again)
    assert found.counts == {"repeated": 1, "restart": 1}
    assert found.log.wait_time.tolist() == [3620]


def test_other_times_and_json() -> None:
    """Milliseconds of Univa and microseconds of JSON are told by their size."""
    later = {"submit": 1704067200000, "start": 1704067210500, "end": 1704070810500}
    assert read(line(**later)).log.wait_time.tolist() == [10.5]
    job: dict[str, Any] = {
        "job_number": 4, "task_number": 0, "start_time": 1725898198580794, "end_time": 1725898298580794,
        "owner": "zoe", "group": "phys", "qname": "all.q", "slots": 2, "job_name": "a:b",
        "submission_time": 1725898190080794, "category": "-l h_rt=600", "failed": 0, "exit_status": 0,
    }  # fmt: skip
    part = job | {"pe_task_id": "1.node2"}
    found = read(*map(json.dumps, (job, part, job | {"job_number": 5, "slots": 4})), "{]")
    assert found.counts == {"step": 1, "unreadable": 1}
    assert found.log.processors_allocated.tolist() == [2, 4]
    assert found.log.run_time.tolist() == [100, 100]
    assert found.log.wait_time.tolist() == [8.5, 8.5]
    assert found.log.requested_time.tolist() == [600, 600]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a:b:c", "accounting:2: 3 fields; a record of Grid Engine's accounting file has 45"),
        (line(submit="soon"), "submission_time is 'soon'; a Unix time"),
        (line(submit=0), "submission_time is 0"),
        (line(slots=0), "slots is '0'; at least 1"),
    ],
)
def test_what_cannot_be_read(text: str, words: str) -> None:
    """It is left out and counted, or an error with file, line and what is expected."""
    assert len(read(line(), text).log) == 1
    with pytest.raises(AccountingError, match=words):
        read(line(), text, unreadable="error")


@pytest.mark.services
def test_what_a_real_one_writes(tmp_path: Path) -> None:
    """A parallel job with a limit, an array and a job that failed, run by Grid Engine itself."""
    need_gridengine()
    cluster = GridEngineCluster(tmp_path)
    with up(cluster):
        quiet = ("-o", "/dev/null", "-j", "y", "-b", "y")
        cluster.ask("qsub", *quiet, "-pe", "smp", "3", "-l", "h_rt=01:00:00", "/bin/true")
        cluster.ask("qsub", *quiet, "-t", "1-2", "/bin/true")
        cluster.ask("qsub", *quiet, "/bin/false")
        account = Path(cluster.accounting)
        # The file begins with lines of its own.
        wait_for(
            account.exists() and len(re.findall("(?m)^[^#]", account.read_text())) >= 4
            for _ in iter(int, 1)
        )
        lines = account.read_text().splitlines()
    found = read(*lines, unreadable="error")
    assert found.counts == {"request": 3}
    jobs = sorted(
        zip(
            found.log.processors_allocated.tolist(),
            found.log.requested_time.tolist(),
            found.log.status.tolist(),
            strict=True,
        )
    )
    assert jobs == [(1, -1, 0), (1, -1, 1), (1, -1, 1), (3, 3600, 1)]
