"""What the batch system says of a job has the same consequences for local users' jobs and for partners'."""

import math
from collections.abc import Callable
from typing import Final

import pytest

from grms.lrms import base
from grms.site.model.commands import Command, LrmsCancel, LrmsSubmit, Publish, SendReport
from grms.site.model.events import (
    Cancel,
    LrmsAppeared,
    OfferReceived,
    Restarted,
    WithdrawReceived,
)
from grms.site.model.jobs import LOSSES_MAX, Exit, GuestJob, GuestRef, HomeJob, LocalJob, OfferId
from grms.site.model.lifecycle import JobState, Outcome
from grms.site.model.records import JobExited, JobRequeued, JobStarted
from tests.grms.site.conversation import FREE, KEEP, REQUEST, Conversation, kinds, one, settings

THEIRS: Final = OfferId(3, 1)


class Owned(Conversation):
    """A site with one job that is to run here, at 3 s.

    Attributes:
        key: of the job.
        losses: so often the batch system may lose it before its start.
        whose: the user and the partner whose it is.
        ref: by which records name it.
        given_up: what its user reads when it is lost at last; its home site has words of its own.
    """

    key: str
    losses: int
    whose: tuple[str, str]
    ref: int | GuestRef
    given_up: str

    def __init__(self) -> None:
        super().__init__(settings(transfer=KEEP) if isinstance(self, Home) else None)
        self.now = 3.0
        self.first = one(self.taken(), LrmsSubmit)
        assert self.first.lrms_key == self.key

    def taken(self) -> list[Command]:
        """Has the site take the job."""
        raise NotImplementedError

    def cancelled(self) -> list[Command]:
        """Has the job's user, or its home site, want it to end."""
        raise NotImplementedError

    def mine(self) -> LocalJob:
        """Returns the job, open or ended."""
        raise NotImplementedError

    def over(self, commands: list[Command], outcome: Outcome) -> list[Command]:
        """Checks that the job has ended, and that whoever has to know is told; returns the other commands."""
        assert (self.mine().state, self.mine().outcome) == (JobState.ENDED, outcome)
        assert self.key not in self.state.memory.at_lrms
        return commands

    def waits(self) -> None:
        """Has the batch system confirm the job."""
        assert self(base.Accepted, key=self.key) == []

    def runs(self) -> None:
        """Has the batch system start the job."""
        self.waits()
        assert self(base.Started, key=self.key, start_time=4.0) == []


class Home(Owned):
    """The job is ann's."""

    key = "a/7/1"
    losses = LOSSES_MAX
    whose = ("ann", "")
    ref = 1
    given_up = "lost by the batch system 6 times: a crash"

    def taken(self) -> list[Command]:
        """Has the site take the job."""
        return self.submit(load=FREE)

    def cancelled(self) -> list[Command]:
        """Has ann want it to end."""
        return self(Cancel, load=FREE, job_id="a-1", user="ann")

    def mine(self) -> HomeJob:
        """Returns the job, open or ended."""
        return self.job()


class Guest(Owned):
    """The job is partner b's."""

    key = "b/3/1"
    losses = 1
    whose = ("", "b")
    ref = GuestRef("b", THEIRS)
    given_up = ""

    def taken(self) -> list[Command]:
        """Has the site take the job."""
        offered = {"offer": THEIRS, "settled_below": 1, "request": REQUEST, "payload": b"run"}
        return self(OfferReceived, load=FREE, partner="b", **offered)

    def cancelled(self) -> list[Command]:
        """Has b want it to end."""
        return self(WithdrawReceived, partner="b", offer=THEIRS, cancel=True)

    def mine(self) -> GuestJob:
        """Returns the job, open or ended."""
        return self.state.partners["b"].guests[THEIRS]

    def over(self, commands: list[Command], outcome: Outcome) -> list[Command]:
        """Checks that b is told, too."""
        super().over(commands, outcome)
        report = one(commands, SendReport)
        assert (report.partner, report.completion) == ("b", self.mine().completion)
        assert report.completion.outcome is outcome
        return [command for command in commands if command is not report]


owners = pytest.mark.parametrize("begin", [Home, Guest])
Begin = Callable[[], Owned]


@owners
def test_a_job_that_is_suspended_stands_there_until_it_runs_again(begin: Begin) -> None:
    """Since when is not before its start; each change is told once, and nothing of a job that does not run."""
    site, told = begin(), list[Command]()
    site.see = lambda _, commands: told.extend(commands)
    phases = base.LrmsPhase
    site.waits()
    told.clear()
    assert site(base.Paused, key=site.key, phase=phases.SUSPENDED, time=3.5) == []
    assert (site.mine().paused, told) == (None, [])
    assert site(base.Started, key=site.key, start_time=4.0) == []
    revision = getattr(site.mine(), "revision", 0)
    for phase, time, standing in (
        (phases.RUNNING, 4.5, (phases.RUNNING, 4.0)),
        (phases.SUSPENDED, 3.5, (phases.SUSPENDED, 4.0)),
        (phases.SUSPENDED, 6.0, (phases.SUSPENDED, 4.0)),
        (phases.COMPLETING, 7.0, (phases.COMPLETING, 7.0)),
        (phases.RUNNING, 8.0, (phases.RUNNING, 4.0)),
    ):
        told.clear()
        before = site.mine().standing
        assert site(base.Paused, key=site.key, phase=phase, time=time) == []
        assert site.mine().standing == standing
        watched = isinstance(site.mine(), HomeJob) and standing != before
        assert told == ([Publish(site.last_id, 1)] if watched else [])
    if isinstance(site.mine(), HomeJob):
        assert getattr(site.mine(), "revision", 0) == revision + 3


@owners
def test_a_job_that_waits_again_starts_again(begin: Begin) -> None:
    """What it was before is over, and nobody else hears of it; a restart knows that it has started once."""
    site = begin()
    site.runs()
    assert site(base.Requeued, key=site.key, reason="a node failed") == []
    job = site.mine()
    assert (job.state, job.reason) == (JobState.QUEUED, "a node failed")
    assert math.isnan(job.start_time)
    assert site(base.Requeued, key=site.key, reason="again") == []
    assert site.mine().reason == "a node failed"
    site.restart()
    look = one(site(Restarted, load=FREE), LrmsSubmit)
    assert (look.lookup, look.started, (look.user, look.partner)) == (True, True, site.whose)
    assert site(base.Started, key=site.key, start_time=9.0) == []
    assert (site.mine().state, site.mine().start_time) == (JobState.RUNNING, 9.0)


@owners
def test_a_job_that_waits_again_has_started_also_where_nobody_has_told_of_that(
    begin: Begin,
) -> None:
    """Its start is taken to be now; the next process knows that it has begun."""
    site = begin()
    site.waits()
    site.now = 4.0
    assert site(base.Requeued, key=site.key, reason="a node failed") == []
    assert site.journal[-2:] == [
        JobStarted(4.0, site.ref, 4.0),
        JobRequeued(4.0, site.ref, "a node failed"),
    ]
    site.restart()
    assert one(site(Restarted, load=FREE), LrmsSubmit).started


@owners
def test_a_job_that_was_forgotten_is_submitted_again(begin: Begin) -> None:
    """It counts as on its way until it is confirmed; where that comes to nothing it has ended as lost at last."""
    site = begin()
    assert (site.first.lookup, site.first.since) == (False, 3.0)
    site.waits()
    site.now = 5.0
    again = one(site(base.Lost, key=site.key, reason="a crash"), LrmsSubmit)
    told = (again.lrms_key, again.lookup, again.started, again.since)
    assert told == (site.key, True, False, 5.0)
    assert (again.user, again.partner) == site.whose
    job = site.mine()
    assert (job.state, job.reason) == (JobState.SUBMITTING, "lost by the batch system: a crash")
    assert site.state.memory.unconfirmed == REQUEST.processors
    site.restart()
    assert one(site(Restarted, load=FREE), LrmsSubmit).since == 5.0
    for _ in range(site.losses - 1):
        assert one(site(base.Lost, key=site.key, reason="a crash"), LrmsSubmit).lookup
    said = site.over(site(base.Lost, key=site.key, reason="a crash"), Outcome.LOST)
    # A submission that is still on the way comes to nothing.
    assert said == [LrmsCancel(site.last_id, site.key, only_waiting=True)]
    assert site.mine().reason == site.given_up


@owners
def test_a_job_that_is_lost_before_it_is_confirmed_is_submitted_again(begin: Begin) -> None:
    """Its state is the same as before."""
    site = begin()
    assert kinds(site(base.Lost, key=site.key, reason="")) == ["LrmsSubmit"]
    assert site.mine().state is JobState.SUBMITTING
    assert site.state.memory.unconfirmed == REQUEST.processors


@owners
def test_a_job_that_ran_is_not_repeated(begin: Begin) -> None:
    """Whatever is said of it: it may have run to its end. What runs after all is nobody's to end."""
    site = begin()
    site.runs()
    said = site.over(site(base.Lost, key=site.key, reason="a crash"), Outcome.UNKNOWN)
    assert said == [LrmsCancel(site.last_id, site.key, only_waiting=True)]


@owners
def test_a_job_that_is_to_end_and_was_forgotten_has_ended(begin: Begin) -> None:
    """Its cancellation has come true."""
    site = begin()
    site.cancelled()
    said = site.over(site(base.Lost, key=site.key, reason="a crash"), Outcome.CANCELLED)
    assert said == [LrmsCancel(site.last_id, site.key)]
    assert (site.mine().end_time, site.mine().run_time) == (3.0, 0.0)


@owners
def test_what_is_said_once_more_is_no_news(begin: Begin) -> None:
    """Nobody is told of a job again that the batch system has had; what kept it from starting is over then."""
    site, told = begin(), list[Command]()
    site.mine().hindered = "no licence"
    site.waits()
    assert site.mine().hindered == ""
    site.see = lambda _, commands: told.extend(commands)
    site.waits()
    assert told == []
    site.mine().hindered = "no licence"
    site(base.Started, key=site.key, start_time=4.0)
    assert site.mine().hindered == ""
    assert site(base.SeenAgain, key="nobody/1/1") == []


def test_a_batch_system_that_is_away_says_why_or_that_it_does_not_answer() -> None:
    """Until it is back."""
    site = Conversation()
    assert site(base.Away, reason="") == []
    assert site.state.memory.lrms_away == "it does not answer"
    assert site(base.Back) == []
    assert site.state.memory.lrms_away == ""


@owners
@pytest.mark.parametrize("wanted", [False, True])
@pytest.mark.parametrize("outcome", [Outcome.UNKNOWN, Outcome.COMPLETED])
def test_a_job_that_may_still_be_there_does_not_begin_any_more(
    begin: Begin, wanted: bool, outcome: Outcome
) -> None:
    """Where nobody knows how it ended, it is ended if it waits; what runs only where somebody has wanted that."""
    site = begin()
    site.runs()
    if wanted:
        site.cancelled()
    ended = {"outcome": outcome, "end_time": 9.0, "run_time": 5.0}
    said = site.over(site(base.Ended, key=site.key, **ended), outcome)
    cancel = LrmsCancel(site.last_id, site.key, only_waiting=not wanted)
    assert said == ([cancel] if outcome is Outcome.UNKNOWN else [])
    again = one(site(LrmsAppeared, key=site.key), LrmsCancel)
    assert (again.lrms_key, again.only_waiting) == (site.key, not wanted)


@owners
def test_a_cancel_that_was_undone_is_repeated(begin: Begin) -> None:
    """As often as the job comes back, also after its end; before that it is left alone."""
    site = begin()
    site.runs()
    assert site(LrmsAppeared, key=site.key) == []
    assert "LrmsCancel" in kinds(site.cancelled())
    for _ in range(2):
        assert one(site(LrmsAppeared, key=site.key), LrmsCancel).lrms_key == site.key
        requeued = site(base.Requeued, key=site.key, reason="a node failed")
        assert one(requeued, LrmsCancel).lrms_key == site.key
    ended = {"outcome": Outcome.CANCELLED, "end_time": 9.0, "run_time": 0.0}
    assert site.over(site(base.Ended, key=site.key, **ended), Outcome.CANCELLED) == []
    assert site.mine().reason == ""
    again = one(site(LrmsAppeared, key=site.key), LrmsCancel)
    assert (again.lrms_key, again.only_waiting) == (site.key, False)


@owners
@pytest.mark.parametrize("key", ["a/1/99", "b/1/1", "nobody/1/1", "a", "a/x/1"])
def test_what_nobody_here_knows_is_ended_where_it_has_not_begun(begin: Begin, key: str) -> None:
    """Whoever's it was: what runs may be somebody's."""
    site = begin()
    site.runs()
    assert site(LrmsAppeared, key=key) == [LrmsCancel(site.last_id, key, only_waiting=True)]


@owners
@pytest.mark.parametrize("left", [Exit(7), Exit(1, 9), Exit()])
def test_how_a_script_was_left_is_noted(begin: Begin, left: Exit) -> None:
    """Over a restart, too; where nothing is known nothing is noted."""
    site = begin()
    site.runs()
    ended = {"outcome": Outcome.NODE_FAIL, "end_time": 12.0, "run_time": 3.0}
    known = {"exit_code": left.code, "signal": left.signal}
    site.over(site(base.Ended, key=site.key, **ended, **known), Outcome.NODE_FAIL)
    noted = [record.exit for record in site.journal if isinstance(record, JobExited)]
    assert noted == [left for _ in range(left != Exit())]
    site.restart()
    job = site.mine()
    assert (job.exit, job.end_time, job.run_time) == (left, 12.0, 3.0)
