"""What Slurm's accounting tells of a request, in the forms of its columns and of its JSON."""

import json
from typing import Any

import pytest

from lrms_sim.workload.accounting.importing import import_lines
from lrms_sim.workload.accounting.records import Import
from lrms_sim.workload.requests import Gpus, Memory, Request

COLUMNS = ("JobID", "Submit", "Start", "End", "State", "AllocCPUS")


def job(**more: str) -> Import:
    """Returns what a file with one job of eight cores says, which has these further columns."""
    row = ("7", "1000", "1010", "1610", "COMPLETED", "8", *more.values())
    lines = ["|".join((*COLUMNS, *more)), "|".join(row)]
    return import_lines("sacct", lines, name="jobs.txt", unreadable="error")


def of_json(required: dict[str, Any], *tres: dict[str, Any], **more: Any) -> Import:
    """Returns what a document with one job of eight cores says."""
    document = {
        "job_id": 7,
        "state": {"current": ["COMPLETED"]},
        "time": {"submission": 1000, "start": 1010, "end": 1610},
        "required": {"CPUs": 8, **required},
        "tres": {"allocated": [{"type": "cpu", "count": 8}, *tres], "requested": []},
        **more,
    }
    text = json.dumps({"jobs": [document]}, indent=1)
    return import_lines("sacct", text.splitlines(), name="jobs.json", unreadable="error")


@pytest.mark.parametrize(
    ("columns", "request_", "kib"),
    [
        ({"AllocTRES": "billing=8,cpu=8,energy=12"}, None, -1),
        (
            {"AllocTRES": "cpu=8,mem=32G,node=1"},
            Request(tasks=8, nodes_max=1, memory=Memory(32 * 1024, "node")),
            4 * 1024**2,
        ),
        (
            {"AllocTRES": "cpu=8,mem=15.5G,node=2"},
            Request(tasks=8, nodes_min=2, nodes_max=2, memory=Memory(1984, "core")),
            1984 * 1024,
        ),
        (
            {"ReqTRES": "cpu=8,mem=1000M,node=2", "AllocTRES": ""},
            Request(tasks=8, nodes_min=2, nodes_max=2, memory=Memory(125, "core")),
            125 * 1024,
        ),
        ({"ReqMem": "4Gc"}, Request(tasks=8, memory=Memory(4096, "core")), 4 * 1024**2),
        (
            {"ReqMem": "2048Mn", "NNodes": "2"},
            Request(tasks=8, nodes_min=2, nodes_max=2, memory=Memory(2048, "node")),
            512 * 1024,
        ),
        ({"ReqMem": "16G"}, Request(tasks=8, memory=Memory(2048, "core")), 2 * 1024**2),
        ({"ReqMem": "0n"}, None, -1),
        ({"ReqMem": "?"}, None, -1),
        (
            {"AllocTRES": "cpu=8,node=2,gres/gpu=4,gres/gpu:a100=4"},
            Request(tasks=8, nodes_min=2, nodes_max=2, gpus=Gpus(2, "node", "a100")),
            -1,
        ),
        ({"AllocTRES": "cpu=8,gres/gpu=4"}, Request(tasks=8, gpus=Gpus(4)), -1),
        ({"AllocGRES": "gpu:v100:2"}, Request(tasks=8, gpus=Gpus(2, "node", "v100")), -1),
        (
            {"ReqGRES": "gres:gpu:2(S:0-1),craynetwork:1"},
            Request(tasks=8, gpus=Gpus(2, "node")),
            -1,
        ),
        ({"AllocGRES": "gpu"}, Request(tasks=8, gpus=Gpus(1, "node")), -1),
        ({"AllocTRES": "cpu=8,license/matlab=2"}, Request(tasks=8, licences=(("matlab", 2),)), -1),
        ({"Constraints": "haswell&ib"}, Request(tasks=8, features=("haswell", "ib")), -1),
    ],
)
def test_columns(columns: dict[str, str], request_: Request | None, kib: float) -> None:
    """What is held comes before what was asked for; a log has the memory for each processor."""
    found = job(**columns)
    assert found.requests == (request_,)
    assert found.log.memory_requested.tolist() == [kib]


@pytest.mark.parametrize(
    ("columns", "rule", "request_"),
    [
        (
            {"AllocTRES": "node=2,gres/gpu=3"},
            "uneven",
            Request(tasks=8, nodes_min=2, nodes_max=2, gpus=Gpus(2, "node")),
        ),
        (
            {"AllocTRES": "gres/gpu:a=1,gres/gpu:b=1"},
            "types",
            Request(tasks=8, gpus=Gpus(2)),
        ),
        ({"AllocTRES": "gres/shard=4"}, "resource", None),
        ({"Constraints": "[haswell*2]"}, "constraint", None),
        ({"AllocTRES": "mem=9999999999G"}, "contradiction", None),
    ],
)
def test_what_cannot_be_carried_is_counted(
    columns: dict[str, str], rule: str, request_: Request | None
) -> None:
    """By its rule; the job is kept."""
    found = job(**columns)
    assert found.counts[rule] == 1
    assert found.requests == (request_,)


def test_json() -> None:
    """Memory for each core or node, GPUs by type, licences, counts bare or in objects."""
    gpus = (
        {"type": "gres", "name": "gpu", "count": 4},
        {"type": "gres", "name": "gpu:h100", "count": 4},
    )
    found = of_json(
        {"memory_per_cpu": {"set": True, "infinite": False, "number": 2000}},
        {"type": "node", "count": {"set": True, "infinite": False, "number": 2}},
        {"type": "mem", "name": "", "count": 16000},
        *gpus,
        {"type": "license", "name": "ansys", "count": 1},
        constraints="ib",
    )
    assert found.requests == (
        Request(
            tasks=8,
            nodes_min=2,
            nodes_max=2,
            memory=Memory(2000, "core"),
            gpus=Gpus(2, "node", "h100"),
            features=("ib",),
            licences=(("ansys", 1),),
        ),
    )
    for required, memory in (
        ({"memory_per_node": {"set": True, "infinite": False, "number": 500}}, Memory(500, "node")),
        ({"memory": 500}, Memory(500, "node")),
        ({"memory": 500 + 2**63}, Memory(500, "core")),
        ({"memory_per_cpu": {"set": False, "infinite": False, "number": 7}}, None),
    ):
        (request,) = of_json(required).requests
        assert (request and request.memory) == memory
