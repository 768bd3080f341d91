"""Users' jobs over gRPC, and those who watch them."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Final, NamedTuple, NoReturn, TypeVar

import grpc
from msgspec.structs import replace

from grms.daemon.job_files import STDERR, STDOUT, STREAMS, FileProblemError
from grms.daemon.messages import WireError
from grms.daemon.rpc.requests import Context, refuse
from grms.lrms.base import Lrms, place_words
from grms.site.gateway.admission import Admission
from grms.site.gateway.user_listener import User
from grms.site.model.commands import ReplyJob
from grms.site.model.events import Cancel, Preview, Submit
from grms.site.model.forgotten_keys import FORGOTTEN_KEY
from grms.site.model.held_jobs import JobArray
from grms.site.model.jobs import HomeJob, Request, full_job_id, is_number
from grms.site.model.lifecycle import JobState
from grms.site.rpc.job_files import look_at_inputs, refused, sent, taken, write_results
from grms.site.rpc.many_jobs import answer_each
from grms.site.rpc.watchers import CHANGED_MAX, UPDATES_MAX, Watchers
from grms.site.runtime.event_loop import Engine
from grms.site.scheduler.state import SiteState
from grms.site.staging.download import NoResultsError, ResultServer
from grms.site.staging.live_output import OutputFollower
from grms.site.staging.stage_in import InputServer
from grms.site.staging.stream_names import stream_names
from grms.site.wire.convert import (
    JOB_STATES,
    checkpoint_of,
    element_part,
    executed_on,
    read_array,
    read_dependencies,
    read_job_state,
    read_request,
    read_sites,
    write_array,
    write_job,
    write_preview,
)
from grms.util.dependencies import Dependency
from grms.util.job_arrays import ArraySpec
from grms.v1 import job_pb2, job_pb2_grpc, request_pb2, results_pb2
from lrms_sim.util.messages import printable, shorten

T = TypeVar("T")

PAGE_MAX: Final = 1000
"""Most jobs in one answer of `List`."""

PAGE_BYTES: Final = 3 << 20
"""An answer of `List` ends with the job at which it exceeds this size in bytes, programs
included."""

LOOKED_AT_MAX: Final = 20_000
"""Most jobs that one answer of `List` examines."""

UNFIT_MAX: Final = 500
"""Most characters of what a batch system has said of a job."""

CHANGES_MAX: Final = 500
"""Most jobs in one message of `Changes`."""

CHANGES_PAUSE_S: Final = 0.05
"""Between two messages of `Changes`, seconds: what changes meanwhile is told together."""

ARRAY_TOLD_S: Final = 1.0
"""An array as a whole is told at most this often, seconds, and at once when it is over: it changes with each element."""


def shown_job(engine: Engine, job: HomeJob) -> job_pb2.Job:
    """Returns a job as its user sees it now."""
    settings = engine.state.settings
    return write_job(job, settings.name, engine.clock.now(), settings.weights)


FORGOTTEN: Final = "job_id.forgotten"
NEVER_WAS: Final = "job_id.never"
"""Fields of refusals: there was such a job, and it is forgotten; there has never been one."""

_HEX: Final = re.compile(r"[0-9a-f]{1,32}", re.ASCII)


class _Wanted(NamedTuple):
    # What `Submit` and `Preview` have besides id and load.
    user: str
    idempotency_key: str
    name: str
    request: Request
    payload: bytes
    unfit: str
    dependencies: tuple[Dependency, ...]
    elements: ArraySpec | None
    part: Callable[[str, int], bytes] | None
    sites: tuple[str, ...]
    checkpoint: float


def place_of(lrms: Lrms, job: HomeJob) -> str:
    """Returns what place a job keeps in the queue that its partner may send home, or has had again that was sent home."""
    away = job.shown is JobState.DELEGATED and job.rerun
    waits = job.state in {JobState.SUBMITTING, JobState.QUEUED} and bool(job.sent_home)
    return place_words(lrms, job.lrms_key, away=away) if away or waits else ""


class JobService(job_pb2_grpc.JobServiceServicer):
    """Implements `proto/grms/v1/job.proto`.

    `unheard` says why there is no news of jobs at a partner, `place` what place a job keeps in the queue here; empty if
    there is nothing to say.
    """

    def __init__(
        self,
        admission: Admission,
        watchers: Watchers,
        results: ResultServer,
        inputs: InputServer,
        *,
        output: OutputFollower,
        unheard: Callable[[str], str],
        place: Callable[[HomeJob], str] = lambda _: "",
    ) -> None:
        self._unheard = unheard
        self._place = place
        self._admission = admission
        self._inputs = inputs
        self._output = output
        self._results = results
        self._engine = admission.engine
        self._site = admission.engine.state.settings.name
        self._watchers = watchers

    async def Submit(self, request: job_pb2.SubmitRequest, context: Context) -> job_pb2.Job:  # noqa: N802  # gRPC's name
        """Takes a job."""
        user, wanted = await self._wanted(request, context)
        if request.request.program.inputs:
            await look_at_inputs(
                context, self._admission, self._inputs, user.name, wanted.payload, field="request"
            )
        event = Submit(*self._engine.stamp(), **wanted._asdict())
        answer = await self._admission.ask(context, event, self._answer)
        self._admission.audit(
            "submit",
            user,
            job=answer.job_id,
            processors=event.request.processors,
            requested_time_s=event.request.requested_time,
            cause=event.id,
        )
        return answer

    async def SubmitMany(  # noqa: N802  # gRPC's name
        self, request: job_pb2.SubmitManyRequest, context: Context
    ) -> job_pb2.SubmitManyResponse:
        """Takes many jobs."""
        answers = await answer_each(context, self._admission, request.submissions, self.Submit)
        return job_pb2.SubmitManyResponse(answers=answers)

    async def Preview(  # noqa: N802  # gRPC's name
        self, request: job_pb2.SubmitRequest, context: Context
    ) -> job_pb2.PreviewResponse:
        """Says what would become of a job."""
        _, wanted = await self._wanted(request, context)
        event = Preview(*self._engine.stamp(), **wanted._asdict())
        return await self._admission.ask(context, event, partial(write_preview, self._site))

    async def _wanted(
        self, request: job_pb2.SubmitRequest, context: Context
    ) -> tuple[User, "_Wanted"]:
        user = await self._admission.user(context)
        await self._admission.check_submission(context, user)
        try:
            wanted, payload = read_request(request.request, "request")
            dependencies = tuple(
                replace(each, job_id=full_job_id(self._site, each.job_id))
                for each in read_dependencies(request.dependencies)
            )
            elements = read_array(request.array)
            sites = read_sites(request, self._site)
        except WireError as error:
            await self._admission.invalid(context, error)
        return user, _Wanted(
            user.name,
            request.idempotency_key,
            request.name,
            wanted,
            payload,
            shorten(printable(request.unfit), UNFIT_MAX),
            dependencies,
            elements,
            _part(elements, runs=request.request.HasField("program")),
            sites,
            checkpoint=checkpoint_of(payload),
        )

    async def PutInput(  # noqa: N802  # gRPC's name
        self, request: job_pb2.PutInputRequest, context: Context
    ) -> job_pb2.PutInputResponse:
        """Takes the next bytes of a file."""
        user = await self._admission.user(context)
        return await taken(context, self._admission, self._inputs, user.name, request)

    async def Get(self, request: job_pb2.GetRequest, context: Context) -> job_pb2.Job:  # noqa: N802  # gRPC's name
        """Returns one job."""
        user = await self._admission.user(context)
        job_id = self._named(request.job_id)
        if request.idempotency_key:
            if job_id:
                text = "job_id and idempotency_key are both there; give one of them"
                await self._admission.invalid(context, WireError("idempotency_key", text))
            job_id = await self._keyed(context, user, request.idempotency_key)
        if self._engine.state.memory.find_array(job_id) is not None:
            return await self._seen_array(context, user, job_id)
        return await self._seen(context, user, job_id, self._write)

    async def GetMany(  # noqa: N802  # gRPC's name
        self, request: job_pb2.GetManyRequest, context: Context
    ) -> job_pb2.GetManyResponse:
        """Returns many jobs."""
        answers = await answer_each(context, self._admission, request.jobs, self.Get)
        return job_pb2.GetManyResponse(answers=answers)

    async def List(  # noqa: N802  # gRPC's name
        self, request: job_pb2.ListRequest, context: Context
    ) -> job_pb2.ListResponse:
        """Returns jobs in the order in which they were received."""
        user = await self._admission.user(context)
        if request.all_users:
            await self._admission.operator(context)
        elif request.user not in {"", user.name}:
            text = f"jobs of {request.user!r} are for operators, with all_users"
            await self._admission.invalid(context, WireError("user", text))
        try:
            states = {read_job_state(number) for number in request.states} or set(JobState)
            first = _page_begin(request.page_token)
        except WireError as error:
            await self._admission.invalid(context, error)
        if request.page_size < 0:
            text = f"page_size is {request.page_size}; it must be at least 0"
            await self._admission.invalid(context, WireError("page_size", text))
        most = min(request.page_size or PAGE_MAX, PAGE_MAX)
        owner = request.user if request.all_users else user.name
        page = partial(self._page, request, owner, states, first=first, most=most)
        return await self._admission.look_at(context, page, lambda job: owner in {"", job.user})

    def _page(
        self,
        request: job_pb2.ListRequest,
        owner: str,
        states: set[JobState],
        state: SiteState,
        *,
        first: int,
        most: int,
    ) -> job_pb2.ListResponse:
        """Returns some jobs from a number on; it looks at so many that others have their turn soon."""
        now = self._engine.clock.now()
        jobs = state.memory.jobs
        answer, size = job_pb2.ListResponse(), 0
        first = max(first, next(iter(jobs), 0))
        for number in range(first, state.memory.next_job):
            if len(answer.jobs) == most or size >= PAGE_BYTES or number - first == LOOKED_AT_MAX:
                answer.next_page_token = str(number)
                break
            job = jobs.get(number)
            if (
                job is None
                or job.shown not in states
                or (owner and job.user != owner)
                or (request.partner and job.partner != request.partner)
                or job.submit_time < request.since_s
            ):
                continue
            stuck = state.why_stuck(job, now)
            if not stuck and job.shown is JobState.DELEGATED:
                stuck = self._unheard(job.partner)
            if job.state is JobState.SUBMITTING:
                stuck = stuck or self._engine.driver.problem
            if request.stuck and not stuck:
                continue
            message = write_job(job, self._site, now, program=not request.without_program)
            message = self._with_reason(message, job)
            message.stuck = stuck
            size += message.ByteSize()
            answer.jobs.append(message)
        return answer

    async def Cancel(self, request: job_pb2.CancelRequest, context: Context) -> job_pb2.Job:  # noqa: N802  # gRPC's name
        """Asks for the end of a job."""
        user = await self._admission.user(context)
        await self._admission.check_journal(context)
        whose = None if self._admission.is_operator(user) else user.name
        event = Cancel(*self._engine.stamp(), self._named(request.job_id), whose)
        answer = await self._admission.ask(context, event, self._answer)
        self._admission.audit("cancel", user, job=event.job_id, cause=event.id)
        # The batch system has been told by now; what came of it may be in the journal, too.
        read = self._of(answer.job_id)
        return answer if read is None else await self._admission.look(context, lambda _: read())

    async def CancelMany(  # noqa: N802  # gRPC's name
        self, request: job_pb2.CancelManyRequest, context: Context
    ) -> job_pb2.CancelManyResponse:
        """Asks for the end of many jobs."""

        async def cancel(job_id: str, one: Context) -> job_pb2.Job:
            return await self.Cancel(job_pb2.CancelRequest(job_id=job_id), one)

        answers = await answer_each(context, self._admission, request.job_ids, cancel)
        return job_pb2.CancelManyResponse(answers=answers)

    async def Changes(  # noqa: N802  # gRPC's name
        self, request: job_pb2.ChangesRequest, context: Context
    ) -> AsyncIterator[job_pb2.ChangesResponse]:
        """Sends what changes of all jobs of a user."""
        user = await self._admission.user(context)
        after = await self._admission.read(context, _read_token, request.after)
        await self._check_watchers(context)

        def told(answer: job_pb2.ChangesResponse, state: SiteState) -> bool:
            # Adds what has changed, and the token if that is all; what is told later has not happened yet.
            jobs, is_all = changed.take(CHANGES_MAX)
            now = self._engine.clock.now()
            for job in jobs:
                message = write_job(job, self._site, now, program=False)
                answer.jobs.append(self._with_reason(message, job))
            if is_all:
                answer.token = _write_token(state)
            return is_all

        with self._watchers.all_of(user.name) as changed:
            if after is not None:
                await self._admission.look(
                    context, lambda state: changed.add(_since(state, user.name, after))
                )
            answer = job_pb2.ChangesResponse(user=user.name)
            while True:
                is_all = await self._admission.look(context, partial(told, answer))
                yield answer
                answer = job_pb2.ChangesResponse()
                if is_all:
                    await asyncio.sleep(CHANGES_PAUSE_S)
                    await changed.event.wait()
                if self._watchers.closed:
                    await self._admission.check_stopping(context)
                if changed.overflown:
                    self._admission.count("slow_watchers", context)
                    text = f"changes of {CHANGED_MAX} jobs were not read in time; go on with the last token"
                    await refuse(context, grpc.StatusCode.RESOURCE_EXHAUSTED, text, retry_s=0.0)

    async def Watch(  # noqa: N802  # gRPC's name
        self, request: job_pb2.WatchRequest, context: Context
    ) -> AsyncIterator[job_pb2.Job]:
        """Sends a job's state and its changes until its end.

        What becomes durable together is sent as the last of it; an array as a whole now and then.
        """
        user = await self._admission.user(context)
        job_id = self._named(request.job_id)
        if self._engine.state.memory.find_array(job_id) is not None:
            async for whole in self._watched_array(context, user, job_id):
                yield whole
            return
        await self._seen(context, user, job_id, lambda _: None)
        await self._check_watchers(context)
        queue = self._watchers.add(job_id)
        try:
            # Who has this knows that no later change escapes it.
            await context.send_initial_metadata(())
            # Jobs are shown as they are once a write is over, so some changes come twice.
            revision = 0
            told: job_pb2.Job | None = await self._seen(context, user, job_id, self._write)
            while True:
                if told is not None and told.revision > revision:
                    revision = told.revision
                    yield told
                    if told.state == JOB_STATES[JobState.ENDED]:
                        return
                told = await queue.get()
                if self._watchers.closed:
                    await self._admission.check_stopping(context)
                if told is None:
                    self._admission.count("slow_watchers", context)
                    await refuse(
                        context,
                        grpc.StatusCode.RESOURCE_EXHAUSTED,
                        f"{UPDATES_MAX} changes were not read in time; watch again",
                    )
        finally:
            self._watchers.remove(queue, job_id)

    async def _check_watchers(self, context: Context) -> None:
        if self._watchers.full:
            self._admission.count("watchers", context)
            await refuse(
                context,
                grpc.StatusCode.RESOURCE_EXHAUSTED,
                "as many calls watch as this site allows; use Get, or try again later",
                retry_s=5.0,
            )

    async def _watched_array(
        self, context: Context, user: User, array_id: str
    ) -> AsyncIterator[job_pb2.Job]:
        await self._seen_array(context, user, array_id)
        await self._check_watchers(context)
        changed, told = self._watchers.add_array(array_id), None
        try:
            await context.send_initial_metadata(())
            while True:
                changed.clear()
                whole = await self._seen_array(context, user, array_id)
                if whole != told:
                    told = whole
                    yield whole
                    if whole.state == JOB_STATES[JobState.ENDED]:
                        return
                    await self._a_while(array_id, changed)
                await changed.wait()
                if self._watchers.closed:
                    await self._admission.check_stopping(context)
        finally:
            self._watchers.remove_array(changed, array_id)

    async def _a_while(self, array_id: str, changed: asyncio.Event) -> None:
        # Returns when the next change of an array may be told.
        with suppress(TimeoutError):
            async with asyncio.timeout(ARRAY_TOLD_S):
                while not self._watchers.closed:
                    await changed.wait()
                    array = self._engine.state.memory.find_array(array_id)
                    if array is None or not array.open:
                        return
                    changed.clear()
        changed.set()

    async def Results(  # noqa: N802  # gRPC's name
        self, request: job_pb2.ResultsRequest, context: Context
    ) -> results_pb2.ResultList:
        """Says which files a job has left."""
        user = await self._admission.user(context)
        job = await self._seen(context, user, self._named(request.job_id), lambda job: job)
        names, append = stream_names(job, executed_on(job, self._site))
        answer = write_results(await self._results.of_job(job))
        answer.append = append
        for file in answer.files:
            if file.name in STREAMS:
                file.written_as = names.get(file.name, "")
        return answer

    async def FetchResult(  # noqa: N802  # gRPC's name
        self, request: job_pb2.FetchResultRequest, context: Context
    ) -> AsyncIterator[results_pb2.ResultChunk]:
        """Sends one of them."""
        user = await self._admission.user(context)
        job = await self._seen(context, user, self._named(request.job_id), lambda job: job)
        pieces = self._results.read_job(job, request.name, request.offset_bytes)
        async for chunk in sent(context, pieces):
            yield chunk

    async def RemoveResults(  # noqa: N802  # gRPC's name
        self, request: job_pb2.RemoveResultsRequest, context: Context
    ) -> job_pb2.RemoveResultsResponse:
        """Deletes what a job has left."""
        user = await self._admission.user(context)
        job = await self._seen(context, user, self._named(request.job_id), lambda job: job)
        try:
            await self._results.remove(job)
        except NoResultsError as error:
            await refused(context, error)
        self._admission.audit("remove_results", user, job=job.job_id)
        return job_pb2.RemoveResultsResponse()

    async def FollowOutput(  # noqa: N802  # gRPC's name
        self, request: job_pb2.FollowOutputRequest, context: Context
    ) -> AsyncIterator[job_pb2.OutputChunk]:
        """Sends what a job prints, until its end."""
        user = await self._admission.user(context)
        job_id = self._named(request.job_id)
        await self._seen(context, user, job_id, lambda _: None)
        await self._check_watchers(context)
        pieces = self._output.follow(
            job_id,
            STDERR if request.error else STDOUT,
            request.offset_bytes,
            once=request.once,
            stopped=lambda: self._watchers.closed,
        )
        with self._watchers.another():
            try:
                async for each in pieces:
                    yield job_pb2.OutputChunk(
                        content=each.content, anew=each.anew, notice=each.notice
                    )
            except (ValueError, FileProblemError, NoResultsError) as error:
                await refused(context, error)
        if self._watchers.closed:
            await self._admission.check_stopping(context)

    async def _keyed(self, context: Context, user: User, key: str) -> str:
        """Returns the id of the job that a user has submitted with a key."""

        def look(state: SiteState) -> str | None:
            number = state.memory.keys.get((user.name, key), 0)
            if (array := state.memory.held.arrays.get(number)) is not None:
                return array.array_id
            job = state.memory.jobs.get(number)
            return None if job is None else job.job_id

        found = await self._admission.look(context, look)
        if found is None:
            memory = self._engine.state.memory
            text, field = (
                f"{user.name} has submitted no job with the key {key!r}",
                "idempotency_key",
            )
            if number := memory.forgotten_keys.number(user.name, key):
                text = f"{text} any more: {memory.job_name(number)} ended so long ago that it is forgotten"
                field = FORGOTTEN_KEY
            await refuse(context, grpc.StatusCode.NOT_FOUND, text, field=field)
        return found

    async def _seen(
        self, context: Context, user: User, job_id: str, read: Callable[[HomeJob], T]
    ) -> T:
        def look(state: SiteState) -> tuple[T] | None:
            job = state.job(job_id)
            if job is None or (job.user != user.name and not self._admission.is_operator(user)):
                return None
            return (read(job),)

        found = await self._admission.look_at(context, look, lambda job: job.job_id == job_id)
        if found is None:
            await self._not_found(context, user, job_id)
        return found[0]

    async def _seen_array(self, context: Context, user: User, array_id: str) -> job_pb2.Job:
        def look(state: SiteState) -> job_pb2.Job | None:
            array = state.memory.find_array(array_id)
            if array is None or (array.user != user.name and not self._admission.is_operator(user)):
                return None
            return self._write_array(array)

        found = await self._admission.look_at(context, look, lambda job: job.array_id == array_id)
        if found is None:
            await self._not_found(context, user, array_id)
        return found

    async def _not_found(self, context: Context, user: User, job_id: str) -> NoReturn:
        self._admission.count("not_found", context, repr(job_id))
        memory = self._engine.state.memory
        array = memory.find_array(job_id)
        text, field = f"there is no job {job_id!r} of {user.name}", "job_id"
        if array is not None and (array.user == user.name or self._admission.is_operator(user)):
            text = f"{job_id} is an array; name one of its elements, such as {array.element_id(array.spec.first)}"
        elif array is None and memory.find_job(job_id) is None:
            given = memory.was_given(job_id)
            if given:
                text = f"there is no job {job_id!r} any more: it ended so long ago that it is forgotten"
                field = FORGOTTEN
            elif given is not None:
                text, field = f"there is no job {job_id!r}, and there has never been one", NEVER_WAS
        await refuse(context, grpc.StatusCode.NOT_FOUND, text, field=field)

    def _named(self, word: str) -> str:
        # The name of a job of which the number may be given alone.
        return full_job_id(self._site, word)

    def _answer(self, reply: ReplyJob) -> job_pb2.Job:
        read = self._of(reply.job_id)
        assert read is not None
        return read()

    def _of(self, job_id: str) -> Callable[[], job_pb2.Job] | None:
        # What shows the job, or the array, of that name; None if there is none.
        memory = self._engine.state.memory
        job = memory.find_job(job_id)
        if job is not None:
            return partial(self._write, job)
        array = memory.find_array(job_id)
        return None if array is None else partial(self._write_array, array)

    def _write(self, job: HomeJob) -> job_pb2.Job:
        return self._with_reason(shown_job(self._engine, job), job)

    def _with_reason(self, message: job_pb2.Job, job: HomeJob) -> job_pb2.Job:
        # What a held job waits for is not of the job alone, nor what place one has in the queue.
        message.place = self._place(job)
        if job.hindered and job.state in {JobState.SUBMITTING, JobState.QUEUED}:
            message.stuck = job.hindered
        if job.state is JobState.HELD:
            message.reason = self._engine.state.memory.held.why(job.job)
        elif (
            job.limited
            and not (job.partner or message.stuck)
            and message.phase == request_pb2.JOB_PHASE_WAITING
        ):
            message.reason = f"not offered to partners: {job.limited}"
        elif not message.reason:
            message.reason = message.stuck
        return message

    def _write_array(self, array: JobArray) -> job_pb2.Job:
        memory = self._engine.state.memory
        jobs = [memory.jobs[number] for number in array.numbers if number in memory.jobs]
        return write_array(array, jobs, sum(job.state is JobState.HELD for job in jobs))


def _part(elements: ArraySpec | None, *, runs: bool) -> Callable[[str, int], bytes] | None:
    if elements is None:
        return None
    # What runs nothing finds nothing.
    return partial(element_part, elements) if runs else lambda _, __: b""


def _since(state: SiteState, user: str, after: str) -> Iterator[HomeJob]:
    """Yields a user's jobs that are open, or have ended after the moment of a token."""
    memory = state.memory
    ended: list[int] = []
    epoch, _, number = after.partition(".")
    last = int(number or 0) if epoch == f"{memory.epoch:x}" else 0
    for job in reversed(memory.ended):
        if job == last:
            break
        ended.append(job)
    for job in reversed(ended):
        if memory.jobs[job].user == user:
            yield memory.jobs[job]
    for one in memory.jobs.values():
        if one.user == user and one.state is not JobState.ENDED:
            yield one


def _write_token(state: SiteState) -> str:
    # The job that ended last: what has ended behind it is news. Numbers begin anew with the site's epoch.
    memory = state.memory
    return f"{memory.epoch:x}.{memory.ended[-1] if memory.ended else 0}"


def _read_token(after: str) -> str | None:
    if not after:
        return None
    epoch, _, number = after.partition(".")
    if after != "0" and not (_HEX.fullmatch(epoch) and is_number(number)):
        raise WireError("after", "after is no token that this site has given")
    return after


def _page_begin(token: str) -> int:
    if not token:
        return 0
    if not (token.isascii() and token.isdigit() and len(token) < 20):
        raise WireError("page_token", "page_token is none that this site has given")
    return int(token)
