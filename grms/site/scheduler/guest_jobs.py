"""The guest half of a site: partners' offers, and the jobs that result from them.

- The answer to an offer is journaled before it is given, so that a repeated offer gets the same answer and is not
  decided again.
- A withdrawn offer that has not arrived leaves a tombstone, journaled before the partner is told: should the
  offer still arrive, it is declined.
- What the partner has declared settled need not be remembered: later messages about it are stale, and declined.
- A job for which its home site wants a place held is submitted only when that site says that it no longer has it.
- A partner whose accepted offers repeatedly lead to no run is only probing this site's load: its offers are
  declined for a while.
- The end of a job is kept, and reported, until the partner has acknowledged it.
- A job that never began here has not failed: it goes home undone (`Outcome.LOST` with a run time of 0), and is
  decided again there. So does one that the batch system refuses, for whatever reason, and one that waits where
  nothing is started any more.
- A job that may be run again, by its offer, may be ended here for another one, and then is reported as
  `Outcome.PREEMPTED` with the time that it has run; its home site decides it again. No other job is handed to the batch
  system as one that it may end.
"""

from grms.daemon.pacing import pause_after
from grms.lrms import base
from grms.site.model.commands import (
    AnswerOffer,
    AnswerStatus,
    LrmsCancel,
    Refusal,
    Refuse,
    SendReport,
)
from grms.site.model.events import (
    LrmsRefused,
    OfferReceived,
    ProgramCame,
    ProgramsAway,
    ReportAnswered,
    ReportFailed,
    ResolveReceived,
    WithdrawReceived,
)
from grms.site.model.jobs import GuestJob, GuestRef, Load, OfferId, Request
from grms.site.model.lifecycle import GuestState, JobState, Outcome
from grms.site.model.partners import PartnerBook
from grms.site.model.records import (
    GuestAccepted,
    GuestAcknowledged,
    GuestCharged,
    GuestConfirmed,
    GuestDeclined,
    GuestKept,
    GuestPreemptible,
    GuestProtected,
    GuestReserved,
    GuestWithdrawn,
    JobCancelRequested,
    JobEnded,
    JobLeaving,
)
from grms.site.model.state_tables import StateTables
from grms.site.model.translation import NoMeaningError
from grms.site.scheduler.exchange_decisions import AS_EVER, Handing, takes, why_not_taken
from grms.site.scheduler.local_jobs import Owner, accept, look_up
from grms.site.scheduler.transaction import Transaction

_NUMBER_MAX = 2**63 - 1


class GuestJobHandler(Owner[GuestJob]):
    """Handles partners' questions, and the jobs they have sent."""

    def __init__(self, memory: StateTables) -> None:
        self.memory = memory

    # --- questions -----------------------------------------------------------------------------

    def offer_received(self, event: OfferReceived, transaction: Transaction) -> None:
        """Answers an offer; the same offer always gets the same answer."""
        book = self._book(event, transaction)
        if book is None:
            return
        offer = event.offer
        answer = book.answer_to(offer)
        if isinstance(answer, GuestJob) and _differs(answer, event):
            self._dispute(event, book, transaction)
        elif answer is not None or book.is_stale(offer):
            transaction.do(AnswerOffer(event.id, isinstance(answer, GuestJob)))
        else:
            self._decide(event, book, transaction)

    def _decide(self, event: OfferReceived, book: PartnerBook, transaction: Transaction) -> None:
        offer = event.offer
        if book.incompatible:
            reason = f"{book.name} speaks version {book.incompatible} of the protocol"
            transaction.do(Refuse(event.id, Refusal.PRECONDITION, reason))
            return
        if event.settled_below > offer.number:
            reason = f"settled_below is {event.settled_below}; the offer itself is {offer.number}"
            transaction.do(Refuse(event.id, Refusal.INVALID, reason, "settled_below"))
            return
        if self._answers_full(book, offer):
            self._refuse_at_limit(event.id, book, transaction)
            return
        unused = (
            book.budget.left(transaction.now, self.memory.settings.limits.unused_acceptances) == 0
        )
        here = self._in_our_names(event)
        handing = None
        if not unused and here is not None and self._within_limits(here, book, transaction.now):
            handing = self._wanted(event, here, book, transaction.now)
        if here is not None and handing is not None:
            transaction.note(
                GuestAccepted(
                    transaction.now,
                    GuestRef(event.partner, offer),
                    event.settled_below,
                    event.request,
                    event.payload,
                    None if here == event.request else here.needs,
                )
            )
            if event.reserve:
                transaction.note(GuestReserved(transaction.now, GuestRef(event.partner, offer)))
            self._note_handing(event, handing, transaction)
            guest = book.guests[offer]
            transaction.do(AnswerOffer(event.id, accepted=True))
            if not guest.reserved:
                transaction.submit(guest, lookup=False)
        else:
            transaction.note(
                GuestDeclined(transaction.now, GuestRef(event.partner, offer), event.settled_below)
            )
            book.budget.declined += unused
            transaction.do(AnswerOffer(event.id, accepted=False, unused=unused))

    def _note_handing(
        self, event: OfferReceived, handing: Handing, transaction: Transaction
    ) -> None:
        ref, now = GuestRef(event.partner, event.offer), transaction.now
        as_set_up = handing is AS_EVER and self.memory.settings.preempt_guests
        if handing.preemptible or (as_set_up and _may_run_again(event)):
            transaction.note(GuestPreemptible(now, ref))
        if handing.protected:
            transaction.note(GuestProtected(now, ref))
        if handing.charge is not None:
            transaction.note(GuestCharged(now, ref, handing.charge))

    @staticmethod
    def _dispute(event: OfferReceived, book: PartnerBook, transaction: Transaction) -> None:
        book.disputed += 1
        offer = f"{event.offer.epoch}/{event.offer.number}"
        reason = (
            f"offer {offer} of {book.name} was another job's before: {book.name} works with an "
            f"older copy of its journal"
        )
        transaction.do(Refuse(event.id, Refusal.DISPUTED, reason, "offer"))

    def _within_limits(self, request: Request, book: PartnerBook, now: float) -> bool:
        why = why_not_taken(self.memory, book, request, now)
        if why:
            book.limited = why
            book.declined_limited += 1
        return not why

    def _in_our_names(self, event: OfferReceived) -> Request | None:
        # What a partner's job asks for here; None where one of its names has no meaning.
        needs = event.request.needs
        if needs is None:
            return event.request
        load = self.memory.load(event.load)
        guarded = frozenset[str]()
        if load is not None and load.nodes is not None:
            guarded = load.nodes.guarded_features
        try:
            return Request.of(self.memory.settings.translation.local(event.partner, needs, guarded))
        except NoMeaningError as error:
            self.memory.book(event.partner).no_meaning = str(error)
            return None

    def _wanted(
        self, event: OfferReceived, request: Request, book: PartnerBook, now: float
    ) -> Handing | None:
        settings, load = self.memory.settings, self.memory.load(event.load)
        policy = settings.transfer.get(event.partner)
        if load is not None:
            request = load.named(request, guest=True)
        if not (
            policy is not None
            and book.reachable  # or the job's end could not be reported
            and not book.duplicated
            and not self.memory.draining
            and not self.memory.guarded
            and load is not None
            and not load.refusal(request)
            and len(book.guests) < settings.limits.guests_open
            and len(event.payload) <= settings.limits.payload_bytes
            and (now >= book.away_until or not event.to_fetch)
        ):
            return None
        rerun = _may_run_again(event)
        return takes(
            policy,
            self.memory,
            book,
            request,
            load,
            now=now,
            rerun=rerun,
            left=event.left,
            checkpoint=event.checkpoint,
        )

    def resolve_received(self, event: ResolveReceived, transaction: Transaction) -> None:
        """Answers what became of an offer, and starts a job whose place was held until now."""
        book = self._book(event, transaction)
        if book is None:
            return
        answer = book.answer_to(event.offer)
        if answer is None and book.is_stale(event.offer):
            answer = GuestState.DECLINED
        confirmed = event.confirm and isinstance(answer, GuestJob) and answer.reserved
        if confirmed and isinstance(answer, GuestJob):
            transaction.note(GuestConfirmed(transaction.now, answer.ref))
        transaction.do(_status(event.id, answer))
        if confirmed and isinstance(answer, GuestJob):
            transaction.submit(answer, lookup=False)

    def withdraw_received(self, event: WithdrawReceived, transaction: Transaction) -> None:
        """Ensures that an offer will not be accepted, or answers that it was."""
        book = self._book(event, transaction)
        if book is None:
            return
        answer = book.answer_to(event.offer)
        if answer is None:
            if not book.is_stale(event.offer):
                if self._answers_full(book, event.offer):
                    self._refuse_at_limit(event.id, book, transaction)
                    return
                transaction.note(
                    GuestWithdrawn(transaction.now, GuestRef(event.partner, event.offer))
                )
            answer = GuestState.WITHDRAWN
        elif isinstance(answer, GuestJob) and answer.reserved:
            self._free(answer, transaction, cancel=event.cancel)
        elif isinstance(answer, GuestJob) and event.cancel:
            self._cancel(answer, transaction)
        transaction.do(_status(event.id, answer))

    @staticmethod
    def _cancel(guest: GuestJob, transaction: Transaction) -> None:
        if guest.completion is None and not guest.cancel_requested:
            transaction.note(JobCancelRequested(transaction.now, guest.ref))
            transaction.do(LrmsCancel(transaction.cause, guest.lrms_key))

    def _free(self, guest: GuestJob, transaction: Transaction, *, cancel: bool) -> None:
        # The job has never been more than a place: nothing of it is anywhere.
        if cancel:
            transaction.note(JobCancelRequested(transaction.now, guest.ref))
        self.end(
            guest,
            base.LrmsEnd(Outcome.CANCELLED if cancel else Outcome.LOST, transaction.now, 0.0),
            transaction,
        )

    def time_passed(self, transaction: Transaction) -> None:
        """Gives back places whose jobs have not come in time, and tells their home sites."""
        most = self.memory.settings.confirm_time_max
        for guest in list(self.memory.reserved.values()):
            if transaction.now - guest.accept_time > most:
                self._free(guest, transaction, cancel=False)

    def _book(
        self, event: OfferReceived | ResolveReceived | WithdrawReceived, transaction: Transaction
    ) -> PartnerBook | None:
        book = self.memory.books.get(event.partner)
        if book is None or not book.listed:
            reason = f"{event.partner!r} is no partner of this site"
            transaction.do(Refuse(event.id, Refusal.FORBIDDEN, reason))
            return None
        offer = event.offer
        if not (1 <= offer.epoch <= _NUMBER_MAX and 1 <= offer.number <= _NUMBER_MAX):
            reason = f"offer {offer.number} of epoch {offer.epoch}; both must be at least 1"
            transaction.do(Refuse(event.id, Refusal.INVALID, reason, "offer"))
            return None
        return book

    def _answers_full(self, book: PartnerBook, offer: OfferId) -> bool:
        # A new epoch makes room.
        most = self.memory.settings.limits.answers_kept
        return offer.epoch == book.epoch and len(book.answered) >= most

    @staticmethod
    def _refuse_at_limit(event_id: int, book: PartnerBook, transaction: Transaction) -> None:
        reason = (
            f"{len(book.answered)} answered offers are not settled, the most this site remembers "
            f"of one partner; settle some of them first"
        )
        transaction.do(Refuse(event_id, Refusal.EXHAUSTED, reason))

    def programs_away(self, event: ProgramsAway, transaction: Transaction) -> None:
        """Declines a partner's offers for a while, as a script of one of its jobs does not arrive.

        The pause doubles with each attempt; a successful one ends it.
        """
        book, settings = self.memory.book(event.partner), self.memory.settings
        book.away_times += 1
        pause = pause_after(book.away_times, settings.probe_first_s, settings.probe_most_s)
        book.away_why, book.away_until = event.reason, transaction.now + pause

    def program_came(self, event: ProgramCame, transaction: Transaction) -> None:
        """Accepts a partner's offers again."""
        book = self.memory.book(event.partner)
        book.away_times, book.away_why, book.away_until = 0, "", transaction.now

    # --- the batch system ----------------------------------------------------------------------

    def started(self, guest: GuestJob, transaction: Transaction) -> None:
        """Counts a run."""
        self.memory.books[guest.partner].budget.note_run(transaction.now)

    def refused(self, guest: GuestJob, news: LrmsRefused, transaction: Transaction) -> None:
        """Sends a job home that the batch system refuses, or that was not submitted to it."""
        if guest.begun:
            # A batch system that has forgotten that, and refuses it now: it may have run to its end.
            self.end(guest, base.LrmsEnd(Outcome.UNKNOWN, transaction.now, 0.0), transaction)
            transaction.do(LrmsCancel(transaction.cause, guest.lrms_key))
            return
        said = news.reason
        if not news.undelivered:
            said = f"the batch system refused it: {said}"
        self._give_back(guest, said, transaction.now, transaction)

    def hindered(self, guest: GuestJob, news: base.Hindered, transaction: Transaction) -> None:
        """Has a job leave the queue if it waits for something other than room; it then goes home.

        A job that has started once stays: it may have had effects. So does one that an operator lets wait.
        """
        if not news.reason or news.deferred or guest.begun or guest.cancel_requested:
            return
        if guest.state not in {JobState.SUBMITTING, JobState.QUEUED}:
            return
        self.memory.book(guest.partner).given_back_why = news.reason
        guest.told_once = not guest.leaving
        transaction.note(JobLeaving(transaction.now, guest.ref))
        transaction.do(LrmsCancel(transaction.cause, guest.lrms_key, only_waiting=True))

    def _give_back(
        self, guest: GuestJob, why: str, end_time: float, transaction: Transaction
    ) -> None:
        book = self.memory.book(guest.partner)
        book.given_back += 1
        book.given_back_why, book.given_back_time = why, transaction.now
        self.end(guest, base.LrmsEnd(Outcome.LOST, end_time, 0.0), transaction)

    def let_go(self, guest: GuestJob, end: base.LrmsEnd, transaction: Transaction) -> None:
        """Sends a job home that the batch system has released."""
        why = self.memory.book(guest.partner).given_back_why
        self._give_back(guest, why or "it was not started here", end.end_time, transaction)

    def end(self, guest: GuestJob, end: base.LrmsEnd, transaction: Transaction) -> None:
        """Notes the end of a guest job, and reports it."""
        budget = self.memory.books[guest.partner].budget
        if guest.state is not JobState.RUNNING:
            if end.run_time > 0:
                budget.note_run(transaction.now)  # between two looks at the batch system
            elif guest.reserved or guest.cancel_requested:
                # Its home site did not want it run; where this site could not, nobody is to blame.
                budget.note_unused(transaction.now)
        end_time = max(end.end_time, guest.accept_time)  # by another clock
        if end.outcome is Outcome.PREEMPTED and end.kept > 0:
            kept = min(end.kept, end.run_time)
            transaction.note(GuestKept(transaction.now, guest.ref, kept))
        transaction.note(
            JobEnded(transaction.now, guest.ref, end.outcome, end_time, end.run_time, "")
        )
        self.report(guest, transaction)

    # --- reports -------------------------------------------------------------------------------

    def report(self, guest: GuestJob, transaction: Transaction) -> None:
        """Reports the end of a job to its home site."""
        completion = guest.completion
        assert completion is not None
        settings = self.memory.settings
        delay = pause_after(guest.attempts, settings.retry_first_s, settings.retry_most_s)
        guest.reporting = True
        transaction.do(SendReport(transaction.cause, guest.partner, completion, delay))

    def report_answered(self, event: ReportAnswered, transaction: Transaction) -> None:
        """Forgets jobs whose home site has their end."""
        book = self.memory.books.get(event.partner)
        if book is None:
            return
        for offer in event.offers:
            guest = book.guests.get(offer)
            if guest is not None and guest.completion is not None:
                transaction.note(GuestAcknowledged(transaction.now, guest.ref))

    def report_failed(self, event: ReportFailed, transaction: Transaction) -> None:
        """Reports again, after a pause."""
        book = self.memory.books.get(event.partner)
        if book is None:
            return
        for offer in event.offers:
            guest = book.guests.get(offer)
            if guest is not None and guest.reporting:
                guest.attempts += 1
                self.report(guest, transaction)

    # --- after a restart -----------------------------------------------------------------------

    def take_up(self, load: Load | None, transaction: Transaction) -> None:
        """Resumes every guest job whose end is not acknowledged."""
        waits = None if load is None else load.waits
        for book in self.memory.books.values():
            for guest in list(book.guests.values()):
                if guest.completion is not None:
                    self.report(guest, transaction)
                    continue
                if guest.reserved:
                    continue
                new = guest.state is JobState.SUBMITTING and not guest.cancel_requested
                if new and waits is not None and waits(guest.lrms_key):
                    accept(guest, transaction)
                else:
                    look_up(guest, transaction)


def _may_run_again(event: OfferReceived) -> bool:
    needs = event.request.needs
    return event.rerun and not (needs is not None and needs.requeue is False)


def _differs(guest: GuestJob, event: OfferReceived) -> bool:
    return (guest.request, guest.payload) != (event.request, event.payload)


def _status(cause: int, answer: GuestState | GuestJob | None) -> AnswerStatus:
    if not isinstance(answer, GuestJob):
        return AnswerStatus(cause, answer)
    ended = answer.completion
    return AnswerStatus(cause, GuestState.ENDED if ended else GuestState.ACCEPTED, ended)
