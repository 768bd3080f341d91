"""Partners that are lost with jobs, or have lost them, and come back."""

import pytest

from grms.policy.transfer import AlwaysKeep
from grms.site.model.commands import LrmsSubmit, SendOffer, SendResolve, SendWithdraw
from grms.site.model.events import (
    Cancel,
    OfferAnswered,
    OfferFailed,
    PartnerDown,
    PartnerLost,
    PartnerUp,
    ReportReceived,
    Restarted,
    StatusAnswered,
    StatusFailed,
    TakeBack,
)
from grms.site.model.lifecycle import GuestState, JobState, Outcome
from tests.grms.site.conversation import (
    FULL,
    Conversation,
    kinds,
    offer,
    one,
    settings,
)
from tests.grms.site.scheduler.test_outgoing_offers import (
    B1,
    COMPLETION,
    cancel,
    delegated,
    question_of,
    status,
    unknown,
)


def test_a_lost_partners_jobs_are_suspect_until_it_is_back() -> None:
    """By default the site waits; asked again, the partner has the job."""
    site = Conversation()
    delegated(site)
    assert site(PartnerLost, load=FULL, partner="b") == []
    assert site.job().state is JobState.SUSPECT
    assert site.job().reason == "b is lost"
    question = one(site(PartnerUp, load=FULL, partner="b", processors=8), SendResolve)
    status(site, question, GuestState.ACCEPTED)
    assert (site.job().state, site.job().reason) == (JobState.DELEGATED, "")


def test_a_suspect_job_may_end() -> None:
    """A report from a partner that was thought lost is the end as any other."""
    site = Conversation()
    delegated(site)
    site(PartnerLost, load=FULL, partner="b")
    site(ReportReceived, partner="b", completions=(COMPLETION,))
    assert site.job().state is JobState.ENDED


def test_a_lost_partners_jobs_are_resubmitted_where_that_is_wanted() -> None:
    """They are decided anew without that partner, which is told when it is back."""
    site = Conversation(settings(on_lost="resubmit"))
    delegated(site)
    commands = site(PartnerLost, load=FULL, partner="b")
    assert kinds(commands) == ["SendWithdraw", "SendOffer"]
    withdraw = one(commands, SendWithdraw)
    assert (withdraw.partner, withdraw.cancel) == ("b", True)
    assert one(commands, SendOffer).partner == "c"
    assert site.job().reason == "given up on at b"
    # Its report comes too late, and is acknowledged all the same.
    answer = site(ReportReceived, partner="b", completions=(COMPLETION,))
    assert kinds(answer) == ["AnswerReport"]
    assert site.job().state is JobState.OFFERING
    again = one(site(StatusFailed, load=FULL, question=question_of(withdraw), **B1), SendWithdraw)
    assert again.delay_s == 4.0
    assert site(StatusFailed, load=FULL, question=question_of(withdraw), **B1) == []
    status(site, again, GuestState.ACCEPTED)
    assert site.state.partners["b"].abandoned == {}


def test_a_withdrawal_without_an_outcome_is_a_fault() -> None:
    """A partner that is told that an offer is void knows it; another answer is repeated after a pause."""
    site = Conversation(settings(on_lost="resubmit"))
    delegated(site)
    withdraw = one(site(PartnerLost, load=FULL, partner="b"), SendWithdraw)
    said = status(site, withdraw, None)
    assert kinds(said) == ["SendProbe", "SendWithdraw"]
    assert "it says unknown of offer 7/1" in site.state.partners["b"].faulty
    assert one(said, SendWithdraw).delay_s == 4.0


def test_an_open_offer_to_a_lost_partner_is_given_up_where_that_is_wanted() -> None:
    """Found out or not; the earlier question's answer leads to the withdrawal."""
    site = Conversation(settings(on_lost="resubmit"))
    question = unknown(site)
    commands = site(PartnerLost, load=FULL, partner="b")
    assert kinds(commands) == ["SendOffer"]
    withdraw = one(status(site, question, None), SendWithdraw)
    assert withdraw.cancel
    status(site, withdraw, GuestState.WITHDRAWN)
    assert site.state.partners["b"].abandoned == {}
    assert site.state.partners["b"].undecided == {}


def test_what_was_given_up_is_withdrawn_after_a_restart() -> None:
    """The journal knows of it."""
    site = Conversation(settings(on_lost="resubmit"))
    delegated(site)
    site(PartnerLost, load=FULL, partner="b")
    site.restart()
    commands = site(Restarted, load=FULL)
    assert kinds(commands) == ["SendResolve", "SendWithdraw"]
    assert one(commands, SendWithdraw).partner == "b"


def test_a_partner_that_has_forgotten_a_job() -> None:
    """Its journal is lost: the job is suspect; its user's cancellation ends it."""
    site = Conversation()
    delegated(site)
    site(PartnerDown, partner="b")
    question = one(site(PartnerUp, load=FULL, partner="b", processors=8), SendResolve)
    status(site, question, None)
    assert site.job().state is JobState.SUSPECT
    assert site.job().reason == "b does not know it any more"
    status(site, one(cancel(site), SendWithdraw), GuestState.WITHDRAWN)
    assert site.job().outcome is Outcome.CANCELLED


@pytest.mark.parametrize("on_lost", ["wait", "resubmit"])
def test_a_cancelled_job_that_its_partner_has_forgotten_has_ended(on_lost: str) -> None:
    """Once, as cancelled; it is neither doubted nor decided anew."""
    site = Conversation(settings(on_lost=on_lost))
    delegated(site)
    withdraw = one(cancel(site), SendWithdraw)
    assert status(site, withdraw, GuestState.WITHDRAWN) == []
    job = site.job()
    assert (job.state, job.outcome) == (JobState.ENDED, Outcome.CANCELLED)
    assert job.reason == "cancelled; b had forgotten it"


def test_a_forgotten_job_is_resubmitted_where_that_is_wanted() -> None:
    """With a tombstone at the partner, should an old message still come."""
    site = Conversation(settings(on_lost="resubmit"))
    delegated(site)
    site(PartnerDown, partner="b")
    question = one(site(PartnerUp, load=FULL, partner="b", processors=8), SendResolve)
    assert kinds(status(site, question, None)) == ["SendWithdraw", "SendOffer"]


def test_a_partner_that_is_up_is_asked_once() -> None:
    """The regular news that it is there changes nothing."""
    site = Conversation()
    delegated(site)
    assert site(PartnerUp, load=FULL, partner="b", processors=8) == []
    site(PartnerDown, partner="b")
    assert kinds(site(PartnerUp, load=FULL, partner="b", processors=8)) == ["SendResolve"]
    assert site(PartnerUp, load=FULL, partner="b", processors=8) == []


def test_a_partner_that_is_back_is_asked_at_once() -> None:
    """However often it was asked in vain before it went."""
    site = Conversation()
    delegated(site)
    up = {"load": FULL, "partner": "b", "processors": 8}
    site(PartnerDown, partner="b")
    question = one(site(PartnerUp, **up), SendResolve)
    site(PartnerDown, partner="b")
    assert site(StatusFailed, load=FULL, question=question_of(question), **B1) == []
    assert one(site(PartnerUp, **up), SendResolve).delay_s == 0.0


def test_strangers_change_nothing() -> None:
    """Events about a partner that is not there, or an offer of another epoch, are passed over."""
    site = Conversation(settings(transfer={"b": AlwaysKeep()}))
    load = {"load": FULL}
    other = {"partner": "x", "offer": offer(1)}
    old = {"partner": "b", "offer": offer(1, epoch=6)}
    for which in (other, old):
        assert site(OfferAnswered, accepted=True, **load, **which) == []
        assert site(OfferFailed, **load, **which) == []
        assert site(StatusAnswered, question=1, status=None, **load, **which) == []
        assert site(StatusFailed, question=1, **load, **which) == []
    assert site(PartnerUp, partner="x", processors=3, **load) == []
    assert site(PartnerDown, partner="x") == []
    assert site(PartnerLost, partner="x", **load) == []
    assert site.journal == []


def test_an_offer_that_fails_at_a_lost_partner_is_given_up_where_that_is_wanted() -> None:
    """The next is asked at once, and nobody asks the lost one what became of it."""
    site = Conversation(settings(on_lost="resubmit"))
    site.submit()
    assert site(PartnerLost, load=FULL, partner="b") == []
    said = site(OfferFailed, load=FULL, **B1)
    assert kinds(said) == ["SendWithdraw", "SendOffer"]
    assert one(said, SendOffer).partner == "c"


def test_a_cancelled_job_does_not_wait_for_a_lost_partner_where_that_is_wanted() -> None:
    """An operator has tried to take it back before; it has ended when its user wants it to."""
    site = Conversation(settings(on_lost="resubmit"))
    site.submit()
    site(PartnerLost, load=FULL, partner="b")
    site(TakeBack, load=FULL, job_id="a-1", by="root")
    assert site.job().state is JobState.WITHDRAWING
    cancel(site)
    assert site.job().outcome is Outcome.CANCELLED
    assert list(site.state.partners["b"].abandoned) == [1]


def test_the_last_resort_is_home() -> None:
    """A job given up on that nobody else takes runs at home."""
    site = Conversation(settings(on_lost="resubmit"), up="b")
    delegated(site)
    commands = site(PartnerLost, load=FULL, partner="b")
    assert one(commands, LrmsSubmit).lrms_key == "a/7/1"


def test_a_question_without_answer_about_a_lost_partners_job_gives_it_up() -> None:
    """It is decided anew, and its offer withdrawn, where that is wanted; else asked again."""
    site = Conversation(settings(on_lost="resubmit"))
    ask = unknown(site)
    site.state.partners["b"].lost = True
    said = site(StatusFailed, load=FULL, **B1, question=question_of(ask))
    assert kinds(said) == ["SendWithdraw", "SendOffer"]
    assert one(said, SendOffer).partner == "c"
    site = Conversation()
    ask = unknown(site)
    site.state.partners["b"].lost = True
    said = site(StatusFailed, load=FULL, **B1, question=question_of(ask))
    assert kinds(said) == ["SendResolve"]


def test_a_delegated_job_is_asked_about_again_while_its_partner_is_there() -> None:
    """Or where it is to be ended; else when the partner is up again."""
    for there, cancelled, asked in ((True, False, 1), (False, False, 0), (False, True, 1)):
        site = Conversation()
        delegated(site)
        site(PartnerDown, partner="b")
        up = {"load": FULL, "partner": "b", "processors": 8}
        question = one(site(PartnerUp, **up), SendResolve).cause
        if cancelled:
            question = one(site(Cancel, load=FULL, job_id="a-1", user="ann"), SendWithdraw).cause
        if not there:
            site(PartnerDown, partner="b")
        said = site(StatusFailed, load=FULL, **B1, question=question)
        assert len(said) == asked, (there, cancelled)


def test_a_declined_job_waits_for_no_answer() -> None:
    """A late answer about the first offer is none about the second, though the number is the same."""
    site = Conversation()
    ask = unknown(site)
    status(site, ask, GuestState.DECLINED)
    assert (site.job().partner, site.job().question, site.job().attempts) == ("c", 0, 0)
    site.state.memory.jobs[1].leave_partner()
    job = site.job()
    assert (job.partner, job.offer_number, job.offer_epoch, job.question) == ("", 0, 0, 0)
