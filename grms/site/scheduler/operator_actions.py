"""Operators' decisions about jobs that are stuck at a partner.

Three ways, each journaled with the operator's name, and each with its risk:

- *Taking back* asks the partner to end the job, and then decides it again. It is never at two places at one
  time. While the partner does not answer, the job stays where it is.
- *Resubmitting* decides the job again at once. If the partner runs it after all, it runs twice.
- *Writing off* ends the job as failed. If the partner runs it after all, its user is not told.

In the latter two, the partner is told to end the job as soon as it is reachable.
"""

import math
from collections.abc import Callable
from typing import Final

from grms.site.model.commands import Refusal, Refuse, ReplyJob
from grms.site.model.events import Resubmit, TakeBack, WriteOff
from grms.site.model.jobs import HomeJob, find_job
from grms.site.model.lifecycle import JobState, Outcome
from grms.site.model.records import JobResubmitted, JobTakenBack, JobWrittenOff
from grms.site.model.state_tables import Memory
from grms.site.scheduler.deadlines import deadline_of
from grms.site.scheduler.offers import OfferDesk
from grms.site.scheduler.transaction import Turn

Act = TakeBack | Resubmit | WriteOff

_AT_PARTNER = (
    JobState.OFFERING,
    JobState.RESOLVING,
    JobState.WITHDRAWING,
    JobState.DELEGATED,
    JobState.SUSPECT,
)


class OperatorDesk:
    """Carries out operators' decisions about single jobs."""

    def __init__(self, memory: Memory, offers: OfferDesk) -> None:
        self.memory = memory
        self.offers = offers

    def take_back(self, event: TakeBack, turn: Turn) -> None:
        """Has a job ended where it is, and then decides it again."""
        self._act(event, turn, self._take_back)

    def resubmit(self, event: Resubmit, turn: Turn) -> None:
        """Decides a job again, whatever its partner does with it."""
        self._act(event, turn, self._resubmit)

    def write_off(self, event: WriteOff, turn: Turn) -> None:
        """Ends a job as failed, whatever its partner does with it."""
        self._act(event, turn, self._write_off)

    def _act(self, event: Act, turn: Turn, act: Callable[[HomeJob, Act, Turn], None]) -> None:
        job = find_job(self.memory.jobs, self.memory.settings.name, event.job_id)
        if job is None:
            reason = f"there is no job {event.job_id!r}"
            turn.do(Refuse(event.id, Refusal.NOT_FOUND, reason, "job_id"))
            return
        if job.state not in _AT_PARTNER:
            reason = f"job {job.job_id} is {job.state.value} and at no partner"
            if job.state is not JobState.ENDED:
                reason += "; it can be cancelled"
            turn.do(Refuse(event.id, Refusal.PRECONDITION, reason))
            return
        act(job, event, turn)
        turn.do(ReplyJob(event.id, job.job_id))

    def _take_back(self, job: HomeJob, event: Act, turn: Turn) -> None:
        if job.take_back:
            return
        turn.note(JobTakenBack(turn.now, job.job, event.by))
        if not job.cancel_requested:
            self.offers.pursue_cancel(job, event.load, turn)
        turn.publish(job)

    def _resubmit(self, job: HomeJob, event: Act, turn: Turn) -> None:
        turn.note(JobResubmitted(turn.now, job.job, event.by))
        self.offers.abandon(job, event.load, turn)

    def _write_off(self, job: HomeJob, event: Act, turn: Turn) -> None:
        partner = job.partner
        turn.note(JobWrittenOff(turn.now, job.job, event.by))
        self.offers.give_up(job, turn)
        turn.end(
            job,
            outcome=Outcome.FAILED,
            end_time=turn.now,
            run_time=0.0,
            reason=f"written off by {event.by}; what {partner} does with it is not known",
        )


UNCONFIRMED_S: Final = 60.0
"""A job that the batch system was to get so long ago, and has not confirmed, is shown as stuck."""


def why_stuck(job: HomeJob, memory: Memory, now: float) -> str:
    """Returns why a local user's job is stuck, for an operator; empty if it is not. `now` is in seconds."""
    if job.state not in _AT_PARTNER:
        return _why_stuck_here(job, memory, now)
    if job.state is JobState.SUSPECT:
        return job.reason or f"{job.partner} is lost"
    if now <= deadline_of(job, memory.settings):
        return ""
    if math.isnan(job.accept_time):
        return f"{job.partner} has not said for {now - job.offer_time:.0f} s whether it has it"
    return f"accepted by {job.partner} {now - job.accept_time:.0f} s ago, and not ended"


def _why_stuck_here(job: HomeJob, memory: Memory, now: float) -> str:
    if job.job in memory.unplaced:
        return job.reason
    if job.state is JobState.SUBMITTING and memory.lrms_away:
        return f"the batch system does not answer: {memory.lrms_away}"
    if job.hindered and job.state in {JobState.SUBMITTING, JobState.QUEUED}:
        return job.hindered
    if job.state is JobState.SUBMITTING and now - job.kept_time > UNCONFIRMED_S:
        return f"the batch system has not confirmed it for {now - job.kept_time:.0f} s"
    unseen = memory.unseen.get(job.lrms_key)
    return f"it is not known where it stands: {unseen}" if unseen else ""
