"""Serves the results of jobs to users and to home sites.

Results of local runs lie in the batch system's folders; those of partners are fetched after the end
(`collector`) and kept here. Files are read in threads. Files that a partner has copied are deleted on its
request; all others, too large or undeclared, stay until the folder expires.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, ParamSpec, TypeVar

import structlog

from grms.daemon.file_store import ResultStore
from grms.daemon.job_files import FileLimits, FileProblemError, JobFile, chunks
from grms.lrms.job_directories import JobFolder, JobFolders, Remains
from grms.site.model.jobs import GuestJob, HomeJob, OfferId, lrms_key
from grms.site.model.lifecycle import PROVISIONAL, JobState
from grms.site.runtime.event_loop import Engine
from grms.site.staging.digests import Digests, NotReadYetError, found_files
from grms.site.wire.convert import declared_outputs

Log = structlog.typing.FilteringBoundLogger

P = ParamSpec("P")
R = TypeVar("R")

DIGESTS_S: Final = 2.0
"""How long a request waits for digests, real seconds; a later one gets them."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a job's files lie that were not copied.

    The folder is at the executing site, and kept at least `until`, seconds since 1970; `others` are unlisted files.
    """

    folder: str
    until: float
    others: Remains


@dataclass(frozen=True, slots=True)
class LeftFiles:
    """Results of a job.

    Attributes:
        files: its streams and declared outputs.
        complete: it has ended, and the files are final.
        problem: why the files are not here, for people; empty if they are.
        place: where it has run; `None` if unknown or nothing is left there.
    """

    files: tuple[JobFile, ...] = ()
    complete: bool = False
    problem: str = ""
    place: Place | None = None


class NoResultsError(Exception):
    """There are no results, or none yet; `later` says that they may come."""

    def __init__(self, reason: str, *, later: bool) -> None:
        self.later = later
        super().__init__(reason)


class ResultServer:
    """Lists and serves results of jobs.

    `folders` are those of this site's batch system, `None` if its jobs leave nothing; `store` has what came
    home. A folder is kept for `keep_s` seconds after its last change.
    """

    def __init__(
        self,
        engine: Engine,
        folders: JobFolders | None,
        store: ResultStore,
        limits: FileLimits,
        *,
        keep_s: float,
        log: Log,
        digests: Digests | None = None,
    ) -> None:
        self._engine = engine
        self._folders = folders
        self._store = store
        self.limits = limits
        self._keep_s = keep_s
        self._log = log
        self._digests = digests or Digests()

    # --- for users -----------------------------------------------------------------------------

    async def of_job(self, job: HomeJob) -> LeftFiles:
        """Returns what a user's job has left, as far as it is here."""
        return await self._of_job(job, digests=job.state is JobState.ENDED)

    async def _of_job(self, job: HomeJob, *, digests: bool) -> LeftFiles:
        ended = job.state is JobState.ENDED
        if job.partner and not ended and job.state not in PROVISIONAL:
            where = f"it is with {job.partner}; its files come home after its end"
            return LeftFiles(
                problem=where if job.state in _THERE else "where it runs is not decided"
            )
        if job.partner and ended:
            return await self._came(job)
        text = ""
        if declared_outputs(job.payload) is None:
            text = "it has no script, so nothing was run"
        elif self._folders is None:
            text = "this site's batch system is simulated: the script is not run"
        if text:
            return LeftFiles(complete=ended, problem=text)
        try:
            found = await self._looked_at(job.lrms_key, digests=digests)
        except NoResultsError as error:
            return LeftFiles(problem=str(error))
        if found is None:
            gone = "its files are gone: it left none, or was over too long ago"
            return LeftFiles(complete=ended, problem=gone if ended else "it has not begun")
        return found

    async def _came(self, job: HomeJob) -> LeftFiles:
        try:
            manifest = await asyncio.to_thread(self._store.manifest, job.job_id)
        except OSError as error:
            return LeftFiles(problem=f"what has come home cannot be read now: {error}")
        if manifest is None:
            return LeftFiles(problem=f"its files are on the way from {job.partner}")
        place = None
        if manifest.folder:
            others = Remains(manifest.other_files, manifest.other_bytes)
            place = Place(manifest.folder, manifest.until, others)
        return LeftFiles(manifest.files, complete=True, problem=manifest.problem, place=place)

    async def read_job(self, job: HomeJob, name: str, begin: int) -> AsyncIterator[bytes]:
        """Yields a file of a user's job in pieces.

        Raises:
            ValueError: there is no such file.
            FileProblemError: it cannot be served.
            NoResultsError: it is not here.
        """
        results = await self._of_job(job, digests=False)
        if results.problem:
            raise NoResultsError(results.problem, later=not results.complete)
        file = _named(results.files, name)
        if job.partner:
            place, name = self._store.content(job.job_id, results.files.index(file))
        else:
            place = await self._place(job.lrms_key)
        async for some in pieces_of(place, name, begin, file.size):
            yield some

    # --- for those who reserve -----------------------------------------------------------------

    async def of_run(self, key: str, *, ended: bool) -> LeftFiles:
        """Returns what a program in a reservation has left, or has written so far."""
        try:
            found = await self._looked_at(key, digests=ended)
        except NoResultsError as error:
            return LeftFiles(problem=str(error))
        if found is None:
            gone = "its files are gone: it left none, or was over too long ago"
            return LeftFiles(complete=ended, problem=gone if ended else "it has not begun")
        return found

    async def read_run(self, key: str, name: str, begin: int) -> AsyncIterator[bytes]:
        """Yields a file of a program in a reservation in pieces.

        Raises:
            ValueError: there is no such file.
            FileProblemError: it cannot be served.
            NoResultsError: it is not here.
        """
        found = await self._looked_at(key, digests=False)
        if found is None:
            raise NoResultsError("nothing is here of that program", later=False)
        file = _named(found.files, name)
        async for some in pieces_of(await self._place(key), name, begin, file.size):
            yield some

    # --- for partners --------------------------------------------------------------------------

    async def of_guest(self, partner: str, offer: OfferId) -> LeftFiles:
        """Returns the results of a partner's job.

        Raises:
            NoResultsError: it has not ended, has left nothing, or its files are still being read.
        """
        return await self._of_guest(partner, offer, digests=True)

    async def _of_guest(self, partner: str, offer: OfferId, *, digests: bool) -> LeftFiles:
        key = lrms_key(partner, offer.epoch, offer.number)
        answer = self._engine.state.partners[partner].answer_to(offer)
        if isinstance(answer, GuestJob) and answer.completion is None:
            raise NoResultsError("the job has not ended", later=True)
        found = None
        if self._folders is not None:
            found = await self._looked_at(key, digests=digests)
        if found is None:
            raise NoResultsError("nothing is here of that job", later=False)
        return found

    async def read_guest(
        self, partner: str, offer: OfferId, name: str, begin: int
    ) -> AsyncIterator[bytes]:
        """Yields a file of a partner's job in pieces.

        Raises:
            ValueError: there is no such file.
            FileProblemError: it cannot be served.
            NoResultsError: it has not ended, or has left nothing.
        """
        found = await self._of_guest(partner, offer, digests=False)
        file = _named(found.files, name)
        place = await self._place(lrms_key(partner, offer.epoch, offer.number))
        async for some in pieces_of(place, name, begin, file.size):
            yield some

    async def drop_guest(
        self, partner: str, offer: OfferId, copied: Iterable[tuple[str, bytes]]
    ) -> None:
        """Deletes files that a partner has copied, given by name and SHA-256; changed ones stay.

        Raises:
            NoResultsError: it has not ended, has left nothing, or its files are still being read.
        """
        found, said = await self.of_guest(partner, offer), set(copied)
        had = {file.name for file in found.files if (file.name, file.sha256) in said}
        key = lrms_key(partner, offer.epoch, offer.number)
        assert self._folders is not None
        assert found.place is not None
        remains = await _on_disk(self._folders.clear, key, had)
        if remains.files:
            self._log.info(
                "results_stay",
                job=key,
                partner=partner,
                folder=found.place.folder,
                files=remains.files,
                bytes=remains.size,
                until_s=await _on_disk(self._folders.changed, key) + self._keep_s,
            )

    # --- reading -------------------------------------------------------------------------------

    async def _place(self, key: str) -> Path:
        assert self._folders is not None
        folder = await _on_disk(self._folders.left, key)
        if folder is None:
            raise NoResultsError("its files are gone", later=False)
        return folder.path

    async def _looked_at(self, key: str, *, digests: bool) -> LeftFiles | None:
        # Without digests, sizes suffice: reading one file does not wait for the others.
        assert self._folders is not None
        folder: JobFolder | None = await _on_disk(self._folders.left, key)
        if folder is None:
            return None
        if not digests:
            found = await _on_disk(found_files, folder.path, folder.names, self.limits)
            return LeftFiles(tuple(each.file for each in found))
        try:
            files = await self._digests.of(folder.path, folder.names, self.limits, DIGESTS_S)
        except NotReadYetError as error:
            raise NoResultsError(str(error), later=True) from error
        except OSError as error:
            raise NoResultsError(f"its files cannot be read now: {error}", later=True) from error
        others = await _on_disk(self._folders.others, key)
        until = await _on_disk(self._folders.changed, key) + self._keep_s
        place = Place(str(folder.path), until, others)
        return LeftFiles(files, complete=True, place=place)


async def _on_disk(work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    try:
        return await asyncio.to_thread(work, *args, **kwargs)
    except OSError as error:
        raise NoResultsError(f"its files cannot be read now: {error}", later=True) from error


_THERE = (JobState.DELEGATED, JobState.SUSPECT)


def _named(files: Iterable[JobFile], name: str) -> JobFile:
    for file in files:
        if file.name == name:
            if file.problem is not None:
                raise FileProblemError(name, file.problem)
            return file
    raise ValueError(f"the job has no file {name!r}")


async def pieces_of(place: Path, name: str, begin: int, end: int) -> AsyncIterator[bytes]:
    """Yields bytes `begin` to `end` (exclusive) of a file in pieces, read in a thread.

    Raises:
        FileProblemError: it is missing, or no regular file.
        NoResultsError: it cannot be read now.
    """
    pieces = chunks(place, name, begin, end)
    while (some := await _on_disk(next, pieces, None)) is not None:
        yield some
