"""Jobs that are ended for other ones go home and are decided anew: what either side says, notes and hands on."""

from typing import Any

import pytest

from grms.lrms import base
from grms.site.model.commands import (
    AnswerOffer,
    Command,
    LrmsSubmit,
    SendOffer,
    SendReport,
    SendResolve,
)
from grms.site.model.compaction import compacted
from grms.site.model.events import (
    Cancel,
    LrmsLetGo,
    OfferAnswered,
    OfferReceived,
    PoliciesChanged,
    ReportAnswered,
    ReportReceived,
    ResolveReceived,
    Restarted,
    RoundDue,
    StatusAnswered,
    TakeBack,
)
from grms.site.model.jobs import Completion, GuestRef, OfferId, Request, SentHome
from grms.site.model.lifecycle import GuestState, JobState, Outcome
from grms.site.model.records import (
    GuestPreemptible,
    JobReturned,
    JobSentHome,
    RerunAllowed,
)
from grms.site.scheduler.state import SiteState
from grms.site.wire.convert import write_job
from lrms_sim.workload.requests import Request as Needs
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

THEIRS = OfferId(3, 5)
KEY = "b/3/5"
ONCE = Request.of(Needs(tasks=2, wall_time=100.0, requeue=False))
AGAIN = Request.of(Needs(tasks=2, wall_time=100.0, requeue=True))


# --- the partner ---------------------------------------------------------------------------------


def host(*, preempts: bool = True) -> Conversation:
    """Returns a site that may end partners' jobs."""
    return Conversation(settings(preempt_guests=preempts))


def offered(site: Conversation, *, request: Request = REQUEST, **more: Any) -> list[Command]:
    """Lets partner b offer a job that may be run again, unless something else is said."""
    given: dict[str, Any] = {"rerun": True, **more}
    return site(
        OfferReceived,
        load=FREE,
        partner="b",
        offer=THEIRS,
        settled_below=1,
        request=request,
        payload=b"run",
        **given,
    )


@pytest.mark.parametrize(
    ("preempts", "more", "preemptible"),
    [
        (True, {}, True),
        (True, {"request": AGAIN}, True),
        (True, {"request": ONCE}, False),
        (True, {"rerun": False}, False),
        (False, {}, False),
    ],
)
def test_only_a_job_that_both_sites_allow_is_preemptible(
    preempts: bool, more: dict[str, Any], preemptible: bool
) -> None:
    """It is accepted in any case; the journal has it before the batch system, also after a restart."""
    site = host(preempts=preempts)
    said = offered(site, **more)
    assert one(said, AnswerOffer).accepted
    assert one(said, LrmsSubmit).preemptible == preemptible
    noted = [record for record in site.journal if isinstance(record, GuestPreemptible)]
    assert noted == [GuestPreemptible(0.0, GuestRef("b", THEIRS))] * preemptible
    site.restart(settings(preempt_guests=not preempts))
    assert one(site(Restarted), LrmsSubmit).preemptible == preemptible


def test_a_job_whose_place_was_held_is_preemptible_too() -> None:
    """It is handed to the batch system when its home has confirmed it."""
    site = host()
    assert kinds(offered(site, reserve=True)) == ["AnswerOffer"]
    said = site(ResolveReceived, partner="b", offer=THEIRS, confirm=True)
    assert one(said, LrmsSubmit).preemptible


def test_what_was_ended_for_another_job_is_reported_until_it_is_heard() -> None:
    """With how long it has run; it counts as nothing taken, and as used in the month."""
    site = host()
    offered(site)
    site(base.Started, key=KEY, start_time=1.0)
    said = site(base.Ended, key=KEY, outcome=Outcome.PREEMPTED, end_time=9.0, run_time=8.0)
    report = one(said, SendReport).completion
    assert (report.outcome, report.run_time) == (Outcome.PREEMPTED, 8.0)
    assert site.state.partners["b"].taken == 0
    site.restart()
    assert one(site(Restarted), SendReport).completion == report
    status = site(ResolveReceived, partner="b", offer=THEIRS)
    assert kinds(status) == ["AnswerStatus"]
    site(ReportAnswered, partner="b", offers=(THEIRS,))
    assert not site.state.partners["b"].guests


# --- home ----------------------------------------------------------------------------------------


def home(**changes: Any) -> Conversation:
    """Returns a site whose jobs may run again."""
    return Conversation(settings(**{"requeue": "allow", **changes}))


def accepted(site: Conversation, partner: str = "b", number: int = 1) -> None:
    """Lets a partner accept an offer."""
    site(OfferAnswered, load=FULL, partner=partner, offer=offer(number), accepted=True)


def sent_home(
    site: Conversation, partner: str = "b", number: int = 1, lost: float = 8.0
) -> list[Command]:
    """Lets a partner report that it has ended a job for another one."""
    site.now += 10.0
    ended = Completion(offer(number), Outcome.PREEMPTED, site.now, lost)
    return site(ReportReceived, load=FULL, partner=partner, completions=(ended,))


@pytest.mark.parametrize(
    ("requeue", "request_", "rerun"),
    [
        ("never", REQUEST, False),
        ("never", AGAIN, False),
        ("ask", REQUEST, False),
        ("ask", AGAIN, True),
        ("ask", ONCE, False),
        ("allow", REQUEST, True),
        ("allow", AGAIN, True),
        ("allow", ONCE, False),
    ],
)
def test_an_offer_says_whether_the_job_may_run_again(
    requeue: str, request_: Request, rerun: bool
) -> None:
    """By the site's file and its user's word; without both nothing is said or noted."""
    site = home(requeue=requeue)
    assert one(site.submit(request=request_), SendOffer).rerun == rerun
    noted = [record for record in site.journal if isinstance(record, RerunAllowed)]
    assert noted == [RerunAllowed(0.0, 1, "b", 1)] * rerun


def test_a_job_that_is_sent_home_is_decided_anew() -> None:
    """Its submission stays; the next partner is asked, and what was lost is shown and survives."""
    site = home()
    site.submit()
    accepted(site)
    again = one(sent_home(site), SendOffer)
    assert (again.partner, again.offer, again.rerun) == ("c", offer(1), True)
    job = site.job()
    assert (job.submit_time, job.sent_home) == (0.0, (SentHome("b", 1, 8.0),))
    assert [type(r).__name__ for r in site.journal[-3:]] == [
        *("JobSentHome", "JobOffered", "RerunAllowed"),
    ]
    shown = write_job(job, "a", program=False).sent_home
    assert [(each.site, each.times, each.lost_s) for each in shown] == [("b", 1, 8.0)]
    for _ in range(2):
        # The processors were used, and nothing was given for it.
        assert site.state.partners["b"].given == 0
        (row,) = site.state.memory.usage.rows()
        assert (row.partner, row.user) == ("b", "ann")
        assert row.processor_s == 16.0
        site.restart()
        assert site.job().sent_home == (SentHome("b", 1, 8.0),)


@pytest.mark.parametrize("overtakes", [False, True])
def test_the_same_return_counts_once(overtakes: bool) -> None:
    """However often it is reported, also where it has overtaken the answer to the offer."""
    site = home()
    site.submit()
    if not overtakes:
        accepted(site)
    assert one(sent_home(site), SendOffer).partner == "c"
    count = len(site.journal)
    assert kinds(sent_home(site)) == ["AnswerReport"]
    accepted(site)
    assert len(site.journal) == count
    assert site.job().sent_home == (SentHome("b", 1, 8.0),)
    assert (site.job().state, site.job().partner) == (JobState.OFFERING, "c")


def test_it_may_come_as_the_answer_to_a_question() -> None:
    """A partner that died with the report on its way says it when it is back."""
    site = home()
    site.submit()
    site.restart()
    question = one(site(Restarted, load=FULL), SendResolve)
    ended = Completion(offer(1), Outcome.PREEMPTED, 0.0, 0.0)
    site.come_up()
    said = site(
        StatusAnswered,
        load=FULL,
        partner="b",
        offer=offer(1),
        question=question.cause,
        status=GuestState.ENDED,
        completion=ended,
    )
    assert one(said, SendOffer).partner == "c"


def test_a_job_that_was_sent_home_twice_is_offered_to_nobody() -> None:
    """Whichever partners did so: it stays at home, and its user learns why."""
    site = home()
    site.submit()
    asked = []
    for _ in range(2):
        job = site.job()
        asked.append(job.partner)
        accepted(site, job.partner, 1)
        said = sent_home(site, job.partner, 1)
    assert asked == ["b", "c"]
    assert kinds(said) == ["LrmsSubmit", "AnswerReport"]
    assert site.job().limited == "partners have sent it home 2 times"
    assert site.job().sent_home == (SentHome("b", 1, 8.0), SentHome("c", 1, 8.0))
    # Another job is offered to them as ever.
    assert one(site.submit(), SendOffer).partner == "b"


def test_what_home_has_not_allowed_has_ended() -> None:
    """The batch system there ends it all the same, or the partner is not honest: it is not run again."""
    site = home(requeue="never")
    site.submit()
    accepted(site)
    assert kinds(sent_home(site)) == ["AnswerReport"]
    assert site.job().outcome is Outcome.PREEMPTED
    assert site.job().sent_home == ()


def test_what_was_allowed_stays_allowed() -> None:
    """An offer that was made counts, whatever the file says by the time the job comes home."""
    site = home()
    site.submit()
    accepted(site)
    given = site.settings
    site(PoliciesChanged, transfer=given.transfer, location=given.location, requeue="never")
    again = one(sent_home(site), SendOffer)
    assert not again.rerun
    accepted(site, "c")
    sent_home(site, "c")
    assert site.job().outcome is Outcome.PREEMPTED


def test_a_job_that_is_cancelled_meanwhile_has_ended() -> None:
    """As cancelled, with the time it has run."""
    site = home()
    site.submit()
    accepted(site)
    site(Cancel, load=FULL, job_id="a-1", user="ann")
    assert kinds(sent_home(site)) == ["AnswerReport"]
    job = site.job()
    assert (job.outcome, job.run_time) == (Outcome.CANCELLED, 8.0)
    assert job.reason == "cancelled; b had ended it"
    assert not [record for record in site.journal if isinstance(record, JobSentHome)]


def test_a_job_that_is_taken_back_meanwhile_comes_home_once() -> None:
    """Whichever end was first, there is one."""
    site = home()
    site.submit()
    accepted(site)
    site(TakeBack, load=FULL, job_id="a-1", by="root")
    assert one(sent_home(site), SendOffer).partner == "c"
    assert not [record for record in site.journal if isinstance(record, JobReturned)]
    assert not site.job().take_back


def test_a_return_that_cannot_be_true_is_not_believed() -> None:
    """The job runs again; what was lost is no more than can be, and the partner is asked last."""
    site = home(clock_grace=1.0)
    site.submit()
    accepted(site)
    sent_home(site, lost=5e6)
    assert site.job().sent_home == (SentHome("b", 1, 10.0),)
    assert site.state.partners["b"].disbelieved == 1


# --- rounds, and what is kept --------------------------------------------------------------------


def round_due(site: Conversation) -> list[Command]:
    """Begins a round."""
    return site(RoundDue, load=FULL)


def leaves(site: Conversation, key: str, number: int) -> None:
    """Has b hold a place, and the batch system let the job go."""
    site(OfferAnswered, load=FULL, partner="b", offer=offer(number), accepted=True)
    site(LrmsLetGo, key=key, done=True)
    said = site(base.Ended, key=key, outcome=Outcome.CANCELLED, end_time=5.0, run_time=0.0)
    question = one(said, SendResolve)
    assert question.confirm
    site(
        StatusAnswered,
        load=FULL,
        partner="b",
        offer=offer(number),
        question=question.cause,
        status=GuestState.ACCEPTED,
    )


def waiting() -> Conversation:
    """Returns a site that holds rounds, where a job waits; its partner is b alone."""
    awf = settings().transfer["b"]
    site = Conversation(settings(requeue="allow", reoffer=900.0, transfer={"b": awf}), up=())
    site.submit(load=None)
    site(base.Accepted, key="a/7/1")
    site.up = ("b",)
    site.come_up()
    return site


def test_a_job_that_was_sent_home_may_leave_the_queue_again() -> None:
    """Until it has come home twice; its key is another one each time."""
    site = waiting()
    assert one(round_due(site), SendOffer).rerun
    leaves(site, "a/7/1", 1)
    assert one(sent_home(site), LrmsSubmit).lrms_key == "a/7/1/2"
    site(base.Accepted, key="a/7/1/2")
    asked = one(round_due(site), SendOffer)
    assert (asked.reserve, asked.rerun) == (True, True)
    leaves(site, "a/7/1/2", 2)
    assert one(sent_home(site, number=2), LrmsSubmit).lrms_key == "a/7/1/3"
    site(base.Accepted, key="a/7/1/3")
    assert kinds(round_due(site)) == ["PublishRound"]


def test_a_job_whose_place_was_denied_stays() -> None:
    """It went behind all others then; that it comes home after a start is another matter."""
    site = waiting()
    round_due(site)
    leaves(site, "a/7/1", 1)
    undone = Completion(offer(1), Outcome.LOST, 5.0, 0.0)
    site(ReportReceived, load=FULL, partner="b", completions=(undone,))
    site(base.Accepted, key="a/7/1/2")
    assert kinds(round_due(site)) == ["PublishRound"]


def test_compaction_keeps_what_was_lost() -> None:
    """Of jobs that are remembered; of offers that came to nothing no word is left."""
    site = waiting()
    for number in range(1, 4):
        site.now += 900.0
        round_due(site)
        site(OfferAnswered, load=FULL, partner="b", offer=offer(number), accepted=False)
    round_due(site)
    leaves(site, "a/7/1", 4)
    sent_home(site, number=4)
    left = compacted(site.settings, lambda: site.journal)
    assert left is not None
    allowed = [record for record in left if isinstance(record, RerunAllowed)]
    assert allowed == [RerunAllowed(2700.0, 1, "b", 4)]
    again = SiteState.recover(site.settings, left).job("a-1")
    assert again is not None
    assert again.sent_home == site.job().sent_home == (SentHome("b", 1, 8.0),)
    assert again.rerun == site.job().rerun


def test_a_report_about_what_was_never_given_is_acknowledged_and_changes_nothing() -> None:
    """A partner returns what it never had, or a place that nobody has confirmed."""
    site = waiting()
    assert one(round_due(site), SendOffer).reserve
    count = len(site.journal)
    for number in (1, 7):
        assert kinds(sent_home(site, number=number)) == ["AnswerReport"]
    assert len(site.journal) == count
    assert site.job().state is JobState.REOFFERING
