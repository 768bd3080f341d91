"""How much a site keeps for one user, and for one partner.

What is not taken because a quota is used up is not lost: a user's files wait at the partner that ran the job, and a
partner's job goes back to its home site.
"""

import asyncio
import math
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Final

from grms.daemon.file_store import ResultStore
from grms.lrms.job_directories import JobFolders

COUNTED_S: Final = 300.0
"""How long what a partner's jobs have here is not counted anew, seconds: each file is looked at."""

FULL_S: Final = 30.0
"""The same while it is more than it may be."""


GUEST: Final = "guest-"
"""Prefix of the names of partners' jobs among the inputs."""


class NoRoomError(Exception):
    """A user's quota is used up; the text says by how much, for people."""


class UserQuota:
    """What has come home for users: at most `most` bytes for each, with what is just coming.

    `owner` returns a job's user by the job's name; `None` if the site has forgotten the job.
    """

    def __init__(self, store: ResultStore, most: int, owner: Callable[[str], str | None]) -> None:
        self._store = store
        self.most = most
        self._owner = owner
        self._coming: dict[str, int] = {}

    @contextmanager
    def kept_free(self, job_id: str, size: int) -> Iterator[None]:
        """Keeps room for what is coming."""
        self._coming[job_id] = size
        try:
            yield
        finally:
            del self._coming[job_id]

    async def check(self, job_id: str, user: str, size: int) -> None:
        """Checks that there is room for the files of a job.

        Raises:
            NoRoomError: there is not.
            OSError: the store cannot be read.
        """
        # One that is complete meanwhile was perhaps counted when it was not.
        before = dict(self._coming)
        sizes = dict(await asyncio.to_thread(self._store.sizes))
        for name, size_coming in (*before.items(), *self._coming.items()):
            sizes[name] = max(sizes.get(name, 0), size_coming)
        held = sum(
            there for name, there in sizes.items() if name != job_id and self._owner(name) == user
        )
        if held + size > self.most:
            text = f"its {size} bytes wait there, as {held} of {user}'s {self.most} bytes here are used"
            raise NoRoomError(f"{text}; grms fetch --remove makes room")


@dataclass(slots=True)
class _Used:
    # What was counted, but for what is coming; what has come since; and until when that is good enough
    # (`time.monotonic`).
    counted: int
    came: int
    until: float


class PartnerQuota:
    """What partners' jobs have at this site: their inputs and their folders, at most `most` bytes for one partner.

    What is let in counts whole from then on, however much of it has come: very many jobs may ask at one time.
    """

    def __init__(self, folders: JobFolders | None, inputs: ResultStore, most: int) -> None:
        self._folders = folders
        self._inputs = inputs
        self._most = most
        self._used: dict[str, _Used] = {}
        self._coming: defaultdict[str, dict[str, int]] = defaultdict(dict)
        self._asking: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    @asynccontextmanager
    async def room(self, partner: str, key: str, size: int) -> AsyncIterator[str]:
        """Keeps room for the inputs of a partner's job, of so many bytes, while they come.

        Yields:
            Why the job is not taken; empty if it is.

        Raises:
            OSError: the disk cannot be read.
        """
        coming = self._coming[partner]
        async with self._asking[partner]:
            assert key not in coming, key
            problem = await self._problem(partner, key, size)
            if not problem:
                coming[key] = size
        if problem:
            yield problem
            return
        try:
            yield ""
        except BaseException:
            self._used[partner].until = -math.inf  # nobody knows how much of it has come
            raise
        else:
            self._used[partner].came += size
        finally:
            del coming[key]

    async def _problem(self, partner: str, key: str, size: int) -> str:
        here = await asyncio.to_thread(self._inputs.size, inputs_of(key))
        used = self._used.get(partner)
        is_known = used is not None and time.monotonic() < used.until
        if used is None or not is_known or (used.came and self._total(partner, size - here)):
            coming = dict(self._coming[partner])
            counted = await asyncio.to_thread(self._held, partner, list(coming))
            # Those that have come, or failed, meanwhile were left out.
            over = sum(each for other, each in coming.items() if other not in self._coming[partner])
            used = self._used[partner] = _Used(counted, over, math.inf)
            is_full = bool(self._total(partner, size - here))
            used.until = time.monotonic() + (FULL_S if is_full else COUNTED_S)
        if total := self._total(partner, size - here):
            return f"its jobs have files of {total} bytes here; at most {self._most} are kept for a partner"
        used.counted -= here  # it counts whole from now on
        return ""

    def _total(self, partner: str, size: int) -> int:
        # What a partner has, where so much more is too much; else 0.
        used = self._used[partner]
        total = used.counted + used.came + sum(self._coming[partner].values())
        return total if total + max(0, size) > self._most else 0

    def _held(self, partner: str, coming: list[str]) -> int:
        _, inputs = self._inputs.held(f"{GUEST}{partner}+")
        left_out = sum(self._inputs.size(inputs_of(key)) for key in coming)
        return (
            inputs - left_out + (0 if self._folders is None else self._folders.held(f"{partner}/"))
        )


def inputs_of(key: str) -> str:
    """Returns the store's name for the files of a partner's job."""
    return f"{GUEST}{key.replace('/', '+')}"
