"""Has guests ended for jobs that need their processors: by the batch system, or else by this daemon.

After each poll the protection of protected guests is brought to what is wanted, as a batch system may forget it. If the
batch system ends no guests for some of the others' jobs, those are asked for, and as many guests are cancelled as these need.
Before a guest is cancelled it is noted, durably, why: it then ends as PREEMPTED, also after a restart.
"""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Final

import structlog

from grms.lrms.base import LrmsDiskError, LrmsError, LrmsJob, LrmsPhase
from grms.lrms.batch.guests_to_end import RunningGuest, to_end
from grms.lrms.batch.launcher import Spool
from grms.lrms.batch.poller import Poller
from grms.lrms.batch.queue_snapshot import JobRow, QueueSnapshot
from grms.lrms.batch.reconciler import Reconciler
from grms.lrms.batch.system import PreemptingSystem
from grms.lrms.batch.tracked_job import Want
from grms.lrms.preemption import EndedBy, Preemption

RETRY_S: Final = 30.0
"""How long after a failure protection is tried again, real seconds."""

_RUNS = frozenset((LrmsPhase.RUNNING, LrmsPhase.SUSPENDED))

_log = structlog.get_logger()


class GuestPreemption:
    """Preemptible guests of one batch system; `decode` returns the key of a job's name, `clock` is in seconds since 1970."""

    def __init__(
        self,
        system: PreemptingSystem,
        spool: Spool,
        poller: Poller,
        orders: Reconciler,
        *,
        decode: Callable[[str], str | None],
        clock: Callable[[], float],
    ) -> None:
        self._system = system
        self._spool = spool
        self._poller = poller
        self._orders = orders
        self._decode = decode
        self._clock = clock
        self._on = False
        self._failure = ""
        self._failed_at = 0.0
        self._said: Preemption | None = None
        self._waits: dict[str, float] = {}
        self._preemptible: dict[str, bool] = {}

    @property
    def preemption(self) -> Preemption:
        """What happens to preemptible guests, by the last poll."""
        found = self._system.preemption
        if not self._failure:
            return found
        why = f"none can be protected: {self._failure}"
        return replace(found, protects=False, why=f"{found.why}; {why}".removeprefix("; "))

    def protect(self, *, on: bool) -> None:
        """Protects the protected guests, or no longer, with the next poll."""
        if self._on != on:
            self._on, self._failed_at = on, 0.0
            self._poller.want()

    def placed(self, job: LrmsJob) -> LrmsJob:
        """Returns a job as it is to be submitted; a guest whose user wants one run at most is never ended."""
        if not job.partner or not job.preemptible or job.once:
            return replace(job, preemptible=False, protected=False)
        return self._system.placed(
            replace(job, protected=job.protected and self.preemption.protects)
        )

    async def look(self, table: QueueSnapshot) -> None:
        """Does what the last poll shows to be due; what fails is left to the next one."""
        self._say()
        await self._protected()
        if self._system.preemption.ended_by is EndedBy.BATCH_SYSTEM:
            return
        try:
            await self._make_room(table)
        except LrmsDiskError:
            pass  # it was logged
        except LrmsError as error:
            _log.warning("lrms.guests_not_ended", reason=error.reason)

    def _say(self) -> None:
        found = self.preemption
        if found == self._said:
            return
        self._said = found
        if found.ended_by is EndedBy.BATCH_SYSTEM:
            _log.info("lrms.preemption", ended_by=found.ended_by.value, protects=found.protects)
        else:
            text = "this daemon ends guests when others' jobs wait for room, as long as it lives"
            _log.warning("lrms.preemption", ended_by=found.ended_by.value, why=found.why, then=text)

    async def _protected(self) -> None:
        if self._failure and time.monotonic() < self._failed_at + RETRY_S:
            return
        try:
            if await self._system.keep_protection(on=self._on):
                _log.info("lrms.guests_protected", on=self._on)
                self._poller.want()
            self._failure = ""
        except LrmsError as error:
            if error.reason != self._failure:
                _log.warning("lrms.guests_not_protected", on=self._on, reason=error.reason)
            self._failure, self._failed_at = error.reason, time.monotonic()

    async def _make_room(self, table: QueueSnapshot) -> None:
        free = dict(self._system.free())
        rows: dict[str, JobRow] = {}
        for row in table.rows:
            key = self._decode(row.name)
            if key is None or not row.nodes or not row.processors:
                continue
            job = self._poller.tracker.job(key)
            if row.phase is LrmsPhase.COMPLETING or (job is not None and job.want is Want.GONE):
                for node in row.nodes:  # they are about to be free
                    free[node] = free.get(node, 0) + row.processors // len(row.nodes)
            elif row.phase in _RUNS and not (self._on and self._system.is_spared(row)):
                rows[key] = row
        guests = [
            RunningGuest(key, row.processors, row.start_time or 0.0, row.nodes)
            for key, row in rows.items()
            if await self._may_end(key)
        ]
        if not guests:
            self._waits.clear()
            return
        now = self._clock()
        waiting = await self._system.waiting()
        self._waits = {job.number: self._waits.get(job.number, now) for job in waiting}
        waiting = [replace(job, since=self._waits[job.number]) for job in waiting]
        chosen = to_end(waiting, free, guests, now)
        if chosen:
            _log.info("lrms.guests_ended", jobs=[each.key for each in chosen])
            await self._orders.evict([each.key for each in chosen])

    async def _may_end(self, key: str) -> bool:
        # By the notes of its submission, which do not change.
        if key not in self._preemptible:
            marks = await self._poller.disk.do(self._spool.marks, key)
            if len(self._preemptible) >= _KNOWN_MAX:
                self._preemptible.clear()
            self._preemptible[key] = marks is not None and marks.preemptible
        return self._preemptible[key]


_KNOWN_MAX = 10_000
