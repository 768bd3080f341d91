"""Runs part of a recorded day through two real Slurms with policies of exchange, beside its simulation.

    python -m benchmarks.batch_trace --traces FOLDER            three runs, some 25 minutes
    python -m benchmarks.batch_trace --traces FOLDER --runs 1 --policies alone start-now --dry
    python -m benchmarks.batch_trace --traces FOLDER --again     simulates anew beside the runs that are kept

One Slurm has KTH's 100 processors, the other CTC's 430, both pretended on one node; a `grms serve` is
above each. Users submit the jobs of the same hours of both logs as `sleep`, with all times divided by a factor. The
simulation gets the same jobs with the same times. The hours without exchange are run as well, through the same
daemons, and the gain of a policy is measured against that: real against real, simulated against
simulated. On a real machine processors stand idle for a second or two from the end of a job to the start of the next one. How
long is taken from the hours without exchange; a second simulation has it too. Different policies run side by side, each on two Slurms of its own.

With `--scheduler backfill` Slurm runs as it does where nothing is said, beside EASY with limits in whole
minutes; the default, `builtin`, is first come, first served.

Writes figures-batch-trace.json, or with `backfill` figures-batch-trace-backfill.json; other hours have files of their own.
"""

import asyncio
import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from benchmarks.batch_simulated import ALONE, POLICIES, Plan, add_idling, simulated, sites_of
from benchmarks.batch_sites import Cluster, daemons
from benchmarks.batch_starts import Day, compared, gains, middle
from benchmarks.frame import keep, machine, options_of
from grms.client import Client, Job, Outcome
from grms.federation.federation import Site
from tests.clusters.slurm import SlurmCluster

HERE: Final = Path(__file__).parent
TIE_S: Final = 2.0
"""Starts are known to a second, and Slurm's scheduler runs once a second."""

SCRIPT: Final = '#!/bin/sh\nexec sleep "$1"\n'
POLL_S: Final = 1.0
AFTER_S: Final = 900.0
"""How much later than simulated everything may end."""


async def run_day(
    policy: str, plan: Plan, sites: Sequence[Site], folder: Path, starting: asyncio.Lock
) -> Day:
    """Runs the day with a policy through two Slurms of its own.

    `folder` must be empty; `starting` is held while clusters and daemons start, as they look for free ports.
    """
    words = POLICIES[policy]
    partners = {name: {"transfer": word} for name, word in words.items()}
    async with AsyncExitStack() as stack:
        async with starting:
            short = stack.enter_context(tempfile.TemporaryDirectory(prefix="hanse-", dir="/tmp"))
            clusters: dict[str, Cluster] = {}
            for site in sites:
                cluster = SlurmCluster(
                    folder / site.name, nodes=1, cpus=site.processors, scheduler=plan.scheduler
                )
                stack.push_async_callback(asyncio.to_thread, cluster.down)
                await asyncio.to_thread(cluster.up)
                clusters[site.name] = cluster
            running = daemons(
                folder,
                Path(short),
                clusters,
                {site.name: site.processors for site in sites},
                lrms={"poll_s": POLL_S, "settle_s": 0.0},
                partners=partners,
            )
            served, _ = await stack.enter_async_context(running)
        clients = [
            await stack.enter_async_context(Client(served[site.name].socket, timeout_s=AFTER_S))
            for site in sites
        ]
        origin = time.time() + 2.0
        taken = await asyncio.gather(
            *(users(client, site, origin) for client, site in zip(clients, sites, strict=True))
        )
        last = simulated(policy, sites).end_time.max() + AFTER_S
        ended = [
            await all_ended(client, names, origin + float(last))
            for client, names in zip(clients, taken, strict=True)
        ]
    return day_of(sites, ended, origin)


async def users(client: Client, site: Site, origin: float) -> list[str]:
    """Submits a site's jobs when they are due, and returns their numbers in order."""
    names = [""] * len(site.jobs)

    async def one(row: int) -> None:
        job = await client.submit(
            processors=int(site.jobs.processors[row]),
            requested_time_s=float(site.jobs.requested_time[row]),
            script=SCRIPT,
            arguments=[f"{site.jobs.run_time[row]:.3f}"],
            key=f"row {row}",
        )
        names[row] = job.job_id

    async with asyncio.TaskGroup() as group:
        for row, moment in enumerate(site.jobs.submit_time):
            await asyncio.sleep(max(0.0, origin + float(moment) - time.time()))
            group.create_task(one(row), name=f"{site.name} {row}")
    return names


async def all_ended(client: Client, names: Sequence[str], until: float) -> list[Job]:
    """Returns a site's jobs in order when all have completed.

    Raises:
        RuntimeError: one has failed, or not ended in time.
    """
    while True:
        found = {job.job_id: job async for job in client.jobs()}
        jobs = [found[name] for name in names]
        failed = [job for job in jobs if job.outcome not in {None, Outcome.COMPLETED}]
        if failed or time.time() > until:
            wrong = failed or [job for job in jobs if not job.has_ended]
            raise RuntimeError(f"{len(wrong)} jobs have not completed, such as {wrong[0]}")
        if all(job.has_ended for job in jobs):
            return jobs
        await asyncio.sleep(2.0)


def day_of(sites: Sequence[Site], ended: Sequence[Sequence[Job]], origin: float) -> Day:
    """Returns the day as users were told of it; seconds since its first one."""
    names = tuple(site.name for site in sites)
    rows = [(index, job) for index, jobs in enumerate(ended) for job in jobs]

    def column(values: Sequence[float]) -> np.ndarray[Any, np.dtype[np.float64]]:
        return np.array(values, dtype=np.float64)

    end_time = column([(job.end_time_s or np.nan) - origin for _, job in rows])
    run_time = np.concatenate([site.jobs.run_time for site in sites])
    return Day(
        names,
        column([index for index, _ in rows]),
        column([names.index(job.executed_on) for _, job in rows]),
        np.concatenate([site.jobs.resource_consumption for site in sites]).astype(float),
        np.concatenate([site.jobs.submit_time for site in sites]),
        end_time - run_time,  # of jobs elsewhere users are told the end alone
        end_time,
    )


async def run_all(
    plan: Plan, policies: Sequence[str], sites: Sequence[Site], folder: Path
) -> dict[str, Day]:
    """Runs the day once with each policy, all at one time."""
    starting = asyncio.Lock()
    async with asyncio.TaskGroup() as group:
        tasks = {
            policy: group.create_task(run_day(policy, plan, sites, folder / policy, starting))
            for policy in policies
        }
    return {policy: task.result() for policy, task in tasks.items()}


def figures_of(
    plan: Plan, sites: Sequence[Site], runs: Sequence[Mapping[str, Day]]
) -> dict[str, Any]:
    """Returns all figures of some runs."""
    model = {policy: simulated(policy, sites) for policy in runs[0]}
    found: dict[str, Any] = {
        "scheduler": plan.scheduler,
        "factor": plan.factor,
        "first_day": plan.first_day,
        "days": plan.days,
        "jobs": {site.name: len(site.jobs) for site in sites},
        "policies": {},
    }
    for policy, day in model.items():
        each = [compared(run[policy], day, TIE_S, plan.factor) for run in runs]
        entry: dict[str, Any] = {"runs": each}
        if policy != ALONE:
            real = [gains(run[policy], run[ALONE]) for run in runs]
            entry["gain_percent"] = [
                {name: round(value, 2) for name, value in one.items()} for one in real
            ]
            entry["gain_median_percent"] = middle(real)
            expected = gains(day, model[ALONE])
            entry["gain_simulated_percent"] = {
                name: round(value, 2) for name, value in expected.items()
            }
            entry["most_points_apart"] = {
                name: round(max(abs(one[name] - expected[name]) for one in real), 2)
                for name in expected
            }
        found["policies"][policy] = entry
    return found


def _ending(plan: Plan) -> str:
    # Suffix of the file: other hours have one of their own.
    usual = replace(Plan(), scheduler=plan.scheduler, factor=plan.factor)
    hours = "" if plan == usual else f"-{plan.days:g}-from-{plan.first_day:g}"
    return f"{'-backfill' * (plan.scheduler == 'backfill')}{hours}"


def main() -> int:
    """Runs what was asked for, and says what came of it."""
    parser = options_of(__doc__)
    default = os.environ.get("HANSE_TRACES")
    parser.add_argument("--traces", type=Path, default=default, required=default is None)
    parser.add_argument("--factor", type=float, default=Plan().factor, help="divides all times")
    parser.add_argument("--first-day", type=float, default=Plan().first_day, help="of both logs")
    parser.add_argument("--days", type=float, default=Plan().days, help="of submissions")
    parser.add_argument("--scheduler", choices=("builtin", "backfill"), default="builtin")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument(
        "--policies", nargs="+", choices=POLICIES, default=[ALONE, "awf", "start-now", "learned"]
    )
    parser.add_argument("--simulate", action="store_true", help="run nothing but the simulation")
    parser.add_argument("--again", action="store_true", help="simulate anew beside kept runs")
    parser.add_argument("--dry", action="store_true", help="do not write the figures")
    arguments = parser.parse_args()
    plan = Plan(arguments.factor, arguments.first_day, arguments.days, arguments.scheduler)
    policies = list(dict.fromkeys([ALONE, *arguments.policies]))
    sites = sites_of(plan, arguments.traces)
    path = HERE / f"figures-batch-trace{_ending(plan)}.json"
    if arguments.again:
        document = json.loads(path.read_text())
        add_idling(document["figures"], sites)
        keep(path, document)
        return 0
    # Leaves nothing behind, however it is ended.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    runs: list[Mapping[str, Day]] = []
    if arguments.simulate:
        runs.append({policy: simulated(policy, sites) for policy in policies})
    while len(runs) < arguments.runs and not arguments.simulate:
        with tempfile.TemporaryDirectory(prefix="hanse-trace-") as folder:
            runs.append(asyncio.run(run_all(plan, policies, sites, Path(folder))))
        print(json.dumps(figures_of(plan, sites, runs[-1:]), indent=1), flush=True)
    figures = figures_of(plan, sites, runs)
    if not arguments.simulate:
        add_idling(figures, sites)
    print(json.dumps(figures, indent=1))
    if not (arguments.dry or arguments.simulate):
        document = {"machine": machine(), "figures": figures}
        keep(path, document)
    return 0


if __name__ == "__main__":
    sys.exit(main())
