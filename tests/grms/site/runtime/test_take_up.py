"""What is taken up after a restart: the same, whether the batch system is asked before or looks jobs up."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any

import structlog

from grms.daemon.clock import VirtualClock
from grms.lrms.base import LrmsJob
from grms.lrms.simulated.machine import SteppedMachine
from grms.lrms.simulated.simulated import SimulatedLrms
from grms.simulation.fault_run import Trial
from grms.site.model.commands import Command, LrmsSubmit
from grms.site.model.events import Event, Restarted
from grms.site.model.jobs import Load, Request
from grms.site.model.lifecycle import JobState
from grms.site.model.records import JobKept, JobReceived, Record
from grms.site.model.settings import SiteSettings
from grms.site.runtime.event_loop import Engine
from grms.site.runtime.executor_driver import DriverLimits, LrmsDriver
from grms.site.scheduler.state import SiteState
from lrms_sim.scheduling.disciplines import Fcfs
from tests.grms.site.model.test_compaction import inside


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
    clock = VirtualClock(last)
    lrms = SimulatedLrms(SteppedMachine(settings.processors, Fcfs()), clock)
    if random.random() < 0.6:
        lrms.submit_now(LrmsJob("somebody else's", settings.processors, 1e6))
    for key, job in memory.at_lrms.items():
        if random.random() < 0.8:
            lrms.submit_now(LrmsJob(key, job.request.processors, job.request.requested_time))
    clock.advance(last + random.choice([0.0, 5.0, 50.0]))
    driver = kind(lrms, clock, DriverLimits(30.0, 1.0, 2), structlog.get_logger())
    written: list[Record] = []
    log = structlog.get_logger()
    engine = Engine(state, written.extend, driver, clock, log=log)
    engine.connect(Nobody())
    shown: list[str] = []
    engine.on_publish(lambda job: shown.append(job.job_id))
    looked_up: list[str] = []

    def look(_event: Event, commands: Sequence[Command]) -> None:
        looked_up.extend(each.lrms_key for each in commands if isinstance(each, LrmsSubmit))

    engine.on_event(look)
    engine.tell(Restarted(*engine.stamp()))
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
