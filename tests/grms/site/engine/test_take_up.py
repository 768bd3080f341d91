"""What is taken up after a restart: the same, whether jobs are looked up together or one by one."""

import asyncio
import itertools
from random import Random
from typing import Any

import pytest
import structlog

from grms.lrms.machine import SteppedMachine
from grms.lrms.port import LrmsJob
from grms.lrms.simulated import SimulatedLrms
from grms.site.core.state import SiteState
from grms.site.engine import engine as module
from grms.site.engine.clock import VirtualClock
from grms.site.engine.engine import Engine
from grms.site.engine.group_commit import GroupCommit
from grms.site.engine.lrms_driver import DriverLimits, LrmsDriver
from grms.site.facts.events import LrmsAccepted, Restarted
from grms.site.facts.jobs import Request
from grms.site.facts.records import JobKept, JobReceived, Record
from grms.site.facts.settings import SiteSettings
from grms.testing.trial import Trial
from lrms_sim.disciplines import Fcfs
from tests.grms.site.facts.test_compaction import inside


class Nobody:
    """Says nothing to partners."""

    def send(self, command: object) -> None:
        """Takes what was to be sent."""


def lrms_jobs(lrms: SimulatedLrms) -> object:
    """Returns all that the machine has."""
    return asyncio.run(lrms.snapshot())


def taken_up(settings: SiteSettings, records: list[Record], seed: int) -> tuple[Any, ...]:
    """Restarts a site; its batch system has most of the site's jobs, and some it has not.

    Returns:
        The memory, what was journaled and shown, what the machine has then, and how many jobs were told
        of together.
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
    driver = LrmsDriver(lrms, clock, DriverLimits(30.0, 1.0, 2), new_id, structlog.get_logger())
    written: list[Record] = []
    engine = Engine(state, GroupCommit(written.extend, in_thread=False), driver, clock, new_id)
    driver.connect(engine.hear)
    engine.connect(Nobody())
    shown: list[str] = []
    engine.on_publish(shown.append)
    together: list[str] = []
    engine.on_event(
        lambda event, _: together.extend(event.also) if isinstance(event, LrmsAccepted) else None
    )
    engine.tell(Restarted)
    return inside(memory), written, shown, lrms_jobs(lrms), len(together)


def test_together_is_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of sites that crash at any moment, with jobs that wait, run, have ended or were never taken."""
    several = 0
    for seed in range(10):
        trial = Trial(seed, SiteState)
        trial.run()
        for site in trial.sites.values():
            for length in range(seed % 7, len(site.journal) + 1, 13):
                found = []
                for least in (1, 10**9):
                    monkeypatch.setattr(module, "TOGETHER", least)
                    found.append(taken_up(site.settings, site.journal[:length], seed + length))
                (*one, together), (*other, alone) = found
                assert one == other
                assert not alone
                several += together
    assert several > 40
