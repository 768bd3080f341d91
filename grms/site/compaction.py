"""Which records of a journal a site still needs, and what stands for the rest.

A journal grows with every job. Of one that has ended and is no longer remembered (`jobs_kept`), and of
a guest whose home site has settled it, nothing is left but sums: numbers that are next, counts, and
what partners are judged by. So the records of those that are remembered are kept as they are, in
order, and tallies behind them put every sum where it was. What a site knows after that is the same to
the last bit: what an idempotency key, an offer's number or a tombstone keeps from happening twice is
kept from it as long as before.
"""

from collections.abc import Callable, Iterable

from grms.site.jobs import GuestJob, OfferId
from grms.site.memory import Memory
from grms.site.records import (
    AbandonedSettled,
    GuestDeclined,
    GuestWithdrawn,
    JobAbandoned,
    PartnerTally,
    Record,
    SiteTally,
)
from grms.site.settings import SiteSettings


def compacted(
    settings: SiteSettings, records: Callable[[], Iterable[Record]]
) -> list[Record] | None:
    """Returns records that make the same memory; None where all are needed for now.

    Args:
        settings: of the site.
        records: yields the journal's, from the first; it is called twice.
    """
    memory, moment = Memory(settings), 0.0
    given_up: dict[tuple[str, int], int] = {}
    for record in records():
        if isinstance(record, JobAbandoned):
            job = memory.jobs[record.job]
            given_up[job.partner, job.offer_number] = job.job
        memory.apply(record)
        moment = record.time
    for name, book in memory.books.items():
        if any(given_up[name, number] not in memory.jobs for number in book.abandoned):
            # Such an offer is still to be withdrawn, and its job is forgotten.
            return None
    needed = _Needed(memory, given_up)
    kept = [record for record in records() if needed.covers(record)]
    return [*kept, *_tallies(memory, moment)]


class _Needed:
    """Tells whether what a record is about is still remembered."""

    def __init__(self, memory: Memory, given_up: dict[tuple[str, int], int]) -> None:
        self._jobs = memory.jobs
        self._given_up = given_up
        self._guests: set[tuple[str, OfferId]] = set()
        self._answers: set[tuple[str, OfferId]] = set()
        for name, book in memory.books.items():
            self._guests |= {(name, offer) for offer in book.guests}
            for number, answer in book.answered.items():
                if isinstance(answer, GuestJob):
                    self._guests.add((name, answer.offer))
                else:
                    self._answers.add((name, OfferId(book.epoch, number)))

    def covers(self, record: Record) -> bool:
        """Returns whether a record is needed."""
        if isinstance(record, SiteTally | PartnerTally):
            return False  # there will be newer ones
        if isinstance(record, AbandonedSettled):
            return self._given_up[record.partner, record.number] in self._jobs
        if isinstance(record, GuestDeclined | GuestWithdrawn):
            return (record.partner, record.offer) in self._answers
        offer = getattr(record, "offer", None)
        if offer is not None:
            return (getattr(record, "partner", ""), offer) in self._guests
        return getattr(record, "job", 0) in self._jobs


def _tallies(memory: Memory, moment: float) -> list[Record]:
    tallies: list[Record] = [SiteTally(moment, memory.next_job)]
    tallies += [
        PartnerTally(
            moment,
            partner=name,
            next_number=book.next_number,
            offered=book.offered,
            accepted=book.accepted,
            ended=book.ended,
            consumption=book.consumption,
            weighted_response=book.weighted_response,
            open_consumption=book.open_consumption,
            open_submitted=book.open_submitted,
            epoch=book.epoch,
            settled_below=book.settled_below,
            guest_offered=book.guest_offered,
            guest_accepted=book.guest_accepted,
        )
        for name, book in memory.books.items()
    ]
    return tallies
