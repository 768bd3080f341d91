"""What is taken up after a restart: the same, whether the batch system is asked before or looks jobs up."""

import asyncio
import itertools
from dataclasses import replace
from functools import partial
from operator import eq
from random import Random
from typing import Any

import pytest
import structlog

from grms.lrms.machine import SteppedMachine
from grms.lrms.port import LrmsJob
from grms.lrms.simulated import SimulatedLrms
from grms.site.core.state import SiteState
from grms.site.engine.clock import VirtualClock
from grms.site.engine.engine import Engine
from grms.site.engine.group_commit import GroupCommit
from grms.site.engine.lrms_driver import DriverLimits, LrmsDriver
from grms.site.facts.commands import Command, LrmsCancel, LrmsSubmit
from grms.site.facts.events import Event, Restarted
from grms.site.facts.jobs import Load, OfferId, Request, lrms_key
from grms.site.facts.lifecycle import JobState
from grms.site.facts.records import (
    GuestAccepted,
    GuestCancelRequested,
    JobCancelRequested,
    JobKept,
    JobReceived,
    Record,
)
from grms.site.facts.settings import SiteSettings
from grms.testing.trial import Trial
from lrms_sim.disciplines import Fcfs
from tests.grms.site.conversation import settings as site_a
from tests.grms.site.facts.test_compaction import inside


class Nobody:
    """Says nothing to partners."""

    def send(self, command: object) -> None:
        """Takes what was to be sent."""


def lrms_jobs(lrms: SimulatedLrms) -> object:
    """Returns all that the machine has."""
    return asyncio.run(lrms.snapshot())


class Later(LrmsDriver):
    """Says nothing of jobs before they are looked up, as the drivers of other batch systems."""

    def load(self) -> Load | None:
        """Returns the load alone."""
        load = super().load()
        return None if load is None else replace(load, waits=None)


def taken_up(
    settings: SiteSettings, records: list[Record], seed: int, kind: type[LrmsDriver]
) -> tuple[Any, ...]:
    """Restarts a site; its batch system has most of the site's jobs, and some it has not.

    Returns:
        The memory, what was journaled and shown, what the machine has then, and how many jobs were
        looked up.
    """
    state, random = SiteState(settings, records), Random(seed)  # noqa: S311  # an example
    last = max((record.time for record in records), default=0.0)
    memory = state.memory
    for number in range(memory.next_job, memory.next_job + random.randrange(6)):
        memory.apply(JobReceived(last, number, "zoe", f"z{number}", "", Request(1, 9.0), b""))
        memory.apply(JobKept(last, number))
    clock, new_id = VirtualClock(last), itertools.count(1)
    lrms = SimulatedLrms(SteppedMachine(settings.processors, Fcfs()), clock)
    if random.random() < 0.6:
        lrms.submit_now(LrmsJob("somebody else's", settings.processors, 1e6))
    for key, job in memory.at_lrms.items():
        if random.random() < 0.8:
            lrms.submit_now(LrmsJob(key, job.request.processors, job.request.requested_time))
    clock.advance(last + random.choice([0.0, 5.0, 50.0]))
    driver = kind(lrms, clock, DriverLimits(30.0, 1.0, 2), new_id, structlog.get_logger())
    written: list[Record] = []
    engine = Engine(state, GroupCommit(written.extend, in_thread=False), driver, clock, new_id)
    driver.connect(engine.hear)
    engine.connect(Nobody())
    shown: list[str] = []
    engine.on_publish(lambda job: shown.append(job.job_id))
    looked_up: list[str] = []

    def look(_event: Event, commands: list[Command]) -> None:
        looked_up.extend(each.lrms_key for each in commands if isinstance(each, LrmsSubmit))

    engine.on_event(look)
    engine.tell(Restarted)
    return inside(memory), written, sorted(shown), lrms_jobs(lrms), len(looked_up)


def test_jobs_that_wait_need_not_be_looked_up() -> None:
    """It comes to the same, of sites that crash with jobs that wait, run, have ended or were never taken."""
    spared = 0
    for seed in range(10):
        trial = Trial(seed, SiteState)
        trial.run()
        for site in trial.sites.values():
            for length in range(seed % 7, len(site.journal) + 1, 13):
                records = site.journal[:length]
                if undecided(site.settings, records):
                    continue  # what is decided rests on which jobs are on their way
                *one, few = taken_up(site.settings, records, seed + length, LrmsDriver)
                *other, many = taken_up(site.settings, records, seed + length, Later)
                assert one == other
                assert few <= many
                spared += many - few
    assert spared > 40


def undecided(settings: SiteSettings, records: list[Record]) -> bool:
    """Returns whether a job is to be decided after a restart."""
    jobs = SiteState(settings, records).memory.jobs.values()
    return any(job.state is JobState.RECEIVED for job in jobs)


def test_jobs_that_wait_are_not_on_their_way() -> None:
    """The first decision after a restart counts each of them once, in the batch system's load."""
    state = SiteState(site_a(), [])
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
    state = SiteState(site_a(), [])
    asked, guest = Request(2, 9.0), OfferId(1, 1)
    for record in (
        JobReceived(1.0, 1, "ann", "k", "", asked, b""),
        JobKept(1.0, 1),
        JobCancelRequested(1.5, 1),
        GuestAccepted(1.0, "b", guest, 1, asked, b""),
        GuestCancelRequested(1.5, "b", guest),
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
        state = SiteState(site_a(), [])
        accepted = GuestAccepted(1.0, "b", OfferId(1, 1), 1, Request(2, 9.0), b"")
        state.memory.apply(accepted)
        load = Load(8, 4, 2, waits=partial(eq, lrms_key("b", 1, 1) if waits else ""))
        commands = state.handle(Restarted(1, load), 2.0)
        assert [type(each) for each in commands] == ([] if waits else [LrmsSubmit])
        assert state.memory.unconfirmed == (0 if waits else 2)
