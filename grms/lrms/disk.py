"""The adapter's work on the jobs' folders: in threads, and on a disk that may be full or away.

Errors are never final: the work is repeated, or the job goes to another site, and the log gives the reason at a
limited rate. If nothing can be written at all, operators see a problem until a poll finds room again.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Callable
from typing import Final, ParamSpec, TypeVar

import structlog

from grms.lrms.base import LrmsDiskError

ALIKE_LOGGED_S: Final = 30.0
"""Interval at which an identical error is logged again with a count, real seconds."""

_log = structlog.get_logger()

P = ParamSpec("P")
R = TypeVar("R")


class Disk:
    """Works on the jobs' folders.

    `problem` says why nothing can be written, for people; empty if nothing is known to prevent it. `probe`
    writes a test file or raises; it may block.
    """

    def __init__(self, probe: Callable[[], None]) -> None:
        self.problem = ""
        self._probe = probe
        self._logged: dict[int | None, float] = {}
        self._left_out: Counter[int | None] = Counter()

    async def do(self, work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Runs work on the disk, which may block, in a thread and returns its result.

        Raises:
            LrmsDiskError: it failed because of the disk.
        """
        try:
            return await asyncio.to_thread(work, *args, **kwargs)
        except OSError as error:
            await self._failed(error)
            raise LrmsDiskError(f"the jobs' folders: {error}") from error

    async def tried(self, work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R | None:
        """Returns the result of optional work; `None` if it failed because of the disk."""
        try:
            return await self.do(work, *args, **kwargs)
        except LrmsDiskError:
            return None

    async def look(self) -> None:
        """Checks whether writing is possible again after a failure."""
        if not self.problem:
            return
        try:
            await asyncio.to_thread(self._probe)
        except OSError as error:
            self.problem = str(error)
        else:
            self.problem = ""
            _log.info("spool_usable")

    async def _failed(self, error: OSError) -> None:
        now, kind = time.monotonic(), error.errno
        if now - self._logged.get(kind, now - ALIKE_LOGGED_S) >= ALIKE_LOGGED_S:
            self._logged[kind] = now
            left = self._left_out.pop(kind, 0)
            more = {"left_out": left} if left else {}
            _log.warning("spool_failed", problem=str(error), **more)
        else:
            self._left_out[kind] += 1
        if self.problem:
            return
        # Is it one job's folder, or all?
        try:
            await asyncio.to_thread(self._probe)
        except OSError as whole:
            self.problem = str(whole)
            _log.error("spool_unusable", problem=self.problem)
