"""The jobs' folders as the adapter works on them: in threads, and on a disk that may be full or away.

Whatever goes wrong there is no end of anything: the work is repeated, or the job goes to another site, and the log
says why, not more than so often. Where nothing can be written at all there is a problem that operators see, until a
look finds room again.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Callable
from typing import Final, ParamSpec, TypeVar

import structlog

from grms.lrms.port import LrmsDiskError

ALIKE_LOGGED_S: Final = 30.0
"""The same error is logged again after so long, real seconds, with how often it came meanwhile."""

_log = structlog.get_logger()

P = ParamSpec("P")
R = TypeVar("R")


class Disk:
    """Does work on the jobs' folders.

    Attributes:
        problem: why nothing can be written there, for a person; empty where it can, as far as is known.

    Args:
        probe: writes something there, and raises where that is not possible; it may block.
    """

    def __init__(self, probe: Callable[[], None]) -> None:
        self.problem = ""
        self._probe = probe
        self._logged: dict[int | None, float] = {}
        self._left_out: Counter[int | None] = Counter()

    async def do(self, work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Returns what some work on the disk returns.

        Args:
            work: a method of the folders, or of notes; it may block.
            args: of it.
            kwargs: of it.

        Raises:
            LrmsDiskError: the disk has not done it.
        """
        try:
            return await asyncio.to_thread(work, *args, **kwargs)
        except OSError as error:
            await self._failed(error)
            raise LrmsDiskError(f"the jobs' folders: {error}") from error

    async def tried(self, work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R | None:
        """Returns what some work returns that may be left undone; None where the disk has not done it."""
        try:
            return await self.do(work, *args, **kwargs)
        except LrmsDiskError:
            return None

    async def look(self) -> None:
        """Finds out whether something can be written again, where it could not."""
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
        # Of one job's folder alone, or of all?
        try:
            await asyncio.to_thread(self._probe)
        except OSError as whole:
            self.problem = str(whole)
            _log.error("spool_unusable", problem=self.problem)
