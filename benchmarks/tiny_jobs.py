"""Measures how many tiny jobs a second a site above a real Slurm runs, beside Slurm alone.

    python -m benchmarks.tiny_jobs               writes figures-tiny-jobs.json
    python -m benchmarks.tiny_jobs --dry         does not

Each job runs `true`. Slurm alone: as one `sbatch --array`, and by one `sbatch` each, from the first call until the last job is
in Slurm's completion log. Through a site, whose journal survives a loss of power and whose settings are the
defaults: by `grms.client.submit_many`, until the client has been told the last end. Both end with every job completed,
or there is no figure. Processor seconds are those of the daemon, of the programs that it has run, and of Slurm.
"""

import asyncio
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

from benchmarks.batch_load import CPUS, processor_s, site_document
from benchmarks.frame import keep, machine, options_of
from grms.client import Client, JobState, SiteError
from lrms_sim.util.files import to_toml
from tests.clusters.slurm import SlurmCluster

FIGURES: Final = Path(__file__).with_name("figures-tiny-jobs.json")
COUNT: Final = 1_000
SINGLE: Final = 300
"""Jobs that are handed to Slurm by one `sbatch` each."""

SCRIPT: Final = "#!/bin/sh\ntrue\n"
TIME_OUT_S: Final = 600.0


def _slurm_s(cluster: SlurmCluster) -> float:
    return sum(sum(processor_s(each.pid)) for each in cluster.processes.values())


def _logged(cluster: SlurmCluster) -> int:
    log = Path(cluster.completion_log)
    return log.read_text().count("JobState=COMPLETED") if log.exists() else 0


async def _until_logged(cluster: SlurmCluster, count: int) -> None:
    async with asyncio.timeout(TIME_OUT_S):
        while _logged(cluster) < count:  # noqa: ASYNC110  # another process writes it
            await asyncio.sleep(0.05)


async def _timed(cluster: SlurmCluster, count: int, calls: list[list[str]]) -> dict[str, Any]:
    there, used, began = _logged(cluster), _slurm_s(cluster), time.perf_counter()
    for words in calls:
        await asyncio.to_thread(cluster.ask, "sbatch", "-o", "/dev/null", "-t", "1", *words)
    handed_in = time.perf_counter() - began
    await _until_logged(cluster, there + count)
    took = time.perf_counter() - began
    return {
        "jobs": count,
        "handed_in_s": round(handed_in, 2),
        "s": round(took, 2),
        "per_s": round(count / took, 1),
        "slurm_ms_each": round(1000 * (_slurm_s(cluster) - used) / count, 1),
    }


async def _through_site(
    cluster: SlurmCluster, client: Client, pid: int, count: int
) -> dict[str, Any]:
    slurm, (own, programs), began = _slurm_s(cluster), processor_s(pid), time.perf_counter()
    wanted = {"processors": 1, "requested_time_s": 60.0, "script": SCRIPT}
    jobs = await client.submit_many([{**wanted, "key": f"t{n}"} for n in range(count)])
    handed_in = time.perf_counter() - began
    ids = {job.job_id for job in jobs if not isinstance(job, SiteError)}
    assert len(ids) == count, "not all were taken"
    ended: dict[str, Any] = {}
    async with asyncio.timeout(TIME_OUT_S):
        while len(ended) < count:
            async for job in client.jobs(states=[JobState.ENDED]):
                if job.job_id in ids:
                    ended[job.job_id] = job
            await asyncio.sleep(0.2)
    took = time.perf_counter() - began
    assert all(job.exit_code == 0 for job in ended.values()), "not all have completed"
    own_later, programs_later = processor_s(pid)
    return {
        "jobs": count,
        "handed_in_s": round(handed_in, 2),
        "s": round(took, 2),
        "per_s": round(count / took, 1),
        "daemon_ms_each": round(1000 * (own_later - own) / count, 1),
        "programs_ms_each": round(1000 * (programs_later - programs) / count, 1),
        "slurm_ms_each": round(1000 * (_slurm_s(cluster) - slurm) / count, 1),
    }


async def measure(folder: Path, count: int, single: int, ways: set[str]) -> dict[str, Any]:
    """Returns all figures, of a cluster that it starts and ends."""
    cluster = SlurmCluster(folder / "cluster", nodes=1, cpus=CPUS)
    await asyncio.to_thread(cluster.up)
    figures: dict[str, Any] = {"load_average": round(os.getloadavg()[0], 1)}
    try:
        if "array" in ways:
            words = [f"--array=1-{count}", "--wrap", "true"]
            figures["slurm, one array"] = await _timed(cluster, count, [words])
            print(figures, flush=True)
        if "single" in ways:
            each = [["--wrap", "true"]] * single
            figures["slurm, one sbatch each"] = await _timed(cluster, single, each)
            print(figures, flush=True)
        if "site" in ways:
            (folder / "tiny.toml").write_text(to_toml(site_document("tiny", folder, cluster)))
            with (folder / "tiny.log").open("wb") as log:
                daemon = await asyncio.create_subprocess_exec(
                    sys.executable,
                    "-m",
                    "grms",
                    "serve",
                    str(folder / "tiny.toml"),
                    stderr=log,
                    stdout=log,
                )
                try:
                    async with Client(folder / "tiny.sock", timeout_s=60.0) as client:
                        while not (await client.status()).lrms_reachable:  # noqa: ASYNC110  # another process tells nothing
                            await asyncio.sleep(0.2)
                        figures["site, submit_many"] = await _through_site(
                            cluster, client, daemon.pid, count
                        )
                finally:
                    daemon.terminate()
                    await daemon.wait()
    finally:
        await asyncio.to_thread(cluster.down)
    return figures


def main() -> None:
    """Measures, and says what came of it."""
    parser = options_of(__doc__)
    parser.add_argument("--count", type=int, default=COUNT, help="jobs of each way")
    parser.add_argument("--single", type=int, default=SINGLE, help="jobs by one sbatch each")
    parser.add_argument("--ways", default="array,single,site")
    parser.add_argument("--keep", type=Path, help="folder to use")
    parser.add_argument("--dry", action="store_true", help="do not write the figures")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="hanse-tiny-", dir="/tmp") as folder:
        place = arguments.keep or Path(folder)
        figures = asyncio.run(
            measure(place, arguments.count, arguments.single, set(arguments.ways.split(",")))
        )
    print(json.dumps(figures, indent=1))
    if not arguments.dry:
        keep(FIGURES, {"machine": machine(), "figures": figures})


if __name__ == "__main__":
    main()
