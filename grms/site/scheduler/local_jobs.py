"""Jobs in the local batch system, of users and of partners: its news about them, and what follows.

What both kinds share is here; what differs is decided by the job's owner, the desk of the half of the site that
has it.
"""

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from grms.lrms import base
from grms.site.model.commands import LrmsCancel
from grms.site.model.events import Event, LrmsAppeared, LrmsNews, LrmsRefused, LrmsStays
from grms.site.model.jobs import NO_EXIT, Exit, GuestJob, HomeJob, end_of_lost
from grms.site.model.lifecycle import JobState, Outcome
from grms.site.model.records import JobExited, JobLost, JobRequeued, JobStarted, JobStays
from grms.site.model.state_tables import Memory
from grms.site.scheduler.transaction import Turn

J = TypeVar("J", HomeJob, GuestJob)

_NOT_STARTED = frozenset({JobState.SUBMITTING, JobState.QUEUED})


class Owner(Generic[J]):
    """What a half of the site does with its jobs in the batch system."""

    def changed(self, job: J, turn: Turn) -> None:
        """Called when a job's state has changed."""

    def started(self, job: J, turn: Turn) -> None:
        """Called when a job has started."""

    def stays(self, job: J, turn: Turn) -> None:
        """Called when a job no longer leaves: it has started, has ended, is lost, or is not released."""

    def let_go(self, job: J, end: base.LrmsEnd, turn: Turn) -> None:
        """Sends a job elsewhere that the batch system has released as requested."""
        raise NotImplementedError

    def end(self, job: J, end: base.LrmsEnd, turn: Turn) -> None:
        """Records the end of a job, and reports it."""
        raise NotImplementedError

    def refused(self, job: J, news: LrmsRefused, turn: Turn) -> None:
        """Decides what happens to a job that the batch system refuses."""
        raise NotImplementedError

    def hindered(self, job: J, news: base.Hindered, turn: Turn) -> None:
        """Decides what happens to a job that waits for something other than room."""
        raise NotImplementedError


def accept(job: HomeJob | GuestJob, turn: Turn) -> bool:
    """Records that the batch system has a job; returns whether that is news."""
    if job.state is not JobState.SUBMITTING:
        return False
    turn.memory.confirm(job)
    job.move(JobState.QUEUED)
    job.hindered = ""  # it is taken; whether something keeps it from starting is told after this
    return True


def look_up(job: HomeJob | GuestJob, turn: Turn) -> None:
    """Looks up, after a restart, a job that the batch system may have."""
    # One that was requeued has started once, too; one that was lost has not.
    started = job.begun and job.state is not JobState.SUBMITTING
    turn.submit(job, lookup=True, started=started)
    if job.cancel_requested:
        turn.do(LrmsCancel(turn.cause, job.lrms_key))


def end_what_waits(job: HomeJob | GuestJob, turn: Turn) -> None:
    """Ends a job that this site no longer has, should the batch system still have it.

    A waiting job must not run any more. A running one is left alone, as this site may be wrong, unless it was
    cancelled.
    """
    turn.do(LrmsCancel(turn.cause, job.lrms_key, only_waiting=not job.cancel_requested))


class LocalDesk:
    """Handles the batch system's news about jobs."""

    def __init__(self, memory: Memory, home: Owner[HomeJob], guests: Owner[GuestJob]) -> None:
        self.memory = memory
        self._home = home
        self._guests = guests
        self._told: dict[type[LrmsNews], Callable[[HomeJob | GuestJob, Any, Turn], None]] = {
            base.Accepted: self._accepted,
            base.Started: self._started,
            base.Requeued: self._requeued,
            base.Hindered: self._hindered,
            base.Ended: self._ended,
            base.Lost: self._lost,
            LrmsRefused: self._refused,
            LrmsStays: self._stays,
        }

    def handlers(self) -> dict[type[Event | LrmsNews], Callable[[Any, Turn], None]]:
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

    def _of_a_job(self, news: Any, turn: Turn) -> None:
        # Of a job that is not there it says nothing.
        job = self.memory.at_lrms.get(news.key)
        if job is not None:
            self._told[type(news)](job, news, turn)

    # --- one job -------------------------------------------------------------------------------

    def _accepted(self, job: HomeJob | GuestJob, _: base.Accepted, turn: Turn) -> None:
        if accept(job, turn):
            self._owner(job).changed(job, turn)

    def _started(self, job: HomeJob | GuestJob, news: base.Started, turn: Turn) -> None:
        self._owner(job).stays(job, turn)
        job.hindered = ""
        if job.state in _NOT_STARTED:
            self._start(job, max(news.start_time, job.came), turn)  # by another clock
            self._owner(job).changed(job, turn)

    def _start(self, job: HomeJob | GuestJob, start_time: float, turn: Turn) -> None:
        turn.note(JobStarted(turn.now, job.ref, start_time))
        self._owner(job).started(job, turn)

    def _requeued(self, job: HomeJob | GuestJob, news: base.Requeued, turn: Turn) -> None:
        # It has started, also where nobody has told of that: then its start is taken to be now, until the
        # next record says that it waits. So it is not given away, and not taken for one that has left.
        self._owner(job).stays(job, turn)
        if job.state in _NOT_STARTED and not job.begun:
            self._start(job, turn.now, turn)
        if job.state is JobState.RUNNING:
            turn.note(JobRequeued(turn.now, job.ref, news.reason))
            self._owner(job).changed(job, turn)
        if job.cancel_requested:
            turn.do(LrmsCancel(turn.cause, job.lrms_key))

    def _hindered(self, job: HomeJob | GuestJob, news: base.Hindered, turn: Turn) -> None:
        self._owner(job).hindered(job, news, turn)

    def _refused(self, job: HomeJob | GuestJob, news: LrmsRefused, turn: Turn) -> None:
        self._owner(job).refused(job, news, turn)

    def _stays(self, job: HomeJob | GuestJob, news: LrmsStays, turn: Turn) -> None:
        # Where the batch system was told to let it go once, by this process, and has answered at once, there is
        # nothing that it may still do: should the job be cancelled later, that is somebody else's doing.
        self._owner(job).stays(job, turn)
        once, job.told_once = job.told_once, False
        if once and news.certain and job.leaving:
            turn.note(JobStays(turn.now, job.ref))

    def _lost(self, job: HomeJob | GuestJob, news: base.Lost, turn: Turn) -> None:
        self._owner(job).stays(job, turn)
        end = end_of_lost(job, news.reason, started=job.state is JobState.RUNNING)
        if end is None:
            turn.note(JobLost(turn.now, job.ref, f"lost by the batch system: {news.reason}"))
            turn.submit(job, lookup=True)
            self._owner(job).changed(job, turn)
            return
        outcome, reason = end
        self._owner(job).end(job, base.LrmsEnd(outcome, turn.now, 0.0, reason=reason), turn)
        # A submission may still be on the way.
        end_what_waits(job, turn)

    def _ended(self, job: HomeJob | GuestJob, news: base.Ended, turn: Turn) -> None:
        end = news.end
        undone = end.outcome is Outcome.CANCELLED and end.run_time == 0.0
        # One that waits again after a start is let go by nobody of ours: somebody else has cancelled it.
        if job.leaving and undone and not (job.begun or job.cancel_requested):
            self._owner(job).let_go(job, end, turn)
            return
        self._owner(job).stays(job, turn)
        left = Exit.known(end.exit_code, end.signal)
        if left != NO_EXIT:
            turn.note(JobExited(turn.now, job.ref, left))
        self._owner(job).end(job, end, turn)
        if end.outcome is Outcome.UNKNOWN:
            end_what_waits(job, turn)  # it may be there after all

    # --- the batch system ----------------------------------------------------------------------

    def _appeared(self, news: LrmsAppeared, turn: Turn) -> None:
        job = self.memory.at_lrms.get(news.key)
        if job is not None and not job.cancel_requested:
            return
        # Nobody waits for it: it was or is to be ended, or the journal that knew of it is gone. What runs is ended
        # only where somebody has wanted that: that this site takes it for over may have been a mistake.
        wanted = job is not None or self.memory.was_to_end(news.key)
        turn.do(LrmsCancel(turn.cause, news.key, only_waiting=not wanted))

    def _unseen(self, news: base.Unseen, _turn: Turn) -> None:
        if news.key in self.memory.at_lrms:
            self.memory.unseen[news.key] = news.reason

    def _seen_again(self, news: base.SeenAgain, _turn: Turn) -> None:
        self.memory.unseen.pop(news.key, None)

    def _away(self, news: base.Away, _turn: Turn) -> None:
        self.memory.lrms_away = news.reason or "it does not answer"

    def _back(self, _news: base.Back, _turn: Turn) -> None:
        self.memory.lrms_away = ""
