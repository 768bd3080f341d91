"""The client of a site for programs with an event loop."""

import asyncio
import hashlib
import os
import time
import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

from grpc import aio

from grms.client.answers import Job, JobState, Results, read_job, read_results
from grms.client.calls import TIMEOUT_S, Calls
from grms.client.errors import SiteError
from grms.client.values import check_values
from grms.kit.file_names import check_outputs
from grms.kit.shared_folders import SharedFile, check_shared
from grms.v1 import job_pb2, operator_pb2, request_pb2

if TYPE_CHECKING:
    from grms.lrms.port import HomeRun  # of a job for a real batch system alone

PAGE: Final = 1000
PUT_BYTES: Final = 256 << 10


class Client:
    """A user's or operator's connection to a site; an asynchronous context.

    Args:
        socket: the site's Unix socket.
        timeout_s: how long a call is tried, seconds.
    """

    def __init__(self, socket: str | Path, *, timeout_s: float = TIMEOUT_S) -> None:
        self._calls = Calls(Path(socket), timeout_s)

    async def __aenter__(self) -> Self:
        """Connects, when the first call is made."""
        self._calls.open()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Hangs up."""
        await self._calls.close()

    async def submit(
        self,
        *,
        processors: int,
        requested_time_s: float,
        script: str | None = None,
        arguments: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
        outputs: Sequence[str] = (),
        inputs: Mapping[str, str | Path] | None = None,
        shared: Sequence[SharedFile] = (),
        run_time_s: float | None = None,
        user_group: int | None = None,
        name: str = "",
        key: str | None = None,
        home: "HomeRun | None" = None,
    ) -> Job:
        """Submits a job. When this returns, the site will run it exactly once.

        Args:
            processors: how many it needs.
            requested_time_s: how long it may run, seconds.
            script: text of the batch script, for a real batch system; a simulated one does not
                run it, and says so in the job's `reason`.
            arguments: of the script.
            environment: variables of the script.
            outputs: files that it leaves in its folder and that are to come home, beside what it
                prints: relative names.
            inputs: files that it finds in its folder: relative names there, and where they are here;
                they are handed over first.
            shared: files that it uses where they lie, in folders that sites have in common; one of the
                name `program` is the script, without `script`.
            run_time_s: how long a simulated batch system lets it run, seconds.
            user_group: 1 to 5, by which a simulated queue may be ordered; needs `run_time_s`.
            name: a word of one's own; a script finds it in a variable of the batch system.
            key: the same key gives the same job; a new one is made where left out.
            home: where and how the site runs it where it stays there, with a batch system that can do
                that; in a folder of its own where left out. No partner is told any of it.

        Raises:
            ValueError: no site could take such a job.
            OSError: a file cannot be read.
            SiteUnavailable: the site cannot be reached, or takes no work now.
            SiteError: it has refused.
        """
        check_values(
            processors=processors,
            script=script,
            run_time_s=run_time_s,
            user_group=user_group,
            key=key,
        )
        request = job_pb2.SubmitRequest(
            idempotency_key=str(uuid.uuid4()) if key is None else key, name=name
        )
        request.request.processors = processors
        request.request.requested_time_s = requested_time_s
        if run_time_s is not None:
            request.request.simulated.run_time_s = run_time_s
            request.request.simulated.user_group = user_group or 0
        elif script is not None or shared:
            request.request.program.script = script or ""
            request.request.program.name = name
            request.request.program.arguments.extend(arguments)
            request.request.program.environment.update(environment or {})
            request.request.program.outputs.extend(outputs)
            check_outputs(inputs or {})
            for file_name, path in (inputs or {}).items():
                request.request.program.inputs.append(await self._put(file_name, Path(path)))
            for file in map(check_shared, shared):
                request.request.program.inputs.add(
                    name=file.name, shared_path=file.path, written=file.written
                )
            if home is not None:
                request.request.home.folder = home.folder
                request.request.home.environment.extend(home.environment)
                request.request.home.options.extend(home.options)
        return read_job(await self._calls.call(self._calls.jobs.Submit, request))

    async def _put(self, name: str, path: Path) -> request_pb2.InputFile:
        # Returns a file as a job has it, when the site has it.
        with path.open("rb") as content:
            digest = await asyncio.to_thread(hashlib.file_digest, content, "sha256")
            size = content.seek(0, os.SEEK_END)
            file = request_pb2.InputFile(name=name, size_bytes=size, sha256=digest.digest())
            request, held = job_pb2.PutInputRequest(file=file), -1
            while held < size:
                answer = await self._calls.call(self._calls.jobs.PutInput, request)
                if held == answer.held_bytes:
                    raise SiteError("ABORTED", f"{path} has changed while it was read")
                held = answer.held_bytes
                content.seek(held)
                some = await asyncio.to_thread(content.read, PUT_BYTES)
                request = job_pb2.PutInputRequest(file=file, offset_bytes=held, content=some)
        return file

    async def get(self, job_id: str) -> Job:
        """Returns a job.

        Raises:
            SiteError: there is none of that id, or it is another user's.
        """
        return read_job(
            await self._calls.call(self._calls.jobs.Get, job_pb2.GetRequest(job_id=job_id))
        )

    async def jobs(
        self,
        *,
        states: Sequence[JobState] = (),
        all_users: bool = False,
        user: str = "",
        partner: str = "",
        since_s: float = 0.0,
        stuck: bool = False,
    ) -> AsyncIterator[Job]:
        """Yields one's jobs in the order in which they were received.

        Args:
            states: only jobs in these; all where empty.
            all_users: other users' jobs too, for operators.
            user: only jobs of this user, with `all_users`.
            partner: only jobs that are or were at this site.
            since_s: only jobs received at this moment of the site's clock or later.
            stuck: only jobs that do not go on by themselves.

        Raises:
            SiteError: it has refused.
        """
        request = job_pb2.ListRequest(
            states=[f"JOB_STATE_{state.name}" for state in states],
            all_users=all_users,
            page_size=PAGE,
            user=user,
            partner=partner,
            since_s=since_s,
            stuck=stuck,
            without_program=True,
        )
        while True:
            page = await self._calls.call(self._calls.jobs.List, request)
            for message in page.jobs:
                yield read_job(message)
            if not page.next_page_token:
                return
            request.page_token = page.next_page_token

    async def results(self, job_id: str, *, wait: bool = False) -> Results:
        """Returns what a job has left, as far as it is at this site.

        Args:
            job_id: of the job.
            wait: as long as a call is tried for, wait until everything is there.

        Raises:
            SiteError: there is none of that id, or it is another user's.
        """
        deadline, backoff = self._calls.attempts()
        while True:
            request = job_pb2.ResultsRequest(job_id=job_id)
            found = read_results(await self._calls.call(self._calls.jobs.Results, request))
            pause = backoff.next_s()
            if found.complete or not wait or time.monotonic() + pause > deadline:
                return found
            await asyncio.sleep(pause)

    async def fetch(self, job_id: str, name: str, offset_bytes: int = 0) -> AsyncIterator[bytes]:
        """Yields a file that a job has left, in pieces.

        Args:
            job_id: of the job.
            name: of the file, as `results` has it.
            offset_bytes: to begin with.

        Raises:
            SiteError: there is no such file, or it is not here.
        """
        request = job_pb2.FetchResultRequest(job_id=job_id, name=name, offset_bytes=offset_bytes)
        deadline, backoff = self._calls.attempts()
        while True:
            try:
                async for chunk in self._calls.jobs.FetchResult(request):
                    deadline = time.monotonic() + self._calls.timeout_s
                    backoff.reset()
                    request.offset_bytes += len(chunk.content)
                    yield chunk.content
            except aio.AioRpcError as error:
                await self._calls.pause_or_raise(error, deadline, backoff.next_s())
            else:
                return

    async def cancel(self, job_id: str) -> Job:
        """Asks for the end of a job; `wait` tells when it has come.

        Raises:
            SiteError: there is none of that id, or it is another user's.
        """
        return read_job(
            await self._calls.call(self._calls.jobs.Cancel, job_pb2.CancelRequest(job_id=job_id))
        )

    async def watch(self, job_id: str) -> AsyncIterator[Job]:
        """Yields a job's state and every change until its end, over restarts of the daemon too.

        Raises:
            SiteUnavailable: the site cannot be reached for longer than the client's time.
            SiteError: there is none of that id, or it is another user's.
        """
        if not job_id:
            # To the service it means all of one's jobs, and has no end.
            raise SiteError("NOT_FOUND", "there is no job ''", "job_id")
        request = job_pb2.WatchRequest(job_id=job_id)
        deadline, backoff = self._calls.attempts()
        shown: Job | None = None
        while True:
            try:
                async for message in self._calls.jobs.Watch(request):
                    deadline = time.monotonic() + self._calls.timeout_s
                    backoff.reset()
                    # Revisions do not tell: a daemon that has started again counts anew.
                    job = read_job(message)
                    if job != shown:
                        shown = job
                        yield job
                    if job.has_ended:
                        return
                await asyncio.sleep(backoff.next_s())
            except aio.AioRpcError as error:
                await self._calls.pause_or_raise(error, deadline, backoff.next_s())

    async def wait(self, job_id: str) -> Job:
        """Returns a job when it has ended.

        Raises:
            SiteUnavailable: the site cannot be reached for longer than the client's time.
            SiteError: there is none of that id, or it is another user's.
        """
        last: Job | None = None
        async for job in self.watch(job_id):
            last = job
        assert last is not None
        return last

    async def status(self) -> operator_pb2.StatusResponse:
        """Returns how the site is; for operators."""
        request = operator_pb2.StatusRequest()
        status: operator_pb2.StatusResponse = await self._calls.call(
            self._calls.operator.Status, request
        )
        return status

    async def partners(self) -> Sequence[operator_pb2.PartnerStatus]:
        """Returns what the site knows of its partners; for operators."""
        answer = await self._calls.call(
            self._calls.operator.Partners, operator_pb2.PartnersRequest()
        )
        return list(answer.partners)

    async def reload(self) -> operator_pb2.ReloadPoliciesResponse:
        """Lets the site read its configuration anew, all or none; for operators."""
        request = operator_pb2.ReloadPoliciesRequest()
        answer: operator_pb2.ReloadPoliciesResponse = await self._calls.call(
            self._calls.operator.ReloadPolicies, request
        )
        return answer

    async def pardon(self, partner: str) -> int:
        """Ends a partner's suspension, and forgets its breaches; for operators.

        Returns:
            How many these were.

        Raises:
            SiteError: there is no partner of that name.
        """
        request = operator_pb2.PardonRequest(partner=partner)
        answer: operator_pb2.PardonResponse = await self._calls.call(
            self._calls.operator.Pardon, request
        )
        return int(answer.breaches)

    async def take_back(self, job_id: str) -> Job:
        """Has a job ended at its partner, and then decided anew; for operators.

        Raises:
            SiteError: there is none of that id, or it is at no partner.
        """
        return read_job(await self._intervene(self._calls.operator.TakeBack, job_id))

    async def resubmit(self, job_id: str) -> Job:
        """Decides a job anew at once, at the risk that it runs twice; for operators.

        Raises:
            SiteError: there is none of that id, or it is at no partner.
        """
        return read_job(await self._intervene(self._calls.operator.Resubmit, job_id))

    async def write_off(self, job_id: str) -> Job:
        """Ends a job as failed, whatever its partner does with it; for operators.

        Raises:
            SiteError: there is none of that id, or it is at no partner.
        """
        return read_job(await self._intervene(self._calls.operator.WriteOff, job_id))

    async def _intervene(self, method: Any, job_id: str) -> job_pb2.Job:
        answer: job_pb2.Job = await self._calls.call(
            method, operator_pb2.InterveneRequest(job_id=job_id)
        )
        return answer

    async def open_pages(self) -> operator_pb2.OpenPagesResponse:
        """Returns an address that shows the site's pages to one browser, once and for a minute; for operators.

        Raises:
            SiteError: no pages are served.
        """
        request = operator_pb2.OpenPagesRequest()
        answer: operator_pb2.OpenPagesResponse = await self._calls.call(
            self._calls.operator.OpenPages, request
        )
        return answer

    async def drain(self) -> operator_pb2.StatusResponse:
        """Lets the site take no more work; for operators."""
        request = operator_pb2.DrainRequest()
        status: operator_pb2.StatusResponse = await self._calls.call(
            self._calls.operator.Drain, request
        )
        return status

    async def resume(self) -> operator_pb2.StatusResponse:
        """Lets the site take work again; for operators."""
        request = operator_pb2.ResumeRequest()
        status: operator_pb2.StatusResponse = await self._calls.call(
            self._calls.operator.Resume, request
        )
        return status
