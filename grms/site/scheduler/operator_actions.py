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
from grms.site.model.jobs import HomeJob
from grms.site.model.lifecycle import JobState, Outcome
from grms.site.model.records import JobResubmitted, JobTakenBack, JobWrittenOff
from grms.site.model.state_tables import StateTables
from grms.site.scheduler.outgoing_offers import OfferHandler, deadline_of
from grms.site.scheduler.transaction import Transaction

Act = TakeBack | Resubmit | WriteOff

_AT_PARTNER = (
    JobState.OFFERING,
    JobState.RESOLVING,
    JobState.WITHDRAWING,
    JobState.DELEGATED,
    JobState.SUSPECT,
)


class OperatorActionHandler:
    """Carries out operators' decisions about single jobs."""

    def __init__(self, memory: StateTables, offers: OfferHandler) -> None:
        self.memory = memory
        self.offers = offers

    def take_back(self, event: TakeBack, transaction: Transaction) -> None:
        """Has a job ended where it is, and then decides it again."""
        self._act(event, transaction, self._take_back)

    def resubmit(self, event: Resubmit, transaction: Transaction) -> None:
        """Decides a job again, whatever its partner does with it."""
        self._act(event, transaction, self._resubmit)

    def write_off(self, event: WriteOff, transaction: Transaction) -> None:
        """Ends a job as failed, whatever its partner does with it."""
        self._act(event, transaction, self._write_off)

    def _act(
        self, event: Act, transaction: Transaction, act: Callable[[HomeJob, Act, Transaction], None]
    ) -> None:
        job = self.memory.find_job(event.job_id)
        if job is None:
            reason = f"there is no job {event.job_id!r}"
            transaction.do(Refuse(event.id, Refusal.NOT_FOUND, reason, "job_id"))
            return
        if job.state not in _AT_PARTNER:
            reason = f"job {job.job_id} is {job.state.value} and at no partner"
            if job.state is not JobState.ENDED:
                reason += "; it can be cancelled"
            transaction.do(Refuse(event.id, Refusal.PRECONDITION, reason))
            return
        act(job, event, transaction)
        transaction.do(ReplyJob(event.id, job.job_id))

    def _take_back(self, job: HomeJob, event: Act, transaction: Transaction) -> None:
        if job.take_back:
            return
        transaction.note(JobTakenBack(transaction.now, job.job, event.by))
        if not job.cancel_requested:
            self.offers.pursue_cancel(job, event.load, transaction)
        transaction.publish(job)

    def _resubmit(self, job: HomeJob, event: Act, transaction: Transaction) -> None:
        transaction.note(JobResubmitted(transaction.now, job.job, event.by))
        self.offers.abandon(job, event.load, transaction)

    def _write_off(self, job: HomeJob, event: Act, transaction: Transaction) -> None:
        partner = job.partner
        transaction.note(JobWrittenOff(transaction.now, job.job, event.by))
        self.offers.give_up(job, transaction)
        transaction.end(
            job,
            outcome=Outcome.FAILED,
            end_time=transaction.now,
            run_time=0.0,
            reason=f"written off by {event.by}; what {partner} does with it is not known",
        )


UNCONFIRMED_S: Final = 60.0
"""A job that the batch system was to get so long ago, and has not confirmed, is shown as stuck."""


def why_stuck(job: HomeJob, memory: StateTables, now: float) -> str:
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


def _why_stuck_here(job: HomeJob, memory: StateTables, now: float) -> str:
    if job.state is JobState.HELD:
        return ""  # it goes on by itself; `reason` says what it waits for
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
