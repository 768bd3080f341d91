"""Submits jobs, many that are alike in one call where the batch system can.

A call waits as long as more submissions are being prepared, which is a fraction of a second when very many come at once; a job
that comes alone is submitted at once. So nothing is slower, and what is submitted together came together.
"""

import asyncio
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from grms.lrms.base import LrmsJob, LrmsRefusedError
from grms.lrms.batch.system import BatchSystem, SubmitsMany

TOGETHER: Final = 200
"""Most jobs submitted in one call."""

GATHERED_S: Final = 0.5
"""Longest wait for others that are being prepared, seconds."""

ALONE: Final = 4
"""Calls at one time where very many are prepared that are not alike, so that polls have their turn."""


class _Waiting(NamedTuple):
    name: str
    job: LrmsJob
    folder: Path
    number: asyncio.Future[str]


class Submissions:
    """The submissions to one batch system; `together` lets those that are alike go in one call.

    Attributes:
        at_once: how many jobs are worth preparing at one time; 0 if each is submitted by itself.
    """

    def __init__(self, system: BatchSystem, *, together: bool = True) -> None:
        self._system = system
        self._many = system if together and isinstance(system, SubmitsMany) else None
        self.at_once = TOGETHER if self._many is not None else 0
        self._coming = 0
        self._waiting: dict[Hashable, list[_Waiting]] = {}
        self._changed = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._alone = asyncio.Semaphore(ALONE)

    @contextmanager
    def coming(self) -> Iterator[None]:
        """Notes that a submission is being prepared, until it is asked for or given up."""
        self._coming += 1
        try:
            yield
        finally:
            self._coming -= 1
            self._changed.set()

    async def submit(self, name: str, job: LrmsJob, folder: Path) -> str:
        """Submits a job held, and returns the batch system's id.

        Raises:
            LrmsError: as `BatchSystem.submit`.
        """
        if self._many is None:
            return await self._system.submit(name, job, folder)
        alike = self._many.alike(name, job, folder)
        if alike is None:
            async with self._alone:
                return await self._system.submit(name, job, folder)
        number: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        those = self._waiting.setdefault(alike, [])
        those.append(_Waiting(name, job, folder, number))
        if len(those) == 1:
            task = asyncio.create_task(self._gather(self._many, alike), name="submissions")
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        self._changed.set()
        return await number

    async def _gather(self, many: SubmitsMany, alike: Hashable) -> None:
        try:
            async with asyncio.timeout(GATHERED_S):
                while self._coming and len(self._waiting[alike]) < TOGETHER:
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            pass
        # Nobody waits any more for one whose time was over: it has not reached the batch system.
        those = [each for each in self._waiting.pop(alike) if not each.number.done()]
        for first in range(0, len(those), TOGETHER):
            await self._submitted(many, those[first : first + TOGETHER])

    async def _submitted(self, many: SubmitsMany, those: list[_Waiting]) -> None:
        if len(those) == 1:
            await self._submitted_alone(those[0], [])
            return
        try:
            numbers = await many.submit_all([each[:3] for each in those])
        except LrmsRefusedError:
            await self._submitted_each(those)
        except Exception as error:  # noqa: BLE001  # each of them raises it
            _fail(those, error)
        else:
            for each, number in zip(those, numbers, strict=True):
                _succeed(each, number)

    async def _submitted_each(self, those: list[_Waiting]) -> None:
        # They were refused together, perhaps because of one of them, or for being many: the first by itself finds out. What
        # one meets that is independent of it is so for all that come after, such as that there is no more room.
        first, *others = those
        met: list[Exception] = []
        await self._submitted_alone(first, met)
        await asyncio.gather(*(self._submitted_alone(each, met) for each in others))

    async def _submitted_alone(self, one: _Waiting, met: list[Exception]) -> None:
        try:
            async with self._alone:
                if one.number.done():
                    return  # its time was over, and it may come again
                if met:
                    _fail([one], met[0])
                    return
                number = await self._system.submit(one.name, one.job, one.folder)
        except Exception as error:  # noqa: BLE001  # who waits for it raises it
            if not isinstance(error, LrmsRefusedError) or error.passing:
                met.append(error)
            _fail([one], error)
        else:
            _succeed(one, number)


def _succeed(one: _Waiting, number: str) -> None:
    if not one.number.done():
        one.number.set_result(number)


def _fail(those: list[_Waiting], error: Exception) -> None:
    for each in those:
        if not each.number.done():
            each.number.set_exception(error)
