"""Runs workflows of Snakemake at sites above real Slurms, by the executor plugin and without a shared file system.

    python -m benchmarks.snakemake_jobs

Snakemake has to be installed (`pip install snakemake`). Two sites that share no folder, and four workflows at
the first:

- 30 jobs with a script, a configuration, logs, a folder and a temporary file, while the daemons of both sites are killed and
  started again: every output has to be at home and right, some jobs must have run at the partner, and each once;
- one job that fails, one that its user cancels, one that hits its limit, a group of two rules that is well: Snakemake has
  to end, to say why each has failed, and to have the output of the group;
- jobs that sleep, and Ctrl-C: the site must have ended them;
- twelve jobs, while Snakemake itself is killed and started again: every output has to be right, and each job must have run once.
"""

import asyncio
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Final

from benchmarks.batch_sites import Daemon, daemons
from benchmarks.frame import options_of
from grms.client import JobState, Outcome, SyncClient
from tests.clusters.slurm import SlurmCluster

ROOT: Final = Path(__file__).resolve().parents[1]
PLUGIN: Final = ROOT / "plugins/snakemake-executor-plugin-hanse/src"
WAIT_S: Final = 900.0
PAIRS: Final = 14
CPUS: Final = {"home": 4, "away": 4}

WORKFLOW: Final = """
configfile: "config.yaml"
wildcard_constraints: n=r"\\d+"
rule all:
    input: "out/total.txt", "out/parts"
rule number:
    input: "start.txt"
    output: temp("out/{n}.txt")
    log: "logs/{n}.log"
    resources: runtime=10, mem_mb=0
    shell: "echo making {wildcards.n} > {log}; echo $(( $(cat {input}) + {wildcards.n} )) > {output}"
rule square:
    input: "out/{n}.txt"
    output: "out/{n}.square.txt"
    threads: 2
    resources: runtime=10, mem_mb=0
    script: "scripts/square.py"
rule total:
    input: expand("out/{n}.square.txt", n=range(config["count"]))
    output: "out/total.txt"
    resources: runtime=10, mem_mb=0
    shell: "cat {input} | paste -sd+ | bc > {output} || awk '{{ s += $1 }} END {{ print s }}' {input} > {output}"
rule parts:
    input: "out/total.txt"
    output: directory("out/parts")
    resources: runtime=10, mem_mb=0
    shell: "mkdir -p {output}/deep; cp {input} {output}/deep/copy.txt; echo end > {output}/end.txt"
"""

ENDINGS: Final = """
rule all:
    input: "good.txt", "bad.txt", "gone.txt", "over.txt"
rule word:
    output: temp("word.txt")
    group: "pair"
    shell: "echo good > {output}"
rule good:
    input: "word.txt"
    output: "good.txt"
    group: "pair"
    shell: "cp {input} {output}"
rule bad:
    output: "bad.txt"
    resources: runtime=10, mem_mb=0
    shell: "echo no such luck; exit 3"
rule gone:
    output: "gone.txt"
    resources: runtime=10, mem_mb=0
    shell: "sleep 600; echo gone > {output}"
rule over:
    output: "over.txt"
    resources: runtime=1, mem_mb=0
    shell: "sleep 600; echo over > {output}"
"""

SLEEPS: Final = """
rule all:
    input: "1.txt", "2.txt"
rule sleeps:
    output: "{n}.txt"
    resources: runtime=10, mem_mb=0
    shell: "sleep 600; echo {wildcards.n} > {output}"
"""

SLOW: Final = """
rule all:
    input: expand("{n}.done", n=range(6))
rule slow:
    output: "{n}.txt"
    resources: runtime=10, mem_mb=0
    shell: "sleep 4; echo {wildcards.n} > {output}"
rule slower:
    input: "{n}.txt"
    output: "{n}.done"
    resources: runtime=10, mem_mb=0
    shell: "sleep 4; cp {input} {output}"
"""


@asynccontextmanager
async def two_sites(
    folder: Path, cpus: Mapping[str, int] = CPUS
) -> AsyncIterator[tuple[dict[str, Daemon], dict[str, SlurmCluster]]]:
    """Yields two sites, each above a cluster of its own, and the clusters; ends all of it."""
    clusters = {
        name: SlurmCluster(folder / f"cluster-{name}", nodes=1, cpus=count, name=name)
        for name, count in cpus.items()
    }
    try:
        for cluster in clusters.values():
            cluster.up()
        lrms = {"poll_s": 0.5, "settle_s": 0.0}
        # Partitions have the same names at both.
        translate = {"guests": {"translate": {"partitions": {"*": "*"}}}}
        tables = dict.fromkeys(clusters, translate)
        running = daemons(folder, folder, clusters, cpus, lrms=lrms, tables=tables)
        async with running as (found, _):
            yield found, clusters
    finally:
        for cluster in clusters.values():
            cluster.down()


def until(condition: Callable[[], bool]) -> None:
    """Returns when a condition holds.

    Raises:
        TimeoutError: it does not in time.
    """
    end = time.monotonic() + WAIT_S
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(str(condition))
        time.sleep(0.1)


class Run:
    """A workflow in a folder of its own, and its Snakemake."""

    def __init__(self, folder: Path, socket: Path, workflow: str) -> None:
        self.folder = folder
        self._socket = socket
        folder.mkdir()
        (folder / "Snakefile").write_text(workflow)

    def start(self, *words: str) -> subprocess.Popen[str]:
        """Starts it."""
        command = [sys.executable, "-m", "snakemake", "--executor", "hanse", "--jobs", "40"]
        command += ["--shared-fs-usage", "none", "--seconds-between-status-checks", "1"]
        command += ["--precommand", f"export PATH={Path(sys.executable).parent}:$PATH", *words]
        paths = [str(PLUGIN), str(ROOT), os.environ.get("PYTHONPATH", "")]
        variables = {"HANSE_SOCKET": str(self._socket), "PYTHONPATH": ":".join(filter(None, paths))}
        self.said = self.folder.with_suffix(".log")
        with self.said.open("w") as log:
            return subprocess.Popen(
                command,
                cwd=self.folder,
                env=os.environ | variables,
                stdout=log,
                stderr=subprocess.STDOUT,
                text=True,
            )


async def all_outputs(folder: Path, sites: dict[str, Daemon]) -> dict[str, float]:
    """Runs 30 jobs, and kills both daemons in turn; returns figures."""
    run = Run(folder / "many", sites["home"].socket, WORKFLOW)
    (run.folder / "config.yaml").write_text(f"count: {PAIRS}\n")
    (run.folder / "start.txt").write_text("100\n")
    (run.folder / "scripts").mkdir()
    (run.folder / "scripts/square.py").write_text(
        "from pathlib import Path\n"
        "number = int(Path(snakemake.input[0]).read_text())\n"
        "Path(snakemake.output[0]).write_text(f'{number**2}\\n')\n"
    )
    begun = time.monotonic()
    process = run.start()
    for name, count in (("away", 3), ("home", 9)):
        await asyncio.to_thread(until, partial(has_done, run, process, count))
        await sites[name].end(signal.SIGKILL)
        await sites[name].start()
    status = await asyncio.to_thread(process.wait, WAIT_S)
    took = time.monotonic() - begun
    check(status == 0, run.said.read_text())
    return await asyncio.to_thread(outputs, run, sites["home"].socket) | {"seconds": round(took, 1)}


def has_done(run: "Run", process: subprocess.Popen[str], count: int) -> bool:
    """Returns whether Snakemake has reported so many jobs as finished, or has ended."""
    return process.poll() is not None or run.said.read_text().count("Finished jobid") >= count


def outputs(run: "Run", socket: Path) -> dict[str, float]:
    """Checks every output of the 30 jobs; returns figures."""
    expected = [(100 + n) ** 2 for n in range(PAIRS)]
    found = [int((run.folder / f"out/{n}.square.txt").read_text()) for n in range(PAIRS)]
    check(found == expected, f"squares are {found}")
    for name in ("out/total.txt", "out/parts/deep/copy.txt"):
        check(int((run.folder / name).read_text()) == sum(expected), name)
    check((run.folder / "out/parts/end.txt").read_text() == "end\n", "out/parts/end.txt")
    for n in range(PAIRS):
        check((run.folder / f"logs/{n}.log").read_text() == f"making {n}\n", f"logs/{n}.log")
        check(not (run.folder / f"out/{n}.txt").exists(), f"out/{n}.txt is temporary")
    with SyncClient(socket) as site:
        jobs = list(site.jobs())
        check(len(jobs) == 2 * PAIRS + 2, f"{len(jobs)} jobs")
        check(all(job.outcome is Outcome.COMPLETED for job in jobs), "jobs that have not completed")
        left = [file for job in jobs for file in site.results(job.job_id).files if file.sha256]
        check(not left, f"files are left at the site: {left}")
    again = run.start("--dry-run").wait(WAIT_S)
    check(again == 0 and "Nothing to be done" in run.said.read_text(), run.said.read_text())
    away = sum(job.executed_on == "away" for job in jobs)
    check(away > 0, "no job has run at the partner")
    runs = [
        state
        for log in run.folder.parent.glob("cluster-*/jobcomp.txt")
        for state in re.findall(r"\bJobState=(\S+)", log.read_text())
    ]
    # One that was withdrawn before it began, to run at the partner, is cancelled.
    check(runs.count("COMPLETED") == len(jobs), f"the clusters have run {runs}")
    check(set(runs) <= {"COMPLETED", "CANCELLED"}, f"the clusters have run {runs}")
    return {"jobs": len(jobs), "at the partner": away}


def all_endings(folder: Path, socket: Path) -> dict[str, float]:
    """Runs jobs that fail in three ways, and one that does not; returns figures."""
    run = Run(folder / "endings", socket, ENDINGS)
    begun = time.monotonic()
    process = run.start("--keep-going")
    with SyncClient(socket) as site:
        gone = running(site, "gone", 1)[0]
        site.cancel(gone)
    status = process.wait(WAIT_S)
    took = time.monotonic() - begun
    text = run.said.read_text()
    check(status == 1, text)
    for words in (
        "ended with exit code 1",
        f"Job {gone} was cancelled",
        "was ended at the limit of its requested time (1 min)",
        ".snakemake/hanse_logs/",
    ):
        check(words in text, f"{words!r} is not said:\n{text}")
    check((run.folder / "good.txt").read_text() == "good\n", "good.txt")
    logs = [path.read_text() for path in (run.folder / ".snakemake/hanse_logs").glob("*/stdout")]
    check(
        any("no such luck" in log for log in logs), "what the failed job has printed is not at home"
    )
    for name in ("bad", "gone", "over"):
        check(not (run.folder / f"{name}.txt").exists(), f"{name}.txt is there")
    return {"seconds until all four were reported": round(took, 1)}


def interrupted(folder: Path, socket: Path) -> dict[str, float]:
    """Interrupts a workflow; returns figures."""
    run = Run(folder / "sleeps", socket, SLEEPS)
    process = run.start()
    with SyncClient(socket) as site:
        jobs = running(site, "sleeps", 2)
        begun = time.monotonic()
        process.send_signal(signal.SIGINT)
        status = process.wait(WAIT_S)
        check(status != 0, run.said.read_text())
        ends = [site.wait(job).outcome for job in jobs]
    check(ends == [Outcome.CANCELLED] * 2, f"{ends}: {run.said.read_text()}")
    return {"seconds until both were cancelled": round(time.monotonic() - begun, 1)}


def restarted(folder: Path, socket: Path) -> dict[str, float]:
    """Kills Snakemake itself, and starts it again; returns figures."""
    run = Run(folder / "restarted", socket, SLOW)

    def names(site: SyncClient) -> list[str]:
        return [job.job_id for job in site.jobs() if job.name in {"slow", "slower"}]

    with SyncClient(socket) as site:
        process = run.start()
        until(partial(has_done, run, process, 2))
        until(lambda: any(site.get(job).state is JobState.RUNNING for job in names(site)))
        process.kill()
        process.wait()
        before = names(site)
        unlocked = run.start("--unlock").wait(WAIT_S)
        check(unlocked == 0, run.said.read_text())
        status = run.start("--rerun-incomplete").wait(WAIT_S)
        check(status == 0, run.said.read_text())
        after = names(site)
        ends = {site.get(job).outcome for job in after}
    for n in range(6):
        check((run.folder / f"{n}.done").read_text() == f"{n}\n", f"{n}.done")
    check(ends == {Outcome.COMPLETED}, f"jobs have ended as {ends}")
    check(len(after) == 12, f"{len(after)} jobs, {len(before)} of them before the kill")
    logs = folder.glob("cluster-*/jobcomp.txt")
    runs = [line for log in logs for line in log.read_text().splitlines() if "Name=slow" in line]
    completed = sum("JobState=COMPLETED" in line for line in runs)
    check(completed == 12, f"{completed} runs")
    return {"jobs": len(after), "submitted before the kill": len(before)}


def running(site: SyncClient, name: str, count: int) -> list[str]:
    """Returns so many jobs of that name once they run."""
    found: list[str] = []

    def all_run() -> bool:
        found[:] = [job.job_id for job in site.jobs(states=[JobState.RUNNING]) if job.name == name]
        return len(found) == count

    until(all_run)
    return found


def check(holds: bool, what: str) -> None:
    """Ends the program with a reason unless a condition holds."""
    if not holds:
        raise SystemExit(f"FAILED: {what}")


def main() -> None:
    """Runs all of it."""
    parser = options_of(__doc__)
    parser.add_argument("--keep", type=Path, help="folder for everything, which stays")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(options.keep or temporary).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        asyncio.run(all_parts(folder))


async def all_parts(folder: Path) -> None:
    """Runs all of it over the same sites."""
    async with two_sites(folder) as (sites, _):
        print(f"all_outputs: {await all_outputs(folder, sites)}", flush=True)
        for part in (all_endings, interrupted, restarted):
            figures = await asyncio.to_thread(part, folder, sites["home"].socket)
            print(f"{part.__name__}: {figures}", flush=True)


if __name__ == "__main__":
    main()
