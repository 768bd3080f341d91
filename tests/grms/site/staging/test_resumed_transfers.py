"""Large files go on where they stopped, whichever daemon is killed in the middle, and arrive as they were sent."""

import asyncio
import hashlib
import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from pathlib import Path

import pytest

from grms.client import Client
from grms.daemon.ports import free_port
from grms.site.staging.streams import PROGRESS_BYTES, Progress
from tests.clusters.fake_slurm import FakeSlurm
from tests.grms.site.test_daemon import Process, process
from tests.grms.site.test_real_batch import table
from tests.waiting import TIME_OUT_S, until

CPUS = 8
SIZE = 48 << 20
SCRIPT = "#!/bin/sh\ncp given.bin made.bin\n"


class Growing:
    """Watches a file that is written from the front to the back, and what it has been."""

    def __init__(self, folder: Path, pattern: str) -> None:
        self._folder = folder
        self._pattern = pattern
        self.seen: list[tuple[int, int]] = []

    def look(self) -> int:
        """Returns its size; 0 before there is one."""
        for path in self._folder.glob(self._pattern):
            try:
                status = path.stat()
            except FileNotFoundError:
                continue
            self.seen.append((status.st_ino, status.st_size))
            return status.st_size
        return 0

    async def passes(self, size: int) -> None:
        """Returns when it is larger than that, and not yet whole."""
        await until(lambda: self.look() > size)
        assert self.seen[-1][1] < SIZE

    def check_never_began_anew(self) -> None:
        """Checks that it was one file, which never became smaller."""
        assert len({inode for inode, _ in self.seen}) == 1
        sizes = [size for _, size in self.seen]
        assert sizes == sorted(sizes)


@asynccontextmanager
async def two_processes(folder: Path) -> AsyncIterator[tuple[Process, Process]]:
    """Yields the daemons of north, whose machine is full, and of south, in processes of their own."""
    ports = {name: free_port() for name in ("north", "south")}
    with ExitStack() as clusters:
        async with AsyncExitStack() as daemons:
            made = []
            for name, partner in (("north", "south"), ("south", "north")):
                cluster = FakeSlurm(folder / f"cluster-{name}", nodes=1, cpus=CPUS)
                clusters.callback(cluster.down)
                cluster.up()
                daemon = await daemons.enter_async_context(
                    process(
                        folder,
                        name=name,
                        processors=CPUS,
                        partners={partner: ports[partner]},
                        port=ports[name],
                        lrms=table(cluster, folder / f"spool-{name}"),
                    )
                )
                await daemon.start()
                made.append(daemon)
            yield made[0], made[1]


async def killed_at(daemon: Process, file: Growing, size: int) -> None:
    """Kills a daemon when a file is larger than that, and starts it anew."""
    await file.passes(size)
    assert await daemon.end(signal.SIGKILL) == -signal.SIGKILL
    await daemon.start()


@pytest.mark.usefixtures("forks")
async def test_files_go_on_after_a_kill_of_either_daemon(tmp_path: Path) -> None:
    """From the user to home, from home to the partner, back home, and to the user."""
    content = os.urandom(1 << 20) * (SIZE >> 20)
    (tmp_path / "given.bin").write_bytes(content)
    async with (
        two_processes(tmp_path) as (north, south),
        Client(tmp_path / "north.sock", timeout_s=TIME_OUT_S) as user,
    ):
        await until_async(lambda: _linked(user))
        blocking = f"#!/bin/sh\nuntil test -e {tmp_path}/gate; do sleep 0.1; done\n"
        await user.submit(processors=CPUS, requested_time_s=600.0, script=blocking)
        await until_async(lambda: _is_full(user))

        handed, given, made = (
            Growing(tmp_path, "north.inputs/user-*/content-0"),
            Growing(tmp_path, "south.inputs/guest-*/content-0"),
            Growing(tmp_path, "north.results/*/content-2"),
        )
        submitting = asyncio.create_task(
            user.submit(
                processors=CPUS // 2,
                requested_time_s=600.0,
                script=SCRIPT,
                inputs={"given.bin": tmp_path / "given.bin"},
                outputs=["made.*"],
            )
        )
        await killed_at(north, handed, SIZE // 8)
        job = await submitting
        await killed_at(south, given, SIZE // 8)
        await killed_at(north, given, SIZE // 2)
        await killed_at(south, made, SIZE // 8)
        await killed_at(north, made, SIZE // 2)
        assert (await user.wait(job.job_id)).executed_on == "south"
        results = await user.results(job.job_id, wait=True)
        found = {file.name: (file.size_bytes, file.problem) for file in results.files}
        assert found["made.bin"] == (SIZE, "")
        digest = hashlib.sha256()
        async for some in user.fetch(job.job_id, "made.bin"):
            digest.update(some)
        assert digest.digest() == hashlib.sha256(content).digest()
        for each in (handed, given, made):
            each.check_never_began_anew()
        (tmp_path / "gate").touch()


async def until_async(condition: Callable[[], "asyncio.Future[bool]"]) -> None:
    """Returns as soon as what a site is asked holds."""
    while not await condition():  # noqa: ASYNC110  # a site tells nothing of it
        await asyncio.sleep(0.02)


def _linked(user: Client) -> "asyncio.Future[bool]":
    async def ask() -> bool:
        return all(each.reachable for each in await user.partners())

    return asyncio.ensure_future(ask())


def _is_full(user: Client) -> "asyncio.Future[bool]":
    async def ask() -> bool:
        found = await user.status()
        return found.lrms_reachable and found.processors_free == 0

    return asyncio.ensure_future(ask())


def test_what_has_come_is_no_failure() -> None:
    """Each good part of a file counts once, and no more of it than there is."""
    progress = Progress(3 * PROGRESS_BYTES)
    assert not progress.taken()
    progress.note(PROGRESS_BYTES)
    assert progress.taken()
    assert not progress.taken()
    progress.note(PROGRESS_BYTES - 1)
    assert not progress.taken()
    progress.note(1)
    assert progress.taken()
    progress.note(PROGRESS_BYTES)
    assert not progress.taken()
