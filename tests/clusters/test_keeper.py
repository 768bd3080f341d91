"""Nothing that the tests have started outlives them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from scenarios.prove.keeper import PORTS_TOGETHER, free_ports
from tests.clusters.gridengine import GridEngineCluster, need_gridengine
from tests.clusters.slurm import SlurmCluster, need_slurm
from tests.waiting import TIME_OUT_S, until

ROOT = Path(__file__).parents[2]
STARTS = """
import os, subprocess, sys, threading
from scenarios.prove.keeper import forget, free_ports, keep
names = []
def start():
    process = subprocess.Popen(["sleep", "3000"], start_new_session=True)
    keep(process.pid)
    names.append(process.pid)
thread = threading.Thread(target=start)
thread.start()
thread.join()
start()
forget(names[1])
print(*names, *free_ports(3), flush=True)
sys.stdin.read()
"""


def is_there(pid: int) -> bool:
    """Returns whether a process lives."""
    try:
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


async def test_what_a_killed_process_has_started_is_killed() -> None:
    """Also where the thread that has started it is over before; what it was told to forget goes on."""
    with subprocess.Popen(  # noqa: S603  # of this test
        [sys.executable, "-c", STARTS],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        kept, forgotten, *theirs = map(int, process.stdout.readline().split())
        try:
            assert is_there(kept)
            assert not set(free_ports(PORTS_TOGETHER)) & set(theirs)
            process.kill()
            process.wait(TIME_OUT_S)
            await until(lambda: not is_there(kept))
            assert is_there(forgotten)
        finally:
            os.kill(forgotten, 9)


def test_no_two_clusters_have_a_port() -> None:
    """Even before anybody listens there."""
    ports = [port for _ in range(5) for port in free_ports(4)]
    assert len(set(ports)) == len(ports)
    with pytest.raises(ValueError, match="at most 20"):
        free_ports(21)


@pytest.mark.services
@pytest.mark.parametrize("kind", ["slurm", "gridengine"])
def test_a_cluster_that_cannot_be_set_up_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """What has begun before the mishap is ended with it, as no fixture knows of it yet."""
    cluster: SlurmCluster | GridEngineCluster
    if kind == "slurm":
        need_slurm()
        cluster, step = SlurmCluster(tmp_path), "start_node"
    else:
        need_gridengine()
        cluster, step = GridEngineCluster(tmp_path), "_configure"
    begun: list[int] = []

    def interrupted(*_: object) -> None:
        begun.extend(process.pid for process in cluster.processes.values())
        raise KeyboardInterrupt

    monkeypatch.setattr(cluster, step, interrupted)
    with pytest.raises(KeyboardInterrupt):
        cluster.up()
    assert begun
    assert not [pid for pid in begun if is_there(pid)]
    assert cluster.processes == {}
