"""What the jobs of a log ask of nodes: memory from its fields, requests from a file."""

from typing import Any, Literal

import pytest

from lrms_sim.machine.demand_options import DemandOptions
from lrms_sim.machine.demands import PreparedOnNodes, on_nodes
from lrms_sim.machine.node_kinds import NodeKind, NodeMachine
from lrms_sim.workload.jobs import window_by_days
from lrms_sim.workload.preparation import prepare
from lrms_sim.workload.requests import Gpus, Memory, Request
from lrms_sim.workload.swf_log import SwfLog

MACHINE = NodeMachine((NodeKind("n", 2, 4, 100, 1),))
LOG = SwfLog.from_columns(
    {
        "job_id": [3, 4, 5, 6],
        "submit_time": [0, 10, 20, 30],
        "run_time": [5, 5, 5, 5],
        "requested_time": [5, 5, 5, 5],
        "processors_allocated": [2, 1, 8, 1],
        "memory_requested": [10.5 * 1024, -1, 0, 200 * 1024],
        "memory_used": [1024, 512, -1, 1024],
    }
)


def found(
    source: Literal["requested", "used", "none"] = "requested",
    requests: dict[int, Request] | None = None,
    **more: Any,
) -> PreparedOnNodes:
    """Returns what the jobs of the log ask for."""
    prepared = prepare(LOG, MACHINE.processors)
    return on_nodes(LOG, prepared, MACHINE, DemandOptions(source), requests or {}, **more)


def asked(result: PreparedOnNodes) -> dict[int, Request]:
    """Returns the request of each job by number."""
    requests, shape = result.demands.requests, result.demands.shape
    ids = result.prepared.jobs.job_id
    return {int(job): requests[number] for job, number in zip(ids, shape, strict=True)}


def test_memory_is_that_of_the_log() -> None:
    """Rounded up to MiB for each processor; where one field says nothing, the other; no memory, none."""
    result = found()
    assert asked(result) == {
        3: Request(tasks=2, memory=Memory(11)),
        4: Request(memory=Memory(1)),
        5: Request(tasks=8),
    }
    report = result.prepared.report
    assert [(e.reason, e.count, e.treatment) for e in report.entries] == [
        ("too-wide-for-nodes", 1, "dropped"),
        ("memory-from-other-field", 1, "altered"),
        ("memory-unknown", 1, "kept"),
    ]
    assert (report.jobs_prepared, report.records_dropped) == (3, 1)
    assert asked(found("used"))[6] == Request(memory=Memory(1))
    assert asked(found("none")) == {
        3: Request(tasks=2), 4: Request(), 5: Request(tasks=8), 6: Request(),
    }  # fmt: skip


def test_a_file_of_requests_wins() -> None:
    """Also over the width that the log tells; rows of no job are counted."""
    gpu = Request(tasks=3, gpus=Gpus(1))
    result = found(requests={4: gpu, 6: Request(), 99: Request()})
    assert asked(result)[4] == gpu
    assert asked(result)[6] == Request()
    assert result.prepared.jobs.processors.tolist() == [2, 3, 8, 1]
    counts = {entry.reason: entry.count for entry in result.prepared.report.entries}
    assert counts == {
        "request": 2, "request-width": 1, "request-without-job": 1, "memory-unknown": 1,
    }  # fmt: skip


def test_what_does_not_fit_may_be_an_error() -> None:
    """It names the first job."""
    with pytest.raises(ValueError, match=r"job 6 asks for 1 task, 200 MiB a core, which machine"):
        found(too_wide="error")


def test_a_window_has_its_demands() -> None:
    """By the numbers of its jobs."""
    result = found()
    jobs = window_by_days(result.prepared.jobs, 10 / 86400, first_jobs=1)
    assert result.of(jobs).requests == (Request(memory=Memory(1)),)
    assert result.of(jobs).shape.tolist() == [0]
