"""What jobs have left comes home, whatever partners do meanwhile."""

import asyncio
import errno
import hashlib
import os
import re
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import grpc
import pytest
from structlog.testing import capture_logs

from grms.cli.main import run_command
from grms.client import Client, SiteError
from grms.daemon.file_store import ResultStore
from grms.daemon.ports import free_port
from grms.daemon.shared_folders import SharedFile
from grms.site.model.lifecycle import JobState
from grms.v1 import job_pb2, operator_pb2, partner_pb2, request_pb2, results_pb2
from lrms_sim.util.files import to_toml
from tests.grms.site.daemons import Running, document, running
from tests.grms.site.peers.partner import Partner, full, full_site, listening
from tests.waiting import TIME_OUT_S, until

CONTENT = b"0123456789"
PLAIN = hashlib.sha256(CONTENT).digest()


def listed(**more: Any) -> results_pb2.ResultFile:
    """Returns what a partner says of standard output."""
    said: dict[str, Any] = {"name": "stdout", "size_bytes": len(CONTENT), "sha256": PLAIN}
    return results_pb2.ResultFile(**(said | more))


class Leaving(Partner):
    """A partner whose jobs leave files.

    Attributes:
        list: what it says that its jobs have left; None: a call that it does not know.
        answers: what it does with each question for a file, in order: the bytes that it sends, and
            how the call ends.
        offsets: from where it was asked for.
        dropped: jobs whose files it was told to delete.
        copied: what it was told that home has, by name and digest.
        first: statuses with which it answers before the list.
        more: what it says beside the list.
    """

    def __init__(self) -> None:
        super().__init__()
        self.list: list[results_pb2.ResultFile] | grpc.StatusCode | None = [listed()]
        self.answers: list[tuple[bytes, grpc.StatusCode | None]] = []
        self.offsets: list[int] = []
        self.dropped: list[int] = []
        self.copied: list[dict[str, bytes]] = []
        self.first: list[grpc.StatusCode] = []
        self.drops: list[grpc.StatusCode] = []
        self.more: dict[str, Any] = {}

    async def ListGuestResults(self, request: Any, context: Any) -> results_pb2.ResultList:  # noqa: N802  # gRPC's
        """Says what there is."""
        if self.first:
            await context.abort(self.first.pop(0), "its files are being read")
        if isinstance(self.list, grpc.StatusCode):
            await context.abort(self.list, "as it was told")
        if not isinstance(self.list, list):
            ended: results_pb2.ResultList = await super().ListGuestResults(request, context)
            return ended
        return results_pb2.ResultList(files=self.list, complete=True, **self.more)

    async def FetchGuestResult(  # noqa: N802  # gRPC's
        self, request: Any, context: Any
    ) -> AsyncIterator[results_pb2.ResultChunk]:
        """Sends what it was told to send."""
        self.offsets.append(request.offset_bytes)
        content, code = self.answers.pop(0)
        yield results_pb2.ResultChunk(content=content)
        if code is not None:
            await context.abort(code, "as it was told")

    async def DropGuestResults(  # noqa: N802  # gRPC's
        self,
        request: Any,
        context: Any,
    ) -> partner_pb2.DropGuestResultsResponse:
        """Takes note."""
        if self.drops:
            await context.abort(self.drops.pop(0), "as it was told")
        self.dropped.append(request.offer.number)
        self.copied.append({file.name: file.sha256 for file in request.files})
        return partner_pb2.DropGuestResultsResponse()


async def over(site: Running, key: str) -> str:
    """Has a job run at the partner, and returns its id."""
    request = job_pb2.SubmitRequest(idempotency_key=key)
    request.request.processors = 1
    request.request.requested_time_s = 600.0
    request.request.program.script = "#!/bin/sh\n"
    job_id = (await site.jobs.Submit(request, timeout=TIME_OUT_S)).job_id
    job = site.core.engine.state.job(job_id)
    assert job is not None
    await until(lambda: job.state is JobState.DELEGATED)
    end = partner_pb2.Completion(
        offer=partner_pb2.OfferId(epoch=job.offer_epoch, number=job.offer_number),
        outcome=request_pb2.OUTCOME_COMPLETED,
        end_time_s=site.core.clock.now(),
    )
    report = partner_pb2.ReportRequest(site="away", completions=[end])
    await site.partner.Report(report, timeout=TIME_OUT_S)
    return str(job_id)


async def read(user: Client, job_id: str) -> bytes:
    """Returns what a job has printed, as soon as it is there."""
    results = await user.results(job_id, wait=True)
    assert (results.complete, results.problem) == (True, "")
    return b"".join([some async for some in user.fetch(job_id, "stdout")])


async def test_files_come_home(tmp_path: Path) -> None:
    """Cut off, garbled or withheld at first: what is there is kept, what is wrong is asked for anew."""
    partner = Leaving()
    async with full_site(partner, tmp_path, port=free_port()) as site, site.user() as user:
        partner.answers = [(b"0123", grpc.StatusCode.UNAVAILABLE), (b"456789", None)]
        assert await read(user, await over(site, "cut off")) == CONTENT
        assert partner.offsets == [0, 4]
        await until(lambda: partner.dropped == [1])
        assert partner.copied == [{"stdout": PLAIN}]

        partner.answers = [(b"0123456780", None), (CONTENT, None)]
        assert await read(user, await over(site, "garbled")) == CONTENT
        assert partner.offsets[2:] == [0, 0]

        partner.list = [listed(problem=results_pb2.FILE_PROBLEM_NO_FILE)]
        job_id = await over(site, "a link, and no list of standard error")
        results = await user.results(job_id, wait=True)
        assert [file.problem for file in results.files] == ["no_file", "missing"]
        for name, text in (("stdout", "no file"), ("stderr", "missing"), ("x", "no file 'x'")):
            with pytest.raises(SiteError, match=text):
                [some async for some in user.fetch(job_id, name)]


async def fetched(
    site: Running,
    number: int,
    answers: list[grpc.StatusCode | str],
    given: list[grpc.StatusCode | bytes],
    names: list[str],
) -> None:
    """Asks as a partner for what a job runs, for what it is given, and for what it is not given."""
    offer = partner_pb2.OfferId(epoch=site.core.journal.epoch, number=number)
    request = partner_pb2.FetchProgramRequest(site="away", offer=offer)
    try:
        answer = await site.partner.FetchProgram(request, timeout=TIME_OUT_S)
    except grpc.aio.AioRpcError as error:
        answers.append(error.code())
    else:
        answers.append(answer.program.script)
        names.append(answer.user)
    for name in ("in", "other"):
        file = partner_pb2.FetchInputRequest(site="away", offer=offer, name=name)
        call = site.partner.FetchInput(file, timeout=TIME_OUT_S)
        try:
            given.append(b"".join([chunk.content async for chunk in call]))
        except grpc.aio.AioRpcError as error:
            given.append(error.code())


async def with_a_file(site: Running) -> job_pb2.Job:
    """Submits a job that is given a file; not before the file is here."""
    request = job_pb2.SubmitRequest(idempotency_key="runs")
    request.request.processors, request.request.requested_time_s = 1, 600.0
    request.request.program.script = "#!/bin/sh\n"
    file = request.request.program.inputs.add(name="in", size_bytes=len(CONTENT), sha256=PLAIN)
    with pytest.raises(grpc.aio.AioRpcError, match="in is not here; it is handed over"):
        await site.jobs.Submit(request, timeout=TIME_OUT_S)
    put = job_pb2.PutInputRequest(file=file, content=CONTENT)
    await site.jobs.PutInput(put, timeout=TIME_OUT_S)
    job: job_pb2.Job = await site.jobs.Submit(request, timeout=TIME_OUT_S)
    return job


async def test_what_runs_goes_to_the_partner_that_has_accepted_and_to_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only when its answer is known here, and only as long as it has the job."""
    monkeypatch.setattr("grms.site.rpc.partner_service.ACCEPTANCE_S", 0.1)
    partner = Leaving()
    partner.list = grpc.StatusCode.UNAVAILABLE
    limits = {"offer_timeout_s": TIME_OUT_S}
    port, own = free_port(), free_port()
    configuration = document(tmp_path, partners={"away": port}, port=own, limits=limits)
    async with listening(partner, port), running(configuration, tmp_path) as site:
        await site.linked()
        await full(site)
        answers: list[grpc.StatusCode | str] = []
        given: list[grpc.StatusCode | bytes] = []
        names: list[str] = []

        async def ask(number: int) -> None:
            await fetched(site, number, answers, given, names)

        partner.on_offer = lambda: ask(1)
        job_id = await over(site, "asked before it has said yes")
        await until(lambda: len(answers) == 1)
        assert answers == [grpc.StatusCode.UNAVAILABLE]
        assert [job.HasField("program") for job in partner.jobs] == [False]
        await ask(1)  # it has ended
        partner.on_offer = None
        job = await with_a_file(site)
        found = site.core.engine.state.job(job.job_id)
        assert found is not None
        await until(lambda: found.state is JobState.DELEGATED)
        await ask(2)
        await ask(3)
        assert names == [""]
        configuration["partners"][0]["tell_users"] = True
        (tmp_path / "home.toml").write_text(to_toml(configuration))
        await site.operator.ReloadPolicies(operator_pb2.ReloadPoliciesRequest())
        await fetched(site, 2, [], [], names)
        assert names == ["", found.user]
        assert found.user
        await site.jobs.Cancel(job_pb2.CancelRequest(job_id=job.job_id), timeout=TIME_OUT_S)
        await ask(2)
        gone = grpc.StatusCode.NOT_FOUND
        assert answers[1:] == [gone, "#!/bin/sh\n", gone, gone]
        unknown = grpc.StatusCode.UNAVAILABLE
        assert given == [unknown, unknown, gone, gone, CONTENT, gone, gone, gone, gone, gone]
        assert not any(job.HasField("program") for job in partner.jobs)
        assert job_id == "home-2"


async def test_a_file_in_place_is_not_offered_to_who_does_not_have_it(tmp_path: Path) -> None:
    """It is not asked, and the job goes on as if it had said no; names that are none are refused at once."""
    partner = Leaving()
    folder = tmp_path / "common"
    folder.mkdir()
    (folder / "in").write_bytes(CONTENT)
    shared = {"roots": [str(folder)]}
    async with full_site(partner, tmp_path, shared=shared) as site, site.user() as user:
        script: dict[str, Any] = {
            "processors": 1,
            "requested_time_s": 9.0,
            "script": "#!/bin/sh\n",
        }
        job = await user.submit(shared=[SharedFile("in", str(folder / "in"))], **script)
        found = site.core.engine.state.job(job.job_id)
        assert found is not None
        await until(lambda: found.state is JobState.QUEUED)
        assert partner.offers == 0
        with pytest.raises(ValueError, match="no name of a file"):
            await user.submit(inputs={"../in": folder / "in"}, **script)
        with pytest.raises(FileNotFoundError):
            await user.submit(inputs={"in": tmp_path / "none"}, **script)


async def test_what_never_comes_is_said(tmp_path: Path) -> None:
    """A partner that has nothing, knows no such call, says what cannot be, or too much."""
    partner = Leaving()
    async with (
        full_site(partner, tmp_path, port=free_port(), results={"file_bytes": 20}) as site,
        site.user() as user,
    ):
        waits = await user.results("home-1")
        assert not waits.complete
        assert "no script" in waits.problem
        partner.answers = [(CONTENT * 2, None)]
        for said, text in (
            (None, "hands out no files: it does not know a call"),
            (grpc.StatusCode.NOT_FOUND, "has no files of it: as it was told"),
            ([listed(sha256=b"x")], "hands out no files: the digest"),
            ([listed()], "hands out no files: stdout is longer than it has said"),
        ):
            partner.list = said
            results = await user.results(await over(site, text), wait=True)
            assert text in results.problem
            assert results.complete
        partner.list = [listed(size_bytes=21)]
        results = await user.results(await over(site, "too large"), wait=True)
        assert results.files[0].problem == "too_large"
        assert partner.answers == []
        # In a word of a later version: what is not understood is not there.
        partner.list = [listed(problem=99)]
        results = await user.results(await over(site, "later word"), wait=True)
        assert results.files[0].problem == "no_file"
        # A partner deletes only what it is told has come.
        assert partner.dropped == []


async def test_a_full_disk_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What has come stays, the user is told why nothing more does, and it goes on when there is room."""
    full_disk, sound = [True], ResultStore.append

    def append(store: ResultStore, job_id: str, number: int, some: bytes) -> None:
        if full_disk[0]:
            sound(store, job_id, number, some[:4])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        sound(store, job_id, number, some)

    monkeypatch.setattr(ResultStore, "append", append)
    partner = Leaving()
    async with full_site(partner, tmp_path, port=free_port()) as site, site.user() as user:
        partner.answers = [(CONTENT, None), (CONTENT[4:], None)]
        job_id = await over(site, "full")
        said = ""
        while "No space left" not in said:
            said = (await user.results(job_id)).problem
        full_disk[0] = False
        assert await read(user, job_id) == CONTENT
        assert partner.offsets == [0, 4]


async def test_what_is_still_to_come_is_known_after_a_restart(tmp_path: Path) -> None:
    """It follows from the journal; nothing more has to be remembered."""
    partner, port, own = Leaving(), free_port(), free_port()
    partner.list = grpc.StatusCode.UNAVAILABLE
    configuration = document(tmp_path, partners={"away": port}, port=own)
    async with listening(partner, port):
        async with running(configuration, tmp_path) as site:
            await site.linked()
            await full(site)
            job_id = await over(site, "late")
            async with site.user() as user:
                results = await user.results(job_id)
            assert results.problem.startswith("its files are on the way from away")
        partner.list, partner.answers = [listed()], [(CONTENT, None)]
        async with (
            running(configuration, tmp_path) as site,
            site.user() as user,
        ):
            assert await read(user, job_id) == CONTENT


async def test_what_does_not_come_is_told_with_its_place(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Home says what it has, and nothing of what it has not; users read where that is, and until when."""
    partner = Leaving()
    limits = {"file_bytes": 20}
    async with full_site(partner, tmp_path, port=free_port(), results=limits) as site:
        large = listed(name="stderr", size_bytes=21)
        partner.list, partner.answers = [listed(), large], [(CONTENT, None)]
        partner.more = {"folder": "/jobs/home+1+1", "kept_until_s": 1e9, "other_files": 2}
        partner.more["other_bytes"] = 300
        partner.drops = [grpc.StatusCode.FAILED_PRECONDITION, grpc.StatusCode.UNAVAILABLE]
        with capture_logs() as log:
            job_id = await over(site, "much")
            await until(lambda: partner.copied == [{"stdout": PLAIN}])
        (came,) = [each for each in log if each["event"] == "results_came"]
        assert (came["stay"], came["folder"], came["until_s"]) == (3, "/jobs/home+1+1", 1e9)
        words = ["--socket", str(tmp_path / "home.sock"), "--timeout", f"{TIME_OUT_S}"]
        target = tmp_path / "came"
        capfd.readouterr()
        assert await asyncio.to_thread(
            run_command, ["fetch", job_id, *words, "--output", str(target)]
        ) == 1  # fmt: skip
        told = capfd.readouterr().err
        assert "stderr: it is larger than the site hands out" in told
        stays = r"not brought: 3 files \(321 bytes\) at away in /jobs/home\+1\+1, until 2001-09-0\d"
        assert re.search(rf"^{stays}.*; 2 of them the job has not declared$", told, re.MULTILINE)
        assert await asyncio.to_thread(run_command, ["logs", job_id, *words, "--stderr"]) == 2
        assert re.search(stays, capfd.readouterr().err)

        partner.list, partner.answers = [large], []
        results = await over(site, "nothing comes")
        async with Client(tmp_path / "home.sock", timeout_s=TIME_OUT_S) as user:
            await user.results(results, wait=True)
        assert len(partner.copied) == 1


async def test_files_that_are_still_being_read_are_asked_for_again(tmp_path: Path) -> None:
    """Soon, however often; the log says it once."""
    partner = Leaving()
    async with full_site(partner, tmp_path, port=free_port()) as site, site.user() as user:
        partner.first = [grpc.StatusCode.FAILED_PRECONDITION] * 3
        partner.answers = [(CONTENT, None)]
        with capture_logs() as log:
            assert await read(user, await over(site, "large")) == CONTENT
        assert partner.first == []
        assert [each["event"] for each in log].count("results_did_not_come") == 1


class Throttled(Leaving):
    """A partner that sends what is large when the test says so."""

    def __init__(self) -> None:
        super().__init__()
        self.open = asyncio.Event()
        self.large: set[int] = set()

    async def ListGuestResults(  # noqa: N802  # gRPC's
        self,
        request: Any,
        context: Any,  # noqa: ARG002  # same
    ) -> results_pb2.ResultList:
        """Says what there is of each job."""
        content = self._content(request)
        digest = hashlib.sha256(content).digest()
        return results_pb2.ResultList(files=[listed(size_bytes=len(content), sha256=digest)])

    def _content(self, request: Any) -> bytes:
        return CONTENT + b"more" if request.offer.number in self.large else CONTENT

    async def FetchGuestResult(  # noqa: N802  # gRPC's
        self,
        request: Any,
        context: Any,  # noqa: ARG002  # same
    ) -> AsyncIterator[results_pb2.ResultChunk]:
        """Sends it."""
        self.offsets.append(request.offer.number)
        if request.offer.number in self.large:
            await self.open.wait()
        yield results_pb2.ResultChunk(content=self._content(request))


async def test_small_results_do_not_wait_behind_large_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many large ones of the same partner are under way."""
    partner = Throttled()
    async with full_site(partner, tmp_path, port=free_port()) as site, site.user() as user:
        monkeypatch.setattr("grms.site.staging.fair_slots.LARGE_BYTES", len(CONTENT))
        partner.large = set(range(1, 7))
        large = [await over(site, f"large {number}") for number in range(6)]
        await until(lambda: len(partner.offsets) == 3)
        small = await over(site, "small")
        results = await user.results(small, wait=True)
        assert [file.problem for file in results.files] == ["", "missing"]
        assert partner.offsets[3:] == [7]
        partner.open.set()
        for job_id in large:
            assert (await user.results(job_id, wait=True)).complete


class Moving(Leaving):
    """A partner in the middle of whose answers the connection begins anew.

    Attributes:
        renew: has it begin anew.
    """

    def __init__(self) -> None:
        super().__init__()
        self.renew: Callable[[], None] = lambda: None

    async def FetchGuestResult(  # noqa: N802  # gRPC's
        self, request: Any, context: Any
    ) -> AsyncIterator[results_pb2.ResultChunk]:
        """Sends what it was told to send."""
        self.renew()
        async for chunk in super().FetchGuestResult(request, context):
            yield chunk

    async def DropGuestResults(  # noqa: N802  # gRPC's
        self, request: Any, context: Any
    ) -> partner_pb2.DropGuestResultsResponse:
        """Takes note."""
        if self.drops:
            self.renew()
        return await super().DropGuestResults(request, context)


async def test_files_come_and_are_let_go_while_the_connection_begins_anew(tmp_path: Path) -> None:
    """What waits for another answer goes on over the new connection; the daemon does not take it for its own error."""
    partner = Moving()
    async with full_site(partner, tmp_path, port=free_port()) as site, site.user() as user:
        partner.renew = site.core.links.links["away"].renew
        partner.list = [listed(), listed(name="stderr")]
        partner.answers = [(CONTENT, None)] * 2
        partner.drops = [grpc.StatusCode.UNAVAILABLE]
        assert await read(user, await over(site, "renewed")) == CONTENT
        await until(lambda: partner.dropped == [1])
        assert partner.offsets == [0, 0]
