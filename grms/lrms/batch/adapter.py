"""The port for batch systems that are polled.

Calls rely on a poll of the batch system (`poller`) and on what all polls so far have shown (`tracker`). What has
to be repeated later is an order of `job_tracker`, carried out by `reconciler`.
"""

import asyncio
import math
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path

from grms.lrms.anomalies import Anomalies
from grms.lrms.base import (
    Ended,
    LrmsDiskError,
    LrmsEnd,
    LrmsJob,
    LrmsPhase,
    LrmsRecord,
    LrmsRefusedError,
    LrmsSnapshot,
    NoDeputyError,
    Program,
    QueuePlace,
    Tell,
    Unseen,
)
from grms.lrms.batch.deputies import Deputies
from grms.lrms.batch.guest_preemption import GuestPreemption
from grms.lrms.batch.job_tracker import GRACE_S, HELD, MISSING_LOOKS, Act, JobTracker, Order
from grms.lrms.batch.kept_places import KeptPlaces
from grms.lrms.batch.launcher import Spool, check_home, check_key, check_program, place_key, usable
from grms.lrms.batch.poller import Poller
from grms.lrms.batch.queue_snapshot import Ending, Evidence, JobRow, Question, QueueSnapshot
from grms.lrms.batch.reconciler import Reconciler
from grms.lrms.batch.submissions import Submissions
from grms.lrms.batch.system import BatchSystem, PlaceKeepingSystem, PreemptingSystem
from grms.lrms.batch.tracked_job import TrackedJob, Want
from grms.lrms.exit_status import (
    as_evicted,
    is_fenced,
    is_unstarted,
    true_end,
    with_kept,
    with_unbegun,
)
from grms.lrms.home_run import HomeRun
from grms.lrms.job_notes import KeptPlace, Marks
from grms.lrms.native_jobs import VARIABLE, Fate, Watched
from grms.lrms.preemption import CANNOT, Preemption
from grms.util.outcomes import Outcome
from lrms_sim.workload.requests import Request

_WAITS = frozenset((LrmsPhase.WAITING, LrmsPhase.HELD))
_STARTED = frozenset((LrmsPhase.RUNNING, LrmsPhase.SUSPENDED, LrmsPhase.COMPLETING))


class BatchLrms:
    """A batch system behind the port.

    Attributes:
        deputies: run what runs as other accounts; `None` if sudo does.

    `poll_s` is the poll interval; submissions older than `settle_s` survive a crash of the batch system, and only
    then are jobs released; records of a job's end are complete after `records_s`; an unknown job is waited for
    until `grace_s` after its limit (all in seconds). `own_user` is this process's user if local jobs run as their users,
    and empty if they run as this process. `site` is this site's name: jobs with another one in their keys are guests. With `repeats`, a job that has begun may run again: if a node
    fails, it is preempted, or the batch system has forgotten its run. With `preempting` guests may be ended for other jobs;
    `unpreempted` says why not without it. With `placing` the places of own jobs that are elsewhere can be kept; with
    `kept` they are, and else those are given up that were kept before.
    """

    def __init__(
        self,
        system: BatchSystem,
        spool: Spool,
        *,
        poll_s: float,
        settle_s: float,
        records_s: float = 0.0,
        grace_s: float = GRACE_S,
        repeats: bool = False,
        own_user: str = "",
        site: str = "",
        watched: Watched | None = None,
        deputies: Deputies | None = None,
        preempting: PreemptingSystem | None = None,
        unpreempted: Preemption = CANNOT,
        placing: PlaceKeepingSystem | None = None,
        kept: bool = True,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._system = system
        self._spool = spool
        self._clock = clock
        self._tracker = JobTracker(
            system.encode,
            system.decode,
            settle_s=settle_s,
            records_s=records_s,
            grace_s=grace_s,
            forgets=system.forgets,
            fences=not repeats,
            evicts=preempting is not None,
            site=site,
            is_marker=None if placing is None else partial(_is_marker, placing),
        )
        self._repeats = repeats
        self._own_user = own_user
        self._poller = Poller(system, spool, self._tracker, poll_s=poll_s)
        self._disk = self._poller.disk
        self._orders = Reconciler(
            system, spool, self._poller, repeats=repeats, clock=clock, deputies=deputies
        )
        # Deputies are many, each of which takes a few calls at one time.
        self._submissions = Submissions(system, together=deputies is None)
        self._unpreempted = unpreempted
        self._guests: GuestPreemption | None = None
        if preempting is not None:
            self._guests = GuestPreemption(
                preempting, spool, self._poller, self._orders, decode=system.decode, clock=clock
            )
        self._places: KeptPlaces | None = None
        if placing is not None:
            self._places = KeptPlaces(
                placing, spool, self._poller, settle_s=settle_s, decode=system.decode, clock=clock
            )
        self._placing = placing
        self._keeps = kept
        self._settle_s = settle_s
        self.watched = watched
        self.deputies = deputies
        if deputies is not None:
            deputies.on_came.append(lambda _uid: self._poller.want())

    @property
    def anomalies(self) -> Anomalies:
        """Counts of what the batch system has not kept."""
        return self._tracker.anomalies

    @property
    def problem(self) -> str:
        """Why no job can be submitted: nothing can be written; empty otherwise."""
        problem = self._disk.problem
        return f"nothing can be written to the jobs' folders: {problem}" if problem else ""

    @property
    def preemption(self) -> Preemption:
        """What happens to preemptible guests, by the last poll."""
        return self._unpreempted if self._guests is None else self._guests.preemption

    def protect(self, *, on: bool) -> None:
        """Protects the protected guests, or no longer; without preemption there are none."""
        if self._guests is not None:
            self._guests.protect(on=on)

    @property
    def folders(self) -> Spool:
        """Where jobs run."""
        return self._spool

    # --- the port --------------------------------------------------------------------------------

    @property
    def remembers(self) -> float:
        """Infinity: a released job has its mark, and is never reported as missing."""
        return math.inf

    def listen(self, tell: Tell) -> None:
        """Sets the receiver of events."""
        self._poller.tell = tell

    async def open(self) -> None:
        """Prepares the folders and the batch system."""
        await self._disk.tried(self._spool.open)
        await self._system.open()

    async def run(self) -> None:
        """Polls the batch system until cancelled."""
        async with asyncio.TaskGroup() as group:
            self._orders.group = group
            await self._poller.follow(self._after_poll)

    async def _after_poll(self, orders: Iterable[Order]) -> None:
        if self._guests is not None:
            await self._guests.look((await self._poller.last()).table)
        if self._places is not None:
            orders = await self._places.look((await self._poller.last()).table, list(orders))
        await self._orders.carry_out(orders)

    async def close(self) -> None:
        """Does nothing."""

    def encode(self, key: str) -> str:
        """Returns the name of a job at the batch system."""
        return self._system.encode(check_key(key))

    @property
    def submissions_at_once(self) -> int:
        """How many can go in one call; 0 if each has one."""
        return self._submissions.at_once

    async def submit(self, job: LrmsJob, *, held: bool = False) -> None:
        """Submits a job held, and releases it when it is safe."""
        with ExitStack() as prepares:
            prepares.enter_context(self._submissions.coming())
            await self._submit(job, held=held, prepared=prepares.close)

    async def _submit(self, job: LrmsJob, *, held: bool, prepared: Callable[[], None]) -> None:
        key, want = check_key(job.key), Want.HELD if held else Want.RUN
        program = check_program(job.program)
        if await self._stays(job):
            return
        known = self._tracker.job(key)
        if known is not None and not known.number and known.end is None:
            await self._poller.new()  # it was submitted, and the answer has not come
        marks = await self._disk.do(self._spool.marks, key)
        if await self._came(key, want) or await self._had_before(key, marks):
            self._tracker.looked_up(key)
            return
        try:
            table = (await self._poller.last()).table
            job = (
                replace(job, preemptible=False)
                if self._guests is None
                else self._guests.placed(job)
            )
            _check_taken(job, table)
            job = await self._placed(job)
            self._check_deputy(job.account)  # before anything is written
            if not held and await self._came_back(job, program):
                return
            folder = await self._prepared(job, program, run=not held)
            if await self._came(key, want):
                return
            self._tracker.intended(key, want)
            prepared()
            number = await self._submissions.submit(self._system.encode(key), job, folder)
        except (LrmsRefusedError, LrmsDiskError) as error:
            # This attempt, or an earlier one, may have reached the batch system all the same. What a poll has shown
            # meanwhile is there, and may have been released: it is not refused. If a local job is resubmitted, it is
            # found; if it is over here, or goes elsewhere, it stays held.
            if await self._came(key, want):
                return
            await self._not_taken(job, error, new=marks is None)
            raise
        self._tracker.acknowledged(key, number, self._clock())
        self._poller.want()
        self._poller.want_in(self._settle_s)

    async def _not_taken(
        self, job: LrmsJob, error: LrmsRefusedError | LrmsDiskError, *, new: bool
    ) -> None:
        if job.partner or (isinstance(error, LrmsRefusedError) and not error.passing):
            self._tracker.refused(job.key)
            if new:
                # Else an earlier attempt may still come, and be looked up; to run it needs its folder.
                await self._disk.do(self._spool.drop, job.key)
        if isinstance(error, LrmsRefusedError) and error.full and not job.partner:
            raise await self._full(error, job.account) from error

    async def _full(self, error: LrmsRefusedError, account: str) -> LrmsRefusedError:
        # Whoever reads of a limit is told which of the jobs are none that wait here.
        count = 0 if self._places is None else await self._places.counted(account)
        if not count:
            return error
        text = f"{error.reason}; {count} of the jobs that count keep the places of jobs that are elsewhere"
        return LrmsRefusedError(text, passing=error.passing, full=True)

    def _check_deputy(self, account: str) -> None:
        why = "" if self.deputies is None or not account else self.deputies.waits_for(account)
        if why:
            raise NoDeputyError(why)

    async def _placed(self, job: LrmsJob) -> LrmsJob:
        # As whom it runs, and where: a partner's folder is not of this site, and another account's not for the daemon
        # to choose.
        if job.partner:
            return replace(job, home=None)
        account = job.account or await self._account(job)
        home: HomeRun | None = None
        if job.home is not None and account in {"", job.user}:
            home = check_home(job.home)
            home = home if account else await asyncio.to_thread(usable, home)
        return replace(job, account=account, home=home)

    async def _account(self, job: LrmsJob) -> str:
        # As which a local user's job runs; empty for the daemon's. It stays the same if the job was submitted before,
        # whatever the site's file says since: a copy is known by whose it is.
        if await self._disk.do(self._spool.marks, job.key) is not None:
            return await self._disk.do(self._spool.account, job.key)
        return job.user if self._own_user and job.user != self._own_user else ""

    @property
    def queue_place(self) -> QueuePlace:
        """What place a job has in the queue that comes back, by the last poll."""
        if self._placing is None or not (self._keeps and self._placing.keeps_places):
            return QueuePlace.BEHIND
        return QueuePlace.KEPT

    def place_words(self, key: str) -> str:
        """Returns what is known of a job's place."""
        return self._places.words(key) if self._places is not None and self._keeps else ""

    async def keep_place(self, job: LrmsJob) -> None:
        """Keeps a place for a job that is elsewhere."""
        program = check_program(job.program)
        check_key(job.key)
        places, placing = self._places, self._placing
        if places is None or placing is None or not self._keeps or job.partner:
            return
        async with places.lock:
            await self._kept_place(places, placing, job, program)

    async def _kept_place(
        self, places: KeptPlaces, placing: PlaceKeepingSystem, job: LrmsJob, program: Program
    ) -> None:
        key, table = job.key, (await self._poller.new()).table
        if await places.of(key) is not None or places.marker(key, table) is not None:
            return
        if self._tracker.job(key) is not None:
            return  # it is, or was, here
        # What it is given comes with it, when it comes back.
        job = await self._placed(replace(job, program=replace(program, inputs=()), aside=True))
        _check_taken(job, table)
        self._check_deputy(job.account)
        folder = await self._prepared(job, replace(program, inputs=()), run=False)
        await places.note(key, KeptPlace("", key))
        try:
            number = await self._system.submit(placing.place_name(key), job, folder)
        except LrmsRefusedError as error:
            await places.forget(key)
            await self._disk.do(self._spool.drop, key)
            text = "it has no place here, and stands behind all that wait when it comes back"
            places.tell(key, f"{text}: the marker that was to keep one was refused: {error.reason}")
            raise
        await places.note(key, KeptPlace(number, key))
        self._poller.want()

    async def _gave_up_place(self, key: str, *, only_waiting: bool) -> bool:
        # Whether there was nothing else of the job here. One that is not to end for good stays if it has come back.
        assert self._places is not None
        async with self._places.lock:
            ended = await self._places.end(key, only_away=only_waiting)
        job = self._tracker.job(key)
        return ended and (job is None or job.end is not None)

    async def _came_back(self, job: LrmsJob, program: Program) -> bool:
        # Whether a job has its place again that was kept for it.
        places = self._places
        if places is None:
            return False
        async with places.lock:
            place = await places.comes_back(job.key)
            return place is not None and await self._brought_back(places, place, job, program)

    async def _brought_back(
        self, places: KeptPlaces, place: KeptPlace, job: LrmsJob, program: Program
    ) -> bool:
        await self._prepared(replace(job, aside=True), program, run=True)
        name = self._system.encode(job.key)
        row = await places.bring_back(job.key, name, place)
        if row is None:
            return False
        self._tracker.intended(job.key, Want.RUN)
        self._tracker.acknowledged(job.key, row.number, self._clock())
        self._tracker.releasing(job.key)
        await self._disk.do(self._spool.released, job.key, row.number)
        self._tracker.released(job.key, self._clock())
        await places.start(job.key, row, place)
        return True

    async def leave(self, key: str) -> bool:
        """Ends a job that waits, and keeps its place."""
        if self._places is None:
            return await self.cancel(key, only_waiting=True)
        async with self._orders.none_of(check_key(key)):
            row = await self._living(key, only_waiting=True)
            self._check_deferred(key, row)
            if row is not None and (row.phase is LrmsPhase.HELD or await self._has_begun(key)):
                row = None
            async with self._places.lock:
                if await self._places.leave(key, row):
                    self._poller.want()
                    return True
        return await self.cancel(key, only_waiting=True)

    async def _prepared(self, job: LrmsJob, program: Program, *, run: bool) -> Path:
        try:
            return await self._disk.do(
                self._spool.prepare,
                job.key,
                program,
                run=run,
                limit_s=job.requested_time,
                account=job.account,
                user=job.user,
                name=job.name,
                home=job.home,
                repeats=self._repeats and not job.once and not job.preemptible,
                signal="" if job.request is None else job.request.signal,
                modules=() if job.request is None else job.request.modules,
                preemptible=job.preemptible,
                aside=job.aside,
            )
        except LrmsDiskError as error:
            raise LrmsDiskError(error.reason, unbegun=True) from error

    async def release(self, key: str) -> None:
        """Releases a job when it is safe."""
        while True:
            seen = await self._poller.new()
            job = self._tracker.job(check_key(key))
            if job is None or not job.number:
                raise LrmsRefusedError(f"the batch system has no job {key}")
            if job.want is Want.GONE or job.end is not None:
                return
            await self._want_more(job, Want.RUN)
            if (job.row is not None and job.row.phase is not LrmsPhase.HELD) or job.hold_stays:
                return
            if job.row is not None and self._tracker.settled(job, seen.table.taken_at):
                act = Act.RELEASE if job.released_at is None else Act.ASK
                await self._orders.obey(Order(act, key, job.row))
                return
            left = self._settle_s - (self._clock() - job.acknowledged_at)
            await asyncio.sleep(max(min(left, self._settle_s), self._poller.soon_s))

    async def cancel(self, key: str, *, only_waiting: bool = False) -> bool:
        """Ends a job, or gives up the place that is kept for it."""
        if self._places is not None and await self._gave_up_place(
            check_key(key), only_waiting=only_waiting
        ):
            return False
        if only_waiting:
            return await self._let_go(check_key(key))
        return await self._orders.cancel(check_key(key))

    async def _let_go(self, key: str) -> bool:
        # A held job cannot start: one that a poll shows as held after this stays so, unless a release is under way,
        # or begins meanwhile.
        async with self._orders.none_of(key):
            row = await self._living(key, only_waiting=True)
            if row is None or await self._stays_begun(key, row):
                return False
            self._check_deferred(key, row)
            await self._lets_go(key, True)
            try:
                await self._system.hold(row)
            except LrmsRefusedError:
                # The queue may briefly show a job that has just ended. Where no partition takes the job any more, Slurm says
                # that it refuses, and holds it.
                row = await self._living(key, only_waiting=True)
                if row is None:
                    return False
                if row.phase is not LrmsPhase.HELD:
                    await self._lets_go(key, False)
                    raise
            row = await self._living(key, only_waiting=True)
            if row is None or await self._has_begun(key):
                job = self._tracker.job(key)
                left = row if job is None else job.row
                unseen = job is not None and job.missing > 0
                if left is not None and (row is not None or unseen or left.phase in _STARTED):
                    await self._system.release(left)
                    await self._lets_go(key, False)
                return False
            try:
                if await self._system.cancel(row) is False:
                    return False  # somebody else has ended it since
            except LrmsRefusedError:
                await self._system.release(row)
                await self._lets_go(key, False)
                raise
            if await self._was_faster(key):
                return False
        self._gone(key)
        self._poller.want()
        return True

    def _check_deferred(self, key: str, row: JobRow | None) -> None:
        # It would run elsewhere before its time, against the will of whoever has told the batch system that it is to wait.
        job = self._tracker.job(key)
        if row is not None and job is not None and job.is_deferred(row):
            raise LrmsRefusedError(row.hindered or HELD)

    async def _lets_go(self, key: str, is_to: bool) -> None:
        # First: should this process die, the next one knows whose hold it is.
        await self._disk.do(self._spool.holds, key, is_to)
        job = self._tracker.job(key)
        if job is not None:
            job.let_go = is_to

    async def _stays_begun(self, key: str, row: JobRow) -> bool:
        # Whether a job has begun, and is not let go. If it is held as it came, and nobody asks for it any more, what is
        # held is a copy that came late, or the job in the memory of a batch system that has forgotten its run: nobody
        # else would ever release or end it. What somebody else holds is his.
        if not await self._has_begun(key):
            return False
        job = self._tracker.job(key)
        if job is not None and job.is_unwanted:
            released = job.released_at is not None
            try:
                ours = await self._system.held_since_submission(row, released=released)
            except LrmsRefusedError:
                ours = False  # nobody says
            if ours:
                job.want = Want.OVER  # polls repeat it, should the batch system forget that
                await self._system.cancel(row)  # of what is held it ends nothing that has started
        return True

    async def _was_faster(self, key: str) -> bool:
        # Whether somebody has lifted the hold, and it had begun when it was to be ended, which ends none that has. Its
        # own user can, and where it runs as the daemon's account so can every other job of that account. Without a
        # look nobody knows: the batch system has agreed to end what waits, and may have found nothing that does.
        row = await self._living(key, only_waiting=False)
        return (row is not None and row.phase in _STARTED) or await self._has_begun(key)

    async def look_up(self, key: str) -> LrmsRecord | None:
        """Returns what is known of a job."""
        record = await self._looked_up(check_key(key))
        if record is None:
            return None
        self._tracker.looked_up(key)
        if record.phase is LrmsPhase.ENDED:
            await self._poller.count_runs([key])  # it may have ended before this process began
        job = self._tracker.job(key)
        if record.phase is LrmsPhase.WAITING and job is not None and not job.let_go:
            # An earlier process did not come to hold it, or somebody has released it: a later hold is not the site's.
            await self._disk.do(self._spool.holds, key, False)
        unstarted = record.end is not None and is_unstarted(record.end)
        if record.phase in _WAITS or (unstarted and record.start_time is None):
            record = replace(record, restarted=await self._has_begun(key))
        return record

    async def _looked_up(self, key: str) -> LrmsRecord | None:
        if (staying := self._poller.staying.get(check_key(key))) is not None:
            return LrmsRecord(LrmsPhase.ENDED, None, staying)
        place = None if self._places is None else await self._places.of(key)
        if place is not None and place.key == key:
            if not place.left:
                return None  # nothing but its place is here
            if await self.leave(key):
                end = LrmsEnd(Outcome.CANCELLED, self._clock(), 0.0, reason="it has left")
                return LrmsRecord(LrmsPhase.ENDED, None, end)
        return await self._followed(key)

    async def _followed(self, key: str) -> LrmsRecord | None:
        for _ in range(MISSING_LOOKS):
            seen = await self._poller.new()
            job = self._tracker.job(key)
            row = self._tracker.row(key, seen.table.rows)
            over = job is not None and job.end is not None
            if row is not None and not (over and row.live):  # what lives then is a copy
                return await self._record(key, row)
            if job is None or not job.number or job.end is not None:
                break
        if job is not None and job.end is not None:
            return LrmsRecord(LrmsPhase.ENDED, job.start_time, job.end)
        if job is not None and job.number:
            return LrmsRecord(LrmsPhase.UNKNOWN, job.start_time, reason="no table shows it")
        return await self._recorded(key)

    async def snapshot(self) -> LrmsSnapshot:
        """Returns a new poll."""
        table = (await self._poller.new()).table
        load = self._tracker.load(table)
        records = dict(self._tracker.records(table.rows))
        if self._places is not None:
            # Also where the queue shows for a while how the job has ended that has left it.
            for key in await self._places.away():
                if key not in records or records[key].phase is LrmsPhase.ENDED:
                    records[key] = LrmsRecord(LrmsPhase.HELD)
        return LrmsSnapshot(load.taken_at, load.processors, load.free, load.waiting, records)

    # --- what calls have in common -------------------------------------------------------------

    async def _stays(self, job: LrmsJob) -> bool:
        # For a job made from a user's own here: whether that one runs instead.
        token = job.program.environment.get(VARIABLE, "") if job.program is not None else ""
        if self.watched is None or job.partner or not token:
            return False
        notes = self.watched.notes
        original = await self._disk.do(notes.of, token)
        if original is None or original.user != job.user:
            return False
        if await self._disk.do(notes.choose, token, Fate.HOME) is not Fate.HOME:
            return False
        reason = f"it stays as it was handed in: job {original.number} of the batch system"
        self._poller.staying[job.key] = LrmsEnd(
            Outcome.CANCELLED, self._clock(), 0.0, reason=reason
        )
        self._poller.want()
        return True

    async def _had_before(self, key: str, marks: Marks | None) -> bool:
        # Whether an earlier process has submitted a job that must not be repeated; `marks` are its notes.
        if marks is None:
            return False
        table = (await self._poller.new()).table
        job = self._tracker.job(key)
        if job is not None and (job.number or job.end is not None):
            return True
        row = self._tracker.row(key, table.rows)
        if row is None and not (marks.released or await self._has_begun(key)):
            # It was held to the last, or has never reached the batch system: should it be there after all, it is
            # held, and a second copy.
            return False
        self._tracker.gone(key, marks.number if row is None else row.number, table.began_at)
        self._poller.want()
        return True

    async def _came(self, key: str, want: Want) -> bool:
        # Whether an earlier attempt without an answer has come while this one was under way.
        known = self._tracker.job(key)
        if known is None or not (known.number or known.end is not None):
            return False
        await self._want_more(known, want)
        return True

    async def _want_more(self, job: TrackedJob, want: Want) -> None:
        if job.end is None and want is Want.RUN and job.want in {Want.NOTHING, Want.HELD}:
            await self._disk.do(self._spool.wanted, job.key)
            job.want, job.hold_stays = want, False
            self._poller.want()

    def _gone(self, key: str) -> None:
        job = self._tracker.job(key)
        if job is not None:
            job.want = Want.GONE

    async def _living(self, key: str, *, only_waiting: bool) -> JobRow | None:
        await self._poller.new()
        job = self._tracker.job(key)
        if job is None or job.end is not None or job.row is None or not job.row.live:
            return None
        row = job.row
        # A job not shown now may have started since.
        if row.phase is LrmsPhase.COMPLETING or (
            only_waiting and (job.missing or row.phase in _STARTED)
        ):
            return None
        return row

    async def _has_begun(self, key: str) -> bool:
        # A job that waits again has run, even if no poll has shown it started.
        return bool(await self._disk.do(self._spool.runs, key))

    async def _record(self, key: str, row: JobRow) -> LrmsRecord:
        known = self._tracker.records([row])[key]
        job = self._tracker.job(key)
        if self._tracker.says_all(row) or (job is not None and job.end is not None):
            return known
        if job is not None:
            # Its end is being looked up.
            return known if known.end is None else replace(known, phase=LrmsPhase.UNKNOWN, end=None)
        question = Question(key, row.name, row.number, row.submit_time, row)
        ending = None if row.exact else await self._system.ending(question)
        evidence = await self._disk.do(self._spool.evidence, key)
        end = known.end if ending is None else ending.end
        once = not self._repeats
        if end is not None and (
            is_fenced(
                end, evidence.script, begun=evidence.begun, begun_at=evidence.begun_at, once=once
            )
            or self._tracker.is_unbegun_copy(key, Ending(known.start_time, end), evidence)
        ):
            self._tracker.gone(key, row.number, self._clock())
            return self._concluded(question, replace(evidence, ending=ending)) or known
        if end is not None:
            limit_s, begun = evidence.limit_s, evidence.begun
            end = as_evicted(end) if evidence.evicted else end
            end = true_end(end, evidence.script, limit_s, begun=begun, once=once)
            end = with_unbegun(end, known.start_time, begun=begun)
            end = with_kept(end, known.start_time, evidence.written_at)
        return replace(known, end=end)

    async def _recorded(self, key: str) -> LrmsRecord | None:
        marks = await self._disk.do(self._spool.marks, key)
        if marks is None or not (marks.released or await self._has_begun(key)):
            return None  # it was held to the last, if it was there at all
        question = Question(key, self._system.encode(key), marks.number, None, None)
        ending = await self._system.ending(question)
        evidence = await self._poller.evidence(question, ending)
        self._tracker.gone(key, marks.number, self._clock())
        return self._concluded(question, evidence)

    def _concluded(self, question: Question, evidence: Evidence) -> LrmsRecord | None:
        # For a job of an earlier process that is missing or misreported: the caller learns the conclusion.
        record: LrmsRecord | None = None
        for event in self._tracker.conclude(question, evidence, self._clock()):
            if isinstance(event, Ended):
                job = self._tracker.job(question.key)
                start_time = None if job is None else job.start_time
                record = LrmsRecord(LrmsPhase.ENDED, start_time, event.end)
            elif isinstance(event, Unseen):
                self._poller.told([event])
                record = LrmsRecord(LrmsPhase.UNKNOWN, evidence.begun_at, reason=event.reason)
        self._poller.write_anomalies()
        return record


def _is_marker(placing: PlaceKeepingSystem, name: str, key: str) -> bool:
    return placing.place_of(name) == place_key(key)


def _check_taken(job: LrmsJob, table: QueueSnapshot) -> None:
    # A batch system may accept what it never starts, or refuse each of very many attempts.
    size, parts = table.processors_all, table.partitions
    if job.processors > size:
        raise LrmsRefusedError(f"the job needs {job.processors} processors; the machine has {size}")
    shut, asked = parts.shut(job.processors, job.requested_time), job.request
    if table.nodes is not None:
        plain = asked or Request.of_processors(job.processors, job.requested_time)
        named = table.nodes.named(plain, guest=bool(job.partner))
        asked = asked if named == plain else named
    if asked is not None and table.nodes is not None:
        never, shut = table.nodes.never(asked), table.nodes.shut(asked)
        why_not = table.nodes.why_not(asked)
    else:
        never = parts.never(job.processors, job.requested_time)
        why_not = parts.why_not(job.processors, job.requested_time)
    if job.partner:
        # A local job may wait for a partition that is down, or for a longer limit, as after `sbatch`: the batch
        # system decides.
        if never:
            raise LrmsRefusedError(never)
        shut = why_not
    if shut:
        raise LrmsRefusedError(shut, passing=True)
