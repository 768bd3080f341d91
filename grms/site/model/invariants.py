"""Invariants of a site's memory: a deep check, for tests and for the debug switch.

The memory keeps the same fact in several places, so that each question is answered at once: a job knows its
partner, the partner's book knows the job, sums know both. Here they are compared.
"""

import itertools
import math
from collections import Counter

from grms.site.model.held_jobs import OK
from grms.site.model.jobs import GuestJob, HomeJob
from grms.site.model.lifecycle import PROVISIONAL, WAITING, JobState
from grms.site.model.partners import PartnerBook
from grms.site.model.reservations import ReservationBook
from grms.site.model.state_tables import StateTables

_UNDECIDED = frozenset({JobState.OFFERING, JobState.RESOLVING, JobState.WITHDRAWING})
_AWAY = frozenset({JobState.DELEGATED, JobState.SUSPECT})
_AT_LRMS = frozenset({JobState.SUBMITTING, *WAITING, JobState.RUNNING})
_OFFERED = _UNDECIDED | PROVISIONAL


def check(memory: StateTables) -> None:
    """Compares all that the memory holds redundantly.

    Raises:
        AssertionError: a bug in this program; the text says where.
    """
    _check_jobs(memory)
    _check_lrms(memory)
    _check_reservations(memory.reservations, memory.settings.limits.reservations_kept)
    for name, book in memory.books.items():
        assert book.name == name, name
        _check_offers(book)
        _check_guests(book)
        _check_trust(book)
    for job in memory.jobs.values():
        _check_place(job, memory)


def _check_jobs(memory: StateTables) -> None:
    jobs = memory.jobs.values()
    still_open = [job for job in jobs if job.state is not JobState.ENDED]
    assert memory.jobs_open == len(still_open), "jobs_open"
    assert memory.open_by_user == Counter(job.user for job in still_open), "open_by_user"
    keys = {(job.user, job.idempotency_key): job.array or job.job for job in jobs}
    assert memory.keys == keys, "keys"
    assert not any(memory.forgotten_keys.number(*key) for key in keys), "forgotten_keys"
    _check_held(memory)
    ended = {job.job for job in jobs if job.state is JobState.ENDED}
    assert len(memory.ended) == len(ended), "ended"
    assert set(memory.ended) == ended, "ended"
    assert len(ended) <= memory.settings.limits.jobs_kept, "jobs_kept"
    assert all(number < memory.next_job for number in memory.jobs), "next_job"


def _check_held(memory: StateTables) -> None:
    held = memory.held
    assert len(held) == sum(job.state is JobState.HELD for job in memory.jobs.values()), "held"
    arrays: dict[int, list[HomeJob]] = {}
    for job in memory.jobs.values():
        assert (job.job in held) == (job.state is JobState.HELD), job.job_id
        if job.array:
            arrays.setdefault(job.array, []).append(job)
    assert held.arrays.keys() == arrays.keys(), "arrays"
    for number, elements in arrays.items():
        array = held.arrays[number]
        still_open = {job.job for job in elements if job.state is not JobState.ENDED}
        assert array.received == len(elements), array.array_id
        assert array.open == len(still_open), array.array_id
        bad = sum(job.outcome is not None and job.outcome not in OK for job in elements)
        assert array.not_ok == array.forgotten_not_ok + bad, array.array_id
        under_way = {number for number in still_open if number not in held}
        assert array.under_way == under_way, array.array_id
        assert not array.spec.limit or len(under_way) <= array.spec.limit, array.array_id
        assert all(array.element(job.index) == job.job for job in elements), array.array_id


def _check_lrms(memory: StateTables) -> None:
    guests = [guest for book in memory.books.values() for guest in book.guests.values()]
    everybody: list[HomeJob | GuestJob] = [*memory.jobs.values(), *guests]
    there = {job.lrms_key: job for job in everybody if job.state in _AT_LRMS}
    assert memory.at_lrms == there, "at_lrms"
    for key, one in there.items():
        assert one.end_told is None or (one.leaving and not one.begun), key
    unconfirmed = sum(
        job.request.processors for job in everybody if job.state is JobState.SUBMITTING
    )
    assert memory.unconfirmed == unconfirmed, "unconfirmed"
    coming = {job.lrms_key: job.asked_here for job in everybody if job.state is JobState.SUBMITTING}
    assert memory.coming == coming, "coming"
    for number, job in memory.unplaced.items():
        assert job is memory.jobs[number], "unplaced"
        assert job.state is JobState.RECEIVED, "unplaced"
    reserved = {guest.lrms_key: guest for guest in guests if guest.reserved}
    assert memory.reserved == reserved, "reserved"
    assert all(guest.state is JobState.SUBMITTING for guest in reserved.values()), "reserved"


def _check_reservations(book: ReservationBook, kept: int) -> None:
    everything = book.reservations
    still_open = {number: one for number, one in everything.items() if one.is_open}
    assert all(number == one.number for number, one in everything.items()), "reservations"
    assert book.open == still_open, "open reservations"
    assert book.open_by_owner == Counter(one.owner for one in still_open.values()), "owners"
    over = everything.keys() - still_open.keys()
    assert len(book.over) == len(over), "reservations that are over"
    assert set(book.over) == over, "reservations that are over"
    assert len(over) <= kept, "reservations_kept"
    keys = {(one.owner, one.key): number for number, one in everything.items()}
    assert book.keys == keys, "keys of reservations"
    assert not any(itertools.starmap(book.forgotten, keys)), "keys of forgotten reservations"
    moments = [row[2] for row in book.forgotten_keys.rows()]
    assert moments == sorted(moments), "order of forgotten reservations"
    assert all(number < book.next_number for number in everything), "next_reservation"
    moment = min((one.due_time for one in still_open.values()), default=math.inf)
    assert book.next_time == moment, "when a reservation is due"


def _check_place(job: HomeJob, memory: StateTables) -> None:
    # A job's state says where it is, and the book of its partner says the same.
    deciding = job.state is JobState.RECEIVED or job.state in _UNDECIDED
    assert deciding or job.remaining is None, job.job_id
    if job.state in _OFFERED:
        assert memory.books[job.partner].undecided.get(job.offer_number) is job, job.job_id
    elif job.state in _AWAY:
        assert memory.books[job.partner].open.get(job.offer_number) is job, job.job_id
    elif job.state is not JobState.ENDED:
        assert not job.partner, job.job_id


def _check_offers(book: PartnerBook) -> None:
    assert book.abandoned.keys() == book.abandoned_epochs.keys(), f"{book.name}: abandoned"
    assert not book.undecided.keys() & book.open.keys(), f"{book.name}: undecided and open"
    numbers = list(book.undecided)
    assert numbers == sorted(numbers), f"{book.name}: undecided is not in order"
    assert all(number < book.next_number for number in (*numbers, *book.open)), book.name
    for number, job in book.undecided.items():
        # One that was given up on has gone elsewhere, until the partner knows it.
        if number not in book.abandoned:
            assert job.state in _OFFERED, f"{book.name}: offer {number}"
            assert (job.partner, job.offer_number) == (book.name, number), job.job_id
    for number, job in book.open.items():
        assert job.state in _AWAY, f"{book.name}: open {number}"
        assert (job.partner, job.offer_number) == (book.name, number), job.job_id
    consumption = math.fsum(job.consumption_requested for job in book.open.values())
    assert math.isclose(book.open_consumption, consumption, rel_tol=1e-6, abs_tol=1e-3), book.name
    assert book.ended <= book.accepted <= book.offered, f"{book.name}: tallies"


def _check_trust(book: PartnerBook) -> None:
    trust = book.trust
    work = math.fsum(one.work for one in trust.promised.values())
    assert math.isclose(trust.work, work, rel_tol=1e-6, abs_tol=1e-3), f"{book.name}: trust"
    for number, one in trust.promised.items():
        # What has not ended is there, and when it is to be looked at is known.
        if one.ended is None:
            assert number in book.open, f"{book.name}: promised {number}"
            assert one.counted or trust.due <= one.since + one.requested_time, book.name
        else:
            assert trust.stale, f"{book.name}: ended {number}"


def _check_guests(book: PartnerBook) -> None:
    for offer, guest in book.guests.items():
        assert (guest.partner, guest.offer) == (book.name, offer), guest.lrms_key
        over = guest.state is JobState.ENDED
        assert over or guest.state in _AT_LRMS, guest.lrms_key
        assert over == (guest.completion is not None), guest.lrms_key
    assert all(number >= book.settled_below for number in book.answered), f"{book.name}: answered"
    assert book.guest_accepted <= book.guest_offered, f"{book.name}: guest tallies"
