import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grms.simulation.fault_run import Trial
from grms.simulation.findings import known
from grms.site.model.jobs import GuestRef, Load, OfferId, Request
from grms.site.model.lifecycle import IllegalMove, JobState, Outcome
from grms.site.model.records import (
    GuestAccepted,
    GuestDeclined,
    JobCancelRequested,
    JobDeclined,
    JobDelegated,
    JobEnded,
    JobKept,
    JobOffered,
    JobReceived,
    JobResubmitted,
    JobStarted,
    JobTakenBack,
    Record,
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
