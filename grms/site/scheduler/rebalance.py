"""Rounds: local users' jobs that wait in the batch system are offered again, one after the other.

The order of steps that keeps such a job from being lost and from running twice, whichever process dies between
which two steps:

- The partner is asked to hold a place (REOFFERING). Its yes starts nothing, so that an offer without an answer
  is simply withdrawn, and the job keeps waiting.
- After a yes, the batch system is told to release the job if it has not started (LEAVING). Only when it has
  confirmed that, and the journal has it (JobLeft), the partner is told to start the job (RESOLVING, with a
  confirmation), repeatedly if need be. From then on it is like any offer whose outcome is open.
- If the job has started meanwhile, it stays, and the partner is told to give up the place.
- A place is held for `confirm_time_max`. A later confirmation is answered by the end of a job that has never
  run, and home decides it again.

A round works as in a replay (docs/disciplines.md): jobs in their order, partners in theirs, each question after
the outcome of the one before.
"""

from collections import deque

from grms.policy.rebalancing import Rebalancing, RebalancingNotes, Waiting
from grms.site.model.commands import LrmsCancel, PublishRound
from grms.site.model.events import Event, LoadedEvent, OfferAnswered, OfferFailed, RoundDue
from grms.site.model.jobs import HomeJob, Load, has_left_before
from grms.site.model.lifecycle import PROVISIONAL, JobState
from grms.site.model.partners import PartnerBook, asking_order
from grms.site.model.rebalance_rounds import as_waiting, may_wait
from grms.site.model.records import JobLeaving, JobLeft, JobReoffered, JobReofferEnded, RoundHeld
from grms.site.model.state_tables import StateTables
from grms.site.scheduler.exchange_decisions import entrusts, wants
from grms.site.scheduler.outgoing_offers import OfferHandler, offer_of
from grms.site.scheduler.transaction import Transaction


class RebalanceHandler:
    """Holds rounds of offers, and follows each job that may leave the queue.

    The journal has a round's progress (`grms.site.model.rebalance_rounds`): a site that dies within a round resumes it when a
    round is next due.

    Attributes:
        queue: jobs that the round under way has not come to yet; `None` between rounds.
    """

    def __init__(self, memory: StateTables, offers: OfferHandler) -> None:
        self.memory = memory
        self.offers = offers
        self._kind: float | Rebalancing | None = None
        self._notes = RebalancingNotes(1.0)
        self.queue: deque[Waiting] | None = None
        self._one: Waiting | None = None
        self._partners: deque[str] = deque()
        self._questions = -1
        self._silent: set[str] = set()
        self._before: Waiting | None = None
        self._asked: HomeJob | None = None
        self._awaited = ""
        self._noted = False

    # --- rounds --------------------------------------------------------------------------------

    def due(self, event: RoundDue, transaction: Transaction) -> None:
        """Begins a round, unless one is under way that has progressed since the last time."""
        rounds = self.memory.settings.reoffer
        if rounds is None:
            return
        if self.queue is not None and self._one is not self._before:
            self._before = self._one
            return
        book = self.memory.rounds
        if rounds != self._kind:
            if self._kind is not None:
                book.pauses.clear()
            self._kind, self._notes = rounds, RebalancingNotes(rounds, book.pauses)
        self._noted = take_up = book.open and self.queue is None
        jobs = may_wait(self.memory.at_lrms.values())
        waiting = [as_waiting(job) for job in jobs if self._may_leave(job)]
        self.queue = deque(self._notes.begin(book.order if take_up else waiting))
        self._one = self._before = self._asked = None
        self._silent.clear()
        if take_up:
            self._take_up(transaction)
            if self._stands():
                return
        self._go_on(event.load, transaction)

    def _take_up(self, transaction: Transaction) -> None:
        # Goes on with a round that was under way when the daemon ended.
        assert self.queue is not None
        book, settings = self.memory.rounds, self.memory.settings
        self._notes.go_on(book.questions, book.declined)
        while book.job and self.queue:
            self._one = self.queue.popleft()
            if self._one.job == book.job:
                break
        self._asked, self._awaited = self.memory.jobs.get(book.job), book.again
        self._questions = settings.questions
        order = asking_order(
            settings.location,
            self.memory.books,
            transaction.now,
            in_turn=self._questions > 0,
            put=book.put,
        )
        self._questions -= len(book.asked)
        last = book.again or (book.asked[-1] if book.asked else "")
        if last in order:
            order = order[order.index(last) + (not book.again) :]
        self._partners = deque(order)

    def _stands(self) -> bool:
        # Whether the round cannot go on before something has happened.
        job = self._asked
        if job is not None and (job.state in PROVISIONAL or (job.confirms and not job.attempts)):
            return True
        book = self.memory.books.get(self._awaited)
        # A place that it may hold has to be given back before it is asked for another.
        return book is not None and book.listed and book.reachable and bool(book.abandoned)

    def carry_on(self, event: Event, transaction: Transaction) -> None:
        """Continues a round after the outcome of its last question; called after every event while one is under way."""
        if isinstance(event, RoundDue) or self._stands():
            return
        if isinstance(event, LoadedEvent):
            self._go_on(event.load, transaction)

    def _go_on(self, told: Load | None, transaction: Transaction) -> None:
        assert self.queue is not None
        load = self.memory.load(told)
        while load is not None:
            job = None if self._one is None else self.memory.jobs.get(self._one.job)
            if job is None or not self._may_leave(job) or not self._partners:
                if not self.queue or self._notes.left == 0:
                    break
                self._one = self.queue.popleft()
                settings = self.memory.settings
                self._questions = settings.questions
                order = asking_order(
                    settings.location,
                    self.memory.books,
                    transaction.now,
                    in_turn=self._questions > 0,
                )
                self._partners = deque(order)
                continue
            self._awaited = ""
            if self._offered(job, load, transaction):
                return
        self.queue = None
        if self.memory.rounds.open:
            transaction.note(RoundHeld(transaction.now, over=True, left_out=()))
        transaction.do(PublishRound(transaction.cause))

    def _offered(self, job: HomeJob, load: Load, transaction: Transaction) -> bool:
        # Asks the next partner about a job, if it is to be asked.
        if self._questions == 0:
            self._partners.clear()
            return False
        one, name = self._one, self._partners.popleft()
        assert one is not None
        book, policy = self.memory.books[name], self.memory.settings.transfer.get(name)
        if policy is None or not self._askable(book, job, transaction.now):
            return False
        request = load.named(job.request, guest=False)
        if not (job.hindered or load.refusal(request)) and wants(
            policy, self.memory, book, request, load, own=True, waits=True
        ):
            self._partners.clear()
            return False
        if self._notes.spares(one, name, transaction.now):
            return False
        if not entrusts(policy, book, job.request, load, transaction):
            return False
        self._notes.left -= 1
        self._questions -= 1
        self._asked = job
        if not self._noted:
            self._noted = True
            out = [j.job for j in may_wait(self.memory.at_lrms.values()) if not self._may_leave(j)]
            transaction.note(RoundHeld(transaction.now, over=False, left_out=tuple(out)))
        settled_below = book.settled()
        transaction.note(JobReoffered(transaction.now, job.job, name, book.next_number))
        self.offers.allow_rerun(job, transaction)
        transaction.do(offer_of(job, settled_below, transaction.cause, reserve=True))
        return True

    def _askable(self, book: PartnerBook, job: HomeJob, now: float) -> bool:
        return book.name not in self._silent and self.offers.can_ask(book, job, now)

    # --- answers -------------------------------------------------------------------------------

    def offer_answered(self, job: HomeJob, event: OfferAnswered, transaction: Transaction) -> None:
        """Has the batch system release a job whose place was asked for, or leaves it where it is."""
        self.offers.answered_well(event.partner)
        if not event.accepted:
            if self._asked is job and self._one is not None:
                self._notes.declined(self._one, event.partner, transaction.now)
            self._put_off(job, transaction, settled=True)
        elif job.cancel_requested:
            self._put_off(job, transaction, settled=False)
        else:
            # Where another cancel may still be carried out, an answer does not say which of them it is to.
            job.told_once = not job.leaving
            transaction.note(JobLeaving(transaction.now, job.job))
            transaction.leave(job)

    def offer_failed(self, job: HomeJob, event: OfferFailed, transaction: Transaction) -> None:
        """Withdraws a job's offer, so that a partner that does not answer delays no other."""
        if event.sent:
            self._silent.add(event.partner)
        # Else it is down, which is told by itself, or cannot have this job, and may have others.
        self._put_off(job, transaction, settled=not event.sent)

    def disputed(self, job: HomeJob, transaction: Transaction) -> None:
        """Notes that the partner holds no place: it has another job under the offer's number."""
        self._silent.add(job.partner)
        self._put_off(job, transaction, settled=job.state is JobState.REOFFERING)

    def _put_off(self, job: HomeJob, transaction: Transaction, *, settled: bool) -> None:
        partner, number = job.partner, job.offer_number
        transaction.note(JobReofferEnded(transaction.now, job.job, partner, number, settled))
        if not settled:
            self.offers.withdraw_abandoned(self.memory.books[partner], number, 0.0, transaction)

    # --- the batch system ----------------------------------------------------------------------

    def stays(self, job: HomeJob, transaction: Transaction) -> None:
        """Withdraws a job's offer, if any: it has started, has ended, or is lost."""
        if job.state in PROVISIONAL:
            self._put_off(job, transaction, settled=False)

    def let_go(self, job: HomeJob, transaction: Transaction) -> None:
        """Has the partner start a job that the batch system has released, or decides it again."""
        if job.state is JobState.REOFFERING:
            self._put_off(job, transaction, settled=False)
        transaction.note(JobLeft(transaction.now, job.job))
        if job.state is JobState.RESOLVING:
            self.offers.ask(job, transaction)
        else:
            self.offers.decide(job, None, transaction)
        transaction.publish(job)

    def take_up(self, job: HomeJob, transaction: Transaction) -> None:
        """Resumes, after a restart, a job whose place was asked for, or that was to leave."""
        if job.state is JobState.REOFFERING or not job.leaving:
            # It is withdrawn with all others that were given up on.
            number = job.offer_number
            transaction.note(
                JobReofferEnded(transaction.now, job.job, job.partner, number, settled=False)
            )
        transaction.submit(job, lookup=True)
        if job.cancel_requested:
            transaction.do(LrmsCancel(transaction.cause, job.lrms_key))
        elif job.state is JobState.LEAVING:
            transaction.leave(job)

    def _may_leave(self, job: HomeJob) -> bool:
        # What has started once is not given away: it may have done something. What has come back stays: it went
        # behind all others, and would each time, where partners hold places and then deny them. What somebody lets
        # wait in the batch system is not to start elsewhere; what that does not show it could not let go.
        return (
            job.state is JobState.QUEUED
            and not job.here
            and not job.begun
            and not job.deferred
            and not job.cancel_requested
            and job.end_told is None
            and job.lrms_key not in self.memory.unseen
            and not has_left_before(job)
        )
