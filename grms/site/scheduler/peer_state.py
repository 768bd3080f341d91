"""Partners that come and go, or violate the protocol.

- A partner that is lost makes its jobs SUSPECT, or they are decided again. One that is back is asked about its
  jobs.
- A partner that violates the protocol is *faulty* at once: it gets no offers. It is probed, after pauses that
  double, with a question about an offer that was never made; a sensible answer makes it well. The pauses start
  over only when it has answered an offer properly, so that a partner that fails at each offer is asked less and
  less.
- A partner that speaks another version of the protocol is *incompatible* until it says otherwise.
- A partner that is suspended for broken promises can be pardoned by an operator.
- A partner that has seen offers unknown to this site has seen a later journal than this one, which was restored
  from an older copy. A new epoch begins, so that no number means two jobs.
"""

from typing import Final

from grms.site.model.commands import Refusal, Refuse, ReplyPardon
from grms.site.model.events import (
    OfferDisputed,
    Pardon,
    PartnerDuplicated,
    PartnerFaulty,
    PartnerIncompatible,
    PartnerLost,
    PartnerUp,
    ProbeAnswered,
    ProbeFailed,
)
from grms.site.model.jobs import OfferId
from grms.site.model.lifecycle import PROVISIONAL, GuestState, JobState
from grms.site.model.partners import PartnerBook
from grms.site.model.records import EpochBegun, JobDeclined, PartnerPardoned
from grms.site.model.state_tables import StateTables
from grms.site.scheduler.outgoing_offers import OfferHandler
from grms.site.scheduler.peer_faults import PeerFaultHandler
from grms.site.scheduler.rebalance import RebalanceHandler
from grms.site.scheduler.transaction import Transaction

EPOCH_CLAIMED_MAX: Final = 2**62
"""A partner that claims to have seen a later epoch has not: the moment would be after 2116."""


class PeerStateHandler:
    """Follows the state of partners."""

    def __init__(
        self,
        memory: StateTables,
        faults: PeerFaultHandler,
        offers: OfferHandler,
        reoffers: RebalanceHandler,
    ) -> None:
        self.memory = memory
        self.faults = faults
        self.offers = offers
        self.reoffers = reoffers

    def pardon(self, event: Pardon, transaction: Transaction) -> None:
        """Ends a partner's suspension at an operator's request."""
        book = self.memory.books.get(event.partner)
        if book is None:
            reason = f"there is no partner {event.partner!r}"
            transaction.do(Refuse(event.id, Refusal.NOT_FOUND, reason, "partner"))
            return
        breaches = book.trust.breaches
        transaction.note(PartnerPardoned(transaction.now, event.partner, event.by))
        transaction.do(ReplyPardon(event.id, event.partner, breaches))

    def up(self, event: PartnerUp, transaction: Transaction) -> None:
        """Notes that a partner can be asked, once the journals are known to agree."""
        book = self.memory.books.get(event.partner)
        if book is None or not book.listed:
            return
        book.incompatible = 0
        seen = event.offer_seen
        if seen is not None and not self._agrees(book, seen, transaction):
            return
        self._ask_again(book, event, transaction)

    def _ask_again(self, book: PartnerBook, event: PartnerUp, transaction: Transaction) -> None:
        # About its jobs: it may have lost its journal.
        was_down = not book.reachable
        book.reachable = True
        book.lost = False
        book.processors = event.processors
        book.nodes = event.nodes
        if was_down:
            for job in list(book.open.values()):
                if not job.question:
                    job.attempts = 0
                    self.offers.ask(job, transaction)

    def lost(self, event: PartnerLost, transaction: Transaction) -> None:
        """Makes a partner's jobs SUSPECT, or decides them again."""
        book = self.memory.books.get(event.partner)
        if book is None:
            return
        book.reachable = False
        book.lost = True
        for job in list(book.open.values()):
            self.offers.suspect(job, f"{book.name} is lost", event.load, transaction)
        for number, job in list(book.undecided.items()):
            if (
                number not in book.abandoned
                and job.state in {JobState.RESOLVING, JobState.WITHDRAWING}
                and self.offers.gives_up(job)
            ):
                self.offers.abandon(job, event.load, transaction)

    def _agrees(self, book: PartnerBook, seen: OfferId, transaction: Transaction) -> bool:
        epoch = self.memory.epoch
        if seen.epoch < epoch or (seen.epoch == epoch and seen.number < book.next_number):
            return True
        if seen.epoch >= EPOCH_CLAIMED_MAX:
            reason = f"it says it has seen an offer of epoch {seen.epoch}, which no journal has"
            self.faults.fault(book, reason, transaction)
            return False
        reason = (
            f"{book.name} has seen offer {seen.epoch}/{seen.number}, and this journal knows of "
            f"{epoch}/{book.next_number - 1} at most: it is an older copy"
        )
        transaction.note(EpochBegun(transaction.now, seen.epoch + 1, reason))
        return True

    def disputed(self, event: OfferDisputed, transaction: Transaction) -> None:
        """Begins a new epoch: the partner has another job under the offer's number."""
        book = self.memory.books.get(event.partner)
        job = None if book is None else book.away(event.offer)
        if book is None or job is None or event.offer.number not in book.undecided:
            return
        offer = f"offer {event.offer.epoch}/{event.offer.number}"
        reason = f"{book.name} knows {offer} as that of another job"
        if event.offer.epoch == self.memory.epoch:
            transaction.note(
                EpochBegun(transaction.now, self.memory.epoch + 1, f"{reason}: an older copy")
            )
        self.faults.fault(book, reason, transaction)
        if job.state in PROVISIONAL:
            self.reoffers.disputed(job, transaction)
            return
        transaction.note(JobDeclined(transaction.now, job.job))
        self.offers.decide(job, event.load, transaction)

    def faulty(self, event: PartnerFaulty, transaction: Transaction) -> None:
        """Stops offers to a partner that has violated the protocol."""
        book = self.memory.books.get(event.partner)
        if book is not None:
            self.faults.fault(book, event.reason, transaction, probed=event.probed)

    def incompatible(self, event: PartnerIncompatible, _transaction: Transaction) -> None:
        """Neither asks nor answers a partner while it speaks another version."""
        book = self.memory.books.get(event.partner)
        if book is not None:
            book.incompatible = event.version

    def duplicated(self, event: PartnerDuplicated, _transaction: Transaction) -> None:
        """Exchanges no offers with a partner whose name two daemons use; what is open goes on."""
        book = self.memory.books.get(event.partner)
        if book is not None:
            book.duplicated = event.duplicated

    def probe_answered(self, event: ProbeAnswered, transaction: Transaction) -> None:
        """Considers a partner well again if it knows nothing of an offer that was never made."""
        book = self.memory.books.get(event.partner)
        if book is None or not book.faulty:
            return
        if event.status in {None, GuestState.DECLINED}:
            book.faulty = ""
            return
        reason = f"it says that an offer that was never made is {event.status.value}"
        self.faults.fault(book, reason, transaction, probed=True)

    def probe_failed(self, event: ProbeFailed, transaction: Transaction) -> None:
        """Probes again."""
        book = self.memory.books.get(event.partner)
        if book is not None and book.faulty:
            self.faults.probe(book, transaction)
