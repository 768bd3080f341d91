"""Held jobs at one site: submission, release, refusal, cancellation, restart."""

import pytest

from grms.lrms.base import Accepted, Ended, Started
from grms.policy.transfer import AcceptWhenFit
from grms.site.model.commands import Command, LrmsSubmit, Refusal, Refuse, ReplyJob, SendOffer
from grms.site.model.events import (
    Cancel,
    LoadTold,
    OfferAnswered,
    OfferFailed,
    ReportReceived,
    Restarted,
)
from grms.site.model.jobs import Completion, HomeJob, Load, Request
from grms.site.model.lifecycle import JobState, Outcome
from grms.site.model.records import ArrayReceived, JobReceived
from grms.site.model.settings import Limits
from grms.site.scheduler.submission import RELEASED_AT_ONCE
from grms.util.dependencies import ALL_MAX, Dependency, parse_dependencies
from grms.util.job_arrays import ArraySpec
from tests.grms.site.conversation import FREE, FULL, KEEP, Conversation, kinds, one, settings


def at_home(**changes: object) -> Conversation:
    """Returns a site that keeps what it can."""
    return Conversation(settings(transfer=KEEP, **changes), up="")


def array(
    site: Conversation, elements: str, after: str = "", load: Load = FREE, **changes: object
) -> list[Command]:
    """Hands in an array of ann's."""
    return site.submit(
        load=load,
        elements=ArraySpec.parse(elements),
        part=lambda array_id, index: f" {array_id}[{index}]".encode(),
        dependencies=parse_dependencies(after) if after else (),
        **changes,
    )


def job(site: Conversation, job_id: str) -> HomeJob:
    """Returns a job by its name."""
    found = site.state.job(job_id)
    assert found is not None
    return found


def end(site: Conversation, job_id: str, outcome: Outcome = Outcome.COMPLETED) -> list[Command]:
    """Runs a job that the batch system is to get, to its end."""
    key = job(site, job_id).lrms_key
    site.now += 10.0
    site(Accepted, key=key)
    site(Started, key=key, start_time=site.now - 5.0)
    commands = site(Ended, key=key, outcome=outcome, end_time=site.now, run_time=5.0)
    # The batch system's news come without the load, by which is decided what is released.
    return site(LoadTold, load=FREE) if "TellLoad" in kinds(commands) else commands


def test_an_array_is_one_submission_of_many_jobs() -> None:
    """Its program is in the journal once; each element has a part of its own, and a name as users know it."""
    site = at_home()
    commands = array(site, "3,7", payload=b"run")
    assert one(commands, ReplyJob).job_id == "a-1"
    assert kinds(commands) == ["ReplyJob", "LrmsSubmit", "LrmsSubmit"]
    sent = [each.payload for each in commands if isinstance(each, LrmsSubmit)]
    assert sent == [b"run a-1[3]", b"run a-1[7]"]
    assert [each.job_id for each in site.state.jobs()] == ["a-1_3", "a-1_7"]
    (noted,) = [each for each in site.journal if isinstance(each, ArrayReceived)]
    assert (noted.elements, noted.payload) == ("3,7", b"run")
    parts = [each.payload for each in site.journal if isinstance(each, JobReceived)]
    assert parts == [b" a-1[3]", b" a-1[7]"]
    assert site.state.job("a-1") is site.state.job("a-1_5") is site.state.job("a-2") is None
    # The next job is behind all of them.
    site.submit(load=FREE)
    assert job(site, "a-3").state is JobState.SUBMITTING


def test_no_more_elements_are_under_way_than_may_be() -> None:
    """The next one follows the end of one, wherever that was."""
    site = Conversation()
    commands = array(site, "0-3%2")
    # Home has room, but would rather run nothing: what is offered counts as well.
    assert kinds(commands) == ["ReplyJob", "LrmsSubmit", "LrmsSubmit"]
    assert job(site, "a-1_2").state is JobState.HELD
    assert site.state.why_stuck(job(site, "a-1_2"), 1e9) == ""  # it goes on by itself
    assert "2 elements at a time" in site.state.memory.held.why(3)
    commands = end(site, "a-1_0")
    assert one(commands, LrmsSubmit).lrms_key == job(site, "a-1_2").lrms_key
    assert job(site, "a-1_2").eligible_time == site.now
    site.restart()
    commands = site(Restarted, load=FREE)
    assert job(site, "a-1_3").state is JobState.HELD
    assert {each.lrms_key for each in commands if isinstance(each, LrmsSubmit)} == {
        job(site, "a-1_1").lrms_key,
        job(site, "a-1_2").lrms_key,
    }


@pytest.mark.parametrize("after", ["", "afterok:a-1"])
def test_very_many_are_released_little_by_little(after: str) -> None:
    """The site answers others in between, and decides each by the load of then; also after a restart in the middle."""
    site = at_home()
    if after:
        site.submit(load=FREE)
    commands = array(site, f"1-{3 * RELEASED_AT_ONCE}", after)
    first = "a-2_1" if after else "a-1_1"
    if after:
        commands = end(site, "a-1")
    assert kinds(commands).count("LrmsSubmit") == RELEASED_AT_ONCE
    assert kinds(commands)[-1] == "TellLoad"
    # Until that has come nothing else asks for it.
    key = job(site, first).lrms_key
    assert "TellLoad" not in kinds(site(Accepted, key=key))
    assert "TellLoad" not in kinds(site(Started, key=key, start_time=site.now))
    site.restart()
    commands = site(Restarted, load=FREE)
    assert kinds(commands)[-1] == "TellLoad"
    commands = site(LoadTold, load=FREE)
    assert kinds(commands).count("LrmsSubmit") == RELEASED_AT_ONCE
    assert "TellLoad" not in kinds(commands)
    assert not len(site.state.memory.held)


def test_elements_wait_for_answers_rather_than_stay_at_home() -> None:
    """A partner cannot be asked about all of a large array at once; each answer lets the next one go."""
    site = Conversation(
        settings(limits=Limits(offers_undecided=3), transfer={"b": AcceptWhenFit()})
    )
    asked = [
        each for each in array(site, "1-10", load=FULL) if isinstance(each, SendOffer)
    ]  # home is full
    assert [job(site, f"a-1_{index}").state for index in (3, 4)] == [
        JobState.OFFERING,
        JobState.HELD,
    ]
    assert len(asked) == 3
    for sent in asked:
        values = {"partner": "b", "offer": sent.offer, "accepted": True, "load": FULL}
        asked += [each for each in site(OfferAnswered, **values) if isinstance(each, SendOffer)]
    assert len(asked) == 10
    assert {each.state for each in site.state.jobs()} == {JobState.DELEGATED}


def test_who_does_not_answer_keeps_no_element_from_home() -> None:
    """Its offers are open for long; the others are decided without it."""
    site = Conversation(
        settings(limits=Limits(offers_undecided=2), transfer={"b": AcceptWhenFit()})
    )
    asked = [each for each in array(site, "1-5", load=FULL) if isinstance(each, SendOffer)]
    for sent in asked:
        assert job(site, "a-1_3").state is JobState.HELD
        site(OfferFailed, partner="b", offer=sent.offer, load=FULL)
    assert [each.state for each in site.state.jobs()] == [
        *[JobState.RESOLVING] * 2,
        *[JobState.SUBMITTING] * 3,
    ]


def test_a_dependent_job_follows_one_at_a_partner() -> None:
    """Where it runs is decided when it is released, by the load of that moment."""
    site = Conversation()
    sent = one(site.submit(), SendOffer)  # home is full
    site(OfferAnswered, partner="b", offer=sent.offer, accepted=True)
    commands = site.submit(dependencies=parse_dependencies("afterok:a-1"), load=FREE)
    assert kinds(commands) == ["ReplyJob"]
    assert job(site, "a-2").state is JobState.HELD
    done = Completion(sent.offer, Outcome.COMPLETED, 5.0, 5.0)
    site.now = 9.0
    commands = site(ReportReceived, partner="b", completions=(done,), load=FREE)
    assert one(commands, LrmsSubmit).lrms_key == job(site, "a-2").lrms_key


def test_what_cannot_begin_is_cancelled_and_all_that_waits_for_it() -> None:
    """In the same turn; and what waits for just that begins."""
    site = at_home()
    site.submit(load=FREE)
    for text in ("afterok:a-1", "afterok:a-2", "afterok:a-3", "afternotok:a-4", "afterany:a-2"):
        site.submit(load=FREE, dependencies=parse_dependencies(text))
    commands = end(site, "a-1", Outcome.FAILED)
    for number in (2, 3, 4):
        assert job(site, f"a-{number}").outcome is Outcome.CANCELLED
    assert job(site, "a-2").reason == (
        "its dependency afterok:a-1 cannot be met: that job is failed"
    )
    started = {each.lrms_key for each in commands if isinstance(each, LrmsSubmit)}
    assert started == {job(site, "a-5").lrms_key, job(site, "a-6").lrms_key}
    # So it is where the other has ended long before.
    site.submit(load=FREE, dependencies=parse_dependencies("afterok:a-1"))
    assert job(site, "a-7").outcome is Outcome.CANCELLED


def test_what_cannot_begin_says_no_more_of_a_job_that_is_forgotten() -> None:
    """Of three that wait for one, the first says how that has ended; then the site remembers one end alone."""
    site = at_home(limits=Limits(jobs_kept=1))
    site.submit(load=FREE)
    told = list[str]()
    for _ in range(2):
        site.submit(load=FREE, dependencies=parse_dependencies("afterok:a-1"))
    waiting = [job(site, f"a-{number}") for number in (2, 3)]
    end(site, "a-1", Outcome.FAILED)
    told = [each.reason for each in waiting]
    assert told == [
        "its dependency afterok:a-1 cannot be met: that job is failed",
        "its dependency afterok:a-1 cannot be met",
    ]
    assert [(each.end_time, each.run_time) for each in waiting] == [(site.now, 0.0)] * 2


def test_elements_follow_elements() -> None:
    """`aftercorr`: each the one of the same index; a job after the array all of them."""
    site = at_home()
    array(site, "1-2")
    array(site, "1-2", "aftercorr:a-1")
    site.submit(load=FREE, dependencies=parse_dependencies("afterok:a-3"))
    end(site, "a-1_2")
    assert job(site, "a-3_1").state is JobState.HELD
    assert job(site, "a-3_2").state is JobState.SUBMITTING
    end(site, "a-1_1", Outcome.FAILED)
    assert job(site, "a-3_1").outcome is Outcome.CANCELLED
    assert job(site, "a-5").reason == (
        "its dependency afterok:a-3 cannot be met: of that array 1 have not completed"
    )


def test_one_at_a_time_of_a_name() -> None:
    """`singleton`, whatever the jobs before wait for or not; others' jobs do not count."""
    site = at_home()
    single = (Dependency("singleton"),)
    site.submit(load=FREE, name="x")
    site.submit(load=FREE, name="x", dependencies=single)
    site.submit(load=FREE, name="x", dependencies=single)
    site.submit(load=FREE, name="x", user="bob", dependencies=single)
    assert job(site, "a-4").state is JobState.SUBMITTING
    end(site, "a-1")
    assert job(site, "a-2").state is JobState.SUBMITTING
    assert job(site, "a-3").state is JobState.HELD


def test_nobody_follows_an_element_whose_end_is_forgotten() -> None:
    """It is named; an array of the others can follow."""
    site = at_home(limits=Limits(jobs_kept=1))
    array(site, "1-3")
    end(site, "a-1_1")
    end(site, "a-1_2")
    refused = one(array(site, "1-3", "aftercorr:a-1"), Refuse)
    assert (refused.refusal, refused.field) == (Refusal.INVALID, "dependencies")
    assert refused.reason == "aftercorr:a-1: how element 1 ended is forgotten"
    array(site, "2-3", "aftercorr:a-1")
    assert job(site, "a-4_2").state is JobState.SUBMITTING
    assert job(site, "a-4_3").state is JobState.HELD


@pytest.mark.parametrize(
    ("elements", "after", "says"),
    [
        (
            "",
            "afterok:a-9",
            "this site has no job 'a-9' of ann, or it ended so long ago that it has forgotten how",
        ),
        (
            "",
            "afterok:b-1",
            "this site has no job 'b-1' of ann, or it ended so long ago that it has forgotten how",
        ),
        (
            "",
            "afterok:a-1_9",
            "this site has no job 'a-1_9' of ann, or it ended so long ago that it has forgotten how",
        ),
        (
            "",
            "afterok:a-4",
            "this site has no job 'a-4' of ann, or it ended so long ago that it has forgotten how",
        ),
        ("", "singleton", "jobs of the same name are meant, and this one has no name"),
        ("", "aftercorr:a-1", "both have to be arrays; of other jobs say afterok"),
        ("1-2", "aftercorr:a-3", "both have to be arrays; of other jobs say afterok"),
        ("1-3", "aftercorr:a-1", "a-1 has no element 3"),
    ],
)
def test_what_cannot_be_waited_for_is_refused(elements: str, after: str, says: str) -> None:
    """Another user's job as one that does not exist."""
    site = at_home()
    array(site, "1-2")
    site.submit(load=FREE)
    site.submit(load=FREE, user="bob")
    before = len(site.journal)
    if elements:
        commands = array(site, elements, after)
    else:
        commands = site.submit(load=FREE, dependencies=parse_dependencies(after))
    refused = one(commands, Refuse)
    assert (refused.refusal, refused.field) == (Refusal.INVALID, "dependencies")
    assert refused.reason == f"{after}: {says}"
    assert len(site.journal) == before


def test_what_an_array_waits_for_is_bounded() -> None:
    """It is counted for each element; the message says how to do without."""
    site = at_home(limits=Limits(jobs_open=10**6, jobs_open_per_user=10**6))
    for _ in range(3):
        site.submit(load=FREE)
    commands = array(site, f"1-{ALL_MAX // 2}", "afterok:a-1:a-2:a-3")
    refused = one(commands, Refuse)
    assert (refused.refusal, refused.field) == (Refusal.INVALID, "dependencies")
    assert (
        refused.reason
        == "an array of 100000 elements that wait for 3 jobs each; 200000 in all are possible: let one job wait for these, and the array for that"
    )
    assert "ReplyJob" in kinds(array(site, "1-3", "afterok:a-1:a-2:a-3"))


def test_limits_count_elements() -> None:
    """An array for which there is never room is wrong; one for which there is none now may come later."""
    site = at_home(limits=Limits(jobs_open_per_user=3))
    assert one(array(site, "1-4"), Refuse).refusal is Refusal.INVALID
    site.submit(load=FREE)
    assert one(array(site, "1-3"), Refuse).refusal is Refusal.EXHAUSTED
    assert one(array(site, "1-2"), ReplyJob).job_id == "a-2"


def test_a_repeated_submission_is_the_same() -> None:
    """By its key; another array under that key is refused."""
    site = at_home()
    array(site, "1-2", idempotency_key="k")
    assert kinds(array(site, "1-2", idempotency_key="k")) == ["ReplyJob"]
    assert one(array(site, "1-2", idempotency_key="k"), ReplyJob).job_id == "a-1"
    for elements, after in (("1-3", ""), ("1-2%1", ""), ("1-2", "afterany:a-1")):
        commands = array(site, elements, after, idempotency_key="k")
        assert one(commands, Refuse).refusal is Refusal.PRECONDITION
    assert one(site.submit(idempotency_key="k"), Refuse).refusal is Refusal.PRECONDITION


@pytest.mark.parametrize(
    ("name", "ended"),
    [
        ("a-1", [0, 1, 2, 3]),
        ("a-1_[1-2]", [1, 2]),
        ("a-1_[0,3,9]", [0, 3]),
        ("a-1_2", [2]),
    ],
)
def test_an_array_is_cancelled_as_a_whole_or_in_part(name: str, ended: list[int]) -> None:
    """What is held ends at once; nothing that is to end begins in the place of another."""
    site = at_home()
    array(site, "0-3%1")
    commands = site(Cancel, job_id=name, user="ann", load=FREE)
    assert one(commands, ReplyJob).job_id == ("a-1_2" if name == "a-1_2" else "a-1")
    for index in range(4):
        element = job(site, f"a-1_{index}")
        assert element.cancel_requested is (index in ended)
        assert (element.state is JobState.ENDED) is (index in ended and index > 0)
    assert "LrmsSubmit" not in kinds(commands)


@pytest.mark.parametrize(
    "name", ["a-1_[9]", "a-1_[x]", "a-1_[1", "a-2_[1]", "a-1_", "a-01", "a-1_01"]
)
def test_what_is_no_name_of_elements(name: str) -> None:
    """Nothing is cancelled."""
    site = at_home()
    array(site, "0,2")
    commands = site(Cancel, job_id=name, user="ann", load=FREE)
    assert one(commands, Refuse).refusal is Refusal.NOT_FOUND


def test_another_users_array_is_left_alone() -> None:
    """As her jobs are."""
    site = at_home()
    array(site, "0-3%1")
    commands = site(Cancel, job_id="a-1", user="bob", load=FREE)
    assert one(commands, Refuse).refusal is Refusal.FORBIDDEN
    assert not any(each.cancel_requested for each in site.state.jobs())


def test_how_a_forgotten_element_ended_is_not() -> None:
    """A site remembers few ended jobs, and yet of an array whether all of it has completed."""
    site = at_home(limits=Limits(jobs_kept=1))
    array(site, "0-2", request=Request(1, 100.0))
    end(site, "a-1_0", Outcome.FAILED)
    end(site, "a-1_1")
    assert site.state.job("a-1_0") is None
    site.submit(load=FREE, dependencies=parse_dependencies("afternotok:a-1"))
    site.restart()
    site(Restarted, load=FREE)
    end(site, "a-1_2")
    assert job(site, "a-4").state is JobState.SUBMITTING
