"""What operators and crashes do to a real Slurm, none of which ends a job: scenes over one."""

import asyncio
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from grms.lrms.anomalies import Anomalies
from grms.lrms.base import (
    Accepted,
    Ended,
    Lost,
    LrmsPhase,
    LrmsUnavailableError,
    SeenAgain,
    Started,
    Unseen,
    Vanished,
)
from grms.lrms.batch.subprocesses import PATH, Programs
from grms.lrms.batch.system import BatchSystem
from grms.lrms.exit_status import FENCED
from grms.lrms.gridengine.gridengine import GridEngine, GridEngineSettings
from grms.util.outcomes import Outcome
from tests.clusters.gridengine import GridEngineCluster, need_gridengine
from tests.clusters.slurm import SlurmCluster, need_slurm
from tests.clusters.up import up
from tests.grms.lrms.batch.scene import Scene, undisturbed
from tests.grms.lrms.conformance import WAITS
from tests.grms.lrms.test_conformance import ACCOUNT, GridEngineWorld
from tests.grms.lrms.worlds import Site
from tests.waiting import meanwhile, until

pytestmark = pytest.mark.services


@pytest.fixture
def cluster() -> Iterator[SlurmCluster]:
    """A Slurm that the test starts; it ends in any case."""
    need_slurm()
    with tempfile.TemporaryDirectory(prefix="hanse-", dir="/tmp") as name:  # others pass through it
        yield SlurmCluster(Path(name) / "cluster", nodes=1, cpus=4)


def seen_by_nobody(folder: Path) -> str:
    """Makes programs that show what one sees who is no operator, and returns their folder.

    Slurm shows everything to its own user, whose test this is.
    """
    (folder / "bin").mkdir()
    for name in ("squeue", "scontrol"):
        program = shutil.which(name, path=PATH)
        as_nobody = "setpriv --reuid=nobody --regid=nogroup --clear-groups"
        # What scontrol does it does as who it is; what it shows of the machine, as nobody.
        looks = f'case "$1" in --all|-h) exec {as_nobody} {program} "$@";; esac'
        (folder / "bin" / name).write_text(f'#!/bin/sh\n{looks}\nexec {program} "$@"\n')
        (folder / "bin" / name).chmod(0o755)
    return str(folder / "bin")


async def test_operators_may_hide_and_move(cluster: SlurmCluster, tmp_path: Path) -> None:
    """A partition is hidden while jobs run in it, and a waiting job goes to another: each runs once."""
    if os.getuid() != 0:
        pytest.skip("what others see: this is not root, who alone can be somebody else here")
    cluster.folder.parent.chmod(0o755)
    programs = seen_by_nobody(tmp_path)
    scene = Scene(cluster, tmp_path, programs=programs, partitions=["main"])
    async with scene.up():
        cluster.open_to_all()
        first, held = await scene.running(1), await scene.submitted(2, held=True)
        await until(lambda: scene.has(held, Accepted))
        cluster.ask("scontrol", "update", "PartitionName=main", "Hidden=YES")
        number = next(
            line.split("|")[0]
            for line in cluster.ask("squeue", "-h", "-a", "-o", "%i|%j").splitlines()
            if line.endswith(held)
        )
        cluster.ask("scontrol", "update", f"JobId={number}", "Partition=urgent")
        await scene.looks(8)
        assert not any(isinstance(event, Unseen | Lost) for event in scene.events)
        assert sorted(row[2] for row in scene.rows()) == ["main", "urgent"]
        await undisturbed(scene, [first])
        await scene.lrms.release(held)
        await undisturbed(scene, [held])
        assert scene.states() == ["CD", "CD"]


async def test_hidden_jobs_go_on_where_all_partitions_are_used(
    cluster: SlurmCluster, tmp_path: Path
) -> None:
    """The site has named none; another one stays visible, so that the machine has a size."""
    if os.getuid() != 0:
        pytest.skip("what others see: this is not root, who alone can be somebody else here")
    cluster.folder.parent.chmod(0o755)
    scene = Scene(cluster, tmp_path, programs=seen_by_nobody(tmp_path))
    async with scene.up():
        cluster.open_to_all()
        key = await scene.running(1)
        cluster.ask("scontrol", "update", "PartitionName=main", "Hidden=YES")
        await scene.looks(8)
        assert not scene.has(key, Unseen)
        await undisturbed(scene, [key])


async def test_a_submission_at_the_moment_of_a_death_is_made(
    cluster: SlurmCluster, tmp_path: Path
) -> None:
    """The controller is killed, a job is submitted at once, the controller comes back: it runs, once."""
    scene = Scene(cluster, tmp_path)
    async with scene.up():
        await scene.looks(1)
        cluster.kill_controller()
        with pytest.raises(LrmsUnavailableError):
            await scene.submitted(1)
        await asyncio.to_thread(cluster.start_controller)
        assert await scene.lrms.look_up("A/1/1") is None
        key = await scene.submitted(1)
        await until(lambda: scene.runs(key) == 1)
        await undisturbed(scene, [key])
        assert scene.states() == ["CD"]


async def test_a_script_outlives_its_controller(cluster: SlurmCluster, tmp_path: Path) -> None:
    """The controller comes back with an empty state while the script runs: the job's folder says how it ends."""
    scene = Scene(cluster, tmp_path)
    async with scene.up():
        key = await scene.running(1)
        # A node that tells a controller of a run that it does not know is told to end it.
        cluster.kill_node("n1")
        cluster.kill_controller()
        for path in (cluster.folder / "state").iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        await asyncio.to_thread(cluster.start_controller)
        await until(lambda: scene.has(key, Unseen))
        record = await scene.lrms.look_up(key)
        assert record is not None
        assert (record.phase, record.end) == (LrmsPhase.UNKNOWN, None)
        await scene.looks(8)
        assert not scene.has(key, Ended, Vanished)
        assert scene.rows() == []
        end = await scene.ends(key)
        assert (end.outcome, end.exit_code) == (Outcome.COMPLETED, 0)
        assert scene.runs(key) == 1


async def test_a_second_run_is_turned_away(cluster: SlurmCluster, tmp_path: Path) -> None:
    """An operator lets a job run anew that may not: it does not, and that is not taken for its own failure."""
    scene = Scene(cluster, tmp_path)
    async with scene.up():
        key = await scene.running(1)
        number = cluster.ask("squeue", "-h", "-o", "%i").strip()
        cluster.ask("scontrol", "update", f"JobId={number}", "Requeue=1")
        cluster.ask("scontrol", "requeue", number)
        await asyncio.to_thread(cluster.wait_until_left)
        cluster.ask("scontrol", "update", f"JobId={number}", "StartTime=now")
        await until(lambda: scene.states() == ["F"])
        assert f"ExitCode={FENCED}:0" in cluster.ask("scontrol", "show", "job", number)
        await until(lambda: scene.has(key, Unseen))
        await scene.looks(5)
        assert scene.runs(key) == 1
        assert not scene.has(key, Ended, Vanished)
        assert scene.lrms.anomalies.run_fenced == 1
        assert await scene.lrms.cancel(key)
        await until(lambda: scene.has(key, Ended))
        (end,) = [event.end for event in scene.events if isinstance(event, Ended)]
        assert end.outcome is Outcome.CANCELLED


class BlindGridEngine(GridEngineWorld):
    """A Grid Engine whose `qstat` shows no jobs while a file is there.

    Attributes:
        blind: that file.
    """

    def __init__(self, cluster: GridEngineCluster, folder: Path) -> None:
        super().__init__(cluster)
        self.blind = folder / "blind"
        self._cell = cluster
        self._programs = folder / "bin"
        self._programs.mkdir()
        empty = "<?xml version='1.0'?><job_info><queue_info></queue_info><job_info></job_info></job_info>"
        script = (
            f'#!/bin/sh\nif test -e {self.blind} && test "$1" = -u; then\n\techo "{empty}"\n\texit 0\nfi\n'
            f'exec {cluster.programs}/qstat "$@"\n'
        )
        (self._programs / "qstat").write_text(script)
        (self._programs / "qstat").chmod(0o755)
        for name in ("qsub", "qrls", "qhold", "qdel"):
            (self._programs / name).symlink_to(f"{cluster.programs}/{name}")

    def system(self, site: str, *, requeue: bool, node: int) -> BatchSystem:
        """See `World.system`."""
        del node
        cluster = self._cell
        programs = Programs(cluster.environment, folder=str(self._programs), timeout_s=10.0)
        nowhere = str(self.blind.with_name("accounting"))
        return GridEngine(programs, GridEngineSettings(site, ACCOUNT, nowhere, requeue=requeue))


async def test_grid_engines_jobs_go_on_under_an_empty_table(tmp_path: Path) -> None:
    """One that runs and one that is held; and without an accounting file the job's folder says how it ended."""
    need_gridengine()
    cluster = GridEngineCluster(tmp_path / "cluster")
    with up(cluster):
        world = BlindGridEngine(cluster, tmp_path)
        site = Site(world, "G", tmp_path / "jobs")
        await site.lrms.open()
        async with meanwhile(site.lrms.run()):
            runs, held = site.job(1, f"{WAITS}\nexit 3"), site.job(2, "true")
            await site.lrms.submit(runs)
            await site.lrms.submit(held, held=True)
            await site.told(runs.key, Started)
            await site.told(held.key, Accepted)
            world.blind.touch()
            for key in (runs.key, held.key):
                await site.told(key, Unseen)
            await site.looks(5)
            assert not any(isinstance(event, Ended | Lost | Vanished) for event in site.events)
            world.blind.unlink()
            for key in (runs.key, held.key):
                await site.told(key, SeenAgain)
            assert site.lrms.anomalies == Anomalies()
            # What ends is in no file that this host can read.
            site.go(runs.key)
            end = (await site.ended(runs.key)).end
            assert (end.outcome, end.exit_code) == (Outcome.FAILED, 3)
            assert site.runs(runs.key) == 1
