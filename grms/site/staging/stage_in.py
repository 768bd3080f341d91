"""Inputs of jobs: uploaded by users, and passed on to the partner that accepted the job.

A user's file is stored under its SHA-256, per user, so that a repeated upload is stored once and a partial one
resumes. Files of a partner's job are stored under the job's key until they are in its folder. A submission refers
to files that are here; the journal does not contain them.
"""

import asyncio
import hashlib
import time
from collections import defaultdict
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import grpc
from grpc import aio

from grms.daemon.job_files import FileLimits, JobFile
from grms.daemon.shared_folders import NotSharedError, SharedFile, SharedFolders
from grms.site.model.commands import LrmsSubmit
from grms.site.model.jobs import HomeJob, OfferId
from grms.site.peers.peers import PeerClients
from grms.site.peers.replies import SenselessError, stub_of
from grms.site.runtime.executor_driver import ProgramAwayError, ProgramGoneError, ProgramSource
from grms.site.staging.digests import digest_of
from grms.site.staging.download import NoResultsError, pieces_of
from grms.site.staging.quotas import GUEST, PartnerQuota
from grms.site.staging.store import Manifest, ResultStore, WrongContentError
from grms.site.staging.streams import FILE_TIMEOUT_S, Progress, bring
from grms.site.wire.convert import SHA256_BYTES, given_inputs, shared_files, write_offer
from grms.v1 import partner_pb2
from lrms_sim.util.messages import printable

JOBS_HELD: Final = 16
"""Quota of one user, as a multiple of the limit of one job."""

FILES_HELD: Final = 10_000
"""Most files of one user, including partial ones."""

COUNTED_S: Final = 10.0
"""How long the size of what a user has here is not counted anew, seconds."""


@dataclass(slots=True)
class _Held:
    # What a user has here: files, and their bytes; to be counted anew from a moment (`time.monotonic`) on.
    files: int
    size: int
    until: float


class InputServer:
    """Takes input files, and serves them to those who run the jobs; shared files are used in place."""

    def __init__(
        self, store: ResultStore, limits: FileLimits, shared: SharedFolders | None = None
    ) -> None:
        self.store = store
        self.limits = limits
        self.shared = shared or SharedFolders()
        self._held: dict[str, _Held] = {}
        self._taking: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def put(self, user: str, file: JobFile, begin: int, content: bytes) -> int:
        """Appends bytes to a user's file if `begin` is its present size; returns the new size.

        Raises:
            ValueError: it is too large, or not the announced one.
            OSError: it cannot be stored.
        """
        if len(file.sha256) != SHA256_BYTES:
            raise ValueError(f"sha256 has {len(file.sha256)} bytes; it must have {SHA256_BYTES}")
        check_size([file], self.limits)
        lock = self._taking[user]
        await lock.acquire()  # who is gone before its turn leaves nothing behind
        # The digest may take longer than the client waits, which then asks again.
        task = asyncio.get_running_loop().create_task(self._taken(user, file, begin, content))

        def ended(done: asyncio.Task[int]) -> None:
            lock.release()
            if not done.cancelled():
                done.exception()  # it may be that nobody asks for it any more

        task.add_done_callback(ended)
        return await asyncio.shield(task)

    async def _taken(self, user: str, file: JobFile, begin: int, content: bytes) -> int:
        there, whole = await asyncio.to_thread(self._appended, user, file, begin, content)
        if whole:
            name = user_input(user, file)
            # An empty file must be created by an append before it is checked.
            digest = await digest_of(self.store.path(name, 0)) if file.size else b""
            await asyncio.to_thread(self._finish, name, file, digest)
        return there

    def _appended(self, user: str, file: JobFile, begin: int, content: bytes) -> tuple[int, bool]:
        """Returns the size, and whether the file is complete but not yet checked."""
        name = user_input(user, file)
        if self.store.manifest(name) is not None:
            self.store.touch(name)
            return file.size, False
        there = self.store.begun(name, 0, file)
        if begin == there:
            piece = content[: file.size - there]
            try:
                self._check_room(user, len(piece) if there else file.size, begins=there == 0)
            except ValueError:
                if there == 0:
                    self.store.remove(name)
                    del self._held[user]
                raise
            self.store.append(name, 0, piece)
            self.store.touch(name)  # a large file may take longer than unused ones are kept
            there += len(piece)
            self._held[user].size += len(piece)
        elif there == 0 and file.size:
            self.store.remove(name)  # it begins with its first byte, and then counts
        return there, there == file.size

    def _finish(self, name: str, file: JobFile, digest: bytes) -> None:
        try:
            self.store.check(name, 0, file, digest)
        except WrongContentError as error:
            raise ValueError(f"{error}: its SHA-256 is not what was said") from error
        self.store.finish(name, Manifest((file,)))

    def _check_room(self, user: str, size: int, *, begins: bool) -> None:
        # Checked for each piece, so that beginning many files first gains no room.
        held = self._held.get(user)
        is_fresh = held is not None and time.monotonic() < held.until
        if held is None or not is_fresh:
            held = self._count(user)
        elif begins:
            held.files += 1
        if (problem := self._no_room(held, size, begins=begins)) and is_fresh:
            problem = self._no_room(self._count(user), size, begins=begins)
        if problem:
            raise ValueError(problem)

    def _no_room(self, held: "_Held", size: int, *, begins: bool) -> str:
        most = JOBS_HELD * self.limits.job_bytes
        if held.size + size > most:
            return f"you have files of {most} bytes here; jobs have to end first"
        if begins and held.files > FILES_HELD:
            return f"you have {FILES_HELD} files here; jobs have to end first"
        return ""

    def _count(self, user: str) -> "_Held":
        files, size = self.store.held(_prefix(user))
        held = self._held[user] = _Held(files, size, time.monotonic() + COUNTED_S)
        return held

    async def lacking(self, user: str, payload: bytes) -> str:
        """Returns a missing input file of a job; empty if there is none."""
        files = given_inputs(payload)
        if not files:
            return ""
        try:
            check_size(files, self.limits)
        except ValueError as error:
            return f"{files[0].name} ({error})"
        return await asyncio.to_thread(self._lacking, user, files)

    async def misplaced(self, payload: bytes) -> str:
        """Returns why a job cannot use files in place, for people; empty if it can."""
        return await asyncio.to_thread(self._misplaced, shared_files(payload))

    def _misplaced(self, files: tuple[SharedFile, ...]) -> str:
        try:
            for file in files:
                self.shared.look(file)
        except NotSharedError as error:
            return str(error)
        return ""

    def _lacking(self, user: str, files: tuple[JobFile, ...]) -> str:
        for file in files:
            # Marked as new, so that it is not swept before the job is known.
            self.store.touch(name := user_input(user, file))
            manifest = self.store.manifest(name)
            if manifest is None or manifest.files[0].size != file.size:
                return file.name
        return ""

    def place(self, command: LrmsSubmit, number: int, file: JobFile) -> Path:
        """Returns the path of a file for a job that is about to be submitted."""
        if command.partner:
            return self.store.path(guest_inputs(command.lrms_key), number)
        return self.store.path(user_input(command.user, file), 0)

    async def read(self, job: HomeJob, name: str, begin: int) -> AsyncIterator[bytes]:
        """Yields a file of a user's job in pieces, for the partner that runs it.

        Raises:
            ValueError: the job has no such input.
            NoResultsError: it is no longer here.
        """
        for file in given_inputs(job.payload):
            if file.name == name:
                place, content = self.store.content(user_input(job.user, file), 0)
                if not (place / content).is_file():
                    raise NoResultsError(f"{name} is not here any more", later=False)
                async for some in pieces_of(place, content, begin, file.size):
                    yield some
                return
        raise ValueError(f"the job is given no file {name!r}")


class InputFetcher:
    """Gets the programs of partners' jobs, including input files."""

    def __init__(
        self,
        programs: ProgramSource,
        server: InputServer,
        links: PeerClients,
        site: str,
        *,
        quota: PartnerQuota,
    ) -> None:
        self._quota = quota
        self._programs = programs
        self._server = server
        self._links = links
        self._site = site
        self._progress: dict[str, Progress] = {}

    async def __call__(self, partner: str, key: str) -> bytes:
        """Returns the payload of a job once everything is here.

        Raises:
            ProgramGoneError: it is not to be run here.
            ProgramAwayError: something has not arrived.
        """
        payload = await self._programs(partner, key)
        files = given_inputs(payload)
        try:
            check_size(files, self._server.limits)
        except ValueError as error:
            raise ProgramGoneError(f"what the job is given: {error}", unwanted=True) from error
        size = sum(file.size for file in files)
        _, here = await asyncio.to_thread(self._server.store.held, guest_inputs(key))
        if problem := await self._quota.problem(partner, max(0, size - here)):
            raise ProgramGoneError(problem, unwanted=True)
        if shared_files(payload):
            if partner not in self._server.shared.partners:
                text = f"no folders are shared with {partner}"
                raise ProgramGoneError(text, unwanted=True)
            if problem := await self._server.misplaced(payload):
                raise ProgramGoneError(f"in place: {problem}", unwanted=True)
        progress = self._progress.setdefault(key, Progress(2 * size))
        try:
            for number, file in enumerate(files):
                await self._brought(partner, key, number, file, progress)
        except ProgramAwayError:
            raise
        except BaseException:
            del self._progress[key]
            raise
        del self._progress[key]
        return payload

    async def _brought(
        self, partner: str, key: str, number: int, file: JobFile, progress: Progress
    ) -> None:
        _, epoch, offer = key.split("/")

        def call(there: int) -> Any:
            request = partner_pb2.FetchInputRequest(
                site=self._site,
                offer=write_offer(OfferId(int(epoch, 16), int(offer))),
                name=file.name,
                offset_bytes=there,
            )
            stub = stub_of(self._links.links, partner)
            return stub.FetchInput(request, timeout=FILE_TIMEOUT_S)

        try:
            await bring(
                self._server.store, guest_inputs(key), number, file, call, progress=progress
            )
        except aio.AioRpcError as error:
            reason = f"{partner}: {printable(error.details() or '')[:200]}"
            if error.code() is grpc.StatusCode.NOT_FOUND:
                raise ProgramGoneError(reason, unwanted=True) from error
            raise ProgramAwayError(reason, progress=progress.taken()) from error
        except ConnectionError as error:
            reason = f"{partner}: {printable(str(error))[:200]}"
            raise ProgramAwayError(reason, progress=progress.taken()) from error
        except (SenselessError, WrongContentError, OSError) as error:
            raise ProgramAwayError(f"{partner}: {printable(str(error))[:200]}") from error


def check_size(files: tuple[JobFile, ...] | list[JobFile], limits: FileLimits) -> None:
    """Checks the size of a job's input files; `ValueError` if they are too large."""
    for file in files:
        if file.size > limits.file_bytes:
            text = f"{file.name!r} has {file.size} bytes; at most {limits.file_bytes} are taken"
            raise ValueError(text)
    if (size := sum(file.size for file in files)) > limits.job_bytes:
        raise ValueError(f"they have {size} bytes; a job is given at most {limits.job_bytes}")


def guest_inputs(key: str) -> str:
    """Returns the store's name for the files of a partner's job."""
    return f"{GUEST}{key.replace('/', '+')}"


def _prefix(user: str) -> str:
    # A user's name may have any character.
    return f"user-{hashlib.sha256(user.encode('utf-8', 'surrogateescape')).hexdigest()[:32]}-"


def user_input(user: str, file: JobFile) -> str:
    """Returns by which name the store has a file that a user has handed over."""
    return f"{_prefix(user)}{file.sha256.hex()}"
