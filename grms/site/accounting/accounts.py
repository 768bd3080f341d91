"""Ended jobs in a journal: those of local users, wherever they ran, and guests.

Raw data for the effect of exchange (`alone`) and the forecast for another policy (`advice`). Records are
processed in sequence without a site's memory, so that a long journal is read in seconds. Other kinds are
skipped.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from grms.site.model.jobs import GuestRef, Request
from grms.site.model.records import (
    GuestAccepted,
    JobAbandoned,
    JobDeclined,
    JobDelegated,
    JobEnded,
    JobKept,
    JobOffered,
    JobReceived,
    JobReleased,
    JobReoffered,
    JobReofferEnded,
    JobReturned,
    JobSentHome,
    Record,
    ReportDisbelieved,
    SiteTally,
)


@dataclass(frozen=True, slots=True)
class OwnRun:
    """A completed job of a local user.

    Attributes:
        requested_time, submit_time: seconds.
        received_after: number of records before its submission.
        handed_time: when the site's batch system, or the partner that ran it, was to get it, seconds.
        handed_after: number of records before that; orders what was handed over at once.
        end_time: seconds; of a partner's run on that partner's clock.
        run_time: seconds, of the last run; 0 if it never ran.
        partner: where it ran; empty at home.
    """

    job: int
    processors: int
    requested_time: float
    submit_time: float
    received_after: int
    handed_time: float
    handed_after: int
    end_time: float
    run_time: float
    partner: str


@dataclass(frozen=True, slots=True)
class GuestRun:
    """A partner's job that has ended here.

    Attributes:
        accepted_after: number of records before its acceptance.
        accept_time, end_time, requested_time: seconds.
        run_time: seconds; 0 if it never ran.
    """

    partner: str
    processors: int
    requested_time: float
    accept_time: float
    accepted_after: int
    end_time: float
    run_time: float


@dataclass(frozen=True, slots=True)
class OfferAnswer:
    """A partner's answer to an offer of a local job.

    A withdrawn offer counts as declined, and so does an accepted job that the partner has sent home: it was no place for it.
    """

    job: int
    partner: str
    processors: int
    requested_time: float
    accepted: bool


@dataclass(slots=True)
class _Open:
    request: Request
    submit_time: float
    received_after: int
    kept: tuple[float, int] = (math.nan, 0)  # when it was handed over at home, and after how many
    sent: tuple[float, int] = (math.nan, 0)  # the same at its partner
    partner: str = ""
    number: int = 0
    accepted: bool = False
    answer: int = -1  # which of the answers is the last one to it


class Accounts:
    """Collects what a site's records say of ended jobs.

    Attributes:
        own: ended jobs of local users, in the order of their records.
        guests: partners' jobs that have ended here, likewise.
        answers: of partners, in order of arrival.
        disbelieved: local jobs with an impossible end report of a partner; incomplete if the journal was
            compacted.
        first_time: of the first record, seconds; nan before it.
        last_time: the latest moment of any record, seconds; nan before the first.
        shortened_time: of the last compaction, seconds; nan if there was none. Jobs that had ended long before
            then are missing, and most partners' jobs.
    """

    def __init__(self) -> None:
        self.own: list[OwnRun] = []
        self.guests: list[GuestRun] = []
        self.answers: list[OfferAnswer] = []
        self.disbelieved: set[int] = set()
        self.first_time = math.nan
        self.last_time = math.nan
        self.shortened_time = math.nan
        self._open: dict[int, _Open] = {}
        self._guests: dict[GuestRef, tuple[GuestAccepted, int]] = {}
        self._changes: dict[type[Record], Callable[[Any], None]] = {
            JobReceived: self._received,
            JobReleased: self._released,
            JobOffered: self._offered,
            JobDelegated: self._answered,
            JobDeclined: self._answered,
            JobAbandoned: self._left_partner,
            JobReturned: self._left_partner,
            JobSentHome: self._left_partner,
            JobKept: self._kept,
            JobReoffered: self._reoffered,
            JobReofferEnded: self._stays,
            JobEnded: self._ended,
            ReportDisbelieved: self._disbelieved,
            GuestAccepted: self._guest_accepted,
            SiteTally: self._shortened,
        }
        self._count = 0
        self._last = (0, "", 0)  # job, partner and number of the offer of the last end

    @property
    def kinds(self) -> frozenset[type[Record]]:
        """The kinds of records that say something; a reader may leave out the others."""
        return frozenset(self._changes)

    @property
    def open(self) -> int:
        """How many own users' jobs have not ended."""
        return len(self._open)

    def take(self, record: Record) -> None:
        """Takes the next record; one about a job whose beginning is not there is passed over."""
        if math.isnan(self.first_time):
            self.first_time = self.last_time = record.time
        self.last_time = max(self.last_time, record.time)
        change = self._changes.get(type(record))
        if change is not None:
            change(record)
        self._count += 1

    # --- own users' jobs -----------------------------------------------------------------------

    def _received(self, record: JobReceived) -> None:
        self._open[record.job] = _Open(record.request, record.time, self._count)

    def _released(self, record: JobReleased) -> None:
        # What it waited for before is no wait of a batch system, with or without exchange.
        job = self._open.get(record.job)
        if job is not None:
            job.submit_time, job.received_after = record.time, self._count

    def _offered(self, record: JobOffered) -> None:
        job = self._open.get(record.job)
        if job is not None:
            job.partner, job.number = record.partner, record.number
            job.sent = record.time, self._count
            job.accepted = False

    def _reoffered(self, record: JobReoffered) -> None:
        # It waits here all the same.
        job = self._open.get(record.job)
        if job is not None:
            job.partner, job.number, job.accepted = record.partner, record.number, False

    def _stays(self, record: JobReofferEnded) -> None:
        job = self._open.get(record.job)
        if job is None:
            return
        if record.settled and job.partner:
            self._note_answer(record.job, job)
        job.partner = ""

    def _answered(self, record: JobDelegated | JobDeclined) -> None:
        job = self._open.get(record.job)
        if job is None or not job.partner:
            return
        job.accepted = type(record) is JobDelegated
        self._note_answer(record.job, job)
        if job.accepted:
            job.sent = record.time, self._count
        else:
            job.partner = ""

    def _note_answer(self, number: int, job: _Open) -> None:
        request, job.answer = job.request, len(self.answers)
        self.answers.append(
            OfferAnswer(
                number, job.partner, request.processors, request.requested_time, job.accepted
            )
        )

    def _left_partner(self, record: JobAbandoned | JobReturned | JobSentHome) -> None:
        job = self._open.get(record.job)
        if job is not None:
            if isinstance(record, JobSentHome) and job.accepted and job.answer >= 0:
                self.answers[job.answer] = replace(self.answers[job.answer], accepted=False)
            job.partner = ""

    def _kept(self, record: JobKept) -> None:
        job = self._open.get(record.job)
        if job is not None:
            job.partner = ""
            job.kept = record.time, self._count

    def _ended(self, record: JobEnded) -> None:
        if isinstance(record.job, GuestRef):
            self._guest_ended(record.job, record)
            return
        job = self._open.pop(record.job, None)
        if job is None:
            return
        if job.partner and not job.accepted:
            # Its end arrived before the answer to its offer.
            job.accepted = True
            self._note_answer(record.job, job)
        self._last = record.job, job.partner, job.number
        # A job that was offered while waiting at home kept its place there.
        handed_time, handed_after = job.sent if job.partner else job.kept
        self.own.append(
            OwnRun(
                job=record.job,
                processors=job.request.processors,
                requested_time=job.request.requested_time,
                submit_time=job.submit_time,
                received_after=job.received_after,
                handed_time=handed_time,
                handed_after=handed_after,
                end_time=record.end_time,
                run_time=record.run_time,
                partner=job.partner,
            )
        )

    def _disbelieved(self, record: ReportDisbelieved) -> None:
        # It follows the end of its job.
        job, *offer = self._last
        if offer == [record.partner, record.number]:
            self.disbelieved.add(job)

    # --- partners' jobs ------------------------------------------------------------------------

    def _guest_accepted(self, record: GuestAccepted) -> None:
        self._guests[record.job] = record, self._count

    def _guest_ended(self, guest: GuestRef, record: JobEnded) -> None:
        found = self._guests.pop(guest, None)
        if found is None:
            return
        accepted, after = found
        request = accepted.request
        self.guests.append(
            GuestRun(
                partner=guest.partner,
                processors=request.processors,
                requested_time=request.requested_time,
                accept_time=accepted.time,
                accepted_after=after,
                end_time=record.end_time,
                run_time=record.run_time,
            )
        )

    # --- the journal itself --------------------------------------------------------------------

    def _shortened(self, record: SiteTally) -> None:
        self.shortened_time = record.time
