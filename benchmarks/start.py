"""Measures the start of a daemon with a long journal, and the list of all its jobs.

    python -m benchmarks.start                      writes figures-start.json
    python -m benchmarks.start --jobs 20000 --dry   fewer jobs, to the terminal alone
    python -m benchmarks.start --beside FOLDER      with another tree (built, too) in turns

The journal has 200,000 jobs that have not ended: each is received and kept, one runs, and the others wait
on a simulated machine. What counts is processor time, the kernel's for it included: of the daemon up to
the moment at which it answers, and of `grms jobs --all` at both ends. As in an installation, modules are
not compiled at each start; the first run of each tree, which may have to, does not count.
"""

import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

from benchmarks.frame import keep, machine, options_of
from benchmarks.live import processor_seconds
from grms.site.model.jobs import Request
from grms.site.model.records import JobKept, JobReceived, Record
from grms.site.runtime.journal import Journal
from grms.v1 import request_pb2
from lrms_sim.util.files import to_toml

FIGURES: Final = Path(__file__).with_name("figures-start.json")
HERE: Final = Path(__file__).resolve().parents[1]
JOBS: Final = 200_000
LOOKED_EVERY_S: Final = 0.1
PATIENT: Final = ["--timeout", "600"]
GRMS: Final = [sys.executable, "-c", "from grms.command import main; main()"]


def write_journal(path: Path, jobs: int) -> None:
    """Writes the journal of a site whose machine is full of jobs that run for a month."""
    message = request_pb2.JobRequest()
    message.simulated.run_time_s = 3e6
    payload, records = message.SerializeToString(), list[Record]()
    for number in range(1, jobs + 1):
        request = Request(4, 3e6)
        moment = 1.7e9 + number / 1000
        records.append(JobReceived(moment, number, "ann", f"k{number}", "", request, payload))
        records.append(JobKept(moment, number))
    with Journal(path, "home", durability="process") as journal:
        journal.append(records)


def document(folder: Path, jobs: int) -> dict[str, Any]:
    """Returns the configuration of that site."""
    return {
        "name": "home",
        "processors": 4,
        "listen": {"users": str(folder / "home.sock")},
        "journal": {"path": str(folder / "home.journal"), "survives": "power_loss"},
        "clock": {"kind": "wall"},
        "lrms": {"kind": "simulated", "discipline": "fcfs"},
        "limits": {"open_jobs": 2 * jobs, "open_jobs_per_user": 2 * jobs},
        "mqtt": {"enabled": False},
        "logging": {"format": "json"},
    }


def measure(tree: Path, journal: Path, jobs: int) -> dict[str, float]:
    """Returns the processor time, in seconds, of a start and of a list by the programs of a tree.

    Raises:
        SystemExit: the daemon has ended, or not all jobs were listed.
    """
    environment = _environment(tree)
    with tempfile.TemporaryDirectory(prefix="hanse-bench-") as name:
        folder = Path(name)
        shutil.copy(journal, folder / "home.journal")
        (folder / "home.toml").write_text(to_toml(document(folder, jobs)))
        log = folder / "log"
        with (
            log.open("w") as entries,
            subprocess.Popen(  # our own program
                [*GRMS, "serve", str(folder / "home.toml")],
                stderr=entries,
                env=environment,
                cwd=tree,
            ) as daemon,
        ):
            try:
                while '"serving"' not in log.read_text():
                    if daemon.poll() is not None:
                        raise SystemExit(log.read_text())
                    time.sleep(LOOKED_EVERY_S)
                listing = [*GRMS, "jobs", "--socket", str(folder / "home.sock"), "--all", *PATIENT]
                # It has started when it answers.
                _listed([*listing, "--limit", "1"], tree)
                started, before = processor_seconds(daemon.pid), _of_children()
                listed = _listed(listing, tree)
                if listed.count(b"\nhome-") != jobs:  # a job may have a second line, of words
                    raise SystemExit("not all jobs were listed")
                return {
                    "start_s": round(started, 2),
                    "list_daemon_s": round(processor_seconds(daemon.pid) - started, 2),
                    "list_client_s": round(_of_children() - before, 2),
                }
            finally:
                daemon.terminate()


def _listed(command: list[str], tree: Path) -> bytes:
    done = subprocess.run(
        command, env=_environment(tree), cwd=tree, stdout=subprocess.PIPE, check=True
    )  # our own program
    return done.stdout


def _environment(tree: Path) -> dict[str, str]:
    environment = {**os.environ, "PYTHONPATH": str(tree)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    return environment


def _of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    """Measures what was asked for."""
    parser = options_of(__doc__)
    parser.add_argument("--jobs", type=int, default=JOBS, help="open jobs in the journal")
    parser.add_argument("--runs", type=int, default=5, help="so many of each tree, in turns")
    parser.add_argument("--beside", type=Path, metavar="FOLDER", help="another tree")
    parser.add_argument("--dry", action="store_true", help="write no figures")
    arguments = parser.parse_args()
    trees = {"this": HERE}
    if arguments.beside is not None:
        trees["beside"] = arguments.beside.resolve()
    runs: dict[str, list[dict[str, float]]] = {name: [] for name in trees}
    with tempfile.TemporaryDirectory(prefix="hanse-bench-") as folder:
        journal = Path(folder) / "home.journal"
        write_journal(journal, arguments.jobs)
        for turn in range(arguments.runs + 1):
            for name, tree in trees.items():
                figures = measure(tree, journal, arguments.jobs)
                print(name, json.dumps(figures), "" if turn else "does not count", flush=True)
                if turn:
                    runs[name].append(figures)
    for name, found in runs.items():
        print(f"{name}: median {statistics.median(each['start_s'] for each in found):.2f} s")
    if not arguments.dry:
        kept = {"machine": machine(), "jobs": arguments.jobs, "runs": runs}
        keep(FIGURES, kept)


if __name__ == "__main__":
    main()
