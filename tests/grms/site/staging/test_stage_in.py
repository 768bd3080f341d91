"""Files that jobs are given: handed over in pieces, kept apart, and fetched by who runs the job."""

import asyncio
import hashlib
import threading
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import grpc
import pytest
from grpc import aio

from grms.daemon import file_store
from grms.daemon.file_store import ResultStore
from grms.daemon.job_files import FileLimits, JobFile
from grms.daemon.shared_folders import SharedFolders
from grms.daemon.uploads import JOBS_HELD, Uploads, user_input
from grms.site.runtime.executor_driver import ProgramAwayError, ProgramGoneError
from grms.site.staging.download import NoResultsError
from grms.site.staging.quotas import PartnerQuota, inputs_of
from grms.site.staging.stage_in import (
    InputFetcher,
    InputServer,
)
from grms.site.wire.convert import given_inputs
from grms.v1 import request_pb2, results_pb2
from tests.waiting import TIME_OUT_S, until

CONTENT = b"0123456789"


def a_file(content: bytes = CONTENT, name: str = "in") -> JobFile:
    """Returns what is said of a file."""
    return JobFile(name, len(content), hashlib.sha256(content).digest())


def payload(*files: JobFile) -> bytes:
    """Returns what a job runs that is given some files."""
    request = request_pb2.JobRequest()
    request.program.script = "#!/bin/sh\n"
    for file in files:
        request.program.inputs.add(name=file.name, size_bytes=file.size, sha256=file.sha256)
    return request.SerializeToString(deterministic=True)


@pytest.fixture
def server(tmp_path: Path) -> InputServer:
    """A desk that takes 20 bytes for a file and 30 for a job."""
    return InputServer(ResultStore(tmp_path), FileLimits(20, 30))


async def test_a_file_comes_in_pieces_and_goes_on(server: InputServer) -> None:
    """The answer says where; what begins elsewhere is not taken, and what is whole comes no second time."""
    file = a_file()
    assert await server.lacking("ann", given_inputs(payload(file))) == "in"
    assert await server.put("ann", file, 0, b"0123") == 4
    assert await server.put("ann", file, 0, b"0123") == 4
    assert await server.put("ann", file, 6, b"6789") == 4
    assert await server.lacking("ann", given_inputs(payload(file))) == "in"
    assert await server.put("ann", file, 4, b"456789 and more") == 10
    assert await server.put("ann", file, 0, b"") == 10
    assert await server.lacking("ann", given_inputs(payload(file))) == ""
    assert server.store.path(user_input("ann", file), 0).read_bytes() == CONTENT


async def test_nothing_is_given_of_another_users_files(server: InputServer) -> None:
    """Who knows a digest has not the file."""
    await server.put("ann", a_file(), 0, CONTENT)
    assert await server.lacking("bob", given_inputs(payload(a_file()))) == "in"


async def test_a_file_of_no_bytes_is_one(server: InputServer) -> None:
    """It is there after the first question."""
    assert await server.put("ann", a_file(b""), 0, b"") == 0
    assert await server.lacking("ann", given_inputs(payload(a_file(b"")))) == ""


async def test_a_check_survives_who_has_waited_for_it(
    server: InputServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is made once, and holds up nobody else's files."""
    gate, checks, sound = threading.Event(), list[str](), ResultStore.check

    def slow(store: ResultStore, job_id: str, *args: Any) -> None:
        checks.append(job_id)
        if job_id == user_input("ann", a_file()):
            assert gate.wait(TIME_OUT_S)
        sound(store, job_id, *args)

    monkeypatch.setattr(ResultStore, "check", slow)
    asks = asyncio.create_task(server.put("ann", a_file(), 0, CONTENT))
    await until(lambda: len(checks) == 1)
    asks.cancel()
    assert await server.put("bob", a_file(), 0, CONTENT) == 10
    again = asyncio.create_task(server.put("ann", a_file(), 10, b""))
    await asyncio.sleep(0)
    gate.set()
    assert await again == 10
    assert checks == [user_input(user, a_file()) for user in ("ann", "bob")]
    assert await server.lacking("ann", given_inputs(payload(a_file()))) == ""


async def test_who_is_gone_before_its_turn_leaves_nothing_behind(
    server: InputServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither a task with its content, nor a file."""
    gate, checks, sound = threading.Event(), list[str](), ResultStore.check

    def slow(store: ResultStore, job_id: str, *args: Any) -> None:
        checks.append(job_id)
        assert gate.wait(TIME_OUT_S)
        sound(store, job_id, *args)

    monkeypatch.setattr(ResultStore, "check", slow)
    first = asyncio.create_task(server.put("ann", a_file(), 0, CONTENT))
    await until(lambda: len(checks) == 1)
    before = asyncio.all_tasks()
    others = [a_file(bytes([number])) for number in range(3)]
    waits = [
        asyncio.create_task(server.put("ann", file, 0, bytes([number])))
        for number, file in enumerate(others)
    ]
    await asyncio.sleep(0)
    for each in waits:
        each.cancel()
    await asyncio.wait(waits)
    left = asyncio.all_tasks() - before
    gate.set()
    assert not left
    assert await first == 10
    assert await server.lacking("ann", given_inputs(payload(others[0]))) == "in"
    assert await server.put("ann", others[0], 0, b"\0") == 1


async def test_a_digest_keeps_no_thread_for_itself(
    server: InputServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where there is one thread, other work has it between two pieces."""
    monkeypatch.setattr(file_store, "PIECE_BYTES", 1)
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
    put = asyncio.create_task(server.put("ann", a_file(), 0, CONTENT))
    others = 0
    while not put.done():
        await asyncio.to_thread(int)
        others += 1
    assert await put == 10
    assert others > 10
    assert await server.lacking("ann", given_inputs(payload(a_file()))) == ""


async def test_an_empty_file_is_one_wherever_it_is_said_to_begin(server: InputServer) -> None:
    """All of it is there already."""
    assert await server.put("ann", a_file(b""), 5, b"12345") == 0
    assert await server.lacking("ann", given_inputs(payload(a_file(b"")))) == ""


async def test_another_content_is_thrown_away(server: InputServer) -> None:
    """And can be handed over anew."""
    with pytest.raises(ValueError, match="SHA-256 is not what was said"):
        await server.put("ann", a_file(), 0, b"0123456780")
    assert await server.put("ann", a_file(), 0, CONTENT) == 10


async def test_what_is_too_large_is_not_taken(server: InputServer) -> None:
    """One file, all of a job, and all of a user; a digest is one."""
    with pytest.raises(ValueError, match="at most 20 are taken"):
        await server.put("ann", a_file(b"x" * 21), 0, b"x")
    with pytest.raises(ValueError, match="it must have 32"):
        await server.put("ann", JobFile("in", 1, b"x"), 0, b"x")
    files = [a_file(bytes([number]) * 20, f"in{number}") for number in range(255)]
    assert "a job is given at most 30" in await server.lacking(
        "ann", given_inputs(payload(*files[:2]))
    )
    taken = 0
    with pytest.raises(ValueError, match=f"files of {JOBS_HELD * 30} bytes here"):
        for number, file in enumerate(files):
            await server.put("ann", file, 0, bytes([number]) * 20)
            taken += 1
    assert taken == JOBS_HELD * 30 // 20
    assert await server.put("bob", a_file(), 0, CONTENT) == 10


async def test_files_that_are_begun_give_no_more_room(server: InputServer) -> None:
    """Each piece counts, not what a file had when it was begun."""
    files = [a_file(bytes([number]) * 20, f"in{number}") for number in range(40)]
    for number, file in enumerate(files):
        assert await server.put("ann", file, 0, bytes([number])) == 1
    with pytest.raises(ValueError, match=f"files of {JOBS_HELD * 30} bytes here"):
        for number, file in enumerate(files):
            await server.put("ann", file, 1, bytes([number]) * 19)
    assert server.store.held("user-")[1] <= JOBS_HELD * 30


async def test_a_user_has_so_many_files_here_and_no_more(tmp_path: Path) -> None:
    """Also of files that have no bytes yet; what does not begin with its first byte is none."""
    server = Uploads(ResultStore(tmp_path), FileLimits(20, 30), files_held=3)
    for number in range(5):
        assert await server.put("ann", a_file(bytes([number, 7])), 1, b"x") == 0
    assert server.store.held("user-") == (0, 0)
    for number in range(3):
        assert await server.put("ann", a_file(bytes([number])), 0, b"") == 0
    with pytest.raises(ValueError, match="you have 3 files here"):
        await server.put("ann", a_file(b"more"), 0, b"")
    assert server.store.held("user-")[0] == 3
    assert await server.put("bob", a_file(), 0, CONTENT) == 10


async def test_a_partner_is_sent_what_the_job_is_given_and_nothing_else(
    server: InputServer,
) -> None:
    """From a byte on; a file that is gone is said to be gone."""
    await server.put("ann", a_file(), 0, CONTENT)
    await server.put("ann", a_file(b"secret", "other"), 0, b"secret")
    job: Any = SimpleNamespace(user="ann", program=payload(a_file()))
    assert b"".join([some async for some in server.read(job, "in", 3)]) == CONTENT[3:]
    for name in ("other", "../in", user_input("ann", a_file())):
        with pytest.raises(ValueError, match="the job is given no file"):
            await anext(server.read(job, name, 0))
    server.store.remove(user_input("ann", a_file()))
    with pytest.raises(NoResultsError, match="not here any more"):
        await anext(server.read(job, "in", 0))


async def test_a_job_finds_its_files_where_they_lie(server: InputServer) -> None:
    """A user's by what they are, a partner's by the job."""
    command: Any = SimpleNamespace(partner="", user="ann", lrms_key="a/1/1")
    assert server.place(command, 3, a_file()) == server.store.path(user_input("ann", a_file()), 0)
    command = SimpleNamespace(partner="b", user="", lrms_key="b/1f/2")
    assert server.place(command, 3, a_file()) == server.store.path("guest-b+1f+2", 3)


class Home:
    """A home site that sends pieces of one file, and ends calls as it is told.

    Attributes:
        answers: what it does with each question, in order: bytes that it sends, and how it ends.
        offsets: from where it was asked.
    """

    def __init__(self, *answers: tuple[bytes, grpc.StatusCode | None]) -> None:
        self.answers = list(answers)
        self.offsets: list[int] = []
        self.stub = self

    def FetchInput(self, request: Any, timeout: float) -> "Call":  # noqa: N802  # gRPC's name
        """Sends what comes next."""
        assert timeout > 0
        assert (request.site, request.offer.epoch, request.offer.number) == ("away", 0x1F, 17)
        self.offsets.append(request.offset_bytes)
        return Call(*self.answers.pop(0))


class Call:
    """One of its answers."""

    def __init__(self, content: bytes, code: grpc.StatusCode | None) -> None:
        self.content, self.code = content, code
        self.cancelled = False

    async def __aiter__(self) -> AsyncIterator[results_pb2.ResultChunk]:
        """Yields it."""
        yield results_pb2.ResultChunk(content=self.content)
        if self.code is not None:
            raise aio.AioRpcError(self.code, aio.Metadata(), aio.Metadata(), "as told")

    def cancel(self) -> None:
        """Is ended."""
        self.cancelled = True


def quota(server: InputServer, most: int = 10**6) -> PartnerQuota:
    """Returns what a partner may have here."""
    return PartnerQuota(None, server.store, most)


def fetcher(
    server: InputServer, home: Home | None, *files: JobFile, most: int = 10**6
) -> InputFetcher:
    """Returns what gets the files of a partner's job."""

    async def programs(_partner: str, _key: str) -> bytes:
        return payload(*files)

    links: Any = SimpleNamespace(links={} if home is None else {"home": home})
    return InputFetcher(programs, server, links, "away", quota=quota(server, most))


async def test_a_partner_whose_jobs_have_too_much_here_gets_its_jobs_back(
    server: InputServer,
) -> None:
    """Before a byte comes; what is here of the same job does not count twice."""
    down = grpc.StatusCode.UNAVAILABLE
    home = Home((b"01234567", down), (b"89", None))
    fetch = fetcher(server, home, a_file(), most=14)
    with pytest.raises(ProgramAwayError):
        await fetch("home", "home/1f/17")
    assert await fetch("home", "home/1f/17")
    with pytest.raises(ProgramGoneError, match="files of 10 bytes here; at most 14 are") as told:
        await fetch("home", "home/1f/2")
    assert told.value.unwanted
    assert len(home.offsets) == 2
    other = fetcher(server, None, most=14)
    assert await other("home", "home/1f/3")  # it brings nothing


async def test_files_come_after_the_program(server: InputServer) -> None:
    """What was cut off goes on where it stopped, what is another is asked for anew."""
    down = grpc.StatusCode.UNAVAILABLE
    home = Home((b"0123", down), (b"456789", None), (b"abd", None), (b"abc", None))
    fetch = fetcher(server, home, a_file(), a_file(b"abc", "b"))
    for text in ("home: as told", "another content"):
        with pytest.raises(ProgramAwayError, match=text):
            await fetch("home", "home/1f/17")
    assert await fetch("home", "home/1f/17") == payload(a_file(), a_file(b"abc", "b"))
    assert home.offsets == [0, 4, 0, 0]
    name = inputs_of("home/1f/17")
    assert [server.store.path(name, number).read_bytes() for number in (0, 1)] == [CONTENT, b"abc"]
    # After a restart nothing comes twice.
    assert await fetch("home", "home/1f/17")
    assert len(home.offsets) == 4


@pytest.mark.parametrize(
    ("home", "size", "kind", "text"),
    [
        (Home((b"", grpc.StatusCode.NOT_FOUND)), 10, ProgramGoneError, "as told"),
        (Home((b"x" * 11, None)), 10, ProgramAwayError, "longer than it has said"),
        (Home(), 21, ProgramGoneError, "at most 20 are taken"),
        (None, 10, ProgramAwayError, "not connected"),
    ],
)
async def test_what_does_not_come_is_not_run(
    server: InputServer, home: Home | None, size: int, kind: type[Exception], text: str
) -> None:
    """Too much is not even asked for; the job is decided anew at home where it may be."""
    file = JobFile("in", size, hashlib.sha256(CONTENT).digest())
    with pytest.raises(kind, match=text) as caught:
        await fetcher(server, home, file)("home", "home/1f/17")
    assert getattr(caught.value, "unwanted", True)


async def test_a_file_comes_over_the_connection_that_is_there_when_it_is_asked_for(
    server: InputServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one of before may be closed by then."""
    old, new = Home(), Home((CONTENT, None))
    begun = server.store.begun

    def renewing(*args: Any) -> int:
        old.stub = new
        return begun(*args)

    monkeypatch.setattr(server.store, "begun", renewing)
    await fetcher(server, old, a_file())("home", "home/1f/17")
    assert (old.offsets, new.offsets) == ([], [0])


async def test_files_in_place_are_used_where_both_sites_say_so(tmp_path: Path) -> None:
    """And nowhere else: the job goes back to its home site, which decides it anew; no byte is asked for."""
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared/in").touch()
    shared = SharedFolders([str(tmp_path / "shared")], ["home"])
    server = InputServer(ResultStore(tmp_path / "store"), FileLimits(20, 30), shared)

    def runs(path: str) -> InputFetcher:
        request = request_pb2.JobRequest()
        request.program.script = "#!/bin/sh\n"
        request.program.inputs.add(name="in", shared_path=path)

        async def programs(_partner: str, _key: str) -> bytes:
            return request.SerializeToString(deterministic=True)

        links: Any = SimpleNamespace(links={})  # asks nobody
        return InputFetcher(programs, server, links, "away", quota=quota(server))

    good = f"{tmp_path}/shared/in"
    assert await runs(good)("home", "home/1f/17")
    for partner, path, text in (
        ("other", good, "no folders are shared with other"),
        ("home", "/etc/passwd", "below no shared folder"),
        ("home", f"{good}/../../secret", "no name of a file"),
        ("home", f"{good}-absent", "is not here"),
    ):
        with pytest.raises(ProgramGoneError, match=text) as caught:
            await runs(path)(partner, f"{partner}/1f/17")
        assert caught.value.unwanted
    assert not (tmp_path / "store").exists()
