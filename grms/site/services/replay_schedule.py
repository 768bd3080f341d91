"""What became of a replay's workload at one site, from the records of its journal; no input, no output."""

from collections.abc import Iterable
from typing import Final

from grms.site.facts.records import (
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

_OF_GUESTS = (GuestAccepted, GuestReserved, GuestConfirmed, JobStarted, JobEnded)

OF_SCHEDULES: Final = (JobOffered, JobReoffered, JobDelegated, *_OF_GUESTS)
"""The kinds of records that schedules are read from."""


def own_rows(site: str, records: Iterable[Record]) -> list[replay_pb2.OwnRow]:
    """Returns what became of the site's own workload from its records, oldest first."""
    own: dict[int, replay_pb2.OwnRow] = {}
    offers: dict[int, tuple[str, int]] = {}

    def away(job: int) -> replay_pb2.OwnRow:
        partner, number = offers.get(job, ("", 0))
        return replay_pb2.OwnRow(row=job - 1, executed_on=partner, offer_number=number)

    for record in records:
        if isinstance(record, JobOffered | JobReoffered):
            offers[record.job] = (record.partner, record.number)
        elif isinstance(record, JobDelegated):
            own[record.job] = away(record.job)
        elif isinstance(record, JobStarted) and isinstance(record.job, int):
            own[record.job] = replay_pb2.OwnRow(
                row=record.job - 1, executed_on=site, start_time_s=record.start_time
            )
        elif isinstance(record, JobEnded) and isinstance(record.job, int):
            if record.job not in own:
                # The report of its end came before the answer to its offer.
                own[record.job] = away(record.job)
            own[record.job].end_time_s = record.end_time
    return list(own.values())


def guest_rows(records: Iterable[Record]) -> list[replay_pb2.GuestRow]:
    """Returns which partners' jobs ran at the site from its records, oldest first."""
    guests: dict[tuple[str, int], replay_pb2.GuestRow] = {}
    # A place is no guest before its job has left its home's queue.
    places: set[tuple[str, int]] = set()
    for record in records:
        if not isinstance(record, _OF_GUESTS) or isinstance(record.job, int):
            continue
        key = (record.job.partner, record.job.offer.number)
        if isinstance(record, GuestAccepted):
            guests[key] = replay_pb2.GuestRow(home=key[0], offer_number=key[1])
        elif isinstance(record, GuestReserved):
            places.add(key)
        elif isinstance(record, GuestConfirmed):
            places.discard(key)
        elif isinstance(record, JobStarted):
            guests[key].start_time_s = record.start_time
        else:
            guests[key].end_time_s = record.end_time
    for place in places:
        del guests[place]
    return list(guests.values())
