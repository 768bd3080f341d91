"""Runs part of a recorded day through two real Slurms with policies of exchange, beside its simulation.

    python -m benchmarks.batch_trace --traces FOLDER            three runs, some 25 minutes
    python -m benchmarks.batch_trace --traces FOLDER --runs 1 --policies alone start-now --dry

One Slurm has KTH's 100 processors, the other CTC's 430, both pretended on one node; a `grms serve` is
above each. Users submit the jobs of the same hours of both logs as `sleep`, with all times divided by a factor. The
simulation gets the same jobs with the same times. The hours without exchange are run as well, through the same
daemons, and the gain of a policy is measured against that: real against real, simulated against
simulated. Different policies run side by side, each on two Slurms of its own.

With `--scheduler backfill` Slurm runs as it does where nothing is said, beside EASY with limits in whole
minutes; the default, `builtin`, is first come, first served.

Writes figures-batch-trace.json, or with `backfill` figures-batch-trace-backfill.json.
"""

import argparse
import asyncio
import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from benchmarks.batch_sites import Cluster, daemons
from benchmarks.batch_starts import Day, compared, gains, middle
from benchmarks.run import machine
from grms.client import Client, Job, Outcome
from grms.federation.federation import Site, replay, replay_alone
from grms.policy.files import load_rule_base
from grms.policy.transfer import TransferPolicy
from grms.policy.words import TRANSFER_POLICIES
from lrms_sim.disciplines import Easy, Fcfs
from lrms_sim.jobs import JobTable
from lrms_sim.windows import window_by_days
from scenarios.run.workloads import load_workload
from scenarios.spec.files import load_spec
from tests.clusters.slurm import SlurmCluster

HERE: Final = Path(__file__).parent
LIBRARY: Final = HERE.parent / "scenarios/library"
ALONE: Final = "alone"
POLICIES: Final[Mapping[str, Mapping[str, str]]] = {
    ALONE: {},
    "awf": dict.fromkeys(("KTH", "CTC"), "awf"),
    "start-now": dict.fromkeys(("KTH", "CTC"), "start-now"),
    "fair-exchange": dict.fromkeys(("KTH", "CTC"), "fair-exchange"),
    "learned": {
        "KTH": str(LIBRARY / "rule-bases/fcfs-egoistic/kth-for-ctc.json"),
        "CTC": str(LIBRARY / "rule-bases/fcfs-egoistic/ctc-for-kth.json"),
    },
}
"""What each site uses for the other."""

SLACK_S: Final = 40.0
"""So much longer than it runs a job may run: recorded jobs were ended at their limit, and a limit of Slurm's
is not so exact that these would end in the same second."""

TIE_S: Final = 2.0
"""Starts are known to a second, and Slurm's scheduler looks once a second."""

SCRIPT: Final = '#!/bin/sh\nexec sleep "$1"\n'
POLL_S: Final = 1.0
AFTER_S: Final = 900.0
"""So much later than simulated all may have ended."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What is run.

    Attributes:
        factor: by which all times are divided.
        first_day: the window of submissions begins there, days of both logs. Chosen by simulation: both
            sites have a queue, at most 51 jobs run at once, and arrivals a second later change no gain
            by more than a few points.
        days: its length.
        scheduler: of both Slurms: `builtin` or `backfill`.
    """

    factor: float = 240.0
    first_day: float = 255.0
    days: float = 0.5
    scheduler: str = "builtin"


def pressed(jobs: JobTable, factor: float, *, whole_minutes: bool) -> JobTable:
    """Returns a workload with all times divided.

    Args:
        jobs: the workload.
        factor: by which times are divided.
        whole_minutes: requested times are rounded up, as Slurm does.
    """
    requested = np.maximum(jobs.requested_time / factor, jobs.run_time / factor + SLACK_S)
    if whole_minutes:
        requested = np.maximum(1.0, np.ceil(requested / 60.0)) * 60.0
    return JobTable.from_columns(
        submit_time=jobs.submit_time / factor,
        processors=jobs.processors,
        run_time=jobs.run_time / factor,
        requested_time=requested,
    )


def sites_of(plan: Plan, traces: Path) -> list[Site]:
    """Returns both sites with the day's jobs, as a scenario of the library has them."""
    spec = load_spec(LIBRARY / "kth-ctc-6.toml").resolved()
    place = {**os.environ, "HANSE_TRACES": str(traces)}
    backfills = plan.scheduler == "backfill"
    found = []
    for site in spec.sites:
        jobs = load_workload(site, spec.clock.shift, place).jobs
        day = window_by_days(jobs, plan.first_day, plan.first_day + plan.days, shift="window")
        own = pressed(day, plan.factor, whole_minutes=backfills)
        found.append(Site(site.name, site.processors, own, Easy() if backfills else Fcfs()))
    return found


def policy_of(word: str) -> TransferPolicy:
    """Returns a policy by its word or its file."""
    return load_rule_base(word) if word.endswith(".json") else TRANSFER_POLICIES[word]


def simulated(policy: str, sites: Sequence[Site]) -> Day:
    """Returns what the simulation makes of the day with a policy."""
    words = POLICIES[policy]
    if not words:
        return Day.of_schedule(replay_alone(sites))
    first, second = sites
    return Day.of_schedule(
        replay(
            [
                replace(one, transfer_policies={other.name: policy_of(words[one.name])})
                for one, other in ((first, second), (second, first))
            ]
        )
    )


async def run_day(
    policy: str, plan: Plan, sites: Sequence[Site], folder: Path, starting: asyncio.Lock
) -> Day:
    """Runs the day through two Slurms of its own, and returns what came of it.

    Args:
        policy: a word of `POLICIES`.
        plan: what is run.
        sites: with their jobs.
        folder: an empty one, for everything.
        starting: held while clusters and daemons start, as they look for free ports.
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


def main() -> int:
    """Runs what was asked for, and says what came of it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
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
    parser.add_argument("--dry", action="store_true", help="do not write the figures")
    arguments = parser.parse_args()
    plan = Plan(arguments.factor, arguments.first_day, arguments.days, arguments.scheduler)
    policies = list(dict.fromkeys([ALONE, *arguments.policies]))
    sites = sites_of(plan, arguments.traces)
    # Nothing is left behind, whoever ends it.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    runs: list[Mapping[str, Day]] = []
    if arguments.simulate:
        runs.append({policy: simulated(policy, sites) for policy in policies})
    while len(runs) < arguments.runs and not arguments.simulate:
        with tempfile.TemporaryDirectory(prefix="hanse-trace-") as folder:
            runs.append(asyncio.run(run_all(plan, policies, sites, Path(folder))))
        print(json.dumps(figures_of(plan, sites, runs[-1:]), indent=1), flush=True)
    figures = figures_of(plan, sites, runs)
    print(json.dumps(figures, indent=1))
    if not (arguments.dry or arguments.simulate):
        more = "-backfill" if plan.scheduler == "backfill" else ""
        document = {"machine": machine(), "figures": figures}
        path = HERE / f"figures-batch-trace{more}.json"
        path.write_text(json.dumps(document, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
