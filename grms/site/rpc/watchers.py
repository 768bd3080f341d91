"""Those who watch jobs, and what each has not been told yet."""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import islice
from typing import Final

from grms.site.model.jobs import HomeJob
from grms.site.wire.convert import write_job
from grms.v1 import job_pb2

UPDATES_MAX: Final = 1000
"""Changes of a job queued for a slow watcher; beyond, its call is ended."""

CHANGED_MAX: Final = 200_000
"""Jobs whose changes are kept for who watches all of a user's jobs and does not read; beyond, the call is ended."""


class ChangedJobs:
    """Jobs of a user that have changed and are not told yet; however often one has changed, it is told once.

    Attributes:
        event: set while there are any, or when the watchers are closed.
        overflown: there were more than `CHANGED_MAX`, and some are missing.
    """

    def __init__(self) -> None:
        self.event = asyncio.Event()
        self.overflown = False
        self._jobs: dict[int, HomeJob] = {}

    def add(self, jobs: Iterable[HomeJob]) -> None:
        """Notes changes."""
        for job in jobs:
            # One that changes again is told with those that change now.
            self._jobs.pop(job.job, None)
            self._jobs[job.job] = job
        self.overflown = self.overflown or len(self._jobs) > CHANGED_MAX
        if self._jobs:
            self.event.set()

    def take(self, most: int) -> tuple[list[HomeJob], bool]:
        """Returns the first of them, at most so many, and whether these are all; they count as told."""
        taken = list(islice(self._jobs.values(), most))
        for job in taken:
            del self._jobs[job.job]
        if not self._jobs:
            self.event.clear()
        return taken, not self._jobs


class Watchers:
    """Subscribers to changes of jobs; `shown` makes a message of one."""

    def __init__(
        self, site: str, most: int, shown: Callable[[HomeJob], job_pb2.Job] | None = None
    ) -> None:
        self._shown = shown or partial(write_job, site=site)
        self._most = most
        self._by_job: dict[str, set[asyncio.Queue[job_pb2.Job | None]]] = {}
        self._by_user: dict[str, set[ChangedJobs]] = {}
        self._by_array: dict[str, set[asyncio.Event]] = {}
        self._count = 0
        self.closed = False

    @property
    def full(self) -> bool:
        """Whether the limit of watchers is reached."""
        return self._count >= self._most

    def tell(self, job: HomeJob) -> None:
        """Passes a change to its watchers; one that does not keep up is given None, which ends it."""
        if job.array and self._by_array:
            for changed in self._by_array.get(job.array_id, ()):
                changed.set()
        for jobs in self._by_user.get(job.user, ()):
            jobs.add((job,))
        queues = self._by_job.get(job.job_id, ())
        message = self._shown(job) if queues else None
        for queue in queues:
            if queue.full():
                queue.get_nowait()
                queue.put_nowait(None)
            else:
                queue.put_nowait(message)

    def add(self, job_id: str) -> asyncio.Queue[job_pb2.Job | None]:
        """Returns a queue of changes of one job."""
        queue: asyncio.Queue[job_pb2.Job | None] = asyncio.Queue(UPDATES_MAX)
        self._by_job.setdefault(job_id, set()).add(queue)
        self._count += 1
        return queue

    @contextmanager
    def all_of(self, user: str) -> Iterator[ChangedJobs]:
        """Gives what collects the changes of all of a user's jobs."""
        changed = ChangedJobs()
        self._by_user.setdefault(user, set()).add(changed)
        self._count += 1
        try:
            yield changed
        finally:
            self._by_user[user].discard(changed)
            if not self._by_user[user]:
                del self._by_user[user]
            self._count -= 1

    def add_array(self, array_id: str) -> asyncio.Event:
        """Returns what is set with each change of an array."""
        changed = asyncio.Event()
        self._by_array.setdefault(array_id, set()).add(changed)
        self._count += 1
        return changed

    def remove_array(self, changed: asyncio.Event, array_id: str) -> None:
        """Forgets it."""
        self._by_array[array_id].discard(changed)
        if not self._by_array[array_id]:
            del self._by_array[array_id]
        self._count -= 1

    @contextmanager
    def another(self) -> Iterator[None]:
        """Counts a call that watches without a queue."""
        self._count += 1
        try:
            yield
        finally:
            self._count -= 1

    def close(self) -> None:
        """Ends every call that watches: the daemon ends."""
        self.closed = True
        for events in self._by_array.values():
            for event in events:
                event.set()
        for collected in self._by_user.values():
            for changed in collected:
                changed.event.set()
        for queues in self._by_job.values():
            for queue in queues:
                while queue.full():
                    queue.get_nowait()
                queue.put_nowait(None)

    def remove(self, queue: asyncio.Queue[job_pb2.Job | None], job_id: str) -> None:
        """Ends a queue."""
        self._by_job[job_id].discard(queue)
        if not self._by_job[job_id]:
            del self._by_job[job_id]
        self._count -= 1
