"""Watches the batch system for jobs at the site's disposal, and turns them into jobs of the site.

The sequence is: hold, poll again, submit to the site, which decides as usual; then release the native job, or
cancel it. Each step relies on durable state, so that a killed watcher resumes anywhere: the note written before
a hold (`NativeJobNotes`), the site's journal, and which of the two runs (`NativeJobNotes.choose`). Every poll
repeats what the batch system has undone.
"""

import asyncio
import time
from collections.abc import Callable, Coroutine
from copy import copy
from typing import Final

import structlog

from grms.daemon.job_needs import write_needs
from grms.daemon.loop import NotWrittenError
from grms.daemon.messages import WireError
from grms.lrms.base import LrmsError
from grms.lrms.native_jobs import VARIABLE, Fate, NativeJob, NativeJobRow, Watched
from grms.site.model.commands import Refusal, Refuse, ReplyJob
from grms.site.model.events import Cancel, Submit
from grms.site.model.jobs import HomeJob
from grms.site.model.lifecycle import JobState, Outcome
from grms.site.runtime.event_loop import Engine
from grms.site.wire.convert import read_request
from grms.v1 import request_pb2
from lrms_sim.workload.requests import Request

NAME_MAX: Final = 128
"""Most characters of a job's name at a site."""

TAKEN_AT_ONCE: Final = 20
"""Most jobs taken per poll; the others wait for the next, and may start meanwhile."""

MISSING_LOOKS: Final = 3
"""An original missing from this many polls in a row is gone."""

_AWAY = (JobState.DELEGATED, JobState.SUSPECT)

Log = structlog.typing.FilteringBoundLogger


class NativeJobAdoption:
    """Moves jobs between a batch system's users and the site; `clock` is in seconds since 1970."""

    def __init__(
        self, engine: Engine, watched: Watched, log: Log, clock: Callable[[], float] = time.time
    ) -> None:
        self._engine = engine
        self._system, self._notes = watched.system, watched.notes
        self._watched = watched
        self._log = log
        self._clock = clock
        self._known: dict[str, NativeJob] | None = None
        self._left: set[str] = set()
        self._missing: dict[str, int] = {}
        self._free: dict[str, float] = {}
        self._said: dict[str, str] = {}

    async def run(self) -> None:
        """Looks again and again, until it is cancelled."""
        while True:
            try:
                await self.look()
            except (LrmsError, OSError) as error:
                self._log.warning("originals_not_watched", problem=str(error))
            await asyncio.sleep(self._watched.poll_s)

    async def look(self) -> None:
        """Polls once, and acts on the result.

        Raises:
            LrmsError: the batch system does not show its queue.
            OSError: a note cannot be read or written.
        """
        if self._known is None:
            notes = await asyncio.to_thread(self._notes.all)
            self._known = {native_job.word: native_job for native_job in notes}
        began_at = self._clock()
        rows = {row.word: row for row in await self._system.rows()}
        self._left &= rows.keys()
        numbers = {row.number for row in rows.values()}
        self._said = {number: said for number, said in self._said.items() if number in numbers}
        for native_job in list(self._known.values()):
            await self._trying(
                native_job.number, self._follow(native_job, rows.get(native_job.word), began_at)
            )
        new = [
            row for word, row in rows.items() if word not in self._known and word not in self._left
        ]
        wanted = [row for row in new if row.waiting and row.offered]
        for row in wanted[:TAKEN_AT_ONCE]:
            await self._trying(row.number, self._take(row))

    async def _trying(self, number: str, work: Coroutine[None, None, None]) -> None:
        # A job that the batch system refuses to touch, or that cannot be noted, must not hold up others.
        try:
            await work
        except (LrmsError, OSError, NotWrittenError) as error:
            # Each poll would find the same, for possibly very many jobs.
            if self._said.get(number) != str(error):
                self._log.warning("native_job_not_moved", lrms_job=number, problem=str(error))
            self._said[number] = str(error)
        else:
            self._said.pop(number, None)

    # --- a job that nobody knows yet -------------------------------------------------------------

    async def _take(self, row: NativeJobRow) -> None:
        assert self._known is not None
        wanted = await self._system.wanted(row)
        if wanted.reason:
            self._left.add(row.word)
            self._log.info("native_job_stays", lrms_job=row.number, reason=wanted.reason)
            await self._system.tell(row.number, f"hanse: it stays here: {wanted.reason}")
            if row.held:
                await self._system.release(row.number)
            return
        native_job = await asyncio.to_thread(self._notes.begin, row.number, row.submitted, row.user)
        self._known[native_job.word] = native_job
        await self._system.hold(row.number)
        # The next poll sees whether it is held, or was faster; from then on it is known.

    async def _submit(self, native_job: NativeJob, row: NativeJobRow) -> None:
        wanted = await self._system.wanted(row)
        message = request_pb2.JobRequest(
            processors=wanted.processors, requested_time_s=wanted.requested_time_s
        )
        needs = wanted.request
        if needs is not None and needs != Request.of_processors(wanted.processors, needs.wall_time):
            message.needs.CopyFrom(write_needs(needs))
        message.program.script = wanted.script
        message.program.name = wanted.name[:NAME_MAX]
        message.program.environment[VARIABLE] = native_job.token
        if wanted.reason:
            await self._choose(native_job, Fate.HOME, wanted.reason)  # it was changed meanwhile
            return
        try:
            request, payload = read_request(message, "request")
        except WireError as error:
            await self._choose(native_job, Fate.HOME, f"the site cannot take it: {error}")
            return
        key = f"original {native_job.word} {native_job.token}"
        name = wanted.name[:NAME_MAX] if wanted.name.isprintable() else ""
        event = Submit(*self._engine.stamp(), native_job.user, key, name, request, payload)
        reply = await self._engine.ask(event, lambda reply: reply)
        if isinstance(reply, Refuse) and reply.refusal is not Refusal.UNAVAILABLE:
            await self._choose(native_job, Fate.HOME, reply.reason)
        if not isinstance(reply, ReplyJob):
            return  # the next look asks again with the same key
        await self._change(native_job, job_id=reply.job_id)
        self._log.info("native_job_taken", lrms_job=native_job.number, job=reply.job_id)

    # --- a job that is known ---------------------------------------------------------------------

    async def _follow(self, native_job: NativeJob, row: NativeJobRow | None, at: float) -> None:
        # The batch system's adapter may have decided since.
        noted = await asyncio.to_thread(self._notes.of, native_job.token)
        native_job = noted or native_job
        assert self._known is not None
        self._known[native_job.word] = native_job
        if row is None:
            await self._gone(native_job)
            return
        self._missing.pop(native_job.word, None)
        if native_job.fate is Fate.AWAY:
            if row.waiting:
                await self._system.cancel(native_job.number)
        elif native_job.fate is Fate.HOME:
            await self._home(native_job, row, at)
        elif not row.waiting or not row.held_here:
            await self._undecided(native_job, row)
        elif not native_job.held_at:
            await self._change(native_job, held_at=self._clock())
        else:
            await self._decide(native_job, row, at)

    async def _undecided(self, native_job: NativeJob, row: NativeJobRow) -> None:
        if row.waiting and not native_job.held_at:
            await self._system.hold(native_job.number)  # a crash here, or there, has come between
            return
        # It has started, was cancelled, or was released by somebody: it is its owner's again.
        why = "it was cancelled" if row.cancelled else "it was faster"
        await self._choose(native_job, Fate.HOME, why)
        await self._end_ours(native_job)

    async def _decide(self, native_job: NativeJob, row: NativeJobRow, at: float) -> None:
        if at - native_job.held_at < self._watched.settle_s:
            return  # a crash could still undo the hold, and the native job start
        job = await self._job(native_job)
        if job is None:
            await self._submit(native_job, row)
            return
        if job.state is JobState.ENDED and not job.partner:
            gone = job.outcome is Outcome.CANCELLED
            await self._choose(native_job, Fate.AWAY if gone else Fate.HOME, job.reason)
        elif job.state in _AWAY or job.state is JobState.ENDED:
            where = f"hanse: it is {job.job_id} now, at {job.partner}"
            await self._system.tell(native_job.number, where)
            await self._choose(native_job, Fate.AWAY, f"it is at {job.partner}")
            await self._follow(native_job, row, at)

    async def _home(self, native_job: NativeJob, row: NativeJobRow, at: float) -> None:
        if native_job.done:
            return
        await self._end_ours(native_job)  # a crash, or a full disk, may have come between
        if row.waiting and row.held_here:
            self._free.pop(native_job.word, None)
            await self._system.release(native_job.number)
            return
        # A release can be undone for some seconds; a hold after that is somebody else's.
        since = self._free.setdefault(native_job.word, at)
        if not row.waiting or at - since >= 2 * self._watched.settle_s:
            await self._change(native_job, done=True)
            self._free.pop(native_job.word, None)

    async def _gone(self, native_job: NativeJob) -> None:
        looks = self._missing[native_job.word] = self._missing.get(native_job.word, 0) + 1
        if looks < MISSING_LOOKS:
            return
        # Absence from the queue proves nothing.
        if not await self._system.gone(native_job.number, native_job.submitted):
            return
        if native_job.fate is None:
            # Cancelled and forgotten, or lost in a crash: the batch system's responsibility.
            await self._choose(native_job, Fate.HOME, "it is gone")
        if native_job.fate is not Fate.AWAY:
            await self._end_ours(native_job)
        job = await self._job(native_job)
        if job is None or job.state is JobState.ENDED:
            await asyncio.to_thread(self._notes.forget, native_job.token)
            assert self._known is not None
            self._known.pop(native_job.word, None)
            self._missing.pop(native_job.word, None)

    # --- what both have --------------------------------------------------------------------------

    async def _choose(self, native_job: NativeJob, fate: Fate, why: str) -> None:
        chosen = await asyncio.to_thread(self._notes.choose, native_job.token, fate)
        said = chosen.value if chosen is not None else "forgotten"
        self._log.info("native_job_decided", lrms_job=native_job.number, runs=said, reason=why)

    async def _change(self, native_job: NativeJob, **values: object) -> None:
        changed = await asyncio.to_thread(self._notes.change, native_job.token, **values)
        assert self._known is not None
        self._known[changed.word] = changed

    async def _end_ours(self, native_job: NativeJob) -> None:
        # Without a look at the job, which may have to wait for the journal: a job that has ended takes no harm.
        if native_job.job_id:
            event = Cancel(*self._engine.stamp(), native_job.job_id, None)
            await self._engine.ask(event, lambda _: None)

    async def _job(self, native_job: NativeJob) -> HomeJob | None:
        # As it is at a moment at which the journal says so.
        if not native_job.job_id:
            return None
        return await self._engine.look(lambda state: copy(state.job(native_job.job_id)))
