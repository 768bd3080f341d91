"""Whole conversations of a site, command by command; the parts have their own modules."""

import math

import pytest

from grms.lrms import base
from grms.policy.location import AwrtLocation, FixedOrder
from grms.policy.transfer import AlwaysKeep
from grms.site.model.commands import Append, LrmsSubmit, Refuse, SendOffer, SendReport
from grms.site.model.events import (
    Drain,
    LrmsRefused,
    OfferAnswered,
    OfferReceived,
    PoliciesChanged,
    ReportAnswered,
    ReportReceived,
    Restarted,
    Resume,
    Submit,
)
from grms.site.model.jobs import Completion, OfferId, Request
from grms.site.model.lifecycle import GuestState, JobState, Outcome
from grms.site.model.settings import Limits
from grms.site.scheduler.state import SiteState
from tests.grms.site.conversation import (
    FREE,
    FULL,
    KEEP,
    REQUEST,
    Conversation,
    kinds,
    offer,
    one,
    settings,
)


def test_a_job_that_stays_at_home() -> None:
    """From the submission to the end, with every state in between."""
    site = Conversation(settings(transfer=KEEP))
    site.now = 5.0
    assert kinds(site.submit(load=FREE)) == ["ReplyJob", "LrmsSubmit"]
    assert site.job().state is JobState.SUBMITTING
    key = site.job().lrms_key
    site(base.Accepted, key=key)
    assert site.job().state is JobState.QUEUED
    site(base.Started, key=key, start_time=6.0)
    assert site.job().state is JobState.RUNNING
    site(base.Ended, key=key, outcome=Outcome.COMPLETED, end_time=16.0, run_time=10.0)
    job = site.job()
    assert (job.state, job.outcome) == (JobState.ENDED, Outcome.COMPLETED)
    assert (job.submit_time, job.start_time, job.end_time) == (5.0, 6.0, 16.0)
    assert [type(record).__name__ for record in site.journal] == [
        "JobReceived",
        "JobKept",
        "JobStarted",
        "JobEnded",
    ]


def test_the_batch_system_is_told_whose_a_job_is() -> None:
    """An own user's by name, for it may run as that user; a guest's by its partner."""
    site = Conversation(settings(transfer=KEEP))
    own = one(site.submit(), LrmsSubmit)
    assert (own.user, own.partner) == ("ann", "")
    given = {"partner": "b", "offer": OfferId(3, 1), "settled_below": 1, "request": REQUEST}
    host = Conversation()
    guest = one(host(OfferReceived, load=FREE, payload=b"run", **given), LrmsSubmit)
    assert (guest.user, guest.partner) == ("", "b")


def test_nothing_begins_before_it_could_nor_ends_before_it_began() -> None:
    """Where the batch system tells whole seconds, or its clock is behind the site's; run times stay."""
    for start, end, run_time, shown in (
        (5.0, 5.0, 0.0, (5.75, 5.75)),
        (5.0, 6.0, 1.0, (5.75, 6.0)),
        (-40.0, -30.0, 10.0, (5.75, 5.75)),
        (7.0, 6.5, 0.0, (7.0, 7.0)),
        (None, 5.0, 0.0, (None, 5.75)),
        (None, 6.0, 3.0, (5.75, 6.0)),
    ):
        site = Conversation(settings(transfer=KEEP))
        site.now = 5.75
        site.submit(load=FREE)
        key = site.job().lrms_key
        site.now = 8.0
        if start is not None:
            site(base.Started, key=key, start_time=start)
        site(base.Ended, key=key, outcome=Outcome.COMPLETED, end_time=end, run_time=run_time)
        job = site.job()
        assert (None if math.isnan(job.start_time) else job.start_time, job.end_time) == shown
        assert site.state.memory.own_work == run_time * job.request.processors


def test_a_guest_ends_no_sooner_than_it_came() -> None:
    """So its home site, whose clock agrees, is told of no end before its submission."""
    site = Conversation()
    site.now = 5.75
    theirs = OfferId(3, 1)
    accepted = site(
        OfferReceived,
        load=FREE,
        partner="b",
        offer=theirs,
        settled_below=1,
        request=REQUEST,
        payload=b"",
    )
    key = one(accepted, LrmsSubmit).lrms_key
    site(base.Started, key=key, start_time=5.0)
    ended = site(base.Ended, key=key, outcome=Outcome.FAILED, end_time=5.0, run_time=0.0)
    assert one(ended, SendReport).completion == Completion(theirs, Outcome.FAILED, 5.75, 0.0)


def test_a_partner_whose_clock_is_behind_ends_no_job_before_it_was_submitted() -> None:
    """Its report is believed within the grace, and its moment brought to what can be."""
    site = Conversation()
    site.now = 50.0
    site.submit()
    site(OfferAnswered, load=FULL, partner="b", offer=offer(1), accepted=True)
    completion = Completion(offer(1), Outcome.COMPLETED, 20.0, 3.0)
    site(ReportReceived, partner="b", completions=(completion,))
    job = site.job()
    assert (job.submit_time, job.start_time, job.end_time) == (50.0, 50.0, 50.0)


def test_a_job_that_is_delegated() -> None:
    """Declined by the first partner, accepted by the second, reported as ended."""
    site = Conversation()
    first = one(site.submit(), SendOffer)
    assert (first.partner, first.offer, first.settled_below) == ("b", offer(1), 1)
    second = one(
        site(OfferAnswered, load=FULL, partner="b", offer=offer(1), accepted=False), SendOffer
    )
    assert (second.partner, second.offer) == ("c", offer(1))
    site.now = 3.0
    assert site(OfferAnswered, load=FULL, partner="c", offer=offer(1), accepted=True) == []
    assert site.job().state is JobState.DELEGATED
    completion = Completion(offer(1), Outcome.COMPLETED, 60.0, 50.0)
    site.now = 61.0
    report = site(ReportReceived, partner="c", completions=(completion,))
    assert kinds(report) == ["AnswerReport"]
    job = site.job()
    assert (job.state, job.partner) == (JobState.ENDED, "c")
    assert (job.start_time, job.end_time) == (10.0, 60.0)
    assert site.state.partners["c"].awrt(61.0, count_open=True) == 60.0


def test_a_guest() -> None:
    """Accepted, run, reported, acknowledged, forgotten when it is settled."""
    site = Conversation()
    theirs = OfferId(3, 1)
    received = {"partner": "b", "request": REQUEST, "payload": b"run"}
    accepted = site(OfferReceived, load=FREE, offer=theirs, settled_below=1, **received)
    assert kinds(accepted) == ["AnswerOffer", "LrmsSubmit"]
    key = one(accepted, LrmsSubmit).lrms_key
    site(base.Accepted, key=key)
    site(base.Started, key=key, start_time=1.0)
    assert site.state.guest_counts()[GuestState.RUNNING] == 1
    ended = site(base.Ended, key=key, outcome=Outcome.FAILED, end_time=4.0, run_time=3.0)
    assert one(ended, SendReport).completion == Completion(theirs, Outcome.FAILED, 4.0, 3.0)
    assert site.state.guest_counts()[GuestState.REPORTED] == 1


def test_what_the_batch_system_refuses_has_failed() -> None:
    """A refusal for good is the end of the job, and says why."""
    site = Conversation(settings(transfer=KEEP))
    key = one(site.submit(load=FREE), LrmsSubmit).lrms_key
    site(LrmsRefused, key=key, reason="no such queue")
    assert site.job().outcome is Outcome.FAILED
    assert site.job().reason == "the batch system refused it: no such queue"


def test_events_of_the_batch_system_come_more_than_once() -> None:
    """A repeated, late or unknown event changes nothing."""
    site = Conversation(settings(transfer=KEEP))
    key = one(site.submit(load=FREE), LrmsSubmit).lrms_key
    site(base.Started, key=key, start_time=1.0)
    for _ in range(2):
        assert site(base.Accepted, key=key) == []
        assert site(base.Started, key=key, start_time=2.0) == []
    assert site.job().start_time == 1.0
    ended = {"outcome": Outcome.COMPLETED, "end_time": 3.0, "run_time": 2.0}
    site(base.Ended, key=key, **ended)
    count = len(site.journal)
    site(base.Ended, key=key, **ended)
    site(base.Started, key="a/7/99", start_time=2.0)
    assert len(site.journal) == count


def test_a_draining_site_takes_nothing_and_keeps_what_it_has() -> None:
    """Submissions are refused and offers declined until it is resumed."""
    site = Conversation(settings(transfer=KEEP))
    site.submit(load=FREE, idempotency_key="early")
    site(Drain)
    assert site.state.draining
    refusal = one(site.submit(load=FREE), Refuse)
    assert ("draining" in refusal.reason, refusal.field) == (True, "site.draining")
    assert kinds(site.submit(load=FREE, idempotency_key="early")) == ["ReplyJob"]
    site(Resume)
    assert kinds(site.submit(load=FREE)) == ["ReplyJob", "LrmsSubmit"]


def test_other_policies_apply_from_the_next_decision() -> None:
    """A reload changes whom the site asks, and in which order."""
    site = Conversation()
    site(PoliciesChanged, transfer=settings().transfer, location=FixedOrder(("c", "b")))
    assert one(site.submit(), SendOffer).partner == "c"
    site(PoliciesChanged, transfer={"b": AlwaysKeep()}, location=FixedOrder(("c", "b")))
    assert kinds(site.submit()) == ["ReplyJob", "LrmsSubmit"]
    site(PoliciesChanged, transfer={}, location=FixedOrder(()), confirm_time_max=77.0)
    site(PoliciesChanged, transfer={}, location=FixedOrder(()))
    assert site.state.memory.settings.confirm_time_max == 77.0


def test_no_decision_asks_more_partners_than_it_may() -> None:
    """After its last no the job stays home; the next one goes to those who were asked less often."""
    site = Conversation(settings(partners_asked=1))
    for number, partner in enumerate(("b", "c", "b"), 1):
        asked = one(site.submit(idempotency_key=str(number)), SendOffer)
        assert asked.partner == partner
        commands = site(
            OfferAnswered, load=FULL, partner=partner, offer=asked.offer, accepted=False
        )
        assert kinds(commands) == ["LrmsSubmit"]
    site(PoliciesChanged, transfer=settings().transfer, location=AwrtLocation())
    asked = one(site.submit(idempotency_key="4"), SendOffer)
    commands = site(
        OfferAnswered, load=FULL, partner=asked.partner, offer=asked.offer, accepted=False
    )
    assert (asked.partner, one(commands, SendOffer).partner) == ("b", "c")
    with pytest.raises(ValueError, match=r"^partners_asked is 0; it must be at least 1$"):
        settings(partners_asked=0)


def test_records_come_before_everything_else() -> None:
    """Whatever is said or done has its record ahead of it in the list."""
    state = SiteState(settings())
    event = Submit(
        1,
        load=FREE,
        user="ann",
        idempotency_key="k",
        name="",
        request=REQUEST,
        payload=b"",
    )
    commands = state.handle(event, 0.0)
    assert isinstance(commands[0], Append)
    assert [type(record).__name__ for record in commands[0].records] == ["JobReceived", "JobKept"]
    assert not any(isinstance(command, Append) for command in commands[1:])


def test_a_restart_of_nothing_is_nothing() -> None:
    """A new site has nothing to take up."""
    assert Conversation()(Restarted, load=FREE) == []


def test_counts_tell_where_jobs_are() -> None:
    """Own jobs by state, for operators."""
    site = Conversation(settings(transfer=KEEP))
    site.submit(load=FREE)
    site.submit(load=FREE)
    counts = site.state.job_counts()
    assert counts.pop(JobState.SUBMITTING) == 2
    assert set(counts.values()) == {0}
    assert [job.job_id for job in site.state.jobs()] == ["a-1", "a-2"]


def test_counts_tell_where_guests_are() -> None:
    """Partners' jobs by state, also those that are over, while their offers are not settled."""
    site = Conversation(settings(limits=Limits(guests_open=2)))
    values = {"load": FREE, "partner": "b", "settled_below": 1, "payload": b""}
    for number in (1, 2, 3):
        request = Request(1, 10.0)
        site(OfferReceived, offer=OfferId(3, number), request=request, **values)
    site(base.Ended, key="b/3/1", outcome=Outcome.COMPLETED, end_time=1.0, run_time=1.0)
    site(ReportAnswered, partner="b", offers=(OfferId(3, 1),))
    counts = site.state.guest_counts()
    there = {state.value: count for state, count in counts.items() if count}
    assert there == {"acknowledged": 1, "accepted": 1, "declined": 1}


@pytest.mark.parametrize("name", ["a-2", "b-1", "a-01", "a-", "a--1", "", "1", "a-" + "9" * 400])
def test_a_job_that_is_not_there(name: str) -> None:
    """Whatever a caller says, a job is found by its own name alone."""
    site = Conversation()
    site.submit()
    assert site.state.job(name) is None
    assert site.state.job("a-1") is not None
