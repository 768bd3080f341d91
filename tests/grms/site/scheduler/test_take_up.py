"""What a site takes up after a restart of what its batch system says at once that it has."""

from functools import partial
from operator import eq

import pytest

from grms.site.model.commands import LrmsCancel, LrmsSubmit, Publish
from grms.site.model.events import Restarted
from grms.site.model.jobs import GuestRef, Load, OfferId, Request, lrms_key
from grms.site.model.lifecycle import JobState
from grms.site.model.records import (
    GuestAccepted,
    JobCancelRequested,
    JobKept,
    JobReceived,
    JobStarted,
)
from grms.site.scheduler.state import SiteState
from tests.grms.site.conversation import settings


def test_jobs_that_wait_are_not_on_their_way() -> None:
    """The first decision after a restart counts each of them once, in the batch system's load."""
    state = SiteState(settings(), [])
    for number in (1, 2):
        received = JobReceived(1.0, number, "ann", f"k{number}", "", Request(2, 9.0), b"")
        state.memory.apply(received)
    state.memory.apply(JobKept(1.0, 1))
    waiting = state.memory.jobs[1]
    load = Load(8, 0, 2, waits={waiting.lrms_key}.__contains__)
    state.handle(Restarted(1, load), 2.0)
    assert waiting.state is JobState.QUEUED
    decided = state.memory.jobs[2]
    assert decided.weighed is not None
    assert decided.weighed.load == Load(8, 0, 2)


@pytest.mark.parametrize("waits", [True, False, None])
def test_a_job_that_is_to_end_is_ended_once_more(waits: bool | None) -> None:
    """The cancel may not have been carried out, of a user's job and of a partner's, wherever they are."""
    state = SiteState(settings(), [])
    asked, guest = Request(2, 9.0), OfferId(1, 1)
    for record in (
        JobReceived(1.0, 1, "ann", "k", "", asked, b""),
        JobKept(1.0, 1),
        JobCancelRequested(1.5, 1),
        GuestAccepted(1.0, GuestRef("b", guest), 1, asked, b""),
        JobCancelRequested(1.5, GuestRef("b", guest)),
    ):
        state.memory.apply(record)
    keys = sorted(state.memory.at_lrms)
    assert len(keys) == 2
    load = Load(8, 4, 4, waits=None if waits is None else lambda _key: waits)
    commands = state.handle(Restarted(1, load), 2.0)
    ended = [each.lrms_key for each in commands if isinstance(each, LrmsCancel)]
    assert sorted(ended) == keys
    looked_up = [each.lrms_key for each in commands if isinstance(each, LrmsSubmit)]
    assert sorted(looked_up) == keys


def test_a_partners_job_that_waits_is_left_alone() -> None:
    """It needs nothing, and is on its way no more; one that does not wait is looked up."""
    for waits in (True, False):
        state = SiteState(settings(), [])
        accepted = GuestAccepted(1.0, GuestRef("b", OfferId(1, 1)), 1, Request(2, 9.0), b"")
        state.memory.apply(accepted)
        load = Load(8, 4, 2, waits=partial(eq, lrms_key("b", 1, 1) if waits else ""))
        commands = state.handle(Restarted(1, load), 2.0)
        assert [type(each) for each in commands] == ([] if waits else [LrmsSubmit])
        assert state.memory.unconfirmed == (0 if waits else 2)


def test_those_who_watch_hear_of_jobs_that_wait() -> None:
    """They are queued now; one that has started by the journal is looked up, whatever waits."""
    state = SiteState(settings(), [])
    for number in (1, 2):
        state.memory.apply(JobReceived(1.0, number, "ann", f"k{number}", "", Request(2, 9.0), b""))
        state.memory.apply(JobKept(1.0, number))
    state.memory.apply(JobStarted(1.5, 2, 1.5))
    commands = state.handle(Restarted(1, Load(8, 4, 2, waits=lambda _key: True)), 2.0)
    assert [each.job for each in commands if isinstance(each, Publish)] == [1]
    running = state.memory.jobs[2].lrms_key
    assert [each.lrms_key for each in commands if isinstance(each, LrmsSubmit)] == [running]
