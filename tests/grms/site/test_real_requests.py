"""Scripts as users and workflow engines write them, over two real Slurms with nodes of different kinds.

North has no GPU, and is full. South has another partition, account, feature and type of GPU for each that the scripts name,
which its file translates. GPUs are pretended, memory is counted.
"""

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from grms.client import SyncClient
from grms.daemon.ports import free_port
from lrms_sim.util.files import to_toml
from tests.clusters.slurm import PATH, SlurmCluster, need_slurm, wait_for
from tests.forks import Nursery, forked
from tests.grms.site.daemons import document
from tests.programs import run_program

pytestmark = pytest.mark.services

GRMS: Final = (sys.executable, "-c", "from grms.command import main; main()")
TIMEOUT_S: Final = 300.0

NORTH: Final = ("CPUs=4 RealMemory=8000 Feature=skylake",) * 2
SOUTH: Final = (
    "CPUs=8 RealMemory=16000 Feature=cascade",
    "CPUs=8 RealMemory=16000 Feature=cascade Gres=gpu:a100:2",
)
LIMITS: Final = "MaxTime=1-00:00:00 DefaultTime=60 State=UP"
PARTITIONS: Final = {
    "north": f"\nPartitionName=main Nodes=ALL Default=YES {LIMITS}\nPartitionName=batch Nodes=ALL {LIMITS}\nDefMemPerCPU=100\n",
    "south": f"\nPartitionName=std Nodes=ALL Default=YES {LIMITS}\nPartitionName=work Nodes=n1 {LIMITS}\nDefMemPerCPU=100\nLicenses=ml:2\n",
}
TRANSLATE: Final = {
    "partitions": {"batch": "work"},
    "accounts": {"north:proj": "g-north"},
    "qos": {"*": ""},
    "features": {"skylake": "cascade"},
    "gpus": {"v100": "a100"},
    "licences": {"matlab": "ml"},
}
TOLD: Final = [
    {"nodes": 1, "cores": 8, "memory_mib": 16000},
    {"nodes": 1, "cores": 8, "memory_mib": 16000, "gpus": 2},
]

WHAT: Final = (
    "echo $SLURM_JOB_PARTITION nodes=$SLURM_NNODES tasks=${SLURM_NTASKS-} cores=${SLURM_CPUS_PER_TASK-} "
    "mem=${SLURM_MEM_PER_NODE-}${SLURM_MEM_PER_CPU-} gpu=${CUDA_VISIBLE_DEVICES-}\n"
)


@dataclass(frozen=True)
class Case:
    """A script that travels.

    Attributes:
        lines: without `#SBATCH`.
        prints: what it prints at south, a regular expression.
        options: of the command line.
        said: by the command, besides the job's id.
        body: of the script; by default what it was given.
    """

    lines: tuple[str, ...]
    prints: str
    options: tuple[str, ...] = ()
    said: str = ""
    body: str = WHAT


CASES: Final = {
    "memory": Case(("--mem=1G",), r"std nodes=1 .*mem=1024 gpu=\n"),
    "memory of cores": Case(("--mem-per-cpu=500M", "-n 2"), r"std nodes=1 tasks=2 .*mem=500 gpu=\n"),
    "nodes": Case(("-N 2", "--ntasks-per-node=2"), r"std nodes=2 tasks=4 .*\n"),
    "cores": Case(("-n 1", "-c 4"), r"std nodes=1 tasks=1 cores=4 .*\n"),
    "gpu": Case(("--gres=gpu:1",), r"std nodes=1 .* gpu=0\n", said="this cluster cannot run it"),
    "gpus of a type": Case(("--gpus-per-node=v100:2",), r"std nodes=1 .* gpu=0,1\n", said="this cluster cannot run it"),
    "wider than home": Case(("-n 12",), r"std nodes=2 tasks=12 .*\n", said="this cluster cannot run it"),
    "feature": Case(("-C skylake",), r"std nodes=1 .*\n"),
    "partition and account": Case(("-p batch", "-A proj", "--qos=long"), r"work nodes=1 .*\n"),
    "licence": Case(("-L matlab:2",), r"std nodes=1 .*\n", said="this cluster cannot run it"),
    "whole nodes": Case(("--exclusive",), r"std nodes=1 .*\n"),
    "for the home alone": Case(
        ("--comment=x", "--nice=5", "--wckey=w", "--mail-type=END", "--mail-user=a@example.org"),
        r"std nodes=1 .*\n",
        said="at a partner it goes without --comment=x, --mail-type=END, --mail-user=a@example.org, --nice=5, --wckey=w",
    ),
    "warned before the end": Case(
        ("--signal=B:USR1@290", "-t 5"),
        "warned\n",
        body='trap "echo warned; exit 0" USR1\nsleep 280 & wait\n',
    ),
    # --- as engines write them, with two cores and memory
    "psij": Case(
        ('--job-name="psij-1"', "--nodes=1", "--ntasks=1", "--cpus-per-task=2", "--mem=1G", "--time=10", "-e /dev/null", "-o /dev/null", "--export=ALL"),
        r"std nodes=1 tasks=1 cores=2 mem=1024 gpu=\n",
    ),
    "parsl": Case(
        ("--job-name=parsl.block-0", "--output=/dev/null", "--error=/dev/null", "--nodes=1", "--time=00:10:00", "--ntasks-per-node=1", "--mem=1g", "--cpus-per-task=2"),
        r"std nodes=1 tasks=1 cores=2 mem=1024 gpu=\n",
    ),
    "dask-jobqueue": Case(
        ("-J dask-worker", "-n 1", "--cpus-per-task=2", "--mem=1G", "-t 00:30:00"), r"std nodes=1 tasks=1 cores=2 mem=1024 gpu=\n"
    ),
    "submitit": Case(
        ("--cpus-per-task=2", "--error=%j_0_log.err", "--job-name=submitit", "--mem=1GB", "--nodes=1", "--ntasks-per-node=1", "--open-mode=append", "--output=%j_0_log.out", "--signal=USR2@90", "--time=5", "--wckey=submitit"),
        r"std nodes=1 tasks=1 cores=2 mem=1024 gpu=\n",
    ),
    "snakemake": Case(
        (),
        r"work nodes=1 tasks=1 cores=2 mem=1000 gpu=\n",
        options=("--parsable", "--job-name=rule-a", "--export=ALL", "--comment=rule_a", "-A", "proj", "-p", "batch", "-t", "5", "--mem=1000", "--ntasks=1", "--cpus-per-task=2", "-D", ".", "--wrap"),
    ),
    "nextflow": Case(
        ("-J nf-a", "-o .command.log", "--no-requeue", "--signal B:USR2@30", "-c 2", "-t 00:10:00", "--mem 1024M", "-p batch"),
        r"work nodes=1 tasks=1 cores=2 mem=1024 gpu=\n",
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Came:
    """What came of a case: what the command said, and the job."""

    status: int
    said: str
    executed_on: str = ""
    outcome: str = ""
    printed: str = ""


def handed_in(case: Case, folder: Path, environment: dict[str, str]) -> tuple[int, str, str]:
    """Hands a script in; returns the status, the job's id and what was said."""
    folder.mkdir()
    options = [str(folder) if word == "." else word for word in case.options]
    lines = "".join(f"#SBATCH {line}\n" for line in case.lines)
    (folder / "job.sh").write_text(f"#!/bin/bash\n{lines}{case.body}")
    last = WHAT if options[-1:] == ["--wrap"] else "job.sh"
    done = run_program(
        [*GRMS, "submit", *options, last], cwd=folder, env=environment, timeout=TIMEOUT_S
    )
    return done.returncode, done.stdout.strip(), done.stderr


@pytest.fixture(scope="module")
def outcomes(nursery: Nursery) -> Iterator[dict[str, Came]]:
    """What came of all cases, handed in one after the other as there is room."""
    need_slurm()
    with tempfile.TemporaryDirectory(prefix="hanse-", dir="/tmp") as name:  # its paths are short
        folder = Path(name)
        folder.chmod(0o755)
        clusters = {
            site: SlurmCluster(
                folder / f"cluster-{site}",
                kinds=kinds,
                parameters="CR_Core_Memory",
                partitions=PARTITIONS[site],
            )
            for site, kinds in (("north", NORTH), ("south", SOUTH))
        }
        daemons: list[subprocess.Popen[bytes]] = []
        try:
            for cluster in clusters.values():
                cluster.up()
            ports = {site: free_port() for site in clusters}
            for site, other in (("north", "south"), ("south", "north")):
                daemons.append(served(folder, site, other, ports, clusters[site]))
            for site in clusters:
                wait_for((folder / f"{site}.sock").exists() for _ in iter(int, 1))
            with forked(nursery):
                came = dict(trials(folder, clusters["north"]))
            yield came
        finally:
            for daemon in daemons:
                daemon.terminate()
                daemon.wait(TIMEOUT_S)
            for cluster in clusters.values():
                cluster.down()


def served(
    folder: Path, site: str, other: str, ports: dict[str, int], cluster: SlurmCluster
) -> "subprocess.Popen[bytes]":
    """Starts a daemon."""
    lrms: dict[str, Any] = {
        "kind": "slurm",
        "poll_s": 0.4,
        "settle_s": 0.0,
        "spool": str(folder / f"jobs-{site}"),
        "completion_log": cluster.completion_log,
        "configuration": cluster.environment["SLURM_CONF"],
    }
    more = {"guests": {"translate": TRANSLATE}, "nodes": TOLD} if site == "south" else {}
    size = 8 if site == "north" else 16
    written = document(folder, site, size, {other: ports[other]}, ports[site], lrms=lrms, **more)
    (folder / f"{site}.toml").write_text(to_toml(written))
    with (folder / f"{site}.log").open("wb") as log:
        return subprocess.Popen(  # noqa: S603  # the site
            [*GRMS, "serve", str(folder / f"{site}.toml")],
            env=os.environ | dict(cluster.environment),
            stdout=log,
            stderr=log,
        )


def trials(folder: Path, home: SlurmCluster) -> Iterator[tuple[str, Came]]:
    """Yields what came of each case."""
    home.ask(
        *("sbatch", "-N2", "--exclusive", "-t", "600", "-o", "/dev/null", "--wrap", "sleep 3000")
    )
    environment = {
        **home.environment,
        # What decides how an interpreter begins is as here, so that a fork will do.
        **{name: value for name, value in os.environ.items() if name.startswith("PYTHON")},
        "PATH": f"{Path(sys.executable).parent}:{PATH}",
        "HOME": str(folder),
        "HANSE_SOCKET": str(folder / "north.sock"),
    }
    given: dict[str, tuple[int, str, str]] = {}
    with SyncClient(folder / "north.sock", timeout_s=TIMEOUT_S) as site:
        wait_for(all(one.reachable for one in site.partners()) for _ in iter(int, 1))
        # Before the first look at the batch system nothing is free either.
        looks = (site.status() for _ in iter(int, 1))
        wait_for(found.lrms_reachable and found.processors_free == 0 for found in looks)
        for name, case in CASES.items():
            place = folder / re.sub(r"\W", "-", name)
            given[name] = handed_in(case, place, environment)
            if case.body is WHAT and given[name][1].startswith("north-"):
                site.wait(given[name][1])
        for name, (status, job_id, said) in given.items():
            if not job_id.startswith("north-"):
                yield name, Came(status, f"{job_id}\n{said}")
                continue
            job = site.wait(job_id)
            site.results(job_id, wait=True)
            printed = b"".join(site.fetch(job_id, "stdout")).decode()
            yield name, Came(status, said, job.executed_on, str(job.outcome), printed)


@pytest.mark.parametrize("name", CASES)
def test_what_a_script_asks_for_it_has_at_the_partner(name: str, outcomes: dict[str, Came]) -> None:
    """In the names of the partner; what concerns the home alone is said in one line, and keeps no job there."""
    case, came = CASES[name], outcomes[name]
    assert (came.status, came.executed_on, came.outcome) == (0, "south", "completed"), came
    assert re.fullmatch(case.prints, came.printed), came
    assert case.said in came.said, came
