"""Over a real Slurm of several kinds of nodes: what the table of nodes says starts, starts; and what it says does not, not.

GPUs are pretended, memory is counted. Each request is handed to sbatch in the words that the adapter has for it.
"""

import contextlib
import os
import random
import re
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from grms.lrms.base import LrmsJob
from grms.lrms.batch.subprocesses import Programs
from grms.lrms.nodes import NodeTable
from grms.lrms.partitions import Partitions
from grms.lrms.slurm.slurm import Slurm, SlurmSettings
from grms.lrms.slurm.slurm_machine import hindrance
from lrms_sim.workload.requests import Gpus, Memory, Request, RequestError
from tests.clusters.slurm import SlurmCluster, need_slurm, wait_for
from tests.clusters.up import up

pytestmark = pytest.mark.services

KINDS = (
    *("CPUs=8 RealMemory=16000 Feature=skylake,avx512",) * 2,
    "CPUs=16 RealMemory=64000 Feature=icelake,large Weight=5",
    "CPUs=16 RealMemory=32000 Gres=gpu:a100:4 Feature=icelake Weight=10",
    "CPUs=8 RealMemory=16000 Gres=gpu:v100:2 Feature=skylake Weight=10",
)
PARTITIONS = """
PartitionName=main Nodes=n[1-3] Default=YES MaxTime=1-00:00:00 DefaultTime=60 State=UP
PartitionName=gpu Nodes=n[4-5] MaxTime=04:00:00 MaxNodes=1 DefMemPerCPU=500 State=UP
PartitionName=acc Nodes=n[4-5] MaxTime=04:00:00 DefMemPerGPU=6000 DefCpuPerGPU=3 State=UP
PartitionName=short Nodes=n[1-5] MaxTime=00:10:00 MaxMemPerNode=8000 State=UP
PartitionName=bio Nodes=n[1-3] MaxTime=04:00:00 AllowAccounts=bio State=UP
PartitionName=rest Nodes=n[1-3] MaxTime=04:00:00 DenyAccounts=chem DenyQos=low State=UP
PartitionName=high Nodes=n[1-3] MaxTime=04:00:00 AllowQos=high State=UP
DefMemPerCPU=100
Licenses=matlab:4
"""
REQUESTS = 40


@pytest.fixture(scope="module")
def cluster() -> Iterator[SlurmCluster]:
    """A Slurm of several kinds of nodes."""
    need_slurm()
    with tempfile.TemporaryDirectory(prefix="hanse-", dir="/tmp") as name:  # its paths are short
        cluster = SlurmCluster(
            Path(name) / "cluster",
            kinds=KINDS,
            parameters="CR_Core_Memory",
            partitions=PARTITIONS,
        )
        with up(cluster):
            (cluster.folder / "job.sh").write_text("#!/bin/sh\nexec sleep 600\n")
            yield cluster


def system(cluster: SlurmCluster) -> Slurm:
    """Returns the adapter's Slurm."""
    return Slurm(Programs(dict(cluster.environment)), SlurmSettings("S", "nobody"))


async def table(cluster: SlurmCluster) -> tuple[NodeTable, float]:
    """Returns its nodes as they are, and when that was."""
    found = await system(cluster).look()
    assert found.nodes is not None
    return found.nodes, found.taken_at


def hand_in(cluster: SlurmCluster, request: Request) -> str:
    """Hands in a job in the adapter's words, and returns its number; empty where Slurm refuses it."""
    wall_time = request.wall_time or 60.0
    job = LrmsJob("k", request.processors, wall_time, partner="p", request=request)
    return submitted(cluster, system(cluster).options(job), wall_time)


def submitted(cluster: SlurmCluster, options: Sequence[str], wall_time: float) -> str:
    """Hands in a job with these options, and returns its number; empty where Slurm refuses it."""
    words = [*options, f"--time={wall_time / 60:.0f}", "--output=/dev/null"]
    try:
        answer = cluster.ask("sbatch", "--parsable", *words, str(cluster.folder / "job.sh"))
    except subprocess.CalledProcessError:
        return ""
    return answer.strip()


def state(cluster: SlurmCluster, number: str) -> tuple[str, str]:
    """Returns a job's state, and the reason why it waits."""
    shown = cluster.ask("squeue", "-h", "-t", "all", "-j", number, "-o", "%t|%r")
    word, reason = shown.strip().split("|")
    return word, reason


def passes(cluster: SlurmCluster) -> int:
    """Returns how often the backfill scheduler has gone through the queue."""
    found = re.search(r"Backfilling stats.*?Total cycles: (\d+)", cluster.ask("sdiag"), re.DOTALL)
    assert found is not None
    return int(found[1])


def starts(cluster: SlurmCluster, number: str) -> bool:
    """Returns whether Slurm starts a job, once it has looked at it for all of its partitions."""
    word, before = "PD", passes(cluster)

    def decided() -> bool:
        nonlocal word
        word, reason = state(cluster, number)
        never = reason not in {"None", "Priority", "Resources"}
        return word != "PD" or never or passes(cluster) > before + 1

    wait_for(decided() for _ in iter(int, 1))
    return word != "PD"


def clear(cluster: SlurmCluster, numbers: Sequence[str] = ()) -> None:
    """Ends jobs, all without any, and returns when nothing is left of them."""
    cluster.ask("scancel", *(numbers or ["--user", str(os.getuid())]))
    wait_for(
        not any(number in numbers or not numbers for number in shown.split())
        for shown in iter(lambda: cluster.ask("squeue", "-h", "-o", "%i"), None)
    )


def resume(cluster: SlurmCluster, node: str) -> None:
    """Returns a node to service, and returns when it answers: until then it starts nothing.

    Slurm refuses it where the node has come back by itself, as one that was down does when it registers.
    """
    with contextlib.suppress(subprocess.CalledProcessError):
        cluster.ask("scontrol", "update", f"NodeName={node}", "State=RESUME")
    wait_for(
        not re.search(r"[*]|down|drain|drng", cluster.ask("sinfo", "-h", "-N", "-o", "%t"))
        for _ in iter(int, 1)
    )


def drawn(rng: random.Random) -> Request:
    """Returns a request that contradicts itself in nothing."""
    while True:
        least = rng.choice([1, 1, 1, 2])
        try:
            request = Request(
                tasks=rng.choice([1, 1, 2, 3, 4, 8, 12]),
                cores_per_task=rng.choice([1, 1, 2, 4]),
                nodes_min=least,
                nodes_max=rng.choice([None, None, least]),
                tasks_per_node=rng.choice([None, None, 2, 4]),
                memory=rng.choice(
                    [
                        None,
                        None,
                        Memory(500),
                        Memory(2000),
                        Memory(4000, "node"),
                        Memory(20_000, "node"),
                    ]
                ),
                gpus=rng.choice(
                    [
                        None,
                        None,
                        Gpus(1, "node"),
                        Gpus(2),
                        Gpus(1, "task", "a100"),
                        Gpus(2, "node", "v100"),
                    ]
                ),
                features=rng.choice([(), (), (), ("skylake",), ("icelake",)]),
                exclusive=rng.random() < 0.1,
                licences=rng.choice([(), (), (), (("matlab", 3),)]),
                wall_time=rng.choice([300.0, 1800.0, 7200.0]),
                partition=rng.choice(["", "gpu", "acc", "acc", "short", "main,gpu"]),
            )
        except RequestError:
            continue
        if not (request.on_one_node and request.nodes_min > 1):
            return request


async def test_what_would_start_starts(cluster: SlurmCluster) -> None:
    """By nodes, cores, memory, GPUs, features, licences and the limits of partitions, on a machine in use.

    Nobody waits, so that there is one right answer to each question.
    """
    rng = random.Random(28)  # noqa: S311  # not a secret
    said: list[tuple[bool, bool]] = []
    for number in range(REQUESTS):
        if number % 8 == 0:
            clear(cluster)
            for _ in range(number // 8):
                other = hand_in(cluster, drawn(rng))
                if other and not starts(cluster, other):
                    clear(cluster, [other])
        nodes, at = await table(cluster)
        request = drawn(rng)
        expected, never = nodes.starts_now(request, at), nodes.never(request)
        mine = hand_in(cluster, request)
        started = bool(mine) and starts(cluster, mine)
        assert started == expected, (request, never or state(cluster, mine))
        assert mine or never, request  # what Slurm itself refuses is never run
        assert not (started and never), (request, never)
        said.append((expected, bool(never)))
        if mine:
            clear(cluster, [mine])
    assert said.count((True, False)) > REQUESTS / 8
    assert said.count((False, True)) > REQUESTS / 8
    clear(cluster)


async def test_who_waits_keeps_the_nodes_that_he_is_to_have(cluster: SlurmCluster) -> None:
    """A job that would be over before starts there, and any where nobody waits."""
    clear(cluster)
    runs = Request(8, nodes_max=1, features=("large",), wall_time=1800.0)
    assert starts(cluster, hand_in(cluster, runs))
    waits = hand_in(cluster, Request(16, nodes_max=1, features=("large",), wall_time=1800.0))
    assert not starts(cluster, waits)
    wait_for(
        shown not in {"", "(null)", "N/A"}
        for shown in iter(
            lambda: cluster.ask("squeue", "-h", "-j", waits, "-o", "%Y").strip(), None
        )
    )
    nodes, at = await table(cluster)
    short = Request(2, features=("large",), wall_time=600.0)
    long = Request(2, features=("large",), wall_time=7200.0)
    elsewhere = Request(2, features=("skylake",), wall_time=7200.0)
    for request, expected in ((short, True), (long, False), (elsewhere, True)):
        assert nodes.starts_now(request, at) is expected
        mine = hand_in(cluster, request)
        assert starts(cluster, mine) is expected
        clear(cluster, [mine])
    clear(cluster)


async def test_nodes_that_are_away_or_reserved_start_nothing(cluster: SlurmCluster) -> None:
    """By an operator's word, and by a reservation that begins before a job would be over."""
    clear(cluster)
    request = Request(gpus=Gpus(1, "node", "a100"), partition="gpu", wall_time=1800.0)
    cluster.ask("scontrol", "update", "NodeName=n4", "State=DRAIN", "Reason=x")
    nodes, at = await table(cluster)
    assert nodes.why_not(request) == "nodes of gpu that it needs are DRAIN"
    assert not nodes.starts_now(request, at)
    assert not starts(cluster, hand_in(cluster, request))
    clear(cluster)
    resume(cluster, "n4")
    cluster.ask(
        *("scontrol", "create", "reservation", "ReservationName=service", "StartTime=now+20minutes"),
        *("Duration=60", "Nodes=n4", "Users=root", "Flags=MAINT"),
    )  # fmt: skip
    nodes, at = await table(cluster)
    assert nodes.why_not(request) == ""
    for each, expected in ((request, False), (Request(wall_time=600.0, partition="gpu"), True)):
        assert nodes.starts_now(each, at) is expected
        assert starts(cluster, hand_in(cluster, each)) is expected
    cluster.ask("scontrol", "delete", "ReservationName=service")
    clear(cluster)


async def test_accounts_and_qos_count_as_far_as_slurm_knows_them(cluster: SlurmCluster) -> None:
    """Without accounting it starts nobody where it allows accounts alone, and looks neither at whom it denies nor at QOS.

    Whoever waits there is told so in Slurm's words.
    """
    clear(cluster)
    nodes, at = await table(cluster)
    for partition, starts_there in (("bio", False), ("rest", True), ("high", True)):
        for account, qos in (("", ""), ("bio", ""), ("chem", "low"), ("", "high")):
            request = Request(partition=partition, account=account, qos=qos, wall_time=600.0)
            assert nodes.starts_now(request, at) is starts_there
            assert (nodes.why_not(request) == "") is starts_there
            mine = hand_in(cluster, request)
            assert starts(cluster, mine) is starts_there
            why = hindrance(state(cluster, mine)[1], Partitions(nodes.chosen(request)), request)
            assert why.startswith("Slurm says: Job's account not known") is not starts_there
            clear(cluster, [mine])


async def test_the_machine_is_as_large_as_slurm_says(cluster: SlurmCluster) -> None:
    """Whatever is on it: allocated, idle, other and all, as sinfo counts them."""
    for number in range(3):
        if number:
            hand_in(cluster, Request(3, partition="gpu", wall_time=60.0))
        if number == 2:
            cluster.ask("scontrol", "update", "NodeName=n3", "State=DOWN", "Reason=x")
        wait_for(
            "PD" not in shown.split()
            for shown in iter(lambda: cluster.ask("squeue", "-h", "-o", "%t"), None)
        )
        before, counts = "", "-"
        while before != counts:  # a node may come or go between the two
            before = cluster.ask("sinfo", "-h", "-o", "%C")
            seen = await system(cluster).look()
            counts = cluster.ask("sinfo", "-h", "-o", "%C")
        allocated, idle, _, everything = map(int, counts.strip().split("/"))
        assert (seen.processors, seen.free) == (allocated + idle, idle)
        assert seen.processors_all == everything
    resume(cluster, "n3")
    clear(cluster)
