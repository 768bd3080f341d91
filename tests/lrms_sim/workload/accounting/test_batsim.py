"""Workloads of Batsim: what is written reads back the same, and profiles say run times."""

import json
from io import StringIO
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from lrms_sim.workload.accounting.batsim import read_workload, write_workload
from lrms_sim.workload.accounting.records import AccountingError, Import
from lrms_sim.workload.frames import JOB_COLUMNS
from lrms_sim.workload.jobs import JobTable
from lrms_sim.workload.preparation import prepare
from lrms_sim.workload.requests import Gpus, Memory, Request
from tests.examples import FEW
from tests.strategies import OneMachine, one_machine

PROFILES: dict[str, Any] = {
    "wait": {"type": "delay", "delay": 20.25},
    "wait5": {"type": "DelayProfile", "delay": 2, "ret": 1},
    "each": {"type": "parallel_homogeneous", "cpu": 1e9, "com": 0},
    "total": {"type": "parallel_homogeneous_total", "cpu": 8e9, "com": 1e6},
    "spread": {"type": "ParallelTaskHomogeneousProfile", "cpu": 8e9}
    | {"generation_strategy": "DefinedAmountsSpreadUniformly"},
    "matrix": {"type": "parallel", "cpu": [5e8, 1e9, 0, 0], "com": [0] * 16},
    "twice": {"type": "composed", "repeat": 2, "seq": ["wait", "each"]},
    "trace": {"type": "smpi", "trace": "x"},
    "round": {"type": "composed", "seq": ["round"]},
}


def workload(*jobs: dict[str, Any], **others: Any) -> str:
    """Returns a workload with jobs 0, 1, … of 4 processors."""
    full = [{"id": str(k), "subtime": k, "res": 4} | job for k, job in enumerate(jobs)]
    return json.dumps({"nb_res": 8, "jobs": full, "profiles": PROFILES} | others)


def read(text: str, **options: Any) -> Import:
    """Returns what a workload says."""
    return read_workload(text, name="w.json", **options)


@FEW
@given(case=one_machine())
def test_a_workload_comes_back_to_the_bit(case: OneMachine) -> None:
    """Out and in again: every column of the jobs, and the size of the machine."""
    jobs = case.jobs.shifted(120.0)
    users = np.where(jobs.job_id % 3 == 0, -1, jobs.job_id * 7).astype(np.int32)
    columns = jobs.columns() | {"user": users, "job_id": jobs.job_id * 5 - 20}
    jobs = JobTable(**columns)
    out = StringIO()
    write_workload(out, jobs, case.processors)
    found = read(out.getvalue())
    assert found.counts == {}
    assert found.log.header.max_procs == case.processors
    again = prepare(found.log, case.processors).jobs
    assert all(getattr(again, n).tobytes() == getattr(jobs, n).tobytes() for n in JOB_COLUMNS)
    assert len(json.loads(out.getvalue())["profiles"]) == len(set(jobs.run_time.tolist()))


def test_profiles_say_how_long() -> None:
    """A delay is one; work takes the speed of a processor; a sequence is the sum of its parts."""
    jobs = [{"profile": name} for name in ("wait", "wait5", "each", "total", "spread", "matrix", "twice")]  # fmt: skip
    found = read(workload(*jobs), speed=1e9)
    assert found.log.run_time.tolist() == [20.25, 2, 1, 2, 2, 1, 42.5]
    assert found.log.status.tolist() == [1, 0, 1, 1, 1, 1, 1]
    assert found.counts == {"request": 7, "work": 5, "transfer": 1}


def test_without_a_speed_the_limit_stands_for_the_time() -> None:
    """A job whose time nothing says keeps its limit as one, or is left out."""
    jobs = [{"profile": p, "walltime": 60.5} for p in ("each", "twice", "trace", "round", "wait")]
    found = read(workload(*jobs, {"profile": "trace"}, {"profile": "wait", "walltime": -1}))
    assert found.log.run_time.tolist() == [60.5] * 4 + [20.25] * 2
    assert found.log.requested_time.tolist() == [60.5] * 5 + [-1]
    assert found.counts == {"endless": 1, "request": 1, "limit": 4}


def test_names_of_jobs_and_users() -> None:
    """Numbers are kept, also behind a workload's name; other names are counted and numbered."""
    ids: list[Any] = ["w0!7", 3, "12"]
    assert read(workload(*({"id": i, "profile": "wait"} for i in ids))).log.job_id.tolist() == [7, 3, 12]  # fmt: skip
    ids[0] = "job_a"
    named = read(workload(*({"id": i, "profile": "wait"} for i in ids)))
    assert named.log.job_id.tolist() == [1, 2, 3]
    assert named.counts == {"name": 3, "request": 3}
    extra = ['{"user": 4}', "{", "[1]", '{"user": -9}']
    users = [{"profile": "wait", "extra_data": text} for text in extra] + [{"profile": "wait", "user": 5}]  # fmt: skip
    assert read(workload(*users)).log.user.tolist() == [4, -1, -1, -1, 5]
    hidden = read(workload(*users), rng=np.random.default_rng(1)).log.user.tolist()
    assert sorted(hidden) == [-1, -1, -1, 1, 2]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{\n]", "w.json:2: no JSON"),
        ("[" * 100_000, "w.json: no JSON: too deep"),
        ("[]", "no workload of Batsim: an object with `jobs`"),
        (workload(profiles={"a": {}}), "profile 'a' has no type"),
        (workload(jobs=[3]), r"w.json: jobs\[0\], None: is 3, no object"),
        (workload({"subtime": -3, "profile": "wait"}), r"jobs\[0\], '0': subtime is -3; expected sec"),
        (workload({"res": 0, "profile": "wait"}), "res is 0; expected a whole number from 1"),
        (workload({"walltime": "1 h", "profile": "wait"}), "walltime is '1 h'; expected seconds"),
        (workload({"profile": "none"}), "there is no profile 'none'"),
        (
            workload({"profile": "a"}, profiles={"a": {"type": "delay", "delay": -2}}),
            "profile 'a' is not what one of type 'delay' has to be",
        ),
        (
            workload({"profile": "a"}, profiles={"a": {"type": "composed", "seq": ["b"]}}),
            "profile 'a' is not what one of type 'composed'",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_read(text: str, words: str) -> None:
    """The error names file, and line or job."""
    with pytest.raises(AccountingError, match=words):
        read(text, unreadable="error")


def test_odd_jobs_end_nothing() -> None:
    """They are left out and counted by their rules; what only the network times takes its limit."""
    profiles = {"net": {"type": "parallel_homogeneous", "cpu": 0, "com": 1e9}}
    job = {"id": 1, "subtime": 0, "walltime": 10, "res": 1, "profile": "net"}
    jobs = [3, job, job | {"res": 0}, job | {"profile": "none"}]
    found = read(workload(jobs=jobs, profiles=profiles), speed=1e9)
    assert found.counts == {"unreadable": 2, "width": 1, "limit": 1}
    assert found.examples["unreadable"].problem == "jobs[0], None: is 3, no object"
    assert found.log.run_time.tolist() == [10]


def test_batsim_begins_at_zero() -> None:
    """A job before that is refused, and named."""
    jobs = JobTable.from_columns(submit_time=[-5], processors=[1], run_time=[1], job_id=[9])
    with pytest.raises(ValueError, match="job 9 is submitted at -5 s"):
        write_workload(StringIO(), jobs, 1)


def test_requests_come_back() -> None:
    """Batsim has no place for them but `extra_data`; one that is of other processors is not believed."""
    asked = Request(tasks=2, cores_per_task=2, memory=Memory(100, "node"), gpus=Gpus(1, "task"))
    jobs = JobTable.from_columns(
        submit_time=[0, 1], processors=[4, 1], run_time=[5, 5], user=[3, -1]
    )
    out = StringIO()
    write_workload(out, jobs, 8, {1: asked})
    found = read(out.getvalue())
    assert found.requests == (asked, None)
    assert found.log.memory_requested.tolist() == [25 * 1024, -1]
    assert found.log.user.tolist() == [3, -1]
    odd = [{"profile": "wait", "extra_data": json.dumps({"request": each})} for each in (
        {"tasks": "3"}, {"memory_mib": "much"}, {"gpus": 2}, [1],
    )]  # fmt: skip
    found = read(workload(*odd))
    assert found.counts["contradiction"] == 2
    assert found.requests == (None, None, Request(tasks=4, gpus=Gpus(2)), None)
