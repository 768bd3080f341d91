"""How much a site keeps for one user, and for one partner.

What is not taken because a quota is used up is not lost: a user's files wait at the partner that ran the job, and a
partner's job goes back to its home site.
"""

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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
        sizes = dict(await asyncio.to_thread(self._store.sizes)) | self._coming
        held = sum(
            there for name, there in sizes.items() if name != job_id and self._owner(name) == user
        )
        if held + size > self.most:
            text = f"its {size} bytes wait there, as {held} of {user}'s {self.most} bytes here are used"
            raise NoRoomError(f"{text}; grms fetch --remove makes room")


@dataclass(slots=True)
class _Used:
    # What was counted, what has been let in since, and until when that is good enough (`time.monotonic`).
    counted: int
    added: int
    until: float

    @property
    def total(self) -> int:
        return self.counted + self.added


class PartnerQuota:
    """What partners' jobs have at this site: their inputs and their folders, at most `most` bytes for one partner."""

    def __init__(self, folders: JobFolders | None, inputs: ResultStore, most: int) -> None:
        self._folders = folders
        self._inputs = inputs
        self._most = most
        self._used: dict[str, _Used] = {}

    async def problem(self, partner: str, size: int) -> str:
        """Returns why no further job of a partner, which brings so many bytes, is taken; empty if one is.

        Raises:
            OSError: the disk cannot be read.
        """
        used = self._used.get(partner)
        is_known = used is not None and time.monotonic() < used.until
        if used is None or not is_known or (used.added and used.total + size > self._most):
            held = await asyncio.to_thread(self._held, partner)
            is_full = held + size > self._most
            until = time.monotonic() + (FULL_S if is_full else COUNTED_S)
            used = self._used[partner] = _Used(held, 0, until)
        if used.total + size > self._most:
            return f"its jobs have files of {used.total} bytes here; at most {self._most} are kept for a partner"
        used.added += size
        return ""

    def _held(self, partner: str) -> int:
        _, inputs = self._inputs.held(f"{GUEST}{partner}+")
        return inputs + (0 if self._folders is None else self._folders.held(f"{partner}/"))
