"""Calls without gRPC's library."""

import asyncio
import os
import socket
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from grms.client import SyncClient
from grms.client.errors import SiteError
from grms.client.submission import submit_quickly, submit_request
from grms.client.unary import REQUEST_BYTES_MAX, Connection, UnaryCalls, ask
from grms.v1 import job_pb2
from tests.grms.cli.test_site_cli import grms
from tests.grms.site.daemons import document, running
from tests.grms.site.gateway.raw_http2 import END_HEADERS, END_STREAM, data, frame, settings

WITHOUT = """
import sys
from grms.cli.main import run_command

for words in sys.argv[1:]:
    assert run_command(words.split(" ")) == 0, words
assert {"asyncio", "grpc", "lrms_sim.workload.requests"}.isdisjoint(sys.modules)
assert "google.protobuf.internal.decoder" not in sys.modules
"""

JOB: dict[str, Any] = {"processors": 1, "requested_time_s": 9.0}


async def test_commands_about_jobs_do_without_grpc(tmp_path: Path) -> None:
    """Nor do they import what they do not need; a job is submitted once, with all that was told of it."""
    async with running(document(tmp_path), tmp_path) as site:
        words = [
            "submit -p 2 -t 60 --run-time 5 --name n",
            "jobs --limit 3",
            "status home-1",
            "cancel home-1",
            "status",
        ]
        command = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", WITHOUT, *words),
            env={**os.environ, "HANSE_SOCKET": str(tmp_path / "home.sock")},
        )
        assert await command.wait() == 0
        (job,) = site.core.engine.state.jobs()
        assert (job.name, job.request.processors, job.cancel_requested) == ("n", 2, True)


async def test_a_key_makes_it_the_same_job_either_way(tmp_path: Path) -> None:
    """So that gRPC may ask again; a request of several frames goes as well."""
    socket = tmp_path / "home.sock"
    async with running(document(tmp_path), tmp_path) as site:
        script = "#" * (REQUEST_BYTES_MAX - 1000)
        job_id = await asyncio.to_thread(
            submit_quickly, socket, 9.0, **JOB, script=script, name="job.sh", key="k"
        )
        assert job_id is not None
        path = tmp_path / "job.sh"
        path.write_text(script)
        numbers = ("-p", "1", "-t", "9", "--script", path, "--key", "k")
        assert await grms("submit", "--socket", socket, *numbers) == 0
        assert [each.job_id for each in site.core.engine.state.jobs()] == [job_id]


async def test_what_is_no_plain_answer_is_left_to_grpc(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A refusal, which the library can read; what is longer than a window is not even sent."""
    socket = tmp_path / "home.sock"
    async with running(document(tmp_path), tmp_path) as site:
        wide = JOB | {"processors": 999}
        with pytest.raises(SiteError, match="999"):
            await asyncio.to_thread(submit_quickly, socket, 9.0, **wide)
        assert await grms("submit", "--socket", socket, "-p", "999", "-t", "9") == 2
        assert "999" in capsys.readouterr().err
        long = JOB | {"script": "#" * REQUEST_BYTES_MAX}
        assert await asyncio.to_thread(submit_quickly, socket, 9.0, **long) is None
        assert not list(site.core.engine.state.jobs())


async def test_an_answer_may_be_long(tmp_path: Path) -> None:
    """Longer than what both sides would have on the way to begin with."""
    socket = tmp_path / "home.sock"
    async with running(document(tmp_path), tmp_path) as site:
        job_id = await asyncio.to_thread(submit_quickly, socket, 9.0, **JOB, name="n" * 100)
        assert job_id is not None
        wanted = [job_pb2.GetRequest(job_id=job_id)] * 1000
        request = job_pb2.GetManyRequest(jobs=wanted).SerializeToString()
        said = await asyncio.to_thread(ask, socket, "/grms.v1.JobService/GetMany", request, 60.0)
        assert said is not None
        assert len(said) > 2 << 16
        answers = job_pb2.GetManyResponse.FromString(said).answers
        assert [each.job.job_id for each in answers] == [job_id] * 1000
        assert len(list(site.core.engine.state.jobs())) == 1


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        b"\0\0\4\3\0\0\0\0\1\0\0\0\7",
        b"\0\0\0\7\0\0\0\0\0",
        b"\0\0\3\0\0\0\0\0\1\0\0\0\0\0\0\1\5\0\0\0\1",
        b"\0\0\0\0\x08\0\0\0\1",
    ],
    ids=["nothing", "another protocol", "reset", "going away", "half a message", "padded"],
)
async def test_whatever_else_listens_gives_no_answer(tmp_path: Path, answer: bytes) -> None:
    """Nor does what listens nowhere."""
    path = tmp_path / "x.sock"

    async def told(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(answer)
        writer.close()
        await writer.wait_closed()

    assert await asyncio.to_thread(ask, path, "/a.B/C", b"", 5.0) is None
    async with await asyncio.start_unix_server(told, path):
        assert await asyncio.to_thread(ask, path, "/a.B/C", b"", 5.0) is None


async def test_an_answer_that_is_no_job_is_an_error_for_its_user(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Something else may listen there and speak gRPC."""
    path = tmp_path / "x.sock"
    said, status = b"\xff\xff\xff", b"\0\x0bgrpc-status\x010"
    answer = settings() + frame(1, END_HEADERS, 1, b"\x88")
    answer += data(1, b"\0" + len(said).to_bytes(4) + said)
    answer += frame(1, END_HEADERS | END_STREAM, 1, status)

    async def told(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(answer)
        await reader.read()
        writer.close()
        await writer.wait_closed()

    async with await asyncio.start_unix_server(told, path):
        assert await asyncio.to_thread(ask, path, "/a.B/C", b"", 5.0) == said
        assert await grms("submit", "--socket", path, "-p", "1", "-t", "9") == 2
    assert f"{path} does not say what becomes of the job" in capsys.readouterr().err


async def test_who_says_nothing_is_not_waited_for(tmp_path: Path) -> None:
    """Longer than told."""
    path = tmp_path / "x.sock"
    gone = asyncio.Event()

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()
        gone.set()

    async with await asyncio.start_unix_server(silent, path):
        assert await asyncio.to_thread(ask, path, "/a.B/C", b"", 0.05) is None
        await gone.wait()


def fields(**said: str) -> bytes:
    """Returns a block of fields that are spelled out; `_` stands for `-`."""
    found = b""
    for name, value in said.items():
        found += b"\0" + _word(name.replace("_", "-")) + _word(value)
    return found


def _word(text: str) -> bytes:
    return bytes([len(text)]) + text.encode()


def answered(stream: int, said: bytes, block: bytes, *, flags: int = END_HEADERS) -> bytes:
    """Returns the frames of an answer."""
    found = frame(1, END_HEADERS, stream, b"\x88")
    found += data(stream, b"\0" + len(said).to_bytes(4) + said)
    return found + frame(1, flags | END_STREAM, stream, block)


@asynccontextmanager
async def answering(path: Path, *answers: bytes, closes: bool = False) -> AsyncIterator[list[int]]:
    """Lets something answer one connection after another; yields what it reads of each, in bytes."""
    seen: list[int] = []
    serving: list[asyncio.Task[Any]] = []

    async def told(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        serving.append(task)
        at = len(seen)
        seen.append(len(await reader.read(1 << 16)))
        writer.write(settings() + answers[at])
        if closes:
            writer.write_eof()
        while some := await reader.read(1 << 16):
            seen[at] += len(some)
        writer.close()
        await writer.wait_closed()

    async with await asyncio.start_unix_server(told, path):
        yield seen
        await asyncio.gather(*serving)


DONE = fields(grpc_status="0")


@pytest.mark.parametrize(
    ("block", "flags", "field"),
    [
        (fields(grpc_status="5", grpc_message="no%20job"), END_HEADERS, ""),
        (b"\x20" + fields(grpc_status="5", grpc_message="no job"), END_HEADERS, ""),
        (b"\x0f\x10\x01x" + fields(grpc_status="5", grpc_message="no job"), END_HEADERS, ""),
        (b"\x7f\x80\x01\x01x\xbe" + fields(grpc_status="5", grpc_message="no job"), 4, ""),
    ],
    ids=["plain", "size of the table", "named by the table", "a long number"],
)
async def test_a_refusal_is_read_among_all_kinds_of_fields(
    tmp_path: Path, block: bytes, flags: int, field: str
) -> None:
    """HPACK has five of them."""
    async with answering(tmp_path / "x.sock", answered(1, b"", block, flags=flags)):
        with pytest.raises(SiteError, match="no job") as refused:
            await asyncio.to_thread(ask, tmp_path / "x.sock", "/a.B/C", b"", 5.0)
        assert (refused.value.code, refused.value.field) == ("NOT_FOUND", field)


@pytest.mark.parametrize(
    "answer",
    [
        answered(1, b"x", DONE, flags=0),
        answered(1, b"x", DONE, flags=END_HEADERS | 0x20),
        answered(1, b"x", DONE[:-1]),
        answered(1, b"x", b"\0\x8b" + b"x" * 11 + b"\x010"),
        answered(1, b"x", fields(grpc_status="5", grpc_status_details_bin="CAU=")),
        answered(3, b"x", DONE),
        answered(1, b"x", fields(grpc_status="14")),
    ],
    ids=["in pieces", "weighed", "cut off", "packed", "details", "another stream", "away"],
)
async def test_what_is_not_read_here_is_no_answer(tmp_path: Path, answer: bytes) -> None:
    """The library asks again; it knows all of it."""
    async with answering(tmp_path / "x.sock", answer, closes=True):
        assert await asyncio.to_thread(ask, tmp_path / "x.sock", "/a.B/C", b"", 5.0) is None


async def test_a_connection_is_used_again_until_it_is_worn(tmp_path: Path) -> None:
    """Many calls, each on a stream of its own; a site that wants to know whether somebody is there is told."""
    path = tmp_path / "home.sock"

    def program() -> list[bytes | None]:
        with Connection(path) as connection:
            found = [connection.ask(GET, request("home-1"), 9.0) for _ in range(50)]
            assert connection.is_used
            assert not connection.is_worn
            return found

    async with running(document(tmp_path), tmp_path):
        await asyncio.to_thread(submit_quickly, path, 9.0, **JOB, name="n")
        found = await asyncio.to_thread(program)
        assert {job_pb2.Job.FromString(each or b"").name for each in found} == {"n"}


GET = "/grms.v1.JobService/Get"


def request(job_id: str) -> bytes:
    """Returns the question for a job."""
    return job_pb2.GetRequest(job_id=job_id).SerializeToString()


async def test_a_site_that_has_hung_up_is_asked_anew(tmp_path: Path) -> None:
    """Between two calls it may have been started again."""
    path = tmp_path / "x.sock"
    said = job_pb2.Job(job_id="a-1").SerializeToString()
    ping = frame(6, 0, 0, b"12345678")
    async with answering(path, ping + answered(1, said, DONE), answered(1, said, DONE)) as seen:
        calls = UnaryCalls(path, 5.0)
        ask_once = partial(calls.ask, calls.jobs.Get, job_pb2.GetRequest(job_id="a-1"))
        assert (await asyncio.to_thread(ask_once)).job_id == "a-1"
        assert len(seen) == 1
        calls._connections._idle[0]._socket.shutdown(socket.SHUT_RDWR)  # type: ignore[union-attr]  # it is connected
        assert (await asyncio.to_thread(ask_once)).job_id == "a-1"
        assert len(seen) == 2
        calls.close()


async def test_a_fork_has_a_connection_of_its_own(tmp_path: Path) -> None:
    """On that of its parent each of them would read what the other one has asked for."""
    path = tmp_path / "x.sock"
    said = job_pb2.Job(job_id="a-1").SerializeToString()
    twice = answered(1, said, DONE) + answered(3, said, DONE)

    def program() -> int:
        calls = UnaryCalls(path, 5.0)
        wanted = job_pb2.GetRequest(job_id="a-1")
        assert calls.ask(calls.jobs.Get, wanted).job_id == "a-1"
        child = os.fork()
        if not child:
            code = 1
            try:
                code = int(calls.ask(calls.jobs.Get, wanted).job_id != "a-1")
            finally:
                os._exit(code)
        _, status = os.waitpid(child, 0)
        assert calls.ask(calls.jobs.Get, wanted).job_id == "a-1"
        calls.close()
        return status

    async with answering(path, twice, answered(1, said, DONE)) as seen:
        assert await asyncio.to_thread(program) == 0
        assert len(seen) == 2


async def test_all_attempts_together_have_the_time_of_the_call(tmp_path: Path) -> None:
    """Of a site that says nothing: on a connection that was used before, on another one, and by the library."""
    path = tmp_path / "x.sock"
    left: list[float] = []
    said = job_pb2.Job(job_id="a-1").SerializeToString()

    def program() -> None:
        calls = UnaryCalls(path, 0.3, lambda *asked: left.append(asked[2]))
        wanted = job_pb2.GetRequest(job_id="a-1")
        assert calls.ask(calls.jobs.Get, wanted).job_id == "a-1"
        assert calls.ask(calls.jobs.Get, wanted) is None
        calls.close()

    async with answering(path, answered(1, said, DONE), b"") as seen:
        await asyncio.to_thread(program)
        assert len(seen) == 1
        assert left == [0.0]


async def test_a_refusal_says_which_field_it_is_about(tmp_path: Path) -> None:
    """As with gRPC's library; programs tell a job that was forgotten from one that never was."""
    path = tmp_path / "home.sock"

    def program(told: list[SiteError]) -> None:
        with SyncClient(path, timeout_s=9.0) as site:
            with pytest.raises(SiteError) as unknown:
                site.get("home-7")
            with pytest.raises(SiteError) as wide:
                site.submit(**JOB | {"processors": 999})
            told += [unknown.value, wide.value]
            assert site._started is None  # it was refused at once

    async with running(document(tmp_path), tmp_path):
        told: list[SiteError] = []
        await asyncio.to_thread(program, told)
        assert told[0].never_was
        assert told[1].field == "request.processors"


async def test_what_has_no_plain_answer_is_asked_by_the_library(tmp_path: Path) -> None:
    """A request that is too long to be sent at once; the caller need not know."""
    path = tmp_path / "home.sock"
    wanted = JOB | {"script": "#" * (REQUEST_BYTES_MAX + 1)}

    def program(calls: Callable[[], str]) -> str:
        with SyncClient(path, timeout_s=9.0) as site:
            job = site.submit(**wanted, key="k")
            assert site._started is not None
        with pytest.raises(RuntimeError, match="closed"):
            site.get(job.job_id)
        with pytest.raises(RuntimeError, match="closed"):
            next(site.watch(job.job_id))
        assert calls() == job.job_id
        return job.job_id

    def alone() -> str:
        calls = UnaryCalls(path, 9.0)
        found: str = calls.ask(calls.jobs.Submit, submit_request(**wanted, key="k")).job_id
        calls.close()
        return found

    async with running(document(tmp_path), tmp_path) as site:
        job_id = await asyncio.to_thread(program, alone)
        assert [each.job_id for each in site.core.engine.state.jobs()] == [job_id]
