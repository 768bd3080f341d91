"""Watches the batch system for jobs at the site's disposal, and turns them into jobs of the site.

The sequence is: hold, poll again, submit to the site, which decides as usual; then release the original, or
cancel it. Each step relies on durable state, so that a killed watcher resumes anywhere: the note written before
a hold (`OriginalNotes`), the site's journal, and which of the two runs (`OriginalNotes.choose`). Every poll
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
from grms.lrms.base import LrmsError
from grms.lrms.native_jobs import VARIABLE, Fate, Original, OriginalRow, Watched
from grms.site.model.commands import Refusal, Refuse, ReplyJob
from grms.site.model.events import Cancel, Submit
from grms.site.model.jobs import HomeJob
from grms.site.model.lifecycle import JobState, Outcome
from grms.site.runtime.event_loop import Engine
from grms.site.wire.convert import WireError, read_request
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


class OriginalWatcher:
    """Moves jobs between a batch system's users and the site; `clock` is in seconds since 1970."""

    def __init__(
        self, engine: Engine, watched: Watched, log: Log, clock: Callable[[], float] = time.time
    ) -> None:
        self._engine = engine
        self._system, self._notes = watched.system, watched.notes
        self._watched = watched
        self._log = log
        self._clock = clock
        self._known: dict[str, Original] | None = None
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
            self._known = {original.word: original for original in notes}
        began_at = self._clock()
        rows = {row.word: row for row in await self._system.rows()}
        self._left &= rows.keys()
        numbers = {row.number for row in rows.values()}
        self._said = {number: said for number, said in self._said.items() if number in numbers}
        for original in list(self._known.values()):
            await self._trying(
                original.number, self._follow(original, rows.get(original.word), began_at)
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
                self._log.warning("original_not_moved", lrms_job=number, problem=str(error))
            self._said[number] = str(error)
        else:
            self._said.pop(number, None)

    # --- a job that nobody knows yet -------------------------------------------------------------

    async def _take(self, row: OriginalRow) -> None:
        assert self._known is not None
        wanted = await self._system.wanted(row)
        if wanted.reason:
            self._left.add(row.word)
            self._log.info("original_stays", lrms_job=row.number, reason=wanted.reason)
            await self._system.tell(row.number, f"hanse: it stays here: {wanted.reason}")
            if row.held:
                await self._system.release(row.number)
            return
        original = await asyncio.to_thread(self._notes.begin, row.number, row.submitted, row.user)
        self._known[original.word] = original
        await self._system.hold(row.number)
        # The next poll sees whether it is held, or was faster; from then on it is known.

    async def _submit(self, original: Original, row: OriginalRow) -> None:
        wanted = await self._system.wanted(row)
        message = request_pb2.JobRequest(
            processors=wanted.processors, requested_time_s=wanted.requested_time_s
        )
        needs = wanted.request
        if needs is not None and needs != Request.of_processors(wanted.processors, needs.wall_time):
            message.needs.CopyFrom(write_needs(needs))
        message.program.script = wanted.script
        message.program.name = wanted.name[:NAME_MAX]
        message.program.environment[VARIABLE] = original.token
        if wanted.reason:
            await self._choose(original, Fate.HOME, wanted.reason)  # it was changed meanwhile
            return
        try:
            request, payload = read_request(message, "request")
        except WireError as error:
            await self._choose(original, Fate.HOME, f"the site cannot take it: {error}")
            return
        key = f"original {original.word} {original.token}"
        name = wanted.name[:NAME_MAX] if wanted.name.isprintable() else ""
        event = Submit(*self._engine.stamp(), original.user, key, name, request, payload)
        reply = await self._engine.ask(event, lambda reply: reply)
        if isinstance(reply, Refuse) and reply.refusal is not Refusal.UNAVAILABLE:
            await self._choose(original, Fate.HOME, reply.reason)
        if not isinstance(reply, ReplyJob):
            return  # the next look asks again with the same key
        await self._change(original, job_id=reply.job_id)
        self._log.info("original_taken", lrms_job=original.number, job=reply.job_id)

    # --- a job that is known ---------------------------------------------------------------------

    async def _follow(self, original: Original, row: OriginalRow | None, at: float) -> None:
        # The batch system's adapter may have decided since.
        noted = await asyncio.to_thread(self._notes.of, original.token)
        original = noted or original
        assert self._known is not None
        self._known[original.word] = original
        if row is None:
            await self._gone(original)
            return
        self._missing.pop(original.word, None)
        if original.fate is Fate.AWAY:
            if row.waiting:
                await self._system.cancel(original.number)
        elif original.fate is Fate.HOME:
            await self._home(original, row, at)
        elif not row.waiting or not row.held_here:
            await self._undecided(original, row)
        elif not original.held_at:
            await self._change(original, held_at=self._clock())
        else:
            await self._decide(original, row, at)

    async def _undecided(self, original: Original, row: OriginalRow) -> None:
        if row.waiting and not original.held_at:
            await self._system.hold(original.number)  # a crash here, or there, has come between
            return
        # It has started, was cancelled, or was released by somebody: it is its owner's again.
        why = "it was cancelled" if row.cancelled else "it was faster"
        await self._choose(original, Fate.HOME, why)
        await self._end_ours(original)

    async def _decide(self, original: Original, row: OriginalRow, at: float) -> None:
        if at - original.held_at < self._watched.settle_s:
            return  # a crash could still undo the hold, and the original start
        job = await self._job(original)
        if job is None:
            await self._submit(original, row)
            return
        if job.state is JobState.ENDED and not job.partner:
            gone = job.outcome is Outcome.CANCELLED
            await self._choose(original, Fate.AWAY if gone else Fate.HOME, job.reason)
        elif job.state in _AWAY or job.state is JobState.ENDED:
            where = f"hanse: it is {job.job_id} now, at {job.partner}"
            await self._system.tell(original.number, where)
            await self._choose(original, Fate.AWAY, f"it is at {job.partner}")
            await self._follow(original, row, at)

    async def _home(self, original: Original, row: OriginalRow, at: float) -> None:
        if original.done:
            return
        await self._end_ours(original)  # a crash, or a full disk, may have come between
        if row.waiting and row.held_here:
            self._free.pop(original.word, None)
            await self._system.release(original.number)
            return
        # A release can be undone for some seconds; a hold after that is somebody else's.
        since = self._free.setdefault(original.word, at)
        if not row.waiting or at - since >= 2 * self._watched.settle_s:
            await self._change(original, done=True)
            self._free.pop(original.word, None)

    async def _gone(self, original: Original) -> None:
        looks = self._missing[original.word] = self._missing.get(original.word, 0) + 1
        if looks < MISSING_LOOKS:
            return
        # Absence from the queue proves nothing.
        if not await self._system.gone(original.number, original.submitted):
            return
        if original.fate is None:
            # Cancelled and forgotten, or lost in a crash: the batch system's responsibility.
            await self._choose(original, Fate.HOME, "it is gone")
        if original.fate is not Fate.AWAY:
            await self._end_ours(original)
        job = await self._job(original)
        if job is None or job.state is JobState.ENDED:
            await asyncio.to_thread(self._notes.forget, original.token)
            assert self._known is not None
            self._known.pop(original.word, None)
            self._missing.pop(original.word, None)

    # --- what both have --------------------------------------------------------------------------

    async def _choose(self, original: Original, fate: Fate, why: str) -> None:
        chosen = await asyncio.to_thread(self._notes.choose, original.token, fate)
        said = chosen.value if chosen is not None else "forgotten"
        self._log.info("original_decided", lrms_job=original.number, runs=said, reason=why)

    async def _change(self, original: Original, **values: object) -> None:
        changed = await asyncio.to_thread(self._notes.change, original.token, **values)
        assert self._known is not None
        self._known[changed.word] = changed

    async def _end_ours(self, original: Original) -> None:
        # Without a look at the job, which may have to wait for the journal: a job that has ended takes no harm.
        if original.job_id:
            event = Cancel(*self._engine.stamp(), original.job_id, None)
            await self._engine.ask(event, lambda _: None)

    async def _job(self, original: Original) -> HomeJob | None:
        # As it is at a moment at which the journal says so.
        if not original.job_id:
            return None
        return await self._engine.look(lambda state: copy(state.job(original.job_id)))
