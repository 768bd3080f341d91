"""Figures of schedules on machines of nodes, counted by hand."""

import pytest

from lrms_sim.analysis.node_metrics import (
    WaitsOfClass,
    dominant_share,
    dominant_shares,
    fragmentation,
    gpu_class,
    memory_class,
    utilization,
    waits_by,
    weighted_response_time,
)
from lrms_sim.machine.nodes import Demands, NodeKind, NodeMachine, NodeSchedule, simulate_on_nodes
from lrms_sim.report.run_report import awrt_by_dominant_share
from lrms_sim.workload.jobs import JobTable
from lrms_sim.workload.requests import Gpus, Memory, Request


def run(machine: NodeMachine, *rows: tuple[float, float, Request]) -> NodeSchedule:
    """Returns the schedule of jobs of (submit time, run time, request) under EASY."""
    jobs = JobTable.from_columns(
        submit_time=[row[0] for row in rows],
        processors=[row[2].processors for row in rows],
        run_time=[row[1] for row in rows],
    )
    return simulate_on_nodes(jobs, machine, demands=Demands.of([row[2] for row in rows]))


def test_utilization_is_that_of_each_resource() -> None:
    """Four cores, 100 MiB and two GPUs for 20 s; of memory 60 and 30 MiB are held, 10 s each."""
    machine = NodeMachine((NodeKind("n", 1, 4, 100, 2),))
    found = run(
        machine,
        (0, 10, Request(tasks=2, memory=Memory(60, "node"), gpus=Gpus(1, "node"))),
        (0, 10, Request(memory=Memory(30, "core"))),
        (10, 10, Request(tasks=2, exclusive=True)),
    )
    assert found.schedule.start_time.tolist() == [0, 0, 10]
    assert found.nodes.tolist() == [1, 1, 1]
    shares = utilization(found)
    assert shares.cores == pytest.approx((2 * 10 + 1 * 10 + 4 * 10) / 80)
    assert shares.memory == pytest.approx((60 * 10 + 30 * 10 + 100 * 10) / 2000)
    assert shares.gpus == pytest.approx((10 + 20) / 40)


def test_what_a_machine_does_not_have_has_no_utilization() -> None:
    """An exclusive job holds no memory where none is counted."""
    found = run(NodeMachine((NodeKind("n", 1, 4),)), (0, 10, Request(exclusive=True)))
    assert found.memory.tolist() == [0]
    assert utilization(found).memory is None
    assert utilization(found).gpus is None
    assert utilization(found).cores == 1


def test_fragmentation_counts_what_the_head_cannot_use() -> None:
    """From 0 to 10 one core is free on each node, and the head wants two on one."""
    machine = NodeMachine((NodeKind("n", 2, 2),), placement="first-fit")
    found = run(
        machine,
        (0, 10, Request(tasks=2, tasks_per_node=1)),
        (0, 10, Request(cores_per_task=2)),
    )
    assert found.schedule.start_time.tolist() == [0, 10]
    assert fragmentation(found) == pytest.approx(2 * 10 / 80)


def test_a_full_machine_is_not_fragmented() -> None:
    """The head waits for cores that somebody has."""
    machine = NodeMachine((NodeKind("n", 1, 2, 10),))
    one = Request(tasks=2, memory=Memory(1, "core"))
    found = run(machine, (0, 10, one), (0, 10, one))
    assert found.schedule.start_time.tolist() == [0, 10]
    assert fragmentation(found) == 0


def test_waits_are_told_by_class() -> None:
    """In the order of what is asked for, not of names."""
    machine = NodeMachine((NodeKind("n", 1, 4, 64 * 1024, 1),))
    gpu = Request(gpus=Gpus(1), memory=Memory(16 * 1024, "node"))
    found = run(machine, (0, 10, gpu), (0, 10, gpu), (0, 5, Request(memory=Memory(3000))))
    assert waits_by(found, gpu_class) == [
        WaitsOfClass("no GPU", 1, 0.0, 0.0),
        WaitsOfClass("1 GPU", 2, 5.0, 5.0),
    ]
    assert [row.name for row in waits_by(found, memory_class)] == [
        "up to 4 GiB a core",
        "up to 16 GiB a core",
    ]


def test_no_job_no_figure() -> None:
    """An empty workload is no error."""
    found = simulate_on_nodes(JobTable.empty(), NodeMachine((NodeKind("n", 1, 4, 1, 1),)))
    assert utilization(found).cores == 0
    assert fragmentation(found) == 0
    assert waits_by(found, gpu_class) == []


def test_licences_have_a_utilization_each() -> None:
    """Of two licences one is held for half of the time; of another there is none."""
    machine = NodeMachine((NodeKind("n", 1, 4),), licences=(("matlab", 2), ("ansys", 0)))
    found = run(
        machine, (0, 10, Request(licences=(("matlab", 1),))), (0, 20, Request(exclusive=False))
    )
    assert utilization(found).licences == pytest.approx({"matlab": 0.25})


def test_dominant_shares_weigh_response_times() -> None:
    """A job of one core in ten and all memory weighs as much as one of all cores."""
    machine = NodeMachine((NodeKind("n", 1, 10, 100),))
    found = run(
        machine,
        (0, 10, Request(memory=Memory(100, "node"))),
        (0, 10, Request(tasks=10)),
        (40, 10, Request()),
    )
    shares = dominant_shares(found.demands, machine)
    assert shares.tolist() == [1.0, 1.0, 0.1]
    assert dominant_share(Request(gpus=Gpus(1)), machine) == 0.1
    assert found.schedule.start_time.tolist() == [0, 10, 40]
    assert weighted_response_time(found.schedule, shares) == pytest.approx((10 + 20 + 1) / 2.1)
    assert awrt_by_dominant_share(found) == pytest.approx((10 + 20 + 1) / 2.1)
