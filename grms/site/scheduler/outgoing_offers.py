"""The offers of a home job: the decision where it runs, and every way to its outcome.

The order of steps that keeps a job from being lost and from running twice:

- That a job is offered, or kept, is journaled before the offer is sent or the batch system gets it. After a
  restart an offer is therefore known, and its outcome is asked for.
- While an outcome is open the job is neither offered elsewhere nor run at home. An answer closes it. Without
  one the partner is asked (RESOLVING); if it has never heard of the offer, the offer is withdrawn
  (WITHDRAWING): the partner then declines it should it still arrive.
- The end of a delegated job is journaled before the partner may forget it.

Operators see jobs that take too long at a partner, or on the way to one. A deadline has no other effect, unless an undecided
job is at a faulty partner and the site decides lost jobs again.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from grms.daemon.pacing import pause_after
from grms.site.model.commands import LrmsCancel, ReplyPreview, SendOffer, SendResolve, SendWithdraw
from grms.site.model.events import (
    OfferAnswered,
    OfferFailed,
    StateFetched,
    StatusAnswered,
    StatusFailed,
)
from grms.site.model.jobs import (
    NO_EXIT,
    Completion,
    HomeJob,
    Load,
    OfferId,
    Request,
    StateThere,
    Weighed,
    lrms_key,
)
from grms.site.model.lifecycle import GuestState, JobState, Outcome
from grms.site.model.partners import PartnerBook, asking_order, believable, senseless, violation
from grms.site.model.records import (
    AbandonedSettled,
    JobAbandoned,
    JobDeclined,
    JobDelegated,
    JobExited,
    JobKept,
    JobOffered,
    JobPromised,
    JobReturned,
    JobSentHome,
    JobUnplaced,
    ReportDisbelieved,
    RerunAllowed,
    StateCame,
    StateMissed,
)
from grms.site.model.settings import Requeue, SiteSettings
from grms.site.model.state_tables import StateTables
from grms.site.scheduler.exchange_decisions import (
    entrusts,
    held_to,
    limits_in_the_way,
    owed_for,
    wants,
    why_not_given,
)
from grms.site.scheduler.peer_faults import PeerFaultHandler
from grms.site.scheduler.transaction import Transaction

UNDECIDED = (JobState.OFFERING, JobState.RESOLVING, JobState.WITHDRAWING)
"""A partner may have the job, and nobody knows yet."""

AWAY = (JobState.DELEGATED, JobState.SUSPECT)
"""A partner has the job."""


RETURNS_WITH_STATE: Final = 10
"""So many times as often as with nothing kept, a partner may send a job home with what it has written: nobody here can say
how much of its work that is."""

UNPLACED_AT_ONCE: Final = 100
"""Most jobs that can run nowhere so far about which partners are asked at one moment; the others are asked about next."""


def deadline_of(job: HomeJob, settings: SiteSettings) -> float:
    """Returns when a job at a partner, or offered to one, becomes overdue, seconds; infinity for a job at home."""
    if job.state in UNDECIDED:
        return job.offer_time + settings.undecided_time_max
    if job.state in AWAY:
        return job.accept_time + job.request.requested_time + settings.delegated_time_max
    return math.inf


def begin_decision(job: HomeJob, memory: StateTables, now: float) -> None:
    """Begins a decision, or resumes one after a restart: partners asked before still count."""
    settings = memory.settings
    most = settings.questions
    job.questions_left = max(0, most - job.put) if most > 0 else most
    job.remaining = asking_order(settings.location, memory.books, now, in_turn=most > 0)
    job.decision_time = now


def offer_of(
    job: HomeJob, settled_below: int, cause: int = 0, *, reserve: bool = False
) -> SendOffer:
    """Returns the offer of a job to its partner, the same whenever it is made; the journal has it already.

    Args:
        job: whose offer it is.
        settled_below: all offers below this number are settled.
        cause: the event that it follows from; 0 where it is only shown.
        reserve: a place is asked for.
    """
    return SendOffer(
        cause,
        job.partner,
        job.offer,
        settled_below,
        job.request,
        job.program,
        reserve=reserve,
        rerun=job.rerun,
        checkpoint=job.checkpoint if job.rerun else 0.0,
        left=job.left,
    )


class OfferHandler:
    """Decides where home jobs run, and follows their offers to the outcome."""

    def __init__(self, memory: StateTables, faults: PeerFaultHandler) -> None:
        self.memory = memory
        self.faults = faults

    # --- the decision --------------------------------------------------------------------------

    def decide(
        self, job: HomeJob, load: Load | None, transaction: Transaction, *, offer: bool = True
    ) -> None:
        """Offers a job to the next partner, or keeps it (paper 003, section 3).

        Partners are ordered when the decision begins; whether home would rather keep the job is checked again before
        each offer, as time passes between them. Without `offer` one that can run here is kept.
        """
        if job.cancel_requested:
            self._end_cancelled(job, "cancelled before it ran", transaction)
            return
        if job.state_there is not None:
            transaction.publish(job)  # it is decided when what it goes on from has come
            return
        settings = self.memory.settings
        load = self.memory.load(load)
        unfit = self.unfit(job.request, job.unfit, load, job.sites)
        book = self._next(job, load, unfit, transaction) if offer or unfit else None
        if book is not None:
            self._offer(job, book, transaction)
            return
        limits = [limits_in_the_way(self.memory, job, transaction.now)]
        limits.append(self._sent_home_too_often(job))
        limited = "; ".join(filter(None, limits))
        if unfit:
            reason = f"{unfit}; no partner has taken it so far"
            if limited:
                reason = f"{reason}; {limited}"
            transaction.note(JobUnplaced(transaction.now, job.job, reason))
            transaction.publish(job)
            return
        transaction.note(JobKept(transaction.now, job.job))
        job.limited = limited
        # One that was received before the journal was put back may have been submitted since.
        lookup = job.lrms_key != lrms_key(settings.name, self.memory.epoch, job.job)
        transaction.submit(job, lookup=lookup)
        transaction.publish(job)

    def _next(
        self, job: HomeJob, load: Load | None, unfit: str, transaction: Transaction
    ) -> PartnerBook | None:
        # Returns the partner that a job is to be offered to next; None if it is not offered any more.
        settings, books = self.memory.settings, self.memory.books
        if job.here:
            job.remaining = []
        elif job.remaining is None:
            begin_decision(job, self.memory, transaction.now)
        late = transaction.now - job.decision_time > settings.decision_time_max
        assert job.remaining is not None
        job.weighed = Weighed(load, "")
        while job.remaining and job.questions_left and load is not None and not late:
            name = job.remaining[0]
            book = books[name]
            policy = settings.transfer.get(name)
            del job.remaining[0]
            if policy is None or not self._askable(book, job, transaction.now):
                continue
            request = load.named(job.request, guest=False)
            refused = unfit or load.refusal(request)
            if not refused and wants(policy, self.memory, book, request, load, own=True):
                job.weighed = Weighed(load, name)
                break
            if entrusts(policy, book, job.request, load, transaction):
                job.questions_left -= 1
                return book
        job.remaining = None
        return None

    def preview(
        self, job: HomeJob, load: Load | None, transaction: Transaction, held: str
    ) -> ReplyPreview:
        """Returns what would become of a job that is not submitted: as if every partner declined.

        What it waits for first, `held`, is for the user to know; the decision is that of now.
        """
        now = transaction.now
        load = self.memory.load(load)
        unfit = self.unfit(job.request, job.unfit, load, job.sites)
        begin_decision(job, self.memory, now)
        order = list(job.remaining or ())
        asked: list[str] = []
        while (book := self._next(job, load, unfit, transaction)) is not None:
            asked.append(book.name)
            job.asked += (book.name,)
        kept_for = "" if job.weighed is None else job.weighed.kept_for
        if unfit:
            reason = unfit
        elif load is None:
            reason = "the batch system does not say how busy it is, so no partner is asked"
        elif kept_for:
            reason = f"{_how_busy(load)}; its policy for {kept_for} has it run here"
        else:
            reason = f"{_how_busy(load)}{'' if asked else '; there is no partner to ask'}"
        considered = order[: order.index(kept_for)] if kept_for else order
        passed_over = tuple(
            (name, self._why_not(job, name, now))
            for name in ([] if load is None else considered)
            if name not in asked
        )
        return ReplyPreview(
            transaction.cause,
            asked=tuple(asked),
            kept=not unfit,
            reason=reason,
            passed_over=passed_over,
            held=held,
        )

    def _why_not(self, job: HomeJob, name: str, now: float) -> str:
        settings, book = self.memory.settings, self.memory.books[name]
        policy = settings.transfer.get(name)
        if policy is None:
            return "no jobs are exchanged with it"
        if why := self.why_not_ask(book, job, now):
            return why
        if not job.questions_left:
            return f"no more than {settings.questions} partners are asked about one job"
        if held_to(policy) is None:
            return "the circuit breaker has stopped the exchange"
        return "it has as much from here as is fair, or has broken its promises"

    def unfit(
        self, request: Request, said: str, load: Load | None, sites: Sequence[str] = ()
    ) -> str:
        """Returns why no batch system of this site ever runs such a job; empty where it may.

        Args:
            request: of the job.
            said: what the batch system has said to its user.
            load: of the batch system.
            sites: that may run it; empty for any.
        """
        if sites and self.memory.settings.name not in sites:
            return f"its user wants it at {' or '.join(sites)}"
        size = self.memory.settings.processors
        if request.processors > size:
            return f"processors is {request.processors}; this site has {size}"
        if said:
            return f"the batch system of this site cannot run it: {said}"
        return "" if load is None else load.lacks(load.named(request, guest=False))

    def partners(self) -> list[str]:
        """Returns the names of the partners with which jobs are exchanged."""
        transfer = self.memory.settings.transfer
        return [
            name for name, book in self.memory.books.items() if book.listed and name in transfer
        ]

    def is_site(self, name: str) -> bool:
        """Returns whether a name is that of this site, or of a partner with which jobs are exchanged."""
        return name == self.memory.settings.name or name in self.partners()

    def any_could(self, request: Request, sites: Sequence[str] = ()) -> bool:
        """Returns whether a partner is known with which jobs are exchanged, and that could run such a job.

        `sites` are those that may run it; empty for any.
        """
        books = self.memory.books
        return any(
            (not sites or name in sites)
            and (not books[name].processors or books[name].could_run(request))
            for name in self.partners()
        )

    def time_passed(self, load: Load | None, transaction: Transaction) -> None:
        """Asks all partners once more about jobs that can run neither here nor at those that were asked; reports overdue ones.

        The pauses between questions double. With on_lost "resubmit" overdue jobs are also acted on.
        """
        settings = self.memory.settings
        due = [
            job
            for job in self.memory.unplaced.values()
            if job.state is JobState.RECEIVED
            and transaction.now - job.unplaced_time
            >= pause_after(job.unplaced, settings.probe_first_s, settings.probe_most_s)
        ]
        for job in due[:UNPLACED_AT_ONCE]:
            self.decide(job, load, transaction)
        for book in list(self.memory.books.values()):
            for job in [*book.undecided.values(), *book.open.values()]:
                if job.partner == book.name and not job.overdue:
                    self._check_deadline(job, book, load, transaction)

    def _check_deadline(
        self, job: HomeJob, book: PartnerBook, load: Load | None, transaction: Transaction
    ) -> None:
        deadline = deadline_of(job, self.memory.settings)
        if transaction.now <= deadline:
            return
        job.overdue = True
        if job.state in UNDECIDED:
            waited = transaction.now - job.offer_time
            job.reason = f"{book.name} has not said for {waited:.0f} s whether it has it"
            if book.faulty and self.memory.settings.on_lost == "resubmit":
                self.abandon(job, load, transaction)
                return
        else:
            waited = transaction.now - job.accept_time
            job.reason = f"accepted by {book.name} {waited:.0f} s ago, and not ended"
        job.revision += 1
        transaction.publish(job)

    def _askable(self, book: PartnerBook, job: HomeJob, now: float) -> bool:
        return book.name not in job.asked and self.can_ask(book, job, now)

    def can_ask(self, book: PartnerBook, job: HomeJob, now: float) -> bool:
        """Returns whether a local user's job can be offered to a partner now. `now` is in seconds."""
        return not self.why_not_ask(book, job, now)

    def why_not_ask(self, book: PartnerBook, job: HomeJob, now: float) -> str:
        """Returns why a local user's job cannot be offered to a partner now; empty if it can. `now` is in seconds."""
        if job.sites and book.name not in job.sites:
            why = "its user wants it elsewhere"
        elif not (book.listed and book.reachable):
            why = "it cannot be reached" if book.listed else "it is no partner any more"
        elif book.faulty or book.incompatible:
            why = "it does not keep to the protocol"
        elif book.duplicated:
            why = "two daemons use its name"
        elif not book.could_run(job.request):
            why = "it could not run such a job, by what it says of its size"
        elif len(book.undecided) >= self.memory.settings.limits.offers_undecided:
            why = "too many offers to it are open"
        elif book.returns.rests(job.user, job.request, now):
            why = "it has returned such jobs unstarted"
        else:
            why = self._sent_home_too_often(job) or why_not_given(self.memory, book, job, now)
        return why

    def _sent_home_too_often(self, job: HomeJob) -> str:
        settings, times = self.memory.settings, job.times_sent_home_in_all
        rules = settings.account
        most = settings.empty_returns if rules is None else rules.empty_returns
        if times >= most * RETURNS_WITH_STATE:
            return f"partners have sent it home {times} times"
        empty = times - sum(each.kept_times for each in job.sent_home)
        if empty < most:
            return ""
        with_nothing = " with nothing kept" if job.checkpoint else ""
        return f"partners have sent it home {empty} times{with_nothing}"

    def _offer(self, job: HomeJob, book: PartnerBook, transaction: Transaction) -> None:
        # What is settled before this offer, which is not.
        settled_below = book.settled()
        transaction.note(JobOffered(transaction.now, job.job, book.name, book.next_number))
        self.allow_rerun(job, transaction)
        transaction.do(offer_of(job, settled_below, transaction.cause))
        transaction.publish(job)

    def allow_rerun(self, job: HomeJob, transaction: Transaction) -> None:
        """Notes that a job's offer says that it may be run again, if so."""
        if _may_run_again(job, self.memory.settings.requeue):
            number = job.offer_number
            transaction.note(RerunAllowed(transaction.now, job.job, job.partner, number))

    def undecided_offer(self, partner: str, offer: OfferId) -> SendOffer | None:
        """Returns an offer whose outcome is asked for, as it was made; `None` if there is none."""
        job = self._undecided(partner, offer)
        if job is None or job.state is not JobState.RESOLVING or job.confirms:
            return None
        return offer_of(job, self.memory.books[partner].settled())

    # --- answers -------------------------------------------------------------------------------

    def offer_answered(self, event: OfferAnswered, transaction: Transaction) -> None:
        """Delegates the job, or goes on to the next partner."""
        job = self._undecided(event.partner, event.offer)
        self.answered_well(event.partner)
        if job is None:
            return
        if event.accepted:
            self._delegated(job, transaction)
        else:
            self._declined(job, event.load, transaction)

    def answered_well(self, partner: str) -> None:
        """Notes that a partner has answered an offer as the protocol says."""
        book = self.memory.books.get(partner)
        if book is not None and not book.faulty:
            book.faults_in_row = 0

    def offer_failed(self, event: OfferFailed, transaction: Transaction) -> None:
        """Finds out what became of the offer, if it may have arrived."""
        job = self._undecided(event.partner, event.offer)
        if job is None:
            return
        if job.state is JobState.OFFERING:
            if not event.sent:
                self._declined(job, event.load, transaction)
            elif self.gives_up(job):
                self.abandon(job, event.load, transaction)
            else:
                job.move(JobState.RESOLVING)
                self.ask(job, transaction)
                transaction.publish(job)

    def status_answered(self, event: StatusAnswered, transaction: Transaction) -> None:
        """Continues with what has become of an offer."""
        book = self.memory.books.get(event.partner)
        if book is None:
            return
        if book.gave_up(event.offer):
            self._withdrawal_answered(event, book, transaction)
            return
        job = book.away(event.offer)
        if job is None or job.question != event.question:
            return
        if senseless(job, event):
            self._makes_no_sense(event, book, transaction)
            return
        job.question = 0
        job.attempts = 0
        if event.completion is not None:
            self.completed(job, event.completion, event.load, transaction)
        elif job.state in UNDECIDED:
            self._outcome(job, event, transaction)
        elif event.status is GuestState.ACCEPTED:
            self._still_there(job, book, transaction)
        else:
            self._forgotten(job, event.load, transaction)

    def _withdrawal_answered(
        self, event: StatusAnswered, book: PartnerBook, transaction: Transaction
    ) -> None:
        number = event.offer.number
        withdrawal = book.abandoned[number]
        if withdrawal == event.question:
            if event.status is None:
                self._makes_no_sense(event, book, transaction)
            else:
                transaction.note(AbandonedSettled(transaction.now, event.partner, number))
        elif not withdrawal:
            # The answer to what was asked before it was given up on.
            self.withdraw_abandoned(book, number, 0.0, transaction)

    def _makes_no_sense(
        self, event: StatusAnswered, book: PartnerBook, transaction: Transaction
    ) -> None:
        said = "unknown" if event.status is None else event.status.value
        offer = f"{event.offer.epoch}/{event.offer.number}"
        self.faults.fault(
            book, f"it says {said} of offer {offer}, which cannot be the answer", transaction
        )
        failed = StatusFailed(event.id, event.load, event.partner, event.offer, event.question)
        self.status_failed(failed, transaction)

    def _outcome(self, job: HomeJob, event: StatusAnswered, transaction: Transaction) -> None:
        if event.status is GuestState.ACCEPTED:
            self._delegated(job, transaction)
        elif event.status is None:
            if job.state is JobState.RESOLVING:
                job.move(JobState.WITHDRAWING)
                transaction.publish(job)
            self.ask(job, transaction)
        else:
            self._declined(job, event.load, transaction)

    def _delegated(self, job: HomeJob, transaction: Transaction) -> None:
        transaction.note(JobDelegated(transaction.now, job.job))
        if held_to(self.memory.settings.transfer.get(job.partner)) is not None:
            transaction.note(JobPromised(transaction.now, job.job))
        job.remaining = None
        if not job.to_end:
            transaction.keep_place(job)
        if not job.cancel_told:
            # A question from before could be answered by "never heard of", which was true then.
            job.question = 0
        transaction.publish(job)

    def take_up(self, job: HomeJob, transaction: Transaction) -> None:
        """Resumes, after a restart, a job that is at a partner."""
        if job.to_end:
            self.ask(job, transaction)
        else:
            transaction.keep_place(job)  # this site may have died before it was

    def _declined(self, job: HomeJob, load: Load | None, transaction: Transaction) -> None:
        transaction.note(JobDeclined(transaction.now, job.job))
        self.decide(job, load, transaction)

    def _still_there(self, job: HomeJob, book: PartnerBook, transaction: Transaction) -> None:
        if job.state is JobState.SUSPECT and not book.lost:
            job.move(JobState.DELEGATED)
            job.reason = ""
            transaction.publish(job)

    def _forgotten(self, job: HomeJob, load: Load | None, transaction: Transaction) -> None:
        # The partner had accepted the job and does not know it: its journal is lost.
        if job.cancel_requested:
            reason = f"cancelled; {job.partner} had forgotten it"
            self._end_cancelled(job, reason, transaction)
            return
        self.suspect(job, f"{job.partner} does not know it any more", load, transaction)

    def suspect(
        self, job: HomeJob, reason: str, load: Load | None, transaction: Transaction
    ) -> None:
        """Doubts that a partner will end a job, or decides the job again."""
        if job.state is JobState.DELEGATED:
            job.move(JobState.SUSPECT)
        job.reason = reason
        if self.memory.settings.on_lost == "resubmit":
            self.abandon(job, load, transaction)
        else:
            transaction.publish(job)

    def status_failed(self, event: StatusFailed, transaction: Transaction) -> None:
        """Asks again, after a pause."""
        book = self.memory.books.get(event.partner)
        if book is None:
            return
        number = event.offer.number
        if book.gave_up(event.offer):
            if book.abandoned[number] in {0, event.question}:
                self.withdraw_abandoned(
                    book, number, self.memory.settings.retry_most_s, transaction
                )
            return
        job = book.away(event.offer)
        if job is None or job.question != event.question:
            return
        job.question = 0
        if self.gives_up(job):
            self.abandon(job, event.load, transaction)
            return
        job.attempts += 1
        if job.state in UNDECIDED or job.to_end or book.reachable:
            self.ask(job, transaction)
        # Else it is asked about again when its partner is up again.

    def completed(
        self, job: HomeJob, completion: Completion, load: Load | None, transaction: Transaction
    ) -> None:
        """Records that a partner has run a job to its end, as far as the report is believable."""
        partner, number = job.partner, job.offer_number
        lie = violation(job, completion, transaction.now, self.memory.settings)
        reason = f"ran at {partner}"
        if completion.said:
            reason = (
                f"{reason}, which says in a word of a later version how it ended: {completion.said}"
            )
        if lie:
            completion = believable(job, completion, transaction.now)
            reason = f"{reason}, whose report cannot be true: {lie}"
        never_ran = completion.outcome is Outcome.LOST and completion.run_time == 0.0
        taken_back = completion.outcome is Outcome.CANCELLED and job.take_back
        sent_home = completion.outcome is Outcome.PREEMPTED and job.rerun
        if (never_ran or taken_back or sent_home) and not job.cancel_requested:
            if sent_home:
                self._sent_home(job, completion, transaction)
            else:
                if never_ran and not job.confirms:  # a place that nobody has confirmed says nothing
                    self._came_back(job, transaction.now)
                transaction.note(JobReturned(transaction.now, job.job))
            if sent_home:
                self._decide_again(job, load, transaction)
            else:
                self.decide(job, load, transaction)
        elif never_ran:
            self._end_cancelled(job, f"cancelled; {partner} had not started it", transaction)
        elif sent_home:
            cancelled = replace(completion, outcome=Outcome.CANCELLED)
            self._completed(job, cancelled, f"cancelled; {partner} had ended it", transaction)
        else:
            self._completed(job, completion, reason, transaction)
        if lie:
            transaction.note(ReportDisbelieved(transaction.now, partner, number, lie))

    def _sent_home(self, job: HomeJob, completion: Completion, transaction: Transaction) -> None:
        if completion.run_time > 0:
            self.memory.books[job.partner].returns.ran(job.user, job.request)
        state, partner = None, job.partner
        if job.checkpoint and completion.kept > 0:
            state = StateThere(partner, job.offer, completion.kept)
        # The journal has it, as the site may keep an account at one time and none at another.
        responded = self.memory.account is None
        transaction.note(
            JobSentHome(
                transaction.now, job.job, partner, completion.run_time, state, responded=responded
            )
        )
        kept = 0.0 if state is None else completion.kept
        self._owes(partner, job, max(0.0, completion.run_time - kept), transaction)

    def _owes(self, partner: str, job: HomeJob, lost: float, transaction: Transaction) -> None:
        # A partner with which a job has lost so many seconds of its run time.
        settings, book = self.memory.settings, self.memory.books[partner]
        owed = owed_for(
            settings.transfer.get(partner),
            book,
            lost * job.request.processors,
            settings.processors,
            transaction.now,
        )
        if owed is not None:
            transaction.note(owed)

    def state_fetched(self, event: StateFetched, transaction: Transaction) -> None:
        """Decides a job again that was sent home: what it has written has come, or cannot come."""
        job = self.memory.fetching.get(event.job)
        there = None if job is None else job.state_there
        if (
            job is None
            or there is None
            or (there.partner, there.offer) != (event.partner, event.offer)
        ):
            return
        record: StateCame | StateMissed
        if event.reason:
            record = StateMissed(transaction.now, job.job, there.partner, there.kept, event.reason)
        else:
            record = StateCame(transaction.now, job.job, there.partner, there.kept, event.restored)
        transaction.note(record)
        if event.reason and there.partner in self.memory.books:
            self._owes(there.partner, job, there.kept, transaction)
        self._decide_again(job, event.load, transaction)

    def _decide_again(self, job: HomeJob, load: Load | None, transaction: Transaction) -> None:
        # With an account a job that was sent home stands where it stood in its own queue, and is offered in the next round.
        self.decide(job, load, transaction, offer=self.memory.settings.account is None)

    def _came_back(self, job: HomeJob, now: float) -> None:
        settings = self.memory.settings
        self.memory.books[job.partner].returns.came_back(
            job.user,
            job.request,
            now,
            first_s=settings.probe_first_s,
            most_s=settings.probe_most_s,
        )

    def _completed(
        self, job: HomeJob, completion: Completion, reason: str, transaction: Transaction
    ) -> None:
        if completion.run_time > 0:
            self.memory.books[job.partner].returns.ran(job.user, job.request)
        if completion.exit != NO_EXIT:
            transaction.note(JobExited(transaction.now, job.job, completion.exit))
        transaction.end(
            job,
            outcome=completion.outcome,
            end_time=completion.end_time,
            run_time=completion.run_time,
            reason=reason,
        )

    def _end_cancelled(self, job: HomeJob, reason: str, transaction: Transaction) -> None:
        transaction.end(
            job,
            outcome=Outcome.CANCELLED,
            end_time=transaction.now,
            run_time=0.0,
            reason=reason,
        )

    def _undecided(self, partner: str, offer: OfferId) -> HomeJob | None:
        book = self.memory.books.get(partner)
        if book is None or offer.number not in book.undecided:
            return None
        return book.away(offer)

    # --- cancelling, asking and giving up ------------------------------------------------------

    def pursue_cancel(self, job: HomeJob, load: Load | None, transaction: Transaction) -> None:
        """Takes the next step of a job's cancellation."""
        state = job.state
        if state in {JobState.HELD, JobState.RECEIVED}:
            self.decide(job, load, transaction)
        elif state in {JobState.OFFERING, JobState.RESOLVING}:
            job.move(JobState.WITHDRAWING)
            self.ask(job, transaction)
        elif state is JobState.WITHDRAWING or state in AWAY:
            if self.gives_up(job):
                self.abandon(job, load, transaction)
            else:
                self.ask(job, transaction)
        else:
            transaction.do(LrmsCancel(transaction.cause, job.lrms_key))

    def ask(self, job: HomeJob, transaction: Transaction) -> None:
        """Asks what became of a job's offer, or withdraws it; one question at a time counts."""
        settings = self.memory.settings
        delay = pause_after(job.attempts, settings.retry_first_s, settings.retry_most_s)
        job.question = transaction.cause
        # Whatever makes a job one that is to end asks at once: no partner that has it is left untold.
        job.cancel_told = job.to_end
        if job.to_end or job.state is JobState.WITHDRAWING:
            transaction.do(
                SendWithdraw(transaction.cause, job.partner, job.offer, delay, job.to_end)
            )
        else:
            transaction.do(
                SendResolve(transaction.cause, job.partner, job.offer, delay, job.confirms)
            )

    def gives_up(self, job: HomeJob) -> bool:
        """Returns whether a job is decided again because its partner is lost."""
        book = self.memory.books[job.partner]
        return book.lost and self.memory.settings.on_lost == "resubmit"

    def abandon(self, job: HomeJob, load: Load | None, transaction: Transaction) -> None:
        """Decides a lost partner's job again; the partner is told when it is back."""
        self.give_up(job, transaction)
        self.decide(job, load, transaction)

    def give_up(self, job: HomeJob, transaction: Transaction) -> None:
        """Takes a job away from a partner, which is told when it is back."""
        book, number, question = self.memory.books[job.partner], job.offer_number, job.question
        transaction.note(JobAbandoned(transaction.now, job.job))
        job.reason = f"given up on at {book.name}"
        if not question:
            # Else it is withdrawn when that question has its answer, or none.
            self.withdraw_abandoned(book, number, 0.0, transaction)

    def withdraw_abandoned(
        self, book: PartnerBook, number: int, delay_s: float, transaction: Transaction
    ) -> None:
        """Tells a partner that an offer is void."""
        book.abandoned[number] = transaction.cause
        offer = OfferId(book.abandoned_epochs[number], number)
        transaction.do(SendWithdraw(transaction.cause, book.name, offer, delay_s, cancel=True))


def _may_run_again(job: HomeJob, requeue: Requeue) -> bool:
    # Whether a partner may be told so of a job. One that writes its state says that it can be, unless it says otherwise.
    said = None if job.request.needs is None else job.request.needs.requeue
    if said is None and job.checkpoint:
        said = True
    return requeue != "never" and (requeue == "allow" if said is None else said)


def _how_busy(load: Load) -> str:
    waiting = load.processors_waiting
    waits = f"jobs of {waiting} processors wait" if waiting else "nothing waits"
    return f"{load.processors_free} of {load.processors} processors are free here, and {waits}"
