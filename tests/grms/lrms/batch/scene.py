"""An adapter that follows a Slurm of a test's own, for scenes of what operators and crashes do to it."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, Generic, TypeVar

from grms.lrms.base import (
    Appeared,
    Ended,
    Lost,
    LrmsEnd,
    LrmsEvent,
    LrmsJob,
    Program,
    Started,
    Vanished,
)
from grms.lrms.batch.adapter import BatchLrms
from grms.lrms.batch.launcher import Spool
from grms.lrms.slurm.slurm_adapter import SlurmTable
from grms.util.outcomes import Outcome
from tests.clusters.fake_slurm import FakeSlurm
from tests.clusters.slurm import SlurmCluster
from tests.clusters.up import up
from tests.grms.lrms.told import Told, followed
from tests.waiting import TIME_OUT_S, until

Cluster = TypeVar("Cluster", FakeSlurm, SlurmCluster)


class Scene(Told, Generic[Cluster]):
    """An adapter that follows a Slurm of a test's own.

    Attributes:
        cluster: it.
        events: what the adapter has told.

    Args:
        cluster: the Slurm; `up` starts it.
        folder: of the jobs' folders.
        requeue: whether jobs may run anew.
        settings: of the table `[lrms]`, beside those.
    """

    def __init__(
        self,
        cluster: Cluster,
        folder: Path,
        *,
        requeue: bool = False,
        **settings: object,
    ) -> None:
        self.cluster: Cluster = cluster
        self.folder = folder
        self.requeue, self.settings = requeue, settings
        self.events: list[LrmsEvent] = []
        self.lrms = self._made()

    def _made(self) -> BatchLrms:
        place = self.cluster.environment.get("SLURM_CONF")
        found = {"configuration": place} if place else {"programs": self.cluster.programs}  # type: ignore[attr-defined]  # the fake
        table = SlurmTable.model_validate(
            {"kind": "slurm", "requeue": self.requeue, "program_timeout_s": 10.0}
            | found
            | self.settings
        )
        spool = Spool(self.folder / "jobs")
        system = table.system("S", spool.account)
        lrms = BatchLrms(
            system,
            spool,
            poll_s=0.05,
            settle_s=0.0,
            repeats=self.requeue,
            placing=system,
            kept=table.keep_places,
            site="A",  # of `submitted`
        )
        lrms.listen(self._hear)
        return lrms

    def _hear(self, events: Sequence[LrmsEvent]) -> None:
        self.events += events

    @asynccontextmanager
    async def started(self) -> AsyncIterator[None]:
        """Has the Slurm meanwhile, which nobody follows yet; everything has a time limit."""
        with up(self.cluster):
            async with asyncio.timeout(TIME_OUT_S):
                yield

    @asynccontextmanager
    async def up(self) -> AsyncIterator[None]:
        """Follows as long as it is in use."""
        async with self.started(), self.life():
            yield

    @asynccontextmanager
    async def life(self) -> AsyncIterator[None]:
        """Has an adapter of a life of its own."""
        self.lrms = self._made()
        async with followed(self.lrms):
            yield

    async def submitted(self, number: int, *, held: bool = False) -> str:
        """Submits a job that ends when it is let, and returns its key."""
        script = "#!/bin/sh\necho ran >>runs\nwhile ! test -e go; do sleep 0.05; done\n"
        job = LrmsJob(f"A/1/{number}", 1, 600.0, program=Program(script))
        await self.lrms.submit(job, held=held)
        return job.key

    async def running(self, number: int) -> str:
        """Submits such a job, and returns its key when it runs."""
        key = await self.submitted(number)
        await until(lambda: self.has(key, Started) and self.runs(key) == 1)
        return key

    def has(self, key: str, *kinds: type[LrmsEvent]) -> bool:
        """Returns whether such an event was told of a job."""
        return any(isinstance(event, kinds) and event.key == key for event in self.events)  # type: ignore[union-attr]  # of a job

    async def ends(self, key: str) -> LrmsEnd:
        """Lets a job end, and returns how."""
        (self.lrms.folders.place(key) / "go").touch()
        await until(lambda: self.has(key, Ended, Vanished))
        (end,) = [each.end for each in self.events if isinstance(each, Ended) and each.key == key]
        return end

    def rows(self) -> list[list[str]]:
        """Returns states and names of the jobs that the cluster has, as an operator sees them."""
        text = self.cluster.ask("squeue", "-h", "-a", "-t", "all", "-o", "%t|%r|%P|%j")
        return [line.split("|") for line in text.splitlines()]

    def states(self) -> list[str]:
        """Returns the states alone."""
        return sorted(row[0] for row in self.rows())


async def undisturbed(scene: Scene[Any], keys: Sequence[str]) -> None:
    """Checks that running jobs went on, and lets them end."""
    for key in keys:
        assert not scene.has(key, Ended, Vanished, Lost, Appeared)
        end = await scene.ends(key)
        assert (end.outcome, end.exit_code) == (Outcome.COMPLETED, 0)
        assert scene.runs(key) == 1
    anomalies = asdict(scene.lrms.anomalies)
    assert anomalies == dict.fromkeys(anomalies, 0)
