"""The judge of how long jobs wait on a partner, by hand."""

import math

import pytest

from grms.simulation.waits import WaitChecker
from grms.site.model.jobs import GuestRef, OfferId, Request
from grms.site.model.lifecycle import Outcome
from grms.site.model.records import (
    GuestConfirmed,
    GuestReserved,
    JobAbandoned,
    JobDeclined,
    JobDelegated,
    JobEnded,
    JobKept,
    JobLeaving,
    JobLeft,
    JobOffered,
    JobPromised,
    JobReceived,
    JobReoffered,
    JobReofferEnded,
    JobReturned,
    Record,
)
from grms.site.model.settings import SiteSettings

SETTINGS = SiteSettings(
    "a", 8, undecided_time_max=60.0, delegated_time_max=300.0, confirm_time_max=20.0
)
RECEIVED = JobReceived(0.0, 1, "ann", "1", "", Request(2, 10.0), b"")
OFFER = OfferId(1, 7)


def judge(*records: Record, since: float = -math.inf, tolerance: float = math.inf) -> WaitChecker:
    """Returns a judge of a site that has lived this."""
    made = WaitChecker(SETTINGS, tolerance, since)
    made.follow((RECEIVED, *records))
    return made


def test_an_offer_has_a_deadline() -> None:
    """From when it was made, not counting the time before the site was up."""
    offered = JobOffered(5.0, 1, "b", 1)
    assert judge(offered).beyond_deadline("b", 65.0) == []
    assert judge(offered).beyond_deadline("b", 65.5) == [(1, 0.5)]
    assert judge(offered).beyond_deadline("c", 65.5) == []
    assert judge(offered, since=100.0).beyond_deadline("b", 102.0) == [(1, 2.0)]


def test_a_job_that_was_accepted_has_another() -> None:
    """Its request and some time more."""
    there = judge(JobOffered(5.0, 1, "b", 1), JobDelegated(6.0, 1))
    assert there.beyond_deadline("b", 316.0) == []
    assert there.beyond_deadline("b", 317.0) == [(1, 1.0)]


def test_who_waits_in_the_own_queue_waits_on_nobody() -> None:
    """Until it has left the queue; then it counts from the offer on."""
    asked = (JobKept(1.0, 1), JobReoffered(5.0, 1, "b", 1), JobLeaving(6.0, 1))
    assert judge(*asked).beyond_deadline("b", 1000.0) == []
    assert judge(*asked, JobLeft(7.0, 1)).beyond_deadline("b", 66.0) == [(1, 1.0)]
    stayed = judge(*asked, JobReofferEnded(7.0, 1, "b", 1, settled=False), JobLeft(7.0, 1))
    assert stayed.beyond_deadline("b", 1000.0) == []


@pytest.mark.parametrize(
    "over",
    [
        JobDeclined(8.0, 1),
        JobAbandoned(8.0, 1),
        JobReturned(8.0, 1),
        JobEnded(8.0, 1, Outcome.COMPLETED, 8.0, 1.0, ""),
    ],
)
def test_what_is_over_is_waited_for_no_more(over: Record) -> None:
    """However it has ended."""
    gone = judge(JobOffered(5.0, 1, "b", 1), over)
    assert gone.beyond_deadline("b", 1000.0) == []


def test_a_promise_is_the_request_and_the_tolerance() -> None:
    """From the acceptance on; a job of which nothing was promised breaks no promise."""
    there = (JobOffered(5.0, 1, "b", 1), JobDelegated(6.0, 1))
    promised = judge(*there, JobPromised(6.0, 1), tolerance=4.0)
    assert promised.beyond_promise("b", 20.0) == []
    assert promised.beyond_promise("b", 21.0) == [(1, 1.0)]
    assert promised.beyond_promise("c", 21.0) == []
    assert judge(*there, tolerance=4.0).beyond_promise("b", 21.0) == []
    assert judge(*there, JobPromised(6.0, 1)).beyond_promise("b", 1e9) == []


def test_a_place_is_held_for_so_long() -> None:
    """Until it is confirmed, or given back."""
    held = GuestReserved(5.0, GuestRef("b", OFFER))
    assert judge(held).places_too_long(30.0, 5.0) == []
    (problem,) = judge(held).places_too_long(31.0, 5.0)
    assert "of b is held for 26 s, not 20" in problem
    assert judge(held, since=27.0).places_too_long(31.0, 5.0) == []
    for over in (
        GuestConfirmed(6.0, GuestRef("b", OFFER)),
        JobEnded(6.0, GuestRef("b", OFFER), Outcome.LOST, 6.0, 0.0, ""),
    ):
        assert judge(held, over).places_too_long(1000.0, 5.0) == []
