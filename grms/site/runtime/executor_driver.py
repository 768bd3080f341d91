"""Between the pure state and the batch system.

Commands come when the records that they rest on are in the journal, so that no job runs that would be unknown
after a restart. Until the batch system has confirmed a job, decisions count it in (`Memory.load`).

A batch system that answers at once (`ImmediateLrms`) is asked at once. Commands to any other go through a worker,
a few at a time and each with its time-out; their results, and other news, arrive later through the engine. Its
load is the last one reported; one that is too old counts as none.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple, Protocol

import structlog

from grms.daemon.clock import Clock
from grms.daemon.job_files import JobFile
from grms.daemon.pacing import Backoff, BackoffSettings
from grms.daemon.user_names import user_name
from grms.lrms.anomalies import Anomalies, WithAnomalies
from grms.lrms.base import (
    LoadSeen,
    Lrms,
    LrmsDiskError,
    LrmsEvent,
    LrmsJob,
    LrmsLoad,
    LrmsRecord,
    LrmsRefusedError,
    LrmsSnapshot,
    LrmsUnavailableError,
    NodeView,
    TakesMany,
    UserAwayError,
    WithPlaces,
    WithProblem,
)
from grms.lrms.batch.deputies import WithDeputies
from grms.lrms.preemption import WithPreemption
from grms.lrms.simulated.immediate import ImmediateLrms
from grms.site.model.commands import LrmsCancel, LrmsSubmit
from grms.site.model.events import LrmsNews, OwnerTold, ProgramCame, ProgramsAway
from grms.site.model.jobs import Load
from grms.site.runtime.executor_queue import (
    PAUSE_FIRST_S,
    PAUSE_MOST_S,
    Call,
    LrmsQueue,
    LrmsStep,
    cancelled,
)
from grms.site.wire.convert import is_to_fetch, lrms_job

Log = structlog.typing.FilteringBoundLogger


@dataclass(frozen=True, slots=True)
class DriverLimits:
    """Limits on driving a batch system.

    Attributes:
        load_age: an older load counts as unknown, seconds of the site's clock.
        command_timeout_s: a call without an answer by then has an unknown outcome.
        commands: concurrent calls; without cancellations, which an adapter batches.
        program_wait: time after acceptance within which the program of a partner's job may arrive, seconds of the
            site's clock.
    """

    load_age: float
    command_timeout_s: float
    commands: int
    program_wait: float = 600.0


class ProgramGoneError(Exception):
    """A job is not to be run here.

    `unwanted`: this site rejects it now that it knows the program; else its home site has withdrawn it.
    """

    def __init__(self, reason: str, *, unwanted: bool = False) -> None:
        self.unwanted = unwanted
        super().__init__(reason)


class ProgramAwayError(Exception):
    """A job's program has not arrived; it may arrive later. With `progress` a good part of its files has."""

    def __init__(self, reason: str, *, progress: bool = False) -> None:
        self.progress = progress
        super().__init__(reason)


class Hear(Protocol):
    """Takes unsolicited news."""

    def __call__(self, *news: LrmsNews) -> None:
        """Hands them over."""


ProgramSource = Callable[[str, str], Awaitable[bytes]]
"""Gets what a partner's job runs, by the partner's name and the job's key."""

InputPlace = Callable[[LrmsSubmit, int, JobFile], Path]
"""Says where a file lies that a job is given, by its number and what it is."""

GuestAccount = Callable[[str, str], str]
"""Says as which local account a partner's job runs, by the partner's name and the job's key; empty for the
site's own. It raises `LrmsRefusedError` where it is not to run."""


async def _no_program(_partner: str, _key: str) -> bytes:
    raise ProgramGoneError("this site fetches no programs")


def _own_account(_partner: str, _key: str) -> str:
    return ""


def _no_owner(_key: str) -> str:
    return ""


@dataclass(frozen=True, slots=True)
class Supplies:
    """What jobs need beyond the commands about them.

    Attributes:
        program: fetches the program of a partner's job.
        place: returns where a job's input files are; `None` if jobs get none.
        account: returns the account under which a partner's job runs.
        owner: returns whose a partner's job is, by its key; empty if its home site has not told.
    """

    program: ProgramSource = _no_program
    place: InputPlace | None = None
    account: GuestAccount = _own_account
    owner: Callable[[str], str] = _no_owner


NO_SUPPLIES: Final = Supplies()


class LrmsDriver:
    """Carries out commands to a batch system, and reports its news.

    `log` is told what failed.
    """

    def __init__(self, lrms: Lrms, clock: Clock, limits: DriverLimits, log: Log) -> None:
        self.lrms = lrms
        self._now = lrms if isinstance(lrms, ImmediateLrms) else None
        self._clock = clock
        self._limits = limits
        self._log = log
        together = lrms.submissions_at_once if isinstance(lrms, TakesMany) else 0
        self._queue = LrmsQueue(max(limits.commands, together), lrms.remembers)
        self._hear: Hear = lambda *_: None
        self._gathered: list[LrmsNews] | None = None
        self._seen: LrmsLoad | None = None
        self._seen_at = (
            0.0  # by this clock; the batch system's host may have another, or put it back
        )
        self._wanted = asyncio.Event()
        self._put_offs: dict[str, _PutOff] = {}
        self._without: set[str] = set()  # partners whose last program did not come
        lrms.listen(self._told)
        if isinstance(lrms, WithDeputies) and lrms.deputies is not None:
            lrms.deputies.on_came.append(self._deputy_came)

    def listen(self, hear: Hear) -> None:
        """Sets the receiver of unsolicited news; called once, before `run`."""
        self._hear = hear

    # --- what the engine asks ------------------------------------------------------------------

    def load(self) -> Load | None:
        """Returns what decisions rest on: three numbers, and whether a job would start now.

        `None` if that is unknown, or no job can be submitted. A batch system that answers later cannot be asked about
        a job before its submission; its plan, or else what its load makes certain, has to do.
        """
        seen = self._seen if self._now is None else self._now.load_now()
        age = self.load_age
        if seen is None or age is None or age > self._limits.load_age or self.problem:
            return None
        nodes = None if seen.nodes is None else _Nodes(seen.nodes, seen.taken_at + age)
        if self._now is not None:
            own = self._now.starts_now, self._now.waits_now
            return Load(
                seen.processors,
                seen.free,
                seen.waiting,
                *own,
                nodes=nodes,
                processors_idle=seen.idle,
            )
        asked = None
        if seen.plan is not None:
            asked = partial(seen.plan.starts_now, now=seen.taken_at + age)
        refuses = seen.partitions.why_not if seen.partitions.each else None
        return Load(
            seen.processors,
            seen.free,
            seen.waiting,
            asked,
            refuses=refuses,
            nodes=nodes,
            processors_idle=seen.idle,
        )

    @property
    def load_age(self) -> float | None:
        """Age of the load, seconds of the site's clock; `None` if there has been none."""
        if self._now is not None:
            return 0.0
        return None if self._seen is None else self._clock.now() - self._seen_at

    @property
    def problem(self) -> str:
        """Why no job can be submitted although the batch system answers; empty if one can."""
        return self.lrms.problem if isinstance(self.lrms, WithProblem) else ""

    @property
    def commands_open(self) -> int:
        """Number of unfinished commands."""
        return len(self._queue)

    @property
    def anomalies(self) -> Anomalies:
        """Number of the batch system's broken statements; 0 for a simulated one."""
        return self.lrms.anomalies if isinstance(self.lrms, WithAnomalies) else Anomalies()

    def due(self) -> list[LrmsNews]:
        """Returns what has happened by now, if the batch system can tell; else nothing."""
        if self._now is None:
            return []
        assert self._gathered is None
        news = self._gathered = []
        try:
            self._now.tell_now()
        finally:
            self._gathered = None
        return news

    def do(self, command: LrmsSubmit | LrmsCancel) -> list[LrmsNews]:
        """Takes a command, and returns its consequences so far."""
        if self._now is None:
            self._queue.add(command)
            if command.lrms_key in self._put_offs and self._queue.is_to_end(command.lrms_key):
                self._put_offs[command.lrms_key].over.set()
            self._wanted.set()
            return []
        # What is told during the call is its answer.
        assert self._gathered is None
        news = self._gathered = []
        try:
            news += self._do_now(self._now, command)
        except LrmsRefusedError as error:
            news += self._queue.refusal(command, error.reason)
        finally:
            self._gathered = None
        return news

    def protect(self, *, on: bool) -> list[LrmsNews]:
        """Has the batch system protect the protected guests, or no longer; returns the consequences so far."""
        lrms = self.lrms
        if not isinstance(lrms, WithPreemption):
            return []
        assert self._gathered is None
        news = self._gathered = []
        try:
            lrms.protect(on=on)
        finally:
            self._gathered = None
        return news

    def _do_now(self, lrms: ImmediateLrms, command: LrmsSubmit | LrmsCancel) -> list[LrmsNews]:
        # Nothing is ever under way, so that nothing has to wait for its turn. A place needs not be kept: a job that comes
        # back stands where it stood.
        if isinstance(command, LrmsCancel):
            done = lrms.cancel_now(command.lrms_key, only_waiting=command.only_waiting)
            return cancelled(command, done=done)
        if command.aside:
            return []
        if command.lookup:
            known, now = lrms.look_up_now(command.lrms_key), self._clock.now()
            news = self._queue.looked_up(command, known, command.since, now)
            if news is not None:
                return news
        lrms.submit_now(_job(command))
        return []

    # --- what the batch system tells -----------------------------------------------------------

    def _told(self, happened: Sequence[LrmsEvent]) -> None:
        news = self._queue.told(happened)
        if self._gathered is not None:
            self._gathered += news
            return
        for one in happened:
            if isinstance(one, LoadSeen):
                self._seen, self._seen_at = one.load, self._clock.now()
        if news:
            self._hear(*news)
        self._wanted.set()

    # --- the worker ----------------------------------------------------------------------------

    async def run(self, supplies: Supplies = NO_SUPPLIES) -> None:
        """Follows the batch system and carries out commands, until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self.lrms.run(), name="lrms")
            if self._now is None:
                await self._compare()
                await self._work(group, supplies)

    async def _compare(self) -> None:
        # What an older journal, or none, has left there: the state says what becomes of it.
        backoff = Backoff(BackoffSettings(PAUSE_FIRST_S, PAUSE_MOST_S))
        while True:
            try:
                async with asyncio.timeout(self._limits.command_timeout_s):
                    snapshot: LrmsSnapshot = await self.lrms.snapshot()
            except (LrmsUnavailableError, TimeoutError, OSError) as error:
                self._log.warning("lrms_unanswered", step="look", problem=_why(error))
                await asyncio.sleep(backoff.next_s())
                continue
            self._seen, self._seen_at = snapshot.load, self._clock.now()
            self._hear(*self._queue.seen_first(snapshot.jobs.items()))
            return

    async def _work(self, group: asyncio.TaskGroup, supplies: Supplies) -> None:
        while True:
            for call in self._queue.calls():
                work = self._carry_out(call, supplies)
                group.create_task(work, name=f"lrms {call.step.value} {call.key}")
            await self._wanted.wait()
            self._wanted.clear()

    async def _carry_out(self, call: Call, supplies: Supplies) -> None:
        news: list[LrmsNews] = []
        command = call.command
        wants = isinstance(command, LrmsSubmit) and is_to_fetch(command.payload)
        if wants and call.step is LrmsStep.SUBMIT:
            await self._fetch(call, supplies)
            return
        began = self._clock.now()
        try:
            async with asyncio.timeout(self._limits.command_timeout_s):
                answer = await self._answer(call, supplies)
        except LrmsRefusedError as error:
            if self._queue.asks_again(call, passing=error.passing):
                await self._put_off(call, error)
                return
            self._note("lrms_refused_command", call, error)
            news = self._queue.refused(call, error.reason)
        except (LrmsUnavailableError, TimeoutError, OSError) as error:
            if self._goes_home(call, error):
                self._note("lrms_not_handed_in", call, error)
                news = self._queue.refused(call, str(error), undelivered=True)
            else:
                await self._repeat(call, error, began)
        else:
            news = self._queue.answered(call, answer, self._clock.now())
        if news:
            self._hear(*news)
        self._wanted.set()

    async def _repeat(self, call: Call, error: Exception, began: float) -> None:
        # Whatever had no answer, after a pause.
        pause_s, news = self._queue.unanswered(call, began)
        if news:
            self._hear(*news)
        if isinstance(error, LrmsDiskError | UserAwayError):
            # It may be this job's folder, or this user, alone; others have their turn.
            self._queue.park(call)
            self._wanted.set()
        if not isinstance(error, LrmsDiskError):
            self._note("lrms_unanswered", call, error)
        await asyncio.sleep(pause_s)
        self._queue.again(call)

    def _goes_home(self, call: Call, error: Exception) -> bool:
        # A partner's job that nothing here can have begun to run: others may have room for it.
        command = call.command
        if not isinstance(command, LrmsSubmit) or not command.partner:
            return False
        if call.step is not LrmsStep.SUBMIT or not isinstance(error, LrmsDiskError):
            return False
        return error.unbegun or self._queue.is_first(call)

    def _deputy_came(self, uid: int) -> None:
        # What has waited for it is tried at once.
        name = user_name(uid)
        for each in self._put_offs.values():
            if each.user == name:
                each.over.set()

    async def _put_off(self, call: Call, error: LrmsRefusedError) -> None:
        pause_s, news = self._queue.put_off(call, error.reason)
        if news:  # not each of very many attempts
            self._note("lrms_refused_for_now", call, error)
            self._hear(*news)
        self._wanted.set()
        user = call.command.user if isinstance(call.command, LrmsSubmit) else ""
        ended = self._put_offs.setdefault(call.key, _PutOff(user, asyncio.Event())).over
        if call.step is not LrmsStep.SUBMIT or not self._queue.is_to_end(call.key):
            with suppress(TimeoutError):
                async with asyncio.timeout(pause_s):
                    await ended.wait()
        del self._put_offs[call.key]
        news = self._queue.resume(call)
        if news:
            self._hear(*news)
        self._wanted.set()

    async def _fetch(self, call: Call, supplies: Supplies) -> None:
        command = call.command
        assert isinstance(command, LrmsSubmit)
        # Others have their turn meanwhile: a home site that does not answer holds up its own job.
        self._queue.park(call)
        self._wanted.set()
        backoff = Backoff(BackoffSettings(PAUSE_FIRST_S, PAUSE_MOST_S))
        news: list[LrmsNews] = []
        since = command.since
        while True:
            try:
                payload = await supplies.program(command.partner, command.lrms_key)
            except ProgramGoneError as error:
                # Whoever does not want it: it has not run, and will not.
                self._note("program_unwanted" if error.unwanted else "program_gone", call, error)
                news = self._queue.refused(call, str(error), undelivered=True)
            except (ProgramAwayError, OSError) as error:
                self._note("program_did_not_come", call, error)
                self._without.add(command.partner)
                self._hear(ProgramsAway(command.partner, str(error)))
                if isinstance(error, ProgramAwayError) and error.progress:
                    since = self._clock.now()
                    backoff.reset()
                if self._clock.now() - since <= self._limits.program_wait:
                    await asyncio.sleep(backoff.next_s())
                    continue
                reason = f"what it runs has not come in time: {error}"
                news = self._queue.refused(call, reason, undelivered=True)
            else:
                self._queue.delivered(call, payload)
                self._queue.again(call)
                if command.partner in self._without:
                    self._without.discard(command.partner)
                    news.append(ProgramCame(command.partner))
                if owner := supplies.owner(command.lrms_key):
                    news.append(OwnerTold(command.lrms_key, owner))
            break
        if news:
            self._hear(*news)
        self._wanted.set()

    async def _answer(self, call: Call, supplies: Supplies) -> LrmsRecord | bool | None:
        command = call.command
        if call.step is LrmsStep.LOOK_UP:
            # A job that is elsewhere is not asked for, as what is held of it must not run: whether it has a place is
            # found where that is kept.
            aside = isinstance(command, LrmsSubmit) and command.aside
            return None if aside else await self.lrms.look_up(call.key)
        if isinstance(command, LrmsCancel):
            if command.keep_place and isinstance(self.lrms, WithPlaces):
                return await self.lrms.leave(call.key)
            return await self.lrms.cancel(call.key, only_waiting=command.only_waiting)
        place = supplies.place
        job = _job(command, None if place is None else partial(place, command))
        if command.aside:
            if isinstance(self.lrms, WithPlaces):
                await self.lrms.keep_place(replace(job, aside=True))
            return None
        if command.partner:
            job = replace(job, account=supplies.account(command.partner, command.lrms_key))
        await self.lrms.submit(job)
        return None

    def _note(self, event: str, call: Call, error: Exception) -> None:
        name = self.lrms.encode(call.key)
        self._log.warning(event, step=call.step.value, lrms_job=name, problem=_why(error))


class _PutOff(NamedTuple):
    # A submission of a user's that is tried again later; `over` ends the pause.
    user: str
    over: asyncio.Event


class _Nodes:
    # What a poll has shown of the nodes, at a moment on the batch system's clock.
    def __init__(self, view: NodeView, now: float) -> None:
        self.guarded_features = view.guarded_features
        self.named = view.named
        self.lacks = view.lacks
        self.why_not = view.why_not
        self.starts_now = partial(view.starts_now, now=now)


def _job(command: LrmsSubmit, contents: Callable[[int, JobFile], Path] | None = None) -> LrmsJob:
    return lrms_job(
        command.lrms_key,
        command.request,
        command.payload,
        user=command.user,
        partner=command.partner,
        preemptible=command.preemptible,
        protected=command.protected,
        at_once=command.at_once,
        place=command.place,
        contents=contents,
    )


def _why(error: Exception) -> str:
    return str(error) or "no answer in time"
