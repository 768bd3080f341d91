"""Partners that violate the protocol get no offers until a probe succeeds.

A probe is a question about an offer that was never made. The pauses between probes double.
"""

from grms.daemon.pacing import pause_after
from grms.site.model.commands import SendProbe
from grms.site.model.jobs import OfferId
from grms.site.model.partners import PartnerBook
from grms.site.model.records import PartnerFaulted
from grms.site.model.state_tables import StateTables
from grms.site.scheduler.transaction import Transaction


class PeerFaultHandler:
    """Records protocol errors of partners, and probes them."""

    def __init__(self, memory: StateTables) -> None:
        self.memory = memory

    def fault(
        self, book: PartnerBook, reason: str, transaction: Transaction, *, probed: bool = False
    ) -> None:
        """Stops offers to a partner until a probe succeeds; `probed`: this was the answer to one."""
        was_well, book.faulty = not book.faulty, reason
        if was_well:
            transaction.note(PartnerFaulted(transaction.now, book.name, reason))
        if was_well or probed:
            book.faults_in_row += 1
            self.probe(book, transaction)

    def probe(self, book: PartnerBook, transaction: Transaction) -> None:
        """Asks a faulty partner, after a pause, about an offer that was never made."""
        if not book.listed:
            book.faulty = ""
            return
        settings = self.memory.settings
        delay = pause_after(book.faults_in_row, settings.probe_first_s, settings.probe_most_s)
        offer = OfferId(self.memory.epoch, book.next_number)
        transaction.do(SendProbe(transaction.cause, book.name, offer, delay))
