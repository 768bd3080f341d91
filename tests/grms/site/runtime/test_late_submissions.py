"""A site above a batch system that does not answer a submission, and has carried it out when it refuses the repetition."""

import math
from collections.abc import Iterable

import pytest

from grms.lrms import base
from grms.lrms.base import LrmsEnd, LrmsPhase, LrmsRecord
from grms.site.model.commands import Command, LrmsCancel, LrmsSubmit, SendReport
from grms.site.model.events import Cancel, LrmsNews, LrmsTold, OfferReceived
from grms.site.model.jobs import OfferId
from grms.site.model.lifecycle import JobState, Outcome
from grms.site.runtime.executor_queue import Call, LrmsQueue, LrmsStep
from tests.grms.site.conversation import FREE, KEEP, REQUEST, Conversation, settings

THEIRS = OfferId(3, 1)


class Above:
    """The state of a site with one job, and the commands of it that the batch system has not answered."""

    def __init__(self, *, home: bool) -> None:
        self.site = Conversation(settings(transfer=KEEP) if home else None)
        self.queue = LrmsQueue(2, math.inf)
        self.reports: list[SendReport] = []
        if home:
            self.does(self.site.submit(load=FREE))
        else:
            offered = {"offer": THEIRS, "settled_below": 1, "request": REQUEST, "payload": b"run"}
            self.does(self.site(OfferReceived, load=FREE, partner="b", **offered))

    def does(self, commands: Iterable[Command]) -> None:
        """Has commands carried out."""
        for command in commands:
            if isinstance(command, LrmsSubmit | LrmsCancel):
                self.queue.add(command)
            elif isinstance(command, SendReport):
                self.reports.append(command)

    def hears(self, news: Iterable[LrmsNews]) -> None:
        """Has the site hear what the batch system tells."""
        for one in news:
            self.site.last_id += 1
            self.does(self.site.state.handle(LrmsTold(self.site.last_id, one), self.site.now))

    def asks(self, step: LrmsStep) -> Call:
        """Returns the one call that the batch system gets."""
        (call,) = self.queue.calls()
        assert call.step is step
        return call

    def second_attempt(self) -> Call:
        """Has the first submission stay without an answer, and not be found; returns the second."""
        call = self.asks(LrmsStep.SUBMIT)
        self.hears(self.queue.unanswered(call, 1.0)[1])
        self.queue.again(call)
        self.hears(self.queue.answered(self.asks(LrmsStep.LOOK_UP), None, 2.0))
        return self.asks(LrmsStep.SUBMIT)


@pytest.mark.parametrize("came", [False, True])
def test_a_partners_job_goes_home_only_if_no_attempt_has_come(came: bool) -> None:
    """Its home site would have it run elsewhere: it ran twice, as the first submission was there, and was released."""
    above = Above(home=False)
    second = above.second_attempt()
    above.hears(above.queue.refused(second, "you have too many jobs"))
    assert above.reports == []
    look = above.asks(LrmsStep.LOOK_UP)
    found = LrmsRecord(LrmsPhase.RUNNING, 3.0) if came else None
    above.hears(above.queue.answered(look, found, 4.0))
    guest = above.site.state.partners["b"].guests[THEIRS]
    if came:
        assert (guest.state, above.reports) == (JobState.RUNNING, [])
        end = base.Ended("b/3/1", LrmsEnd(Outcome.COMPLETED, 9.0, 6.0))
        above.hears([end])
    (report,) = above.reports
    assert report.completion.outcome is (Outcome.COMPLETED if came else Outcome.LOST)
    assert report.completion.run_time == (6.0 if came else 0.0)


@pytest.mark.parametrize("came", [False, True])
def test_a_job_that_was_put_off_is_told_as_cancelled_when_nothing_of_it_runs(came: bool) -> None:
    """Its user read that it had never run, while the first submission did."""
    above = Above(home=True)
    second = above.second_attempt()
    above.hears(above.queue.put_off(second, "the partition is down")[1])
    above.does(above.site(Cancel, load=FREE, job_id="a-1", user="ann"))
    above.hears(above.queue.resume(second))
    job = above.site.job()
    assert job.state is JobState.SUBMITTING
    cancel = above.asks(LrmsStep.CANCEL)
    if came:
        above.hears([base.Accepted("a/7/1"), base.Started("a/7/1", 3.0)])
    above.hears(above.queue.answered(cancel, came, 4.0))
    if came:
        above.hears([base.Ended("a/7/1", LrmsEnd(Outcome.CANCELLED, 5.0, 2.0))])
        assert (job.outcome, job.run_time) == (Outcome.CANCELLED, 2.0)
    look = above.asks(LrmsStep.LOOK_UP)
    over = LrmsRecord(LrmsPhase.ENDED, 3.0, LrmsEnd(Outcome.CANCELLED, 5.0, 2.0))
    above.hears(above.queue.answered(look, over if came else None, 6.0))
    assert (job.state, job.outcome) == (JobState.ENDED, Outcome.CANCELLED)
    assert len(above.queue) == 0
