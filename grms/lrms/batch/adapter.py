"""The port for batch systems that are looked at from time to time.

One look is one reading of the whole table; it is shared by all who wait for one, compared with what
is known (`ledger`), and told as events. Between two looks nothing is known of the batch system.
"""

import asyncio
import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Final

import structlog

from grms.lrms.batch.launch import Spool, check_key, check_program
from grms.lrms.batch.ledger import MISSING_LOOKS, Act, FollowedJob, JobLedger, Order, Want
from grms.lrms.batch.system import BatchSystem
from grms.lrms.batch.table import Ending, JobRow, Question, Table
from grms.lrms.originals import VARIABLE, Fate, Watched
from grms.lrms.port import (
    Away,
    Back,
    Ended,
    LoadSeen,
    LrmsEnd,
    LrmsError,
    LrmsEvent,
    LrmsJob,
    LrmsOutcome,
    LrmsPhase,
    LrmsRecord,
    LrmsRefusedError,
    LrmsSnapshot,
    LrmsUnavailableError,
    Tell,
)
from grms.lrms.slips import Slips

REST_SHARE: Final = 10
"""After a look a pause follows that is at least so many times as long, unless somebody waits."""

REST_POLLS: Final = 5
"""Nor is it longer than so many times `poll_s`."""

SOON: Final = 0.2
"""A look that somebody waits for begins this part of `poll_s` after the last one, at the earliest."""

_STARTED = frozenset((LrmsPhase.RUNNING, LrmsPhase.SUSPENDED, LrmsPhase.COMPLETING))

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class _Seen:
    table: Table
    orders: tuple[Order, ...]


class BatchLrms:
    """A batch system behind the port.

    Args:
        system: how it is spoken to.
        spool: the folders of the jobs.
        poll_s: seconds from look to look.
        settle_s: age in seconds at which a submission can no longer be forgotten by a crash of the
            batch system; jobs are released then.
        records_s: seconds after which records say how a job that is gone has ended.
        repeats: whether a job may run again whose run the batch system has forgotten.
        watched: jobs that users hand to the batch system itself; None where they are left alone.
        clock: seconds since 1970.
    """

    def __init__(
        self,
        system: BatchSystem,
        spool: Spool,
        *,
        poll_s: float,
        settle_s: float,
        records_s: float = 0.0,
        repeats: bool = False,
        watched: Watched | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._system = system
        self._spool = spool
        self._poll_s = poll_s
        self._clock = clock
        self._ledger = JobLedger(
            system.encode, system.decode, settle_s=settle_s, records_s=records_s
        )
        self._settle_s = settle_s
        self._repeats = repeats
        self.watched = watched
        self._staying: dict[str, LrmsEnd] = {}
        self._tell: Tell = lambda _events: None
        self._looking = asyncio.Lock()
        self._begun = 0
        self._last: tuple[int, _Seen | LrmsUnavailableError] | None = None
        self._away = False
        self._wanted = asyncio.Event()
        self._under_way: set[str] = set()

    @property
    def slips(self) -> Slips:
        """How often the batch system has not kept what it said."""
        return self._ledger.slips

    @property
    def folders(self) -> Spool:
        """Where jobs run."""
        return self._spool

    # --- the port --------------------------------------------------------------------------------

    @property
    def remembers(self) -> float:
        """See `Lrms.remembers`: what was released has its mark, and is never not there."""
        return math.inf

    def listen(self, tell: Tell) -> None:
        """See `Lrms.listen`."""
        self._tell = tell

    async def open(self) -> None:
        """See `Lrms.open`."""
        try:
            await asyncio.to_thread(self._spool.open)
        except OSError as error:
            raise LrmsRefusedError(f"the folder for jobs cannot be made: {error}") from error
        await self._system.open()

    async def run(self) -> None:
        """See `Lrms.run`."""
        while True:
            began = time.monotonic()
            self._wanted.clear()
            rest_s = self._poll_s
            try:
                seen = await self._look()
                took_s = time.monotonic() - began
                rest_s = min(max(rest_s, took_s * REST_SHARE), self._poll_s * REST_POLLS)
                await self._carry_out(seen.orders)
            except LrmsUnavailableError:
                pass  # it was told, and the next look repeats what was not done
            await self._pause(rest_s)

    async def close(self) -> None:
        """See `Lrms.close`."""

    def encode(self, key: str) -> str:
        """See `Lrms.encode`."""
        return self._system.encode(check_key(key))

    async def submit(self, job: LrmsJob, *, held: bool = False) -> None:
        """See `Lrms.submit`."""
        key, want = check_key(job.key), Want.HELD if held else Want.RUN
        program = check_program(job.program)
        if await self._stays(job):
            return
        table = (await self._look_once()).table
        if job.processors > table.processors_all:
            raise LrmsRefusedError(
                f"the job needs {job.processors} processors; the machine has {table.processors_all}"
            )
        known = self._ledger.job(key)
        if known is not None and not known.number and known.end is None:
            await self._look()  # it was submitted, and the answer has not come
            known = self._ledger.job(key)
        if known is not None and (known.number or known.end is not None):
            await self._want_more(known, want)
            return
        if await self._had_before(key):
            return
        folder = await asyncio.to_thread(self._spool.prepare, key, program, run=not held)
        self._ledger.intended(key, want)
        try:
            number = await self._system.submit(self._system.encode(key), job, folder)
        except LrmsRefusedError:
            self._ledger.refused(key)
            await asyncio.to_thread(self._spool.drop, key)
            raise
        self._ledger.acknowledged(key, number, self._clock())
        self._wanted.set()

    async def release(self, key: str) -> None:
        """See `Lrms.release`."""
        while True:
            seen = await self._look()
            job = self._ledger.job(check_key(key))
            if job is None or not job.number:
                raise LrmsRefusedError(f"the batch system has no job {key}")
            if job.want is Want.GONE or job.end is not None:
                return
            await self._want_more(job, Want.RUN)
            if (job.row is not None and job.row.phase is not LrmsPhase.HELD) or job.hold_stays:
                return
            if job.row is not None and self._ledger.settled(job, seen.table.taken_at):
                act = Act.RELEASE if job.released_at is None else Act.ASK
                await self._obey(Order(act, key, job.row))
                return
            left = self._settle_s - (self._clock() - job.acknowledged_at)
            await asyncio.sleep(max(left, self._poll_s * SOON))

    async def cancel(self, key: str, *, only_waiting: bool = False) -> bool:
        """See `Lrms.cancel`."""
        if only_waiting:
            return await self._let_go(check_key(key))
        row = await self._living(check_key(key), only_waiting=False)
        if row is None:
            return False
        self._gone(key)
        await self._system.cancel(row)
        self._gone(key)
        self._wanted.set()
        return True

    async def _let_go(self, key: str) -> bool:
        # A held job cannot start: what a look shows as held after this stays so, unless a release is
        # under way, or begins meanwhile.
        while key in self._under_way:  # noqa: ASYNC110  # what is under way has no event
            await asyncio.sleep(self._poll_s * SOON)
        self._under_way.add(key)
        try:
            row = await self._living(key, only_waiting=True)
            if row is None:
                return False
            await self._system.hold(row)
            row = await self._living(key, only_waiting=True)
            if row is None:
                job = self._ledger.job(key)
                if job is not None and job.row is not None and job.row.phase in _STARTED:
                    await self._system.release(job.row)
                return False
            try:
                await self._system.cancel(row)
            except LrmsRefusedError:
                await self._system.release(row)
                raise
        finally:
            self._under_way.discard(key)
        self._gone(key)
        self._wanted.set()
        return True

    async def look_up(self, key: str) -> LrmsRecord | None:
        """See `Lrms.look_up`."""
        record = await self._looked_up(check_key(key))
        if record is not None and record.phase is LrmsPhase.ENDED:
            await self._count_runs([key])  # it may have ended before this process began
        return record

    async def _looked_up(self, key: str) -> LrmsRecord | None:
        if (staying := self._staying.get(check_key(key))) is not None:
            return LrmsRecord(LrmsPhase.ENDED, None, staying)
        for _ in range(MISSING_LOOKS):
            seen = await self._look()
            job = self._ledger.job(key)
            row = self._ledger.row(key, seen.table.rows)
            if row is not None:
                return await self._record(key, row)
            if job is None or not job.number or job.end is not None:
                break
        if job is not None and job.end is not None:
            return LrmsRecord(LrmsPhase.ENDED, job.start_time, job.end)
        if job is not None and job.number:
            # Records may still come.
            phase = LrmsPhase.UNKNOWN if job.missing else LrmsPhase.ENDED
            return LrmsRecord(phase, job.start_time, reason="it is gone")
        return await self._recorded(key)

    async def snapshot(self) -> LrmsSnapshot:
        """See `Lrms.snapshot`."""
        table = (await self._look()).table
        load = self._ledger.load(table)
        return LrmsSnapshot(
            load.taken_at,
            load.processors,
            load.free,
            load.waiting,
            self._ledger.records(table.rows),
        )

    # --- looks -----------------------------------------------------------------------------------

    async def _look_once(self) -> _Seen:
        # Any look of this life will do: what was there before it began has been there since.
        if self._last is not None and isinstance(self._last[1], _Seen):
            return self._last[1]
        return await self._look()

    async def _look(self) -> _Seen:
        # A look that begins after the call; it is shared with others who wait for one.
        asked = self._begun
        async with self._looking:
            if self._last is None or self._last[0] <= asked:
                self._begun += 1
                number = self._begun
                self._last = number, await self._look_now()
            result = self._last[1]
        if isinstance(result, LrmsUnavailableError):
            raise LrmsUnavailableError(result.reason)
        return result

    async def _look_now(self) -> _Seen | LrmsUnavailableError:
        try:
            table = await self._system.look()
        except LrmsError as error:
            # One that refuses to show its table is of no more use than one that is away.
            if not self._away:
                self._away = True
                self._tell([Away(error.reason)])
            return LrmsUnavailableError(error.reason)
        # Nothing is awaited between what is noted and what is told: a call can be cancelled.
        findings = self._ledger.see(table)
        self._tell([Back(), *findings.events] if self._away else findings.events)
        self._away = False
        ended = [event.key for event in findings.events if isinstance(event, Ended)]
        # Told after the submission was answered, which was before this look was asked for.
        staying, self._staying = self._staying, {}
        self._tell([Ended(key, end) for key, end in staying.items()])
        if findings.questions:
            ended += await self._answer(findings.questions, table.taken_at)
        await self._count_runs(ended)
        self._tell([LoadSeen(self._ledger.load(table))])
        return _Seen(table, tuple(findings.orders))

    async def _answer(self, questions: list[Question], at: float) -> list[str]:
        try:
            endings = await self._system.endings(questions)
        except LrmsError as error:
            _log.warning("lrms.records_unavailable", reason=error.reason)
            return []  # the next look asks again
        events: list[LrmsEvent] = []
        for question in questions:
            events += self._ledger.conclude(question, endings.get(question.key), at)
        self._tell(events)
        return [event.key for event in events if isinstance(event, Ended)]

    async def _count_runs(self, ended: Iterable[str]) -> None:
        # Each run that was ordered has begun with another count of restarts.
        for key in ended:
            runs = await asyncio.to_thread(self._spool.runs, key)
            self._ledger.has_run(key, len(runs) - len(set(runs)))
        self._write_slips()

    def _write_slips(self) -> None:
        for what, key in self._ledger.slipped:
            _log.warning("lrms_slip", what=what, lrms_job=self._system.encode(key))
        self._ledger.slipped.clear()

    async def _pause(self, seconds: float) -> None:
        # Somebody who waits for a look has it soon.
        soon = self._poll_s * SOON
        await asyncio.sleep(min(soon, seconds))
        try:
            async with asyncio.timeout(max(0.0, seconds - soon)):
                await self._wanted.wait()
        except TimeoutError:
            pass

    # --- orders ----------------------------------------------------------------------------------

    async def _carry_out(self, orders: Iterable[Order]) -> None:
        for order in orders:
            try:
                await self._obey(order)
            except LrmsRefusedError as error:
                # It has ended meanwhile, or may not be touched; the next look shows which.
                _log.warning(
                    "lrms.order_refused", act=order.act.value, job=order.key, reason=error.reason
                )

    async def _obey(self, order: Order) -> None:
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

    async def _ours_to_lift(self, order: Order) -> bool:
        marks = await asyncio.to_thread(self._spool.marks, order.key)
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
        begun = bool(await asyncio.to_thread(self._spool.runs, order.key))
        if begun and not self._repeats:
            await self._end_forgotten(order)
            return
        await asyncio.to_thread(self._spool.released, order.key, order.row.number)
        await self._system.release(order.row)
        self._ledger.released(order.key, self._clock(), again=begun)
        self._write_slips()

    async def _end_forgotten(self, order: Order) -> None:
        row = order.row
        question = Question(order.key, row.name, row.number, row.submit_time, None, ran=True)
        ending = (await self._system.endings([question])).get(order.key)
        self._tell(self._ledger.run_forgotten(order.key, ending, self._clock()))
        self._write_slips()
        await self._system.cancel(row)

    async def _stays(self, job: LrmsJob) -> bool:
        # Of a job that was made of a user's own here: whether that one runs, and this one does not.
        token = job.program.environment.get(VARIABLE, "") if job.program is not None else ""
        if self.watched is None or job.partner or not token:
            return False
        notes = self.watched.notes
        original = await asyncio.to_thread(notes.of, token)
        if original is None or original.user != job.user:
            return False
        if await asyncio.to_thread(notes.choose, token, Fate.HOME) is not Fate.HOME:
            return False
        reason = f"it stays as it was handed in: job {original.number} of the batch system"
        self._staying[job.key] = LrmsEnd(LrmsOutcome.CANCELLED, self._clock(), 0.0, reason=reason)
        self._wanted.set()
        return True

    async def _had_before(self, key: str) -> bool:
        # Whether an older life of this process has submitted a job that must not be repeated.
        marks = await asyncio.to_thread(self._spool.marks, key)
        if marks is None:
            return False
        table = (await self._look()).table
        if self._ledger.job(key) is not None:
            return True
        row = self._ledger.row(key, table.rows)
        if row is None and not marks.released:
            return False  # it was held to the last
        self._ledger.gone(key, marks.number if row is None else row.number, table.began_at)
        self._wanted.set()
        return True

    async def _want_more(self, job: FollowedJob, want: Want) -> None:
        if job.end is None and want is Want.RUN and job.want in {Want.NOTHING, Want.HELD}:
            await asyncio.to_thread(self._spool.wanted, job.key)
            job.want, job.hold_stays = want, False
            self._wanted.set()

    def _gone(self, key: str) -> None:
        job = self._ledger.job(key)
        if job is not None:
            job.want = Want.GONE

    async def _living(self, key: str, *, only_waiting: bool) -> JobRow | None:
        await self._look()
        job = self._ledger.job(key)
        if job is None or job.end is not None or job.row is None or not job.row.live:
            return None
        row = job.row
        if row.phase is LrmsPhase.COMPLETING or (only_waiting and row.phase in _STARTED):
            return None
        return row

    async def _record(self, key: str, row: JobRow) -> LrmsRecord:
        known = self._ledger.records([row])[key]
        if row.exact or self._ledger.job(key) is not None:
            return known
        question = Question(key, row.name, row.number, row.submit_time, row)
        ending = (await self._system.endings([question])).get(key)
        return known if ending is None else replace(known, end=ending.end)

    async def _recorded(self, key: str) -> LrmsRecord | None:
        marks = await asyncio.to_thread(self._spool.marks, key)
        if marks is None or not marks.released:
            return None  # it was held to the last, if it was there at all
        name = self._system.encode(key)
        question = Question(key, name, marks.number, None, None)
        ending = (await self._system.endings([question])).get(key)
        if ending is None:
            reason = "it was released, and no record says how it ended"
            end = LrmsEnd(LrmsOutcome.UNKNOWN, self._clock(), 0.0, reason=reason)
            ending = Ending(None, end)
        return LrmsRecord(LrmsPhase.ENDED, ending.start_time, ending.end)
