"""What became of a replay's workload at one site, from the records of its journal; no input, no output."""

from collections.abc import Iterable
from typing import Final

from grms.site.model.jobs import GuestRef, JobRef
from grms.site.model.lifecycle import Outcome
from grms.site.model.records import (
    GuestAccepted,
    GuestConfirmed,
    GuestReserved,
    JobDelegated,
    JobEnded,
    JobOffered,
    JobReoffered,
    JobStarted,
    Record,
)
from grms.v1 import replay_pb2

OF_SCHEDULES: Final = (
    JobOffered,
    JobReoffered,
    JobDelegated,
    GuestAccepted,
    GuestReserved,
    GuestConfirmed,
    JobStarted,
    JobEnded,
)
"""The kinds of records that schedules are read from."""


def read_schedule(
    site: str, records: Iterable[Record]
) -> tuple[list[replay_pb2.OwnRow], list[replay_pb2.GuestRow]]:
    """Returns what became of the site's own workload, and which partners' jobs ran there.

    Records are the journal's, oldest first; kinds other than `OF_SCHEDULES` are skipped.
    """
    rows = _Rows(site)
    for record in records:
        rows.take(record)
    guests = [row for ref, row in rows.guests.items() if ref not in rows.places]
    return list(rows.own.values()), guests


class _Rows:
    def __init__(self, site: str) -> None:
        self.own: dict[int, replay_pb2.OwnRow] = {}
        self.guests: dict[GuestRef, replay_pb2.GuestRow] = {}
        # A place is no guest before its job has left its home's queue, nor is a guest that was sent home.
        self.places: set[GuestRef] = set()
        self._site = site
        self._offers: dict[int, tuple[str, int]] = {}

    def take(self, record: Record) -> None:
        match record:
            case JobOffered() | JobReoffered():
                self._offers[record.job] = (record.partner, record.number)
            case JobDelegated():
                self.own[record.job] = self._away(record.job)
            case GuestAccepted(job=GuestRef(partner=home, offer=offer)):
                row = replay_pb2.GuestRow(home=home, offer_number=offer.number)
                self.guests[record.job] = row
            case GuestReserved():
                self.places.add(record.job)
            case GuestConfirmed():
                self.places.discard(record.job)
            case JobStarted():
                if isinstance(record.job, int):
                    here = replay_pb2.OwnRow(row=record.job - 1, executed_on=self._site)
                    self.own[record.job] = here
                self._row(record.job).start_time_s = record.start_time
            case JobEnded(job=GuestRef() as guest, outcome=Outcome.PREEMPTED):
                # It has been sent home, and runs once more.
                self.places.add(guest)
            case JobEnded():
                self._row(record.job).end_time_s = record.end_time

    def _away(self, job: int) -> replay_pb2.OwnRow:
        partner, number = self._offers.get(job, ("", 0))
        return replay_pb2.OwnRow(row=job - 1, executed_on=partner, offer_number=number)

    def _row(self, ref: JobRef) -> replay_pb2.OwnRow | replay_pb2.GuestRow:
        if isinstance(ref, GuestRef):
            return self.guests[ref]
        # The report of its end may come before the answer to its offer.
        return self.own.setdefault(ref, self._away(ref))
