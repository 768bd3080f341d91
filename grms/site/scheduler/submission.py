"""The home half of a site: local users' jobs, from submission to end.

A job is journaled before its user is told that it was accepted. `offers` has what happens in between.
"""

from grms.lrms import base
from grms.site.model.commands import AnswerReport, Refusal, Refuse, ReplyJob
from grms.site.model.events import Cancel, LrmsRefused, ReportReceived, Submit
from grms.site.model.jobs import HomeJob, Load, find_job
from grms.site.model.lifecycle import PROVISIONAL, JobState, Outcome
from grms.site.model.records import JobCancelRequested, JobReceived
from grms.site.model.state_tables import StateTables
from grms.site.scheduler.local_jobs import Owner, accept, end_what_waits, look_up
from grms.site.scheduler.offers import OfferHandler
from grms.site.scheduler.rebalance import RebalanceHandler
from grms.site.scheduler.transaction import Transaction

_HERE = frozenset({JobState.SUBMITTING, JobState.QUEUED, JobState.RUNNING})
"""The batch system has the job, or is to get it."""


class SubmissionHandler(Owner[HomeJob]):
    """Handles users' requests, and partners' reports on their jobs."""

    def __init__(
        self, memory: StateTables, offers: OfferHandler, reoffers: RebalanceHandler
    ) -> None:
        self.memory = memory
        self.offers = offers
        self.reoffers = reoffers

    # --- users ---------------------------------------------------------------------------------

    def submit(self, event: Submit, transaction: Transaction) -> None:
        """Accepts a user's job, and decides where it runs."""
        memory = self.memory
        known = memory.keys.get((event.user, event.idempotency_key))
        if known is not None:
            job = memory.jobs[known]
            if (job.request, job.payload, job.name) != (event.request, event.payload, event.name):
                transaction.do(
                    Refuse(
                        event.id,
                        Refusal.PRECONDITION,
                        f"the idempotency key belongs to another submission, {job.job_id}",
                        "idempotency_key",
                    )
                )
            else:
                transaction.do(ReplyJob(event.id, job.job_id))
            return
        refusal = self._refusal(event)
        if refusal is not None:
            transaction.do(refusal)
            return
        number = memory.next_job
        transaction.note(
            JobReceived(
                transaction.now,
                number,
                event.user,
                event.idempotency_key,
                event.name,
                event.request,
                event.payload,
                event.unfit,
            )
        )
        job = memory.jobs[number]
        transaction.do(ReplyJob(event.id, job.job_id))
        self.offers.decide(job, event.load, transaction)

    def _refusal(self, event: Submit) -> Refuse | None:
        settings, limits = self.memory.settings, self.memory.settings.limits
        for field, text, least in (
            ("idempotency_key", event.idempotency_key, 1),
            ("user", event.user, 1),
            ("name", event.name, 0),
        ):
            if not least <= len(text) <= limits.text_characters:
                reason = (
                    f"{field} has {len(text)} characters; between {least} and "
                    f"{limits.text_characters} are possible"
                )
                # The user is who calls, and no field of the request.
                wrong = "" if field == "user" else field
                return Refuse(event.id, Refusal.INVALID, reason, wrong)
        unfit = self.offers.unfit(event.request, event.unfit, event.load)
        if unfit and not self.offers.any_could(event.request):
            reason = f"{unfit}, and no partner of this site is known that could run it"
            wide = event.request.processors > settings.processors
            wrong = "request.processors" if wide else "request.needs"
            return Refuse(event.id, Refusal.INVALID, reason, wrong)
        if len(event.payload) > limits.payload_bytes:
            reason = (
                f"what is to run has {len(event.payload)} bytes; at most "
                f"{limits.payload_bytes} are possible"
            )
            return Refuse(event.id, Refusal.INVALID, reason, "request")
        if self.memory.draining:
            return Refuse(event.id, Refusal.UNAVAILABLE, "this site is draining; try later")
        for whose, count, most in (
            ("this site", self.memory.jobs_open, limits.jobs_open),
            (
                event.user,
                self.memory.open_by_user.get(event.user, 0),
                limits.jobs_open_per_user,
            ),
        ):
            if count >= most:
                reason = f"{whose} has {count} open jobs, the most possible; try later"
                return Refuse(event.id, Refusal.EXHAUSTED, reason)
        return None

    def cancel(self, event: Cancel, transaction: Transaction) -> None:
        """Ends a job where it is, as far as the site can."""
        job = self.job(event.job_id)
        if job is None:
            reason = f"there is no job {event.job_id!r}"
            transaction.do(Refuse(event.id, Refusal.NOT_FOUND, reason, "job_id"))
            return
        if event.user is not None and event.user != job.user:
            reason = f"job {event.job_id} is another user's"
            transaction.do(Refuse(event.id, Refusal.FORBIDDEN, reason))
            return
        if job.state is not JobState.ENDED and not job.cancel_requested:
            transaction.note(JobCancelRequested(transaction.now, job.job))
            self.offers.pursue_cancel(job, event.load, transaction)
            transaction.publish(job)
        transaction.do(ReplyJob(event.id, job.job_id))

    def job(self, job_id: str) -> HomeJob | None:
        """Returns the job of that name, or `None`."""
        return find_job(self.memory.jobs, self.memory.settings.name, job_id)

    # --- partners ------------------------------------------------------------------------------

    def report_received(self, event: ReportReceived, transaction: Transaction) -> None:
        """Records ended jobs; ends of unknown jobs are ignored."""
        memory = self.memory
        most = memory.settings.limits.report_completions
        book = memory.books.get(event.partner)
        if book is None:
            transaction.do(Refuse(event.id, Refusal.FORBIDDEN, f"{event.partner} is no partner"))
            return
        if len(event.completions) > most:
            reason = f"{len(event.completions)} completions; at most {most} are possible"
            transaction.do(Refuse(event.id, Refusal.INVALID, reason, "completions"))
            return
        for completion in event.completions:
            job = book.away(completion.offer)
            # A place that was not confirmed: what became of it the confirmation will tell.
            if job is not None and job.state not in PROVISIONAL:
                self.offers.completed(job, completion, event.load, transaction)
        transaction.do(AnswerReport(event.id))

    # --- the batch system ----------------------------------------------------------------------

    def changed(self, job: HomeJob, transaction: Transaction) -> None:
        """Publishes a job's new state."""
        transaction.publish(job)

    def stays(self, job: HomeJob, transaction: Transaction) -> None:
        """Withdraws a job's offer, if it has one."""
        self.reoffers.stays(job, transaction)

    def let_go(self, job: HomeJob, _end: base.LrmsEnd, transaction: Transaction) -> None:
        """Has the partner start a job that the batch system has released."""
        self.reoffers.let_go(job, transaction)

    def refused(self, job: HomeJob, news: LrmsRefused, transaction: Transaction) -> None:
        """Ends a job that the batch system refuses, unless it is submitted again later."""
        if news.passing and not job.cancel_requested:
            self._hinder(job, f"the batch system does not take it now: {news.reason}", transaction)
            return
        outcome, reason = Outcome.FAILED, f"the batch system refused it: {news.reason}"
        if job.begun:
            outcome = Outcome.UNKNOWN  # it has begun, whatever is said now
        elif job.cancel_requested:
            outcome, reason = Outcome.CANCELLED, "cancelled before the batch system took it"
        self.stays(job, transaction)
        self.end(job, base.LrmsEnd(outcome, transaction.now, 0.0, reason=reason), transaction)
        if job.begun:
            end_what_waits(job, transaction)

    def hindered(self, job: HomeJob, news: base.Hindered, transaction: Transaction) -> None:
        """Records what a job waits for other than room; rounds may offer it meanwhile."""
        self._hinder(job, news.reason, transaction)

    @staticmethod
    def _hinder(job: HomeJob, reason: str, transaction: Transaction) -> None:
        if job.hindered != reason:
            job.hindered = reason
            transaction.publish(job)

    def end(self, job: HomeJob, end: base.LrmsEnd, transaction: Transaction) -> None:
        """Records the end of a job that ran here, or was to."""
        reason = end.reason
        if end.outcome is Outcome.CANCELLED and not job.cancel_requested:
            reason = f"cancelled in the batch system: {reason}".removesuffix(": ")
        transaction.end(
            job,
            outcome=end.outcome,
            end_time=end.end_time,
            run_time=end.run_time,
            reason=reason,
        )

    # --- after a restart -----------------------------------------------------------------------

    def take_up(self, load: Load | None, transaction: Transaction) -> None:
        """Resumes every job that had not ended."""
        found = self._found_waiting(load, transaction)
        for job in [job for job in self.memory.jobs.values() if job.job not in found]:
            if job.state in _HERE:
                look_up(job, transaction)
            elif job.state is JobState.RECEIVED:
                self.offers.decide(job, load, transaction)
            elif job.state is JobState.OFFERING:
                job.move(JobState.WITHDRAWING if job.to_end else JobState.RESOLVING)
                self.offers.ask(job, transaction)
            elif job.state is JobState.RESOLVING:
                self.offers.ask(job, transaction)
            elif job.state in PROVISIONAL:
                self.reoffers.take_up(job, transaction)
            elif job.state is JobState.DELEGATED and job.to_end:
                self.offers.ask(job, transaction)
        for book in self.memory.books.values():
            for number in book.abandoned:
                self.offers.withdraw_abandoned(book, number, 0.0, transaction)

    def _found_waiting(self, load: Load | None, transaction: Transaction) -> set[int]:
        # Before anything is decided: the batch system counts them in its load, so they are not on
        # their way to it. Nothing more has to be done about them, and there may be very many.
        waits = None if load is None else load.waits
        if waits is None:
            return set()
        found = [
            job
            for job in self.memory.jobs.values()
            if job.state is JobState.SUBMITTING and not job.cancel_requested and waits(job.lrms_key)
        ]
        for job in found:
            accept(job, transaction)
        numbers = [job.job for job in found]
        transaction.publish_all(numbers)
        return set(numbers)
