"""Polls a batch system, and emits events.

A poll reads the whole queue; it is shared by all who wait for one, compared with what is known (`tracker`), and
emitted as events. Between two polls nothing is known of the batch system.
"""

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, replace
from typing import Final, TypeVar

import structlog

from grms.lrms.base import (
    Away,
    Back,
    Ended,
    LoadSeen,
    LrmsEnd,
    LrmsError,
    LrmsEvent,
    LrmsUnavailableError,
    Tell,
    Unseen,
)
from grms.lrms.batch.job_tracker import JobTracker, Order
from grms.lrms.batch.launcher import Spool
from grms.lrms.batch.queue_snapshot import Ending, Evidence, Question, QueueSnapshot
from grms.lrms.batch.system import BatchSystem
from grms.lrms.disk import Disk

REST_SHARE: Final = 10
"""A poll is followed by a pause of at least this multiple of its duration, unless a caller waits."""

REST_POLLS: Final = 5
"""The pause is at most this multiple of `poll_s`."""

ORDERS_POLLS: Final = 2
"""Questions and then orders of a poll take at most this multiple of `poll_s` each, as the load ages meanwhile."""

SOON: Final = 0.2
"""A poll that a caller waits for begins no earlier than this fraction of `poll_s` after the last one."""

T = TypeVar("T")

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Seen:
    """A poll with the orders that the job tracker derived from it."""

    table: QueueSnapshot
    orders: tuple[Order, ...]


class Rotation:
    """Who has waited for his turn the longest goes first, where there may be no time for all."""

    def __init__(self) -> None:
        self._last: dict[str, int] = {}
        self._round = 0

    def ordered(self, items: Iterable[T], key: Callable[[T], str]) -> list[T]:
        """Returns what is to be done now, with those first that have had no turn, or the oldest one."""
        some = list(items)
        self._round += 1
        self._last = {name: self._last[name] for name in map(key, some) if name in self._last}
        return sorted(some, key=lambda item: self._last.get(key(item), 0))

    def had(self, name: str) -> None:
        """Notes that one has had its turn."""
        self._last[name] = self._round


class Poller:
    """The polls of one batch system, one at a time.

    Attributes:
        tracker: result of all polls so far.
        tell: receives the events.
        staying: ends of jobs that were not handed to the batch system, emitted by the next poll.
        known: returns a poll with what is known of its rows beside their names.
    """

    def __init__(
        self, system: BatchSystem, spool: Spool, tracker: JobTracker, *, poll_s: float
    ) -> None:
        self._system = system
        self._spool = spool
        self._poll_s = poll_s
        self.tracker = tracker
        self.disk = Disk(spool.probe)
        self.tell: Tell = lambda _events: None
        self.staying: dict[str, LrmsEnd] = {}
        self.known: Callable[[QueueSnapshot], Awaitable[QueueSnapshot]] | None = None
        self._looking = asyncio.Lock()
        self._begun = 0
        self._last: tuple[int, Seen | LrmsUnavailableError] | None = None
        self._away = False
        self._rotation = Rotation()
        self._released: dict[str, str] = {}  # numbers by key; empty of what was not
        self._wanted = asyncio.Event()
        self._due: set[int] = set()

    # --- when it is looked -----------------------------------------------------------------------

    @property
    def soon_s(self) -> float:
        """Shortest delay of a poll that a caller waits for, seconds."""
        return self._poll_s * SOON

    @property
    def orders_s(self) -> float:
        """Time for the questions or the orders of a poll, seconds; the next one finds the rest."""
        return self._poll_s * ORDERS_POLLS

    def want(self) -> None:
        """Requests the next poll soon."""
        self._wanted.set()

    def want_in(self, seconds: float) -> None:
        """Requests a poll soon after a time, when something is due; those for about the same moment are one."""
        loop = asyncio.get_running_loop()
        step_s = max(self.soon_s, 0.01)
        at = math.ceil((loop.time() + seconds) / step_s)
        if at not in self._due:
            self._due.add(at)
            loop.call_at(at * step_s, self._is_due, at)

    def _is_due(self, at: int) -> None:
        self._due.discard(at)
        self.want()

    async def follow(self, carry_out: Callable[[Iterable[Order]], Awaitable[None]]) -> None:
        """Polls until cancelled; `carry_out` gets the orders of each poll."""
        while True:
            began = time.monotonic()
            self._wanted.clear()
            rest_s = self._poll_s
            try:
                seen = await self.new()
                took_s = time.monotonic() - began
                rest_s = min(max(rest_s, took_s * REST_SHARE), self._poll_s * REST_POLLS)
                await carry_out(seen.orders)
            except LrmsUnavailableError:
                pass  # it was told, and the next look repeats what was not done
            await self._pause(rest_s)

    async def _pause(self, seconds: float) -> None:
        # A waiting caller gets a poll soon.
        await asyncio.sleep(min(self.soon_s, seconds))
        try:
            async with asyncio.timeout(max(0.0, seconds - self.soon_s)):
                await self._wanted.wait()
        except TimeoutError:
            pass

    # --- a look ----------------------------------------------------------------------------------

    async def last(self) -> Seen:
        """Returns the last poll, or a first one.

        Any poll of this process serves for what was there before it began.

        Raises:
            LrmsUnavailableError: the batch system does not answer.
        """
        if self._last is not None and isinstance(self._last[1], Seen):
            return self._last[1]
        return await self.new()

    async def new(self) -> Seen:
        """Returns a poll that begins after the call, shared with other waiting callers.

        Raises:
            LrmsUnavailableError: the batch system does not answer.
        """
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

    async def _look_now(self) -> Seen | LrmsUnavailableError:
        try:
            table = await self._system.look()
            if self.known is not None:
                table = await self.known(table)
        except (LrmsError, OSError) as error:
            # Refusing to show the queue counts as being away.
            if not self._away:
                self._away = True
                self.tell([Away(str(error))])
            return LrmsUnavailableError(str(error))
        await self._recall(table)
        # No await between recording and emitting, as a call can be cancelled.
        findings = self.tracker.see(table)
        self.tell([Back(), *findings.events] if self._away else findings.events)
        self._away = False
        ended = [event.key for event in findings.events if isinstance(event, Ended)]
        # Emitted after the submission was answered, which was before this poll was requested.
        staying, self.staying = self.staying, {}
        self.tell([Ended(key, end) for key, end in staying.items()])
        ended += await self._answer(findings.questions, table.taken_at)
        await self.count_runs(ended)
        await self.disk.look()
        self.tell([LoadSeen(self.tracker.load(table))])
        return Seen(table, tuple(findings.orders))

    async def _recall(self, table: QueueSnapshot) -> None:
        # What an earlier process has released, and a table does not show: another number is a copy's.
        unfollowed = self.tracker.unfollowed(table.rows)
        self._released = {key: self._released[key] for key in unfollowed if key in self._released}
        for key, numbers in unfollowed.items():
            if key not in self._released:
                marks = await self.disk.tried(self._spool.marks, key)
                was = marks is not None and marks.released
                self._released[key] = marks.number if marks is not None and was else ""
            number = self._released[key]
            if number and number not in numbers:
                self.tracker.gone(key, number, table.began_at, asked=False)

    async def _answer(self, questions: list[Question], at: float) -> list[str]:
        # Returns the keys of ended jobs. Unanswered questions are left to the next poll.
        ended: list[str] = []
        until, records, answers = time.monotonic() + self.orders_s, True, True
        for question in self._rotation.ordered(questions, key=lambda each: each.key):
            if time.monotonic() > until:
                break
            self._rotation.had(question.key)
            evidence = await self.disk.tried(self._spool.evidence, question.key)
            if evidence is None:
                continue  # it was logged
            # If one question is unanswered, the others are not waited for.
            exact = question.row is not None and question.row.exact
            try:
                ending = await self._system.ending(question) if records and not exact else None
            except (LrmsError, OSError) as error:
                _log.warning("lrms.records_unavailable", reason=str(error))
                records = False
            if not (records or exact):
                continue
            evidence = replace(evidence, ending=ending)
            if ending is None and question.row is None and answers:
                evidence, answers = await self._asked(question, evidence)
            # Emitted at once: this call can be cancelled, and conclusions are not repeated.
            events = self.tracker.conclude(question, evidence, at)
            self.told(events)
            ended += [event.key for event in events if isinstance(event, Ended)]
        return ended

    async def evidence(self, question: Question, ending: Ending | None) -> Evidence:
        """Returns what is known of a job besides a poll; `ending` is from records.

        Raises:
            LrmsDiskError: the job's folder cannot be read.
        """
        evidence = await self.disk.do(self._spool.evidence, question.key)
        if ending is not None or question.row is not None:
            return replace(evidence, ending=ending)
        return (await self._asked(question, evidence))[0]

    async def _asked(self, question: Question, evidence: Evidence) -> tuple[Evidence, bool]:
        # With the batch system's own answer, and whether there was one.
        question = replace(question, ran=question.ran or evidence.begun is True)
        try:
            known = await self._system.knows(question)
        except LrmsError as error:
            _log.warning("lrms.records_unavailable", reason=error.reason)
            return evidence, False
        if isinstance(known, Ending):
            return replace(evidence, ending=known), True
        return replace(evidence, known=known), True

    def told(self, events: list[LrmsEvent]) -> None:
        """Tells events that come of questions, and writes to the log what is not known."""
        for event in events:
            if isinstance(event, Unseen):
                name = self._system.encode(event.key)
                _log.warning("lrms.job_unseen", lrms_job=name, reason=event.reason)
        self.tell(events)

    # --- what the batch system has not kept ------------------------------------------------------

    async def count_runs(self, ended: Iterable[str]) -> None:
        """Counts how often jobs have run that have ended, by their keys."""
        # Each ordered run has begun with another restart count.
        for key in ended:
            runs = await self.disk.tried(self._spool.runs, key) or []
            self.tracker.has_run(key, len(runs) - len(set(runs)))
        self.write_anomalies()

    def write_anomalies(self) -> None:
        """Writes to the log what the job tracker has newly found that the batch system has not kept."""
        for what, key in self.tracker.slipped:
            _log.warning("lrms_anomaly", what=what, lrms_job=self._system.encode(key))
        self.tracker.slipped.clear()
