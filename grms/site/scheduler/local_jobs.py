"""Jobs in the local batch system, of users and of partners: its news about them, and what follows.

What both kinds share is here; what differs is decided by the job's owner, the handler of the half of the site that
has it.
"""

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from grms.lrms import base
from grms.site.model.commands import LrmsCancel
from grms.site.model.events import (
    Event,
    LrmsAppeared,
    LrmsLetGo,
    LrmsNews,
    LrmsRefused,
    LrmsStays,
    OwnerTold,
)
from grms.site.model.jobs import NO_EXIT, Exit, GuestJob, HomeJob, end_of_lost
from grms.site.model.lifecycle import JobState, Outcome
from grms.site.model.records import (
    GuestNamed,
    JobExited,
    JobLost,
    JobRequeued,
    JobStarted,
    JobStays,
)
from grms.site.model.state_tables import StateTables
from grms.site.scheduler.transaction import Transaction

J = TypeVar("J", HomeJob, GuestJob)

_NOT_STARTED = frozenset({JobState.SUBMITTING, JobState.QUEUED})


class Owner(Generic[J]):
    """What a half of the site does with its jobs in the batch system."""

    def changed(self, job: J, transaction: Transaction) -> None:
        """Called when a job's state has changed."""

    def started(self, job: J, transaction: Transaction) -> None:
        """Called when a job has started."""

    def stays(self, job: J, transaction: Transaction) -> None:
        """Called when a job no longer leaves: it has started, has ended, is lost, or is not released."""

    def let_go(self, job: J, end: base.LrmsEnd, transaction: Transaction) -> None:
        """Sends a job elsewhere that the batch system has released as requested."""
        raise NotImplementedError

    def end(self, job: J, end: base.LrmsEnd, transaction: Transaction) -> None:
        """Records the end of a job, and reports it."""
        raise NotImplementedError

    def refused(self, job: J, news: LrmsRefused, transaction: Transaction) -> None:
        """Decides what happens to a job that the batch system refuses."""
        raise NotImplementedError

    def hindered(self, job: J, news: base.Hindered, transaction: Transaction) -> None:
        """Decides what happens to a job that waits for something other than room."""
        raise NotImplementedError


def accept(job: HomeJob | GuestJob, transaction: Transaction) -> bool:
    """Records that the batch system has a job; returns whether that is news."""
    if job.state is not JobState.SUBMITTING:
        return False
    transaction.memory.confirm(job)
    job.move(JobState.QUEUED)
    # It is taken; whether something keeps it from starting is told after this.
    job.hindered, job.deferred = "", False
    return True


def look_up(job: HomeJob | GuestJob, transaction: Transaction) -> None:
    """Looks up, after a restart, a job that the batch system may have."""
    # One that was requeued has started once, too; one that was lost has not.
    started = job.begun and job.state is not JobState.SUBMITTING
    transaction.submit(job, lookup=True, started=started)
    if job.cancel_requested:
        transaction.do(LrmsCancel(transaction.cause, job.lrms_key))


def end_what_waits(job: HomeJob | GuestJob, transaction: Transaction) -> None:
    """Ends a job that this site no longer has, should the batch system still have it.

    A waiting job must not run any more. A running one is left alone, as this site may be wrong, unless it was
    cancelled.
    """
    transaction.do(
        LrmsCancel(transaction.cause, job.lrms_key, only_waiting=not job.cancel_requested)
    )


class LocalJobHandler:
    """Handles the batch system's news about jobs."""

    def __init__(self, memory: StateTables, home: Owner[HomeJob], guests: Owner[GuestJob]) -> None:
        self.memory = memory
        self._home = home
        self._guests = guests
        self._told: dict[type[LrmsNews], Callable[[HomeJob | GuestJob, Any, Transaction], None]] = {
            base.Accepted: self._accepted,
            base.Started: self._started,
            base.Paused: self._paused,
            base.Requeued: self._requeued,
            base.Hindered: self._hindered,
            base.Ended: self._ended,
            base.Lost: self._lost,
            LrmsRefused: self._refused,
            LrmsStays: self._stays,
            LrmsLetGo: self._let_go,
            OwnerTold: self._owner_told,
        }

    def handlers(self) -> dict[type[Event | LrmsNews], Callable[[Any, Transaction], None]]:
        """Returns the handler of each kind of news."""
        return {
            **dict.fromkeys(self._told, self._of_a_job),
            LrmsAppeared: self._appeared,
            base.Unseen: self._unseen,
            base.SeenAgain: self._seen_again,
            base.Away: self._away,
            base.Back: self._back,
        }

    def _owner(self, job: HomeJob | GuestJob) -> Owner[Any]:
        return self._home if isinstance(job, HomeJob) else self._guests

    def _of_a_job(self, news: Any, transaction: Transaction) -> None:
        # Of a job that is not there it says nothing.
        job = self.memory.at_lrms.get(news.key)
        if job is not None:
            self._told[type(news)](job, news, transaction)

    # --- one job -------------------------------------------------------------------------------

    def _accepted(
        self, job: HomeJob | GuestJob, _: base.Accepted, transaction: Transaction
    ) -> None:
        if accept(job, transaction):
            self._owner(job).changed(job, transaction)

    def _started(
        self, job: HomeJob | GuestJob, news: base.Started, transaction: Transaction
    ) -> None:
        self._is_there(job, transaction)
        job.hindered = ""
        if job.state in _NOT_STARTED:
            self._start(job, max(news.start_time, job.came), transaction)  # by another clock
            self._owner(job).changed(job, transaction)

    def _paused(self, job: HomeJob | GuestJob, news: base.Paused, transaction: Transaction) -> None:
        paused = None if news.phase is base.LrmsPhase.RUNNING else news.phase
        if job.state is not JobState.RUNNING or paused is job.paused:
            return
        job.paused, job.paused_time = paused, max(news.time, job.start_time)
        if isinstance(job, HomeJob):
            job.revision += 1
        self._owner(job).changed(job, transaction)

    def _start(self, job: HomeJob | GuestJob, start_time: float, transaction: Transaction) -> None:
        transaction.note(JobStarted(transaction.now, job.ref, start_time))
        self._owner(job).started(job, transaction)

    def _requeued(
        self, job: HomeJob | GuestJob, news: base.Requeued, transaction: Transaction
    ) -> None:
        # It has started, also where nobody has told of that: then its start is taken to be now, until the
        # next record says that it waits. So it is not given away, and not taken for one that has left.
        self._is_there(job, transaction)
        if job.state in _NOT_STARTED and not job.begun:
            self._start(job, transaction.now, transaction)
        if job.state is JobState.RUNNING:
            transaction.note(JobRequeued(transaction.now, job.ref, news.reason))
            self._owner(job).changed(job, transaction)
        if job.cancel_requested:
            transaction.do(LrmsCancel(transaction.cause, job.lrms_key))

    def _hindered(
        self, job: HomeJob | GuestJob, news: base.Hindered, transaction: Transaction
    ) -> None:
        if job.end_told is None:
            self._owner(job).hindered(job, news, transaction)

    def _owner_told(
        self, job: HomeJob | GuestJob, news: OwnerTold, transaction: Transaction
    ) -> None:
        if isinstance(job, GuestJob) and job.pseudonym != news.pseudonym:
            transaction.note(GuestNamed(transaction.now, job.ref, news.pseudonym))

    def _refused(
        self, job: HomeJob | GuestJob, news: LrmsRefused, transaction: Transaction
    ) -> None:
        self._owner(job).refused(job, news, transaction)

    def _stays(self, job: HomeJob | GuestJob, news: LrmsStays, transaction: Transaction) -> None:
        self._owner(job).stays(job, transaction)
        self._answered(job, transaction, certainly_not=news.certain)

    def _let_go(self, job: HomeJob | GuestJob, news: LrmsLetGo, transaction: Transaction) -> None:
        # If there was nothing to let go, the batch system tells what has happened to the job.
        self._answered(job, transaction, certainly_not=news.done is False)

    def _answered(
        self, job: HomeJob | GuestJob, transaction: Transaction, *, certainly_not: bool
    ) -> None:
        # Where the batch system was told to let it go once, by this process, and has answered at once that it does
        # not, there is nothing that it may still do: that the job is cancelled is somebody else's doing, whether that
        # is told before the answer or later.
        once, job.told_once = job.told_once, False
        if once and certainly_not and job.leaving:
            transaction.note(JobStays(transaction.now, job.ref))
        end, job.end_told = job.end_told, None
        if end is not None:
            self._ended(job, base.Ended(job.lrms_key, end), transaction)

    def _is_there(self, job: HomeJob | GuestJob, transaction: Transaction) -> None:
        job.end_told = None
        self._owner(job).stays(job, transaction)

    def _lost(self, job: HomeJob | GuestJob, news: base.Lost, transaction: Transaction) -> None:
        self._is_there(job, transaction)
        end = end_of_lost(job, news.reason, started=job.state is JobState.RUNNING)
        if end is None:
            transaction.note(
                JobLost(transaction.now, job.ref, f"lost by the batch system: {news.reason}")
            )
            transaction.submit(job, lookup=True)
            self._owner(job).changed(job, transaction)
            return
        outcome, reason = end
        self._owner(job).end(
            job, base.LrmsEnd(outcome, transaction.now, 0.0, reason=reason), transaction
        )
        # A submission may still be on the way.
        end_what_waits(job, transaction)

    def _ended(self, job: HomeJob | GuestJob, news: base.Ended, transaction: Transaction) -> None:
        end = news.end
        undone = end.outcome is Outcome.CANCELLED and end.run_time == 0.0
        # One that waits again after a start is let go by nobody of ours: somebody else has cancelled it.
        if job.leaving and undone and not (job.begun or job.cancel_requested):
            if job.told_once:
                job.end_told = (
                    end  # the answer to the site's own cancel tells whether it was that one
                )
            else:
                self._owner(job).let_go(job, end, transaction)
            return
        self._owner(job).stays(job, transaction)
        left = Exit.known(end.exit_code, end.signal)
        if left != NO_EXIT:
            transaction.note(JobExited(transaction.now, job.ref, left))
        self._owner(job).end(job, end, transaction)
        if end.outcome is Outcome.UNKNOWN:
            end_what_waits(job, transaction)  # it may be there after all

    # --- the batch system ----------------------------------------------------------------------

    def _appeared(self, news: LrmsAppeared, transaction: Transaction) -> None:
        job = self.memory.at_lrms.get(news.key)
        if (job is not None and not job.cancel_requested) or self.memory.keeps_place(news.key):
            return
        # Nobody waits for it: it was or is to be ended, or the journal that knew of it is gone. What runs is ended
        # only where somebody has wanted that: that this site takes it for over may have been a mistake.
        wanted = job is not None or self.memory.was_to_end(news.key)
        transaction.do(LrmsCancel(transaction.cause, news.key, only_waiting=not wanted))

    def _unseen(self, news: base.Unseen, transaction: Transaction) -> None:
        job = self.memory.at_lrms.get(news.key)
        if job is None:
            return
        self.memory.unseen[news.key] = news.reason
        # When more is heard of it nobody knows: a place at a partner, and all that wait behind it, are not kept waiting.
        self._owner(job).stays(job, transaction)

    def _seen_again(self, news: base.SeenAgain, _transaction: Transaction) -> None:
        self.memory.unseen.pop(news.key, None)

    def _away(self, news: base.Away, _transaction: Transaction) -> None:
        self.memory.lrms_away = news.reason or "it does not answer"

    def _back(self, _news: base.Back, _transaction: Transaction) -> None:
        self.memory.lrms_away = ""
