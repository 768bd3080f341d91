"""A real Slurm has jobs in arrays as the simulated one does."""

import asyncio
import tempfile
from pathlib import Path

import pytest

from grms.lrms.base import Ended, Lost, Requeued, Started, Vanished
from grms.util.outcomes import Outcome
from tests.clusters.slurm import SlurmCluster, need_slurm
from tests.grms.lrms.batch.scene import Scene
from tests.waiting import until

pytestmark = pytest.mark.services


async def test_jobs_in_arrays_are_cancelled_requeued_and_ended_one_by_one(tmp_path: Path) -> None:
    """Two are cancelled while all are held, of which one may only wait; one is requeued; an operator ends one, and a whole array."""
    need_slurm()
    with tempfile.TemporaryDirectory(prefix="hanse-", dir="/tmp") as name:  # others pass through it
        cluster = SlurmCluster(Path(name) / "cluster", nodes=1, cpus=8)
        log = cluster.completion_log
        scene = Scene(cluster, tmp_path, requeue=True, completion_log=log)
        async with scene.up():
            await scene.lrms.snapshot()
            numbers = [7, 8, 998, 1003, 1004, 1005, 1006, 1007]
            keys = await asyncio.gather(*(scene.submitted(each, held=True) for each in numbers))
            assert [row[3] for row in scene.rows()].count("hanse:S:A/1/1*") == 1  # one row for all
            first, second, third, *rest = keys[3:]
            assert await scene.lrms.cancel(first)
            assert await scene.lrms.cancel(second, only_waiting=True)
            for key in [third, *rest]:
                await scene.lrms.release(key)
            await until(lambda: scene.has(third, Started) and scene.runs(third) == 1)
            words = ("squeue", "-h", "-a", "-r", "-t", "all", "-o", "%j %i")
            shown = dict(line.split() for line in cluster.ask(*words).splitlines())
            number = shown[f"hanse:S:{third}"]
            assert number.endswith("_5")
            cluster.ask("scontrol", "requeue", number)
            # The others of the second array were never parted. Of one that leaves it alone there is no record.
            array = shown["hanse:S:A/1/*"].partition("_")[0]
            cluster.ask("scancel", f"{array}_7")
            await until(lambda: scene.has(keys[0], Ended))
            cluster.ask("scancel", array)
            await until(lambda: all(scene.has(key, Ended, Lost, Vanished) for key in keys[:3]))
            await until(lambda: scene.has(third, Requeued))
            cluster.wait_until_left()
            cluster.ask("scontrol", "update", f"JobId={number}", "StartTime=now")
            await until(lambda: scene.runs(third) == 2)
            for key in [third, *rest]:
                end = await scene.ends(key)
                assert (end.outcome, end.exit_code) == (Outcome.COMPLETED, 0)
            assert [scene.runs(key) for key in keys] == [0, 0, 0, 0, 0, 2, 1, 1]
            await until(lambda: all(scene.has(key, Ended) for key in keys))
            ends = {event.key: event.end for event in scene.events if isinstance(event, Ended)}
            assert [ends[key].outcome for key in keys[:5]] == [Outcome.CANCELLED] * 5
