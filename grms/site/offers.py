"""What becomes of a home job's offers: the decision where it runs, and every way to its outcome.

The order of things that keeps a job from being lost and from running twice:

- That a job is offered, or kept, is in the journal before the offer is sent or the batch system
  gets it. After a restart an offer is therefore known, and its outcome is asked for.
- While an outcome is open the job is neither offered elsewhere nor run at home. An answer closes
  it. Without one the partner is asked (RESOLVING); if it has never heard of the offer, the offer is
  taken back (WITHDRAWING): the partner then declines it should it still come.
- The end of a delegated job is in the journal before the partner may forget it.
"""

from grms.site.commands import LrmsCancel, LrmsSubmit, SendOffer, SendResolve, SendWithdraw
from grms.site.events import (
    OfferAnswered,
    OfferFailed,
    PartnerLost,
    PartnerUp,
    StatusAnswered,
    StatusFailed,
)
from grms.site.jobs import Completion, HomeJob, Load, OfferId
from grms.site.lifecycle import GuestState, JobState, Outcome
from grms.site.memory import Memory
from grms.site.partners import PartnerBook, asking_order
from grms.site.records import (
    AbandonedSettled,
    JobAbandoned,
    JobDeclined,
    JobDelegated,
    JobEnded,
    JobKept,
    JobOffered,
)
from grms.site.turn import Turn

_UNDECIDED = (JobState.OFFERING, JobState.RESOLVING, JobState.WITHDRAWING)
_AWAY = (JobState.DELEGATED, JobState.SUSPECT)


class OfferDesk:
    """Decides where home jobs run, and follows their offers to the outcome.

    Args:
        memory: of the site.
    """

    def __init__(self, memory: Memory) -> None:
        self.memory = memory

    # --- the decision --------------------------------------------------------------------------

    def decide(self, job: HomeJob, load: Load | None, turn: Turn) -> None:
        """Offers a job to the next partner, or keeps it (paper 003, section 3).

        The partners are put in order when the decision begins; whether home would rather keep the
        job is asked anew before each offer, as time goes by between them.
        """
        if job.cancel_requested:
            self._end_cancelled(job, "cancelled before it ran", turn)
            return
        settings = self.memory.settings
        books = self.memory.books
        load = self.memory.load(load)
        if job.remaining is None:
            job.remaining = asking_order(settings.location, books, turn.now)
            job.decision_time = turn.now
        width = job.request.processors
        late = turn.now - job.decision_time > settings.decision_time_max
        while job.remaining and load is not None and not late:
            name = job.remaining.pop(0)
            book = books[name]
            policy = settings.transfer.get(name)
            if policy is None or not self._askable(book, job):
                continue
            if width <= load.processors and policy.compiled.accept(
                width,
                processors=load.processors,
                processors_free=load.processors_free,
                processors_waiting=load.processors_waiting,
                own=True,
            ):
                break
            self._offer(job, book, turn)
            return
        job.remaining = None
        turn.note(JobKept(turn.now, job.job))
        turn.do(LrmsSubmit(turn.cause, job.lrms_key, job.request, job.payload))
        turn.publish(job)

    def _askable(self, book: PartnerBook, job: HomeJob) -> bool:
        return (
            book.listed
            and book.reachable
            and job.request.processors <= book.processors
            and book.name not in job.asked
            and len(book.undecided) < self.memory.settings.limits.offers_undecided
        )

    def _offer(self, job: HomeJob, book: PartnerBook, turn: Turn) -> None:
        # What is settled before this offer, which is not.
        number = book.next_number
        settled_below = book.settled()
        turn.note(JobOffered(turn.now, job.job, book.name, number))
        turn.do(
            SendOffer(
                turn.cause,
                book.name,
                OfferId(self.memory.settings.epoch, number),
                settled_below,
                job.request,
                job.payload,
            )
        )
        turn.publish(job)

    # --- answers -------------------------------------------------------------------------------

    def offer_answered(self, event: OfferAnswered, turn: Turn) -> None:
        """Delegates the job, or goes on to the next partner."""
        job = self._undecided(event.partner, event.offer)
        if job is None:
            return
        if event.accepted:
            self._delegated(job, event.load, turn)
        else:
            self._declined(job, event.load, turn)

    def offer_failed(self, event: OfferFailed, turn: Turn) -> None:
        """Finds out what became of the offer, if it may have arrived."""
        job = self._undecided(event.partner, event.offer)
        if job is None or job.state is not JobState.OFFERING:
            return
        if not event.sent:
            self._declined(job, event.load, turn)
        elif self._give_up(job):
            self.abandon(job, event.load, turn)
        else:
            job.move(JobState.RESOLVING)
            self.ask(job, turn)
            turn.publish(job)

    def status_answered(self, event: StatusAnswered, turn: Turn) -> None:
        """Goes on with what has become of an offer."""
        book = self.memory.books.get(event.partner)
        if book is None or event.offer.epoch != self.memory.settings.epoch:
            return
        number = event.offer.number
        if number in book.abandoned:
            withdrawal = book.abandoned[number]
            if withdrawal == event.question:
                turn.note(AbandonedSettled(turn.now, event.partner, number))
            elif not withdrawal:
                # The answer to what was asked before it was given up on.
                self.withdraw_abandoned(book, number, 0.0, turn)
            return
        job = book.undecided.get(number) or book.open.get(number)
        if job is None or job.question != event.question:
            return
        job.question = 0
        job.attempts = 0
        if event.completion is not None:
            self.completed(job, event.completion, turn)
        elif job.state in _UNDECIDED:
            self._outcome(job, event, turn)
        elif event.status is GuestState.ACCEPTED:
            self._still_there(job, book, turn)
        else:
            self._forgotten(job, event.load, turn)

    def _outcome(self, job: HomeJob, event: StatusAnswered, turn: Turn) -> None:
        if event.status is GuestState.ACCEPTED:
            self._delegated(job, event.load, turn)
        elif event.status is None:
            if job.state is JobState.RESOLVING:
                job.move(JobState.WITHDRAWING)
                turn.publish(job)
            self.ask(job, turn)
        else:
            self._declined(job, event.load, turn)

    def _delegated(self, job: HomeJob, load: Load | None, turn: Turn) -> None:
        turn.note(JobDelegated(turn.now, job.job))
        job.remaining = None
        if not job.cancel_told:
            # A question from before could be answered by "never heard of", which was true then.
            job.question = 0
        turn.publish(job)
        if job.cancel_requested and not job.cancel_told:
            self.pursue_cancel(job, load, turn)

    def _declined(self, job: HomeJob, load: Load | None, turn: Turn) -> None:
        turn.note(JobDeclined(turn.now, job.job))
        self.decide(job, load, turn)

    def _still_there(self, job: HomeJob, book: PartnerBook, turn: Turn) -> None:
        if job.state is JobState.SUSPECT and not book.lost:
            job.move(JobState.DELEGATED)
            job.reason = ""
            turn.publish(job)
        if job.cancel_requested and not job.cancel_told:
            self.ask(job, turn)

    def _forgotten(self, job: HomeJob, load: Load | None, turn: Turn) -> None:
        # The partner had accepted the job and does not know it: its journal is lost.
        if job.cancel_requested:
            if job.cancel_told:
                reason = f"cancelled; {job.partner} had forgotten it"
                self._end_cancelled(job, reason, turn)
            else:
                self.ask(job, turn)
            return
        self._suspect(job, f"{job.partner} does not know it any more", load, turn)

    def _suspect(self, job: HomeJob, reason: str, load: Load | None, turn: Turn) -> None:
        if job.state is JobState.DELEGATED:
            job.move(JobState.SUSPECT)
        job.reason = reason
        if self.memory.settings.on_lost == "resubmit":
            self.abandon(job, load, turn)
        else:
            turn.publish(job)

    def status_failed(self, event: StatusFailed, turn: Turn) -> None:
        """Asks again, after a pause."""
        book = self.memory.books.get(event.partner)
        if book is None or event.offer.epoch != self.memory.settings.epoch:
            return
        number = event.offer.number
        if number in book.abandoned:
            if book.abandoned[number] in {0, event.question}:
                self.withdraw_abandoned(book, number, self.memory.settings.retry_most_s, turn)
            return
        job = book.undecided.get(number) or book.open.get(number)
        if job is None or job.question != event.question:
            return
        job.question = 0
        if self._give_up(job):
            self.abandon(job, event.load, turn)
            return
        job.attempts += 1
        if job.state in _UNDECIDED or job.cancel_requested or book.reachable:
            self.ask(job, turn)
        # Else it is asked about again when its partner is up again.

    def completed(self, job: HomeJob, completion: Completion, turn: Turn) -> None:
        """Notes that a partner has run a job to its end."""
        self.end(
            job,
            turn,
            outcome=completion.outcome,
            end_time=completion.end_time,
            run_time=completion.run_time,
            reason=f"ran at {job.partner}",
        )

    def end(
        self,
        job: HomeJob,
        turn: Turn,
        *,
        outcome: Outcome,
        end_time: float,
        run_time: float,
        reason: str,
    ) -> None:
        """Notes the end of a job."""
        turn.note(JobEnded(turn.now, job.job, outcome, end_time, run_time, reason))
        job.remaining = None
        turn.publish(job)

    def _end_cancelled(self, job: HomeJob, reason: str, turn: Turn) -> None:
        self.end(
            job,
            turn,
            outcome=Outcome.CANCELLED,
            end_time=turn.now,
            run_time=0.0,
            reason=reason,
        )

    def _undecided(self, partner: str, offer: OfferId) -> HomeJob | None:
        book = self.memory.books.get(partner)
        if book is None or offer.epoch != self.memory.settings.epoch:
            return None
        return None if offer.number in book.abandoned else book.undecided.get(offer.number)

    # --- cancelling, asking and giving up ------------------------------------------------------

    def pursue_cancel(self, job: HomeJob, load: Load | None, turn: Turn) -> None:
        """Does what the cancellation of a job needs now."""
        state = job.state
        if state is JobState.RECEIVED:
            self.decide(job, load, turn)
        elif state in {JobState.OFFERING, JobState.RESOLVING}:
            job.move(JobState.WITHDRAWING)
            self.ask(job, turn)
        elif state is JobState.WITHDRAWING or state in _AWAY:
            if self._give_up(job):
                self.abandon(job, load, turn)
            else:
                self.ask(job, turn)
        else:
            turn.do(LrmsCancel(turn.cause, job.lrms_key))

    def ask(self, job: HomeJob, turn: Turn) -> None:
        """Asks what became of a job's offer, or takes it back; one question at a time counts."""
        settings = self.memory.settings
        offer = OfferId(settings.epoch, job.offer_number)
        delay = 0.0
        if job.attempts:
            doubled = settings.retry_first_s * 2.0 ** min(job.attempts - 1, 60)
            delay = min(doubled, settings.retry_most_s)
        job.question = turn.cause
        job.cancel_told = job.cancel_requested
        if job.cancel_requested or job.state is JobState.WITHDRAWING:
            turn.do(SendWithdraw(turn.cause, job.partner, offer, delay, job.cancel_requested))
        else:
            turn.do(SendResolve(turn.cause, job.partner, offer, delay))

    def _give_up(self, job: HomeJob) -> bool:
        book = self.memory.books[job.partner]
        return book.lost and self.memory.settings.on_lost == "resubmit"

    def abandon(self, job: HomeJob, load: Load | None, turn: Turn) -> None:
        """Decides a lost partner's job anew; the partner is told when it is back."""
        book, number, question = self.memory.books[job.partner], job.offer_number, job.question
        turn.note(JobAbandoned(turn.now, job.job))
        job.reason = f"given up on at {book.name}"
        if not question:
            # Else it is withdrawn when that question has its answer, or none.
            self.withdraw_abandoned(book, number, 0.0, turn)
        self.decide(job, load, turn)

    def withdraw_abandoned(
        self, book: PartnerBook, number: int, delay_s: float, turn: Turn
    ) -> None:
        """Tells a partner that an offer is void."""
        book.abandoned[number] = turn.cause
        offer = OfferId(self.memory.settings.epoch, number)
        turn.do(SendWithdraw(turn.cause, book.name, offer, delay_s, cancel=True))

    # --- partners come and go ------------------------------------------------------------------

    def partner_up(self, event: PartnerUp, turn: Turn) -> None:
        """Asks a partner that is back about its jobs: it may have lost its journal."""
        book = self.memory.books.get(event.partner)
        if book is None or not book.listed:
            return
        was_down = not book.reachable
        book.reachable = True
        book.lost = False
        book.processors = event.processors
        if was_down:
            for job in list(book.open.values()):
                if not job.question:
                    job.attempts = 0
                    self.ask(job, turn)

    def partner_lost(self, event: PartnerLost, turn: Turn) -> None:
        """Makes a partner's jobs SUSPECT, or decides them anew."""
        book = self.memory.books.get(event.partner)
        if book is None:
            return
        book.reachable = False
        book.lost = True
        for job in list(book.open.values()):
            self._suspect(job, f"{book.name} is lost", event.load, turn)
        for number, job in list(book.undecided.items()):
            if (
                number not in book.abandoned
                and job.state is not JobState.OFFERING
                and (self._give_up(job))
            ):
                self.abandon(job, event.load, turn)
