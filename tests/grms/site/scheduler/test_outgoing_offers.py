from typing import Any

import pytest

from grms.policy.transfer import AcceptWhenFit
from grms.site.model.commands import Command, SendOffer, SendResolve, SendWithdraw
from grms.site.model.events import (
    Cancel,
    OfferAnswered,
    OfferFailed,
    PartnerUp,
    ReportReceived,
    Restarted,
    StatusAnswered,
    StatusFailed,
    TakeBack,
)
from grms.site.model.jobs import Completion, Exit, Load, Request, Weighed
from grms.site.model.lifecycle import GuestState, JobState, Outcome
from grms.site.model.settings import Limits, PartnerSettings
from tests.grms.site.conversation import (
    FREE,
    FULL,
    REQUEST,
    Conversation,
    kinds,
    offer,
    one,
    settings,
)

B1 = {"partner": "b", "offer": offer(1)}
COMPLETION = Completion(offer(1), Outcome.COMPLETED, 90.0, 50.0)
GIVES = AcceptWhenFit()


def question_of(command: SendResolve | SendWithdraw) -> int:
    """Returns what an answer to a question must name."""
    return command.cause


def status(
    site: Conversation,
    question: SendResolve | SendWithdraw,
    state: GuestState | None,
    **more: Any,
) -> list[Command]:
    """Answers a question about an offer."""
    return site(
        StatusAnswered,
        load=FULL,
        partner=question.partner,
        offer=question.offer,
        question=question_of(question),
        status=state,
        **more,
    )


def unknown(site: Conversation) -> SendResolve:
    """Submits a job whose offer has no answer; returns the question that follows."""
    site.submit()
    return one(site(OfferFailed, load=FULL, **B1), SendResolve)


def delegated(site: Conversation) -> None:
    """Submits a job that b accepts."""
    site.submit()
    site(OfferAnswered, load=FULL, accepted=True, **B1)
    assert site.job().state is JobState.DELEGATED


# --- the decision --------------------------------------------------------------------------------


def test_home_keeps_what_it_wants() -> None:
    """A job that home's own policy for the first partner wants is not offered."""
    assert kinds(Conversation().submit(load=FREE)) == ["ReplyJob", "LrmsSubmit"]


def test_home_is_asked_again_before_each_offer() -> None:
    """What has become free meanwhile counts."""
    site = Conversation()
    site.submit()
    assert kinds(site(OfferAnswered, load=FREE, accepted=False, **B1)) == ["LrmsSubmit"]


def test_nobody_wants_it() -> None:
    """A job that all decline runs at home."""
    site = Conversation()
    site.submit()
    site(OfferAnswered, load=FULL, accepted=False, **B1)
    last = site(OfferAnswered, load=FULL, partner="c", offer=offer(1), accepted=False)
    assert kinds(last) == ["LrmsSubmit"]
    assert site.job().asked == ("b", "c")


@pytest.mark.parametrize(
    ("given", "up", "request_", "asked"),
    [
        ({}, "c", REQUEST, "c"),
        ({}, "bc", Request(6, 10.0), "b"),
        ({"partners": (PartnerSettings("b", 0), PartnerSettings("c", 4))}, "c", REQUEST, "c"),
        ({"transfer": {"c": settings().transfer["c"]}}, "bc", REQUEST, "c"),
        ({}, "", REQUEST, None),
    ],
)
def test_only_partners_that_can_take_it_are_asked(
    given: dict[str, Any], up: str, request_: Request, asked: str | None
) -> None:
    """One that is down, too small, of unknown size or without a policy is passed over."""
    site = Conversation(settings(**given), up=up)
    offers = [c.partner for c in site.submit(request=request_) if isinstance(c, SendOffer)]
    assert offers == ([asked] if asked else [])


def test_a_partner_with_too_many_open_outcomes_is_passed_over() -> None:
    """It is not made to remember more than the limit."""
    site = Conversation(settings(limits=Limits(offers_undecided=1)))
    assert [one(site.submit(), SendOffer).partner for _ in range(2)] == ["b", "c"]
    assert kinds(site.submit()) == ["ReplyJob", "LrmsSubmit"]


def test_a_batch_system_that_does_not_answer_keeps_its_jobs() -> None:
    """Without a load nothing can be decided: the job waits at home."""
    assert kinds(Conversation().submit(load=None)) == ["ReplyJob", "LrmsSubmit"]


def test_a_job_may_be_as_wide_as_a_machine() -> None:
    """At home, where it waits until all is free, and at a partner of that size."""
    assert kinds(Conversation().submit(FREE, request=Request(8, 1.0))) == ["ReplyJob", "LrmsSubmit"]
    assert one(Conversation().submit(FULL, request=Request(8, 1.0)), SendOffer).partner == "b"


def test_a_machine_that_has_shrunk_gives_wide_jobs_away() -> None:
    """A job wider than what is left of the machine is offered."""
    site = Conversation()
    assert one(site.submit(load=Load(1, 1, 0)), SendOffer).partner == "b"


def test_a_decision_has_its_time() -> None:
    """When that is over the job stays at home, whoever has not been asked yet."""
    for now, then in ((10.0, "SendOffer"), (10.5, "LrmsSubmit")):
        site = Conversation(settings(decision_time_max=10.0))
        site.now = 50.0
        site.submit()
        site.now += now
        assert kinds(site(OfferAnswered, load=FULL, accepted=False, **B1)) == [then]


def test_those_who_watch_are_told_what_a_decision_rested_on() -> None:
    """The load that the policy was given, and for whom home would rather keep the job."""
    site = Conversation()
    site.submit()
    assert site.job().weighed == Weighed(FULL, "")
    site.submit(load=FREE)
    assert site.job(2).weighed == Weighed(FREE, "b")
    site.submit(load=None)
    assert site.job(3).weighed == Weighed(None, "")


def test_submissions_on_their_way_count_as_load() -> None:
    """Two jobs decided before the batch system has the first do not both take its last room."""
    site = Conversation()
    load = Load(8, 3, 0)
    assert kinds(site.submit(load=load)) == ["ReplyJob", "LrmsSubmit"]
    assert kinds(site.submit(load=load)) == ["ReplyJob", "SendOffer"]


def test_offers_are_numbered_and_settled() -> None:
    """Each partner has its own numbers; what is decided is settled, what is open is not."""
    site = Conversation(
        settings(partners=(PartnerSettings("b", 8),), transfer={"b": settings().transfer["b"]})
    )
    sent = [one(site.submit(), SendOffer) for _ in range(3)]
    assert [(c.offer.number, c.settled_below) for c in sent] == [(1, 1), (2, 1), (3, 1)]
    site(OfferAnswered, load=FULL, partner="b", offer=offer(2), accepted=True)
    assert one(site.submit(), SendOffer).settled_below == 1
    site(OfferAnswered, load=FULL, accepted=False, **B1)
    assert one(site.submit(), SendOffer).settled_below == 3


# --- unknown outcomes ----------------------------------------------------------------------------


def test_no_answer_is_resolved() -> None:
    """The job goes nowhere until the partner has said what became of the offer."""
    site = Conversation()
    question = unknown(site)
    assert site.job().state is JobState.RESOLVING
    assert question.offer == offer(1)
    assert status(site, question, GuestState.ACCEPTED) == []
    assert site.job().state is JobState.DELEGATED


def test_an_offer_that_was_not_sent_is_no_riddle() -> None:
    """The next partner is asked at once."""
    site = Conversation()
    site.submit()
    assert one(site(OfferFailed, load=FULL, sent=False, **B1), SendOffer).partner == "c"


def test_never_heard_of_is_withdrawn() -> None:
    """Only the tombstone makes the job free again."""
    site = Conversation()
    withdraw = one(status(site, unknown(site), None), SendWithdraw)
    assert (site.job().state, withdraw.cancel) == (JobState.WITHDRAWING, False)
    after = status(site, withdraw, GuestState.WITHDRAWN)
    assert one(after, SendOffer).partner == "c"


@pytest.mark.parametrize("answer", [GuestState.DECLINED, GuestState.WITHDRAWN])
def test_a_resolved_decline_goes_on(answer: GuestState) -> None:
    """As if the answer had come in time."""
    site = Conversation()
    assert one(status(site, unknown(site), answer), SendOffer).partner == "c"


def test_accepted_after_all_while_withdrawing() -> None:
    """An acceptance cannot be taken back: the job is delegated."""
    site = Conversation()
    withdraw = one(status(site, unknown(site), None), SendWithdraw)
    status(site, withdraw, GuestState.ACCEPTED)
    assert site.job().state is JobState.DELEGATED


def test_a_late_answer_to_the_offer_counts() -> None:
    """In whatever state of finding out; a question from before loses its meaning with it."""
    site = Conversation()
    question = unknown(site)
    site(OfferAnswered, load=FULL, accepted=True, **B1)
    assert site.job().state is JobState.DELEGATED
    assert status(site, question, None) == []
    assert site.job().state is JobState.DELEGATED


def test_a_late_answer_to_the_offer_ends_the_pauses() -> None:
    """What is asked of the partner after that is asked at once."""
    site = Conversation()
    question = unknown(site)
    for _ in range(2):
        failed = site(StatusFailed, load=FULL, question=question_of(question), **B1)
        question = one(failed, SendResolve)
    site(OfferAnswered, load=FULL, accepted=True, **B1)
    assert one(cancel(site), SendWithdraw).delay_s == 0.0


def test_the_end_may_overtake_the_answer() -> None:
    """A report of a job whose offer is open is its acceptance and its end."""
    for steps in (0, 1, 2):
        site = Conversation()
        site.submit()
        if steps:
            question = one(site(OfferFailed, load=FULL, **B1), SendResolve)
            if steps > 1:
                status(site, question, None)
        site(ReportReceived, partner="b", completions=(COMPLETION,))
        assert (site.job().state, site.job().partner) == (JobState.ENDED, "b")
        assert site(OfferAnswered, load=FULL, accepted=True, **B1) == []


def test_the_end_may_come_as_an_answer() -> None:
    """Asked what became of it, the partner says that it has ended."""
    site = Conversation()
    status(site, unknown(site), GuestState.ENDED, completion=COMPLETION)
    assert (site.job().state, site.job().end_time) == (JobState.ENDED, 90.0)


def test_a_job_that_never_started_at_its_partner_is_decided_anew() -> None:
    """Without that partner, once its word is heard; whatever else it says has ended the job."""
    for ended, again in (
        (Completion(offer(1), Outcome.LOST, 90.0, 0.0), True),
        (Completion(offer(1), Outcome.LOST, 90.0, 50.0), False),
        (Completion(offer(1), Outcome.FAILED, 90.0, 0.0), False),
    ):
        site = Conversation()
        delegated(site)
        site.now = 100.0
        said = site(ReportReceived, load=FULL, partner="b", completions=(ended,))
        if again:
            assert one(said, SendOffer).partner == "c"
            assert site.job().state is JobState.OFFERING
        else:
            assert site.job().outcome is ended.outcome
    site = Conversation()
    delegated(site)
    site(Cancel, load=FULL, job_id="a-1", user="ann")
    lost = Completion(offer(1), Outcome.LOST, 0.0, 0.0)
    site(ReportReceived, load=FULL, partner="b", completions=(lost,))
    assert site.job().state is JobState.ENDED


def test_questions_are_repeated_after_growing_pauses() -> None:
    """First at once, then after 1, 2, 4, 4, … seconds, until there is an answer."""
    site = Conversation()
    question: SendResolve | SendWithdraw = unknown(site)
    pauses = [question.delay_s]
    for _ in range(5):
        question = one(
            site(StatusFailed, load=FULL, question=question_of(question), **B1), SendResolve
        )
        pauses.append(question.delay_s)
    assert pauses == [0.0, 1.0, 2.0, 4.0, 4.0, 4.0]


def test_an_answer_ends_the_pauses() -> None:
    """The next question is asked at once, and the pauses after it grow from the first one."""
    site = Conversation()
    question: SendResolve | SendWithdraw = unknown(site)
    for _ in range(3):
        failed = site(StatusFailed, load=FULL, question=question_of(question), **B1)
        question = one(failed, SendResolve)
    withdraw = one(status(site, question, None), SendWithdraw)
    again = site(StatusFailed, load=FULL, question=question_of(withdraw), **B1)
    assert (withdraw.delay_s, one(again, SendWithdraw).delay_s) == (0.0, 1.0)


def test_only_the_last_question_counts() -> None:
    """An answer to, or the failure of, another one changes nothing."""
    site = Conversation()
    question = unknown(site)
    wrong = question_of(question) + 100
    assert site(StatusFailed, load=FULL, question=wrong, **B1) == []
    stale = site(StatusAnswered, load=FULL, question=wrong, status=None, **B1)
    assert stale == []
    assert site.job().state is JobState.RESOLVING


@pytest.mark.parametrize("cancelled", [False, True])
def test_a_restart_asks_about_open_offers(cancelled: bool) -> None:
    """Whether an offer had left is not known: its outcome is found out."""
    site = Conversation()
    site.submit()
    if cancelled:
        site(Cancel, load=FULL, job_id="a-1", user="ann")
    site.restart()
    commands = site(Restarted, load=FULL)
    assert kinds(commands) == ["SendWithdraw" if cancelled else "SendResolve"]
    assert site.job().state is (JobState.WITHDRAWING if cancelled else JobState.RESOLVING)


def test_after_a_restart_a_delegated_job_is_where_it_was() -> None:
    """Its partner is asked about it when it is found to be up."""
    site = Conversation()
    delegated(site)
    site.restart()
    assert site(Restarted, load=FULL) == []
    assert kinds(site(PartnerUp, load=FULL, partner="b", processors=8)) == ["SendResolve"]


# --- cancelling ----------------------------------------------------------------------------------


def cancel(site: Conversation) -> list[Command]:
    """Cancels the first job."""
    return site(Cancel, load=FULL, job_id="a-1", user="ann")


def test_cancelling_an_open_offer_takes_it_back() -> None:
    """The tombstone ends the job; it never ran."""
    site = Conversation()
    site.submit()
    withdraw = one(cancel(site), SendWithdraw)
    assert withdraw.cancel
    assert status(site, withdraw, GuestState.WITHDRAWN) == []
    assert (site.job().state, site.job().outcome) == (JobState.ENDED, Outcome.CANCELLED)


def test_cancelling_while_resolving() -> None:
    """The withdrawal replaces the question; a decline ends the job."""
    site = Conversation()
    question = unknown(site)
    withdraw = one(cancel(site), SendWithdraw)
    assert status(site, question, None) == []
    status(site, withdraw, GuestState.DECLINED)
    assert site.job().outcome is Outcome.CANCELLED


def test_cancelling_while_withdrawing() -> None:
    """The partner is told of the cancellation, too."""
    site = Conversation()
    first = one(status(site, unknown(site), None), SendWithdraw)
    second = one(cancel(site), SendWithdraw)
    assert (first.cancel, second.cancel) == (False, True)
    status(site, second, GuestState.ACCEPTED)
    assert site.job().state is JobState.DELEGATED


def test_cancelling_a_delegated_job() -> None:
    """The partner is told until it has heard; the end it reports is the job's end."""
    site = Conversation()
    delegated(site)
    withdraw = one(cancel(site), SendWithdraw)
    again = one(site(StatusFailed, load=FULL, question=question_of(withdraw), **B1), SendWithdraw)
    assert again.cancel
    assert status(site, again, GuestState.ACCEPTED) == []
    assert site.job().state is JobState.DELEGATED
    ended = Completion(offer(1), Outcome.CANCELLED, 5.0, 0.0)
    site(ReportReceived, partner="b", completions=(ended,))
    assert site.job().outcome is Outcome.CANCELLED


def test_an_acceptance_that_crosses_the_cancellation() -> None:
    """Accepted before the withdrawal came: the job is delegated, and the partner knows."""
    site = Conversation()
    site.submit()
    withdraw = one(cancel(site), SendWithdraw)
    assert site(OfferAnswered, load=FULL, accepted=True, **B1) == []
    assert site.job().state is JobState.DELEGATED
    assert status(site, withdraw, GuestState.ACCEPTED) == []


def test_cancelling_survives_a_restart() -> None:
    """A delegated job that is to end is withdrawn again."""
    site = Conversation()
    delegated(site)
    cancel(site)
    site.restart()
    assert one(site(Restarted, load=FULL), SendWithdraw).cancel


def test_a_job_that_was_received_and_not_decided_is_cancelled_at_once() -> None:
    """The process ended between the two."""
    site = Conversation()
    site.submit()
    site.journal = site.journal[:1]
    site.restart()
    assert kinds(cancel(site)) == ["ReplyJob"]
    assert site.job().reason == "cancelled before it ran"


def test_an_exit_travels_home() -> None:
    """With the end of the job, and over a restart."""
    site = Conversation()
    delegated(site)
    ended = Completion(offer(1), Outcome.FAILED, 5.0, 5.0, Exit(3, None))
    site(ReportReceived, load=FULL, partner="b", completions=(ended,))
    assert site.job().exit == Exit(3, None)
    site.restart()
    assert site.job().exit == Exit(3, None)


# --- jobs that come back undone ------------------------------------------------------------------


def came_back(site: Conversation) -> list[Command]:
    """Submits a job that b accepts and sends back undone."""
    number = site.state.partners["b"].next_number
    site.submit(load=FULL)
    where = {"partner": "b", "offer": offer(number)}
    site(OfferAnswered, load=FULL, accepted=True, **where)
    undone = Completion(offer(number), Outcome.LOST, site.now, 0.0)
    return site(ReportReceived, load=FULL, partner="b", completions=(undone,))


def test_a_job_that_comes_back_undone_is_decided_anew() -> None:
    """Another partner is asked, or it stays at home; it has not failed."""
    site = Conversation()
    assert one(came_back(site), SendOffer).partner == "c"
    site(OfferAnswered, load=FULL, partner="c", offer=offer(1), accepted=False)
    assert site.job().state is JobState.SUBMITTING


def test_a_partner_is_not_offered_for_a_while_what_it_has_sent_back() -> None:
    """The pause doubles; narrower jobs and other users' jobs are offered, and what has run may come again."""
    site = Conversation(settings(probe_first_s=10.0, probe_most_s=900.0, transfer={"b": GIVES}))
    came_back(site)
    site.now = 9.9
    assert kinds(site.submit()) == ["ReplyJob", "LrmsSubmit"]
    assert one(site.submit(request=Request(1, 10.0)), SendOffer).partner == "b"
    assert one(site.submit(user="bob"), SendOffer).partner == "b"
    site.now = 10.0
    came_back(site)
    site.now = 29.9
    assert kinds(site.submit()) == ["ReplyJob", "LrmsSubmit"]
    site.now = 30.0
    number = site.state.partners["b"].next_number
    assert one(site.submit(), SendOffer).partner == "b"
    where = {"partner": "b", "offer": offer(number)}
    site(OfferAnswered, load=FULL, accepted=True, **where)
    ran = Completion(offer(number), Outcome.COMPLETED, 35.0, 4.0)
    site(ReportReceived, load=FULL, partner="b", completions=(ran,))
    came_back(site)
    site.now = 40.0  # the pauses have begun anew
    assert one(site.submit(), SendOffer).partner == "b"
    assert site.state.partners["b"].returns.count == 3


def test_what_is_taken_back_or_cancelled_says_nothing_of_a_partner() -> None:
    """It has done as it was told."""
    site = Conversation(settings(transfer={"b": GIVES}))
    delegated(site)
    site(TakeBack, load=FULL, job_id="a-1", by="root")
    cancelled = Completion(offer(1), Outcome.CANCELLED, 5.0, 0.0)
    site(ReportReceived, load=FULL, partner="b", completions=(cancelled,))
    assert site.job().state is JobState.SUBMITTING
    assert site.state.partners["b"].returns.count == 0
    assert one(site.submit(), SendOffer).partner == "b"


def test_what_home_would_not_start_is_offered() -> None:
    """However free it is: the part of the machine that would run it is shut. Where nobody takes it, it stays."""
    shut = Load(8, 8, 0, refuses=lambda _processors, _time: "main is down")
    site = Conversation()
    assert one(site.submit(load=shut), SendOffer).partner == "b"
    site(OfferAnswered, load=shut, accepted=False, **B1)
    last = site(OfferAnswered, load=shut, partner="c", offer=offer(1), accepted=False)
    assert kinds(last) == ["LrmsSubmit"]
