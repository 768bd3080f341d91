"""What a job asks for in the words of qsub, by what qconf 8.1 has printed of a cell."""

import subprocess
import tempfile
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from grms.lrms.base import LrmsJob, LrmsRefusedError, Program
from grms.lrms.gridengine.gridengine import GridEngine
from grms.lrms.gridengine.gridengine_adapter import GridEngineTable
from grms.lrms.gridengine.gridengine_nodes import GridTable
from grms.lrms.gridengine.gridengine_request import (
    Cell,
    Resource,
    read_resources,
    read_rule,
    resource_options,
)
from grms.lrms.nodes import NodeTable
from lrms_sim.workload.requests import Gpus, Memory, Request, RequestError
from tests.clusters.gridengine import GridEngineCluster, need_gridengine
from tests.clusters.slurm import wait_for
from tests.clusters.up import up

RESOURCES = """\
#name               shortcut   type      relop requestable consumable default  urgency
#--------------------------------------------------------------------------------------
exclusive           excl       BOOL      EXCL  YES         YES        0        1000
gpu                 gpu        INT       <=    YES         YES        0        0
gpu_type            gpu_type   STRING    ==    YES         NO         NONE     0
h_vmem              h_vmem     MEMORY    <=    YES         YES        1G       0
matlab              matlab     INT       <=    YES         JOB        0        0
mem_free            mf         MEMORY    <=    YES         NO         0        0
skylake             skylake    BOOL      ==    YES         NO         0        0
slots               s          INT       <=    YES         YES        1        1000
# >#< starts a comment but comments are not saved across edits --------
"""
CELL = Cell(read_resources(RESOURCES), "smp", "$pe_slots", "h_vmem", "gpu", "gpu_type")


def test_resources_and_rules_are_read() -> None:
    """With how they are counted."""
    assert CELL.resources["matlab"] == Resource("INT", "<=", "JOB")
    assert len(CELL.resources) == 8
    line = "gpu        gpu        BOOL       ==    FORCED      NO          0        0\n"
    forced = read_resources(RESOURCES + line.replace("gpu ", "vip ", 1))["vip"]
    assert forced == Resource("BOOL", "==", "NO", "FORCED")
    with pytest.raises(ValueError, match="not resources"):
        read_resources("error: commlib error")
    assert (
        read_rule("pe_name            smp\nslots 999\nallocation_rule    $pe_slots\n")
        == "$pe_slots"
    )
    assert read_rule("error") == read_rule("allocation_rule 0\n") == ""


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        (Request(1), ""),
        (Request(4), "-pe smp 4"),
        (Request(2, 2, memory=Memory(1000)), "-pe smp 4 -l h_vmem=1000M"),
        (Request(3, memory=Memory(1000, "node")), "-pe smp 3 -l h_vmem=334M"),
        (Request(gpus=Gpus(2), memory=Memory(1000, "gpu")), "-l h_vmem=2000M,gpu=2"),
        (Request(2, gpus=Gpus(1, "task", "a100")), "-pe smp 2 -l gpu=1,gpu_type=a100"),
        (Request(2, gpus=Gpus(4, "node"), nodes_max=1), "-pe smp 2 -l gpu=2"),
        (
            Request(2, features=("skylake",), exclusive=True, licences=(("matlab", 2),)),
            "-pe smp 2 -l skylake=TRUE,exclusive=TRUE,matlab=2",
        ),
    ],
)
def test_a_cell_is_asked_for_what_a_request_says(request_: Request, words: str) -> None:
    """Of what is counted for every slot, each slot's share; it is never less than all."""
    assert resource_options(request_, CELL) == words.split()


def test_what_nobody_may_request_is_no_feature() -> None:
    """`qsub` would refuse it; what only those get who request it is one, and keeps others away."""
    more = {word: Resource("BOOL", "==", "NO", word) for word in ("NO", "FORCED")}
    cell = replace(CELL, resources={**CELL.resources, **more})
    assert resource_options(Request(features=("FORCED",)), cell) == ["-l", "FORCED=TRUE"]
    with pytest.raises(RequestError, match="no host of this cell has a feature NO"):
        resource_options(Request(features=("NO",)), cell)
    assert GridTable((), (), (), cell=cell).guarded_features == {"FORCED"}
    assert NodeTable((), (), ()).guarded_features == frozenset()


def test_what_is_counted_once_is_asked_for_once() -> None:
    """For a job, or for a host with which it is only compared."""
    cell = replace(CELL, memory="mem_free")
    request = Request(4, memory=Memory(500))
    assert resource_options(request, cell) == ["-pe", "smp", "4", "-l", "mem_free=2000M"]


@pytest.mark.parametrize(
    ("request_", "changed", "why"),
    [
        (Request(3, gpus=Gpus(2, "node")), {}, "gpu is counted for each of the job's 3 slots"),
        (Request(memory=Memory(1)), {"memory": ""}, r"which resource to ask for \(lrms.memory\)"),
        (Request(gpus=Gpus(1)), {"gpus": "gpus"}, r"no resource gpus \(lrms.gpus\)"),
        (Request(features=("fast",)), {}, "no host of this cell has a feature fast"),
        (Request(features=("gpu",)), {}, "no host of this cell has a feature gpu"),
        (Request(features=("exclusive",)), {}, "no host of this cell has a feature exclusive"),
        (Request(licences=(("fluent", 1),)), {}, "counts no licences of fluent"),
        (Request(signal="USR1"), {}, "no signal"),
        (Request(image="a.sif"), {}, "no container image"),
        (Request(qos="high"), {}, "no QOS"),
        (Request(4, nodes_min=2), {}, "smp gives every job one host"),
        (Request(4, tasks_per_node=2), {}, "smp gives every job one host"),
        (Request(2, 2), {"rule": "$fill_up"}, "may spread a job over any hosts"),
        (Request(2, memory=Memory(9, "node")), {"rule": "$fill_up"}, "may spread a job"),
        (Request(4, 2), {"rule": "3"}, "gives a job 3 slots on each host"),
        (Request(4, nodes_max=1), {"rule": "2"}, "gives a job 2 slots on each host"),
        (Request(4, nodes_max=1), {"rule": ""}, "may spread a job"),
    ],
)
def test_what_a_cell_has_no_words_for_is_refused(
    request_: Request, changed: dict[str, str], why: str
) -> None:
    """With what the site's file, the cell or the parallel environment lacks."""
    with pytest.raises(RequestError, match=why):
        resource_options(request_, replace(CELL, **changed))  # type: ignore[arg-type]  # of its fields


@pytest.mark.parametrize(
    ("request_", "rule"),
    [
        (Request(4, memory=Memory(100), gpus=Gpus(1, "task")), "$round_robin"),
        (Request(4, nodes_min=2, nodes_max=2), "2"),
        (Request(2, 2, nodes_min=2, tasks_per_node=1), "2"),
        (Request(4), "3"),
    ],
)
def test_slots_may_lie_as_the_environment_deals_them(request_: Request, rule: str) -> None:
    """Where that is what the job asks for, or of no account to it."""
    assert resource_options(request_, replace(CELL, rule=rule))[:3] == ["-pe", "smp", "4"]


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        (Request(16, nodes_max=2, memory=Memory(100, "node")), "h_vmem=13M"),
        (Request(8, nodes_max=1, memory=Memory(100, "node")), "h_vmem=13M"),
        (Request(16, nodes_max=2, gpus=Gpus(8, "node")), "gpu=1"),
        (Request(16, gpus=Gpus(1, "task"), memory=Memory(100, "gpu")), "h_vmem=100M,gpu=1"),
        (
            Request(16, nodes_max=2, gpus=Gpus(8, "node"), memory=Memory(100, "gpu")),
            "h_vmem=100M,gpu=1",
        ),
        (Request(16, memory=Memory(100)), "h_vmem=100M"),
    ],
)
def test_each_host_has_what_is_asked_for_a_node(request_: Request, words: str) -> None:
    """Where a job has several, no less is given to each."""
    found = resource_options(request_, replace(CELL, rule="8"))
    assert found == ["-pe", "smp", str(request_.processors), "-l", words]


def test_several_hosts_are_compared_one_by_one() -> None:
    """And none but the first has what is counted once for a job."""
    cell = replace(CELL, rule="8", memory="mem_free")
    request = Request(16, memory=Memory(100))
    assert resource_options(request, cell)[-1] == "mem_free=800M"
    once = replace(cell, memory="matlab")
    with pytest.raises(RequestError, match="matlab is counted once for a job, and this one has 2"):
        resource_options(request, once)
    assert resource_options(Request(8, memory=Memory(100)), once)[-1] == "matlab=800M"


COUNTED = {"h_vmem": "h_vmem MEMORY <= YES YES 0 0", "gpu": "gpu INT <= YES YES 0 0"}


def shared_out(cluster: GridEngineCluster) -> None:
    """Has the one host count memory and GPUs."""
    lines = cluster.ask("qconf", "-sc").splitlines()
    kept = [line for line in lines if line.partition(" ")[0] not in COUNTED]
    path = cluster.folder / "resources"
    added = [f"{name} {words}" for name, words in COUNTED.items()]
    path.write_text("\n".join([*kept, *added]) + "\n")
    cluster.ask("qconf", "-Mc", str(path))
    values = "h_vmem=16G,gpu=4"
    cluster.ask("qconf", "-mattr", "exechost", "complex_values", values, "localhost")


@pytest.mark.services
async def test_a_real_cell_gives_a_job_what_it_asks_for(tmp_path: Path) -> None:
    """Memory and GPUs are gone from the host while the job has them; what is said to start starts, and nothing else."""
    need_gridengine()
    with tempfile.TemporaryDirectory(prefix="hanse-", dir="/tmp") as name:  # its paths are short
        cluster = GridEngineCluster(Path(name))
        with up(cluster):
            shared_out(cluster)
            table = GridEngineTable.model_validate(
                {
                    "kind": "gridengine",
                    "programs": cluster.programs,
                    "root": cluster.environment["SGE_ROOT"],
                    "master_port": int(cluster.environment["SGE_QMASTER_PORT"]),
                    "execution_port": int(cluster.environment["SGE_EXECD_PORT"]),
                    "memory": "h_vmem",
                    "gpus": "gpu",
                }
            )
            system = table.system("S")
            request = Request(2, memory=Memory(2048), gpus=Gpus(1, "task"), wall_time=600.0)
            assert await started(cluster, system, tmp_path, request)
            left = "dominance='hc'>12.000G<", "dominance='hc'>2.000000<"
            assert all(each in cluster.ask("qhost", "-F", "h_vmem,gpu", "-xml") for each in left)
            for asked, expected in (
                (Request(gpus=Gpus(2, "node"), memory=Memory(1024)), True),
                (Request(gpus=Gpus(3, "node"), memory=Memory(1024)), False),
                (Request(2, memory=Memory(6144)), True),
                (Request(2, memory=Memory(6200)), False),
                (Request(29, memory=Memory(100)), True),
                (Request(31, memory=Memory(100)), False),
            ):
                each = replace(asked, wall_time=600.0)
                seen = await system.look()
                assert seen.nodes is not None
                assert seen.nodes.starts_now(each, seen.taken_at) is expected
                assert seen.nodes.never(each) == ""
                assert await started(cluster, system, tmp_path, each, ends=True) is expected
            with pytest.raises(LrmsRefusedError, match="no container image"):
                await started(cluster, system, tmp_path, replace(request, image="i"))


def waiting(cluster: GridEngineCluster) -> dict[str, str]:
    """Returns the states of jobs by their numbers."""
    lines = cluster.ask("qstat", "-u", "*").splitlines()[2:]
    return {line.split()[0]: line.split()[4] for line in lines}


async def started(
    cluster: GridEngineCluster,
    system: GridEngine,
    folder: Path,
    request: Request,
    *,
    ends: bool = False,
) -> bool:
    """Hands in a job, and another one behind it that is sure to start; returns whether the first has as well."""
    (folder / "launch").write_text("sleep 600\n")
    numbers = []
    for each in (request, Request(wall_time=600.0)):
        program = Program("#!/bin/sh\n")
        job = LrmsJob("B/1/2", each.processors, 600.0, program=program, request=each)
        numbers.append(await system.submit(system.encode(job.key), job, folder))
        cluster.ask("qrls", "-h", "u", numbers[-1])
    # It has no memory where memory is shared out, and is killed for that within a second: who is gone had started.
    wait_for(waiting(cluster).get(numbers[1], "r") == "r" for _ in iter(int, 1))
    found = waiting(cluster)[numbers[0]] == "r"
    gone = numbers if ends else numbers[1:]
    with suppress(subprocess.CalledProcessError):  # one of them is gone already
        cluster.ask("qdel", *gone)
    wait_for(not waiting(cluster).keys() & {*gone} for _ in iter(int, 1))
    return found
