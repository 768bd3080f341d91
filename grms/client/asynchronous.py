"""The client of a site for programs with an event loop, and the same in a thread with a loop of its own."""

import asyncio
import hashlib
import os
import time
from collections import defaultdict
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Iterator,
    Mapping,
    Sequence,
)
from functools import partial
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any, Final, Protocol, Self, TypeVar, Unpack

from google.protobuf.message import Message
from grpc import aio

from grms.client.answers import Changes, Job, OutputPiece, read_job
from grms.client.calls import Calls
from grms.client.errors import SiteError
from grms.client.submission import JobDescription, submit_request
from grms.client.unary import Method, by_library
from grms.client.unary_methods import UnaryMethods, ask_many
from grms.client.uploading import FileChangedError, upload
from grms.daemon.job_files import check_inputs, mode_of
from grms.daemon.pacing import TIMEOUT_S, Backoff, BackoffSettings
from grms.v1 import job_pb2, operator_pb2, request_pb2

if TYPE_CHECKING:
    pass


ASKED: Final = BackoffSettings(first_s=1.0, most_s=15.0)
"""Between two questions whether a job has ended, where nothing can be followed."""


class Site(Protocol):
    """What a client has for it."""

    async def get(self, job_id: str) -> Job:
        """Returns a job."""
        ...

    def changes(self) -> AsyncIterator[Changes]:
        """Yields what changes of the caller's jobs."""
        ...


class Ends:
    """Tells when jobs of the caller end.

    `alone` waits for one by a call of its own: an array, another user's job, or at a daemon that is older than the call for all.
    """

    def __init__(self, site: Site, alone: Callable[[str], Awaitable[Job]]) -> None:
        self._site = site
        self._alone = alone
        self._waiting: defaultdict[str, set[asyncio.Future[Job]]] = defaultdict(set)
        self._user: asyncio.Future[str] | None = None
        self._following: asyncio.Task[None] | None = None
        self._count = 0

    async def of(self, job_id: str) -> Job:
        """Returns a job once it has ended."""
        self._count += 1
        try:
            return await self._told(job_id)
        except SiteError as error:
            if error.code == "UNIMPLEMENTED":
                # An older daemon, which follows one job a call.
                return await self._alone(job_id)
            if error.code != "RESOURCE_EXHAUSTED":
                raise
            # As many calls follow jobs as the site allows, which goes on for as long as they like.
            return await self._asked(job_id)
        finally:
            self._count -= 1
            if not self._count:
                self.close()

    async def _told(self, job_id: str) -> Job:
        user = await asyncio.shield(self._follow())
        job = await self._site.get(job_id)
        if job.has_ended:
            return job
        if job.array is not None or job.user != user:
            return await self._alone(job_id)
        return await self._end(job.job_id)

    async def _asked(self, job_id: str) -> Job:
        backoff = Backoff(ASKED)
        while True:
            job = await self._site.get(job_id)
            if job.has_ended:
                return job
            await asyncio.sleep(backoff.next_s())

    async def _end(self, job_id: str) -> Job:
        end: asyncio.Future[Job] = asyncio.get_running_loop().create_future()
        self._waiting[job_id].add(end)
        try:
            # What ended between the answer and now is found by asking once more.
            job = await self._site.get(job_id)
            return job if job.has_ended else await end
        finally:
            self._waiting[job_id].discard(end)
            if not self._waiting[job_id]:
                del self._waiting[job_id]

    def close(self) -> None:
        """Ends the call; nobody waits any more."""
        if self._following is not None:
            self._following.cancel()
        self._following = self._user = None

    def _follow(self) -> asyncio.Future[str]:
        # Resolves to the user whose jobs are followed.
        if self._user is None or self._following is None or self._following.done():
            self._user = asyncio.get_running_loop().create_future()
            self._following = asyncio.create_task(self._tell(self._user), name="ends of jobs")
        return self._user

    async def _tell(self, user: asyncio.Future[str]) -> None:
        try:
            async for told in self._site.changes():
                if not user.done():
                    user.set_result(told.user)
                for job in told.jobs:
                    if job.has_ended:
                        self._tell_end(job)
        except asyncio.CancelledError:
            user.cancel()
            raise
        except Exception as error:  # noqa: BLE001  # it belongs to whoever waits
            self._tell_error(user, error)

    def _tell_end(self, job: Job) -> None:
        for end in self._waiting.get(job.job_id, ()):
            if not end.done():
                end.set_result(job)

    def _tell_error(self, user: asyncio.Future[str], error: Exception) -> None:
        if not user.done():
            user.set_exception(error)
            user.exception()  # nobody may have asked
        for ends in self._waiting.values():
            for end in ends:
                if not end.done():
                    end.set_exception(error)


class Client(UnaryMethods[Calls]):
    """A user's or operator's connection to a site's Unix socket; an asynchronous context.

    `timeout_s` is the timeout of a call with its retries, seconds.
    """

    def __init__(self, socket: str | Path, *, timeout_s: float = TIMEOUT_S) -> None:
        super().__init__(Calls(Path(socket), timeout_s))
        self._ends = Ends(self, self._watched_to_its_end)

    async def __aenter__(self) -> Self:
        self._calls.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._ends.close()
        await self._calls.close()

    async def submit(self, **wanted: Unpack[JobDescription]) -> Job:
        """Submits a job. When this returns, the site will run it exactly once.

        Raises:
            ValueError: no site could accept such a job.
            OSError: a file cannot be read.
            SiteUnavailable: the site cannot be reached, or takes no work now.
            SiteError: it was refused.
        """
        request, inputs = submit_request(**wanted), wanted.get("inputs") or {}
        if request.request.HasField("program"):
            check_inputs(inputs)
            await self._put_all(request, inputs)
        try:
            job = await self._calls.call(self._calls.jobs.Submit, request)
        except SiteError as refusal:
            if refusal.field != "inputs" or not inputs:
                raise
            # While the last ones were on the way the first ones may have become too old.
            await self._put_all(request, inputs)
            job = await self._calls.call(self._calls.jobs.Submit, request)
        return read_job(job)

    async def submit_many(self, jobs: Sequence[Mapping[str, Any]]) -> list[Job | SiteError]:
        """Submits jobs that share calls and writes of the site's journal, and returns what became of each, in order.

        What one is refused for does not touch the others. A key for each makes it safe to hand in all of them again.

        Args:
            jobs: the arguments of `submit` for each.

        Raises:
            ValueError: no site could accept one of them; none was submitted.
            OSError: a file cannot be read.
            SiteUnavailable: the site cannot be reached; some may have been taken.
            SiteError: it has refused all of them.
        """
        wanted = [(submit_request(**job), job) for job in jobs]
        put: dict[tuple[str, str], request_pb2.InputFile] = {}
        for request, job in wanted:
            inputs = job.get("inputs") or {}
            if request.request.HasField("program"):
                check_inputs(inputs)
                await self._put_all(request, inputs, put)
        answers = await self._submitted(wanted)
        lost = [
            at
            for at, each in enumerate(answers)
            if isinstance(each, SiteError) and each.field == "inputs" and jobs[at].get("inputs")
        ]
        if lost:
            # While the last ones were on the way the first ones may have become too old.
            put.clear()
            for at in lost:
                await self._put_all(wanted[at][0], jobs[at]["inputs"], put)
            for at, again in zip(
                lost, await self._submitted([wanted[at] for at in lost]), strict=True
            ):
                answers[at] = again
        return answers

    async def _submitted(
        self, wanted: Sequence[tuple[job_pb2.SubmitRequest, Mapping[str, Any]]]
    ) -> list[Job | SiteError]:
        return await ask_many(
            self._calls,
            self._calls.jobs.SubmitMany,
            [request for request, _ in wanted],
            lambda some: job_pb2.SubmitManyRequest(submissions=some),
            job_pb2.SubmitRequest.ByteSize,
        )

    async def _put_all(
        self,
        request: job_pb2.SubmitRequest,
        inputs: Mapping[str, str | Path],
        put: dict[tuple[str, str], request_pb2.InputFile] | None = None,
    ) -> None:
        # `put` has what has been uploaded before, by name and path.
        program = request.request.program
        given = [each for each in program.inputs if each.shared_path]
        put = {} if put is None else put
        for name, path in inputs.items():
            file = put.get((name, str(path)))
            if file is None:
                file = put[name, str(path)] = await self._put(name, Path(path))
            given.append(file)
        del program.inputs[:]
        program.inputs.extend(given)

    async def _put(self, name: str, path: Path) -> request_pb2.InputFile:
        # Uploads a file and returns its description for a job.
        with path.open("rb") as content:
            digest = await asyncio.to_thread(hashlib.file_digest, content, "sha256")
            size = content.seek(0, os.SEEK_END)
            mode = mode_of(os.fstat(content.fileno()))
        file = request_pb2.InputFile(name=name, size_bytes=size, sha256=digest.digest(), mode=mode)
        try:
            await upload(partial(self._calls.call, self._calls.jobs.PutInput), file, path)
        except FileChangedError as error:
            raise SiteError("ABORTED", str(error)) from error
        return file

    async def fetch(self, job_id: str, name: str, offset_bytes: int = 0) -> AsyncIterator[bytes]:
        """Yields a file of `results` from a byte on, in pieces.

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

    async def follow(
        self, job_id: str, *, error: bool = False, once: bool = False
    ) -> AsyncIterator[OutputPiece]:
        """Yields what a job prints, until its end, wherever it runs; with `once` what there is by now.

        Restarts of the daemon do not matter.

        Raises:
            SiteError: there is no such job, or it leaves no output.
        """
        request = job_pb2.FollowOutputRequest(job_id=job_id, error=error, once=once)
        deadline, backoff = self._calls.attempts()
        while True:
            began = time.monotonic()
            try:
                async for message in self._calls.jobs.FollowOutput(request):
                    deadline = time.monotonic() + self._calls.timeout_s
                    backoff.reset()
                    begin = 0 if message.anew else request.offset_bytes
                    request.offset_bytes = begin + len(message.content)
                    yield OutputPiece(message.content, message.anew, message.notice)
            except aio.AioRpcError as problem:
                deadline = self._calls.renewed(deadline, began)
                await self._calls.pause_or_raise(problem, deadline, backoff.next_s())
            else:
                return

    async def watch(self, job_id: str) -> AsyncIterator[Job]:
        """Yields the state of a job, or of an array as a whole, and every change until its end.

        Restarts of the daemon do not matter. Of changes that become durable together it is the last; an array, which
        changes with each of its elements, comes about once a second, and at once when it is over.

        Raises:
            SiteUnavailable: the site cannot be reached within the timeout.
            SiteError: there is none of that id, or it is another user's.
        """
        _check_named(job_id)
        request = job_pb2.WatchRequest(job_id=job_id)
        deadline, backoff = self._calls.attempts()
        shown: Job | None = None
        while True:
            began = time.monotonic()
            try:
                async for message in self._calls.jobs.Watch(request):
                    deadline = time.monotonic() + self._calls.timeout_s
                    backoff.reset()
                    # Revisions cannot be compared: a restarted daemon counts anew.
                    job = read_job(message)
                    if job != shown:
                        shown = job
                        yield job
                    if job.has_ended:
                        return
                await asyncio.sleep(backoff.next_s())
            except aio.AioRpcError as error:
                deadline = self._calls.renewed(deadline, began)
                await self._calls.pause_or_raise(error, deadline, backoff.next_s())

    async def changes(self, after: str = "") -> AsyncIterator[Changes]:
        """Yields at once, and then whenever jobs of the user change, without end; a job is told as it is by then.

        Restarts of the daemon do not matter: nothing is left out, but an open job may be told again.

        Args:
            after: the token of what an earlier program was told: first all that is open or has ended since. Empty:
                from now on; `0`: first all that the site remembers.

        Raises:
            SiteUnavailable: the site cannot be reached within the timeout.
            SiteError: it was refused.
        """
        request = job_pb2.ChangesRequest(after=after)
        deadline, backoff = self._calls.attempts()
        user = ""
        while True:
            began = time.monotonic()
            call = self._calls.jobs.Changes(request)
            try:
                async for message in call:
                    deadline = time.monotonic() + self._calls.timeout_s
                    backoff.reset()
                    user = message.user or user
                    yield Changes(tuple(map(read_job, message.jobs)), message.token, user)
                    # What is half told is told again.
                    request.after = message.token or request.after
                await asyncio.sleep(backoff.next_s())
            except aio.AioRpcError as error:
                deadline = self._calls.renewed(deadline, began)
                await self._calls.pause_or_raise(error, deadline, backoff.next_s())
            finally:
                call.cancel()

    async def wait(self, job_id: str) -> Job:
        """Waits for the end of a job and returns it. However many are waited for, the site has one call of it.

        Raises:
            SiteUnavailable: the site cannot be reached within the timeout.
            SiteError: there is none of that id, or it is another user's.
        """
        _check_named(job_id)
        return await self._ends.of(job_id)

    async def _watched_to_its_end(self, job_id: str) -> Job:
        last: Job | None = None
        async for job in self.watch(job_id):
            last = job
        assert last is not None
        return last

    async def reload(self) -> operator_pb2.ReloadPoliciesResponse:
        """Lets the site read its configuration anew, all or none; for operators."""
        return await self._calls.call(
            self._calls.operator.ReloadPolicies, operator_pb2.ReloadPoliciesRequest()
        )

    async def pardon(self, partner: str) -> int:
        """Ends a partner's suspension and returns the number of breaches forgotten; for operators.

        Raises:
            SiteError: there is no partner of that name.
        """
        request = operator_pb2.PardonRequest(partner=partner)
        answer: operator_pb2.PardonResponse = await self._calls.call(
            self._calls.operator.Pardon, request
        )
        return int(answer.breaches)

    async def take_back(self, job_id: str) -> Job:
        """Ends a job at its partner, and decides it anew; for operators.

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


def _check_named(job_id: str) -> None:
    # From an unset variable of a shell; the site need not be asked.
    if not job_id:
        raise SiteError("NOT_FOUND", "there is no job ''", "job_id")


T = TypeVar("T")


class ClientThread:
    """A client that is connected, and its thread; it may be used from several threads."""

    def __init__(self, socket: Path, timeout_s: float) -> None:
        self.client = Client(socket, timeout_s=timeout_s)
        self._calls = Calls(socket, timeout_s)
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, name="hanse client", daemon=True)
        self._thread.start()
        self.do(self._open())

    async def _open(self) -> None:
        await self.client.__aenter__()
        self._calls.open()

    async def call(self, method: Method[Any], request: Message, left_s: float) -> Any:
        """Returns the answer of a method, by gRPC's library, within so many seconds."""
        return await by_library(self._calls, method, request, left_s)

    def close(self) -> None:
        """Hangs up, and ends the thread."""
        self.do(self._calls.close())
        self.do(self.client.__aexit__(None, None, None))
        self.do(_finish())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        """Returns what a coroutine of the client returns."""
        try:
            future = asyncio.run_coroutine_threadsafe(work, self._loop)
        except RuntimeError:  # it is closed
            work.close()
            raise
        try:
            return future.result()
        except BaseException:
            # Ctrl-C here ends the call there.
            future.cancel()
            raise

    def each(self, entries: AsyncIterator[T], at_once: int = 1) -> Iterator[T]:
        """Yields what the client does, so many entries at once: switching threads is slow."""

        async def following() -> list[T]:
            found: list[T] = []
            async for entry in entries:
                found.append(entry)
                if len(found) == at_once:
                    break
            return found

        while found := self.do(following()):
            yield from found


async def _finish() -> None:
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await asyncio.get_running_loop().shutdown_asyncgens()
