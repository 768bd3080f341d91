"""Fetches results of jobs from partners.

After the end of a delegated job, its files are requested until they are here or the partner says that there
are none. Partial files are resumed. Once all is durable, the partner is told which files it may delete; this is
a courtesy, as a partner deletes them after some days anyway.

Files that are too large or undeclared stay at the partner until they expire there; the manifest says where.
Digests that a partner is still computing are requested again, and small jobs do not wait for large ones.

Pending transfers are not in the journal: they follow from the ended jobs that the site remembers and from the
store.
"""

import asyncio
import math
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any, Final

import grpc
import structlog
from grpc import aio

from grms.daemon.file_store import Manifest, ResultStore, WrongContentError
from grms.daemon.job_files import (
    MODE_MAX,
    RESULTS_MAX,
    STREAMS,
    WORKING_FOLDER,
    FileLimits,
    FileProblem,
    JobFile,
    WantedFiles,
    check_name,
)
from grms.daemon.pacing import Backoff, BackoffSettings
from grms.site.model.jobs import HomeJob
from grms.site.model.lifecycle import JobState, Outcome
from grms.site.peers.peer import SenselessError, answer_to, stub_of
from grms.site.peers.peers import PeerClients
from grms.site.runtime.event_loop import Engine
from grms.site.staging.fair_slots import FairSlots
from grms.site.staging.quotas import NoRoomError, UserQuota
from grms.site.staging.streams import FILE_TIMEOUT_S, Progress, bring
from grms.site.wire.convert import declared_outputs, write_offer
from grms.v1 import partner_pb2, results_pb2
from lrms_sim.util.messages import printable

PAUSES: Final = BackoffSettings(first_s=0.5, most_s=60.0)
"""Between attempts to get a job's files."""

AT_ONCE: Final = 4
"""Jobs per partner whose files are transferred concurrently."""

ASKED_AT_ONCE: Final = 8
"""Jobs per partner whose files are listed concurrently."""

NOT_YET_S: Final = 5.0
"""Longest pause if a partner's files are not ready yet, seconds."""

DROPS: Final = 5
"""Attempts to tell a partner what is here."""

CALL_TIMEOUT_S: Final = 60.0
"""Timeout of a call."""
PROBLEMS: Final = {
    results_pb2.FILE_PROBLEM_UNSPECIFIED: None,
    results_pb2.FILE_PROBLEM_MISSING: FileProblem.MISSING,
    results_pb2.FILE_PROBLEM_NO_FILE: FileProblem.NO_FILE,
    results_pb2.FILE_PROBLEM_TOO_LARGE: FileProblem.TOO_LARGE,
}

FOLDER_MAX: Final = 4096
"""Longest path accepted from a partner, characters."""

_MISSING: Final = results_pb2.FILE_PROBLEM_MISSING
_NOT_YET: Final = grpc.StatusCode.FAILED_PRECONDITION
_FINAL = (grpc.StatusCode.NOT_FOUND, grpc.StatusCode.INVALID_ARGUMENT)

Log = structlog.typing.FilteringBoundLogger


class StageOut:
    """Gets the files of ended jobs from partners.

    Attributes:
        problems: why the last attempt has not brought a job's files, for people, by the job's name.

    Files beyond `limits` are skipped, and wait at the partner while `quota` has no room for them; a job's files are tried for `keep_s` seconds after its end. `clock` is in
    seconds since 1970.
    """

    def __init__(
        self,
        engine: Engine,
        links: PeerClients,
        store: ResultStore,
        limits: FileLimits,
        *,
        keep_s: float,
        log: Log,
        quota: UserQuota,
        clock: Callable[[], float] = time.time,
        pauses: BackoffSettings = PAUSES,
    ) -> None:
        self._engine = engine
        self._links = links
        self._store = store
        self._limits = limits
        self._quota = quota
        self._keep_s = keep_s
        self._log = log
        self._clock = clock
        self._pauses = pauses
        self._wanted: asyncio.Queue[str] = asyncio.Queue()
        self._under_way: set[str] = set()
        self._turns: defaultdict[str, FairSlots] = defaultdict(lambda: FairSlots(AT_ONCE))
        self._asking: defaultdict[str, asyncio.Semaphore] = defaultdict(
            lambda: asyncio.Semaphore(ASKED_AT_ONCE)
        )
        self._said: dict[str, str] = {}
        self.problems: dict[str, str] = {}

    def _told(self, job: HomeJob) -> None:
        if _leaves_files(job):
            self._wanted.put_nowait(job.job_id)

    async def run(self) -> None:
        """Gets files until it is cancelled."""
        self._engine.on_publish(self._told)
        for job in self._engine.state.jobs():
            self._told(job)
        async with asyncio.TaskGroup() as group:
            while True:
                job_id = await self._wanted.get()
                if job_id not in self._under_way:
                    self._under_way.add(job_id)
                    group.create_task(self._bring(job_id), name=f"results of {job_id}")

    async def _bring(self, job_id: str) -> None:
        backoff = Backoff(self._pauses)
        progress = Progress()
        try:
            while (most_s := await self._tried(job_id, progress)) is not None:
                if progress.taken():
                    backoff.reset()
                await asyncio.sleep(min(backoff.next_s(), most_s))
        finally:
            self._under_way.discard(job_id)
            self._said.pop(job_id, None)
            self.problems.pop(job_id, None)

    async def _tried(self, job_id: str, progress: Progress) -> float | None:
        """Returns the longest wait before the next attempt, seconds; `None` if nothing is left to do."""
        job = self._engine.state.job(job_id)
        if job is None:
            return None
        try:
            if await asyncio.to_thread(self._store.manifest, job_id) is not None:
                return None
            if self._clock() > job.end_time + self._keep_s:
                reason = f"{job.partner} could not be asked in time"
                await self._finish(job, Manifest(problem=reason))
                return None
            link = self._links.links.get(job.partner)
            if link is None or link.stub is None:
                return math.inf
            manifest = await self._fetched(job, progress)
            await self._finish(job, manifest)
            await self._let_go(job, manifest)
        except (
            aio.AioRpcError,
            ConnectionError,
            NoRoomError,
            WrongContentError,
            OSError,
        ) as error:
            problem, most_s = str(error), math.inf
            if isinstance(error, aio.AioRpcError):
                problem = f"{error.code().name}: {error.details()}"
                most_s = NOT_YET_S if error.code() is _NOT_YET else math.inf
            self._tell(job, problem)
            return most_s
        return None

    def _tell(self, job: HomeJob, problem: str) -> None:
        self.problems[job.job_id] = printable(problem)[:200]
        # A partner's progress changes with each answer; the kind of answer does not.
        kind = problem.partition(":")[0]
        if self._said.get(job.job_id) == kind:
            return
        self._said[job.job_id] = kind
        self._log.warning(
            "results_did_not_come", job=job.job_id, partner=job.partner, problem=printable(problem)
        )

    async def _fetched(self, job: HomeJob, progress: Progress) -> Manifest:
        site, offer = self._engine.state.settings.name, write_offer(job.offer)
        try:
            asked = partner_pb2.ListGuestResultsRequest(site=site, offer=offer)
            async with self._asking[job.partner]:
                stub = stub_of(self._links.links, job.partner)
                answer = await answer_to(stub.ListGuestResults(asked, timeout=CALL_TIMEOUT_S))
            files = self._read(job, answer)
            size = sum(file.size for file in files if file.problem is None)
            async with self._turns[job.partner].turn(size):
                await self._quota.check(job.job_id, job.user, size)
                with self._quota.kept_free(job.job_id, size):
                    for number, file in enumerate(files):
                        if file.problem is None:
                            await self._file(job, number, file, progress)
        except SenselessError as error:
            reason = f"{job.partner} hands out no files: {printable(str(error))}"
            return Manifest(problem=reason)
        except aio.AioRpcError as error:
            if error.code() not in _FINAL:
                raise
            reason = printable(error.details() or "")[:200]
            return Manifest(problem=f"{job.partner} has no files of it: {reason}")
        stays = any(file.problem is FileProblem.TOO_LARGE for file in files)
        if not answer.folder or not (stays or answer.other_files):
            return Manifest(files)
        return Manifest(
            files,
            folder=printable(answer.folder)[:FOLDER_MAX],
            until=answer.kept_until_s if math.isfinite(answer.kept_until_s) else 0.0,
            other_files=answer.other_files,
            other_bytes=answer.other_bytes,
            left_out=answer.left_out,
        )

    async def _let_go(self, job: HomeJob, manifest: Manifest) -> None:
        files = [
            results_pb2.ResultFile(name=file.name, size_bytes=file.size, sha256=file.sha256)
            for file in manifest.files
            if file.problem is None
        ]
        if not files:
            return
        drop = partner_pb2.DropGuestResultsRequest(
            site=self._engine.state.settings.name, offer=write_offer(job.offer), files=files
        )
        backoff = Backoff(self._pauses)
        for _ in range(DROPS):
            try:
                stub = stub_of(self._links.links, job.partner)
                await answer_to(stub.DropGuestResults(drop, timeout=CALL_TIMEOUT_S))
            except (aio.AioRpcError, ConnectionError) as error:
                if isinstance(error, aio.AioRpcError) and error.code() in _FINAL:
                    return
            except SenselessError:
                return
            else:
                return
            await asyncio.sleep(min(backoff.next_s(), NOT_YET_S))

    def _read(self, job: HomeJob, answer: results_pb2.ResultList) -> tuple[JobFile, ...]:
        # The partner's list is checked against the job's declaration and this site's limits.
        said = {file.name: file for file in answer.files}
        wanted = declared_outputs(job.payload) or WantedFiles()
        there = [file.name for file in answer.files if file.problem != _MISSING]
        names, unmatched = _expanded(wanted, dict.fromkeys(there))
        found, left = [], min(self._limits.job_bytes, self._quota.most)
        for name in (*STREAMS, *wanted.names, *names):
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
            mode = file.mode & MODE_MAX
            found.append(JobFile(name, file.size_bytes, file.sha256, problem, mode))
        found += [JobFile(each, problem=FileProblem.MISSING) for each in unmatched]
        return tuple(found)

    async def _file(self, job: HomeJob, number: int, file: JobFile, progress: Progress) -> None:
        def call(there: int) -> Any:
            request = partner_pb2.FetchGuestResultRequest(
                site=self._engine.state.settings.name,
                offer=write_offer(job.offer),
                name=file.name,
                offset_bytes=there,
            )
            stub = stub_of(self._links.links, job.partner)
            return stub.FetchGuestResult(request, timeout=FILE_TIMEOUT_S)

        await bring(self._store, job.job_id, number, file, call, progress=progress)

    async def _finish(self, job: HomeJob, manifest: Manifest) -> None:
        await asyncio.to_thread(self._store.finish, job.job_id, manifest)
        count = sum(file.problem is None for file in manifest.files)
        more: dict[str, Any] = {}
        if manifest.folder:
            left = sum(file.problem is FileProblem.TOO_LARGE for file in manifest.files)
            more = {
                "stay": left + manifest.other_files,
                "folder": manifest.folder,
                "until_s": manifest.until,
            }
        self._log.info(
            "results_came",
            job=job.job_id,
            partner=job.partner,
            files=count,
            problem=manifest.problem,
            **more,
        )


def _expanded(wanted: WantedFiles, said: Iterable[str]) -> tuple[list[str], list[str]]:
    """Returns the files, of those that a partner names, for which folders and patterns stand, and those without any."""
    found, met = list[str](), {WORKING_FOLDER}
    for name in said if wanted.patterns else ():
        texts = () if _is_wrong(name) else wanted.matches(name)
        met.update(texts)
        if texts and name not in wanted.names:
            found.append(name)
    if len(found) > RESULTS_MAX:
        raise SenselessError(f"it names {len(found)} files; at most {RESULTS_MAX} are taken")
    return found, [each for each in wanted.patterns if each not in met]


def _is_wrong(name: str) -> bool:
    try:
        check_name(name)
    except ValueError:
        return True
    return False


def _leaves_files(job: HomeJob) -> bool:
    return (
        job.state is JobState.ENDED
        and bool(job.partner)
        and job.outcome is not Outcome.NOT_RUN
        and declared_outputs(job.payload) is not None
    )
