"""Brings home what jobs have left at partners.

After the end of a delegated job its files are asked for until they are here, or the partner says that
there are none. What came in part goes on where it stopped. When all is durable here the partner is told
that it may delete them; that is a courtesy, and said once: a partner deletes them after some days anyway.

What is still to come is not in the journal: it follows from the ended jobs that the site remembers, and
from what is in the store.
"""

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

import grpc
import structlog
from grpc import aio

from grms.kit.backoff import Backoff, BackoffSettings
from grms.kit.file_names import STREAMS
from grms.kit.job_files import FileLimits, FileProblem, JobFile
from grms.names import printable
from grms.site.engine.engine import Engine
from grms.site.facts.jobs import HomeJob
from grms.site.facts.lifecycle import JobState, Outcome
from grms.site.facts.wire import declared_outputs, write_offer
from grms.site.links.calls import SenselessError, answer_to
from grms.site.links.partner_links import PartnerLinks
from grms.site.results.store import Manifest, ResultStore, WrongContentError
from grms.site.results.streams import FILE_TIMEOUT_S, bring
from grms.v1 import partner_pb2, results_pb2

PAUSES: Final = BackoffSettings(first_s=0.5, most_s=60.0)
"""Between attempts to get a job's files."""

AT_ONCE: Final = 4
"""Jobs whose files come at one time."""

CALL_TIMEOUT_S: Final = 60.0
"""For one question."""
PROBLEMS: Final = {
    results_pb2.FILE_PROBLEM_UNSPECIFIED: None,
    results_pb2.FILE_PROBLEM_MISSING: FileProblem.MISSING,
    results_pb2.FILE_PROBLEM_NO_FILE: FileProblem.NO_FILE,
    results_pb2.FILE_PROBLEM_TOO_LARGE: FileProblem.TOO_LARGE,
}

_FINAL = (grpc.StatusCode.NOT_FOUND, grpc.StatusCode.INVALID_ARGUMENT)

Log = structlog.typing.FilteringBoundLogger


class Collector:
    """Gets the files of ended jobs from partners.

    Args:
        engine: knows the jobs.
        links: to the partners.
        store: where files go.
        limits: what is larger is not taken.
        keep_s: so long after its end a job's files are tried for, seconds.
        log: where it is told what came and what did not.
        clock: seconds since 1970, as ends of jobs have them.
        pauses: between attempts.
    """

    def __init__(
        self,
        engine: Engine,
        links: PartnerLinks,
        store: ResultStore,
        limits: FileLimits,
        *,
        keep_s: float,
        log: Log,
        clock: Callable[[], float] = time.time,
        pauses: BackoffSettings = PAUSES,
    ) -> None:
        self._engine = engine
        self._links = links
        self._store = store
        self._limits = limits
        self._keep_s = keep_s
        self._log = log
        self._clock = clock
        self._pauses = pauses
        self._wanted: asyncio.Queue[str] = asyncio.Queue()
        self._under_way: set[str] = set()
        self._room = asyncio.Semaphore(AT_ONCE)

    def _told(self, job: HomeJob) -> None:
        if _leaves_files(job):
            self._wanted.put_nowait(job.job_id)

    async def run(self) -> None:
        """Gets files until it is cancelled."""
        self._engine.on_publish(self._told)
        for job in self._engine.jobs():
            self._told(job)
        async with asyncio.TaskGroup() as group:
            while True:
                job_id = await self._wanted.get()
                if job_id not in self._under_way:
                    self._under_way.add(job_id)
                    group.create_task(self._bring(job_id), name=f"results of {job_id}")

    async def _bring(self, job_id: str) -> None:
        backoff = Backoff(self._pauses)
        try:
            while not await self._tried(job_id):  # noqa: ASYNC110  # a partner tells nothing
                await asyncio.sleep(backoff.next_s())
        finally:
            self._under_way.discard(job_id)

    async def _tried(self, job_id: str) -> bool:
        """Returns whether nothing more is to be done about a job."""
        job = self._engine.job(job_id)
        if job is None:
            return True
        try:
            if await asyncio.to_thread(self._store.manifest, job_id) is not None:
                return True
            if self._clock() > job.end_time + self._keep_s:
                reason = f"{job.partner} could not be asked in time"
                await self._finish(job, Manifest(problem=reason))
                return True
            link = self._links.links.get(job.partner)
            if link is None or link.stub is None:
                return False
            async with self._room:
                await self._finish(job, await self._fetched(job, link.stub))
                await self._let_go(job, link.stub)
        except (aio.AioRpcError, ConnectionError, WrongContentError, OSError) as error:
            problem = str(error)
            if isinstance(error, aio.AioRpcError):
                problem = f"{error.code().name}: {error.details()}"
            self._log.warning(
                "results_did_not_come", job=job_id, partner=job.partner, problem=printable(problem)
            )
            return False
        return True

    async def _fetched(self, job: HomeJob, stub: Any) -> Manifest:
        site, offer = self._engine.state.settings.name, write_offer(job.offer)
        try:
            asked = partner_pb2.ListGuestResultsRequest(site=site, offer=offer)
            answer = await answer_to(stub.ListGuestResults(asked, timeout=CALL_TIMEOUT_S))
            files = self._read(job, answer)
            for number, file in enumerate(files):
                if file.problem is None:
                    await self._file(job, stub, number, file)
        except SenselessError as error:
            return Manifest(problem=f"{job.partner} hands out no files: {printable(str(error))}")
        except aio.AioRpcError as error:
            if error.code() not in _FINAL:
                raise
            reason = printable(error.details() or "")[:200]
            return Manifest(problem=f"{job.partner} has no files of it: {reason}")
        return Manifest(files)

    async def _let_go(self, job: HomeJob, stub: Any) -> None:
        site, offer = self._engine.state.settings.name, write_offer(job.offer)
        drop = partner_pb2.DropGuestResultsRequest(site=site, offer=offer)
        with suppress(SenselessError, aio.AioRpcError, ConnectionError):
            await answer_to(stub.DropGuestResults(drop, timeout=CALL_TIMEOUT_S))

    def _read(self, job: HomeJob, answer: results_pb2.ResultList) -> tuple[JobFile, ...]:
        # The partner's word is held to what the job has declared, and to this site's limits.
        said = {file.name: file for file in answer.files}
        found, left = [], self._limits.job_bytes
        for name in (*STREAMS, *(declared_outputs(job.payload) or ())):
            file = said.get(name)
            if file is None:
                found.append(JobFile(name, problem=FileProblem.MISSING))
                continue
            problem = PROBLEMS.get(file.problem, FileProblem.NO_FILE)
            if problem is None and len(file.sha256) != 32:
                raise SenselessError(f"the digest of a file has {len(file.sha256)} bytes")
            if problem is None and file.size_bytes > min(self._limits.file_bytes, left):
                problem = FileProblem.TOO_LARGE
            if problem is None:
                left -= file.size_bytes
            found.append(JobFile(name, file.size_bytes, file.sha256, problem))
        return tuple(found)

    async def _file(self, job: HomeJob, stub: Any, number: int, file: JobFile) -> None:
        def call(there: int) -> Any:
            request = partner_pb2.FetchGuestResultRequest(
                site=self._engine.state.settings.name,
                offer=write_offer(job.offer),
                name=file.name,
                offset_bytes=there,
            )
            return stub.FetchGuestResult(request, timeout=FILE_TIMEOUT_S)

        await bring(self._store, job.job_id, number, file, call)

    async def _finish(self, job: HomeJob, manifest: Manifest) -> None:
        await asyncio.to_thread(self._store.finish, job.job_id, manifest)
        count = sum(file.problem is None for file in manifest.files)
        self._log.info(
            "results_came",
            job=job.job_id,
            partner=job.partner,
            files=count,
            problem=manifest.problem,
        )


def _leaves_files(job: HomeJob) -> bool:
    return (
        job.state is JobState.ENDED
        and bool(job.partner)
        and job.outcome is not Outcome.NOT_RUN
        and declared_outputs(job.payload) is not None
    )
