"""Jobs that take too long at a partner, or on the way to one.

Operators see them. A deadline has no other effect, unless an undecided job is at a faulty partner and the site
decides lost jobs again.
"""

import math

from grms.site.model.events import TimePassed
from grms.site.model.jobs import HomeJob, Load
from grms.site.model.partners import PartnerBook
from grms.site.model.settings import SiteSettings
from grms.site.model.state_tables import StateTables
from grms.site.scheduler.outgoing_offers import AWAY, UNDECIDED, OfferHandler
from grms.site.scheduler.transaction import Transaction


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
