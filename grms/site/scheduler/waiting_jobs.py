"""Local users' jobs to which nothing happens by itself: held ones, and those that take too long at a partner.

Held jobs are released when nothing is waited for any more, and ended when that cannot be. Both follow from what is in the
journal, and are looked for after every event: whatever ends a job, here, at a partner, by its user or an operator, its
dependents follow in the same turn, and so do theirs. A daemon that dies in between finds them after its restart.

Operators see jobs that take too long at a partner, or on the way to one. A deadline has no other effect, unless an undecided
job is at a faulty partner and the site decides lost jobs again.
"""

import math
from typing import Final

from grms.site.model.commands import TellLoad
from grms.site.model.events import Event, LoadedEvent, TimePassed
from grms.site.model.jobs import HomeJob, Load
from grms.site.model.lifecycle import JobState, Outcome
from grms.site.model.partners import PartnerBook
from grms.site.model.records import JobReleased
from grms.site.model.settings import SiteSettings
from grms.site.model.state_tables import StateTables
from grms.site.scheduler.outgoing_offers import AWAY, UNDECIDED, OfferHandler
from grms.site.scheduler.transaction import Transaction
from grms.util.dependencies import Dependency

RELEASED_AT_ONCE: Final = 1000
"""Most jobs released in one turn; the others follow behind the events that have come meanwhile, by the load of then."""


class HeldJobHandler:
    """Releases held jobs, and ends those whose dependencies cannot be met."""

    def __init__(self, memory: StateTables, offers: OfferHandler) -> None:
        self.memory = memory
        self.offers = offers
        self._asked = False

    def carry_on(self, event: Event, transaction: Transaction) -> None:
        """Continues after an event; called after every one."""
        held, jobs = self.memory.held, self.memory.jobs
        loaded = event if isinstance(event, LoadedEvent) else None
        may_release = RELEASED_AT_ONCE
        if loaded is not None:
            self._asked = False
        while True:
            hopeless = held.next_hopeless()
            if hopeless is not None:
                self._end(*hopeless, transaction)
                continue
            number = held.next_ready()
            if not number or self._offers_are_out():
                return
            if loaded is None or not may_release:
                # Where a job runs is decided by the load, and the batch system's news come without.
                if not self._asked:
                    self._asked = True
                    transaction.do(TellLoad(transaction.cause))
                return
            may_release -= 1
            transaction.note(JobReleased(transaction.now, number))
            transaction.publish(jobs[number])
            self.offers.decide(jobs[number], loaded.load, transaction)

    def _offers_are_out(self) -> bool:
        # A partner cannot be asked about more before it has answered. It does soon, and what came meanwhile would stay at
        # home for no other reason.
        memory = self.memory
        most = memory.settings.limits.offers_undecided
        return any(
            len(book.undecided) >= most
            and book.reachable
            and any(job.state is JobState.OFFERING for job in book.undecided.values())
            for book in memory.books.values()
        )

    def _end(self, number: int, dependency: Dependency, transaction: Transaction) -> None:
        transaction.end(
            self.memory.jobs[number],
            outcome=Outcome.CANCELLED,
            end_time=transaction.now,
            run_time=0.0,
            reason=f"its dependency {dependency} cannot be met{self._because(dependency.job_id)}",
        )

    def _because(self, job_id: str) -> str:
        array = self.memory.find_array(job_id)
        if array is not None:
            return f": of that array {array.not_ok} have not completed"
        job = self.memory.find_job(job_id)
        return "" if job is None or job.outcome is None else f": that job is {job.outcome.value}"


class DeadlineHandler:
    """Finds jobs whose deadline has passed."""

    def __init__(self, memory: StateTables, offers: OfferHandler) -> None:
        self.memory = memory
        self.offers = offers

    def time_passed(self, event: TimePassed, transaction: Transaction) -> None:
        """Reports overdue jobs to the operator; with on_lost "resubmit" it also acts on them."""
        for book in list(self.memory.books.values()):
            for job in [*book.undecided.values(), *book.open.values()]:
                if job.partner == book.name and not job.overdue:
                    self._check_deadline(job, book, event.load, transaction)

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
                self.offers.abandon(job, load, transaction)
                return
        else:
            waited = transaction.now - job.accept_time
            job.reason = f"accepted by {book.name} {waited:.0f} s ago, and not ended"
        job.revision += 1
        transaction.publish(job)


def deadline_of(job: HomeJob, settings: SiteSettings) -> float:
    """Returns when a job at a partner, or offered to one, becomes overdue, seconds; infinity for a job at home."""
    if job.state in UNDECIDED:
        return job.offer_time + settings.undecided_time_max
    if job.state in AWAY:
        return job.accept_time + job.request.requested_time + settings.delegated_time_max
    return math.inf
