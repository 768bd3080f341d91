"""What operators decide about jobs that do not go on, and how they find them."""

from functools import partial
from typing import Any

import pytest

from grms.lrms import base
from grms.site.model.commands import (
    LrmsSubmit,
    Refusal,
    Refuse,
    ReplyJob,
    SendOffer,
    SendResolve,
    SendWithdraw,
)
from grms.site.model.events import (
    Cancel,
    OfferAnswered,
    OfferFailed,
    PartnerDown,
    PartnerLost,
    PartnerUp,
    ReportReceived,
    Restarted,
    Resubmit,
    StatusAnswered,
    TakeBack,
    WriteOff,
)
from grms.site.model.jobs import Completion
from grms.site.model.lifecycle import GuestState, JobState, Outcome
from grms.site.model.records import JobReturned, JobTakenBack, JobWrittenOff, Record
from grms.site.scheduler.operator_actions import UNCONFIRMED_S
from tests.grms.site.conversation import (
    FREE,
    FULL,
    Conversation,
    kinds,
    offer,
    one,
    settings,
)

B1 = {"partner": "b", "offer": offer(1)}
CANCELLED = Completion(offer(1), Outcome.CANCELLED, 5.0, 0.0)
COMPLETED = Completion(offer(1), Outcome.COMPLETED, 5.0, 5.0)
BY = {"load": FULL, "job_id": "a-1", "by": "root"}


def delegated(**changes: Any) -> Conversation:
    """Returns a site whose job b has accepted."""
    site = Conversation(settings(**changes))
    site.submit()
    site(OfferAnswered, load=FULL, accepted=True, **B1)
    return site


def undecided(**changes: Any) -> tuple[Conversation, SendResolve]:
    """Returns a site whose offer b has not answered, and the question about it."""
    site = Conversation(settings(**changes))
    site.submit()
    return site, one(site(OfferFailed, load=FULL, **B1), SendResolve)


def last(site: Conversation, kind: type[Record]) -> Record:
    """Returns the last record of a kind."""
    return [record for record in site.journal if isinstance(record, kind)][-1]


# --- taking back ---------------------------------------------------------------------------------


def test_a_job_that_is_taken_back_is_decided_anew_when_it_was_ended() -> None:
    """The partner is told to end it; nothing else is done before it says that it has."""
    site = delegated()
    said = site(TakeBack, **BY)
    assert kinds(said) == ["SendWithdraw", "ReplyJob"]
    assert one(said, SendWithdraw).cancel
    assert last(site, JobTakenBack) == JobTakenBack(0.0, 1, "root")
    assert site.job().state is JobState.DELEGATED
    # Once is enough.
    assert kinds(site(TakeBack, **BY)) == ["ReplyJob"]
    site.now = 60.0
    said = site(ReportReceived, partner="b", completions=(CANCELLED,), load=FULL)
    assert kinds(said) == ["SendOffer", "AnswerReport"]
    assert one(said, SendOffer).partner == "c"
    assert last(site, JobReturned) == JobReturned(60.0, 1)
    book = site.state.partners["b"]
    assert (book.open, book.undecided, book.ended) == ({}, {}, 1)
    # What was lost there counts with the time that was lost.
    assert book.awrt(60.0, count_open=False) == 60.0
    assert not site.job().take_back


def test_a_job_that_ends_meanwhile_has_ended() -> None:
    """Only what was cancelled comes back; and a user's cancellation is one."""
    site = delegated()
    site(TakeBack, **BY)
    site(ReportReceived, partner="b", completions=(COMPLETED,), load=FULL)
    assert site.job().outcome is Outcome.COMPLETED
    site = delegated()
    site(TakeBack, **BY)
    site(Cancel, load=FULL, job_id="a-1", user="ann")
    site(ReportReceived, partner="b", completions=(CANCELLED,), load=FULL)
    assert site.job().outcome is Outcome.CANCELLED


def test_an_undecided_job_is_taken_back_by_withdrawing_its_offer() -> None:
    """Withdrawn it is decided anew; accepted after all it is ended there, and comes back then."""
    for answer in (GuestState.WITHDRAWN, GuestState.DECLINED):
        site, _ = undecided()
        withdraw = one(site(TakeBack, **BY), SendWithdraw)
        assert (site.job().state, withdraw.cancel) == (JobState.WITHDRAWING, True)
        said = site(StatusAnswered, load=FULL, **B1, question=withdraw.cause, status=answer)
        assert one(said, SendOffer).partner == "c"
    site, _ = undecided()
    withdraw = one(site(TakeBack, **BY), SendWithdraw)
    done = {"question": withdraw.cause, "status": GuestState.ACCEPTED}
    assert kinds(site(StatusAnswered, load=FULL, **B1, **done)) == []
    assert site.job().state is JobState.DELEGATED
    said = site(ReportReceived, partner="b", completions=(CANCELLED,), load=FULL)
    assert one(said, SendOffer).partner == "c"


def test_an_end_may_overtake_the_answer_of_a_job_that_is_taken_back() -> None:
    """The end is both: it was accepted, and has been ended."""
    site, _ = undecided()
    withdraw = one(site(TakeBack, **BY), SendWithdraw)
    said = site(
        StatusAnswered,
        load=FREE,
        **B1,
        question=withdraw.cause,
        status=GuestState.ENDED,
        completion=CANCELLED,
    )
    assert kinds(said) == ["LrmsSubmit"]
    book = site.state.partners["b"]
    assert (book.accepted, book.ended, book.undecided) == (1, 1, {})


def test_an_accepted_offer_that_is_wanted_back_is_told_so() -> None:
    """The answer to the offer itself comes after the operator's word."""
    site = Conversation()
    site.submit()
    site(TakeBack, **BY)
    assert site.job().state is JobState.WITHDRAWING
    assert kinds(site(OfferAnswered, load=FULL, accepted=True, **B1)) == []
    assert site.job().cancel_told


def test_taking_back_outlives_a_restart() -> None:
    """The partner is told again."""
    for state in ("delegated", "undecided"):
        site = delegated() if state == "delegated" else undecided()[0]
        site(TakeBack, **BY)
        site.restart()
        assert one(site(Restarted, load=FULL), SendWithdraw).cancel, state


def test_a_partner_that_has_forgotten_what_is_to_come_back_is_suspect() -> None:
    """Its batch system may have it: the operator has to decide once more."""
    site = delegated()
    withdraw = one(site(TakeBack, **BY), SendWithdraw)
    done = {"question": withdraw.cause, "status": GuestState.WITHDRAWN}
    site(StatusAnswered, load=FULL, **B1, **done)
    assert site.job().state is JobState.SUSPECT
    assert site.job().reason == "b does not know it any more"
    assert site.state.why_stuck(site.job(), 0.0) == "b does not know it any more"


# --- resubmitting and writing off ----------------------------------------------------------------


def test_a_job_that_is_resubmitted_is_decided_anew_at_once() -> None:
    """The partner is told to end it as soon as it listens."""
    site = delegated()
    said = site(Resubmit, **BY)
    assert kinds(said) == ["SendWithdraw", "SendOffer", "ReplyJob"]
    assert one(said, SendWithdraw).cancel
    assert one(said, SendOffer).partner == "c"
    assert [type(record).__name__ for record in site.journal[-3:]] == [
        "JobResubmitted",
        "JobAbandoned",
        "JobOffered",
    ]
    # What the first partner says of it after that changes nothing.
    site(ReportReceived, partner="b", completions=(COMPLETED,), load=FULL)
    assert site.job().state is JobState.OFFERING


def test_a_job_that_is_written_off_has_failed() -> None:
    """Its user sees by whom, and that nobody knows more."""
    site, _ = undecided()
    said = site(WriteOff, **BY)
    assert kinds(said) == ["ReplyJob"]
    job = site.job()
    assert (job.state, job.outcome) == (JobState.ENDED, Outcome.FAILED)
    assert job.reason == "written off by root; what b does with it is not known"
    assert job.run_time == 0.0
    assert last(site, JobWrittenOff) == JobWrittenOff(0.0, 1, "root")
    # The question that is open is followed by the withdrawal.
    assert site.state.partners["b"].abandoned == {1: 0}
    site.restart()
    assert one(site(Restarted, load=FULL), SendWithdraw).cancel
    assert site.job().outcome is Outcome.FAILED
    site = delegated()
    assert kinds(site(WriteOff, **BY)) == ["SendWithdraw", "ReplyJob"]


@pytest.mark.parametrize("act", [TakeBack, Resubmit, WriteOff])
def test_only_jobs_at_partners_are_decided_about(act: type[Any]) -> None:
    """Others are refused with what can be done instead, and nothing changes."""
    site = Conversation()
    refused = one(site(act, **{**BY, "job_id": "a-7"}), Refuse)
    assert (refused.refusal, refused.reason) == (Refusal.NOT_FOUND, "there is no job 'a-7'")
    assert refused.field == "job_id"
    site.submit(load=FREE)
    refused = one(site(act, **BY), Refuse)
    assert refused.refusal is Refusal.PRECONDITION
    assert refused.reason == "job a-1 is submitting and at no partner; it can be cancelled"
    site(Cancel, load=FREE, job_id="a-1", user=None)
    site = delegated()
    site(ReportReceived, partner="b", completions=(COMPLETED,), load=FULL)
    before = list(site.journal)
    refused = one(site(act, **BY), Refuse)
    assert refused.reason == "job a-1 is ended and at no partner"
    assert site.journal == before


def test_a_suspect_job_is_stuck_and_a_job_at_home_is_not() -> None:
    """With the reason that it has."""
    site = delegated()
    site(PartnerDown, partner="b")
    site(PartnerLost, load=FULL, partner="b")
    assert site.state.why_stuck(site.job(), 0.0) == "b is lost"
    site(PartnerUp, load=FULL, partner="b", processors=8)
    site.submit(load=FREE)
    assert site.state.why_stuck(site.job(2), UNCONFIRMED_S) == ""
    assert one(site(Resubmit, **BY), ReplyJob).job_id == "a-1"
    assert [c for c in site.submit(load=FREE) if isinstance(c, LrmsSubmit)]


def test_a_job_that_the_batch_system_does_not_confirm_is_stuck() -> None:
    """Whether it does not answer, or answers and has not said that it has the job."""
    site = Conversation(settings())
    site.now = 10.0
    key = one(site.submit(load=FREE), LrmsSubmit).lrms_key
    late = 10.0 + UNCONFIRMED_S + 1.0
    assert site.state.why_stuck(site.job(), 10.0 + UNCONFIRMED_S) == ""
    words = site.state.why_stuck(site.job(), late)
    assert words == "the batch system has not confirmed it for 61 s"
    site(base.Away, reason="out of order")
    assert site.state.why_stuck(site.job(), 1.0) == "the batch system does not answer: out of order"
    site(base.Back)
    site(base.Accepted, key=key)
    assert site.state.why_stuck(site.job(), 1e9) == ""


def test_a_job_of_which_it_is_not_known_where_it_stands_is_stuck() -> None:
    """Until that is known again, or it ends; of a job that is not there nothing is noted."""
    site = Conversation(settings())
    key = one(site.submit(load=FREE), LrmsSubmit).lrms_key
    site(base.Accepted, key=key)
    unseen = partial(site, base.Unseen, key=key, reason="no table shows it")
    assert unseen() == []
    words = "it is not known where it stands: no table shows it"
    assert site.state.why_stuck(site.job(), 0.0) == words
    assert site(base.SeenAgain, key=key) == []
    assert site.state.why_stuck(site.job(), 0.0) == ""
    unseen()
    site(base.Lost, key=key, reason="a crash")
    assert site.state.memory.unseen == {}
    unseen()
    ended = {"outcome": Outcome.COMPLETED, "end_time": 4.0, "run_time": 3.0}
    site(base.Ended, key=key, **ended)
    assert site.state.memory.unseen == {}
    unseen()
    assert site.state.memory.unseen == {}
