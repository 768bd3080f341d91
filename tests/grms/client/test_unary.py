"""Submissions without gRPC's library."""

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

from grms.client.errors import SiteError
from grms.client.submission import submit_quickly
from grms.client.unary import REQUEST_BYTES_MAX, ask
from grms.v1 import job_pb2
from tests.grms.cli.test_site_cli import grms
from tests.grms.site.daemons import document, running
from tests.grms.site.gateway.raw_http2 import END_HEADERS, END_STREAM, data, frame, settings
from tests.waiting import run

WITHOUT = """
import sys
from grms.cli.main import run_command

status = run_command(sys.argv[1:])
assert "grpc" not in sys.modules
sys.exit(status)
"""

JOB: dict[str, Any] = {"processors": 1, "requested_time_s": 9.0}


def test_the_command_submits_without_grpc(tmp_path: Path) -> None:
    """Once, with all that it was told."""

    async def scene() -> None:
        async with running(document(tmp_path), tmp_path) as site:
            words = ["submit", "--socket", str(tmp_path / "home.sock"), "-p", "2", "-t", "60"]
            words += ["--run-time", "5", "--name", "n"]
            command = await asyncio.create_subprocess_exec(sys.executable, "-c", WITHOUT, *words)
            assert await command.wait() == 0
            (job,) = site.core.engine.state.jobs()
            assert (job.name, job.request.processors) == ("n", 2)

    run(scene)


def test_a_key_makes_it_the_same_job_either_way(tmp_path: Path) -> None:
    """So that gRPC may ask again; a request of several frames goes as well."""

    async def scene() -> None:
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

    run(scene)


def test_what_is_no_plain_answer_is_left_to_grpc(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A refusal, which the library can read; what is longer than a window is not even sent."""

    async def scene() -> None:
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

    run(scene)


def test_an_answer_may_be_long(tmp_path: Path) -> None:
    """Longer than what both sides would have on the way to begin with."""

    async def scene() -> None:
        socket = tmp_path / "home.sock"
        async with running(document(tmp_path), tmp_path) as site:
            job_id = await asyncio.to_thread(submit_quickly, socket, 9.0, **JOB, name="n" * 100)
            assert job_id is not None
            wanted = [job_pb2.GetRequest(job_id=job_id)] * 1000
            request = job_pb2.GetManyRequest(jobs=wanted).SerializeToString()
            said = await asyncio.to_thread(
                ask, socket, "/grms.v1.JobService/GetMany", request, 60.0
            )
            assert said is not None
            assert len(said) > 2 << 16
            answers = job_pb2.GetManyResponse.FromString(said).answers
            assert [each.job.job_id for each in answers] == [job_id] * 1000
            assert len(list(site.core.engine.state.jobs())) == 1

    run(scene)


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
def test_whatever_else_listens_gives_no_answer(tmp_path: Path, answer: bytes) -> None:
    """Nor does what listens nowhere."""
    path = tmp_path / "x.sock"

    async def scene() -> None:
        async def told(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(answer)
            writer.close()
            await writer.wait_closed()

        assert await asyncio.to_thread(ask, path, "/a.B/C", b"", 5.0) is None
        async with await asyncio.start_unix_server(told, path):
            assert await asyncio.to_thread(ask, path, "/a.B/C", b"", 5.0) is None

    run(scene)


def test_an_answer_that_is_no_job_is_an_error_for_its_user(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Something else may listen there and speak gRPC."""
    path = tmp_path / "x.sock"
    said, status = b"\xff\xff\xff", b"\0\x0bgrpc-status\x010"
    answer = settings() + frame(1, END_HEADERS, 1, b"\x88")
    answer += data(1, b"\0" + len(said).to_bytes(4) + said)
    answer += frame(1, END_HEADERS | END_STREAM, 1, status)

    async def scene() -> None:
        async def told(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(answer)
            await reader.read()
            writer.close()
            await writer.wait_closed()

        async with await asyncio.start_unix_server(told, path):
            assert await asyncio.to_thread(ask, path, "/a.B/C", b"", 5.0) == said
            assert await grms("submit", "--socket", path, "-p", "1", "-t", "9") == 2
        assert f"{path} does not say what becomes of the job" in capsys.readouterr().err

    run(scene)


def test_who_says_nothing_is_not_waited_for(tmp_path: Path) -> None:
    """Longer than told."""
    path = tmp_path / "x.sock"

    async def scene() -> None:
        gone = asyncio.Event()

        async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read()
            writer.close()
            gone.set()

        async with await asyncio.start_unix_server(silent, path):
            assert await asyncio.to_thread(ask, path, "/a.B/C", b"", 0.05) is None
            await gone.wait()

    run(scene)
