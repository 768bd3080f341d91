"""A site whose users' jobs are submitted by their deputies, as daemon and processes."""

import asyncio
import os
import pwd
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from grms.client import Client
from grms.lrms.batch.deputies import WithDeputies
from tests.clusters.fake_slurm import PROGRAMS, FakeSlurm
from tests.grms.lrms.test_own_users import USER
from tests.grms.lrms.test_own_users_deputies import AS_USER
from tests.grms.site.daemons import Running, document, running
from tests.waiting import TIME_OUT_S, run, until

UID = pwd.getpwnam(USER).pw_uid

SUBMIT = """
import os, sys
from grms.client import SyncClient
import google.rpc.error_details_pb2, google.rpc.status_pb2
os.setgroups([])
os.setuid(int(sys.argv[1]))
with SyncClient(sys.argv[2], timeout_s=600) as site:
    print(site.submit(processors=1, requested_time_s=60, script="#!/bin/sh\\nexit 0\\n").job_id)
"""


@contextmanager
def deputy(folder: Path) -> Iterator[None]:
    """Has a deputy of `USER` run meanwhile."""
    words = ["deputy", "--socket", str(folder / "north.sock"), "--programs", str(folder / "bin")]
    process = subprocess.Popen(  # noqa: S603  # this program
        [sys.executable, "-c", AS_USER, USER, *words], stdout=subprocess.DEVNULL
    )
    try:
        yield
        assert process.poll() is None
    finally:
        process.kill()
        process.wait(300)


async def submitted(folder: Path) -> str:
    """Submits a job as `USER`, and returns its id."""
    words = (sys.executable, "-c", SUBMIT, str(UID), str(folder / "north.sock"))
    process = await asyncio.create_subprocess_exec(*words, stdout=subprocess.PIPE)
    said, _ = await process.communicate()
    assert process.returncode == 0
    return said.decode().strip()


def is_there(site: Running) -> bool:
    """Returns whether the deputy has come."""
    lrms = site.core.driver.lrms
    assert isinstance(lrms, WithDeputies)
    assert lrms.deputies is not None
    return lrms.deputies.is_there(UID)


async def stuck(folder: Path) -> list[str]:
    """Returns why jobs do not go on, as an operator reads it."""
    async with Client(folder / "north.sock", timeout_s=TIME_OUT_S) as site:
        return [job.stuck async for job in site.jobs(all_users=True, stuck=True)]


def test_jobs_wait_for_a_deputy_and_go_on_with_it_through_restarts() -> None:
    """A daemon and two deputies come and go; each job runs once, as its user."""
    if os.getuid() != 0:
        pytest.skip("deputies of another user: this is not root, who alone can be two here")

    async def scene(folder: Path, cluster: FakeSlurm) -> None:
        lrms: dict[str, Any] = {"kind": "slurm", "poll_s": 0.2, "settle_s": 0.0}
        lrms |= {"spool": str(folder / "jobs"), "programs": cluster.programs}
        lrms |= {"completion_log": cluster.completion_log, "own_jobs": "by-client"}
        configuration = document(folder, "north", 8, lrms=lrms)
        async with running(configuration, folder) as site:
            jobs = [await submitted(folder)]
            while not any("waits for its user's deputy" in why for why in await stuck(folder)):  # noqa: ASYNC110  # asked anew
                await asyncio.sleep(0.05)
        with deputy(folder):
            # The daemon is away as it comes, and it waits for it.
            async with running(configuration, folder) as site:
                await site.ended(jobs[0])
                jobs.append(await submitted(folder))
                await site.ended(jobs[1])
                assert await stuck(folder) == []
            async with running(configuration, folder) as site:
                await until(lambda: is_there(site))
                jobs.append(await submitted(folder))
                await site.ended(jobs[2])
        async with running(configuration, folder) as site:
            jobs.append(await submitted(folder))
            assert not is_there(site)
            with deputy(folder):
                await site.ended(jobs[3])
        lines = Path(cluster.completion_log).read_text().splitlines()
        assert [line.split("UserId=")[1].split("(")[0] for line in lines] == [USER] * 4
        assert all("JobState=COMPLETED" in line for line in lines)

    with tempfile.TemporaryDirectory(prefix="hanse-", dir="/tmp") as name:  # others pass through it
        folder = Path(name)
        cluster = FakeSlurm(folder / "cluster", nodes=1, cpus=8)
        cluster.up()
        (folder / "bin").mkdir()
        for each in PROGRAMS:
            text = f'#!/bin/sh\nFAKE_ACCOUNT=$(id -un) exec {cluster.programs}/{each} "$@"\n'
            (folder / "bin" / each).write_text(text)
            (folder / "bin" / each).chmod(0o755)
        folder.chmod(0o755)
        try:
            run(lambda: scene(folder, cluster))
        finally:
            cluster.down()
