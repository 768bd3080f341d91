"""Runs a scenario through live daemons: conducted in step, or on a fast clock."""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from grms.client import Client, Job, Outcome, SiteError
from grms.daemon.socket_folder import SocketFolder, remove_left_behind
from grms.policy.rebalancing import period_of
from grms.policy.transfer import rounds_in_force
from lrms_sim.cli.interrupts import run_interruptible
from lrms_sim.workload.groups import Int8Array
from lrms_sim.workload.jobs import FloatArray, JobTable
from lrms_sim.workload.schedule import Schedule
from scenarios.live.coordinator import Coordinator
from scenarios.live.daemons import daemons, until_linked
from scenarios.live.folder import claimed
from scenarios.live.sites import LiveSettings, SiteProcess, accounts_every
from scenarios.run.comparison import first_difference
from scenarios.run.replay import groups_at_home, load_policies, looks_at_groups
from scenarios.spec.spec import ScenarioSpec
from scenarios.util.errors import LiveError

Progress = Callable[[int], None]

SUBMISSIONS_MAX: Final = 64
"""Submissions that wait for their answer at a time."""

START_S: Final = 2.0
"""Real seconds from the start of the daemons to the first job, which comes later where they are there later."""

SECONDS_PER_YEAR: Final = 365.25 * 86_400

_CORE_FIELD: Final = 36
"""Field of /proc/…/stat, after the name: the core on which it has run last (proc(5))."""


@dataclass(frozen=True, slots=True)
class LiveResult:
    """A replay through daemons beside the one in this process.

    Attributes:
        difference: where the two first differ; empty if they are identical, and for a clock that
            nobody conducts, which is never exactly repeated.
        failures: jobs that were not completed, each with its site and why.
        elapsed_s: real time from the first arrival to the last end.
    """

    schedule: Schedule
    difference: str
    elapsed_s: float
    folder: Path
    failures: tuple[str, ...] = ()

    @property
    def arrivals_per_s(self) -> float:
        """Jobs for each real second."""
        return len(self.schedule) / self.elapsed_s if self.elapsed_s > 0 else 0.0


def run_in_lock_step(
    spec: ScenarioSpec, expected: Schedule, folder: Path, progress: Progress | None = None
) -> LiveResult:
    """Replays a scenario through daemons, in lock-step, and compares with `expected`.

    `folder` holds journals and logs; those of an earlier run are replaced. `progress` is called now
    and then with the number of jobs that have arrived.

    Raises:
        LiveError: a daemon has ended or does not do what it should.
    """
    policies = load_policies(spec)
    periods = [
        period_of(rounds_in_force(site.reoffer, policies[site.name].values()))
        for site in spec.sites
    ]

    async def work(sockets: Path) -> LiveResult:
        async with daemons(spec, LiveSettings(folder, sockets)) as processes:
            coordinator = Coordinator(
                processes,
                _tables(expected),
                expected.machines,
                replay_id=f"{spec.name}-{spec.seed}",
                by_group=looks_at_groups(spec.sites),
                periods=periods,
                accounts=accounts_every(spec),
            )
            done = await coordinator.conduct(progress)
        difference = first_difference(done.schedule, expected)
        return LiveResult(done.schedule, difference, done.elapsed_s, folder)

    with on_one_core():
        return _in_folder(spec, folder, work)


@contextmanager
def on_one_core() -> Iterator[None]:
    """Pins this thread, and the processes it starts, to the core on which it runs now.

    In a lock-step replay one process works while all others wait for it. On the same core each is
    woken within microseconds; another core must be woken first, which on a virtual machine takes as
    long as all the work of an arrival.
    """
    before = os.sched_getaffinity(0)
    fields = Path("/proc/thread-self/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    os.sched_setaffinity(0, {int(fields[_CORE_FIELD])})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def run_scaled(
    spec: ScenarioSpec,
    expected: Schedule,
    folder: Path,
    speed: float,
    progress: Progress | None = None,
) -> LiveResult:
    """Runs a scenario through daemons on a clock `speed` times as fast as real time.

    Users submit on time; without a coordinator the schedule is near `expected` and never exactly
    the same. `folder` holds journals and logs; those of an earlier run are replaced. `progress` is
    called now and then with the number of jobs submitted.

    Raises:
        LiveError: a daemon has ended or does not do what it should, or the first job would not come
            in a lifetime.
    """
    first = float(expected.jobs.submit_time[0]) if len(expected) else 0.0
    origin = time.time() + START_S - first / speed
    if origin < 0:
        years = first / speed / SECONDS_PER_YEAR
        raise LiveError(f"at speed {speed:g} the first job comes in {years:.3g} years; go faster")

    async def work(sockets: Path) -> LiveResult:
        settings = LiveSettings(folder, sockets, "scaled", speed, origin)
        async with daemons(spec, settings) as processes:
            await asyncio.gather(*(until_linked(process) for process in processes))
            # Where daemons are there late all jobs come as much later, and their times are counted from there.
            late = max(0.0, time.time() - (origin + first / speed))
            begin = origin + late + first / speed
            groups = None
            if looks_at_groups(spec.sites):
                groups = groups_at_home(expected.jobs, expected.submitted_to)
            jobs = await guarded(
                processes,
                _submit_in_time(processes, expected, speed, origin + late, progress, groups=groups),
            )
            elapsed = time.time() - begin
        found = _schedule(jobs, expected, late * speed)
        return LiveResult(found, "", elapsed, folder, _failures(jobs, expected))

    return _in_folder(spec, folder, work)


async def guarded(
    processes: Sequence[SiteProcess], work: Coroutine[None, None, list[Job]]
) -> list[Job]:
    """Returns what the work does; raises LiveError as soon as a daemon ends or refuses."""

    async def guard(process: SiteProcess) -> None:
        await process.ended()
        raise LiveError(f"the daemon of {process.name} has ended; see {process.log_path}")

    try:
        async with asyncio.TaskGroup() as group:
            guards = [
                group.create_task(guard(process), name=f"guard {process.name}")
                for process in processes
            ]
            done = await work
            for each in guards:
                each.cancel()
    except BaseExceptionGroup as errors:
        first: BaseException = errors
        while isinstance(first, BaseExceptionGroup):
            first = first.exceptions[0]
        if isinstance(first, SiteError):
            raise LiveError(f"a daemon does not do what users ask: {first}") from errors
        raise first from errors
    return done


async def _submit_in_time(
    processes: Sequence[SiteProcess],
    expected: Schedule,
    speed: float,
    origin: float,
    progress: Progress | None,
    *,
    groups: Int8Array | None,
) -> list[Job]:
    table, homes = expected.jobs, expected.submitted_to.tolist()
    found: list[Job | None] = [None] * len(expected)
    clients = [Client(process.socket, timeout_s=60) for process in processes]
    for client in clients:
        await client.__aenter__()
    gate = asyncio.Semaphore(SUBMISSIONS_MAX)

    async def follow(row: int) -> None:
        async with gate:
            job = await clients[homes[row]].submit(
                processors=int(table.processors[row]),
                requested_time_s=float(table.requested_time[row]),
                run_time_s=float(table.run_time[row]),
                user_group=None if groups is None else int(groups[row]),
                key=str(row),
            )
        found[row] = job

    try:
        async with asyncio.TaskGroup() as group:
            for row, moment in enumerate(table.submit_time.tolist()):
                pause = origin + moment / speed - time.time()
                if pause > 0:
                    await asyncio.sleep(pause)
                group.create_task(follow(row), name=f"job {row}")
                if progress is not None and row % 100 == 0:
                    progress(row)
        return await _until_all_ended(clients, found)
    finally:
        for client in clients:
            await client.__aexit__(None, None, None)


async def _until_all_ended(clients: Sequence[Client], found: Sequence[Job | None]) -> list[Job]:
    while True:
        known: dict[str, Job] = {}
        for client in clients:
            async for job in client.jobs(all_users=True):
                known[job.job_id] = job
        jobs = [known[job.job_id] for job in found if job is not None]
        if all(job.has_ended for job in jobs):
            return jobs
        await asyncio.sleep(0.2)


def _failures(jobs: Sequence[Job], expected: Schedule) -> tuple[str, ...]:
    names = [expected.machines[site].name for site in expected.submitted_to.tolist()]
    return tuple(
        f"{job.job_id} of {name} ({job.outcome}{f': {job.reason}' if job.reason else ''})"
        for name, job in zip(names, jobs, strict=True)
        if job.outcome is not Outcome.COMPLETED or job.start_time_s is None
    )


def _schedule(jobs: Sequence[Job], expected: Schedule, late: float) -> Schedule:
    # Jobs came `late` seconds of the sites' clock after their times.
    index = {machine.name: number for number, machine in enumerate(expected.machines)}
    return Schedule(
        jobs=expected.jobs,
        start_time=_times([job.start_time_s for job in jobs]) - late,
        end_time=_times([job.end_time_s for job in jobs]) - late,
        machines=expected.machines,
        submitted_to=expected.submitted_to,
        executed_on=np.array([index.get(job.executed_on, -1) for job in jobs], np.int16),
        log_job_id=expected.log_job_id,
    )


def _times(told: Sequence[float | None]) -> FloatArray:
    return np.array([np.nan if time is None else time for time in told])


def _tables(schedule: Schedule) -> list[JobTable]:
    return [
        schedule.jobs.select(np.flatnonzero(schedule.submitted_to == site))
        for site in range(len(schedule.machines))
    ]


def _in_folder(
    spec: ScenarioSpec, folder: Path, work: Callable[[Path], Awaitable[LiveResult]]
) -> LiveResult:
    async def within() -> LiveResult:
        with SocketFolder() as sockets:
            return await work(sockets.path)

    try:
        with claimed(folder, [site.name for site in spec.sites]):
            return run_interruptible(within())
    finally:
        # A daemon that was killed could not remove its own.
        remove_left_behind()
