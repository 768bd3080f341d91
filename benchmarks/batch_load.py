"""Measures a site daemon above a real Slurm: what a long table of others' jobs costs, and many submissions.

    python -m benchmarks.batch_load              writes figures-batch-load.json
    python -m benchmarks.batch_load --dry        does not

It starts a Slurm of its own, as the tests of batch systems do, with a job that fills the machine. The
daemon looks every two seconds, as it does where nothing is said.

Table: the processor time of the daemon, and of the programs of Slurm that it runs, is counted for a while
with no other job waiting, and then with 10,000 of another submitter's. A share is of one core.

Submissions: users submit at 100 a second, whatever the daemon does. Each job that was acknowledged has to
be in Slurm afterwards, once, by its name.
"""

import asyncio
import json
import os
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any, Final

from benchmarks.frame import keep, machine, options_of
from benchmarks.load import spread
from grms.client import Client, JobState
from grms.lrms.slurm.slurm_arrays import element_name
from lrms_sim.util.files import to_toml
from tests.clusters.slurm import SlurmCluster

FIGURES: Final = Path(__file__).with_name("figures-batch-load.json")
PENDING: Final = 10_000
ARRAY: Final = 1_000
"""Jobs of one array: Slurm's default limit."""

RATE_PER_S: Final = 100.0
CPUS: Final = 64
NOWHERE: Final = "--output=/dev/null"
TICK_S: Final = 1 / os.sysconf("SC_CLK_TCK")
SUBMITTED: Final = (JobState.QUEUED, JobState.RUNNING, JobState.ENDED)
SUBMITTED_S: Final = 600.0
"""How long the daemon has to hand over what it has acknowledged."""


def processor_s(pid: int) -> tuple[float, float]:
    """Returns the processor seconds of a process, and of those that it has started and that have ended."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    own, others = fields[11:13], fields[13:15]  # utime, stime, cutime, cstime: proc(5)
    return sum(map(int, own)) * TICK_S, sum(map(int, others)) * TICK_S


async def shares(pid: int, seconds: float) -> dict[str, float]:
    """Returns what a daemon costs for some seconds, in shares of a core."""
    own, programs = processor_s(pid)
    begin = time.perf_counter()
    await asyncio.sleep(seconds)
    took = time.perf_counter() - begin
    own_later, programs_later = processor_s(pid)
    return {
        "seconds": round(took, 1),
        "daemon_share": round((own_later - own) / took, 4),
        "programs_share": round((programs_later - programs) / took, 4),
    }


async def submissions(client: Client, seconds: float) -> tuple[dict[str, Any], list[str]]:
    """Returns figures of submissions at a rate, and the jobs that were acknowledged."""
    latencies: list[float] = []
    kept: list[str] = []
    begin = time.perf_counter()

    async def one(number: int, due: float) -> None:
        job = await client.submit(
            processors=1, requested_time_s=60.0, script="#!/bin/sh\n", key=f"n{number}"
        )
        kept.append(job.job_id)
        latencies.append(time.perf_counter() - due)

    async with asyncio.TaskGroup() as group:
        for number in range(int(seconds * RATE_PER_S)):
            due = begin + number / RATE_PER_S
            if (pause := due - time.perf_counter()) > 0:
                await asyncio.sleep(pause)
            group.create_task(one(number, due), name=f"submission {number}")
    acknowledged_s = time.perf_counter() - begin
    while True:
        known = {job.job_id async for job in client.jobs(states=list(SUBMITTED))}
        if known >= set(kept) or time.perf_counter() - begin > SUBMITTED_S:
            break
        await asyncio.sleep(0.5)
    return {
        "per_s": RATE_PER_S,
        "acknowledged": len(kept),
        "acknowledged_s": round(acknowledged_s, 1),
        "latency_ms": spread(latencies),
        "submitted_to_slurm_s": round(time.perf_counter() - begin, 1),
    }, kept


async def measure(folder: Path, seconds: float) -> dict[str, Any]:
    """Returns all figures, of a cluster that it starts and ends."""
    cluster = SlurmCluster(folder / "cluster", nodes=1, cpus=CPUS)
    await asyncio.to_thread(cluster.up)
    try:
        ask = cluster.ask
        fills = ("-n", str(CPUS), "-t", "600", NOWHERE, "--wrap", "sleep 36000")
        await asyncio.to_thread(ask, "sbatch", *fills)
        config = folder / "load.toml"
        config.write_text(to_toml(site_document("load", folder, cluster)))
        log = (folder / "load.log").open("wb")
        daemon = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "grms", "serve", str(config), stderr=log, stdout=log
        )
        try:
            async with Client(folder / "load.sock", timeout_s=60.0) as client:
                return await _measured(client, cluster, daemon.pid, seconds)
        finally:
            daemon.terminate()
            await daemon.wait()
            log.close()
    finally:
        await asyncio.to_thread(cluster.down)


def site_document(name: str, folder: Path, cluster: SlurmCluster) -> dict[str, Any]:
    """Returns the configuration of a site above a Slurm, whose socket is `NAME.sock` in a folder."""
    return {
        "name": name,
        "processors": CPUS,
        "listen": {"users": str(folder / f"{name}.sock")},
        "journal": {"path": str(folder / f"{name}.journal"), "survives": "power_loss"},
        "mqtt": {"enabled": False},
        "lrms": {
            "kind": "slurm",
            "spool": str(folder / "spool"),
            "completion_log": cluster.completion_log,
            "configuration": cluster.environment["SLURM_CONF"],
        },
    }


async def _measured(
    client: Client, cluster: SlurmCluster, pid: int, seconds: float
) -> dict[str, Any]:
    while not (await client.status()).lrms_reachable:  # noqa: ASYNC110  # another process tells nothing
        await asyncio.sleep(0.2)
    figures: dict[str, Any] = {
        "load_average": round(os.getloadavg()[0], 1),
        "nobody_waits": await shares(pid, seconds),
    }
    for _ in range(PENDING // ARRAY):
        words = ("-n", "1", "-t", "60", NOWHERE, f"--array=1-{ARRAY}", "--wrap", "true")
        await asyncio.to_thread(cluster.ask, "sbatch", *words)
    while (await client.status()).processors_waiting < PENDING:  # noqa: ASYNC110  # same
        await asyncio.sleep(0.5)
    figures["pending_of_others"] = PENDING
    figures["they_wait"] = await shares(pid, seconds)
    figures["submissions"], kept = await submissions(client, seconds)
    rows = await asyncio.to_thread(cluster.ask, "squeue", "-h", "-r", "-t", "all", "-o", "%j %i")
    # What was just submitted may have its array's name still.
    names = Counter(element_name(*row.split()) for row in rows.splitlines())
    found = Counter(name.rpartition("/")[2] for name in names.elements() if "hanse:" in name)
    wanted = {job_id.rpartition("-")[2] for job_id in kept}
    figures["submissions"]["acknowledged_and_lost"] = len(wanted - set(found))
    figures["submissions"]["in_slurm_twice"] = sum(count > 1 for count in found.values())
    return figures


def main() -> int:
    """Measures, and says what came of it."""
    parser = options_of(__doc__)
    parser.add_argument("--seconds", type=float, default=30.0, help="of each part")
    parser.add_argument("--dry", action="store_true", help="do not write figures-batch-load.json")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="hanse-batch-") as folder:
        figures = asyncio.run(measure(Path(folder), arguments.seconds))
    print(json.dumps(figures, indent=1))
    if not arguments.dry:
        document = {"machine": machine(), "figures": figures}
        keep(FIGURES, document)
    done = figures["submissions"]
    return 1 if done["acknowledged_and_lost"] or done["in_slurm_twice"] else 0


if __name__ == "__main__":
    sys.exit(main())
