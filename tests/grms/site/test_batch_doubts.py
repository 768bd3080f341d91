"""Sites above batch systems that leave doubts, and what their users and operators see of it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from grms.cli.main import run_command
from grms.daemon.ports import free_port
from grms.lrms.batch.adapter import BatchLrms
from grms.lrms.batch.queue_snapshot import JobRow
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
async def two_sites(folder: Path, **more: Any) -> AsyncIterator[Sites]:
    """Has them as long as they are used; `more` is of north's configuration."""
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
                values = {"lrms": lrms, **(more if name == "north" else {})}
                written = document(
                    folder, name, CPUS, {partner: ports[partner]}, ports[name], **values
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


@pytest.mark.parametrize("moment", ["hold", "cancel", "never"])
async def test_what_an_administrator_cancels_as_it_leaves_goes_to_no_partner(
    tmp_path: Path, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """South holds a place and north's Slurm is to let the job go; who is faster has ended it."""
    async with two_sites(tmp_path, reoffer="1s") as both:
        north = both.sites["north"]
        first = await both.submit("first", CPUS)
        await until(lambda: both.ran() == ["first"])
        load = north.core.driver.load
        await until(lambda: (found := load()) is not None and found.processors_free == 0)
        second = await both.submit("second", CPUS)
        await until(lambda: both.ran() == ["first", "second"])
        lrms = north.core.driver.lrms
        assert isinstance(lrms, BatchLrms)
        if moment != "never":
            right = getattr(lrms._system, moment)  # the moment before a call

            async def overtaken(row: JobRow) -> Any:
                both.clusters["north"].ask("scancel", row.number)
                return await right(row)

            monkeypatch.setattr(lrms._system, moment, overtaken)
        third = await both.submit("third", CPUS)
        assert completed(await both.ends("second", second.job_id), "south")
        if moment == "never":
            assert completed(await both.ends("third", third.job_id), "south")
        else:
            job = await north.ended(third.job_id)
            assert job.outcome == request_pb2.OUTCOME_CANCELLED
            assert job.reason.startswith("cancelled in the batch system")
            south = both.sites["south"].core.engine.state.memory
            await until(lambda: not south.reserved)
        assert completed(await both.ends("first", first.job_id), "north")
        ran = ["first", "second"] + ["third"] * (moment == "never")
        assert both.ran() == ran
