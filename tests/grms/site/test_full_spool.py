"""A daemon above a batch system whose jobs' folders are on a small disk that is full for a while."""

import errno
from pathlib import Path

import grpc
import pytest
from grpc import aio

from grms.client import Client
from grms.daemon.file_store import ResultStore
from grms.daemon.ports import free_port
from grms.site.model.lifecycle import JobState
from grms.v1 import job_pb2, operator_pb2
from tests.clusters.fake_slurm import FakeSlurm
from tests.clusters.up import up
from tests.grms.site.daemons import Running, document, running
from tests.grms.site.runtime.test_full_disk import fill, mounted
from tests.grms.site.test_real_batch import table
from tests.waiting import TIME_OUT_S, until


async def submitted(site: Running, key: str) -> str:
    """Submits a job with a script, and returns its id."""
    request = job_pb2.SubmitRequest(idempotency_key=key)
    request.request.processors, request.request.requested_time_s = 1, 600.0
    request.request.program.script = "#!/bin/sh\necho said\n"
    job: job_pb2.Job = await site.jobs.Submit(request, timeout=TIME_OUT_S)
    return job.job_id


async def stuck(site: Running) -> dict[str, str]:
    """Returns what operators read of jobs that do not go on."""
    request = job_pb2.ListRequest(all_users=True, stuck=True)
    answer = await site.jobs.List(request, timeout=TIME_OUT_S)
    return {job.job_id: job.stuck for job in answer.jobs}


async def problem(site: Running) -> str:
    """Returns what operators read of the batch system."""
    status = await site.operator.Status(operator_pb2.StatusRequest(), timeout=TIME_OUT_S)
    return str(status.lrms_problem)


async def test_a_full_spool_ends_no_job_and_no_daemon(tmp_path: Path) -> None:
    """Operators see why jobs wait; a restart with the disk as full goes well, and with room all jobs run."""
    small = tmp_path / "small"
    small.mkdir()
    with mounted(small):
        cluster = FakeSlurm(tmp_path / "cluster", nodes=1, cpus=4)
        with up(cluster):
            written = document(tmp_path, "north", 4, lrms=table(cluster, small / "jobs"))
            async with running(written, tmp_path) as site:
                await until(lambda: site.core.driver.load() is not None)
                free = fill(small / "others", inodes=False)
                first = await submitted(site, "1")
                await until(lambda: site.core.driver.problem != "")
                assert "No space left on device" in await problem(site)
                assert list(await stuck(site)) == [first]
                assert "nothing can be written to the jobs' folders" in (await stuck(site))[first]
                assert site.core.driver.load() is None
            async with running(written, tmp_path) as site:
                second = await submitted(site, "2")
                await until(lambda: site.core.driver.problem != "")
                assert set(await stuck(site)) == {first, second}
                free()
                for job_id in (first, second):
                    job = await site.ended(job_id)
                    assert (job.exit_code, job.executed_on) == (0, "north")
                assert await problem(site) == ""
                async with Client(tmp_path / "north.sock", timeout_s=TIME_OUT_S) as user:
                    said = [some async for some in user.fetch(first, "stdout")]
                assert said == [b"said\n"]


async def test_a_partners_job_goes_home_and_runs_there(tmp_path: Path) -> None:
    """From a site whose disk is full, which had said yes before; its home runs it when it has room."""
    small = tmp_path / "small"
    small.mkdir()
    ports = {name: free_port() for name in ("north", "south")}
    with mounted(small):
        clusters = {name: FakeSlurm(tmp_path / f"cluster-{name}", 1, 4) for name in ports}
        for cluster in clusters.values():
            cluster.up()
        folders = {"north": tmp_path / "spool-north", "south": small / "jobs"}
        documents = {
            name: document(
                tmp_path,
                name,
                4,
                {other: ports[other]},
                ports[name],
                lrms=table(clusters[name], folders[name]),
            )
            for name, other in (("north", "south"), ("south", "north"))
        }
        gate = tmp_path / "gate"
        try:
            async with (
                running(documents["north"], tmp_path) as north,
                running(documents["south"], tmp_path) as south,
            ):
                await north.linked()
                await south.linked()
                request = job_pb2.SubmitRequest(idempotency_key="full")
                request.request.processors, request.request.requested_time_s = 4, 600.0
                request.request.program.script = (
                    f"#!/bin/sh\nwhile ! test -e {gate}; do sleep 0.1; done\n"
                )
                own = (await north.jobs.Submit(request, timeout=TIME_OUT_S)).job_id
                await until(lambda: _free(north) == 0 and _free(south) == 4)
                fill(small / "others", inodes=False)
                away = await submitted(north, "away")
                found = north.core.engine.state.job(away)
                assert found is not None
                await until(lambda: south.core.driver.problem != "")
                await until(lambda: not found.partner and found.state is not JobState.OFFERING)
                assert found.outcome is None
                gate.touch()
                assert (await north.ended(own)).exit_code == 0
                ended = await north.ended(away)
                assert (ended.exit_code, ended.executed_on) == (0, "north")
        finally:
            for cluster in clusters.values():
                cluster.down()


async def test_inputs_that_cannot_be_looked_at_are_no_errors_of_the_jobs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever submits is told that the site cannot say now, and asks again."""

    def failing(*_: object) -> str:
        raise OSError(errno.ESTALE, "Stale file handle")

    async with running(document(tmp_path), tmp_path) as site:
        monkeypatch.setattr(ResultStore, "touch", failing)
        request = job_pb2.SubmitRequest(idempotency_key="1")
        request.request.processors, request.request.requested_time_s = 1, 600.0
        request.request.program.script = "#!/bin/sh\n"
        request.request.program.inputs.add(name="in", sha256=bytes(32))
        with pytest.raises(aio.AioRpcError, match="Stale file handle") as caught:
            await site.jobs.Submit(request, timeout=TIME_OUT_S)
        assert caught.value.code() is grpc.StatusCode.UNAVAILABLE


def _free(site: Running) -> int:
    load = site.core.driver.load()
    return -1 if load is None else load.processors_free
