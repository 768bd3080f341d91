"""Serves the results of jobs to users and to home sites.

Results of local runs lie in the batch system's folders; those of partners are fetched after the end
(`collector`) and kept here. Files are read in threads. Files that a partner has copied are deleted on its
request; all others, too large or undeclared, stay until the folder expires.
"""

import asyncio
import os
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, ParamSpec, TypeVar

import structlog

from grms.daemon.file_store import Manifest, ResultStore
from grms.daemon.job_files import (
    FileLimits,
    FileProblem,
    FileProblemError,
    JobFile,
    chunks,
    opened,
)
from grms.lrms.job_directories import JobFolder, JobFolders, Remains
from grms.site.model.jobs import GuestJob, HomeJob, OfferId, lrms_key
from grms.site.model.lifecycle import PROVISIONAL, JobState
from grms.site.runtime.event_loop import Engine
from grms.site.staging.digests import Digests, NotReadYetError, found_files
from grms.site.wire.convert import declared_outputs

Log = structlog.typing.FilteringBoundLogger

P = ParamSpec("P")
R = TypeVar("R")

LISTS_KEPT: Final = 64
"""Ended jobs whose lists of files are remembered for those who read one file after the other."""

REMOVED: Final = "they were removed, as their user has asked for"

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
        left_out: of the others there, those that it wants and that no list can have; at least so many.
    """

    files: tuple[JobFile, ...] = ()
    complete: bool = False
    problem: str = ""
    place: Place | None = None
    left_out: int = 0


class NoResultsError(Exception):
    """There are no results, or none yet; `later` says that they may come."""

    def __init__(self, reason: str, *, later: bool) -> None:
        self.later = later
        super().__init__(reason)


class ResultServer:
    """Lists and serves results of jobs.

    Attributes:
        why_coming: why the files of a job have not come from its partner, for people, by the job's name.

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
        self._looks: dict[tuple[str, bool, bool], asyncio.Task[LeftFiles | None]] = {}
        self.why_coming: Callable[[str], str] = lambda _: ""
        self._lists: OrderedDict[str, dict[str, tuple[int, JobFile]]] = OrderedDict()

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
            why = self.why_coming(job.job_id)
            return LeftFiles(
                problem=f"its files are on the way from {job.partner}{why and f': {why}'}"
            )
        place = None
        if manifest.folder:
            others = Remains(manifest.other_files, manifest.other_bytes)
            place = Place(manifest.folder, manifest.until, others)
        return LeftFiles(
            manifest.files,
            complete=True,
            problem=manifest.problem,
            place=place,
            left_out=manifest.left_out,
        )

    async def read_job(self, job: HomeJob, name: str, begin: int) -> AsyncIterator[bytes]:
        """Yields a file of a user's job in pieces.

        Raises:
            ValueError: there is no such file.
            FileProblemError: it cannot be served.
            NoResultsError: it is not here.
        """
        listed = self._lists.get(job.job_id)
        if listed is None:
            results = await self._of_job(job, digests=False)
            if results.problem:
                raise NoResultsError(results.problem, later=not results.complete)
            ended = job.state is JobState.ENDED
            listed = self._remembered(job.job_id, results.files, keep=ended)
        number, file = _named(listed, name)
        if job.partner:
            place, name = self._store.content(job.job_id, number)
        else:
            place = await self._place(job.lrms_key)
        async for some in pieces_of(place, name, begin, file.size):
            yield some

    async def remove(self, job: HomeJob) -> None:
        """Deletes the files of a user's ended job here.

        Raises:
            NoResultsError: it has not ended, or its files are on the way.
        """
        results = await self._of_job(job, digests=False)
        if job.state is not JobState.ENDED or (results.problem and not results.complete):
            raise NoResultsError(results.problem or "it has not ended", later=True)
        self._lists.pop(job.job_id, None)
        if job.partner:
            await _on_disk(self._store.empty, job.job_id, Manifest(problem=REMOVED))
        elif self._folders is not None and not results.problem:
            names = {file.name for file in results.files if file.problem is None}
            await _on_disk(self._folders.clear, job.lrms_key, names)

    async def size_of(self, job: HomeJob, name: str) -> int:
        """Returns how long a file of a user's ended job is.

        Raises:
            ValueError: there is no such file.
            FileProblemError: it cannot be served.
            NoResultsError: it is not here.
        """
        results = await self._of_job(job, digests=False)
        if results.problem:
            raise NoResultsError(results.problem, later=not results.complete)
        listed = {file.name: (number, file) for number, file in enumerate(results.files)}
        return _named(listed, name)[1].size

    async def read_output(
        self, key: str, name: str, begin: int, most: int
    ) -> tuple[int, bytes] | None:
        """Returns the next bytes of a stream of a job that runs here, and where they begin; `None` before there are any.

        They begin at 0 if it has been emptied since.

        Raises:
            FileProblemError: it is no regular file.
            NoResultsError: it cannot be read now.
        """
        if self._folders is None:
            raise NoResultsError("jobs of this site print nothing", later=False)
        folder = await _on_disk(self._folders.left, key)
        try:
            return (
                None
                if folder is None
                else await _on_disk(read_piece, folder.path, name, begin, most)
            )
        except FileProblemError as error:
            if error.problem is FileProblem.MISSING:
                return None
            raise

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
        listed = {file.name: (number, file) for number, file in enumerate(found.files)}
        _, file = _named(listed, name)
        async for some in pieces_of(await self._place(key), name, begin, file.size):
            yield some

    # --- for partners --------------------------------------------------------------------------

    async def of_guest(self, partner: str, offer: OfferId, *, state: bool = False) -> LeftFiles:
        """Returns the results of a partner's job; with `state` the files in which it writes its state instead.

        Raises:
            NoResultsError: it has not ended, has left nothing, or its files are still being read.
        """
        return await self._of_guest(partner, offer, digests=True, state=state)

    async def _of_guest(
        self, partner: str, offer: OfferId, *, digests: bool, state: bool
    ) -> LeftFiles:
        key = lrms_key(partner, offer.epoch, offer.number)
        answer = self._engine.state.partners[partner].answer_to(offer)
        if isinstance(answer, GuestJob) and answer.completion is None:
            raise NoResultsError("the job has not ended", later=True)
        found = None
        if self._folders is not None:
            found = await self._looked_at_once(key, digests=digests, state=state)
        if found is None:
            raise NoResultsError("nothing is here of that job", later=False)
        return found

    async def read_guest(
        self, partner: str, offer: OfferId, name: str, begin: int, *, state: bool = False
    ) -> AsyncIterator[bytes]:
        """Yields a file of a partner's job in pieces; `state` as in `of_guest`.

        Raises:
            ValueError: there is no such file.
            FileProblemError: it cannot be served.
            NoResultsError: it has not ended, or has left nothing.
        """
        key = lrms_key(partner, offer.epoch, offer.number)
        listing = f"{key} state" if state else key
        listed = self._lists.get(listing)
        if listed is None:
            found = await self._of_guest(partner, offer, digests=False, state=state)
            listed = self._remembered(listing, found.files, keep=True)
        _, file = _named(listed, name)
        place = await self._place(key)
        async for some in pieces_of(place, name, begin, file.size):
            yield some

    async def drop_guest(
        self,
        partner: str,
        offer: OfferId,
        copied: Iterable[tuple[str, bytes]],
        *,
        state: bool = False,
    ) -> None:
        """Deletes files that a partner has copied, given by name and SHA-256; changed ones stay.

        With `state` the job goes on from these, and nothing else of it is wanted: all of its files go.

        Raises:
            NoResultsError: it has not ended, has left nothing, or its files are still being read.
        """
        found, said = await self.of_guest(partner, offer, state=state), set(copied)
        had = {file.name for file in found.files if (file.name, file.sha256) in said}
        key = lrms_key(partner, offer.epoch, offer.number)
        assert self._folders is not None
        assert found.place is not None
        remains = await _on_disk(self._folders.clear, key, had, rest=state)
        self._lists.pop(key, None)
        self._lists.pop(f"{key} state", None)
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

    def _remembered(
        self, key: str, files: tuple[JobFile, ...], *, keep: bool
    ) -> dict[str, tuple[int, JobFile]]:
        # A job may have thousands of files, and its list is as long to make as all of them are to open.
        listed = {file.name: (number, file) for number, file in enumerate(files)}
        if keep:
            self._lists[key] = listed
            if len(self._lists) > LISTS_KEPT:
                self._lists.popitem(last=False)
        return listed

    # --- reading -------------------------------------------------------------------------------

    async def _place(self, key: str) -> Path:
        assert self._folders is not None
        folder = await _on_disk(self._folders.left, key)
        if folder is None:
            raise NoResultsError("its files are gone", later=False)
        return folder.path

    async def _looked_at_once(self, key: str, *, digests: bool, state: bool) -> LeftFiles | None:
        # A folder may have very many files: a partner that asks again and again has it walked once at a time.
        look = (key, digests, state)
        if look not in self._looks:
            made = asyncio.create_task(
                self._looked_at(key, digests=digests, state=state), name=f"files of {key}"
            )
            self._looks[look] = made
            made.add_done_callback(lambda _: self._looks.pop(look))
        return await asyncio.shield(self._looks[look])

    async def _looked_at(self, key: str, *, digests: bool, state: bool = False) -> LeftFiles | None:
        # Without digests, sizes suffice: reading one file does not wait for the others.
        assert self._folders is not None
        folder: JobFolder | None = await _on_disk(self._folders.left, key)
        if folder is None:
            return None
        folder = folder.state() if state else folder
        if not digests:
            found = await _on_disk(found_files, folder, self.limits)
            return LeftFiles(tuple(each.file for each in found.files), left_out=found.left_out)
        try:
            files, left_out = await self._digests.of(folder, self.limits, DIGESTS_S)
        except NotReadYetError as error:
            raise NoResultsError(str(error), later=True) from error
        except OSError as error:
            raise NoResultsError(f"its files cannot be read now: {error}", later=True) from error
        others = await _on_disk(self._folders.others, key, {file.name for file in files})
        until = await _on_disk(self._folders.changed, key) + self._keep_s
        place = Place(str(folder.path), until, others)
        return LeftFiles(files, complete=True, place=place, left_out=left_out)


def read_piece(folder: Path, name: str, begin: int, most: int) -> tuple[int, bytes]:
    """Returns the next bytes of a file of a job, and where they begin: at 0 if the file has been emptied since.

    Accesses the disk.

    Raises:
        FileProblemError: it is missing, or no regular file.
    """
    descriptor = opened(folder, name)
    try:
        begin = begin if begin <= os.fstat(descriptor).st_size else 0
        return begin, os.pread(descriptor, most, begin)
    finally:
        os.close(descriptor)


async def _on_disk(work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    try:
        return await asyncio.to_thread(work, *args, **kwargs)
    except OSError as error:
        raise NoResultsError(f"its files cannot be read now: {error}", later=True) from error


_THERE = (JobState.DELEGATED, JobState.SUSPECT)


def _named(listed: Mapping[str, tuple[int, JobFile]], name: str) -> tuple[int, JobFile]:
    if name not in listed:
        raise ValueError(f"the job has no file {name!r}")
    number, file = listed[name]
    if file.problem is not None:
        raise FileProblemError(name, file.problem)
    return number, file


async def pieces_of(place: Path, name: str, begin: int, end: int) -> AsyncIterator[bytes]:
    """Yields bytes `begin` to `end` (exclusive) of a file in pieces, read in a thread.

    Raises:
        FileProblemError: it is missing, or no regular file.
        NoResultsError: it cannot be read now.
    """
    pieces = chunks(place, name, begin, end)
    while (some := await _on_disk(next, pieces, None)) is not None:
        yield some
