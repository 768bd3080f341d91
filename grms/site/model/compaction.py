"""Which records of a journal a site still needs, and what replaces the rest.

A journal grows with every job and every reservation. One that is over and no longer remembered (`jobs_kept`,
`reservations_kept`), and a guest that its home site has settled, leaves nothing but sums: next numbers, counts,
and what partners are judged by. So the records of remembered ones are kept as they are, in order, and tallies
behind them restore every sum. The site then knows the same to the last bit: idempotency keys, offer numbers and
tombstones prevent duplicates as long as before.
"""

import math
from collections.abc import Callable, Iterable
from typing import Final

from msgspec.structs import replace

from grms.site.model.jobs import GuestJob, GuestRef, OfferId
from grms.site.model.records import (
    AbandonedSettled,
    AccountLooked,
    AccountTally,
    ArrayReceived,
    DebtNoted,
    EpochBegun,
    ForgottenKeysTally,
    ForgottenReservationsTally,
    GuestDeclined,
    GuestWithdrawn,
    JobAbandoned,
    JobReoffered,
    JobReofferEnded,
    PartnerBooks,
    PartnerFaulted,
    PartnerPardoned,
    PartnerStanding,
    PartnerTally,
    PilotAsked,
    PilotDrained,
    PilotOpened,
    PilotOver,
    PilotTally,
    PromisesReviewed,
    Record,
    ReportDisbelieved,
    RerunAllowed,
    ReservationTally,
    RoundHeld,
    SiteBooks,
    SiteTally,
    UsageTally,
)
from grms.site.model.settings import SiteSettings
from grms.site.model.state_tables import StateTables

ROWS_MAX: Final = 1000
"""Of forgotten keys in one record."""


class Reading:
    """Makes a memory of a journal's records, and notes what else compaction needs.

    `moment` is the time of the last record, seconds; minus infinity before the first.
    """

    def __init__(self, settings: SiteSettings) -> None:
        self.memory = StateTables(settings)
        self.moment = -math.inf
        self._given_up: dict[tuple[str, int], int] = {}
        self._came_to_nothing: set[tuple[str, int]] = set()
        self._of_round: set[tuple[str, int]] = set()

    def apply(self, record: Record) -> None:
        """Takes the next record."""
        if type(record) is RoundHeld:
            self._of_round.clear()
        elif type(record) is JobReoffered:
            self._of_round.add((record.partner, record.number))
        if type(record) is JobAbandoned:
            job = self.memory.jobs[record.job]
            self._given_up[job.partner, job.offer_number] = job.job
        elif type(record) is JobReofferEnded:
            if record.settled:
                self._came_to_nothing.add((record.partner, record.number))
            else:
                self._given_up[record.partner, record.number] = record.job
        self.memory.apply(record)
        self.moment = max(self.moment, record.time)

    def needed_about(self) -> int:
        """Estimates the number of needed records without reading them; it may be slightly low."""
        books = self.memory.books.values()
        # Each record of a job, or of a reservation, is a change of it.
        count = sum(job.revision for job in self.memory.jobs.values())
        count += len(self.memory.held.arrays)
        count += sum(one.revision for one in self.memory.reservations.reservations.values())
        count += sum(one.revision for one in self.memory.pilots.pilots.values())
        for keys in (self.memory.forgotten_keys, self.memory.reservations.forgotten_keys):
            count += math.ceil(len(keys) / ROWS_MAX)
        for book in books:
            count += sum(len(guest.story) for guest in book.guests.values())
            for answer in book.answered.values():
                count += len(answer.story) + 1 if isinstance(answer, GuestJob) else 1
        return count

    def compacted(self, records: Iterable[Record]) -> list[Record] | None:
        """Returns records that make the same memory; `None` if all are needed for now.

        `records` are the applied ones, once more.
        """
        memory, given_up = self.memory, self._given_up
        if memory.held.hopeless:
            # They are about to be ended, for the end of another that may be forgotten.
            return None
        for name, book in memory.books.items():
            if any(given_up[name, number] not in memory.jobs for number in book.abandoned):
                # Such an offer is still to be withdrawn, and its job is forgotten.
                return None
        # What a round that is under way has come to tells where it goes on.
        of_round = self._of_round if memory.rounds.open else set()
        needed = _Needed(memory, given_up, self._came_to_nothing - of_round)
        kept = [needed.restated(record) for record in records if needed.covers(record)]
        moment = self.moment if math.isfinite(self.moment) else 0.0
        return [*_forgotten_keys(memory), *kept, *_tallies(memory, moment)]


def compacted(
    settings: SiteSettings, records: Callable[[], Iterable[Record]]
) -> list[Record] | None:
    """Returns records that make the same memory; `None` if all are needed for now.

    `records` yields the journal's records from the first; it is called twice.
    """
    reading = Reading(settings)
    for record in records():
        reading.apply(record)
    return reading.compacted(records())


_SUMS = (
    SiteTally,
    PartnerTally,
    PartnerStanding,
    PartnerFaulted,
    ReportDisbelieved,
    PromisesReviewed,
    PartnerPardoned,
    SiteBooks,
    PartnerBooks,
    PilotTally,
    ReservationTally,
    UsageTally,
    ForgottenKeysTally,
    ForgottenReservationsTally,
    AccountLooked,
    AccountTally,
    DebtNoted,
)


_OF_PILOTS = (PilotAsked, PilotOpened, PilotDrained, PilotOver)


class _Needed:
    """Tells whether the subject of a record is still remembered."""

    def __init__(
        self,
        memory: StateTables,
        given_up: dict[tuple[str, int], int],
        came_to_nothing: set[tuple[str, int]],
    ) -> None:
        self._came_to_nothing = came_to_nothing
        self._jobs = memory.jobs
        self._arrays = memory.held.arrays
        self._round = memory.rounds.begun if memory.rounds.open else math.nan
        self._reservations = memory.reservations.reservations
        self._pilots = memory.pilots.pilots
        self._given_up = given_up
        self._guests: set[GuestRef] = set()
        self._answers: set[GuestRef] = set()
        for name, book in memory.books.items():
            self._guests |= {GuestRef(name, offer) for offer in book.guests}
            for number, answer in book.answered.items():
                if isinstance(answer, GuestJob):
                    self._guests.add(answer.ref)
                else:
                    self._answers.add(GuestRef(name, OfferId(book.epoch, number)))

    def covers(self, record: Record) -> bool:
        """Returns whether a record is needed."""
        if isinstance(record, EpochBegun | RoundHeld):
            # What comes after the first is numbered by it.
            return isinstance(record, EpochBegun) or self._round == record.time
        if isinstance(record, _SUMS) or self._is_in_vain(record):
            return False  # there will be newer sums
        if isinstance(record, ArrayReceived | AbandonedSettled):
            return self._array_or_job(record)
        if isinstance(record, GuestDeclined | GuestWithdrawn):
            return record.job in self._answers
        return self._is_remembered(record)

    def _is_remembered(self, record: Record) -> bool:
        if isinstance(record, _OF_PILOTS):
            return record.pilot in self._pilots
        # Numbers begin at 1.
        reservation, job = getattr(record, "reservation", 0), getattr(record, "job", 0)
        if isinstance(job, GuestRef):
            return job in self._guests
        return reservation in self._reservations or job in self._jobs

    def _array_or_job(self, record: ArrayReceived | AbandonedSettled) -> bool:
        if isinstance(record, ArrayReceived):
            return record.array in self._arrays
        return self._given_up[record.partner, record.number] in self._jobs

    def restated(self, record: Record) -> Record:
        """Returns a record as it is now, without what came of subjects that are no longer remembered."""
        if isinstance(record, ArrayReceived):
            return replace(record, not_ok=self._arrays[record.array].forgotten_not_ok)
        return record

    def _is_in_vain(self, record: Record) -> bool:
        # A waiting job may be offered again and again, for weeks.
        return isinstance(record, JobReoffered | JobReofferEnded | RerunAllowed) and (
            (record.partner, record.number) in self._came_to_nothing
        )


def _forgotten_keys(memory: StateTables) -> list[Record]:
    # They come first: what is forgotten when it is read anew was so later.
    return [
        kind(part[-1][2], part)
        for kind, rows in (
            (ForgottenKeysTally, memory.forgotten_keys.rows()),
            (ForgottenReservationsTally, memory.reservations.forgotten_keys.rows()),
        )
        for part in (rows[at : at + ROWS_MAX] for at in range(0, len(rows), ROWS_MAX))
    ]


def _tallies(memory: StateTables, moment: float) -> list[Record]:
    tallies: list[Record] = []
    if memory.own_work:
        tallies.append(SiteBooks(moment, memory.own_work, memory.own_requested))
    tallies += [
        PartnerBooks(
            moment,
            name,
            taken=book.taken,
            given=book.given,
            credit=book.trust.credit,
            breaches=book.trust.breaches,
            suspended_until=book.trust.suspended_until,
            work=book.trust.work,
            promised=book.trust.rows(),
            debt=book.trust.debt,
        )
        for name, book in memory.books.items()
        if book.accepted or book.guest_accepted
    ]
    if rows := memory.usage.rows():
        tallies.append(UsageTally(moment, rows))
    if memory.account is not None:
        tallies.append(AccountTally(moment, memory.account.record()))
    tallies.append(SiteTally(moment, memory.next_job))
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
    tallies += [
        PartnerStanding(
            moment,
            name,
            faults=book.faults,
            disbelieved=book.disbelieved,
            distrust=book.distrust,
            doubt=book.doubt,
        )
        for name, book in memory.books.items()
        if book.faults or book.disbelieved or book.distrust
    ]
    if memory.reservations.next_number > 1:
        tallies.append(ReservationTally(moment, memory.reservations.next_number))
    pilots = memory.pilots
    if pilots.next_number > 1:
        tallies.append(PilotTally(moment, pilots.next_number, pilots.held, pilots.used))
    return tallies
