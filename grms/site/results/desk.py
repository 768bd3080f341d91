"""What a job has left, for its user and for the site it came from.

What ran here lies in its folder of the batch system; what ran at a partner comes from there after its
end (`collector`) and is kept here. Files are read in threads.
"""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from grms.kit.job_files import (
    FileLimits,
    FileProblemError,
    JobFile,
    chunks,
    looked_at,
)
from grms.lrms.folders import JobFolders
from grms.site.engine.engine import Engine
from grms.site.facts.jobs import GuestJob, HomeJob, OfferId, lrms_key
from grms.site.facts.lifecycle import PROVISIONAL, JobState
from grms.site.facts.wire import declared_outputs
from grms.site.results.store import ResultStore

KNOWN_MAX: Final = 1000
"""Jobs whose digests are remembered: whoever asks again has them read no second time."""


@dataclass(frozen=True, slots=True)
class LeftFiles:
    """What a job has left.

    Attributes:
        files: its streams and what it has declared.
        complete: it has ended, and nothing of it changes any more.
        problem: why the files are not here, for a person; empty where they are.
    """

    files: tuple[JobFile, ...] = ()
    complete: bool = False
    problem: str = ""


class NoResultsError(Exception):
    """There are none, or none yet.

    Attributes:
        later: they may come.
    """

    def __init__(self, reason: str, *, later: bool) -> None:
        self.later = later
        super().__init__(reason)


class ResultDesk:
    """Says what jobs have left, and hands it out.

    Args:
        engine: knows the jobs.
        folders: of the jobs of this site's batch system; None where they leave nothing.
        store: of what came home.
        limits: how much is handed out.
    """

    def __init__(
        self, engine: Engine, folders: JobFolders | None, store: ResultStore, limits: FileLimits
    ) -> None:
        self._engine = engine
        self._folders = folders
        self._store = store
        self.limits = limits
        self._known: OrderedDict[str, tuple[JobFile, ...]] = OrderedDict()
        self._reading = asyncio.Semaphore(1)

    # --- for users -----------------------------------------------------------------------------

    async def of_job(self, job: HomeJob) -> LeftFiles:
        """Returns what a user's job has left, as far as it is here."""
        ended = job.state is JobState.ENDED
        if job.partner and not ended and job.state not in PROVISIONAL:
            where = f"it is with {job.partner}; its files come home after its end"
            return LeftFiles(
                problem=where if job.state in _THERE else "where it runs is not decided"
            )
        if job.partner and ended:
            return await self._came(job)
        if declared_outputs(job.payload) is None:
            return LeftFiles(complete=ended, problem="it has no script, so nothing was run")
        if self._folders is None:
            text = "this site's batch system is simulated: the script is not run"
            return LeftFiles(complete=ended, problem=text)
        found = await self._looked_at(job.lrms_key, complete=ended)
        if found is None:
            gone = "its files are gone: it left none, or was over too long ago"
            return LeftFiles(complete=ended, problem=gone if ended else "it has not begun")
        return LeftFiles(found, complete=ended)

    async def _came(self, job: HomeJob) -> LeftFiles:
        manifest = await asyncio.to_thread(self._store.manifest, job.job_id)
        if manifest is None:
            return LeftFiles(problem=f"its files are on the way from {job.partner}")
        return LeftFiles(manifest.files, complete=True, problem=manifest.problem)

    async def read_job(self, job: HomeJob, name: str, begin: int) -> AsyncIterator[bytes]:
        """Yields a file of a user's job in pieces.

        Raises:
            ValueError: there is no such file.
            FileProblemError: it cannot be handed out.
            NoResultsError: it is not here.
        """
        results = await self.of_job(job)
        if results.problem:
            raise NoResultsError(results.problem, later=not results.complete)
        file = _named(results.files, name)
        if job.partner:
            place, name = self._store.content(job.job_id, results.files.index(file))
        else:
            place = await self._place(job.lrms_key)
        async for some in pieces_of(place, name, begin, file.size):
            yield some

    # --- for partners --------------------------------------------------------------------------

    async def of_guest(self, partner: str, offer: OfferId) -> tuple[JobFile, ...]:
        """Returns what a partner's job has left.

        Raises:
            NoResultsError: it has not ended, or has left nothing.
        """
        key = lrms_key(partner, offer.epoch, offer.number)
        answer = self._engine.state.partners[partner].answer_to(offer)
        if isinstance(answer, GuestJob) and answer.completion is None:
            raise NoResultsError("the job has not ended", later=True)
        found = None
        if self._folders is not None:
            found = await self._looked_at(key, complete=True)
        if found is None:
            raise NoResultsError("nothing is here of that job", later=False)
        return found

    async def read_guest(
        self, partner: str, offer: OfferId, name: str, begin: int
    ) -> AsyncIterator[bytes]:
        """Yields a file of a partner's job in pieces.

        Raises:
            ValueError: there is no such file.
            FileProblemError: it cannot be handed out.
            NoResultsError: it has not ended, or has left nothing.
        """
        file = _named(await self.of_guest(partner, offer), name)
        place = await self._place(lrms_key(partner, offer.epoch, offer.number))
        async for some in pieces_of(place, name, begin, file.size):
            yield some

    async def drop_guest(self, partner: str, offer: OfferId) -> None:
        """Deletes what a partner's job has left.

        Raises:
            NoResultsError: it has not ended, or has left nothing.
        """
        await self.of_guest(partner, offer)
        key = lrms_key(partner, offer.epoch, offer.number)
        self._known.pop(key, None)
        assert self._folders is not None
        await asyncio.to_thread(self._folders.clear, key)

    # --- reading -------------------------------------------------------------------------------

    async def _place(self, key: str) -> Path:
        assert self._folders is not None
        folder = await asyncio.to_thread(self._folders.left, key)
        if folder is None:
            raise NoResultsError("its files are gone", later=False)
        return folder.path

    async def _looked_at(self, key: str, *, complete: bool) -> tuple[JobFile, ...] | None:
        if complete and key in self._known:
            self._known.move_to_end(key)
            return self._known[key]
        assert self._folders is not None
        async with self._reading:
            folder = await asyncio.to_thread(self._folders.left, key)
            if folder is None:
                return None
            found = tuple(
                await asyncio.to_thread(
                    looked_at, folder.path, folder.names, self.limits, content=complete
                )
            )
        if complete:
            self._known[key] = found
            if len(self._known) > KNOWN_MAX:
                self._known.popitem(last=False)
        return found


_THERE = (JobState.DELEGATED, JobState.SUSPECT)


def _named(files: Iterable[JobFile], name: str) -> JobFile:
    for file in files:
        if file.name == name:
            if file.problem is not None:
                raise FileProblemError(name, file.problem)
            return file
    raise ValueError(f"the job has no file {name!r}")


async def pieces_of(place: Path, name: str, begin: int, end: int) -> AsyncIterator[bytes]:
    """Yields a file in pieces, which are read in a thread.

    Args:
        place: folder of the file.
        name: of the file there.
        begin: first byte.
        end: the byte after the last.

    Raises:
        FileProblemError: it is missing, or no plain file.
    """
    pieces = chunks(place, name, begin, end)
    while (some := await asyncio.to_thread(next, pieces, None)) is not None:
        yield some
