"""The state of jobs that partners have sent home: what comes, and what is said where it cannot come."""

import asyncio
import hashlib
import math
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import grpc
import pytest

from grms.daemon.messages import WireError
from grms.daemon.ports import free_port
from grms.daemon.uploads import user_input
from grms.site.model.jobs import HomeJob
from grms.site.model.lifecycle import JobState
from grms.site.staging.state_fetch import LONGEST_S
from grms.site.wire.convert import given_inputs, read_request
from grms.v1 import job_pb2, partner_pb2, request_pb2, results_pb2
from tests.grms.site.daemons import Running, document, running
from tests.grms.site.peers.partner import full, listening
from tests.grms.site.staging.test_stage_out import CONTENT, PLAIN, Leaving, listed
from tests.waiting import TIME_OUT_S, until

STATE = listed(name="state/1", mode=0o640)
BAD: list[tuple[list[results_pb2.ResultFile] | grpc.StatusCode | None, str]] = [
    ([], "it has none of what the job has written"),
    ([listed(name="stdout")], "it has none of what the job has written"),
    ([listed(name="../state/1")], "it hands out no files: '../state/1' is no name of a file"),
    ([listed(name="state/1", sha256=b"short")], "the digest of a file has 5 bytes"),
    (
        [listed(name="state/1", size_bytes=10**6)],
        "what the job has written, with its inputs: 'state/1' has 1000000 bytes; at most 1000",
    ),
    (
        [listed(name="state/1", problem=results_pb2.FILE_PROBLEM_NO_FILE)],
        "state/1 is no plain file",
    ),
    (
        [listed(name="state/1", problem=results_pb2.FILE_PROBLEM_TOO_LARGE)],
        "state/1 is larger than it hands out",
    ),
    (
        [listed(name="state/1"), listed(name="state/1/2")],
        "state/1 is a file, and the folder of state/1/2",
    ),
    (grpc.StatusCode.NOT_FOUND, "it has none of what the job has written: as it was told"),
    (None, "it hands out no files"),
]


@asynccontextmanager
async def home(folder: Path, partner: Leaving) -> AsyncIterator[Running]:
    """Starts a site whose only partner is that one, and whose machine is full."""
    port, own = free_port(), free_port()
    configuration = document(
        folder,
        partners={"away": port},
        port=own,
        requeue="allow",
        results={"file_bytes": 1000, "job_bytes": 2000},
    )
    async with listening(partner, port), running(configuration, folder) as site:
        await site.linked()
        await full(site)
        yield site


async def sent_home(site: Running, key: str) -> HomeJob:
    """Has the partner run a job, and end it for another one; returns it once it is decided anew."""
    request = job_pb2.SubmitRequest(idempotency_key=key)
    request.request.processors = 1
    request.request.requested_time_s = 600.0
    program = request.request.program
    program.script = "#!/bin/sh\n"
    program.checkpoint.every_s = 10.0
    program.checkpoint.files.append("state/")
    job_id = (await site.jobs.Submit(request, timeout=TIME_OUT_S)).job_id
    job = site.core.engine.state.job(job_id)
    assert job is not None
    await until(lambda: job.state is JobState.DELEGATED)
    end = partner_pb2.Completion(
        offer=partner_pb2.OfferId(epoch=job.offer_epoch, number=job.offer_number),
        outcome=request_pb2.OUTCOME_PREEMPTED,
        end_time_s=site.core.clock.now(),
        run_time_s=0.5,
        kept_s=0.25,
    )
    report = partner_pb2.ReportRequest(site="away", completions=[end])
    await site.partner.Report(report, timeout=TIME_OUT_S)
    await until(lambda: bool(job.sent_home) and job.state_there is None)
    return job


async def test_state_comes_home(tmp_path: Path) -> None:
    """Cut off and garbled at first; once it is here, the next run is given it, and the partner may forget it."""
    partner = Leaving()
    partner.list = [STATE, listed(name="stdout"), listed(name="state/2", sha256=PLAIN)]
    partner.answers = [
        (b"0123", grpc.StatusCode.UNAVAILABLE),
        (b"45678!", None),
        (CONTENT, None),
    ]
    async with home(tmp_path, partner) as site:
        job = await sent_home(site, "comes")
        given = given_inputs(job.program)
        # Two files of one content, which has come once.
        assert [file.name for file in given] == ["state/1", "state/2"]
        assert partner.offsets == [0, 4, 0]
        (told,) = job.sent_home
        assert (told.kept, told.kept_times, told.problem) == (0.25, 1, "")
        message = request_pb2.JobRequest.FromString(job.program).program
        assert dict(message.environment) == {"HANSE_RESTART_COUNT": "1"}
        store = site.daemon._kept.inputs.store
        for file in given:
            path = store.path(user_input(job.user, file), 0)
            assert hashlib.sha256(path.read_bytes()).digest() == PLAIN
        await until(lambda: partner.dropped == [1])
        assert partner.copied == [{"state/1": PLAIN, "state/2": PLAIN}]


async def test_state_that_cannot_come_is_said(tmp_path: Path) -> None:
    """Whatever the partner lists, the job runs from its start, and its user reads why."""
    partner = Leaving()
    async with home(tmp_path, partner) as site:
        for number, (found, problem) in enumerate(BAD):
            partner.list = found
            job = await sent_home(site, f"bad {number}")
            (told,) = job.sent_home
            assert problem in told.problem
            assert told.problem.startswith("away: ")
            assert (told.kept, told.lost) == (0.0, 0.5)
            assert given_inputs(job.program) == ()
            assert job.left == 0.0
        partner.list = [STATE]
        site.daemon._kept.inputs._bytes_held = len(CONTENT) - 1
        job = await sent_home(site, "no room")
        assert "no room for its files at home" in job.sent_home[0].problem
        assert partner.dropped == []


async def test_a_size_that_is_not_that_of_the_content_is_found(tmp_path: Path) -> None:
    """Also where the content is here already: whoever is given the file would wait for more of it for ever."""
    partner = Leaving()
    partner.list = [STATE, listed(name="state/2", size_bytes=len(CONTENT) + 2)]
    partner.answers = [(CONTENT, None)]
    async with home(tmp_path, partner) as site:
        job = await sent_home(site, "lies")
        assert "state/2 has another size than its content" in job.sent_home[0].problem
        assert given_inputs(job.program) == ()


class Together(Leaving):
    """A partner that sends nothing before it is asked so often for lists, and each file half by half."""

    def __init__(self, lists: int) -> None:
        super().__init__()
        self.lists = lists
        self.all_asked = asyncio.Event()

    async def ListGuestResults(self, request: Any, context: Any) -> results_pb2.ResultList:  # noqa: N802  # gRPC's
        """Waits for the others."""
        self.lists -= 1
        if not self.lists:
            self.all_asked.set()
        await self.all_asked.wait()
        return await super().ListGuestResults(request, context)

    async def FetchGuestResult(  # noqa: N802  # gRPC's
        self,
        request: Any,
        context: Any,  # noqa: ARG002  # gRPC's
    ) -> AsyncIterator[results_pb2.ResultChunk]:
        """Lets another call, if there is one, send its half first."""
        self.offsets.append(request.offset_bytes)
        rest = CONTENT[request.offset_bytes :]
        yield results_pb2.ResultChunk(content=rest[:5])
        with suppress(TimeoutError):
            await asyncio.wait_for(self.wait_for_another(), 0.2)
        yield results_pb2.ResultChunk(content=rest[5:])

    async def wait_for_another(self) -> None:
        """Returns when a second call has come."""
        while len(self.offsets) < 2:  # noqa: ASYNC110  # for a moment at most
            await asyncio.sleep(0.01)


async def test_the_same_content_of_several_jobs_comes_once(tmp_path: Path) -> None:
    """Elements of an array that are sent home together may have written the same; two calls would write into one file."""
    partner = Together(2)
    partner.list = [STATE]
    async with home(tmp_path, partner) as site:
        jobs = await asyncio.gather(sent_home(site, "first"), sent_home(site, "second"))
        assert partner.offsets == [0]
        for job in jobs:
            (given,) = given_inputs(job.program)
            path = site.daemon._kept.inputs.store.path(user_input(job.user, given), 0)
            assert path.read_bytes() == CONTENT


class Halting(Leaving):
    """A partner that sends files as it was told, and the last one only when it may."""

    def __init__(self) -> None:
        super().__init__()
        self.may_end = asyncio.Event()

    async def FetchGuestResult(  # noqa: N802  # gRPC's
        self, request: Any, context: Any
    ) -> AsyncIterator[results_pb2.ResultChunk]:
        """Waits before the last."""
        if len(self.answers) == 1:
            await self.may_end.wait()
        async for chunk in super().FetchGuestResult(request, context):
            yield chunk


async def test_what_has_come_is_not_swept_before_the_rest(tmp_path: Path) -> None:
    """Nobody is given it so far; without the file the job could not run any more."""
    partner = Halting()
    other = hashlib.sha256(b"other").digest()
    partner.list = [STATE, listed(name="state/2", size_bytes=5, sha256=other)]
    partner.answers = [(CONTENT, None), (b"other", None)]
    async with home(tmp_path, partner) as site:
        site.daemon._kept.states.renewed_s = 0.01
        store = site.daemon._kept.inputs.store
        coming = asyncio.create_task(sent_home(site, "slow"))
        await until(lambda: len(partner.answers) == 1)
        (come,) = (each for each in store.stale(math.inf) if each.endswith(PLAIN.hex()))
        os.utime(store.path(come, 0).parent, (0.0, 0.0))
        await until(lambda: not store.is_stale(come, 1.0))
        partner.may_end.set()
        assert len(given_inputs((await coming).program)) == 2


async def test_what_is_on_its_way_takes_room(tmp_path: Path) -> None:
    """Of jobs whose state comes at once, no more is kept than if it came one after the other."""
    partner = Together(2)
    partner.list = [STATE]
    async with home(tmp_path, partner) as site:
        site.daemon._kept.inputs._bytes_held = 2 * len(CONTENT) - 1
        jobs = await asyncio.gather(sent_home(site, "first"), sent_home(site, "second"))
        problems = sorted(job.sent_home[0].problem for job in jobs)
        assert problems[0] == ""
        assert "no room for its files at home" in problems[1]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"every_s": -1.0}, "every_s"),
        ({"every_s": float("nan")}, "every_s"),
        ({"every_s": 601.0}, "every_s"),
        ({"files": []}, "files"),
        ({"files": ["/etc/passwd"]}, "files"),
        ({"files": ["../x"]}, "files"),
        ({"files": ["launch"]}, "files"),
        ({"files": ["a", "a"]}, "files"),
        ({"once": True}, "checkpoint"),
    ],
)
def test_what_is_no_checkpoint_is_refused(change: dict[str, Any], field: str) -> None:
    """By the site, of whatever client."""
    message = request_pb2.JobRequest(processors=1, requested_time_s=600.0)
    message.program.script = "#!/bin/sh\n"
    message.program.checkpoint.every_s = change.get("every_s", 60.0)
    message.program.checkpoint.files.extend(change.get("files", ["state*"]))
    if "once" in change:
        message.needs.tasks = message.needs.cores_per_task = 1
        message.needs.requeue = False
    with pytest.raises(WireError) as error:
        read_request(message, "request")
    assert error.value.field.endswith(field)


class Stuck(Leaving):
    """A partner that begins to send, and does not go on; `open` calls are under way."""

    def __init__(self) -> None:
        super().__init__()
        self.list = [STATE]
        self.open = self.begun = 0
        self.stuck = True

    async def FetchGuestResult(  # noqa: N802  # gRPC's
        self,
        request: Any,
        context: Any,  # noqa: ARG002  # gRPC's
    ) -> AsyncIterator[results_pb2.ResultChunk]:
        """Sends half of it, and waits."""
        self.open += 1
        self.begun += 1
        try:
            yield results_pb2.ResultChunk(content=CONTENT[request.offset_bytes :][:2])
            while self.stuck:  # noqa: ASYNC110  # for a moment at most
                await asyncio.sleep(0.01)
            yield results_pb2.ResultChunk(content=CONTENT[request.offset_bytes :][2:])
        finally:
            self.open -= 1


async def test_what_nobody_needs_any_more_does_not_come(tmp_path: Path) -> None:
    """A cancelled job's transfer ends with the job; the others of its partner, which had to wait for it, come."""
    partner = Stuck()
    async with home(tmp_path, partner) as site:
        states = site.daemon._kept.states
        states._slots["away"] = asyncio.Semaphore(1)
        first = asyncio.create_task(sent_home(site, "first"))
        await until(lambda: partner.open == 1)
        second = asyncio.create_task(sent_home(site, "second"))
        memory = site.core.engine.state.memory
        await until(lambda: len(memory.fetching) == 2 and len(states._under_way) == 2)
        number = min(memory.fetching)
        await site.jobs.Cancel(job_pb2.CancelRequest(job_id=f"home-{number}"))
        await until(lambda: number not in states._under_way)
        first.cancel()
        await until(lambda: partner.begun == 2 and partner.open == 1)
        partner.stuck = False
        job = await second
        assert [file.name for file in given_inputs(job.program)] == ["state/1"]
        assert not states._under_way


async def test_nothing_is_awaited_for_ever(tmp_path: Path) -> None:
    """A partner that hands out nothing for so long has lost it."""
    partner = Leaving()
    partner.first = [grpc.StatusCode.UNAVAILABLE] * 100
    async with home(tmp_path, partner) as site:
        site.daemon._kept.states._give_up_s = 0.5
        job = await sent_home(site, "late")
        assert job.sent_home[0].problem.startswith("away: it did not come in time: UNAVAILABLE")


async def test_many_files_have_no_more_time_than_one(tmp_path: Path) -> None:
    """Each may take long, all of them together not longer than is said."""
    partner = Leaving()
    other = hashlib.sha256(b"other").digest()
    partner.list = [STATE, listed(name="state/2", size_bytes=5, sha256=other)]
    partner.answers = [(CONTENT, None), (b"other", None)]
    async with home(tmp_path, partner) as site:
        # When it begins, has a slot, and asks for the first file.
        clock = iter([*[0.0] * 4, LONGEST_S])
        site.daemon._kept.states._monotonic = lambda: next(clock, LONGEST_S)
        job = await sent_home(site, "slow")
        assert job.sent_home[0].problem == "away: it has not sent all in time"
        assert partner.offsets == [0]
