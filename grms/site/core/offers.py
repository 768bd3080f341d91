"""What becomes of a home job's offers: the decision where it runs, and every way to its outcome.

The order of things that keeps a job from being lost and from running twice:

- That a job is offered, or kept, is in the journal before the offer is sent or the batch system
  gets it. After a restart an offer is therefore known, and its outcome is asked for.
- While an outcome is open the job is neither offered elsewhere nor run at home. An answer closes
  it. Without one the partner is asked (RESOLVING); if it has never heard of the offer, the offer is
  taken back (WITHDRAWING): the partner then declines it should it still come.
- The end of a delegated job is in the journal before the partner may forget it.
"""

import math

from grms.kit.backoff import pause_after
from grms.site.core.belief import believable, violation
from grms.site.core.fairness import entrusts, held_to, wants
from grms.site.core.turn import Turn
from grms.site.facts.commands import (
    LrmsCancel,
    SendOffer,
    SendProbe,
    SendResolve,
    SendWithdraw,
)
from grms.site.facts.events import (
    OfferAnswered,
    OfferFailed,
    PartnerLost,
    PartnerUp,
    StatusAnswered,
    StatusFailed,
    TimePassed,
)
from grms.site.facts.jobs import NO_EXIT, Completion, HomeJob, Load, OfferId, Weighed, lrms_key
from grms.site.facts.lifecycle import GuestState, JobState, Outcome
from grms.site.facts.memory import Memory
from grms.site.facts.partners import PartnerBook, asking_order
from grms.site.facts.records import (
    AbandonedSettled,
    JobAbandoned,
    JobDeclined,
    JobDelegated,
    JobEnded,
    JobExited,
    JobKept,
    JobOffered,
    JobPromised,
    JobReturned,
    PartnerFaulted,
    ReportDisbelieved,
)
from grms.site.facts.settings import SiteSettings

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
            job.questions_left = settings.questions
            in_turn = settings.questions > 0
            job.remaining = asking_order(settings.location, books, turn.now, in_turn=in_turn)
            job.decision_time = turn.now
        width = job.request.processors
        late = turn.now - job.decision_time > settings.decision_time_max
        job.weighed = Weighed(load, "")
        while job.remaining and job.questions_left and load is not None and not late:
            name = job.remaining.pop(0)
            book = books[name]
            policy = settings.transfer.get(name)
            if policy is None or not self._askable(book, job):
                continue
            if width <= load.processors and wants(
                policy, self.memory, book, job.request, load, own=True
            ):
                job.weighed = Weighed(load, name)
                break
            if entrusts(policy, book, job.request, load, turn):
                job.questions_left -= 1
                self._offer(job, book, turn)
                return
        job.remaining = None
        turn.note(JobKept(turn.now, job.job))
        # One that was received before the journal was put back may have been submitted since.
        lookup = job.lrms_key != lrms_key(settings.name, self.memory.epoch, job.job)
        turn.submit(job, lookup=lookup)
        turn.publish(job)

    def _askable(self, book: PartnerBook, job: HomeJob) -> bool:
        return book.name not in job.asked and self.can_ask(book, job.request.processors)

    def can_ask(self, book: PartnerBook, processors: int) -> bool:
        """Returns whether a partner can be offered a job of so many processors now."""
        return (
            book.listed
            and book.reachable
            and not book.faulty
            and not book.incompatible
            and processors <= book.processors
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
                job.offer,
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
        self.answered_well(event.partner)
        if job is None:
            return
        if event.accepted:
            self._delegated(job, event.load, turn)
        else:
            self._declined(job, event.load, turn)

    def answered_well(self, partner: str) -> None:
        """Notes that a partner has given an offer an answer that the protocol has."""
        book = self.memory.books.get(partner)
        if book is not None and not book.faulty:
            book.faults_in_row = 0

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
        if book is None:
            return
        if book.gave_up(event.offer):
            self._withdrawal_answered(event, book, turn)
            return
        job = book.away(event.offer)
        if job is None or job.question != event.question:
            return
        if _senseless(job, event):
            self._makes_no_sense(event, book, turn)
            return
        job.question = 0
        job.attempts = 0
        if event.completion is not None:
            self.completed(job, event.completion, event.load, turn)
        elif job.state in _UNDECIDED:
            self._outcome(job, event, turn)
        elif event.status is GuestState.ACCEPTED:
            self._still_there(job, book, turn)
        else:
            self._forgotten(job, event.load, turn)

    def _withdrawal_answered(self, event: StatusAnswered, book: PartnerBook, turn: Turn) -> None:
        number = event.offer.number
        withdrawal = book.abandoned[number]
        if withdrawal == event.question:
            if event.status is None:
                self._makes_no_sense(event, book, turn)
            else:
                turn.note(AbandonedSettled(turn.now, event.partner, number))
        elif not withdrawal:
            # The answer to what was asked before it was given up on.
            self.withdraw_abandoned(book, number, 0.0, turn)

    def _makes_no_sense(self, event: StatusAnswered, book: PartnerBook, turn: Turn) -> None:
        said = "unknown" if event.status is None else event.status.value
        offer = f"{event.offer.epoch}/{event.offer.number}"
        self.fault(book, f"it says {said} of offer {offer}, which cannot be the answer", turn)
        failed = StatusFailed(event.id, event.load, event.partner, event.offer, event.question)
        self.status_failed(failed, turn)

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
        if held_to(self.memory.settings.transfer.get(job.partner)) is not None:
            turn.note(JobPromised(turn.now, job.job))
        job.remaining = None
        if not job.cancel_told:
            # A question from before could be answered by "never heard of", which was true then.
            job.question = 0
        turn.publish(job)
        if job.to_end and not job.cancel_told:
            self.pursue_cancel(job, load, turn)

    def _declined(self, job: HomeJob, load: Load | None, turn: Turn) -> None:
        turn.note(JobDeclined(turn.now, job.job))
        self.decide(job, load, turn)

    def _still_there(self, job: HomeJob, book: PartnerBook, turn: Turn) -> None:
        if job.state is JobState.SUSPECT and not book.lost:
            job.move(JobState.DELEGATED)
            job.reason = ""
            turn.publish(job)
        if job.to_end and not job.cancel_told:
            self.ask(job, turn)

    def _forgotten(self, job: HomeJob, load: Load | None, turn: Turn) -> None:
        # The partner had accepted the job and does not know it: its journal is lost.
        if job.to_end and not job.cancel_told:
            self.ask(job, turn)
            return
        if job.cancel_requested:
            reason = f"cancelled; {job.partner} had forgotten it"
            self._end_cancelled(job, reason, turn)
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
        if book is None:
            return
        number = event.offer.number
        if book.gave_up(event.offer):
            if book.abandoned[number] in {0, event.question}:
                self.withdraw_abandoned(book, number, self.memory.settings.retry_most_s, turn)
            return
        job = book.away(event.offer)
        if job is None or job.question != event.question:
            return
        job.question = 0
        if self._give_up(job):
            self.abandon(job, event.load, turn)
            return
        job.attempts += 1
        if job.state in _UNDECIDED or job.to_end or book.reachable:
            self.ask(job, turn)
        # Else it is asked about again when its partner is up again.

    def completed(
        self, job: HomeJob, completion: Completion, load: Load | None, turn: Turn
    ) -> None:
        """Notes that a partner has run a job to its end, as far as it can be believed."""
        partner, number = job.partner, job.offer_number
        lie = violation(job, completion, turn.now, self.memory.settings)
        reason = f"ran at {partner}"
        if lie:
            completion = believable(job, completion, turn.now)
            reason = f"{reason}, whose report cannot be true: {lie}"
        never_ran = completion.outcome is Outcome.LOST and completion.run_time == 0.0
        taken_back = completion.outcome is Outcome.CANCELLED and job.take_back
        if (never_ran or taken_back) and not job.cancel_requested:
            turn.note(JobReturned(turn.now, job.job))
            self.decide(job, load, turn)
        elif never_ran:
            self._end_cancelled(job, f"cancelled; {partner} had not started it", turn)
        else:
            self._completed(job, completion, reason, turn)
        if lie:
            turn.note(ReportDisbelieved(turn.now, partner, number, lie))

    def _completed(self, job: HomeJob, completion: Completion, reason: str, turn: Turn) -> None:
        if completion.exit != NO_EXIT:
            turn.note(JobExited(turn.now, job.job, completion.exit))
        self.end(
            job,
            turn,
            outcome=completion.outcome,
            end_time=completion.end_time,
            run_time=completion.run_time,
            reason=reason,
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
        if book is None or offer.number not in book.undecided:
            return None
        return book.away(offer)

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
        delay = pause_after(job.attempts, settings.retry_first_s, settings.retry_most_s)
        job.question = turn.cause
        job.cancel_told = job.to_end
        if job.to_end or job.state is JobState.WITHDRAWING:
            turn.do(SendWithdraw(turn.cause, job.partner, job.offer, delay, job.to_end))
        else:
            turn.do(SendResolve(turn.cause, job.partner, job.offer, delay, job.confirms))

    def _give_up(self, job: HomeJob) -> bool:
        book = self.memory.books[job.partner]
        return book.lost and self.memory.settings.on_lost == "resubmit"

    def abandon(self, job: HomeJob, load: Load | None, turn: Turn) -> None:
        """Decides a lost partner's job anew; the partner is told when it is back."""
        self.give_up(job, turn)
        self.decide(job, load, turn)

    def give_up(self, job: HomeJob, turn: Turn) -> None:
        """Takes a job out of a partner's hands; the partner is told when it is back."""
        book, number, question = self.memory.books[job.partner], job.offer_number, job.question
        turn.note(JobAbandoned(turn.now, job.job))
        job.reason = f"given up on at {book.name}"
        if not question:
            # Else it is withdrawn when that question has its answer, or none.
            self.withdraw_abandoned(book, number, 0.0, turn)

    def withdraw_abandoned(
        self, book: PartnerBook, number: int, delay_s: float, turn: Turn
    ) -> None:
        """Tells a partner that an offer is void."""
        book.abandoned[number] = turn.cause
        offer = OfferId(book.abandoned_epochs[number], number)
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
        book.reserves = event.reserves
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
                and job.state in {JobState.RESOLVING, JobState.WITHDRAWING}
                and (self._give_up(job))
            ):
                self.abandon(job, event.load, turn)

    def fault(self, book: PartnerBook, reason: str, turn: Turn, *, probed: bool = False) -> None:
        """Offers nothing more to a partner until a probe has found it well.

        Args:
            book: of the partner.
            reason: what it has said that the protocol does not have.
            turn: of the event.
            probed: it was the answer to a probe.
        """
        was_well, book.faulty = not book.faulty, reason
        if was_well:
            turn.note(PartnerFaulted(turn.now, book.name, reason))
        if was_well or probed:
            book.faults_in_row += 1
            self.probe(book, turn)

    def probe(self, book: PartnerBook, turn: Turn) -> None:
        """Asks a faulty partner after a pause about an offer that was never made."""
        if not book.listed:
            book.faulty = ""
            return
        settings = self.memory.settings
        delay = pause_after(book.faults_in_row, settings.probe_first_s, settings.probe_most_s)
        offer = OfferId(self.memory.epoch, book.next_number)
        turn.do(SendProbe(turn.cause, book.name, offer, delay))

    # --- deadlines -----------------------------------------------------------------------------

    def time_passed(self, event: TimePassed, turn: Turn) -> None:
        """Shows the operator whose deadline has passed; with on_lost "resubmit" it is acted on."""
        for book in list(self.memory.books.values()):
            for job in [*book.undecided.values(), *book.open.values()]:
                if job.partner == book.name and not job.overdue:
                    self._check_deadline(job, book, event.load, turn)

    def _check_deadline(
        self, job: HomeJob, book: PartnerBook, load: Load | None, turn: Turn
    ) -> None:
        deadline = deadline_of(job, self.memory.settings)
        if turn.now <= deadline:
            return
        job.overdue = True
        if job.state in _UNDECIDED:
            waited = turn.now - job.offer_time
            job.reason = f"{book.name} has not said for {waited:.0f} s whether it has it"
            if book.faulty and self.memory.settings.on_lost == "resubmit":
                self.abandon(job, load, turn)
                return
        else:
            waited = turn.now - job.accept_time
            job.reason = f"accepted by {book.name} {waited:.0f} s ago, and not ended"
        job.revision += 1
        turn.publish(job)


def deadline_of(job: HomeJob, settings: SiteSettings) -> float:
    """Returns when a job that is at a partner, or offered to one, becomes overdue, seconds.

    Infinity for a job at home.
    """
    if job.state in _UNDECIDED:
        return job.offer_time + settings.undecided_time_max
    if job.state in _AWAY:
        return job.accept_time + job.request.requested_time + settings.delegated_time_max
    return math.inf


def _senseless(job: HomeJob, event: StatusAnswered) -> bool:
    # Whatever the protocol does not have: an end of another offer, or of none; and a withdrawal is
    # never answered by "never heard of".
    if event.completion is not None:
        return event.completion.offer != event.offer or event.status is not GuestState.ENDED
    if event.status is GuestState.ENDED:
        return True
    withdrawn = job.cancel_told or job.state is JobState.WITHDRAWING
    return event.status is None and withdrawn
