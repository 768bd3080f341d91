"""Waiting for the ends of jobs: one call follows all of a user's, however many are waited for."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final, Protocol

from grms.client.answers import Changes, Job
from grms.client.errors import SiteError
from grms.daemon.backoff import Backoff, BackoffSettings

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
