"""Two sites above batch systems: of what a job has left, nothing is deleted that nobody has copied."""

import asyncio
import re
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from grms.cli.main import run_command
from grms.client import Client
from grms.daemon.ports import free_port
from grms.v1 import job_pb2
from tests.clusters.fake_slurm import FakeSlurm
from tests.grms.site.daemons import Running, document, running
from tests.grms.site.staging.test_patterns_travel import starts_at
from tests.grms.site.test_real_batch import full_and_half, table
from tests.waiting import TIME_OUT_S, until

CPUS = 8
SCRIPT = """#!/bin/sh
while ! test -e {gate}; do sleep 0.1; done
head -c 5000 /dev/zero
echo small >small
echo more >more
"""


async def submitted(site: Running, script: str, processors: int) -> job_pb2.Job:
    """Submits a job that declares one of its two files."""
    request = job_pb2.SubmitRequest(idempotency_key=f"{processors}")
    request.request.processors, request.request.requested_time_s = processors, 600.0
    request.request.program.script = script
    request.request.program.outputs.append("small")
    job: job_pb2.Job = await site.jobs.Submit(request, timeout=TIME_OUT_S)
    return job


async def test_what_nobody_has_copied_stays_where_the_job_ran(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """What is too large and what was not declared, at the partner and at home; users and operators are told where."""
    ports = {name: free_port() for name in ("north", "south")}
    gate = tmp_path / "gate"
    with ExitStack() as clusters, capture_logs() as log:
        async with AsyncExitStack() as daemons:
            sites = {}
            for name, partner in (("north", "south"), ("south", "north")):
                cluster = FakeSlurm(tmp_path / f"cluster-{name}", nodes=1, cpus=CPUS)
                clusters.callback(cluster.down)
                cluster.up()
                lrms = table(cluster, tmp_path / f"spool-{name}")
                written = document(
                    tmp_path, name, CPUS, {partner: ports[partner]}, ports[name], lrms=lrms
                )
                written["results"] = {"file_bytes": 1000}
                sites[name] = await daemons.enter_async_context(running(written, tmp_path))
            for site in sites.values():
                await site.linked()
            north, south = sites["north"], sites["south"]
            own = await submitted(north, SCRIPT.format(gate=gate), CPUS)
            await until(lambda: starts_at(north, south))
            away = await submitted(north, SCRIPT.format(gate=gate), CPUS // 2)
            await until(lambda: full_and_half(north, south))
            gate.touch()
            for job, name in ((own, "north"), (away, "south")):
                ended = await north.ended(job.job_id)
                assert ended.executed_on == name
                async with Client(tmp_path / "north.sock", timeout_s=TIME_OUT_S) as user:
                    results = await user.results(job.job_id, wait=True)
                problems = {file.name: file.problem for file in results.files}
                assert problems == {"stdout": "too_large", "stderr": "", "small": ""}
                folder = Path(results.folder)
                assert folder.parent == tmp_path / f"spool-{name}"
                assert (results.other_files, results.other_bytes) == (1, 5)
                if name == "south":
                    await until(lambda: any(one["event"] == "results_stay" for one in log))
                    assert not (folder / "small").exists()
                assert (folder / "stdout").stat().st_size == 5000
                assert (folder / "more").read_text() == "more\n"
                capfd.readouterr()
                words = ["fetch", job.job_id, "--socket", str(tmp_path / "north.sock")]
                words += ["--output", str(tmp_path / f"came-{name}")]
                assert await asyncio.to_thread(run_command, words) == 1
                told = f"not brought: 2 files (5005 bytes) at {name} in {folder}, until 2"
                assert re.search(rf"^{re.escape(told)}", capfd.readouterr().err, re.MULTILINE)
            (stay,) = [one for one in log if one["event"] == "results_stay"]
            assert (stay["partner"], stay["files"], stay["bytes"]) == ("north", 2, 5005)
