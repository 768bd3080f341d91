"""Fetches the state of jobs that partners have sent home.

A job that writes its state while it runs (`Program.checkpoint`) goes on from it when it is run again. The files are asked
for as results are, and kept where the inputs of its user's jobs are, under their SHA-256; from then on they are inputs of
the job, wherever it runs next. While they are on their way the job is decided nowhere. If they cannot come, or do not come
in time, it runs from the state before, or from its start.

Pending transfers are not in the journal: they follow from the jobs whose state is on its way.
"""

import asyncio
import math
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager, suppress
from typing import Any, Final
from weakref import WeakValueDictionary

import grpc
import structlog
from grpc import aio

from grms.daemon.file_store import Manifest, WrongContentError
from grms.daemon.job_files import MODE_MAX, FileProblem, JobFile, check_inputs, check_name
from grms.daemon.pacing import Backoff, BackoffSettings
from grms.daemon.uploads import SHA256_BYTES, Uploads, check_size, user_input
from grms.site.model.events import StateFetched
from grms.site.model.jobs import HomeJob, StateThere
from grms.site.peers.peer import SenselessError, answer_to, stub_of
from grms.site.peers.peers import PeerClients
from grms.site.runtime.event_loop import Engine
from grms.site.staging.stage_out import CALL_TIMEOUT_S, NOT_YET_S, PAUSES, PROBLEMS
from grms.site.staging.streams import FILE_TIMEOUT_S, Progress, bring
from grms.site.wire.convert import given_inputs, restored, shared_files, state_files, write_offer
from grms.v1 import partner_pb2, results_pb2
from lrms_sim.util.messages import printable

GIVE_UP_S: Final = 600.0
"""So long the state of a job is waited for from when it was last heard of, seconds."""

LONGEST_S: Final = 4 * 3600.0
"""And so long in all: a partner may send, or promise, the same again and again."""

RENEWED_S: Final = 600.0
"""So often it is said of files on their way that they are wanted, seconds: what is not is swept after an hour."""

REASON_MAX: Final = 200
"""Most characters of a reason."""

AT_ONCE: Final = 4
"""So many jobs' state comes from one partner at a time; the others wait for it, and that is no fault of the partner."""

_NOT_YET: Final = grpc.StatusCode.FAILED_PRECONDITION
_FINAL: Final = (grpc.StatusCode.NOT_FOUND, grpc.StatusCode.INVALID_ARGUMENT)

Log = structlog.typing.FilteringBoundLogger


class StateError(Exception):
    """The state of a job cannot come; the text says why, for its user."""


class StateFetch:
    """Gets the state of jobs that were sent home, beyond the limits of `inputs` none.

    `inputs` has what users' jobs are given. What does not come for `give_up_s` seconds (`monotonic`) does not come.

    Attributes:
        renewed_s: see `RENEWED_S`.
    """

    def __init__(
        self,
        engine: Engine,
        links: PeerClients,
        inputs: Uploads,
        *,
        log: Log,
        give_up_s: float = GIVE_UP_S,
        monotonic: Callable[[], float] = time.monotonic,
        pauses: BackoffSettings = PAUSES,
    ) -> None:
        self._engine = engine
        self._links = links
        self._inputs = inputs
        self._store = inputs.store
        self._log = log
        self._give_up_s = give_up_s
        self.renewed_s = RENEWED_S
        self._monotonic = monotonic
        self._pauses = pauses
        self._wanted: asyncio.Queue[int] = asyncio.Queue()
        self._under_way: dict[int, asyncio.Task[None]] = {}
        self._slots: defaultdict[str, asyncio.Semaphore] = defaultdict(
            lambda: asyncio.Semaphore(AT_ONCE)
        )
        self._here: dict[int, tuple[StateThere, tuple[JobFile, ...]]] = {}
        # Of users: files on their way, and their bytes. By name in the store: who brings it.
        self._files: Counter[str] = Counter()
        self._bytes: Counter[str] = Counter()
        self._counting = asyncio.Lock()
        self._bringing: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def _told(self, job: HomeJob) -> None:
        self._wanted.put_nowait(job.job)

    async def run(self) -> None:
        """Gets what is on its way until it is cancelled."""
        fetching = self._engine.state.memory.fetching
        # What is published is in the journal: once it says that the state is here, the partner may forget it.
        for concerned in (fetching, self._under_way, self._here):
            self._engine.on_publish(self._told, among=concerned)
        for number in fetching:
            self._wanted.put_nowait(number)
        async with asyncio.TaskGroup() as group:
            while True:
                number = await self._wanted.get()
                if number in self._here and number not in fetching:
                    group.create_task(self._let_go(*self._here.pop(number)), name="state to drop")
                elif number in self._under_way:
                    if number not in fetching:
                        # It was cancelled, or given up on: nobody needs its state.
                        self._under_way[number].cancel()
                elif number in fetching:
                    task = group.create_task(self._bring(number), name=f"state of job {number}")
                    self._under_way[number] = task

    async def _bring(self, number: int) -> None:
        backoff, progress = Backoff(self._pauses), Progress()
        last, until = self._monotonic() + LONGEST_S, math.inf
        try:
            while (job := self._engine.state.memory.fetching.get(number)) is not None:
                there = job.state_there
                assert there is not None
                try:
                    async with self._slot(there.partner, last):
                        until = min(until, self._monotonic() + self._give_up_s)
                        await self._brought(job, there, progress, last)
                except StateError as error:
                    problem = str(error)
                except (aio.AioRpcError, ConnectionError, WrongContentError, OSError) as error:
                    problem = _why(error)
                    if progress.taken() or _reads(error):
                        backoff.reset()
                        until = min(self._monotonic() + self._give_up_s, last)
                    if self._monotonic() < until:
                        await asyncio.sleep(min(backoff.next_s(), NOT_YET_S))
                        continue
                    problem = f"it did not come in time: {problem}"
                else:
                    return
                self._tell(job, there, reason=f"{there.partner}: {problem}")
                return
        finally:
            del self._under_way[number]

    @asynccontextmanager
    async def _slot(self, partner: str, last: float) -> AsyncIterator[None]:
        slots = self._slots[partner]
        try:
            async with asyncio.timeout(max(0.0, last - self._monotonic())):
                await slots.acquire()
        except TimeoutError:
            raise StateError("those before it have taken too long") from None
        try:
            yield
        finally:
            slots.release()

    def _tell(
        self, job: HomeJob, there: StateThere, *, files: bytes = b"", reason: str = ""
    ) -> None:
        reason = printable(reason)[:REASON_MAX]
        self._engine.tell(
            StateFetched(*self._engine.stamp(), job.job, there.partner, there.offer, files, reason)
        )

    async def _brought(
        self, job: HomeJob, there: StateThere, progress: Progress, last: float
    ) -> None:
        stub = stub_of(self._links.links, there.partner)
        site, offer = self._engine.state.settings.name, write_offer(there.offer)
        asked = partner_pb2.ListGuestResultsRequest(site=site, offer=offer, checkpoint=True)
        try:
            answer = await answer_to(stub.ListGuestResults(asked, timeout=CALL_TIMEOUT_S))
            files = self._read(job, answer)
            async with self._room(job.user, files):
                for file in files:
                    await self._file(job, there, file, progress, last)
        except SenselessError as error:
            raise StateError(f"it hands out no files: {error}") from error
        except aio.AioRpcError as error:
            if error.code() not in _FINAL:
                raise
            raise StateError(
                f"it has none of what the job has written: {error.details()}"
            ) from error
        begun = sum(each.times for each in job.sent_home)
        self._log.info(
            "state_fetched",
            job=job.job_id,
            partner=there.partner,
            files=len(files),
            bytes=sum(file.size for file in files),
            kept_s=there.kept,
        )
        self._here[job.job] = there, files
        self._tell(job, there, files=restored(files, begun))

    @asynccontextmanager
    async def _room(self, user: str, files: Collection[JobFile]) -> AsyncIterator[None]:
        # Of an array all elements may come at once: what is on its way counts as if it were here.
        count, size = len(files), sum(file.size for file in files)
        async with self._counting:
            count_all, size_all = count + self._files[user], size + self._bytes[user]
            if problem := await self._inputs.no_room_for(user, count_all, size_all):
                raise StateError(f"there is no room for its files at home: {problem}")
            self._files[user] += count
            self._bytes[user] += size
        wanted = asyncio.create_task(self._renew([user_input(user, file) for file in files]))
        try:
            yield
        finally:
            wanted.cancel()
            self._files[user] -= count
            self._bytes[user] -= size

    async def _renew(self, names: Collection[str]) -> None:
        # Also of those that have come already, which no job is given before all are here.
        while True:
            for name in names:
                with suppress(OSError):
                    await asyncio.to_thread(self._store.touch, name)
            await asyncio.sleep(self.renewed_s)

    def _read(self, job: HomeJob, answer: results_pb2.ResultList) -> tuple[JobFile, ...]:
        # The partner's list is checked against what the job declares and this site's limits.
        wanted, found = state_files(job.payload), list[JobFile]()
        for file in answer.files:
            name = file.name
            try:
                known = name in wanted.names or wanted.matches(check_name(name))
            except ValueError as error:
                raise SenselessError(str(error)) from error
            if not known or file.problem == results_pb2.FILE_PROBLEM_MISSING:
                continue
            problem = PROBLEMS.get(file.problem, FileProblem.NO_FILE)
            if problem is FileProblem.TOO_LARGE:
                raise StateError(f"{name} is larger than it hands out ({file.size_bytes} bytes)")
            if problem is not None:
                raise StateError(f"{name} is no plain file")
            if len(file.sha256) != SHA256_BYTES:
                raise SenselessError(f"the digest of a file has {len(file.sha256)} bytes")
            found.append(JobFile(name, file.size_bytes, file.sha256, mode=file.mode & MODE_MAX))
        if answer.left_out:
            raise StateError(f"{answer.left_out} of its files cannot be handed out")
        if not found:
            raise StateError("it has none of what the job has written")
        self._check_with_inputs(job, found)
        return tuple(found)

    def _check_with_inputs(self, job: HomeJob, found: list[JobFile]) -> None:
        state = {file.name for file in found}
        others = [file for file in given_inputs(job.payload) if file.name not in state]
        try:
            check_inputs(file.name for file in (*others, *found))
            check_size([*others, *found], self._inputs.limits)
        except ValueError as error:
            raise StateError(f"what the job has written, with its inputs: {error}") from error
        names = {file.name for file in (*others, *found)}
        names.update(file.name for file in shared_files(job.payload))
        for name in sorted(names):
            if above := [each for each in _above(name) if each in names]:
                # Nobody could lay out such a folder, and the job would be refused.
                raise StateError(f"{above[0]} is a file, and the folder of {name}")

    async def _file(
        self, job: HomeJob, there: StateThere, file: JobFile, progress: Progress, last: float
    ) -> None:
        name = user_input(job.user, file)
        # Elements of an array may have written the same: it comes once, and not by two calls into one file.
        async with self._bringing.setdefault(name, asyncio.Lock()):
            await self._only(there, name, file, progress, last)

    async def _only(
        self, there: StateThere, name: str, file: JobFile, progress: Progress, last: float
    ) -> None:
        await asyncio.to_thread(self._store.touch, name)  # first, so that it is not swept meanwhile
        manifest = await asyncio.to_thread(self._store.manifest, name)
        if manifest is not None:
            if manifest.files[0].size != file.size:
                raise SenselessError(f"{file.name} has another size than its content")
            return
        if (left := last - self._monotonic()) <= 0:
            raise StateError("it has not sent all in time")

        def call(begin: int) -> Any:
            request = partner_pb2.FetchGuestResultRequest(
                site=self._engine.state.settings.name,
                offer=write_offer(there.offer),
                name=file.name,
                offset_bytes=begin,
                checkpoint=True,
            )
            stub = stub_of(self._links.links, there.partner)
            return stub.FetchGuestResult(request, timeout=min(FILE_TIMEOUT_S, left))

        await bring(self._store, name, 0, file, call, progress=progress)
        await asyncio.to_thread(self._store.finish, name, Manifest((file,)))

    async def _let_go(self, there: StateThere, files: tuple[JobFile, ...]) -> None:
        # A courtesy: the partner deletes them after some days anyway.
        said = [
            results_pb2.ResultFile(name=file.name, size_bytes=file.size, sha256=file.sha256)
            for file in files
        ]
        drop = partner_pb2.DropGuestResultsRequest(
            site=self._engine.state.settings.name,
            offer=write_offer(there.offer),
            files=said,
            checkpoint=True,
        )
        try:
            stub = stub_of(self._links.links, there.partner)
            await answer_to(stub.DropGuestResults(drop, timeout=CALL_TIMEOUT_S))
        except (aio.AioRpcError, ConnectionError, SenselessError) as error:
            self._log.info("state_stays", partner=there.partner, problem=printable(_why(error)))


def _above(name: str) -> list[str]:
    # The folders in which a file is.
    parts = name.split("/")
    return ["/".join(parts[:number]) for number in range(1, len(parts))]


def _reads(error: Exception) -> bool:
    # Whether the partner is still reading its files for their digests.
    return isinstance(error, aio.AioRpcError) and error.code() is _NOT_YET


def _why(error: Exception) -> str:
    if isinstance(error, aio.AioRpcError):
        return f"{error.code().name}: {error.details()}"
    return str(error)
