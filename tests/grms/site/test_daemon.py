"""The daemon as a process: it ends in order, is killed, comes back, and says why it cannot."""

import asyncio
import itertools
import resource
import signal
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import grpc
import pytest
import structlog
from grpc import aio
from grpc_health.v1 import health_pb2, health_pb2_grpc

from grms.daemon import loop
from grms.daemon.journal import JournalError
from grms.daemon.ports import free_port
from grms.daemon.rpc.reflection import STABLE
from grms.lrms.base import LrmsError
from grms.site.gateway.gateway import EXHAUSTED_PAUSE_S
from grms.site.main import serve
from grms.site.runtime.journal import Journal
from grms.v1 import job_pb2, job_pb2_grpc
from lrms_sim.util.files import to_toml
from tests.grms.daemon.rpc.test_reflection import asked
from tests.grms.daemon.test_journal import Disk
from tests.grms.site.daemons import document, running, two_sites
from tests.waiting import until


class FailsAtOnce:
    """A discipline that cannot decide."""

    def decide(self, _view: object) -> None:
        """Fails."""
        raise KeyError("no such queue")


class FailsLater:
    """A discipline that cannot stand the end of a job."""

    def decide(self, view: Any) -> None:
        """Starts whatever waits."""
        for job in list(view.waiting):
            view.start(job)

    def ended(self, _view: object, _job: object) -> None:
        """Fails."""
        raise KeyError("no such queue")


pytestmark = pytest.mark.usefixtures("forks")

COMMAND = (sys.executable, "-c", "from grms.command import main; main()", "serve")


class Process:
    """A daemon in a process of its own.

    Args:
        folder: of the test.
        configuration: of the site.
    """

    def __init__(self, folder: Path, configuration: dict[str, Any]) -> None:
        self.path = folder / f"{configuration['name']}.toml"
        self.path.write_text(to_toml(configuration))
        self.log = folder / f"{configuration['name']}.log"
        self.address = f"unix:{configuration['listen']['users']}"
        self.process: subprocess.Popen[bytes] | None = None

    async def start(self, *more: str, descriptors: int | None = None) -> None:
        """Starts it, with so many descriptors at most, and waits until it serves."""
        served = self.said("serving")
        limited = ["/bin/sh", "-c", f'ulimit -n {descriptors}; exec "$@"', "sh"]
        command = [*(limited if descriptors else ()), *COMMAND, *more, str(self.path)]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(  # noqa: S603  # our own command
                command, stderr=log, stdin=subprocess.PIPE
            )
        process = self.process
        await until(lambda: self.said("serving") > served or process.poll() is not None)
        assert process.poll() is None, self.log.read_text()

    def said(self, word: str) -> int:
        """Returns how often its log has a word."""
        return self.log.read_text().count(word) if self.log.exists() else 0

    async def end(self, number: int) -> int:
        """Sends a signal and returns the status with which it ends."""
        assert self.process is not None
        self.process.send_signal(number)
        status = await asyncio.to_thread(self.process.wait, 300)
        self.hang_up()
        return status

    def hang_up(self) -> None:
        """Ends what the daemon reads."""
        if self.process is not None and self.process.stdin is not None:
            self.process.stdin.close()


@asynccontextmanager
async def process(folder: Path, **more: Any) -> AsyncIterator[Process]:
    """Yields a daemon that is not started yet, and leaves none behind."""
    daemon = Process(folder, document(folder, **more))
    try:
        yield daemon
    finally:
        if daemon.process is not None:
            if daemon.process.poll() is None:
                daemon.process.kill()
            daemon.process.wait()
            daemon.hang_up()


def submission(key: str, run_time_s: float = 0.01) -> job_pb2.SubmitRequest:
    """Returns a small job."""
    request = job_pb2.SubmitRequest(idempotency_key=key)
    request.request.processors = 1
    request.request.requested_time_s = 1000.0
    request.request.simulated.run_time_s = run_time_s
    return request


async def test_killed_at_any_moment_it_keeps_what_it_has_acknowledged(tmp_path: Path) -> None:
    """Jobs come all the time while it is killed three times: each acknowledged one runs, once."""
    async with process(tmp_path, processors=64, lrms={"discipline": "easy"}) as daemon:
        acknowledged: dict[str, str] = {}
        stop = asyncio.Event()

        async def submit(worker: int) -> None:
            channel = aio.insecure_channel(
                daemon.address, options=[("grpc.max_reconnect_backoff_ms", 100)]
            )
            async with channel:
                stub: Any = job_pb2_grpc.JobServiceStub(channel)
                for number in itertools.count():
                    key = f"{worker}-{number}"
                    while not stop.is_set():
                        try:
                            job = await stub.Submit(submission(key), timeout=300)
                        except aio.AioRpcError:
                            await asyncio.sleep(0.02)
                            continue
                        acknowledged[key] = job.job_id
                        break
                    if stop.is_set():
                        return

        async with asyncio.TaskGroup() as group:
            await daemon.start()
            for worker in range(5):
                group.create_task(submit(worker), name=f"worker {worker}")
            for turn in range(3):
                had = len(acknowledged)
                await until(lambda had=had: len(acknowledged) > had + 20)  # type: ignore[misc]  # binds the loop's value
                await asyncio.sleep(0.043 * turn)
                await daemon.end(signal.SIGKILL)
                await daemon.start()
            stop.set()
        async with aio.insecure_channel(daemon.address) as channel:
            stub: Any = job_pb2_grpc.JobServiceStub(channel)
            for job_id in acknowledged.values():
                request = job_pb2.WatchRequest(job_id=job_id)
                *_, last = [job async for job in stub.Watch(request, timeout=300)]
                assert last.outcome == 1
        assert await daemon.end(signal.SIGTERM) == 0
    assert len(set(acknowledged.values())) == len(acknowledged)
    with Journal(tmp_path / "home.journal", "home") as journal:
        kinds = Counter(type(record).__name__ for record in journal.records())
    assert kinds["JobReceived"] == kinds["JobKept"] == kinds["JobEnded"]
    assert kinds["JobStarted"] == kinds["JobReceived"]


async def test_a_machine_goes_on_after_a_crash(tmp_path: Path) -> None:
    """A job that runs keeps its start and end across the crash; one that waits keeps its place."""
    async with process(tmp_path, processors=1) as daemon:
        await daemon.start()
        async with aio.insecure_channel(daemon.address) as channel:
            stub: Any = job_pb2_grpc.JobServiceStub(channel)
            first = await stub.Submit(submission("a", 3.0))
            second = await stub.Submit(submission("b", 0.1))
            begin = (await stub.Get(job_pb2.GetRequest(job_id=first.job_id))).start_time_s
        await daemon.end(signal.SIGKILL)
        await daemon.start()
        async with aio.insecure_channel(daemon.address) as channel:
            stub = job_pb2_grpc.JobServiceStub(channel)
            request = job_pb2.WatchRequest(job_id=second.job_id)
            *_, last = [job async for job in stub.Watch(request, timeout=300)]
            ended = await stub.Get(job_pb2.GetRequest(job_id=first.job_id))
        assert ended.start_time_s == begin
        assert ended.end_time_s == pytest.approx(begin + 3.0, abs=1e-6)
        assert last.start_time_s == pytest.approx(ended.end_time_s, abs=1e-6)


async def test_the_first_signal_ends_it_in_order(tmp_path: Path) -> None:
    """Watchers are told, the socket goes, and the status is 0; the end of its input does the same."""
    async with process(tmp_path) as daemon:
        await daemon.start("--until-eof")
        async with aio.insecure_channel(daemon.address) as channel:
            stub: Any = job_pb2_grpc.JobServiceStub(channel)
            job = await stub.Submit(submission("a", 500.0))
            watch = stub.Watch(job_pb2.WatchRequest(job_id=job.job_id))
            await watch.read()
            ending = asyncio.create_task(daemon.end(signal.SIGTERM), name="end")
            with pytest.raises(aio.AioRpcError) as error:
                while True:
                    await watch.read()
            assert error.value.code() is grpc.StatusCode.UNAVAILABLE
            assert await ending == 0
        assert not (tmp_path / "home.sock").exists()
        await daemon.start("--until-eof")
        daemon.hang_up()
        assert daemon.process is not None
        assert await asyncio.to_thread(daemon.process.wait, 300) == 0


async def test_without_descriptors_it_waits_and_says_so_once(tmp_path: Path) -> None:
    """Under `ulimit -n 64` it serves fewer; with none left it takes no connection until it has some."""
    async with process(tmp_path, mqtt={"enabled": False}) as daemon:
        await daemon.start(descriptors=64)
        assert daemon.said("descriptors_limit_connections") == 1
        assert daemon.process is not None
        pid = daemon.process.pid
        opened = len(list(Path(f"/proc/{pid}/fd").iterdir()))
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (opened, 64))
        with ExitStack() as stack:
            for _ in range(100):
                caller = stack.enter_context(socket.socket(socket.AF_UNIX))
                caller.connect(daemon.address.removeprefix("unix:"))
            await until(lambda: bool(daemon.said("no_connection_can_be_taken")))
            # It looks again and again meanwhile, and has nothing to add.
            lines = daemon.log.read_text().count("\n")
            await asyncio.sleep(2.5 * EXHAUSTED_PAUSE_S)
            assert daemon.log.read_text().count("\n") <= lines + 1
            assert daemon.said("no_connection_can_be_taken") == 1
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (64, 64))
        async with aio.insecure_channel(daemon.address) as channel:
            stub: Any = job_pb2_grpc.JobServiceStub(channel)
            job = await stub.Submit(submission("a"), wait_for_ready=True, timeout=300)
            assert job.job_id == "home-1"
        assert await daemon.end(signal.SIGTERM) == 0


async def test_it_says_why_it_cannot_serve(tmp_path: Path) -> None:
    """A second daemon, a taken port: a sentence and status 2, never a traceback."""
    port = free_port()
    async with process(tmp_path, port=port) as daemon:
        await daemon.start()
        other = tmp_path / "other"
        other.mkdir()
        taken_port = Process(other, document(other, "other", port=port))
        taken_socket = Process(
            other, document(other, "home") | {"listen": {"users": str(tmp_path / "home.sock")}}
        )
        missing = Process(other, document(other / "nowhere", "lost"))
        for path, text in (
            (daemon.path, "another process has this journal"),
            (missing.path, "the journal's folder must exist"),
        ):
            with pytest.raises(JournalError, match=text):
                await asyncio.to_thread(serve, path, structlog.get_logger())
        expected = (
            (taken_port.path, f"cannot listen for partners on 127.0.0.1:{port}"),
            (taken_socket.path, "another process listens on"),
        )
        runs = await asyncio.gather(
            *(
                asyncio.to_thread(
                    subprocess.run, [*COMMAND, str(path)], capture_output=True, check=False
                )
                for path, _ in expected
            )
        )
        for done, (_, text) in zip(runs, expected, strict=True):
            words = done.stderr.decode()
            assert done.returncode == 2, words
            assert text in words
            assert "Traceback" not in words
            assert "add_port.cc" not in words


async def test_a_full_disk_stops_new_work_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the journal has no room submissions are refused and jobs kept; with room all goes on."""
    monkeypatch.setattr(loop, "RETRY_S", 0.02)
    async with running(document(tmp_path, "full"), tmp_path) as site:
        disk = Disk(monkeypatch)
        disk.full_after(10_000)
        acknowledged = []
        tries: list[asyncio.Task[job_pb2.Job]] = []
        number = 0
        while not site.core.engine.problem:
            task = asyncio.create_task(
                site.submit(f"k{number}", name="x" * 100, run_time_s=500.0), name="submit"
            )
            tries.append(task)
            await asyncio.wait([task], timeout=0.3)
            if task.done() and not task.exception():
                acknowledged.append(task.result().job_id)
            number += 1
        assert "disk is full" in site.core.engine.problem
        with pytest.raises(aio.AioRpcError) as error:
            await site.submit("refused")
        assert error.value.code() is grpc.StatusCode.UNAVAILABLE
        assert "the journal cannot be written" in (error.value.details() or "")
        found = await site.jobs.Get(job_pb2.GetRequest(job_id=acknowledged[0]))
        assert found.job_id == acknowledged[0]
        disk.works()
        await until(lambda: not site.core.engine.problem)
        await asyncio.wait(tries)
        unsaid = [task.exception() for task in tries if task.exception()]
        assert unsaid
        for told in unsaid:
            assert isinstance(told, aio.AioRpcError)
            assert told.code() is grpc.StatusCode.UNAVAILABLE
            assert "ask again then, with the same key" in (told.details() or "")
        # What was being written then has been taken; asking again makes no second job of it.
        again = [
            (await site.submit(f"k{key}", name="x" * 100, run_time_s=500.0)).job_id
            for key in range(number)
        ]
        assert again[: len(acknowledged)] == acknowledged
        assert len(set(again)) == number
        assert len(list(site.core.engine.state.jobs())) == number
        kept = site.core.journal.count
    async with running(document(tmp_path, "full"), tmp_path) as site:
        assert site.core.journal.count >= kept


async def test_monitors_and_tools_find_what_they_expect(tmp_path: Path) -> None:
    """The standard services are there: health says SERVING, reflection names the services."""
    async with (
        running(document(tmp_path), tmp_path) as site,
        aio.insecure_channel(site.users_address) as channel,
    ):
        health: Any = health_pb2_grpc.HealthStub(channel)
        answer = await health.Check(health_pb2.HealthCheckRequest(service="grms.v1.JobService"))
        assert answer.status == health_pb2.HealthCheckResponse.SERVING
        answers = await asked(channel, STABLE, list_services="")
        names = {service.name for service in answers.list_services_response.service}
        assert {"grms.v1.JobService", "grms.v1.OperatorService"} <= names


async def test_a_full_site_gives_work_away(tmp_path: Path) -> None:
    """The whole way: a job that does not fit is accepted by the partner and ends for its user."""
    async with two_sites(tmp_path) as (home, away):
        await home.submit("fills", processors=4, run_time_s=30.0)
        job = await home.submit("goes", processors=3)
        ended = await home.ended(job.job_id)
        assert ended.executed_on == "away"
        assert ended.reason == "ran at away"
        kinds = [type(record).__name__ for record in away.core.journal.records()]
        assert kinds[:3] == ["GuestAccepted", "JobStarted", "JobEnded"]


@pytest.mark.parametrize("kind", [FailsAtOnce, FailsLater])
async def test_a_queue_that_fails_ends_the_daemon_with_its_reason(
    tmp_path: Path, kind: type
) -> None:
    """A discipline of a user's may fail as a job comes, or long after; the job is in the journal."""
    configuration = document(
        tmp_path, lrms={"discipline": f"{__name__}:{kind.__name__}"}, mqtt={"enabled": False}
    )
    reason = f"discipline '{kind.__name__}' has failed: KeyError: 'no such queue'"
    with pytest.raises(LrmsError, match=reason):
        async with running(configuration, tmp_path) as site:
            with suppress(aio.AioRpcError):  # it may fail before the job is answered
                await site.submit("k")
            await site.core.engine.failed.wait()
    assert len(site.core.engine.state.memory.jobs) == 1
