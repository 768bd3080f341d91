"""Lets the users of a scenario submit to a federation that runs, in time and as its clock has it."""

import asyncio
import time
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final

from grms.client import Client, SiteError
from lrms_sim.cli.interrupts import run_interruptible
from lrms_sim.workload.jobs import concatenate
from scenarios.live.brokers import BROKER, play_workflows
from scenarios.run.replay import groups_at_home, looks_at_groups
from scenarios.run.workflow_source import submissions_of
from scenarios.run.workloads import load_workload
from scenarios.spec.spec import ScenarioSpec
from scenarios.util.errors import LiveError

SUBMISSIONS_MAX: Final = 32
"""Submissions that wait for their answer at a time."""

CLIENT_TIMEOUT_S: Final = 60.0


def first_arrival(spec: ScenarioSpec) -> float:
    """Returns when the first job or workflow of a scenario comes, seconds of its clock; 0 for none.

    Raises:
        TraceMissingError, WorkloadError: a workload cannot be read.
    """
    spec = spec.resolved()
    tables = [load_workload(site, spec.clock.shift).jobs for site in spec.sites]
    moments = [float(table.submit_time[0]) for table in tables if len(table)]
    moments += [] if spec.broker is None else [submissions_of(spec)[0].time]
    return min(moments, default=0.0)


def play(
    spec: ScenarioSpec,
    sockets: Mapping[str, Path],
    *,
    speed: float,
    origin: float,
    progress: Callable[[int, int], None] | None = None,
) -> int:
    """Submits a scenario's jobs on time, and returns how many were.

    Likewise its workflows if a broker serves, except those after the last job. `sockets` are those
    of the serving sites and the broker, by name. `speed` is in seconds of the sites' clock per real
    one, `origin` is when that clock shows 0, seconds since 1970. `progress` is called with the
    number of jobs submitted, and of all.

    Raises:
        LiveError: a site does not take a job, or the broker a workflow.
        TraceMissingError, WorkloadError: a workload cannot be read.
    """
    try:
        return run_interruptible(
            _play(spec.resolved(), sockets, speed, origin, progress), leave=True
        )
    except SiteError as error:
        raise LiveError(f"a daemon does not do what users ask: {error}") from error
    except BaseExceptionGroup as errors:
        told = errors.subgroup(LiveError)
        if told is not None:
            raise LiveError(str(_first(told))) from errors
        found = errors.subgroup(SiteError)
        if found is None:
            raise
        raise LiveError(f"a daemon does not do what users ask: {_first(found)}") from errors


def _first(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


async def _play(
    spec: ScenarioSpec,
    sockets: Mapping[str, Path],
    speed: float,
    origin: float,
    progress: Callable[[int, int], None] | None,
) -> int:
    tables = [load_workload(site, spec.clock.shift).jobs for site in spec.sites]
    table, homes, _ = concatenate(tables)
    groups = groups_at_home(table, homes) if looks_at_groups(spec.sites) else None
    gate = asyncio.Semaphore(SUBMISSIONS_MAX)
    count = len(table) if spec.first_arrivals is None else min(len(table), spec.first_arrivals)
    async with AsyncExitStack() as stack:
        clients = [
            await stack.enter_async_context(Client(sockets[site.name], timeout_s=CLIENT_TIMEOUT_S))
            for site in spec.sites
        ]

        async def submit(row: int) -> None:
            async with gate:
                await clients[int(homes[row])].submit(
                    processors=int(table.processors[row]),
                    requested_time_s=float(table.requested_time[row]),
                    run_time_s=float(table.run_time[row]),
                    user_group=None if groups is None else int(groups[row]),
                    key=f"play-{row}",
                )

        async with asyncio.TaskGroup() as group:
            if BROKER in sockets:
                last = float(table.submit_time[count - 1]) if count else 0.0
                workflows = play_workflows(
                    spec, sockets[BROKER], speed=speed, origin=origin, before=last
                )
                group.create_task(workflows, name="workflows")
            for row in range(count):
                pause = origin + float(table.submit_time[row]) / speed - time.time()
                if pause > 0:
                    await asyncio.sleep(pause)
                group.create_task(submit(row), name=f"job {row}")
                if progress is not None:
                    progress(row + 1, count)
    return count
