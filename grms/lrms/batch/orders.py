"""Carries out what looks have found to be repeated: cancellations, and releases that are still due.

A run that the batch system has forgotten is found here, before a release would repeat it: the job's
folder says that it has begun.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager

import structlog

from grms.lrms.batch.launch import Spool
from grms.lrms.batch.ledger import Act, Order, Want
from grms.lrms.batch.looks import Looks
from grms.lrms.batch.system import BatchSystem
from grms.lrms.batch.table import Ending, Question
from grms.lrms.launched import ended_itself
from grms.lrms.port import LrmsDiskError, LrmsRefusedError

_log = structlog.get_logger()


class Orders:
    """Carries out orders, one at a time for each job.

    Args:
        system: what is told.
        spool: the folders of the jobs, which say what has happened to each.
        looks: at the batch system, with the ledger that orders come from.
        repeats: whether a job may run again whose run the batch system has forgotten.
        clock: seconds since 1970.
    """

    def __init__(
        self,
        system: BatchSystem,
        spool: Spool,
        looks: Looks,
        *,
        repeats: bool,
        clock: Callable[[], float],
    ) -> None:
        self._system = system
        self._spool = spool
        self._disk = looks.disk
        self._looks = looks
        self._ledger = looks.ledger
        self._repeats = repeats
        self._clock = clock
        self._under_way: set[str] = set()

    async def carry_out(self, orders: Iterable[Order]) -> None:
        """Carries out orders one after the other; what is refused, or the disk prevents, is left to the next look.

        Raises:
            LrmsUnavailableError: nobody answers.
        """
        for order in orders:
            try:
                await self.obey(order)
            except LrmsRefusedError as error:
                # It has ended meanwhile, or may not be touched; the next look shows which.
                _log.warning(
                    "lrms.order_refused", act=order.act.value, job=order.key, reason=error.reason
                )
            except LrmsDiskError:
                pass  # it was logged, and the next look finds the same; no other job waits for that

    async def obey(self, order: Order) -> None:
        """Carries out an order, unless one of the same job is under way.

        Raises:
            LrmsError: it was refused, or nobody answers.
        """
        mark = order.key or order.row.number
        if mark in self._under_way:
            return
        self._under_way.add(mark)
        try:
            if order.act is Act.CANCEL:
                await self._system.cancel(order.row)
            elif order.act is Act.RELEASE or await self._ours_to_lift(order):
                await self._release(order)
        finally:
            self._under_way.discard(mark)

    @asynccontextmanager
    async def none_of(self, key: str) -> AsyncIterator[None]:
        """Waits until no order of a job is under way, and lets none begin before the context ends."""
        while key in self._under_way:  # noqa: ASYNC110  # what is under way has no event
            await asyncio.sleep(self._looks.soon_s)
        self._under_way.add(key)
        try:
            yield
        finally:
            self._under_way.discard(key)

    async def _ours_to_lift(self, order: Order) -> bool:
        marks = await self._disk.do(self._spool.marks, order.key)
        job = self._ledger.job(order.key)
        run = (job is not None and job.want is Want.RUN) or (marks is not None and marks.run)
        released = job is not None and job.released_at is not None
        if run and await self._system.held_since_submission(order.row, released=released):
            if job is not None:
                job.want = Want.RUN
            return True
        self._ledger.hold_stays(order.key)
        return False

    async def _release(self, order: Order) -> None:
        begun = bool(await self._disk.do(self._spool.runs, order.key))
        if begun and not self._repeats:
            await self._end_forgotten(order)
            return
        await self._disk.do(self._spool.released, order.key, order.row.number)
        await self._system.release(order.row)
        self._ledger.released(order.key, self._clock(), again=begun)
        self._looks.write_slips()

    async def _end_forgotten(self, order: Order) -> None:
        row = order.row
        question = Question(order.key, row.name, row.number, row.submit_time, None, ran=True)
        ending = (await self._system.endings([question])).get(order.key)
        script, _ = await self._disk.do(self._spool.script_end, order.key)
        if ending is None and script is not None:
            ending = Ending(None, ended_itself(script, self._clock()))
        self._looks.tell(self._ledger.run_forgotten(order.key, ending, self._clock()))
        self._looks.write_slips()
        await self._system.cancel(row)
