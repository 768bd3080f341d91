"""Snakemake's resources as requests of a site."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lrms_sim.workload.requests import Gpus, Memory, Request
from snakemake_executor_plugin_hanse.needs import needs_of


@pytest.mark.parametrize(
    ("resources", "threads", "expected"),
    [
        ({}, 1, Request(wall_time=3600.0)),
        ({"runtime": 5}, 4, Request(cores_per_task=4, wall_time=300.0)),
        (
            {"tasks": 8, "nodes": 2, "tasks_per_node": 4, "cpus_per_task": 3},
            1,
            Request(
                tasks=8,
                nodes_min=2,
                nodes_max=2,
                tasks_per_node=4,
                cores_per_task=3,
                wall_time=3600.0,
            ),
        ),
        ({"nodes": 3}, 2, Request(tasks=3, cores_per_task=2, nodes_min=3, nodes_max=3, wall_time=3600.0)),
        ({"mem_mb": 1000}, 1, Request(memory=Memory(954, "node"), wall_time=3600.0)),
        ({"mem_mb": 9, "mem_mb_per_cpu": 2000}, 1, Request(memory=Memory(1908), wall_time=3600.0)),
        ({"mem_mb": 0, "gpus": 0}, 1, Request(wall_time=3600.0)),
        ({"gpus": "2", "gpu_model": "a100"}, 1, Request(gpus=Gpus(2, type="a100"), wall_time=3600.0)),
        ({"gpu": 1}, 1, Request(gpus=Gpus(1), wall_time=3600.0)),
        (
            {"slurm_partition": "long", "slurm_account": "physics", "qos": "high", "constraint": "a&b"},
            1,
            Request(partition="long", account="physics", qos="high", features=("a", "b"), wall_time=3600.0),
        ),
        ({"tmpdir": "<TBD>", "mem_mb": "<TBD>", "_cores": 7, "disk_mb": 9}, 1, Request(wall_time=3600.0)),
    ],
)  # fmt: skip
def test_resources_become_a_request(
    resources: dict[str, Any], threads: int, expected: Request
) -> None:
    assert needs_of(resources, threads, 60) == expected


@pytest.mark.parametrize(
    ("resources", "why"),
    [
        ({"runtime": "1h"}, "runtime is '1h'"),
        ({"gpus": True}, "gpus is True"),
        ({"tasks": -2}, "tasks is -2"),
        ({"mem_mb": "²"}, "mem_mb is '²'"),
        ({"nodes": 4, "tasks": 2}, "4 nodes for 2 tasks"),
        ({"constraint": "a|b"}, "no choice of features"),
    ],
)
def test_what_is_no_request_is_refused_by_name(resources: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=r".") as refusal:
        needs_of(resources, 1, 60)
    assert why in str(refusal.value)


@given(
    tasks=st.integers(1, 1000),
    threads=st.integers(1, 1000),
    runtime=st.integers(1, 10**6),
    mem_mb=st.integers(1, 10**9),
)
def test_nothing_is_lost(tasks: int, threads: int, runtime: int, mem_mb: int) -> None:
    """Memory is never less than was asked for, and less than one MiB more."""
    found = needs_of({"tasks": tasks, "runtime": runtime, "mem_mb": mem_mb}, threads, 1)
    assert (found.processors, found.wall_time) == (tasks * threads, runtime * 60.0)
    assert found.memory is not None
    assert 0 <= found.memory.mib * 2**20 - mem_mb * 1_000_000 < 2**20
