import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grms.simulation.fault_run import Trial
from grms.simulation.findings import known
from grms.site.model.jobs import (
    NO_EXIT,
    Exit,
    GuestRef,
    Load,
    OfferId,
    Request,
    SentHome,
    StateThere,
)
from grms.site.model.lifecycle import IllegalMove, JobState, Outcome
from grms.site.model.records import (
    ArrayReceived,
    GuestAccepted,
    GuestCharged,
    GuestDeclined,
    JobAbandoned,
    JobCancelRequested,
    JobDeclined,
    JobDelegated,
    JobEnded,
    JobExited,
    JobKept,
    JobLeaving,
    JobLeft,
    JobLost,
    JobOffered,
    JobReceived,
    JobReoffered,
    JobReofferEnded,
    JobRequeued,
    JobResubmitted,
    JobReturned,
    JobSentHome,
    JobStarted,
    JobStays,
    JobTakenBack,
    JobUnplaced,
    Record,
    RerunAllowed,
    RoundHeld,
    StateCame,
    StateMissed,
)
from grms.site.model.settings import PartnerSettings
from grms.site.model.state_tables import StateTables
from grms.site.scheduler.state import SiteState
from tests.examples import FEW
from tests.grms.site.conversation import settings


def received(number: int = 1) -> JobReceived:
    """Returns the record of a submission."""
    return JobReceived(1.0, number, "ann", f"k{number}", "", Request(2, 10.0), b"")


def test_records_that_contradict_each_other_are_noticed() -> None:
    """A start of a job that is being offered cannot be; nor anything about a job nobody knows."""
    memory = StateTables(settings())
    memory.apply(received())
    memory.apply(JobOffered(1.0, 1, "b", 1))
    with pytest.raises(IllegalMove, match="a-1 cannot become RUNNING; so far: RECEIVED → OFFERING"):
        memory.apply(JobStarted(2.0, 1, 2.0))
    with pytest.raises(KeyError):
        memory.apply(JobKept(2.0, 9))
    with pytest.raises(KeyError):
        memory.apply(JobStarted(2.0, GuestRef("b", OfferId(1, 1)), 2.0))


def test_a_partner_that_was_taken_off_the_list_keeps_its_book() -> None:
    """What the journal says of it is not lost, and it is not a partner."""
    memory = StateTables(settings())
    memory.apply(GuestAccepted(1.0, GuestRef("old", OfferId(1, 1)), 1, Request(1, 1.0), b""))
    assert not memory.books["old"].listed
    assert list(memory.at_lrms) == ["old/1/1"]
    books = dict(memory.books)
    partners = (PartnerSettings("c", 4), PartnerSettings("new", 2))
    memory.settings = settings(partners=partners, transfer={})
    memory.list_partners()
    assert list(memory.books) == ["c", "new", "b", "old"]
    assert [name for name, book in memory.books.items() if book.listed] == ["c", "new"]
    assert all(memory.books[name] is book for name, book in books.items())
    assert memory.books["new"].processors == 2
    memory.settings = settings()
    memory.list_partners()
    assert memory.books["b"].listed


def test_what_is_on_its_way_counts_as_load() -> None:
    """Free processors first, then the queue; from the confirmation on the batch system counts it."""
    memory = StateTables(settings())
    load = Load(8, 3, 1)
    assert memory.load(load) is load
    assert memory.load(None) is None
    for number in (1, 2):
        memory.apply(received(number))
        memory.apply(JobKept(1.0, number))
    assert memory.load(load) == Load(8, 0, 2)
    memory.apply(JobStarted(2.0, 1, 2.0))
    assert memory.load(load) == Load(8, 1, 1)
    memory.confirm(memory.jobs[2])
    assert memory.load(load) is load


HOME = JobReceived(1.0, 1, "ann", "k1", "", Request(2, 10.0), b"")
OFFERED = JobOffered(2.0, 1, "b", 3)
STATE = StateThere("b", OfferId(7, 3), 4.0)
NOWHERE = {
    "partner": ("b", ""),
    "offer_epoch": (7, 0),
    "offer_number": (3, 0),
    "offer_time": (2.0, math.nan),
}
"""What changes of a job that has no offer any more."""

AWAY = (HOME, OFFERED, RerunAllowed(2.0, 1, "b", 3), JobDelegated(3.0, 1))
SENT_HOME = (*AWAY, JobSentHome(9.0, 1, "b", 5.0, STATE))
ON_ITS_WAY = "what it has written at b is on its way home"
HERE = (HOME, JobKept(2.0, 1))
IN_ROUND = (*HERE, RoundHeld(3.0, over=False, left_out=()))
REOFFERED = (*IN_ROUND, JobReoffered(3.0, 1, "b", 3))
NOT_REOFFERED = {**NOWHERE, "offer_time": (3.0, math.nan)}


@pytest.mark.parametrize(
    ("before", "record", "changes"),
    [
        (
            (HOME,),
            OFFERED,
            {
                "partner": ("", "b"),
                "offer_epoch": (0, 7),
                "offer_number": (0, 3),
                "offer_time": (math.nan, 2.0),
                "asked": ((), ("b",)),
                "put": (0, 1),
                "revision": (1, 2),
            },
        ),
        ((HOME, OFFERED), JobDeclined(3.0, 1), {**NOWHERE, "revision": (2, 3)}),
        (
            (HOME, OFFERED, JobDeclined(3.0, 1)),
            JobUnplaced(4.0, 1, "nobody"),
            {
                "asked": (("b",), ()),
                "put": (1, 0),
                "unplaced": (0, 1),
                "unplaced_time": (math.nan, 4.0),
                "reason": ("", "nobody"),
                "revision": (3, 4),
            },
        ),
        (
            (HOME, OFFERED),
            JobDelegated(3.0, 1),
            {"accept_time": (math.nan, 3.0), "put": (1, 0), "revision": (2, 3)},
        ),
        (
            (HOME, OFFERED, JobDeclined(3.0, 1)),
            JobKept(4.0, 1),
            {"kept_time": (math.nan, 4.0), "put": (1, 0), "revision": (3, 4)},
        ),
        (
            AWAY,
            JobSentHome(9.0, 1, "b", 5.0, STATE),
            {
                **NOWHERE,
                "accept_time": (3.0, math.nan),
                "rerun": (True, False),
                "state_there": (None, STATE),
                "sent_home": ((), (SentHome("b", 1, 5.0),)),
                "reason": ("", ON_ITS_WAY),
                "revision": (3, 4),
            },
        ),
        (
            AWAY,
            JobReturned(9.0, 1),
            {
                **NOWHERE,
                "accept_time": (3.0, math.nan),
                "rerun": (True, False),
                "revision": (3, 4),
            },
        ),
        (
            AWAY,
            JobTakenBack(9.0, 1, "root"),
            {"take_back": (False, True), "revision": (3, 4)},
        ),
        (
            HERE,
            JobStarted(5.0, 1, 4.5),
            {"begun": (False, True), "start_time": (math.nan, 4.5), "revision": (2, 3)},
        ),
        (
            (*HERE, JobStarted(5.0, 1, 4.5)),
            JobRequeued(6.0, 1, "its node failed"),
            {
                "start_time": (4.5, math.nan),
                "requeued_time": (math.nan, 6.0),
                "reason": ("", "its node failed"),
                "revision": (3, 4),
            },
        ),
        (
            HERE,
            JobLost(6.0, 1, "forgotten"),
            {"lost": (0, 1), "kept_time": (2.0, 6.0), "reason": ("", "forgotten")},
        ),
        (
            (*HERE, JobStarted(5.0, 1, 4.5)),
            JobExited(7.0, 1, Exit(3)),
            {"exit": (NO_EXIT, Exit(3))},
        ),
        (
            HERE,
            JobEnded(9.0, 1, Outcome.FAILED, 8.0, 2.0, "why"),
            {
                "start_time": (math.nan, 6.0),
                "end_time": (math.nan, 8.0),
                "run_time": (0.0, 2.0),
                "outcome": (None, Outcome.FAILED),
                "reason": ("", "why"),
                "revision": (2, 3),
            },
        ),
        (
            SENT_HOME,
            StateCame(10.0, 1, "b", 4.0, b"on"),
            {
                "state_there": (STATE, None),
                "sent_home": ((SentHome("b", 1, 5.0),), (SentHome("b", 1, 1.0, 4.0, 1),)),
                "restored": (b"", b"on"),
                "restored_time": (0.0, 4.0),
                "reason": (ON_ITS_WAY, ""),
                "revision": (4, 5),
            },
        ),
        (
            SENT_HOME,
            StateMissed(10.0, 1, "b", 4.0, "gone"),
            {
                "state_there": (STATE, None),
                "sent_home": (
                    (SentHome("b", 1, 5.0),),
                    (SentHome("b", 1, 5.0, problem="gone"),),
                ),
                "reason": (ON_ITS_WAY, "it runs from its start: gone"),
                "revision": (4, 5),
            },
        ),
        (
            AWAY,
            JobAbandoned(9.0, 1),
            {
                **NOWHERE,
                "accept_time": (3.0, math.nan),
                "rerun": (True, False),
                "revision": (3, 4),
            },
        ),
        (AWAY, JobResubmitted(9.0, 1, "root"), {"revision": (3, 4)}),
        ((HOME, OFFERED), RerunAllowed(2.0, 1, "b", 3), {"rerun": (False, True)}),
        (
            IN_ROUND,
            JobReoffered(3.0, 1, "b", 3),
            {
                "partner": ("", "b"),
                "offer_epoch": (0, 7),
                "offer_number": (0, 3),
                "offer_time": (math.nan, 3.0),
                "revision": (2, 3),
            },
        ),
        (REOFFERED, JobReofferEnded(4.0, 1, "b", 3, settled=True), NOT_REOFFERED),
        (REOFFERED, JobReofferEnded(4.0, 1, "b", 3, settled=False), NOT_REOFFERED),
        (REOFFERED, JobLeaving(4.0, 1), {"asked": ((), ("b",)), "leaving": (False, True)}),
        ((*REOFFERED, JobLeaving(4.0, 1)), JobStays(5.0, 1), {"leaving": (True, False)}),
        (
            (*REOFFERED, JobLeaving(4.0, 1)),
            JobLeft(5.0, 1),
            {
                "lrms_key": ("a/7/1", "a/7/1/2"),
                "leaving": (True, False),
                "confirms": (False, True),
                "revision": (3, 4),
            },
        ),
        (
            HERE,
            JobCancelRequested(3.0, 1),
            {"cancel_requested": (False, True), "revision": (2, 3)},
        ),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Record) else "",
)
def test_a_record_changes_what_it_says_of_a_job_and_nothing_else(
    before: tuple[Record, ...], record: Record, changes: dict[str, tuple[object, object]]
) -> None:
    """Each field beside its state, to the value and the kind that it has then."""
    memory = StateTables(settings())
    for each in before:
        memory.apply(each)
    job = memory.jobs[1]
    names = set(job.__struct_fields__) - {"state", "story"}
    then = {name: getattr(job, name) for name in names}
    memory.apply(record)
    now = {name: getattr(job, name) for name in names}
    # As text: nan is itself, and None is not False.
    found = {name: (then[name], now[name]) for name in names if repr(then[name]) != repr(now[name])}
    assert {name: repr(pair) for name, pair in found.items()} == {
        name: repr(pair) for name, pair in changes.items()
    }


def test_a_partners_job_that_stays_is_not_leaving() -> None:
    """And one that leaves is."""
    memory = StateTables(settings())
    ref = GuestRef("b", OfferId(1, 1))
    memory.apply(GuestAccepted(1.0, ref, 1, Request(1, 1.0), b""))
    guest = memory.job(ref)
    memory.apply(JobLeaving(2.0, ref))
    assert guest.leaving is True
    memory.apply(JobStays(3.0, ref))
    assert guest.leaving is False


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("a-1", True),
        ("a-2", True),  # the array
        ("a-2_4", True),
        ("a-2_5", False),
        ("a-3", True),
        ("a-4", False),
        ("a-0", False),
        ("b-1", None),
    ],
)
def test_a_name_that_was_given_is_one_of_a_job_or_an_array(name: str, given: bool | None) -> None:
    """Or of an element that the array has: jobs 2 and 3 are 4 and 6 of one."""
    memory = StateTables(settings())
    memory.apply(received())
    words = ("ann", "k", "sweep", Request(1, 1.0), b"")
    memory.apply(ArrayReceived(1.0, 2, "4,6", *words))
    for number, index in ((2, 4), (3, 6)):
        memory.apply(JobReceived(1.0, number, *words, array=2, index=index))
    assert memory.was_given(name) is given


def test_an_ended_job_is_ended_once() -> None:
    """A second end is a contradiction."""
    memory = StateTables(settings())
    memory.apply(received())
    memory.apply(JobKept(1.0, 1))
    end = JobEnded(3.0, 1, Outcome.COMPLETED, 3.0, 2.0, "")
    memory.apply(end)
    assert memory.jobs[1].state is JobState.ENDED
    assert memory.jobs_open == 0
    assert memory.open_by_user == {}
    with pytest.raises(IllegalMove):
        memory.apply(end)


def test_a_job_has_a_start_if_it_has_run() -> None:
    """One whose start nobody has told began its run time before its end; what was told stays."""
    for started, run_time, start_time in (
        (None, 2.0, 7.0),
        (None, 0.0, math.nan),
        (3.0, 2.0, 3.0),  # it was stopped for a while, and went on
        (3.0, 0.0, 3.0),
    ):
        memory = StateTables(settings())
        memory.apply(received())
        memory.apply(JobKept(1.0, 1))
        if started is not None:
            memory.apply(JobStarted(started, 1, started))
        memory.apply(JobEnded(9.0, 1, Outcome.FAILED, 9.0, run_time, ""))
        assert memory.jobs[1].start_time == pytest.approx(start_time, nan_ok=True)


@FEW
@given(st.integers(0, 2**32), st.floats(0, 1))
def test_any_beginning_of_a_journal_is_a_state(seed: int, share: float) -> None:
    """Wherever a crash cuts a journal off, what is left can be recovered, twice alike."""
    trial = Trial(seed)
    trial.run()
    for site in trial.sites.values():
        journal: list[Record] = site.journal[: round(share * len(site.journal))]
        assert known(SiteState(site.settings, journal)) == known(SiteState(site.settings, journal))


def test_offers_of_a_partner_are_counted_whatever_is_answered() -> None:
    """Accepted and declined ones; only the accepted ones as accepted."""
    memory = StateTables(settings())
    memory.apply(GuestAccepted(1.0, GuestRef("b", OfferId(1, 1)), 1, Request(1, 1.0), b""))
    memory.apply(GuestDeclined(1.0, GuestRef("b", OfferId(1, 2)), 1))
    memory.apply(GuestDeclined(1.0, GuestRef("b", OfferId(1, 3)), 1))
    book = memory.books["b"]
    assert (book.guest_offered, book.guest_accepted) == (3, 1)


def test_offers_to_a_partner_are_counted_by_what_it_answered() -> None:
    """An end that overtakes the answer is an acceptance; every change of a job has its number."""
    memory = StateTables(settings())
    for number in (1, 2, 3):
        memory.apply(received(number))
        memory.apply(JobOffered(1.0, number, "b", number))
    memory.apply(JobDelegated(2.0, 1))
    memory.apply(JobDeclined(2.0, 2))
    memory.apply(JobEnded(3.0, 3, Outcome.COMPLETED, 3.0, 2.0, ""))
    book = memory.books["b"]
    assert (book.offered, book.accepted, book.ended) == (3, 2, 1)
    before = memory.jobs[1].revision
    memory.apply(JobTakenBack(4.0, 1, "root"))
    assert (memory.jobs[1].take_back, memory.jobs[1].revision) == (True, before + 1)
    memory.apply(JobCancelRequested(5.0, 1))
    assert (memory.jobs[1].cancel_requested, memory.jobs[1].revision) == (True, before + 2)
    memory.apply(JobResubmitted(6.0, 1, "root"))
    assert memory.jobs[1].revision == before + 3


def test_a_job_that_comes_home_before_the_answer_to_its_offer_was_accepted() -> None:
    """Each of them counts as accepted and as ended."""
    memory = StateTables(settings())
    for number in (1, 2):
        memory.apply(received(number))
        memory.apply(JobOffered(1.0, number, "b", number))
        memory.apply(JobReturned(3.0, number))
        assert memory.jobs[number].state is JobState.RECEIVED
    book = memory.books["b"]
    assert (book.offered, book.accepted, book.ended, book.undecided) == (2, 2, 2, {})


def test_what_a_guest_may_cost_is_noted() -> None:
    """Of the one that was accepted at that price."""
    memory = StateTables(settings())
    first, second = (GuestRef("b", OfferId(1, number)) for number in (1, 2))
    for ref in (first, second):
        memory.apply(GuestAccepted(1.0, ref, 1, Request(1, 1.0), b""))
    memory.apply(GuestCharged(1.0, second, 7.5))
    guests = memory.books["b"].guests
    assert (guests[first.offer].charge, guests[second.offer].charge) == (0.0, 7.5)
