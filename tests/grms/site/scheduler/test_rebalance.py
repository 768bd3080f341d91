"""Jobs that wait are offered again, and leave the queue in an order in which nothing can happen twice."""

from dataclasses import replace
from typing import Any

import pytest

from grms.lrms import base
from grms.policy.constraints import ExchangeConstraints, Promise
from grms.policy.rebalancing import Rebalancing
from grms.policy.transfer import AlwaysKeep, Constrained, TransferQuestion, UserDefinedTransfer
from grms.site.model.commands import (
    AnswerReport,
    Command,
    LrmsCancel,
    LrmsSubmit,
    PublishRound,
    SendOffer,
    SendResolve,
    SendWithdraw,
)
from grms.site.model.events import (
    Cancel,
    LrmsLetGo,
    LrmsStays,
    OfferAnswered,
    OfferDisputed,
    OfferFailed,
    PartnerDown,
    PartnerUp,
    ProbeAnswered,
    ReportReceived,
    Restarted,
    RoundDue,
    StatusAnswered,
    StatusFailed,
    TimePassed,
)
from grms.site.model.jobs import Completion, Load
from grms.site.model.lifecycle import GuestState, JobState, Outcome
from grms.site.model.records import JobLeft
from grms.site.scheduler.operator_actions import why_stuck
from grms.site.wire.convert import write_job
from tests.grms.site.conversation import (
    FULL,
    KEEP,
    REQUEST,
    Conversation,
    kinds,
    offer,
    one,
    settings,
)

KEY = "a/7/1"
B1 = {"partner": "b", "offer": offer(1)}
C1 = {"partner": "c", "offer": offer(1)}


def home(count: int = 1, **changes: Any) -> Conversation:
    """Returns a site that holds rounds, where jobs wait; its load was not known as they came."""
    site = Conversation(settings(**{"reoffer": 900.0, **changes}), up=())
    for number in range(1, count + 1):
        site.submit(load=None)
        site(base.Accepted, key=f"a/7/{number}")
    site.up = ("b", "c")
    site.come_up()
    return site


def due(site: Conversation) -> list[Command]:
    """Begins a round."""
    return site(RoundDue, load=FULL)


def leaving() -> Conversation:
    """Returns a site with a job for which b holds a place."""
    site = home()
    due(site)
    (cancel,) = site(OfferAnswered, load=FULL, accepted=True, **B1)
    assert cancel == LrmsCancel(site.last_id, KEY, only_waiting=True)
    assert site.job().state is JobState.LEAVING
    return site


def test_a_job_that_may_not_leave_stays() -> None:
    """The place is given back, and the job waits on."""
    site = leaving()
    told = write_job(site.job(), "a", program=False)
    assert (told.offered_to, told.leaving) == ("b", True)
    withdraw = one(site(LrmsStays, key=KEY), SendWithdraw)
    assert (withdraw.partner, withdraw.cancel) == ("b", True)
    assert site.job().state is JobState.QUEUED
    assert site(LrmsStays, key=KEY) == []
    assert site(LrmsStays, key="nobody's") == []


def let_go(site: Conversation, **changes: Any) -> list[Command]:
    """Has the batch system answer that it lets the job go, and then tell its end."""
    given: dict[str, Any] = {
        "key": KEY,
        "outcome": Outcome.CANCELLED,
        "end_time": 5.0,
        "run_time": 0.0,
        **changes,
    }
    site(LrmsLetGo, key=given["key"], done=True)
    return site(base.Ended, **given)


def left() -> tuple[Conversation, SendResolve]:
    """Returns a site whose job has left the queue, and what b is told."""
    site = leaving()
    return site, one(let_go(site), SendResolve)


def status(
    site: Conversation, question: int, said: GuestState | None, **more: Any
) -> list[Command]:
    """Answers a question about the offer."""
    return site(StatusAnswered, load=FULL, question=question, status=said, **B1, **more)


# --- rounds --------------------------------------------------------------------------------------


def test_a_waiting_job_is_offered_again() -> None:
    """The partner is to hold a place; what the site does not see does not change for its user."""
    site = home()
    asked = one(due(site), SendOffer)
    assert asked == SendOffer(site.last_id, "b", offer(1), 1, REQUEST, b"run", reserve=True)
    assert (site.job().state, site.job().shown) == (JobState.REOFFERING, JobState.QUEUED)
    assert site.state.job_counts()[JobState.QUEUED] == 1
    told = write_job(site.job(), "a", program=False)
    assert (told.offered_to, told.leaving) == ("b", False)


def test_the_policy_is_told_of_the_others_that_wait() -> None:
    """A job that is offered again does not wait for itself."""
    told: list[int] = []

    def no(question: TransferQuestion) -> bool:
        told.append(question.processors_waiting)
        return False

    due(home(transfer={"b": UserDefinedTransfer(no)}))
    assert told == [FULL.processors_waiting - 2]


def test_partners_take_turns_from_job_to_job() -> None:
    """Where only some are asked about a job, those who were asked less often come first."""
    site = home(2, partners_asked=1)
    assert one(due(site), SendOffer).partner == "b"
    second = one(site(OfferAnswered, load=FULL, accepted=False, **B1), SendOffer)
    assert (second.partner, site.job(2).partner) == ("c", "c")


def test_without_rounds_nothing_is_offered_again() -> None:
    """By default a job that stays at home stays there."""
    site = home(reoffer=None)
    assert due(site) == []


def test_every_partner_and_every_job_has_its_turn() -> None:
    """One question at a time: partners in their order, jobs in that of the queue."""
    site = home(2)
    assert one(due(site), SendOffer).partner == "b"
    asked = one(site(OfferAnswered, load=FULL, accepted=False, **B1), SendOffer)
    assert asked.partner == "c"
    asked = one(site(OfferAnswered, load=FULL, accepted=False, **C1), SendOffer)
    assert (asked.partner, asked.offer) == ("b", offer(2))
    site(OfferAnswered, load=FULL, accepted=False, partner="b", offer=offer(2))
    assert site.job(2).state is JobState.REOFFERING
    over = site(OfferAnswered, load=FULL, accepted=False, partner="c", offer=offer(2))
    assert over == [PublishRound(site.last_id)]
    assert [site.job(n).state for n in (1, 2)] == [JobState.QUEUED] * 2
    assert site.job().asked == ()


def test_questions_whose_answer_is_known_are_spared() -> None:
    """Who has declined a job is not asked about one that is no easier."""
    site = home(2, reoffer=Rebalancing(900.0))
    due(site)
    site(OfferAnswered, load=FULL, accepted=False, **B1)
    over = site(OfferAnswered, load=FULL, accepted=False, **C1)
    assert over == [PublishRound(site.last_id)]


def test_what_home_wants_stays() -> None:
    """Its policy is asked as at an arrival; that the job does not start at once is known."""
    assert kinds(due(home(transfer={"b": AlwaysKeep(), "c": AlwaysKeep()}))) == ["PublishRound"]
    rails = Constrained(ExchangeConstraints(start_now=True))
    assert one(due(home(transfer={"b": rails})), SendOffer).partner == "b"
    # The policy beside the first partner that keeps a job keeps it from all.
    assert kinds(due(home(transfer={"b": AlwaysKeep(), "c": rails}))) == ["PublishRound"]
    assert one(due(home(transfer={"b": rails, "c": AlwaysKeep()})), SendOffer).partner == "b"


def test_what_home_has_no_room_for_is_offered_whatever_it_wants() -> None:
    """A machine that has shrunk may still run a job as wide as what is left of it."""
    for left, said in ((2, "PublishRound"), (1, "SendOffer")):
        site = home(transfer={"b": AlwaysKeep(), "c": AlwaysKeep()})
        assert kinds(site(RoundDue, load=Load(left, 0, 3))) == [said]


def test_what_nothing_starts_at_home_is_offered_whatever_home_wants() -> None:
    """The part of the machine that would run it is shut; where it waits it waits for ever."""
    site = home(transfer=KEEP)
    assert kinds(due(site)) == ["PublishRound"]
    site(base.Hindered, key=site.job().lrms_key, reason="main is down")
    assert one(due(site), SendOffer).reserve
    site = home(transfer=KEEP)
    shut = replace(FULL, refuses=lambda _processors, _time: "main is down")
    assert one(site(RoundDue, load=shut), SendOffer).reserve


def test_what_somebody_lets_wait_in_the_batch_system_is_not_offered() -> None:
    """At a partner it would start in spite of its hold; it is offered when that is lifted."""
    site = home()
    site(base.Hindered, key=KEY, reason="its user holds it", deferred=True)
    assert kinds(due(site)) == ["PublishRound"]
    assert why_stuck(site.job(), site.state.memory, 0.0) == "its user holds it"
    site(base.Hindered, key=KEY, reason="")
    assert one(due(site), SendOffer).reserve


def test_what_no_look_shows_is_not_offered_and_keeps_no_place() -> None:
    """The batch system could not let it go: all that wait behind it would stand still."""
    site = leaving()
    withdraw = one(site(base.Unseen, key=KEY, reason="no table shows it"), SendWithdraw)
    assert (withdraw.partner, site.job().state) == ("b", JobState.QUEUED)
    site = home()
    site(base.Unseen, key=KEY, reason="no table shows it")
    assert kinds(due(site)) == ["PublishRound"]
    site(base.SeenAgain, key=KEY)
    assert one(due(site), SendOffer).reserve


def test_a_round_may_have_a_bound() -> None:
    """Of questions, whomever they are put to; the next begins anew."""
    site = home(2, reoffer=Rebalancing(900.0, questions=1))
    for number in (1, 2):
        assert one(due(site), SendOffer).offer == offer(number)
        over = site(OfferAnswered, load=FULL, accepted=False, partner="b", offer=offer(number))
        assert over == [PublishRound(site.last_id)]


def test_a_late_no_is_about_its_own_job() -> None:
    """The round in which it was asked for is over: what it says of the partner now is nothing."""
    site = home(3, reoffer=Rebalancing(900.0))
    due(site)
    assert due(site) == []
    asked = one(due(site), SendOffer)
    assert (asked.partner, site.job(2).partner) == ("b", "b")
    assert site(OfferAnswered, load=FULL, accepted=False, **B1) == []
    site(OfferAnswered, load=FULL, accepted=True, partner="b", offer=asked.offer)
    confirm = one(let_go(site, key="a/7/2"), SendResolve)
    said = {"question": confirm.cause, "status": GuestState.ACCEPTED}
    following = site(StatusAnswered, load=FULL, partner="b", offer=asked.offer, **said)
    assert (one(following, SendOffer).partner, site.job(3).partner) == ("b", "b")


def test_an_answer_about_a_place_is_a_good_one() -> None:
    """A partner that was faulty is probed after short pauses again, as after any offer."""
    site = home()
    due(site)
    site.state.partners["b"].faults_in_row = 3
    site(OfferAnswered, load=FULL, accepted=False, **B1)
    assert site.state.partners["b"].faults_in_row == 0


@pytest.mark.parametrize(
    ("event", "values"),
    [
        (PartnerDown, {"partner": "b"}),
        (PartnerUp, {"load": FULL, "partner": "b", "processors": 1}),
    ],
)
def test_who_cannot_be_asked_is_passed_over(event: Any, values: dict[str, Any]) -> None:
    """Away, or too small."""
    site = home()
    site(event, **values)
    assert one(due(site), SendOffer).partner == "c"


def test_who_has_sent_such_a_job_back_is_passed_over_for_a_while() -> None:
    """Until the pause is over."""
    site = home(2)
    returns = site.state.partners["b"].returns
    returns.came_back("ann", REQUEST, site.now, first_s=60.0, most_s=60.0)
    assert one(due(site), SendOffer).partner == "c"
    site.now = 61.0
    assert one(site(OfferAnswered, load=FULL, accepted=False, **C1), SendOffer).partner == "b"


def test_who_is_not_trusted_is_passed_over() -> None:
    """As at an arrival."""
    rails = Constrained(ExchangeConstraints(start_now=True, promise=Promise()))
    site = home(transfer={"b": rails, "c": rails})
    site.state.partners["b"].trust.suspended_until = 100.0
    assert one(due(site), SendOffer).partner == "c"


def test_what_has_started_once_is_not_given_away() -> None:
    """Nor what is to end."""
    site = home(2)
    site(base.Started, key=KEY, start_time=1.0)
    site(base.Requeued, key=KEY, reason="a node failed")
    site(Cancel, job_id="a-2", user="ann")
    assert due(site) == [PublishRound(site.last_id)]


def test_nothing_is_decided_while_the_batch_system_does_not_answer() -> None:
    """The round is over at once."""
    site = home()
    site(base.Away, reason="down")
    assert kinds(due(site)) == ["PublishRound"]


def test_a_round_that_comes_further_is_not_begun_anew() -> None:
    """One that has come no further since the last time is."""
    site = home(2)
    due(site)
    assert due(site) == []
    site(OfferAnswered, load=FULL, accepted=False, **B1)
    asked = one(due(site), SendOffer)
    assert (asked.partner, site.job(2).state) == ("b", JobState.REOFFERING)


def test_a_partner_that_does_not_answer_keeps_nobody_waiting() -> None:
    """Its offer is withdrawn, and it is asked no more in this round."""
    site = home(2)
    due(site)
    withdraw, asked = site(OfferFailed, load=FULL, **B1)
    assert withdraw == SendWithdraw(site.last_id, "b", offer(1), 0.0, cancel=True)
    assert isinstance(asked, SendOffer)
    assert asked.partner == "c"
    asked = one(site(OfferAnswered, load=FULL, accepted=False, **C1), SendOffer)
    assert (asked.partner, site.job(2).state) == ("c", JobState.REOFFERING)


def test_a_partner_that_did_not_answer_is_asked_again_in_the_next_round() -> None:
    """It may have been restarted meanwhile."""
    site = home()
    due(site)
    site(OfferFailed, load=FULL, **B1)
    assert kinds(site(OfferAnswered, load=FULL, accepted=False, **C1)) == ["PublishRound"]
    asked = one(due(site), SendOffer)
    assert (asked.partner, asked.offer) == ("b", offer(2))


def test_an_offer_that_was_not_sent_need_not_be_withdrawn() -> None:
    """Nobody has heard of it."""
    site = home()
    due(site)
    assert kinds(site(OfferFailed, load=FULL, sent=False, **B1)) == ["SendOffer"]


def test_an_offer_with_the_number_of_another_holds_no_place() -> None:
    """The job waits on, in a new epoch."""
    site = home()
    due(site)
    assert kinds(site(OfferDisputed, load=FULL, **B1)) == ["SendProbe", "SendOffer"]
    assert site.state.memory.epoch == 8


def test_a_partner_that_disputes_an_offer_is_asked_no_more_in_the_round() -> None:
    """Neither about that job nor about the next, though a probe finds it well meanwhile."""
    site = home(2)
    due(site)
    asked = one(site(OfferDisputed, load=FULL, **B1), SendOffer)
    assert asked.partner == "c"
    site(ProbeAnswered, partner="b", status=None)
    assert not site.state.partners["b"].faulty
    answer = {"partner": "c", "offer": asked.offer, "accepted": False}
    asked = one(site(OfferAnswered, load=FULL, **answer), SendOffer)
    assert (asked.partner, site.job(2).state) == ("c", JobState.REOFFERING)


def test_so_many_partners_are_asked_about_a_job_in_a_round() -> None:
    """The next round asks again."""
    site = home(partners_asked=1)
    for number in (1, 2):
        asked = one(due(site), SendOffer)
        answer = {"partner": asked.partner, "offer": asked.offer, "accepted": False}
        over = site(OfferAnswered, load=FULL, **answer)
        assert over == [PublishRound(site.last_id)], number


# --- leaving -------------------------------------------------------------------------------------


def test_the_job_leaves_before_it_is_started_there() -> None:
    """The partner is told when the batch system has let go, and it is in the journal."""
    site, told = left()
    assert told == SendResolve(site.last_id, "b", offer(1), 0.0, confirm=True)
    assert isinstance(site.journal[-1], JobLeft)
    assert site.job().state is JobState.RESOLVING
    assert site.state.memory.at_lrms == {}
    over = status(site, told.cause, GuestState.ACCEPTED)
    assert over == [PublishRound(site.last_id)]
    assert (site.job().state, site.job().asked) == (JobState.DELEGATED, ("b",))


def test_it_is_confirmed_until_that_is_heard() -> None:
    """Others have their turn meanwhile, and over a restart nothing changes."""
    site, told = left()
    again = one(site(StatusFailed, load=FULL, question=told.cause, **B1), SendResolve)
    assert again.confirm
    assert again.delay_s > 0
    site.restart()
    site.come_up()
    assert one(site(Restarted, load=FULL), SendResolve).confirm


def test_others_have_their_turn_when_a_confirmation_is_not_heard_at_once() -> None:
    """Before that the round stands."""
    site = home(2)
    due(site)
    site(OfferAnswered, load=FULL, accepted=True, **B1)
    assert kinds(let_go(site)) == ["SendResolve"]
    assert site(TimePassed, load=FULL) == []
    told = site.job().question
    failed = site(StatusFailed, load=FULL, question=told, **B1)
    assert kinds(failed) == ["SendResolve", "SendOffer"]


def test_a_job_that_has_started_stays() -> None:
    """The place is given back, until the partner has heard of it."""
    site = leaving()
    withdraw = one(site(base.Started, key=KEY, start_time=4.0), SendWithdraw)
    assert (withdraw.partner, withdraw.offer, withdraw.cancel) == ("b", offer(1), True)
    assert (site.job().state, site.job().partner) == (JobState.RUNNING, "")
    assert list(site.state.partners["b"].abandoned) == [1]
    site(StatusAnswered, load=FULL, question=withdraw.cause, status=GuestState.WITHDRAWN, **B1)
    assert not site.state.partners["b"].undecided


@pytest.mark.parametrize("ended", [{"run_time": 3.0}, {"outcome": Outcome.COMPLETED}])
def test_a_job_that_has_ended_is_over(ended: dict[str, Any]) -> None:
    """It had started, whoever has ended it."""
    site = leaving()
    assert kinds(let_go(site, **ended)) == ["SendWithdraw"]
    assert site.job().state is JobState.ENDED


def test_a_cancelled_job_does_not_leave() -> None:
    """Neither when the place is there, nor when the batch system has let it go."""
    site = home()
    due(site)
    assert kinds(site(Cancel, job_id="a-1", user="ann")) == ["LrmsCancel", "ReplyJob"]
    answer = site(OfferAnswered, load=FULL, accepted=True, **B1)
    assert kinds(answer) == ["SendWithdraw", "PublishRound"]
    let_go(site)
    assert site.job().outcome is Outcome.CANCELLED
    site = leaving()
    site(Cancel, job_id="a-1", user="ann")
    assert kinds(let_go(site)) == ["SendWithdraw"]
    assert site.job().outcome is Outcome.CANCELLED


def test_a_job_that_is_let_go_while_another_is_asked_is_decided_anew() -> None:
    """The first place was disputed after the batch system was told; the second is not needed."""
    site = leaving()
    asked = one(site(OfferDisputed, load=FULL, **B1), SendOffer)
    assert (asked.partner, asked.reserve) == ("c", True)
    withdraw, decided = let_go(site)
    assert isinstance(withdraw, SendWithdraw)
    assert (withdraw.partner, withdraw.offer) == ("c", asked.offer)
    assert isinstance(decided, LrmsSubmit)
    assert (decided.lrms_key, site.job().state) == ("a/7/1/2", JobState.SUBMITTING)


def test_a_job_that_the_batch_system_loses_is_submitted_again() -> None:
    """It stays: whether it was let go is not known."""
    site = leaving()
    lost = site(base.Lost, key=KEY, reason="restored")
    assert kinds(lost) == ["SendWithdraw", "LrmsSubmit"]
    # That it is let go now comes too late for the partner.
    again = one(let_go(site), LrmsSubmit)
    assert (again.lrms_key, again.lookup) == ("a/7/1/2", True)
    assert site.job().state is JobState.SUBMITTING


def test_a_job_that_waits_again_is_let_go_by_nobody_of_ours() -> None:
    """It has started; whoever has cancelled it since did not do so for its partner, and it is over."""
    site = leaving()
    site(base.Started, key=KEY, start_time=4.0)
    site(base.Requeued, key=KEY, reason="a node failed")
    assert (let_go(site), site.job().outcome) == ([], Outcome.CANCELLED)


@pytest.mark.parametrize("said", [GuestState.DECLINED, GuestState.WITHDRAWN, GuestState.ENDED])
def test_a_place_that_is_gone_brings_the_job_home(said: GuestState) -> None:
    """By another key, as the batch system has ended the one that it had."""
    site, told = left()
    more = {}
    if said is GuestState.ENDED:
        more["completion"] = Completion(offer(1), Outcome.LOST, 0.0, 0.0)
    decided = status(site, told.cause, said, **more)
    asked = one(decided, SendOffer)
    assert (asked.partner, asked.reserve) == ("c", False)
    kept = one(site(OfferAnswered, load=FULL, accepted=False, **C1), LrmsSubmit)
    assert kept.lrms_key == "a/7/1/2"
    site(base.Accepted, key="a/7/1/2")
    assert site.job().state is JobState.QUEUED


def test_a_job_that_came_back_stays() -> None:
    """It is behind all others now; a partner that denies every place would keep it there, round after round."""
    site, told = left()
    status(site, told.cause, GuestState.DECLINED)
    site(OfferAnswered, load=FULL, accepted=False, **C1)
    site(base.Accepted, key="a/7/1/2")
    assert kinds(due(site)) == ["PublishRound"]
    site.restart()
    site(Restarted, load=FULL)
    site.come_up()
    site(base.Accepted, key="a/7/1/2")
    assert kinds(due(site)) == ["PublishRound"]


def test_a_job_that_came_back_is_not_about_to_leave() -> None:
    """Who cancels it in the batch system now ends it."""
    site, told = left()
    status(site, told.cause, GuestState.DECLINED)
    site(OfferAnswered, load=FULL, accepted=False, **C1)
    site(base.Accepted, key="a/7/1/2")
    assert let_go(site, key="a/7/1/2") == []
    assert site.job().outcome is Outcome.CANCELLED


def test_a_partner_that_has_forgotten_the_place_is_withdrawn_first() -> None:
    """As with any offer of which nobody has heard."""
    site, told = left()
    withdraw = one(status(site, told.cause, None), SendWithdraw)
    assert site.job().state is JobState.WITHDRAWING
    status(site, withdraw.cause, GuestState.WITHDRAWN)
    assert site.job().partner == "c"


def test_a_cancelled_job_without_its_place_is_cancelled() -> None:
    """It has not run, and is not decided anew."""
    site, told = left()
    site(Cancel, job_id="a-1", user="ann")
    gone = Completion(offer(1), Outcome.LOST, 0.0, 0.0)
    site(ReportReceived, load=FULL, partner="b", completions=(gone,))
    assert told.confirm
    assert site.job().outcome is Outcome.CANCELLED


def test_what_becomes_of_a_place_is_not_believed_before_it_is_confirmed() -> None:
    """The job is still here, whatever the partner reports of it."""
    site = leaving()
    ended = Completion(offer(1), Outcome.COMPLETED, 2.0, 2.0)
    told = site(ReportReceived, load=FULL, partner="b", completions=(ended,))
    assert told == [AnswerReport(site.last_id)]
    assert site.job().state is JobState.LEAVING
