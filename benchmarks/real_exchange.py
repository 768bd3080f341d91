"""Exchanges jobs between two real Slurms by strict exchange, and judges what own users' jobs waited for.

    python -m benchmarks.real_exchange                   300 jobs: without exchange, with it, and with it under kills
    python -m benchmarks.real_exchange --ended-by daemon --runs off on
    python -m benchmarks.real_exchange --jobs 60 --seconds 120 --dry

Two clusters of one's own, with pretended processors, have the partitions `guest` and `guestp` as
docs/how-to/preemption.md gives them, and a `grms serve` each that keeps an account of itself. Users of both sites submit
jobs in bursts drawn from a seed, and others use `sbatch` without any daemon: those have the processors that guests hold.
Every second job writes its state each second and goes on from it; some jobs ignore SIGTERM. The same jobs come at the same
moments three times: without exchange, with it, and with it while daemons and controllers are killed (SIGKILL).

It is judged (`real_exchange_verdict`) by what the jobs have written themselves, by slurmctld's and its completion
logs (`real_exchange_waits`), and by the daemons' journals. Writes figures-real-exchange.json.
"""

import asyncio
import json
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import AsyncExitStack, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from subprocess import SubprocessError
from typing import Any, Final

import msgspec

from benchmarks.batch_sites import Cluster, Daemon, daemons
from benchmarks.frame import machine, options_of
from benchmarks.real_exchange_late import Queues, explain
from benchmarks.real_exchange_verdict import (
    Journals,
    Ran,
    Told,
    Wanted,
    judge_jobs,
    starts_compared,
    waited,
)
from benchmarks.real_exchange_waits import judge_waits, read_jobs
from grms.client import Client, Job, Outcome, SiteError
from tests.clusters.slurm import SlurmCluster

FIGURES: Final = Path(__file__).with_name("figures-real-exchange.json")
SITES: Final = ("north", "south")
NODES: Final = 2
KILL_WAIT_S: Final = 5
"""Slurm's node daemon waits 5 s between SIGTERM and SIGKILL where slurm.conf says less."""

TICK_S: Final = 1
"""How often the clusters' schedulers look (`sched_interval`, `bf_interval`)."""

ENDED_S: Final = 600.0
"""How long all jobs may take to end after the last submission."""

GRACE_S: Final = 30.0
"""How long after its limit a job is waited for that a controller has forgotten."""

GUEST_WAIT_S: Final = 15.0
"""How long a guest waits for room, beside jobs of seconds: less than where jobs take hours."""

PARTITIONS: Final = """
PartitionName=main Nodes=ALL Default=YES MaxTime=1-00:00:00 DefaultTime=60 PreemptMode=OFF State=UP
PartitionName=guest Nodes=ALL AllowGroups=root PriorityTier=0 PreemptMode=CANCEL GraceTime=0 DefaultTime=60 MaxTime=12:00:00 State=UP
PartitionName=guestp Nodes=ALL AllowGroups=root PriorityTier=0 PreemptMode=CANCEL GraceTime=0 DefaultTime=60 MaxTime=12:00:00 State=UP
"""
PREEMPTION: Final = (
    f"PreemptType=preempt/partition_prio\nPreemptMode=CANCEL\nKillWait={KILL_WAIT_S}\n"
)

SCRIPT: Final = """#!/bin/sh
notes=$1 steps=$2 keeps=$3 deaf=$4 at=0 x=1
test "$deaf" = 0 || trap '' TERM
if test "$keeps" = 1 && test "${HANSE_RESTART_COUNT:-0}" -gt 0; then read -r at x <state || exit 3; fi
note() { echo "$1 $PWD $SLURM_JOB_ID $(date +%s.%N) ${HANSE_RESTART_COUNT:-0} $at $x" >>"$notes"; }
note start
while test "$at" -lt "$steps"; do
    sleep 1
    at=$((at + 1)) x=$(((x * 1103515245 + 12345) % 2147483648))
    test "$keeps" = 0 || { echo "$at $x" >state.new && mv state.new state; }
    note step
done
echo "$at $x" >result
note end
"""
"""Counts seconds, and notes each; its arguments are the file of notes, to how many, whether it goes on, and whether it ignores SIGTERM."""


Away = dict[str, list[tuple[float, float]]]


@dataclass(frozen=True, slots=True)
class Plan:
    """What to run and to break.

    Attributes:
        jobs: of both sites' users, by their daemons.
        natives: of users who know no daemon.
        seconds: from the first submission to the last.
        burst_s: how long a site's users submit many jobs, on the average, and then few.
        controllers, daemons: kills of each in the run with kills.
        account_s: how often the account is looked at, and waiting jobs are offered.
        cpus: pretended processors of each of a cluster's nodes.
        allowance: part of own jobs' time alone that exchange may cost beyond what it has brought.
        ended_by: who ends guests, `slurm` or, where that ends none, the `daemon`.
    """

    seed: int = 1
    jobs: int = 300
    natives: int = 60
    seconds: float = 500.0
    burst_s: float = 70.0
    controllers: int = 6
    daemons: int = 8
    poll_s: float = 1.0
    account_s: float = 5.0
    cpus: int = 12
    ended_by: str = "slurm"
    allowance: float = 0.5


@dataclass(slots=True)
class Result:
    """Result of one run: what the jobs were told and wrote, problems in words, counts, figures, and queues."""

    ran: dict[str, Ran] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    figures: dict[str, Any] = field(default_factory=dict)
    queues: Queues = field(default_factory=lambda: Queues({}, str))


@dataclass(frozen=True, slots=True)
class Seen:
    """What a run leaves beside its folder: what users were told, and when.

    Attributes:
        told: by name of the job.
        taken: ids of acknowledged jobs, by name.
        submitted: seconds since 1970, by name.
        refused: jobs past the daemons that no controller took.
        away: when each controller did not answer; `None` of a run without kills.
    """

    machine: dict[str, Any]
    seconds: float
    told: dict[str, Told]
    taken: dict[str, str]
    submitted: dict[str, float]
    refused: int
    away: Away | None
    counts: dict[str, int]


def wanted_of(plan: Plan) -> list[Wanted]:
    """Returns all jobs in the order of their submissions."""
    rng = random.Random(f"jobs {plan.seed}")  # noqa: S311  # no secrets
    found = []
    bursts = {site: _bursts(plan, random.Random(f"{site} {plan.seed}")) for site in SITES}  # noqa: S311  # same
    for number in range(plan.jobs + plan.natives):
        native = number >= plan.jobs
        site = rng.choice(SITES)
        found.append(
            Wanted(
                name=f"{'native' if native else 'job'}-{number}",
                site=site,
                native=native,
                submit=_moment(bursts[site], rng.random()),
                processors=rng.choice(
                    (1, 1, 2, 2, 3, 4, 4, 6, 8, 12) if native else (1, 1, 2, 2, 3, 4, 4, 6)
                ),
                steps=rng.randint(6, 26),
                limit_s=rng.choice((60.0, 120.0)),
                keeps=not native and number % 2 == 0,
                deaf=not native and rng.random() < 0.1,
            )
        )
    return sorted(found, key=lambda job: job.submit)


def _bursts(plan: Plan, rng: random.Random) -> list[tuple[float, float, float]]:
    # Begin, end and weight of each stretch of a site's load.
    found, at, many = [], 0.0, rng.random() < 0.5
    while at < plan.seconds:
        end = min(plan.seconds, at + 10.0 + rng.expovariate(1 / plan.burst_s))
        found.append((at, end, 10.0 if many else 1.0))
        at, many = end, not many
    return found


def _moment(bursts: list[tuple[float, float, float]], share: float) -> float:
    left = share * sum((end - begin) * weight for begin, end, weight in bursts)
    for begin, end, weight in bursts:
        if left <= (end - begin) * weight:
            return begin + left / weight
        left -= (end - begin) * weight
    return bursts[-1][1]


class Users:
    """Submits jobs; `taken` has the id of each acknowledged one, by name."""

    def __init__(
        self, clients: Mapping[str, Client], clusters: Mapping[str, SlurmCluster], notes: Path
    ) -> None:
        self._clients = clients
        self._clusters = clusters
        self._notes = notes
        self.taken: dict[str, str] = {}
        self.submitted: dict[str, float] = {}
        self.refused = 0

    async def submit_all(self, jobs: list[Wanted], begin: float) -> None:
        """Submits all jobs when they are due, and returns when all are acknowledged."""
        async with asyncio.TaskGroup() as group:
            for job in jobs:
                await asyncio.sleep(max(0.0, begin + job.submit - time.time()))
                self.submitted[job.name] = time.time()
                one = self._native(job) if job.native else self._submit(job)
                group.create_task(one, name=job.name)

    async def _submit(self, job: Wanted) -> None:
        words = [
            str(self._notes / job.name),
            str(job.steps),
            str(int(job.keeps)),
            str(int(job.deaf)),
        ]
        state: dict[str, Any] = (
            {"checkpoint_s": 1.0, "checkpoint_files": ["state"]} if job.keeps else {}
        )
        done = await self._clients[job.site].submit(
            processors=job.processors,
            requested_time_s=job.limit_s,
            script=SCRIPT,
            arguments=words,
            outputs=["result"],
            key=job.name,
            **state,
        )
        self.taken[job.name] = done.job_id

    async def _native(self, job: Wanted) -> None:
        path = self._notes / job.name
        words = (
            "--parsable",
            f"--job-name={job.name}",
            f"--ntasks={job.processors}",
            f"--time={int(job.limit_s // 60)}",
            "--output=/dev/null",
            f"--wrap=date +%s.%N >>{path}; exec sleep {job.steps}",
        )
        try:
            await asyncio.to_thread(self._clusters[job.site].ask, "sbatch", *words)
        except SubprocessError:
            self.refused += (
                1  # its controller was away for long; nobody promises such a user anything
            )


class Kills:
    """Kills daemons and controllers at moments drawn from the seed; `away` has when each controller did not answer."""

    def __init__(
        self,
        plan: Plan,
        clusters: Mapping[str, SlurmCluster],
        sites: Mapping[str, Daemon],
        counts: Counter[str],
    ) -> None:
        self._clusters = clusters
        self._sites = sites
        self._counts = counts
        self.away: Away = {name: [] for name in clusters}
        rng = random.Random(f"kills {plan.seed}")  # noqa: S311  # no secrets
        kinds = ["controller"] * plan.controllers + ["daemon"] * plan.daemons
        rng.shuffle(kinds)
        moments = sorted(rng.uniform(0.05, 0.95) * plan.seconds for _ in kinds)
        self._agenda = [
            (moment, kind, rng.choice(SITES), rng.choice((0.0, 0.5, 3.0, 10.0)))
            for moment, kind in zip(moments, kinds, strict=True)
        ]

    async def run(self, begin: float) -> None:
        """Does all of it, one after the other; returns when everything runs."""
        for moment, kind, name, pause_s in self._agenda:
            await asyncio.sleep(max(0.0, begin + moment - time.time()))
            self._counts[f"{kind}_kills"] += 1
            if kind == "daemon":
                await self._sites[name].end(signal.SIGKILL)
                await asyncio.sleep(pause_s)
                await self._sites[name].start()
                continue
            cluster, killed = self._clusters[name], time.time()
            await asyncio.to_thread(cluster.kill_controller)
            await asyncio.sleep(min(pause_s, 5.0))
            await asyncio.to_thread(cluster.start_controller)
            self.away[name].append((killed, time.time()))


async def _nodes_resumed(clusters: Mapping[str, SlurmCluster], counts: Counter[str]) -> None:
    # As an operator does who is told of a node that Slurm has drained (a start that the controller has forgotten).
    while True:
        await asyncio.sleep(2.0)
        for cluster in clusters.values():
            with suppress(SubprocessError, OSError):
                rows = await asyncio.to_thread(
                    cluster.ask, "sinfo", "-h", "-N", "-p", "main", "-o", "%N %T"
                )
                drained = [
                    row.split()[0] for row in rows.splitlines() if "drain" in row or "down" in row
                ]
                for node in dict.fromkeys(drained):
                    await asyncio.to_thread(
                        cluster.ask, "scontrol", "update", f"nodename={node}", "state=resume"
                    )
                    counts["nodes_resumed"] += 1


async def all_ended(clients: Mapping[str, Client], users: Users) -> dict[str, Job]:
    """Returns all jobs when they have ended, or after a long time as they are."""
    names = {number: name for name, number in users.taken.items()}
    end = time.monotonic() + ENDED_S
    while True:
        found: dict[str, Job] = {}
        for client in clients.values():
            async for job in client.jobs():
                found[names[job.job_id]] = job
        if all(job.has_ended for job in found.values()) or time.monotonic() > end:
            return found
        await asyncio.sleep(1.0)


async def _result(client: Client, job: Job) -> str:
    # What its user gets; it may still be on its way from a partner.
    for _ in range(60):
        try:
            return b"".join([piece async for piece in client.fetch(job.job_id, "result")]).decode()
        except SiteError as error:
            said = str(error)
        await asyncio.sleep(1.0)
    return f"cannot be fetched: {said}"


def cluster_at(folder: Path, plan: Plan) -> SlurmCluster:
    """Returns a cluster with the partitions of the how-to, or one that ends no guests; it is not up yet."""
    by_slurm = plan.ended_by == "slurm"
    return SlurmCluster(
        folder,
        nodes=NODES,
        cpus=plan.cpus,
        partitions=PARTITIONS if by_slurm else PARTITIONS.splitlines()[1] + "\n",
        preemption=PREEMPTION if by_slurm else f"PreemptMode=OFF\nKillWait={KILL_WAIT_S}\n",
        scheduling="preempt_youngest_first",
    )


async def run_once(plan: Plan, folder: Path, *, exchange: bool, kills: bool) -> Seen:
    """Runs all jobs of the plan once; `folder` must be empty or missing."""
    begin_run, counts, notes = time.perf_counter(), Counter[str](), folder / "notes"
    notes.mkdir(parents=True)
    jobs = wanted_of(plan)
    async with AsyncExitStack() as stack:
        sockets = Path(
            stack.enter_context(tempfile.TemporaryDirectory(prefix="hanse-", dir="/tmp"))
        )  # short
        clusters: dict[str, SlurmCluster] = {}
        for name in SITES:
            clusters[name] = cluster_at(folder / f"cluster-{name}", plan)
            stack.push_async_callback(asyncio.to_thread, clusters[name].down)
            await asyncio.to_thread(clusters[name].up)
        tables = {name: _table(plan) if exchange else {} for name in SITES}
        plain: dict[str, Cluster] = dict(clusters)
        guests: dict[str, Any] = {}
        if plan.ended_by == "slurm":
            guests = {
                "partition": "guest",
                "protected": "guestp",
                "switch": ["scontrol"],
                "wait_s": GUEST_WAIT_S,
            }
        running = daemons(
            folder,
            sockets,
            plain,
            dict.fromkeys(SITES, NODES * plan.cpus),
            lrms={
                "poll_s": plan.poll_s,
                "grace_s": GRACE_S,
                "partitions": ["main"],
                "preemption": guests,
            },
            partners=None if exchange else {},
            tables=tables,
        )
        sites, _ = await stack.enter_async_context(running)
        clients = {
            name: await stack.enter_async_context(Client(site.socket, timeout_s=ENDED_S))
            for name, site in sites.items()
        }
        users = Users(clients, clusters, notes)
        breaking = Kills(plan, clusters, sites, counts)
        begin = time.time() + 1.0
        async with asyncio.TaskGroup() as group:
            nodes = group.create_task(_nodes_resumed(clusters, counts), name="operator")
            async with asyncio.TaskGroup() as work:
                work.create_task(users.submit_all(jobs, begin), name="users")
                if kills:
                    work.create_task(breaking.run(begin), name="kills")
            told = await all_ended(clients, users)
            nodes.cancel()
        for site in sites.values():
            await site.well()
        results = {
            name: await _result(clients[_site(jobs, name)], job)
            for name, job in told.items()
            if job.outcome is Outcome.COMPLETED
        }
        for cluster in clusters.values():
            await _quiet(cluster)
    return Seen(
        machine=machine(),
        seconds=round(time.perf_counter() - begin_run, 1),
        told={name: Told(job, results.get(name, "")) for name, job in told.items()},
        taken=users.taken,
        submitted=users.submitted,
        refused=users.refused,
        away=breaking.away if kills else None,
        counts=dict(counts),
    )


def judge(plan: Plan, folder: Path, seen: Seen) -> Result:
    """Judges a run by what its folder holds."""
    outcome, notes = Result(counts=Counter(seen.counts)), folder / "notes"
    outcome.counts["acknowledged"] = len(seen.taken)
    outcome.counts["natives"] = plan.natives - seen.refused
    wanted = [job for job in wanted_of(plan) if job.native or job.name in seen.taken]
    lost = seen.away is not None
    outcome.ran, found = judge_jobs(wanted, seen.told, notes, seen.submitted, lost_natives=lost)
    journals = Journals(folder, SITES)
    for verdict in (found, journals.judge(outcome.ran)):
        outcome.problems += verdict.problems
        outcome.counts.update(verdict.counts)
    _judge_logs(plan, outcome, folder, seen.away)
    jobs = {name: read_jobs(*_logs(folder, name)) for name in SITES}
    outcome.queues = Queues(jobs, journals.name_of, seen.away or {})
    return outcome


def _site(jobs: list[Wanted], name: str) -> str:
    return next(job.site for job in jobs if job.name == name)


async def _quiet(cluster: SlurmCluster) -> None:
    # Until the jobs of users without a daemon have ended, too.
    async with asyncio.timeout(ENDED_S):
        while await asyncio.to_thread(cluster.ask, "squeue", "-h", "-a"):  # noqa: ASYNC110  # another process
            await asyncio.sleep(0.5)


def _table(plan: Plan) -> dict[str, Any]:
    # Jobs are held for 6 s, and wait for those that no daemon knows: in the account that counts as lost by exchange. With
    # nothing allowed beside jobs of seconds no site would ever be in credit, and no guest protected.
    rails = {
        "rules": "strict-exchange",
        "account": plan.account_s,
        "memory": "30min",
        "allowance": plan.allowance,
    }
    return {"rails": rails, "reoffer": plan.account_s, "requeue": "allow"}


def _logs(folder: Path, site: str) -> tuple[str, str]:
    # Of slurmctld, and of its jobs' ends.
    cluster = folder / f"cluster-{site}"
    names = "slurmctld.log", "jobcomp.txt"
    log, ends = ((cluster / name).read_text(errors="replace") for name in names)
    return log, ends


def _judge_logs(plan: Plan, outcome: Result, folder: Path, away: Away | None) -> None:
    for name in SITES:
        waits = judge_waits(
            *_logs(folder, name),
            processors=NODES * plan.cpus,
            bound_s=2 * TICK_S + KILL_WAIT_S + (plan.ended_by == "daemon") * 2 * plan.poll_s,
            away=() if away is None else away[name],
        )
        outcome.problems += [f"{name}: {text}" for text in waits.problems]
        outcome.figures[f"waits_{name}"] = waits.figures
        for line in (folder / f"{name}.log").read_text(errors="replace").splitlines():
            if "Traceback" in line:
                outcome.problems.append(f"{name} wrote: {line:.2000}")


def run_all(plan: Plan, folder: Path, runs: list[str]) -> dict[str, dict[str, Any]]:
    """Runs the jobs without exchange, with it, and with it under kills; returns what is kept of each run.

    A run that the folder has already is not repeated, and judged anew.
    """
    found: dict[str, dict[str, Any]] = {}
    alone: Result | None = None
    for name in runs:
        kept = folder / name / "seen.json"
        if not kept.exists():
            once = run_once(plan, folder / name, exchange=name != "off", kills=name == "kills")
            kept.write_bytes(msgspec.json.encode(asyncio.run(once)))
        seen = msgspec.json.decode(kept.read_bytes(), type=Seen)
        result = judge(plan, folder / name, seen)
        figures = {**dict(sorted(result.counts.items())), **result.figures}
        if name == "off":
            alone = result
        elif alone is not None:
            figures["starts"] = starts = starts_compared(waited(alone.ran), result.ran)
            for late in starts["late"]:
                late.update(explain(result.ran[late["job"]], result.queues, alone.queues))
            starts["unexplained"] = sum(not late["explained"] for late in starts["late"])
            starts["late_whose_controller_lived"] = sum(
                not late["controller_killed_at"] for late in starts["late"]
            )
        found[name] = {
            "machine": seen.machine,
            "seconds": seen.seconds,
            "figures": figures | {"problems": len(result.problems)},
            "problems": result.problems,
        }
        print(name, json.dumps(found[name]["figures"]), flush=True)
        for problem in result.problems[:50]:
            print("problem:", problem, flush=True)
    return found


def _mark(document: Mapping[str, Any]) -> tuple[str, int]:
    return document["plan"]["ended_by"], document["plan"]["seed"]


RUNS: Final = ("off", "on", "kills")


def main() -> int:
    """Runs what was asked for, and says what came of it."""
    parser = options_of(__doc__)
    for name, value in asdict(Plan()).items():
        choices = ("slurm", "daemon") if name == "ended_by" else None
        word = f"--{name.replace('_', '-')}"
        parser.add_argument(word, type=type(value), default=value, choices=choices)
    parser.add_argument("--runs", nargs="+", choices=RUNS, default=list(RUNS))
    parser.add_argument(
        "--keep", type=Path, help="keep everything in this folder, and repeat no run that is there"
    )
    parser.add_argument("--dry", action="store_true", help="do not write the figures")
    arguments = vars(parser.parse_args())
    keep, dry, runs = (arguments.pop(name) for name in ("keep", "dry", "runs"))
    plan = Plan(**arguments)
    # Leaves nothing behind, however it is ended.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    folder = Path(tempfile.mkdtemp(prefix="hanse-exchange-")) if keep is None else keep
    try:
        found = run_all(plan, folder, runs)
    finally:
        if keep is None:
            shutil.rmtree(folder, ignore_errors=True)
    document = {
        "plan": asdict(plan),
        "tick_s": TICK_S,
        "kill_wait_s": KILL_WAIT_S,
        "runs": {
            name: {key: one[key] for key in ("machine", "seconds", "figures")}
            for name, one in found.items()
        },
    }
    print(json.dumps(document, indent=1))
    if not dry:
        # Runs of other seeds, and those in which somebody else ended guests, stay, each with its machine.
        before = json.loads(FIGURES.read_text())["runs"] if FIGURES.exists() else []
        runs_kept = {_mark(one): one for one in [*before, document]}
        text = json.dumps({"runs": [runs_kept[mark] for mark in sorted(runs_kept)]}, indent=1)
        FIGURES.write_text(text + "\n")
    return 1 if any(one["problems"] for one in found.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
