"""Places that a site holds for a partner's job until its home site has let it go, or has not."""

import math

import pytest

from grms.site.model.commands import AnswerOffer, AnswerStatus, LrmsSubmit, Refuse, SendReport
from grms.site.model.events import (
    OfferReceived,
    ResolveReceived,
    Restarted,
    TimePassed,
    WithdrawReceived,
)
from grms.site.model.jobs import Completion, GuestRef, OfferId, Request
from grms.site.model.lifecycle import GuestState, Outcome
from grms.site.model.records import JobCancelRequested
from tests.grms.site.conversation import FREE, FULL, REQUEST, Conversation, kinds, one

THEIRS = OfferId(3, 5)
GUEST = "b/3/5"


def holding(now: float = 0.0) -> Conversation:
    """Returns a site that holds a place for a job of b since some moment."""
    site = Conversation()
    site.now = now
    answer = site(
        OfferReceived,
        load=FREE,
        partner="b",
        offer=THEIRS,
        settled_below=1,
        request=REQUEST,
        payload=b"run",
        reserve=True,
    )
    assert answer == [AnswerOffer(site.last_id, accepted=True)]
    return site


def test_a_place_is_held_and_nothing_started() -> None:
    """Its processors count as taken; the same offer has the same answer, also over a restart."""
    site = holding()
    assert site.state.memory.unconfirmed == REQUEST.processors
    site.restart()
    assert site(Restarted, load=FREE) == []
    answer = site(ResolveReceived, partner="b", offer=THEIRS)
    assert answer == [AnswerStatus(site.last_id, GuestState.ACCEPTED)]


def test_a_confirmed_job_is_started_once() -> None:
    """However often that is said; a restart looks it up."""
    site = holding()
    site.now = 9.0
    answer, submit = site(ResolveReceived, partner="b", offer=THEIRS, confirm=True)
    assert answer == AnswerStatus(site.last_id, GuestState.ACCEPTED)
    assert isinstance(submit, LrmsSubmit)
    assert (submit.lrms_key, submit.since) == (GUEST, 9.0)
    assert kinds(site(ResolveReceived, partner="b", offer=THEIRS, confirm=True)) == ["AnswerStatus"]
    site.restart()
    assert one(site(Restarted, load=FREE), LrmsSubmit).lookup


@pytest.mark.parametrize(("cancel", "outcome"), [(True, Outcome.CANCELLED), (False, Outcome.LOST)])
def test_a_place_that_is_taken_back_is_free(cancel: bool, outcome: Outcome) -> None:
    """Nothing has to be ended; a confirmation that comes late starts nothing."""
    site = holding()
    report, answer = site(WithdrawReceived, partner="b", offer=THEIRS, cancel=cancel)
    assert isinstance(report, SendReport)
    assert (report.completion.outcome, report.completion.run_time) == (outcome, 0.0)
    assert answer == AnswerStatus(site.last_id, GuestState.ENDED, report.completion)
    assert site.state.memory.unconfirmed == 0
    # The journal tells a cancelled job from one that its home site kept.
    assert [JobCancelRequested(0.0, GuestRef("b", THEIRS))][:cancel] == [
        record for record in site.journal if isinstance(record, JobCancelRequested)
    ]
    late = site(ResolveReceived, partner="b", offer=THEIRS, confirm=True)
    assert kinds(late) == ["AnswerStatus"]


def test_a_place_is_held_for_some_time_only() -> None:
    """Its home site hears that the job has not run, and decides it anew."""
    site = holding(now=50.0)
    site.now = 50.0 + site.settings.confirm_time_max
    assert site(TimePassed, load=FREE) == []
    site.now = math.nextafter(site.now, math.inf)
    report = one(site(TimePassed, load=FREE), SendReport)
    assert report.completion == Completion(THEIRS, Outcome.LOST, site.now, 0.0)
    assert kinds(site(ResolveReceived, partner="b", offer=THEIRS, confirm=True)) == ["AnswerStatus"]


def test_what_is_no_place_is_not_confirmed() -> None:
    """An offer that was never made is unknown, one that was declined stays so."""
    site = Conversation()
    answer = site(ResolveReceived, partner="b", offer=THEIRS, confirm=True)
    assert answer == [AnswerStatus(site.last_id, None)]
    declined = site(
        OfferReceived,
        load=FULL,
        partner="b",
        offer=THEIRS,
        settled_below=1,
        request=Request(8, 10.0),
        payload=b"",
        reserve=True,
    )
    assert not any(isinstance(command, Refuse) for command in declined)
    answer = site(ResolveReceived, partner="b", offer=THEIRS, confirm=True)
    assert answer == [AnswerStatus(site.last_id, GuestState.DECLINED)]
