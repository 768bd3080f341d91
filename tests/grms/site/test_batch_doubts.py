"""Sites above batch systems that leave doubts, and what their users and operators see of it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from grms.cli.main import run_command
from grms.daemon.ports import free_port
from grms.v1 import job_pb2, request_pb2
from tests.clusters.fake_slurm import FakeSlurm
from tests.grms.site.daemons import Running, document, running
from tests.waiting import TIME_OUT_S, until

CPUS = 4


@dataclass
class Sites:
    """Two sites that exchange jobs, each above a fake Slurm of its own.

    Attributes:
        folder: where everything is.
        sites: by name.
        clusters: by name.
    """

    folder: Path
    sites: dict[str, Running]
    clusters: dict[str, FakeSlurm]

    async def submit(self, key: str, processors: int = 1) -> job_pb2.Job:
        """Hands in a job at north that notes that it runs, and ends when it is let."""
        script = (
            f"#!/bin/sh\necho {key} >>{self.folder}/ran\n"
            f"while ! test -e {self.folder}/{key}; do sleep 0.05; done\n"
        )
        request = job_pb2.SubmitRequest(idempotency_key=key)
        request.request.processors = processors
        request.request.requested_time_s = 600.0
        request.request.program.script = script
        job: job_pb2.Job = await self.sites["north"].jobs.Submit(request, timeout=TIME_OUT_S)
        return job

    def ran(self) -> list[str]:
        """Returns which jobs have run, each as often as it has."""
        path = self.folder / "ran"
        return path.read_text().split() if path.exists() else []

    async def ends(self, key: str, job_id: str) -> job_pb2.Job:
        """Lets a job end, and returns it."""
        await until(lambda: key in self.ran())
        (self.folder / key).touch()
        return await self.sites["north"].ended(job_id)

    async def operator(self, *words: str, site: str = "north") -> int:
        """Runs a command of an operator's."""
        command = [*words, "--socket", str(self.folder / f"{site}.sock")]
        return await asyncio.to_thread(run_command, command)


@asynccontextmanager
async def two_sites(folder: Path) -> AsyncIterator[Sites]:
    """Has them as long as they are used."""
    ports = {name: free_port() for name in ("north", "south")}
    found = Sites(folder, {}, {})
    with ExitStack() as clusters:
        for name in ports:
            cluster = FakeSlurm(folder / f"cluster-{name}", nodes=1, cpus=CPUS)
            cluster.up()
            clusters.callback(cluster.down)
            found.clusters[name] = cluster
        async with AsyncExitStack() as daemons:
            for name, partner in (("north", "south"), ("south", "north")):
                cluster = found.clusters[name]
                lrms = {
                    "kind": "slurm",
                    "poll_s": 0.2,
                    "settle_s": 0.0,
                    "spool": str(folder / f"spool-{name}"),
                    "programs": cluster.programs,
                }
                written = document(
                    folder, name, CPUS, {partner: ports[partner]}, ports[name], lrms=lrms
                )
                found.sites[name] = await daemons.enter_async_context(running(written, folder))
            for site in found.sites.values():
                await site.linked()
            yield found


def completed(job: job_pb2.Job, where: str) -> bool:
    """Returns whether a job has ended well at a site."""
    return (job.outcome, job.executed_on) == (request_pb2.OUTCOME_COMPLETED, where)


@pytest.mark.parametrize("taken", [False, True])
async def test_a_submission_at_the_moment_of_a_death_goes_on(
    tmp_path: Path, taken: bool, capfd: pytest.CaptureFixture[str]
) -> None:
    """At home, and as a guest: whether the controller had taken it or not, each runs once.

    Meanwhile it is shown as stuck.
    """
    async with two_sites(tmp_path) as both:
        north, south = (both.clusters[name].machine for name in ("north", "south"))
        if taken:
            north.loses = 1
        else:
            north.drops = 1
        first = await both.submit("first", CPUS)
        await until(lambda: north.loses == north.drops == 0)
        north.away = True
        memory = both.sites["north"].core.engine.state.memory
        await until(lambda: bool(memory.lrms_away))
        capfd.readouterr()
        assert await both.operator("jobs", "--stuck", "--all") == 0
        out = capfd.readouterr().out
        assert first.job_id in out
        assert "the batch system does not answer" in out
        north.away = False
        await until(lambda: both.ran() == ["first"])
        # North is full now, so that the next one goes to south.
        load = both.sites["north"].core.driver.load
        await until(lambda: (found := load()) is not None and found.processors_free == 0)
        if taken:
            south.loses = 1
        else:
            south.drops = 1
        second = await both.submit("second")
        await until(lambda: both.ran() == ["first", "second"])
        assert south.loses == south.drops == 0
        assert completed(await both.ends("second", second.job_id), "south")
        assert completed(await both.ends("first", first.job_id), "north")
        assert both.ran() == ["first", "second"]


async def test_a_job_that_no_table_shows_is_shown_as_stuck(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """By commands and figures, own jobs and guests; it goes on, and nobody cancels it."""
    async with two_sites(tmp_path) as both:
        north, south = both.sites["north"], both.sites["south"]
        first = await both.submit("first", CPUS)
        await until(lambda: both.ran() == ["first"])
        load = north.core.driver.load
        await until(lambda: (found := load()) is not None and found.processors_free == 0)
        second = await both.submit("second")
        await until(lambda: both.ran() == ["first", "second"])
        memories = [site.core.engine.state.memory for site in (north, south)]
        for cluster in both.clusters.values():
            cluster.machine.shows = 0
        await until(lambda: [len(memory.unseen) for memory in memories] == [1, 1])
        capfd.readouterr()
        assert await both.operator("jobs", "--stuck", "--all") == 0
        out = capfd.readouterr().out
        assert first.job_id in out
        assert "it is not known where it stands: its table does not show it" in out
        for site in ("north", "south"):
            assert await both.operator("status", site=site) == 0
            assert "batch system: it is not known where 1 jobs stand" in capfd.readouterr().out
        job = north.core.engine.state.job(first.job_id)
        assert job is not None
        assert job.outcome is None
        for cluster in both.clusters.values():
            cluster.machine.shows = None
        await until(lambda: [len(memory.unseen) for memory in memories] == [0, 0])
        assert await both.operator("jobs", "--stuck", "--all") == 0
        assert first.job_id not in capfd.readouterr().out
        assert completed(await both.ends("second", second.job_id), "south")
        assert completed(await both.ends("first", first.job_id), "north")
        assert both.ran() == ["first", "second"]
