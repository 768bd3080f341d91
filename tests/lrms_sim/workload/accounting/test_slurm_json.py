"""What sacct --json prints, in the shapes of several versions."""

import json
from typing import Any

import pytest

from lrms_sim.workload.accounting.importing import import_lines
from lrms_sim.workload.accounting.records import AccountingError, Import


def set_to(number: float | None) -> dict[str, Any]:
    """Returns a number as newer versions write it."""
    return {"set": number is not None, "infinite": False, "number": number or 0}


OLD: dict[str, Any] = {
    "job_id": 7,
    "array": {"job_id": 0, "task_id": None},
    "association": {"user": "zoe", "cluster": "c"},
    "group": "phys",
    "partition": "long",
    "required": {"CPUs": 2, "memory": 1000},
    "state": {"current": "COMPLETED", "reason": "None"},
    "steps": [{"state": "COMPLETED", "time": {"start": 1}}],
    "time": {"submission": 1000, "eligible": 1000, "start": 1010, "end": 1610, "limit": 30},
    "tres": {
        "allocated": [
            {"type": "mem", "count": 9},
            {"type": "cpu", "name": "", "id": 1, "count": 8},
        ],
        "requested": [{"type": "cpu", "count": 2}],
    },
}
NEW = OLD | {
    "job_id": 8,
    "array": {"job_id": 5, "task_id": set_to(3)},
    "user": "ann",
    "state": {"current": ["CANCELLED", "REQUEUED"]},
    "required": {"CPUs": set_to(4)},
    "time": {
        "submission": set_to(1020), "start": set_to(1030), "end": set_to(1090),
        "limit": {"set": True, "infinite": True, "number": 0},
    },
    "tres": {"allocated": [], "requested": [{"type": "cpu", "count": set_to(4)}]},
}  # fmt: skip


def read(*jobs: Any, **options: Any) -> Import:
    """Returns what a file says."""
    text = json.dumps({"meta": {"slurm": {}}, "jobs": jobs, "errors": []}, indent=1)
    return import_lines("sacct", text.splitlines(), name="jobs.json", **options)


def test_shapes() -> None:
    """Bare numbers and those in objects, words and lists, limits in minutes or without an end."""
    found = read(OLD, NEW, unreadable="error")
    log = found.log
    assert found.counts == {"request": 1}
    assert log.submit_time.tolist() == [0, 20]
    assert log.wait_time.tolist() == [10, 10]
    assert log.run_time.tolist() == [600, 60]
    assert log.processors_allocated.tolist() == [8, 4]
    assert log.requested_time.tolist() == [1800, -1]
    assert log.status.tolist() == [1, 5]
    assert log.user.tolist() == [1, 2]
    assert log.header.unix_start_time == 1000


def test_what_is_left_out() -> None:
    """Open jobs, those cancelled before their start that ask for nothing, and what is none; one twice counts once."""
    times: dict[str, Any] = OLD["time"]
    never = OLD | {"time": times | {"start": 0}, "job_id": 9}
    nothing: dict[str, Any] = {"required": {"CPUs": 0}, "tres": {}}
    jobs = [
        OLD | {"state": {"current": ["RUNNING"]}},
        OLD | {"time": times | {"end": 0}},
        never | nothing,
        OLD | nothing,
        OLD | {"time": times | {"submission": None}},
        3,
    ]
    found = read(OLD, OLD, never, *jobs)
    assert found.counts == {
        "open": 2, "repeated": 1, "unreadable": 1, "moment": 1, "width": 1, "cancelled": 1, "never": 1
    }  # fmt: skip
    assert found.log.status.tolist() == [1, 1]
    assert found.log.run_time.tolist() == [600, -1]
    with pytest.raises(
        AccountingError, match=r"jobs.json:\d+: nothing says how many processors job 7"
    ):
        read(OLD | nothing, unreadable="error")


def test_a_file_that_ends_too_early() -> None:
    """The jobs before its end are there, and the end is counted."""
    text = json.dumps({"jobs": [OLD, NEW, OLD | {"job_id": 10}]}, indent=1)[:-60]
    found = import_lines("sacct", text.splitlines(), name="jobs.json")
    assert (len(found.log), found.counts["unreadable"]) == (2, 1)
