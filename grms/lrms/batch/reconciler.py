"""Carries out operations that polls show to be due: cancellations, and pending releases.

Cancellations are batched across callers: one poll and one call for very many jobs. So are the releases that a poll shows
to be due, where the batch system can. Orders of a poll are carried out until the next poll is due, which finds the rest.

A run that the batch system has forgotten is detected here, before a release would repeat it: the job's folder says
that it has begun.

Where users' own processes run what concerns their jobs (`deputies`), each user waits for himself: one whose process does
not answer keeps neither polls nor another user waiting.
"""

import asyncio
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from itertools import islice
from typing import Final

import structlog

from grms.lrms.base import (
    LrmsDiskError,
    LrmsError,
    LrmsPhase,
    LrmsRefusedError,
    LrmsUnavailableError,
    UserAwayError,
)
from grms.lrms.batch.deputies import Deputies
from grms.lrms.batch.job_tracker import Act, Order
from grms.lrms.batch.launcher import Spool
from grms.lrms.batch.poller import Poller, Rotation
from grms.lrms.batch.queue_snapshot import JobRow, Question
from grms.lrms.batch.system import BatchSystem, KeepsNames, ReleasesMany
from grms.lrms.batch.tracked_job import Want
from grms.lrms.job_notes import Marks

TOGETHER: Final = 200
"""Most jobs ended in one call."""

RELEASED_TOGETHER: Final = 100
"""Most jobs released in one call: Slurm takes some milliseconds for each, and the limit of a program's time is for all."""

_log = structlog.get_logger()


class Reconciler:
    """Carries out orders, one at a time for each job.

    With `repeats`, a job may run again if the batch system has forgotten its run. With `deputies`, orders about jobs of other
    accounts are carried out besides, in `group`. `clock` is in seconds since 1970.

    Attributes:
        group: of tasks for other accounts; `None` if orders are carried out in sequence.
    """

    def __init__(
        self,
        system: BatchSystem,
        spool: Spool,
        poller: Poller,
        *,
        repeats: bool,
        clock: Callable[[], float],
        deputies: Deputies | None = None,
    ) -> None:
        self._system = system
        self._spool = spool
        self._disk = poller.disk
        self._poller = poller
        self._tracker = poller.tracker
        self._repeats = repeats
        self._clock = clock
        self._under_way: set[str] = set()
        self._deputies = deputies
        self._to_end: dict[str, str] = {}  # the account of each
        self._ended: dict[str, bool | LrmsError] = {}
        self._ending: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._rotations: defaultdict[str, Rotation] = defaultdict(Rotation)
        # By account: those that were in a call which was refused, and since then have one of their own.
        self._alone: defaultdict[str, set[str]] = defaultdict(set)
        self._busy: set[str] = set()
        self.group: asyncio.TaskGroup | None = None

    async def carry_out(self, orders: Iterable[Order]) -> None:
        """Carries out orders in sequence; those refused, or prevented by the disk, are left to the next poll.

        Raises:
            LrmsUnavailableError: the batch system does not answer.
        """
        if self._deputies is not None and self.group is not None:
            orders = self._begun_apart(self._deputies, self.group, orders)
        await self._carried_out(list(orders), "")

    def _begun_apart(
        self, deputies: Deputies, group: asyncio.TaskGroup, orders: Iterable[Order]
    ) -> list[Order]:
        # Returns those about jobs of this process's own.
        theirs: dict[str, list[Order]] = {}
        for order in orders:
            account = self._account(self._system.decode(order.row.name) or order.key)
            theirs.setdefault(account, []).append(order)
        own = theirs.pop("", [])
        for account, some in theirs.items():
            # What is left out here the next poll finds again.
            if account not in self._busy and not deputies.waits_for(account):
                self._busy.add(account)
                group.create_task(self._carried_out_for(account, some), name=f"orders {account}")
        return own

    def _account(self, key: str) -> str:
        return "" if self._deputies is None else self._spool.account(key)

    async def _carried_out_for(self, account: str, orders: list[Order]) -> None:
        try:
            await self._carried_out(orders, account)
        except LrmsError as error:
            _log.warning("lrms.orders_unanswered", account=account, reason=error.reason)
        finally:
            self._busy.discard(account)

    async def _carried_out(self, orders: list[Order], account: str) -> None:
        ends = {_mark(order): order.row for order in orders if order.act is Act.CANCEL}
        away = await self._end_again({m: row for m, row in ends.items() if self._is_free(m)})
        until = time.monotonic() + self._poller.orders_s
        # Slurm's `priority/basic` has jobs stand in the order in which they are released.
        others = sorted((each for each in orders if each.act is not Act.CANCEL), key=_arrival)
        rotation = self._rotations[account]
        ordered = rotation.ordered(others, key=lambda each: each.key)
        if isinstance(self._system, ReleasesMany):
            self._alone[account].intersection_update(order.key for order in ordered)
            ordered = await self._released_together(
                self._system, ordered, rotation, self._alone[account]
            )
        for order in ordered:
            if time.monotonic() > until:
                return
            rotation.had(order.key)
            try:
                await self.obey(order)
            except LrmsRefusedError as error:
                # It has ended meanwhile, or may not be touched; the next poll shows which.
                _refused(order.act, order.key, error)
                if order.act is Act.RELEASE:
                    self._tracker.release_refused(order.key, error.reason)
            except LrmsDiskError:
                pass  # it was logged, and the next look finds the same; no other job waits for that
        if away is not None:
            raise away

    async def _released_together(
        self, system: ReleasesMany, orders: list[Order], rotation: Rotation, refused: set[str]
    ) -> list[Order]:
        # Returns the orders that need a call of their own. Half of the time is theirs.
        sure = {
            order.key: order.row
            for order in orders
            if order.act is Act.RELEASE
            and self._is_free(_mark(order))
            and order.key not in refused
            and not self._is_outdated(order)
        }
        if len(sure) < 2:
            return orders
        alone, waiting = set[str](), list(sure)
        until = time.monotonic() + self._poller.orders_s / 2
        while waiting and time.monotonic() <= until:
            some, waiting = waiting[:RELEASED_TOGETHER], waiting[RELEASED_TOGETHER:]
            # While the ones before were released, others may have begun to be let go.
            some = [key for key in some if self._is_free(key)]
            if not some:
                continue
            for key in some:
                rotation.had(key)
            self._under_way.update(some)
            try:
                alone |= await self._release_some(system, {key: sure[key] for key in some})
            except LrmsRefusedError as error:
                # Which ones, the next poll shows, after which each has a call of its own. Asked for now, one that was
                # released may run already, and would be taken for one whose run was forgotten.
                refused.update(some)
                _refused(Act.RELEASE, ",".join(some), error)
            except LrmsDiskError:
                pass  # it was logged, and the next poll finds the same
            finally:
                self._under_way.difference_update(some)
        if waiting:
            self._poller.want()  # whose turn has not come is not left to wait for a poll that takes its time
        return [order for order in orders if order.key not in sure or order.key in alone]

    async def _release_some(self, system: ReleasesMany, rows: Mapping[str, JobRow]) -> set[str]:
        # Returns those of which more is to be asked, as they have begun, or which could not be noted, so that a call of
        # their own says why; each of the others as `_release` does it.
        begun = await self._disk.do(self._spool.begun_of, rows)
        numbers = {key: row.number for key, row in rows.items() if key not in begun}
        for key in numbers:
            self._tracker.releasing(key)
        noted = await self._disk.do(self._spool.released_all, numbers)
        await system.release_all([row for key, row in rows.items() if key in noted])
        for key in numbers:
            if key in noted:
                self._tracker.released(key, self._clock())
        self._poller.write_anomalies()
        return begun | (numbers.keys() - noted)

    def _is_free(self, mark: str) -> bool:
        return mark not in self._under_way

    async def _end_again(self, rows: Mapping[str, JobRow]) -> LrmsError | None:
        # Returns an error if some were unanswered, after the others have been tried.
        away: LrmsError | None = None
        self._under_way.update(rows)
        try:
            for mark, error in (await self._end(rows)).items():
                if isinstance(error, LrmsRefusedError):
                    _refused(Act.CANCEL, mark, error)
                else:
                    away = error
            return away
        finally:
            self._under_way.difference_update(rows)

    async def cancel(self, key: str) -> bool:
        """Ends a job together with others due now; returns whether it was there and had not ended.

        Raises:
            LrmsError: it was refused or unanswered.
        """
        account = self._to_end[key] = self._account(key)
        try:
            async with self._ending[account]:
                # The caller whose turn it is ends the jobs of all waiting ones.
                while key in self._to_end:
                    await self._end_some(account)
        finally:
            self._to_end.pop(key, None)
            answer = self._ended.pop(key, False)
        if isinstance(answer, LrmsError):
            raise answer
        return answer

    async def evict(self, keys: Iterable[str]) -> None:
        """Ends jobs for others; each is noted first, so that its end is told as PREEMPTED.

        Raises:
            LrmsError: some were unanswered, or the disk is away; the next polls end those that were noted.
        """
        rows = {}
        for key in keys:
            job = self._tracker.job(key)
            if job is None or job.end is not None or job.row is None or key in self._under_way:
                continue
            if await self._disk.do(self._spool.evicting, key):
                job.evicted, rows[key] = True, job.row
        self._not_wanted(rows)
        away = await self._end_again(rows)
        self._poller.want()
        if away is not None:
            raise away

    async def _end_some(self, account: str) -> None:
        await asyncio.sleep(0)  # others that ask at this moment come along
        waiting = (key for key, whose in self._to_end.items() if whose == account)
        keys = list(islice(waiting, TOGETHER))
        try:
            await self._poller.new()
        except LrmsUnavailableError as error:
            self._answered(dict.fromkeys(keys, error))
            return
        rows, over = {}, set[str]()
        for key in keys:
            job = self._tracker.job(key)
            row = None if job is None or job.end is not None else job.row
            if row is not None and (not row.live or row.phase is LrmsPhase.COMPLETING):
                row = None
            if row is None:
                row = self._tracker.unshown(key)
            if row is not None:
                rows[key] = row
            elif job is not None and job.end is None and (job.fenced or not job.number):
                # There is nothing to end, or it has not arrived: the next polls conclude it.
                over.add(key)
        self._not_wanted([*rows, *over])
        errors = await self._end(rows)
        self._not_wanted(key for key in rows if key not in errors)
        self._poller.want()
        self._answered({key: errors.get(key, key in rows or key in over) for key in keys})

    def _not_wanted(self, keys: Iterable[str]) -> None:
        for key in keys:
            job = self._tracker.job(key)
            if job is not None:
                job.want = Want.GONE

    def _answered(self, answers: Mapping[str, bool | LrmsError]) -> None:
        for key, answer in answers.items():
            if key in self._to_end:  # else nobody waits for it any more
                del self._to_end[key]
                self._ended[key] = answer

    async def _end(self, rows: Mapping[str, JobRow]) -> dict[str, LrmsError]:
        # Returns the errors. A number that a crash could give away again is checked with its name.
        now, errors = self._clock(), dict[str, LrmsError]()
        sure, alone = list[str](), list[str]()
        for mark in rows:
            job = self._tracker.job(mark)
            shown = job is not None and not job.missing and self._tracker.settled(job, now)
            (sure if shown else alone).append(mark)
        if len(sure) == 1:
            sure, alone = [], [*alone, *sure]
        for first in range(0, len(sure), TOGETHER):
            some = sure[first : first + TOGETHER]
            try:
                await self._system.cancel_all([rows[mark] for mark in some])
            except (LrmsRefusedError, UserAwayError):
                alone += some  # each says for itself why
            except LrmsUnavailableError as error:
                errors |= dict.fromkeys(some, error)
        for mark in alone:
            try:
                await self._system.cancel(rows[mark])
            except LrmsError as error:
                errors[mark] = error
        return errors

    async def obey(self, order: Order) -> None:
        """Carries out an order, unless one of the same job is under way.

        Raises:
            LrmsError: it was refused or unanswered.
        """
        mark = _mark(order)
        if mark in self._under_way or self._is_outdated(order):
            return
        self._under_way.add(mark)
        try:
            if order.act is Act.CANCEL:
                await self._system.cancel(order.row)
            elif order.act is Act.TAG:
                if isinstance(self._system, KeepsNames):
                    await self._system.give_tag(order.row)
            elif order.act is Act.RELEASE or await self._ours_to_lift(order):
                await self._release(order)
        finally:
            self._under_way.discard(mark)

    def _is_outdated(self, order: Order) -> bool:
        # Whether the hold was lifted after the poll from which the order is: between the two, others are asked about, and
        # their orders are carried out. Should it have been for nothing, the next poll shows it.
        job = self._tracker.job(order.key)
        return order.act is Act.RELEASE and job is not None and job.released_at is not None

    @asynccontextmanager
    async def none_of(self, key: str) -> AsyncIterator[None]:
        """Waits until no order of a job is under way, and lets none begin before the context ends."""
        while key in self._under_way:  # noqa: ASYNC110  # what is under way has no event
            await asyncio.sleep(self._poller.soon_s)
        self._under_way.add(key)
        try:
            yield
        finally:
            self._under_way.discard(key)

    async def _ours_to_lift(self, order: Order) -> bool:
        marks = await self._disk.do(self._spool.marks, order.key)
        job = self._tracker.job(order.key)
        run = (job is not None and job.want is Want.RUN) or (marks is not None and marks.run)
        released = job is not None and job.released_at is not None
        try:
            if run and await self._is_left_held(order.key, marks):
                return True
            ours = run and await self._system.held_since_submission(order.row, released=released)
        except LrmsRefusedError as error:
            _refused(order.act, order.key, error)
            return False  # the next poll asks again
        if ours:
            if job is not None:
                job.want = Want.RUN
            return True
        self._tracker.hold_stays(order.key)
        return False

    async def _is_left_held(self, key: str, marks: Marks | None) -> bool:
        # Whether an earlier process has held it to let it go, and died: if the site still wants that, it asks again, and
        # nobody else would lift it. What has waited or begun since was released, and whoever holds it then is another.
        job = self._tracker.job(key)
        if marks is None or not marks.held or job is None or job.let_go or job.left_hold:
            return False
        return not await self._disk.do(self._spool.runs, key)

    async def _release(self, order: Order) -> None:
        begun = bool(await self._disk.do(self._spool.runs, order.key))
        if begun and order.act is Act.RELEASE and not await self._ours_to_lift(order):
            return  # it was released, and has begun, since the poll from which the order is
        if begun and not self._repeats:
            await self._end_forgotten(order)
            return
        self._tracker.releasing(order.key)
        await self._disk.do(self._spool.released, order.key, order.row.number)
        await self._system.release(order.row)
        self._tracker.released(order.key, self._clock(), again=begun)
        if order.act is Act.ASK:
            await self._disk.do(self._spool.holds, order.key, False)
        self._poller.write_anomalies()

    async def _end_forgotten(self, order: Order) -> None:
        row = order.row
        question = Question(order.key, row.name, row.number, row.submit_time, row, ran=True)
        ending = await self._system.ending(question)
        evidence = await self._poller.evidence(question, ending)
        events, over = self._tracker.run_forgotten(order.key, evidence, self._clock())
        self._poller.told(events)
        self._poller.write_anomalies()
        if over:
            await self._system.cancel(row)


def _mark(order: Order) -> str:
    return order.key or order.row.number


def _arrival(order: Order) -> tuple[float, str, list[int]]:
    # In the order in which jobs came, whatever that of a table is. Within a second their numbers have it.
    site, _, numbers = order.key.partition("/")
    return order.row.submit_time or 0.0, site, [int(each, 16) for each in numbers.split("/")]


def _refused(act: Act, key: str, error: LrmsRefusedError) -> None:
    _log.warning("lrms.order_refused", act=act.value, job=key, reason=error.reason)
