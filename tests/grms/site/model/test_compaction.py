"""A shorter journal that makes the same memory, whatever has happened and whatever comes."""

from dataclasses import replace
from typing import Any, Literal

import pytest

from grms.simulation.fault_run import Trial
from grms.site.model.compaction import Reading, compacted
from grms.site.model.forgotten_keys import digest_of
from grms.site.model.jobs import GuestRef, OfferId, Request
from grms.site.model.lifecycle import Outcome
from grms.site.model.records import (
    AbandonedSettled,
    ArrayReceived,
    EpochBegun,
    ForgottenKeysTally,
    ForgottenReservationsTally,
    GuestAccepted,
    GuestAcknowledged,
    GuestDeclined,
    GuestWithdrawn,
    JobAbandoned,
    JobDelegated,
    JobEnded,
    JobKept,
    JobOffered,
    JobReceived,
    JobReleased,
    JobReoffered,
    JobReofferEnded,
    JobStarted,
    PartnerFaulted,
    PartnerStanding,
    PartnerTally,
    PilotAsked,
    PilotOpened,
    Record,
    ReportDisbelieved,
    ReservationBooked,
    ReservationReleased,
    ReservationTally,
    RoundHeld,
    SiteTally,
)
from grms.site.model.settings import Limits, PartnerSettings, SiteSettings
from grms.site.model.state_tables import StateTables
from grms.site.scheduler.state import SiteState
from tests.examples import runs

REQUEST = Request(1, 10.0)


def everything(settings: SiteSettings, records: list[Record]) -> object:
    """Returns all that a memory holds of records."""
    memory = StateTables(settings)
    for record in records:
        memory.apply(record)
    return inside(memory)


def inside(memory: StateTables) -> object:
    """Returns all that a memory holds, every job and guest with every attribute."""

    def shown(thing: Any) -> object:
        return [(name, repr(getattr(thing, name))) for name in thing.__struct_fields__]

    books = [
        [
            (name, getattr(book, name))
            for name in book.__slots__
            if name not in {"guests", "answered", "undecided", "open"}
        ]
        for book in memory.books.values()
    ]
    guests = [
        (
            list(book.undecided),
            list(book.open),
            [(offer, shown(guest)) for offer, guest in book.guests.items()],
            [(n, shown(a) if hasattr(a, "offer") else a) for n, a in book.answered.items()],
        )
        for book in memory.books.values()
    ]
    jobs = [shown(job) for job in memory.jobs.values()]
    reservations = memory.reservations
    return (
        (jobs, books, guests, memory.keys, memory.open_by_user, list(memory.ended)),
        (memory.next_job, memory.jobs_open, memory.unconfirmed, list(memory.at_lrms)),
        (memory.own_work, memory.own_requested),
        [
            (
                array.array_id,
                str(array.spec),
                array.received,
                array.open,
                array.not_ok,
                array.under_way,
            )
            for array in memory.held.arrays.values()
        ],
        [
            (job.job, memory.held.why(job.job))
            for job in memory.jobs.values()
            if job.job in memory.held
        ],
        (list(memory.held.hopeless.items()), memory.held.next_ready()),
        (repr(reservations.reservations), reservations.keys, list(reservations.open)),
        (reservations.open_by_owner, reservations.over, reservations.next_number),
        memory.usage.rows(),
        memory.forgotten_keys.rows(),
        reservations.forgotten_keys.rows(),
    )


def test_its_sums_are_of_the_last_moment() -> None:
    """Which a journal without records does not have: they are of the first moment there is."""
    site = SiteSettings("a", 8, partners=(PartnerSettings("b", 8),))
    known = JobReceived(5.0, 1, "ann", "k", "", REQUEST, b"")
    journals: list[tuple[list[Record], float]] = [
        ([], 0.0),
        ([known], 5.0),
        ([known, PartnerFaulted(9.0, "b", "why"), EpochBegun(7.0, 2, "why")], 9.0),
    ]
    for records, moment in journals:
        found = compacted(site, lambda kept=records: kept)  # type: ignore[misc]  # bound now
        assert found is not None
        sums = [each for each in found if isinstance(each, SiteTally | PartnerTally)]
        assert [each.time for each in sums] == [moment] * 2


@pytest.mark.parametrize("on_lost", ["wait", "resubmit"])
@pytest.mark.parametrize(("kept", "least"), [(1, 30), (3, 10), (1000, 3)])
def test_the_memory_is_the_same(
    kept: int, least: int, on_lost: Literal["wait", "resubmit"]
) -> None:
    """For journals of sites that crash, with partners that are lost, at many lengths of them."""
    lost = 0
    for seed in range(runs(12, 120)):
        trial = Trial(seed, SiteState, None, on_lost, arrays=seed % 2 == 1)
        trial.run()
        for site in trial.sites.values():
            keys = (2, 1_000_000)[seed % 2]
            limits = Limits(jobs_kept=kept, reservations_kept=kept, keys_kept=keys)
            few = replace(site.settings, limits=limits)
            for length in range(seed % 11, len(site.journal) + 1, 11):
                lost += check(few, site.journal[:length], site.journal[length:], on_lost)
    assert lost > least


def check(settings: SiteSettings, begin: list[Record], rest: list[Record], on_lost: str) -> int:
    """Checks a journal that is compacted and goes on; returns how many records it lost."""
    short = compacted(settings, lambda: begin)
    if short is None:
        assert on_lost == "resubmit" or SiteState(settings, begin).memory.held.hopeless
        return 0
    assert everything(settings, short) == everything(settings, begin)
    # And so it stays, with whatever comes after it, and compacted once more.
    whole = begin + rest
    assert everything(settings, short + rest) == everything(settings, whole)
    assert compacted(settings, lambda: short + rest) == compacted(settings, lambda: whole)
    return len(begin) - sum(
        not isinstance(
            one,
            SiteTally
            | PartnerTally
            | ReservationTally
            | ForgottenKeysTally
            | ForgottenReservationsTally,
        )
        for one in short
    )


def compacting(settings: SiteSettings, records: Any = ()) -> SiteState:
    """Makes a state of a journal that is compacted before it is read."""
    records = list(records)
    short = compacted(settings, lambda: records)
    return SiteState(settings, records if short is None else short)


def test_every_job_still_runs_exactly_once() -> None:
    """The fault test passes with daemons that compact their journals at every start."""
    for seed in range(1000, runs(1060, 2000)):
        assert Trial(seed, compacting, None, "wait").run().problems == ()


def test_a_forgotten_job_leaves_its_number_alone() -> None:
    """Only the next number and counts are left of it; the payload is gone."""
    settings = SiteSettings("a", 4, limits=Limits(jobs_kept=1))
    records: list[Record] = []
    for number in (1, 2, 3):
        records += [
            JobReceived(1.0 * number, number, "u", f"k{number}", "", REQUEST, b"payload"),
            JobEnded(1.0 * number, number, Outcome.CANCELLED, 1.0 * number, 0.0, ""),
        ]
    short = compacted(settings, lambda: records)
    assert short is not None
    kinds = [type(record).__name__ for record in short]
    assert kinds == ["ForgottenKeysTally", "JobReceived", "JobEnded", "SiteTally"]
    rows = tuple((digest_of("u", f"k{number}"), number, number + 1.0) for number in (1, 2))
    assert short[0] == ForgottenKeysTally(3.0, rows)
    assert short[-1] == SiteTally(3.0, 4)
    assert everything(settings, short) == everything(settings, records)


def test_a_number_is_not_given_again_though_its_job_was_the_first_to_be_forgotten() -> None:
    """The last job ended before the others."""
    settings = SiteSettings("a", 4, limits=Limits(jobs_kept=1))
    received = [JobReceived(1.0, n, "u", f"k{n}", "", REQUEST, b"") for n in (1, 2)]
    ended = [JobEnded(2.0, n, Outcome.CANCELLED, 2.0, 0.0, "") for n in (2, 1)]
    records = [*received, *ended]
    short = compacted(settings, records.copy)
    keys = ForgottenKeysTally(2.0, ((digest_of("u", "k2"), 2, 2.0),))
    assert short == [keys, received[0], ended[1], SiteTally(2.0, 3)]
    assert everything(settings, short) == everything(settings, records)


def test_what_partners_are_trusted_with_survives() -> None:
    """Faults, doubts, epochs and what was seen last: kept though their records go."""
    partners = (PartnerSettings("b", 4),)
    settings = SiteSettings(name="a", processors=4, partners=partners, limits=Limits(jobs_kept=1))
    records: list[Record] = [
        PartnerFaulted(0.0, "b", "it says 7"),
        EpochBegun(1.0, 9, "an older copy"),
        GuestDeclined(1.0, GuestRef("b", OfferId(3, 8)), 1),
        GuestWithdrawn(1.0, GuestRef("b", OfferId(3, 9))),
    ]
    for number in range(1, 12):
        records += [
            JobReceived(2.0, number, "ann", f"k{number}", "", REQUEST, b""),
            JobOffered(2.0, number, "b", number),
            JobDelegated(3.0, number),
            JobEnded(4.0, number, Outcome.COMPLETED, 4.0, 1.0, ""),
            ReportDisbelieved(4.0, "b", number, f"lie {number}"),
        ]
    short = compacted(settings, lambda: records)
    assert short is not None
    assert len(short) == 14
    assert everything(settings, short) == everything(settings, records)
    memory = StateTables(settings)
    for record in short:
        memory.apply(record)
    book = memory.books["b"]
    assert (memory.epoch, book.faults, book.disbelieved, book.doubt) == (9, 1, 11, "lie 11")
    assert (book.distrust, book.number_seen) == (100, 9)
    assert memory.jobs[11].lrms_key == "a/9/11"
    assert [type(record) for record in short[-2:]] == [PartnerTally, PartnerStanding]
    # Who has given no cause has no line of it.
    plain = compacted(settings, lambda: [r for r in records if not isinstance(r, _GIVES_CAUSE)])
    assert plain is not None
    assert not [record for record in plain if isinstance(record, PartnerStanding)]


_GIVES_CAUSE = (PartnerFaulted, ReportDisbelieved, GuestWithdrawn, GuestDeclined)


def test_forgotten_reservations_leave_a_number() -> None:
    """Of two hundred that are over ten are kept, as one wants, and open ones."""
    settings = SiteSettings("a", 4, limits=Limits(reservations_kept=10))
    records: list[Record] = []
    for number in range(1, 201):
        key = f"k{number}"
        records += [
            ReservationBooked(1.0, number, "me", key, "cpu", number, number + 1.0, 1, 0.0),
            *([ReservationReleased(2.0, number)] if number != 7 else []),
        ]
    short = compacted(settings, lambda: records)
    assert short is not None
    assert everything(settings, short) == everything(settings, records)
    kept = [record for record in short if isinstance(record, ReservationBooked)]
    assert [record.reservation for record in kept] == [7, *range(191, 201)]
    assert short[-2:] == [SiteTally(2.0, 1), ReservationTally(2.0, 201)]
    gone = [number for number in range(1, 191) if number != 7]
    rows = tuple((digest_of("me", f"k{number}"), number, 2.0) for number in gone)
    assert short[0] == ForgottenReservationsTally(2.0, rows)
    assert len(short) == 1 + 11 + 10 + 2
    reading = Reading(settings)
    for record in records:
        reading.apply(record)
    assert reading.needed_about() == 21 + 1


def test_a_place_that_is_still_to_be_withdrawn_keeps_everything() -> None:
    """As any offer of which the partner is still to be told."""
    partners = (PartnerSettings("b", 4),)
    settings = SiteSettings(name="a", processors=4, partners=partners, limits=Limits(jobs_kept=1))
    records: list[Record] = []
    withdrawn = [JobReoffered(2.0, 1, "b", 1), JobReofferEnded(2.0, 1, "b", 1, settled=False)]
    for number in (1, 2):
        records += [
            JobReceived(1.0, number, "ann", f"k{number}", "", REQUEST, b""),
            JobKept(1.0, number),
            *(withdrawn if number == 1 else []),
            JobEnded(4.0, number, Outcome.COMPLETED, 4.0, 1.0, ""),
        ]
    assert compacted(settings, lambda: records) is None
    records.append(AbandonedSettled(7.0, "b", 1))
    short = compacted(settings, lambda: records)
    assert short is not None
    assert everything(settings, short) == everything(settings, records)
    # With a job that is remembered it is kept that its partner knows.
    longer = replace(settings, limits=Limits(jobs_kept=2))
    short = compacted(longer, lambda: records)
    assert short is not None
    assert records[-1] in short
    assert everything(longer, short) == everything(longer, records)


def test_what_a_round_has_come_to_is_kept_while_it_is_open() -> None:
    """Of those that are over no question is left that came to nothing."""
    partners = (PartnerSettings("b", 4),)
    settings = SiteSettings(name="a", processors=4, partners=partners)

    def round_(time: float, number: int) -> list[Record]:
        return [
            RoundHeld(time, over=False, left_out=()),
            JobReoffered(time, 1, "b", number),
            JobReofferEnded(time, 1, "b", number, settled=True),
        ]

    received = [JobReceived(1.0, 1, "ann", "k1", "", REQUEST, b""), JobKept(1.0, 1)]
    over = [RoundHeld(1801.0, over=True, left_out=())]
    for end, kept in (([], round_(1800.0, 2)), (over, [])):
        records = [*received, *round_(900.0, 1), *round_(1800.0, 2), *end]
        short = compacted(settings, records.copy)
        assert short is not None
        assert short[:-2] == [*received, *kept]
        again, before = StateTables(settings), StateTables(settings)
        for memory, given in ((again, short), (before, records)):
            for record in given:
                memory.apply(record)
        assert again.rounds.open == before.rounds.open == bool(kept)
        if kept:
            assert vars(again.rounds) == vars(before.rounds)


@pytest.mark.parametrize(
    "record",
    [
        PartnerFaulted(1.0, "b", "it says 7"),
        ReportDisbelieved(1.0, "b", 1, "a lie"),
    ],
)
def test_one_cause_is_enough_for_a_partner_to_be_remembered(record: Record) -> None:
    """Whether it has become faulty or has lied."""
    settings = SiteSettings(name="a", processors=4, partners=(PartnerSettings("b", 4),))
    short = compacted(settings, lambda: [record])
    assert short is not None
    assert isinstance(short[-1], PartnerStanding)
    assert everything(settings, short) == everything(settings, [record])


def test_how_much_is_needed_is_known_without_a_look() -> None:
    """At most what a journal is left with: a change of a job or guest each, an answer for itself."""
    partners = (PartnerSettings("b", 4),)
    settings = SiteSettings(name="a", processors=4, partners=partners)
    one, two, three = (OfferId(3, number) for number in (1, 2, 3))
    records: list[Record] = [
        GuestAccepted(1.0, GuestRef("b", one), 1, REQUEST, b""),
        GuestAccepted(1.0, GuestRef("b", two), 1, REQUEST, b""),
        GuestDeclined(1.0, GuestRef("b", three), 1),
        JobStarted(2.0, GuestRef("b", one), 2.0),
        JobStarted(2.0, GuestRef("b", two), 2.0),
        JobEnded(3.0, GuestRef("b", two), Outcome.COMPLETED, 3.0, 1.0, ""),
        GuestAcknowledged(4.0, GuestRef("b", two)),
    ]
    reading = Reading(settings)
    for record in records:
        reading.apply(record)
    assert reading.needed_about() == len(records)
    short = reading.compacted(records)
    assert short is not None
    assert short[: len(records)] == records
    assert everything(settings, short) == everything(settings, records)


def test_an_offer_that_is_still_to_be_withdrawn_keeps_everything() -> None:
    """Its job is forgotten, and nothing else knows of which offer the partner is to be told."""
    partners = (PartnerSettings("b", 4),)
    settings = SiteSettings(name="a", processors=4, partners=partners, limits=Limits(jobs_kept=1))
    records: list[Record] = [
        JobReceived(1.0, 1, "ann", "k1", "", REQUEST, b""),
        JobOffered(1.0, 1, "b", 1),
        JobDelegated(2.0, 1),
        JobAbandoned(3.0, 1),
        JobKept(3.0, 1),
        JobEnded(4.0, 1, Outcome.COMPLETED, 4.0, 1.0, ""),
    ]
    kept = compacted(settings, lambda: records)
    assert kept is not None
    assert everything(settings, kept) == everything(settings, records)
    records += [
        JobReceived(5.0, 2, "ann", "k2", "", REQUEST, b""),
        JobKept(5.0, 2),
        JobEnded(6.0, 2, Outcome.COMPLETED, 6.0, 1.0, ""),
    ]
    assert compacted(settings, lambda: records) is None
    records.append(AbandonedSettled(7.0, "b", 1))
    kept = compacted(settings, lambda: records)
    assert kept is not None
    assert everything(settings, kept) == everything(settings, records)


def test_a_clock_that_was_set_back_changes_no_latest_moment() -> None:
    """Records stand in the order in which they were made, whatever their times are."""
    settings = SiteSettings(name="a", processors=4, partners=(PartnerSettings("b", 4),))
    reading = Reading(settings)
    reading.apply(PartnerFaulted(4.0, "b", "it says 7"))
    reading.apply(PartnerFaulted(2.0, "b", "it says 8"))
    assert reading.moment == 4.0


def test_of_an_array_is_kept_what_its_elements_that_are_forgotten_have_come_to() -> None:
    """It is there as long as one of them is remembered; then its key is, and another array does not matter."""
    few = SiteSettings(name="a", processors=4, limits=Limits(jobs_kept=1))
    records: list[Record] = []
    for array in (1, 3):
        records.append(ArrayReceived(1.0, array, "1-2", "ann", f"k{array}", "", REQUEST, b""))
        for index in (0, 1):
            number = array + index
            key = f"k{array}"
            records.append(
                JobReceived(1.0, number, "ann", key, "", REQUEST, b"", array=array, index=index + 1)
            )
    for number, outcome in ((1, Outcome.FAILED), (2, Outcome.COMPLETED), (3, Outcome.FAILED)):
        records.append(JobReleased(2.0, number))
        records.append(JobKept(2.0, number))
        records.append(JobStarted(3.0, number, 3.0))
        records.append(JobEnded(4.0, number, outcome, 4.0, 1.0, ""))
    for length in range(6, len(records) + 1):
        short = compacted(few, lambda length=length: records[:length])  # type: ignore[misc]  # bound now
        assert short is not None
        assert everything(few, short) == everything(few, records[:length])
    assert short is not None
    arrays = [(one.array, one.not_ok) for one in short if isinstance(one, ArrayReceived)]
    assert arrays == [(3, 0)]
    halfway = compacted(few, lambda: records[:14])
    assert halfway is not None
    arrays = [(one.array, one.not_ok) for one in halfway if isinstance(one, ArrayReceived)]
    assert arrays == [(1, 1), (3, 0)]


def test_how_much_is_needed_is_known_of_each_kind_of_record() -> None:
    """Of arrays and their elements, jobs, reservations, pilots, keys of forgotten jobs and answers to partners."""
    partners = (PartnerSettings("b", 4), PartnerSettings("c", 4))
    settings = SiteSettings(name="a", processors=4, partners=partners)
    offers = [OfferId(3, number) for number in (1, 2, 3)]
    needed: list[Record] = [
        ArrayReceived(1.0, 1, "1-2", "ann", "k", "", REQUEST, b""),
        *(JobReceived(1.0, n, "ann", "k", "", REQUEST, b"", array=1, index=n) for n in (1, 2)),
        JobReleased(2.0, 1),
        ArrayReceived(1.0, 3, "1", "bob", "k", "", REQUEST, b""),
        JobReceived(1.0, 3, "bob", "k", "", REQUEST, b"", array=3, index=1),
        JobReceived(1.0, 4, "bob", "k4", "", REQUEST, b""),
        JobKept(2.0, 4),
        *(ReservationBooked(2.0, n, "me", f"k{n}", "r", 3.0, 9.0, 1, 0.0) for n in (1, 2)),
        ReservationReleased(3.0, 2, ""),
        PilotAsked(3.0, 1, "r", "7-1"),
        PilotOpened(4.0, 1, 90.0, "n1"),
        PilotAsked(5.0, 2, "r", "7-2"),
        *(GuestAccepted(6.0, GuestRef("b", one), 1, REQUEST, b"") for one in offers[:2]),
        *(GuestAccepted(6.0, GuestRef("c", one), 1, REQUEST, b"") for one in offers[:2]),
        *(GuestDeclined(7.0, GuestRef(name, offers[2]), 1) for name in "bc"),
    ]
    keys = tuple((digest_of("eve", f"k{number}"), number, 0.0) for number in range(3))
    forgotten = [ForgottenKeysTally(0.0, keys), ForgottenReservationsTally(0.0, keys[:2])]
    reading = Reading(settings)
    records = [*forgotten, *needed]
    for record in records:
        reading.apply(record)
    assert reading.needed_about() == len(records)
    short = reading.compacted(records)
    assert short is not None
    assert short[: len(records)] == records
