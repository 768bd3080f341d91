"""A job that waits is cancelled: by the site that has it leave for a partner, or by somebody else.

The batch system says the same of both. Only as long as a cancel of the site's own may still be carried
out, it may have been that; and where its answer is under way, that answer tells.
"""

import itertools
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grms.lrms import base
from grms.site.model.commands import (
    Command,
    LrmsCancel,
    LrmsSubmit,
    SendOffer,
    SendReport,
    SendResolve,
    SendWithdraw,
)
from grms.site.model.events import (
    Cancel,
    LrmsLetGo,
    LrmsStays,
    LrmsTold,
    OfferAnswered,
    OfferDisputed,
    OfferReceived,
    Restarted,
    RoundDue,
    StatusAnswered,
)
from grms.site.model.jobs import HomeJob, OfferId
from grms.site.model.lifecycle import GuestState, JobState, Outcome
from grms.site.model.records import JobLeft, JobRequeued, JobStarted, JobStays
from grms.site.runtime.executor_queue import LrmsQueue
from tests.grms.site.conversation import FREE, FULL, REQUEST, Conversation, one, settings

KEY = "a/7/1"


class Waits(Conversation):
    """A site with one partner, and with one job that waits."""

    def __init__(self) -> None:
        super().__init__(settings(reoffer=900.0), up=())
        self.submit()
        self(base.Accepted, key=KEY)
        self.up = ("b",)
        self.come_up()

    def told_to_leave(self, partner: str = "b") -> None:
        """Has the partner hold a place, and the batch system told to let the job go."""
        self.now += 1000.0
        asked = one(self(RoundDue, load=FULL), SendOffer)
        commands = self(OfferAnswered, load=FULL, partner=partner, offer=asked.offer, accepted=True)
        assert commands == [LrmsCancel(self.last_id, KEY, only_waiting=True)]
        assert self.job().leaving

    def refused(self, *, certain: bool) -> None:
        """Has the batch system refuse, a later attempt if not `certain`; the partner gets its place back."""
        if not certain:
            assert self(LrmsLetGo, key=KEY, done=None) == []
        withdraw = one(self(LrmsStays, key=KEY, certain=certain), SendWithdraw)
        self(
            StatusAnswered,
            load=FULL,
            partner=withdraw.partner,
            offer=withdraw.offer,
            question=withdraw.cause,
            status=GuestState.WITHDRAWN,
        )
        assert self.job().state is JobState.QUEUED

    def died(self) -> None:
        """Kills the daemon; the next one finds the job in the queue, and the partner there."""
        self.restart()
        self(Restarted, load=FULL)
        self.come_up()
        self(base.Accepted, key=KEY)

    def end(self) -> list[Command]:
        """Has the batch system tell that the job was cancelled as it waited."""
        return self(
            base.Ended,
            key=KEY,
            outcome=Outcome.CANCELLED,
            end_time=self.now,
            run_time=0.0,
            reason="by root",
        )

    def cancelled(self) -> HomeJob:
        """Has the batch system tell that the job was cancelled as it waited; returns it as it is then."""
        self.end()
        return self.job()


def test_what_an_administrator_cancels_is_over() -> None:
    """The batch system had refused to let the job go, so that this is not the site's own cancel."""
    site = Waits()
    site.told_to_leave()
    site.refused(certain=True)
    assert [type(record) for record in site.journal].count(JobStays) == 1
    job = site.cancelled()
    assert (job.state, job.outcome) == (JobState.ENDED, Outcome.CANCELLED)
    assert job.reason == "cancelled in the batch system: by root"


def test_a_restart_does_not_forget_that_the_job_stays() -> None:
    """It is in the journal."""
    site = Waits()
    site.told_to_leave()
    site.refused(certain=True)
    site.died()
    assert site.cancelled().state is JobState.ENDED


def test_a_cancel_without_an_answer_may_be_carried_out_late() -> None:
    """The attempt after it was refused; so it may have been the first that ended the job."""
    site = Waits()
    site.told_to_leave()
    site.refused(certain=False)
    job = site.cancelled()
    assert job.lrms_key != KEY
    assert job.state is JobState.SUBMITTING


def test_a_cancel_of_a_daemon_that_has_died_may_be_carried_out_late() -> None:
    """The next daemon's is refused at once, and says nothing of that one."""
    site = Waits()
    site.told_to_leave()
    site.restart()
    commands = site(Restarted, load=FULL)
    told = [type(command) for command in commands]
    assert told == [LrmsSubmit, LrmsCancel]
    site.come_up()
    site(base.Accepted, key=KEY)
    site(LrmsStays, key=KEY, certain=True)
    assert site.job().state is JobState.QUEUED
    assert site.cancelled().state is JobState.SUBMITTING


def test_a_second_answer_says_nothing_new() -> None:
    """It is told of once, however often it is said."""
    site = Waits()
    site.told_to_leave()
    site.refused(certain=True)
    assert site(LrmsStays, key=KEY, certain=True) == []
    assert [type(record) for record in site.journal].count(JobStays) == 1


def test_an_answer_after_an_uncertain_one_says_nothing() -> None:
    """An attempt had no answer; that a later one is refused at once does not undo it."""
    site = Waits()
    site.told_to_leave()
    site.refused(certain=False)
    assert site(LrmsStays, key=KEY, certain=True) == []
    assert site.job().leaving
    assert site.cancelled().state is JobState.SUBMITTING


def test_of_two_cancels_one_may_be_carried_out_late() -> None:
    """The partner lost its place before the first had an answer; who refuses then may mean either."""
    site = Waits()
    site.told_to_leave()
    lost = site.job().offer
    site(OfferDisputed, load=FULL, partner="b", offer=lost)
    assert site.job().state is JobState.QUEUED
    site.up = ("c",)
    site.come_up()
    site.told_to_leave("c")
    site.refused(certain=True)
    assert site.job().leaving
    assert site.cancelled().state is JobState.SUBMITTING


@pytest.mark.parametrize("died", [False, True])
def test_what_an_administrator_cancels_as_it_is_to_leave_is_over(died: bool) -> None:
    """There is nothing left to let go, and the batch system says so before it tells the end."""
    site = Waits()
    site.told_to_leave()
    assert site(LrmsLetGo, key=KEY, done=False) == []
    assert (site.job().state, site.journal[-1]) == (JobState.LEAVING, JobStays(site.now, 1))
    if died:
        site.restart()
        told = site(Restarted, load=FULL)
        assert [type(command) for command in told] == [LrmsSubmit, SendWithdraw]
        site.come_up()
    job = site.cancelled()
    assert (job.state, job.outcome) == (JobState.ENDED, Outcome.CANCELLED)
    assert job.reason == "cancelled in the batch system: by root"


@pytest.mark.parametrize(
    ("answer", "left"),
    [
        ({"event": LrmsLetGo, "done": True}, True),
        ({"event": LrmsLetGo, "done": None}, True),
        ({"event": LrmsLetGo, "done": False}, False),
        ({"event": LrmsStays, "certain": True}, False),
    ],
    ids=["done", "unanswered", "nothing to let go", "refused"],
)
def test_an_end_that_is_told_before_the_answer_waits_for_it(
    answer: dict[str, Any], left: bool
) -> None:
    """A poll may be quicker; whose cancel that was, the answer says, and nobody is asked to run it before."""
    site = Waits()
    site.told_to_leave()
    assert site.end() == []
    assert (site.job().state, site.job().outcome) == (JobState.LEAVING, None)
    told = site(**answer, key=KEY)
    assert (SendResolve in map(type, told)) == left
    assert (SendWithdraw in map(type, told)) == (not left)
    assert any(isinstance(record, JobLeft) for record in site.journal) == left
    job = site.job()
    assert job.state is (JobState.RESOLVING if left else JobState.ENDED)
    assert job.reason == ("" if left else "cancelled in the batch system: by root")


def test_an_end_whose_answer_is_lost_with_the_daemon_may_be_either() -> None:
    """The next daemon finds the end, and cannot know whose cancel that was."""
    site = Waits()
    site.told_to_leave()
    site.end()
    site.restart()
    site(Restarted, load=FULL)
    assert one(site.end(), SendResolve).confirm


def test_a_user_may_cancel_while_the_answer_is_awaited() -> None:
    """Then it does not matter whose cancel it was."""
    site = Waits()
    site.told_to_leave()
    site.end()
    site(Cancel, load=FULL, job_id="a-1", user="ann")
    told = site(LrmsLetGo, key=KEY, done=True)
    assert [type(command) for command in told] == [SendWithdraw]
    assert site.job().outcome is Outcome.CANCELLED


def test_a_job_whose_end_is_told_is_not_offered_again() -> None:
    """Its partner loses the place before the answer is there; the answer still tells."""
    for done in (True, False):
        site = Waits()
        site.told_to_leave()
        site.end()
        told = site(OfferDisputed, load=FULL, partner="b", offer=site.job().offer)
        assert SendOffer not in map(type, told)
        site.now += 1000.0
        assert SendOffer not in map(type, site(RoundDue, load=FULL))
        site(LrmsLetGo, key=KEY, done=done)
        assert site.job().state is (JobState.SUBMITTING if done else JobState.ENDED)


@pytest.mark.parametrize("news", ["started", "requeued", "lost"])
def test_what_is_told_later_of_the_job_counts(news: str) -> None:
    """It is there after all: an answer does not end it then."""
    site = Waits()
    site.told_to_leave()
    site.end()
    if news == "started":
        site(base.Started, key=KEY, start_time=site.now)
    elif news == "requeued":
        requeued(site)
    else:
        site(base.Lost, key=KEY, reason="restored")
    state = site.job().state
    assert site(LrmsLetGo, key=KEY, done=True) == []
    assert site.job().state is state


def requeued(site: Waits) -> list[Command]:
    """Has the batch system tell that the job waits again, whose start it has told to nobody."""
    return site(base.Requeued, key=KEY, reason="a node failed")


def test_a_job_that_waits_again_is_not_given_away() -> None:
    """Also where its start was told to a daemon that was dead; and its end is its end."""
    site = Waits()
    requeued(site)
    assert (site.job().begun, site.job().state) == (True, JobState.QUEUED)
    site.now += 1000.0
    assert SendOffer not in map(type, site(RoundDue, load=FULL))
    assert site.cancelled().state is JobState.ENDED


def test_a_job_that_waits_again_as_it_is_to_leave_stays() -> None:
    """The partner gets its place back; who cancels it then is somebody else, as it has started."""
    site = Waits()
    site.told_to_leave()
    place = one(requeued(site), SendWithdraw)
    assert (place.partner, place.cancel) == ("b", True)
    assert site.job().state is JobState.QUEUED
    assert [type(record) for record in site.journal[-2:]] == [JobStarted, JobRequeued]
    assert requeued(site) == []
    job = site.cancelled()
    assert (job.state, job.outcome, job.lrms_key) == (JobState.ENDED, Outcome.CANCELLED, KEY)


def test_a_restart_does_not_forget_that_a_job_waits_again() -> None:
    """It is in the journal; the batch system may not have told the next daemon yet."""
    site = Waits()
    site.told_to_leave()
    requeued(site)
    site.died()
    assert site.cancelled().state is JobState.ENDED


@pytest.mark.parametrize("again", [True, False])
def test_what_was_started_while_no_daemon_lived_is_not_given_away(again: bool) -> None:
    """Its node failed, and somebody has cancelled it as it waited again: the end alone does not say that it has run."""
    site = Waits()
    site.told_to_leave()
    site.restart()
    looks = one(site(Restarted, load=FULL), LrmsSubmit)
    end = base.LrmsEnd(Outcome.CANCELLED, site.now, 0.0, reason="by root")
    record = base.LrmsRecord(base.LrmsPhase.ENDED, None, end, restarted=again)
    news = LrmsQueue(1, math.inf).looked_up(looks, record, 0.0, site.now) or []
    told = [command for each in news for command in site(LrmsTold, news=each)]
    sent = {type(command) for command in told} & {SendResolve, SendWithdraw}
    assert sent == ({SendWithdraw} if again else {SendResolve})
    job = site.job()
    assert (job.begun, job.outcome) == (again, Outcome.CANCELLED if again else None)


@pytest.mark.parametrize("again", [True, False])
def test_a_partners_job_that_was_started_meanwhile_does_not_go_home_undone(again: bool) -> None:
    """Its home would have it run a second time."""
    site = Conversation()
    offer = OfferId(3, 1)
    offered = {"offer": offer, "settled_below": 1, "request": REQUEST, "payload": b"run"}
    site(OfferReceived, load=FREE, partner="b", **offered)
    site(base.Hindered, key="b/3/1", reason="the partition is down")
    site.restart()
    looks = one(site(Restarted, load=FREE), LrmsSubmit)
    end = base.LrmsEnd(Outcome.CANCELLED, site.now, 0.0, reason="by root")
    record = base.LrmsRecord(base.LrmsPhase.ENDED, None, end, restarted=again)
    news = LrmsQueue(1, math.inf).looked_up(looks, record, 0.0, site.now) or []
    told = [command for each in news for command in site(LrmsTold, news=each)]
    report = one(told, SendReport)
    assert report.completion.outcome is (Outcome.CANCELLED if again else Outcome.LOST)


STEPS = ("refused", "refused late", "died")


@pytest.mark.parametrize("steps", list(itertools.product(STEPS, repeat=2)), ids="-".join)
def test_every_two_things_that_can_happen(steps: tuple[str, ...]) -> None:
    """Each after the batch system was told to let the job go."""
    follow(list(steps))


@given(steps=st.lists(st.sampled_from(STEPS), max_size=7))
def test_whatever_has_happened_before(steps: list[str]) -> None:
    """The job is over if no cancel of the site's own can be under way, and is decided anew else."""
    follow(steps)


def follow(steps: list[str]) -> None:
    """Lets things happen one after the other, then has the job cancelled by nobody knows whom."""
    site, open_cancels = Waits(), 0
    for step in steps:
        site.told_to_leave()
        open_cancels += 1
        if step == "died":
            # Told once more by the next daemon, and refused; the first may be under way for ever.
            site.restart()
            site(Restarted, load=FULL)
            site.come_up()
            site(base.Accepted, key=KEY)
            open_cancels += 1
        certain = step != "refused late"
        site.refused(certain=certain)
        if certain and open_cancels == 1:
            open_cancels = 0
    job = site.cancelled()
    assert job.state is (JobState.SUBMITTING if open_cancels else JobState.ENDED)
    assert any(isinstance(record, JobLeft) for record in site.journal) == (open_cancels > 0)
