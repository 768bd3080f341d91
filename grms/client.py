"""For programs that use a site: submit jobs, look at them, watch them end.

`Client` is asynchronous, `SyncClient` the same for programs that are not. Both connect to the Unix
socket of the site's daemon; who one is, the kernel tells the daemon.

Every submission carries a key, made up here unless the caller brings one, so that a submission
whose answer got lost is repeated without becoming a second job. Calls are repeated while the daemon
is away or asks for patience, until their time is over.

    with SyncClient("/run/hanse/users.sock") as site:
        job = site.submit(processors=16, requested_time_s=3600, script="…")
        job = site.wait(job.job_id)
"""

import asyncio
import hashlib
import os
import time
import uuid
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Iterator,
    Mapping,
    Sequence,
)
from pathlib import Path
from threading import Thread
from types import TracebackType
from typing import Any, Final, Self, TypeVar

import grpc
from grpc import aio

from grms.client_answers import (
    Job,
    JobState,
    Outcome,
    ResultFile,
    Results,
    SiteError,
    SiteUnavailable,
    read_details,
    read_job,
    read_results,
)
from grms.kit.backoff import Backoff, BackoffSettings
from grms.kit.file_names import check_outputs
from grms.kit.shared_folders import SharedFile, check_shared
from grms.v1 import job_pb2, job_pb2_grpc, operator_pb2, operator_pb2_grpc, request_pb2

__all__ = [
    "Client",
    "Job",
    "JobState",
    "Outcome",
    "ResultFile",
    "Results",
    "SiteError",
    "SiteUnavailable",
    "SyncClient",
]

TIMEOUT_S: Final = 30.0
"""How long a call is tried unless told otherwise, seconds."""

PAUSES: Final = BackoffSettings(first_s=0.1, most_s=2.0)
"""Between attempts to reach the daemon."""

PAGE: Final = 1000
CHUNKS: Final = 16
PUT_BYTES: Final = 256 << 10
PROCESSORS_MAX: Final = 2**31 - 1

T = TypeVar("T")


class Client:
    """A user's or operator's connection to a site; an asynchronous context.

    Args:
        socket: the site's Unix socket.
        timeout_s: how long a call is tried, seconds.
    """

    def __init__(self, socket: str | Path, *, timeout_s: float = TIMEOUT_S) -> None:
        self._socket = Path(socket)
        self._timeout_s = timeout_s
        self._channel: aio.Channel | None = None
        self._jobs: Any = None
        self._operator: Any = None

    async def __aenter__(self) -> Self:
        """Connects, when the first call is made."""
        self._channel = aio.insecure_channel(
            f"unix:{self._socket.absolute()}",
            options=[
                ("grpc.max_receive_message_length", 64 << 20),
                ("grpc.initial_reconnect_backoff_ms", 100),
                ("grpc.max_reconnect_backoff_ms", 1000),
            ],
        )
        self._jobs = job_pb2_grpc.JobServiceStub(self._channel)
        self._operator = operator_pb2_grpc.OperatorServiceStub(self._channel)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Hangs up."""
        if self._channel is not None:
            await self._channel.close()

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
            name: a word of one's own.
            key: the same key gives the same job; a new one is made where left out.

        Raises:
            ValueError: no site could take such a job.
            OSError: a file cannot be read.
            SiteUnavailable: the site cannot be reached, or takes no work now.
            SiteError: it has refused.
        """
        if abs(processors) > PROCESSORS_MAX:
            # More than a message can say; what is too much or too little for a site, it says.
            raise ValueError(f"processors is {processors}; 1 to {PROCESSORS_MAX} are possible")
        if key == "":
            # Of a variable that is not set: each repetition would be another job.
            raise ValueError("key is empty; leave it out, or give each job one of its own")
        if script is not None and run_time_s is not None:
            raise ValueError("run_time_s is for a job without a script, where it is simulated")
        if user_group is not None and (run_time_s is None or not 1 <= user_group <= 5):
            raise ValueError(
                f"user_group is {user_group}; 1 to 5 is possible, for a job with run_time_s"
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
        return read_job(await self._call(self._jobs.Submit, request))

    async def _put(self, name: str, path: Path) -> request_pb2.InputFile:
        # Returns a file as a job has it, when the site has it.
        with path.open("rb") as content:
            digest = await asyncio.to_thread(hashlib.file_digest, content, "sha256")
            size = content.seek(0, os.SEEK_END)
            file = request_pb2.InputFile(name=name, size_bytes=size, sha256=digest.digest())
            request, held = job_pb2.PutInputRequest(file=file), -1
            while held < size:
                answer = await self._call(self._jobs.PutInput, request)
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
        return read_job(await self._call(self._jobs.Get, job_pb2.GetRequest(job_id=job_id)))

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
            page = await self._call(self._jobs.List, request)
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
        deadline = time.monotonic() + self._timeout_s
        backoff = Backoff(PAUSES)
        while True:
            request = job_pb2.ResultsRequest(job_id=job_id)
            found = read_results(await self._call(self._jobs.Results, request))
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
        deadline = time.monotonic() + self._timeout_s
        backoff = Backoff(PAUSES)
        while True:
            try:
                async for chunk in self._jobs.FetchResult(request):
                    deadline = time.monotonic() + self._timeout_s
                    backoff.reset()
                    request.offset_bytes += len(chunk.content)
                    yield chunk.content
            except aio.AioRpcError as error:
                await self._pause_or_raise(error, deadline, backoff.next_s())
            else:
                return

    async def cancel(self, job_id: str) -> Job:
        """Asks for the end of a job; `wait` tells when it has come.

        Raises:
            SiteError: there is none of that id, or it is another user's.
        """
        return read_job(await self._call(self._jobs.Cancel, job_pb2.CancelRequest(job_id=job_id)))

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
        deadline = time.monotonic() + self._timeout_s
        backoff = Backoff(PAUSES)
        shown: Job | None = None
        while True:
            try:
                async for message in self._jobs.Watch(request):
                    deadline = time.monotonic() + self._timeout_s
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
                await self._pause_or_raise(error, deadline, backoff.next_s())

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
        status: operator_pb2.StatusResponse = await self._call(self._operator.Status, request)
        return status

    async def partners(self) -> Sequence[operator_pb2.PartnerStatus]:
        """Returns what the site knows of its partners; for operators."""
        answer = await self._call(self._operator.Partners, operator_pb2.PartnersRequest())
        return list(answer.partners)

    async def reload(self) -> operator_pb2.ReloadPoliciesResponse:
        """Lets the site read its configuration anew, all or none; for operators."""
        request = operator_pb2.ReloadPoliciesRequest()
        answer: operator_pb2.ReloadPoliciesResponse = await self._call(
            self._operator.ReloadPolicies, request
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
        answer: operator_pb2.PardonResponse = await self._call(self._operator.Pardon, request)
        return int(answer.breaches)

    async def take_back(self, job_id: str) -> Job:
        """Has a job ended at its partner, and then decided anew; for operators.

        Raises:
            SiteError: there is none of that id, or it is at no partner.
        """
        return read_job(await self._intervene(self._operator.TakeBack, job_id))

    async def resubmit(self, job_id: str) -> Job:
        """Decides a job anew at once, at the risk that it runs twice; for operators.

        Raises:
            SiteError: there is none of that id, or it is at no partner.
        """
        return read_job(await self._intervene(self._operator.Resubmit, job_id))

    async def write_off(self, job_id: str) -> Job:
        """Ends a job as failed, whatever its partner does with it; for operators.

        Raises:
            SiteError: there is none of that id, or it is at no partner.
        """
        return read_job(await self._intervene(self._operator.WriteOff, job_id))

    async def _intervene(self, method: Any, job_id: str) -> job_pb2.Job:
        answer: job_pb2.Job = await self._call(method, operator_pb2.InterveneRequest(job_id=job_id))
        return answer

    async def drain(self) -> operator_pb2.StatusResponse:
        """Lets the site take no more work; for operators."""
        request = operator_pb2.DrainRequest()
        status: operator_pb2.StatusResponse = await self._call(self._operator.Drain, request)
        return status

    async def resume(self) -> operator_pb2.StatusResponse:
        """Lets the site take work again; for operators."""
        request = operator_pb2.ResumeRequest()
        status: operator_pb2.StatusResponse = await self._call(self._operator.Resume, request)
        return status

    async def _call(self, method: Callable[..., Awaitable[T]], request: Any) -> T:
        deadline = time.monotonic() + self._timeout_s
        backoff = Backoff(PAUSES)
        while True:
            left = max(0.001, deadline - time.monotonic())
            try:
                return await method(request, timeout=left)
            except aio.AioRpcError as error:
                await self._pause_or_raise(error, deadline, backoff.next_s())

    async def _pause_or_raise(self, error: aio.AioRpcError, deadline: float, pause: float) -> None:
        """Returns when it is time to try again.

        Raises:
            SiteError: it is not worth it, or there is no time left.
        """
        field, retry_s = read_details(error)
        code, reason = error.code(), error.details() or ""
        wait = max(pause, retry_s or 0.0)
        told_to_wait = code is grpc.StatusCode.RESOURCE_EXHAUSTED and retry_s is not None
        absent = code is grpc.StatusCode.UNAVAILABLE
        if (absent or told_to_wait) and time.monotonic() + wait < deadline:
            await asyncio.sleep(wait)
            return
        if absent and "connect" in reason.lower():
            reason = f"no daemon answers on {self._socket}; is it running?"
        kind = SiteUnavailable if absent or code is grpc.StatusCode.DEADLINE_EXCEEDED else SiteError
        raise kind(code.name, reason, field) from error


class SyncClient:
    """The same for programs without an event loop; a context.

    One thread of its own carries the calls; it may be used from several threads.

    Args:
        socket: the site's Unix socket.
        timeout_s: how long a call is tried, seconds.
    """

    def __init__(self, socket: str | Path, *, timeout_s: float = TIMEOUT_S) -> None:
        self._client = Client(socket, timeout_s=timeout_s)
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, name="hanse client", daemon=True)

    def __enter__(self) -> Self:
        """Connects, when the first call is made."""
        self._thread.start()
        self._do(self._client.__aenter__())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Hangs up."""
        self._do(self._client.__aexit__(kind, error, trace))
        self._do(_finish())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def submit(self, **wanted: Any) -> Job:
        """See `Client.submit`."""
        return self._do(self._client.submit(**wanted))

    def get(self, job_id: str) -> Job:
        """See `Client.get`."""
        return self._do(self._client.get(job_id))

    def jobs(self, **wanted: Any) -> Iterator[Job]:
        """See `Client.jobs`."""
        return self._each(self._client.jobs(**wanted), PAGE)

    def take_back(self, job_id: str) -> Job:
        """See `Client.take_back`."""
        return self._do(self._client.take_back(job_id))

    def resubmit(self, job_id: str) -> Job:
        """See `Client.resubmit`."""
        return self._do(self._client.resubmit(job_id))

    def write_off(self, job_id: str) -> Job:
        """See `Client.write_off`."""
        return self._do(self._client.write_off(job_id))

    def results(self, job_id: str, *, wait: bool = False) -> Results:
        """See `Client.results`."""
        return self._do(self._client.results(job_id, wait=wait))

    def fetch(self, job_id: str, name: str, offset_bytes: int = 0) -> Iterator[bytes]:
        """See `Client.fetch`."""
        return self._each(self._client.fetch(job_id, name, offset_bytes), CHUNKS)

    def cancel(self, job_id: str) -> Job:
        """See `Client.cancel`."""
        return self._do(self._client.cancel(job_id))

    def watch(self, job_id: str) -> Iterator[Job]:
        """See `Client.watch`."""
        return self._each(self._client.watch(job_id))

    def wait(self, job_id: str) -> Job:
        """See `Client.wait`."""
        return self._do(self._client.wait(job_id))

    def status(self) -> operator_pb2.StatusResponse:
        """See `Client.status`."""
        return self._do(self._client.status())

    def partners(self) -> Sequence[operator_pb2.PartnerStatus]:
        """See `Client.partners`."""
        return self._do(self._client.partners())

    def pardon(self, partner: str) -> int:
        """See `Client.pardon`."""
        return self._do(self._client.pardon(partner))

    def reload(self) -> operator_pb2.ReloadPoliciesResponse:
        """See `Client.reload`."""
        return self._do(self._client.reload())

    def drain(self) -> operator_pb2.StatusResponse:
        """See `Client.drain`."""
        return self._do(self._client.drain())

    def resume(self) -> operator_pb2.StatusResponse:
        """See `Client.resume`."""
        return self._do(self._client.resume())

    def _do(self, work: Coroutine[Any, Any, T]) -> T:
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            # Ctrl-C here ends the call there.
            future.cancel()
            raise

    def _each(self, entries: AsyncIterator[T], at_once: int = 1) -> Iterator[T]:
        # From thread to thread takes its time: of many entries, many go at once.
        async def following() -> list[T]:
            found: list[T] = []
            async for entry in entries:
                found.append(entry)
                if len(found) == at_once:
                    break
            return found

        while found := self._do(following()):
            yield from found


async def _finish() -> None:
    """Ends whatever still runs on this loop, as `asyncio.run` does."""
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await asyncio.get_running_loop().shutdown_asyncgens()
