"""Inputs of jobs: uploaded by users, and passed on to the partner that accepted the job.

A user's file is stored under its SHA-256, per user, so that a repeated upload is stored once and a partial one
resumes. Files of a partner's job are stored under the job's key until they are in its folder. A submission refers
to files that are here; the journal does not contain them.
"""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
from grpc import aio

from grms.daemon.file_store import ResultStore, WrongContentError
from grms.daemon.job_files import FileLimits, JobFile
from grms.daemon.shared_folders import NotSharedError, SharedFile, SharedFolders
from grms.daemon.uploads import Uploads, check_size, user_input
from grms.site.model.commands import LrmsSubmit
from grms.site.model.jobs import HomeJob, OfferId
from grms.site.peers.peer import SenselessError, stub_of
from grms.site.peers.peers import PeerClients
from grms.site.runtime.executor_driver import ProgramAwayError, ProgramGoneError, ProgramSource
from grms.site.staging.download import NoResultsError, pieces_of
from grms.site.staging.quotas import PartnerQuota, inputs_of
from grms.site.staging.streams import FILE_TIMEOUT_S, Progress, bring
from grms.site.wire.convert import given_inputs, shared_files, write_offer
from grms.v1 import partner_pb2
from lrms_sim.util.messages import printable


class InputServer(Uploads):
    """Takes input files, and serves them to those who run the jobs; shared files are used in place."""

    def __init__(
        self, store: ResultStore, limits: FileLimits, shared: SharedFolders | None = None
    ) -> None:
        super().__init__(store, limits)
        self.shared = shared or SharedFolders()

    async def misplaced(self, files: tuple[SharedFile, ...]) -> str:
        """Returns why a job cannot use files in place, for people; empty if it can."""
        return await asyncio.to_thread(self._misplaced, files)

    def _misplaced(self, files: tuple[SharedFile, ...]) -> str:
        try:
            for file in files:
                self.shared.look(file)
        except NotSharedError as error:
            return str(error)
        return ""

    def place(self, command: LrmsSubmit, number: int, file: JobFile) -> Path:
        """Returns the path of a file for a job that is about to be submitted."""
        if command.partner:
            return self.store.path(inputs_of(command.lrms_key), number)
        return self.store.path(user_input(command.user, file), 0)

    def given(self, owner: str, _number: int, file: JobFile) -> Path:
        """Returns the path of a file for a program in a reservation of an owner."""
        return self.store.path(user_input(owner, file), 0)

    async def read(self, job: HomeJob, name: str, begin: int) -> AsyncIterator[bytes]:
        """Yields a file of a user's job in pieces, for the partner that runs it.

        Raises:
            ValueError: the job has no such input.
            NoResultsError: it is no longer here.
        """
        for file in given_inputs(job.program):
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
        async with self._quota.room(partner, key, size) as problem:
            if problem:
                raise ProgramGoneError(problem, unwanted=True)
            if shared := shared_files(payload):
                if partner not in self._server.shared.partners:
                    text = f"no folders are shared with {partner}"
                    raise ProgramGoneError(text, unwanted=True)
                if problem := await self._server.misplaced(shared):
                    raise ProgramGoneError(f"in place: {problem}", unwanted=True)
            await self._all_brought(partner, key, files, Progress(2 * size))
        return payload

    async def _all_brought(
        self, partner: str, key: str, files: tuple[JobFile, ...], new: Progress
    ) -> None:
        progress = self._progress.setdefault(key, new)
        try:
            for number, file in enumerate(files):
                await self._brought(partner, key, number, file, progress)
        except ProgramAwayError:
            raise
        except BaseException:
            del self._progress[key]
            raise
        del self._progress[key]

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
            await bring(self._server.store, inputs_of(key), number, file, call, progress=progress)
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
