from typing import Any

import pytest

from grms.lrms import base
from grms.policy.transfer import AlwaysKeep
from grms.site.model.commands import (
    AnswerOffer,
    LrmsCancel,
    LrmsSubmit,
    Refusal,
    Refuse,
    ReplyJob,
    SendOffer,
)
from grms.site.model.events import (
    Cancel,
    LrmsRefused,
    OfferAnswered,
    OfferReceived,
    ReportReceived,
    Restarted,
)
from grms.site.model.jobs import Completion, Request
from grms.site.model.lifecycle import JobState, Outcome
from grms.site.model.settings import Limits
from grms.v1 import job_pb2
from tests.field_paths import is_field
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


def end_all(site: Conversation) -> None:
    """Lets every job that the batch system has end."""
    for key in list(site.state.memory.at_lrms):
        site(base.Ended, key=key, outcome=Outcome.COMPLETED, end_time=1.0, run_time=1.0)


def test_a_repeated_submission_is_the_same_job() -> None:
    """The same user with the same key gets the same answer, and nothing happens again."""
    site = Conversation(settings(transfer=KEEP))
    first = site.submit(load=FREE, idempotency_key="k")
    count = len(site.journal)
    again = site.submit(load=FREE, idempotency_key="k")
    assert one(first, ReplyJob).job_id == one(again, ReplyJob).job_id == "a-1"
    assert kinds(again) == ["ReplyJob"]
    assert len(site.journal) == count
    assert one(site.submit(load=FREE, idempotency_key="k", user="bob"), ReplyJob).job_id == "a-2"


@pytest.mark.parametrize(
    "change", [{"request": Request(1, 100.0)}, {"payload": b"other"}, {"name": "other"}]
)
def test_a_key_belongs_to_one_submission(change: dict[str, Any]) -> None:
    """Another job under a used key is a mistake of the client, and said so."""
    site = Conversation(settings(transfer=KEEP))
    site.submit(load=FREE, idempotency_key="k")
    refused = one(site.submit(load=FREE, idempotency_key="k", **change), Refuse)
    assert refused.refusal is Refusal.PRECONDITION
    assert refused.field == "idempotency_key"
    assert refused.reason == "the idempotency key belongs to another submission, a-1"


@pytest.mark.parametrize(
    ("change", "field", "reason"),
    [
        (
            {"idempotency_key": ""},
            "idempotency_key",
            "idempotency_key has 0 characters; between 1 and 128 are possible",
        ),
        (
            {"idempotency_key": "k" * 129},
            "idempotency_key",
            "idempotency_key has 129 characters; between 1 and 128 are possible",
        ),
        ({"user": ""}, "", "user has 0 characters; between 1 and 128 are possible"),
        ({"name": "n" * 129}, "name", "name has 129 characters; between 0 and 128 are possible"),
        (
            {"request": Request(9, 1.0)},
            "request.processors",
            "processors is 9; this site has 8, and no partner of this site is known that could run it",
        ),
        (
            {"payload": b"x" * 1_000_001},
            "request",
            "what is to run has 1000001 bytes; at most 1000000 are possible",
        ),
    ],
)
def test_what_cannot_be_run_is_refused(change: dict[str, Any], field: str, reason: str) -> None:
    """The answer names the field, the value and the bound; nothing is journaled."""
    site = Conversation()
    refused = one(site.submit(**change), Refuse)
    assert (refused.refusal, refused.field) == (Refusal.INVALID, field)
    assert not field or is_field(job_pb2.SubmitRequest.DESCRIPTOR, field)
    assert refused.reason == reason
    assert site.journal == []


def test_what_is_just_within_the_bounds_is_taken() -> None:
    """The longest names, the widest job and the largest program are possible."""
    site = Conversation()
    words = {"idempotency_key": "k" * 128, "user": "u" * 128, "name": "n" * 128}
    most = {"request": Request(8, 1.0), "payload": b"x" * 1_000_000}
    assert one(site.submit(load=FREE, **words, **most), ReplyJob).job_id == "a-1"


def test_open_jobs_have_limits() -> None:
    """Of one user and of the site; an end makes room."""
    limits = Limits(jobs_open=3, jobs_open_per_user=2)
    site = Conversation(settings(transfer=KEEP, limits=limits))
    for user in ("ann", "ann", "bob"):
        one(site.submit(load=FREE, user=user), ReplyJob)
    refused = one(site.submit(load=FREE, user="ann"), Refuse)
    assert refused.refusal is Refusal.EXHAUSTED
    assert refused.reason == "this site has 3 open jobs, and may have 3; try later"
    site(base.Ended, key="a/7/3", outcome=Outcome.COMPLETED, end_time=1.0, run_time=1.0)
    assert (
        one(site.submit(load=FREE, user="ann"), Refuse).reason
        == "ann has 2 open jobs, and may have 2; try later"
    )
    assert one(site.submit(load=FREE, user="bob"), ReplyJob).job_id == "a-4"


def test_ended_jobs_are_forgotten_at_the_limit() -> None:
    """The one that ended first goes first, and is not run again by its key; open jobs stay."""
    site = Conversation(settings(transfer=KEEP, limits=Limits(jobs_kept=2)))
    for number in range(4):
        site.submit(load=FREE, idempotency_key=f"k{number}")
        if number:
            end_all_but_first = [k for k in site.state.memory.at_lrms if k != "a/7/1"]
            for key in end_all_but_first:
                site(base.Ended, key=key, outcome=Outcome.FAILED, end_time=1.0, run_time=1.0)
    assert [job.job_id for job in site.state.jobs()] == ["a-1", "a-3", "a-4"]
    refused = one(site.submit(load=FREE, idempotency_key="k1"), Refuse)
    assert (refused.refusal, refused.field) == (Refusal.PRECONDITION, "idempotency_key.forgotten")
    assert refused.reason.startswith("the idempotency key is that of a-2, which ended so long ago ")
    # Another user's key is another one.
    other = one(site.submit(load=FREE, idempotency_key="k1", user="bob"), ReplyJob)
    assert other.job_id == "a-5"
    again = Conversation(settings(transfer=KEEP, limits=Limits(jobs_kept=2)))
    again.journal = site.journal
    again.restart()
    assert [job.job_id for job in again.state.jobs()] == ["a-1", "a-3", "a-4", "a-5"]


def test_a_user_cancels_own_jobs_only() -> None:
    """Another user's is forbidden, a missing one not found; an operator may cancel any."""
    site = Conversation(settings(transfer=KEEP))
    site.submit(load=FREE)
    refused = one(site(Cancel, load=FREE, job_id="a-1", user="bob"), Refuse)
    assert refused.refusal is Refusal.FORBIDDEN
    missing = one(site(Cancel, load=FREE, job_id="a-9", user="ann"), Refuse)
    assert missing.refusal is Refusal.NOT_FOUND
    assert not site.job().cancel_requested
    assert kinds(site(Cancel, load=FREE, job_id="a-1", user=None)) == ["LrmsCancel", "ReplyJob"]


@pytest.mark.parametrize("steps", [0, 1, 2])
def test_cancelling_at_home(steps: int) -> None:
    """Submitted, queued or running: the batch system ends it, and a second time is nothing."""
    site = Conversation(settings(transfer=KEEP))
    key = one(site.submit(load=FREE), LrmsSubmit).lrms_key
    if steps > 0:
        site(base.Accepted, key=key)
    if steps > 1:
        site(base.Started, key=key, start_time=0.0)
    assert one(site(Cancel, load=FREE, job_id="a-1", user="ann"), LrmsCancel).lrms_key == key
    assert kinds(site(Cancel, load=FREE, job_id="a-1", user="ann")) == ["ReplyJob"]
    site(base.Ended, key=key, outcome=Outcome.CANCELLED, end_time=1.0, run_time=0.0)
    assert site.job().outcome is Outcome.CANCELLED
    assert kinds(site(Cancel, load=FREE, job_id="a-1", user="ann")) == ["ReplyJob"]


def test_a_report_is_taken_from_the_partner_that_has_the_job() -> None:
    """Another partner, another number or another epoch ends nothing; all are acknowledged."""
    site = Conversation()
    site.submit()
    site(OfferAnswered, load=FULL, partner="b", offer=offer(1), accepted=True)
    wrong = [("c", offer(1)), ("b", offer(2)), ("b", offer(1, epoch=6))]
    for partner, which in wrong:
        completion = Completion(which, Outcome.COMPLETED, 9.0, 1.0)
        answer = site(ReportReceived, partner=partner, completions=(completion,))
        assert kinds(answer) == ["AnswerReport"]
        assert site.job().state is JobState.DELEGATED
    completion = Completion(offer(1), Outcome.COMPLETED, 9.0, 1.0)
    for _ in range(2):
        site(ReportReceived, partner="b", completions=(completion,))
    assert site.job().state is JobState.ENDED
    assert sum(type(record).__name__ == "JobEnded" for record in site.journal) == 1


def test_a_report_has_its_limits() -> None:
    """A stranger's, and one that is too long, are refused."""
    site = Conversation(settings(limits=Limits(report_completions=1)))
    stranger = one(site(ReportReceived, partner="x", completions=()), Refuse)
    assert stranger.refusal is Refusal.FORBIDDEN
    completion = Completion(offer(1), Outcome.COMPLETED, 9.0, 1.0)
    long = one(site(ReportReceived, partner="b", completions=(completion, completion)), Refuse)
    assert (long.refusal, long.field) == (Refusal.INVALID, "completions")
    assert long.reason == "2 completions; at most 1 are possible"


def test_after_a_restart_the_batch_system_is_asked_first() -> None:
    """What it may have is looked up; what had started must not be submitted; cancels go on."""
    site = Conversation(settings(transfer=KEEP))
    for _ in range(2):
        site.submit(load=FREE)
    site(base.Started, key="a/7/2", start_time=1.0)
    site(Cancel, load=FREE, job_id="a-2", user="ann")
    site.restart()
    first, second, cancel = site(Restarted, load=FREE)
    assert isinstance(first, LrmsSubmit)
    assert (first.lrms_key, first.lookup, first.started) == ("a/7/1", True, False)
    assert isinstance(second, LrmsSubmit)
    assert (second.lrms_key, second.lookup, second.started) == ("a/7/2", True, True)
    assert isinstance(cancel, LrmsCancel)
    end_all(site)
    assert {job.state for job in site.state.jobs()} == {JobState.ENDED}


def test_a_job_that_was_not_decided_is_decided_after_a_restart() -> None:
    """A declined offer is in the journal, what was to follow is not: it follows now."""
    site = Conversation(settings(transfer={"b": KEEP["b"], **settings().transfer}))
    site.submit()
    site(OfferAnswered, load=FULL, partner="b", offer=offer(1), accepted=False)
    # The crash comes between the record of the decline and that of the next offer.
    assert [type(record).__name__ for record in site.journal[-2:]] == ["JobDeclined", "JobOffered"]
    del site.journal[-1]
    site.restart(settings(transfer={"b": AlwaysKeep(), "c": AlwaysKeep()}))
    assert site.job().state is JobState.RECEIVED
    assert kinds(site(Restarted, load=FREE)) == ["LrmsSubmit"]
    site.restart()
    site.come_up()
    assert one(site(Restarted, load=None), LrmsSubmit).lrms_key == "a/7/1"


def test_partners_that_were_asked_are_not_asked_again() -> None:
    """The decision goes on after a restart where it was."""
    site = Conversation()
    site.submit()
    site(OfferAnswered, load=FULL, partner="b", offer=offer(1), accepted=False)
    del site.journal[-1]
    site.restart()
    site.come_up()
    assert one(site(Restarted, load=FULL), SendOffer).partner == "c"


def test_a_report_that_is_refused_has_that_answer_alone() -> None:
    """One question, one answer; and none of what it says is noted."""
    few = settings(limits=Limits(report_completions=1))
    site = Conversation(few)
    site.submit()
    site(OfferAnswered, load=FULL, partner="b", offer=offer(1), accepted=True)
    ends = tuple(Completion(offer(n), Outcome.COMPLETED, 1.0, 1.0) for n in (1, 2))
    assert kinds(site(ReportReceived, partner="b", completions=ends)) == ["Refuse"]
    assert site.job().state is JobState.DELEGATED
    assert kinds(site(ReportReceived, partner="b", completions=ends[:1])) == ["AnswerReport"]
    assert kinds(site(ReportReceived, partner="x", completions=ends[:1])) == ["Refuse"]


# --- the batch system ----------------------------------------------------------------------------


def running_at_home() -> tuple[Conversation, str]:
    """Returns a site with a job that runs, and the job's key."""
    site = Conversation(settings(transfer=KEEP))
    key = one(site.submit(load=FREE), LrmsSubmit).lrms_key
    site(base.Accepted, key=key)
    site(base.Started, key=key, start_time=1.0)
    return site, key


def test_an_end_by_other_hands_says_so() -> None:
    """Nobody here has asked for it."""
    for told, shown in (("by root", ": by root"), ("", "")):
        site, key = running_at_home()
        end = {"outcome": Outcome.CANCELLED, "end_time": 4.0, "run_time": 3.0, "reason": told}
        site(base.Ended, key=key, **end)
        assert site.job().outcome is Outcome.CANCELLED
        assert site.job().reason == f"cancelled in the batch system{shown}"


def test_a_batch_system_that_is_away_is_no_place_for_others() -> None:
    """Own jobs stay at home and say why they do not go on; offers are declined."""
    site = Conversation()
    site(base.Away, reason="no controller")
    assert kinds(site.submit(load=FULL)) == ["ReplyJob", "LrmsSubmit"]
    assert "no controller" in site.state.why_stuck(site.job(), site.now)
    offered = {"offer": offer(1, 3), "settled_below": 1, "request": REQUEST, "payload": b""}
    answer = site(OfferReceived, load=FREE, partner="b", **offered)
    assert not one(answer, AnswerOffer).accepted
    site(base.Back)
    assert site.state.why_stuck(site.job(), site.now) == ""
    assert kinds(site.submit(load=FULL)) == ["ReplyJob", "SendOffer"]


def test_what_the_batch_system_refuses_for_now_waits() -> None:
    """It is handed to it again; meanwhile operators see why, and its user may cancel it."""
    site = Conversation()
    site.submit(load=FREE)
    key = site.job().lrms_key
    refused = {"key": key, "reason": "main is drained", "passing": True}
    assert site(LrmsRefused, **refused) == []
    assert site.job().state is JobState.SUBMITTING
    said = "the batch system does not take it now: main is drained"
    assert site.state.why_stuck(site.job(), 0.0) == said
    assert site(base.Accepted, key=key) == []
    assert (site.job().state, site.state.why_stuck(site.job(), 0.0)) == (JobState.QUEUED, "")
    site.submit(load=FREE)
    site(Cancel, load=FREE, job_id="a-2", user="ann")
    site(LrmsRefused, **{**refused, "key": site.job(2).lrms_key})
    ended = site.job(2)
    assert (ended.outcome, ended.reason) == (
        Outcome.CANCELLED,
        "cancelled before the batch system took it",
    )


def test_what_the_batch_system_refuses_for_good_has_failed() -> None:
    """In its own words; but what it has run once, and has forgotten, has ended nobody knows how."""
    site = Conversation()
    site.submit(load=FREE)
    site(LrmsRefused, key=site.job().lrms_key, reason="Invalid qos")
    job = site.job()
    assert (job.outcome, job.reason) == (Outcome.FAILED, "the batch system refused it: Invalid qos")
    site.submit(load=FREE)
    site(base.Started, key=site.job(2).lrms_key, start_time=1.0)
    site(LrmsRefused, key=site.job(2).lrms_key, reason="Invalid qos")
    assert site.job(2).outcome is Outcome.UNKNOWN


def test_a_job_that_nothing_starts_is_shown() -> None:
    """With what it waits for, until that is over or it starts."""
    site = Conversation()
    site.submit(load=FREE)
    key = site.job().lrms_key
    site(base.Accepted, key=key)
    for reason in ("main is down", "", "main is inactive"):
        assert site(base.Hindered, key=key, reason=reason) == []
        assert site.state.why_stuck(site.job(), 0.0) == reason
    site(base.Started, key=key, start_time=1.0)
    assert site.state.why_stuck(site.job(), 0.0) == ""
    assert site(base.Hindered, key="a/9/9", reason="main is down") == []
