"""Batch systems behind the port, each with the same scenes."""

import os
import pwd
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

import pytest

from grms.lrms.batch.subprocesses import Programs
from grms.lrms.batch.system import BatchSystem
from grms.lrms.gridengine.gridengine import GridEngine, GridEngineSettings
from grms.lrms.slurm.slurm import Slurm, SlurmSettings
from tests.clusters.fake_slurm import FakeSlurm
from tests.clusters.gridengine import GridEngineCluster, need_gridengine
from tests.clusters.slurm import SlurmCluster, need_slurm
from tests.clusters.up import up
from tests.grms.lrms.conformance import play
from tests.grms.lrms.worlds import World

ACCOUNT = pwd.getpwuid(os.getuid()).pw_name


class SlurmWorld:
    """Slurm, or its fake, with the hands of users and operators.

    Args:
        cluster: which is up.
        programs: folder of the programs; None for the real ones.
    """

    preempts = True
    nodes_fail = True
    forgets = True
    limit_s = 60.0

    def __init__(self, cluster: SlurmCluster | FakeSlurm, programs: str | None) -> None:
        self._cluster = cluster
        self._programs = programs
        self._broken = ""
        self.slots = cluster.nodes * cluster.cpus
        self.kill_controller = cluster.kill_controller
        self.start_controller = cluster.start_controller

    def system(self, site: str, *, requeue: bool, node: int) -> BatchSystem:
        """See `World.system`."""
        programs = Programs(self._cluster.environment, folder=self._programs, timeout_s=10.0)
        settings = SlurmSettings(
            site,
            ACCOUNT,
            shape=("--ntasks={processors}", *([f"--nodelist=n{node}"] if node else [])),
            requeue=requeue,
            completion_log=self._cluster.completion_log,
        )
        return Slurm(programs, settings)

    def cancel(self, number: str) -> None:
        """See `World.cancel`."""
        self._cluster.ask("scancel", number)

    def hold(self, number: str) -> None:
        """See `World.hold`."""
        self._cluster.ask("scontrol", "uhold", number)

    def unhold(self, number: str) -> None:
        """See `World.unhold`."""
        self._cluster.ask("scontrol", "release", number)

    def requeue(self, number: str) -> None:
        """See `World.requeue`."""
        self._cluster.ask("scontrol", "requeue", number)

    def hasten(self, number: str) -> None:
        """See `World.hasten`."""
        self._cluster.wait_until_left()
        self._cluster.ask("scontrol", "update", f"JobId={number}", "StartTime=now")

    def end_limit(self, number: str) -> None:
        """See `World.end_limit`."""
        self._cluster.ask("scontrol", "update", f"JobId={number}", "EndTime=now+1")

    def others(self, processors: int, *, tasks: int = 1, held: bool = False) -> str:
        """See `World.others`."""
        options = [f"--ntasks={processors}", "--wrap=sleep 300", "--output=/dev/null"]
        options += [f"--array=1-{tasks}"] if tasks > 1 else []
        options += ["--hold"] if held else []
        return self._cluster.ask("sbatch", "--parsable", *options).strip()

    def break_node(self, number: str) -> None:
        """See `World.break_node`."""
        self._broken = self._node(number)
        self._set_node(self._broken, "DOWN")

    def mend_nodes(self) -> None:
        """See `World.mend_nodes`."""
        # Slurm takes a node back by itself, as it is there after all.
        with suppress(subprocess.CalledProcessError):
            self._set_node(self._broken, "RESUME")

    def _set_node(self, node: str, state: str) -> None:
        words = [f"NodeName={node}", f"State={state}", "Reason=test"]
        self._cluster.ask("scontrol", "update", *words)

    def preempt(self, number: str) -> str:
        """See `World.preempt`."""
        node = self._node(number)
        options = ["--partition=urgent", "--nodes=1", f"--nodelist={node}"]
        options += [f"--ntasks={self._cluster.cpus}", "--wrap=sleep 300", "--output=/dev/null"]
        return self._cluster.ask("sbatch", "--parsable", *options).strip()

    def _node(self, number: str) -> str:
        rows = self._cluster.ask("squeue", "-h", "-t", "all", "-o", "%i %N").splitlines()
        return next(row.split()[1] for row in rows if row.split()[0] == number)


class GridEngineWorld:
    """Grid Engine with the hands of users and operators.

    Args:
        cluster: which is up.
    """

    preempts = False
    nodes_fail = False
    forgets = False
    limit_s = 2.0

    def __init__(self, cluster: GridEngineCluster) -> None:
        self._cluster = cluster
        self.slots = cluster.slots
        self.kill_controller = cluster.kill_controller
        self.start_controller = cluster.start_controller

    def system(self, site: str, *, requeue: bool, node: int) -> BatchSystem:
        """See `World.system`; there is one node."""
        del node
        cluster = self._cluster
        programs = Programs(cluster.environment, folder=cluster.programs, timeout_s=10.0)
        settings = GridEngineSettings(site, ACCOUNT, cluster.accounting, requeue=requeue)
        return GridEngine(programs, settings)

    def cancel(self, number: str) -> None:
        """See `World.cancel`."""
        self._cluster.ask("qdel", number)

    def hold(self, number: str) -> None:
        """See `World.hold`."""
        self._cluster.ask("qhold", number)

    def unhold(self, number: str) -> None:
        """See `World.unhold`."""
        self._cluster.ask("qrls", number)

    def requeue(self, number: str) -> None:
        """See `World.requeue`."""
        self._cluster.ask("qmod", "-rj", number)

    def hasten(self, number: str) -> None:
        """See `World.hasten`; there is no pause."""

    def end_limit(self, number: str) -> None:
        """See `World.end_limit`; limits are seconds."""

    def others(self, processors: int, *, tasks: int = 1, held: bool = False) -> str:
        """See `World.others`."""
        options = ["-terse", "-b", "y", "-o", "/dev/null", "-e", "/dev/null"]
        options += ["-pe", "smp", str(processors)] if processors > 1 else []
        options += ["-t", f"1-{tasks}"] if tasks > 1 else []
        options += ["-h"] if held else []
        number = self._cluster.ask("qsub", *options, "sleep", "300").strip()
        return number.partition(".")[0]

    def break_node(self, number: str) -> None:
        """See `World.break_node`; nodes do not fail here."""

    def mend_nodes(self) -> None:
        """See `World.mend_nodes`."""

    def preempt(self, number: str) -> str:
        """See `World.preempt`; nobody does here."""
        return number


@contextmanager
def gridengine(folder: Path) -> Iterator[World]:
    """Has a real Grid Engine, where there is one."""
    need_gridengine()
    cluster = GridEngineCluster(folder)
    with up(cluster):
        yield GridEngineWorld(cluster)


@contextmanager
def fake(folder: Path) -> Iterator[World]:
    """Has a fake for as long as it is used."""
    cluster = FakeSlurm(folder, nodes=3, cpus=16)
    with up(cluster):
        yield SlurmWorld(cluster, cluster.programs)


@contextmanager
def slurm(folder: Path) -> Iterator[World]:
    """Has a real Slurm, where there is one."""
    need_slurm()
    cluster = SlurmCluster(folder, nodes=3, cpus=16)
    with up(cluster):
        yield SlurmWorld(cluster, None)


@pytest.mark.parametrize(
    "kind",
    [fake, *(pytest.param(each, marks=pytest.mark.services) for each in (slurm, gridengine))],
)
async def test_it_keeps_the_port(
    kind: Callable[[Path], AbstractContextManager[World]], tmp_path: Path
) -> None:
    """Every scene, with every batch system."""
    with kind(tmp_path / "one") as world, kind(tmp_path / "two") as other:
        failures = await play(world, other, tmp_path)
    assert {name: text for name, text in failures.items() if text} == {}, "\n".join(
        f"--- {name}\n{text}" for name, text in failures.items() if text
    )
