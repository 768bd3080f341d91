"""Measures how long a site's daemon needs to judge a burst of offers, by the table of nodes of one look at a large Slurm.

Run as `python -m benchmarks.node_looks`; figures go to benchmarks/figures-node-looks.json. A machine of three kinds of nodes
is drawn from a seed, with 5,000 jobs on it, each with its own cores, memory and GPUs, and 1,000 that wait with the nodes that
they are to have. What Slurm's programs would print of it is read, in the daemon in a thread. Then offers are judged
in the daemon's loop, one behind the other: each accepted one is a job on its way that has its nodes before the next. Times
are of the processor.
"""

import platform
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from time import process_time

from benchmarks.frame import keep, options_of
from grms.lrms.nodes import NodeTable
from grms.lrms.slurm.slurm_nodes import SlurmRules, read_slurm_machine
from grms.lrms.slurm.slurm_text import Queue, read_queue
from lrms_sim.util.provenance import source_commit
from lrms_sim.workload.requests import Gpus, Memory, Request, RequestError

OUTPUT = Path(__file__).with_name("figures-node-looks.json")
SIZES = (1_000, 5_000, 10_000)
RUNNING, WAITING, OFFERS = 5_000, 1_000, 100
NOW = 1.7e9
RULES = SlurmRules(scheduler="backfill")
PARTITIONS = ("main", "short", "long", "gpu")
TOKEN = "token"  # noqa: S105  # of the lines about jobs


@dataclass(slots=True)
class Node:
    """A node of the drawn machine, and what jobs hold of it; memory is in MiB."""

    name: str
    cores: int
    memory: int
    gpus: int
    features: str
    partitions: str
    weight: int
    held_cores: int = 0
    held_memory: int = 0
    held_gpus: int = 0

    def hold(self, cores: int, memory: int, gpus: int) -> bool:
        """Starts a part of a job here; returns whether there is room."""
        free = self.cores - self.held_cores, self.memory - self.held_memory
        if cores > free[0] or memory > free[1] or gpus > self.gpus - self.held_gpus:
            return False
        self.held_cores += cores
        self.held_memory += memory
        self.held_gpus += gpus
        return True

    def shown(self, *, drained: bool) -> str:
        """Returns what `scontrol show node` says of it."""
        state = "IDLE" if not self.held_cores else "MIXED"
        gpus = f"gpu:a100:{self.gpus}" if self.gpus else "(null)"
        return (
            f"NodeName={self.name} Arch=x86_64 CoresPerSocket=32  CPUAlloc={self.held_cores} CPUEfctv={self.cores} "
            f"CPUTot={self.cores} CPULoad=5.77 AvailableFeatures={self.features} ActiveFeatures={self.features} "
            f"Gres={gpus} GresDrain=N/A GresUsed=gpu:a100:{self.held_gpus}(IDX:0-1) NodeAddr={self.name} "
            f"NodeHostName={self.name} Version=22.05.8 OS=Linux 6.1.0 #1 SMP @0  RealMemory={self.memory} "
            f"AllocMem={self.held_memory} FreeMem=9000 Sockets=2 Boards=1 State={state}{'+DRAIN' * drained} "
            f"ThreadsPerCore=1 TmpDisk=0 Weight={self.weight} Owner=N/A MCS_label=N/A Partitions={self.partitions}  "
            "BootTime=1695668428 SlurmdStartTime=1695668429 LastBusyTime=1695668430 CfgTRES=cpu=8,mem=16000M,billing=8 "
            "AllocTRES=cpu=1,mem=15G CapWatts=n/a CurrentWatts=0 AveWatts=0 ExtSensorsJoules=n/s\n"
        )


def machine(rng: random.Random, size: int) -> list[Node]:
    """Returns the nodes, with jobs on them."""
    nodes = []
    for number in range(size):
        kind = number % 10
        if kind < 6:
            node = Node(f"thin{number:05d}", 64, 256_000, 0, "skylake,avx512", "main,short", 1)
        elif kind < 9:
            node = Node(f"large{number:05d}", 128, 1_000_000, 0, "icelake,large", "main,long", 5)
        else:
            node = Node(f"gpu{number:05d}", 64, 512_000, 4, "icelake", "gpu,short", 10)
        nodes.append(node)
    with_gpus = [node for node in nodes if node.gpus]
    for _ in range(RUNNING):
        if rng.random() < 0.15:
            amounts = rng.choice([4, 8, 16]), rng.choice([16_000, 32_000]), rng.choice([1, 2, 4])
            rng.choice(with_gpus).hold(*amounts)
            continue
        cores = rng.choice([1, 2, 4, 8, 16, 32, 64])
        memory = rng.choice([1_000, 3_000, 7_168, 64_000, cores * 2_000, cores * 4_000])
        for node in rng.sample(nodes, rng.choice([1, 1, 1, 2, 4, 8])):
            node.hold(cores, memory, 0)
    return nodes


def partitions() -> str:
    """Returns what `scontrol show partition` says."""
    return "".join(
        f"PartitionName={name} AllowGroups=ALL AllowAccounts=ALL AllowQos=ALL Default={'YES' if name == 'main' else 'NO'} "
        "ExclusiveUser=NO Hidden=NO MaxNodes=UNLIMITED MaxTime=3-00:00:00 MinNodes=0 MaxCPUsPerNode=UNLIMITED "
        "RootOnly=NO ReqResv=NO OverSubscribe=NO State=UP JobDefaults=(null) DefMemPerCPU=1000 MaxMemPerNode=UNLIMITED\n"
        for name in PARTITIONS
    )


def queue(rng: random.Random, nodes: Sequence[Node]) -> str:
    """Returns what `squeue` says of the jobs that run and those that wait."""
    lines = []
    for number in range(RUNNING + WAITING):
        runs = number < RUNNING
        begin = int(NOW) + (-3600 if runs else 60 * rng.randrange(1, 1440))
        end = (
            int(NOW) + 60 * rng.randrange(1, 1440) if runs else begin + 60 * rng.randrange(1, 2880)
        )
        there = rng.sample(nodes, rng.choice([1, 1, 1, 2, 4, 8] if runs else [1, 1, 2, 4, 16, 64]))
        names = ",".join(node.name for node in there)
        fields = [TOKEN, str(number), "R" if runs else "PD", "8", str(int(NOW) - 9000), str(begin)]
        fields += [str(end), "None" if runs else "Priority", "anna(1000)"]
        lines.append("|".join([*fields, names if runs else "", "" if runs else names, "main", "x"]))
    return "\n".join(lines)


def offers(seed: int, count: int) -> list[Request]:
    """Returns what partners ask about."""
    rng = random.Random(seed)  # noqa: S311  # not a secret
    found: list[Request] = []
    while len(found) < count:
        try:
            request = Request(
                tasks=rng.choice([1, 4, 16, 64, 256]),
                cores_per_task=rng.choice([1, 1, 2, 4]),
                nodes_max=rng.choice([None, None, 1, 4]),
                memory=rng.choice([None, Memory(2_000), Memory(8_000), Memory(64_000, "node")]),
                gpus=rng.choice([None, None, None, Gpus(1, "task"), Gpus(4, "node")]),
                features=rng.choice([(), (), ("icelake",), ("large",)]),
                wall_time=rng.choice([600.0, 3_600.0, 43_200.0, 86_400.0]),
                partition=rng.choice(["", "gpu", "main,long", "short"]),
            )
        except RequestError:
            continue
        found.append(request)
    return found


@dataclass(frozen=True, slots=True)
class Look:
    """What Slurm's programs print in one look."""

    nodes: str
    partitions: str
    queue: str

    def table(self) -> NodeTable:
        """Returns the table of nodes."""
        found = read_slurm_machine(self.nodes, self.partitions, ("main", "short"), RULES)
        jobs: Queue = read_queue(
            self.queue, token=TOKEN, is_owner=lambda *_: False, prefix="hanse:", processors=10**6
        )
        return replace(found.nodes, promised=jobs.promised, unplanned=jobs.unplanned)


def look(size: int) -> Look:
    """Returns a look at a machine of so many nodes."""
    rng = random.Random(size)  # noqa: S311  # not a secret
    nodes = machine(rng, size)
    shown = "".join(node.shown(drained=rng.random() < 0.02) for node in nodes)
    return Look(shown, partitions(), queue(rng, nodes))


def judged(table: NodeTable, asked: Sequence[Request]) -> tuple[list[float], int]:
    """Returns how long each answer took, seconds, and how many offers were accepted."""
    coming: list[Request] = []
    times = []
    for number, request in enumerate(asked):
        begun = process_time()
        now = NOW + number / 100  # they come within seconds
        if not table.why_not(request) and table.starts_now(request, now, coming):
            coming.append(request)
        times.append(process_time() - begun)
    return times, len(coming)


def main() -> None:
    """Measures and writes the figures."""
    parser = options_of(__doc__)
    parser.add_argument("--repeats", type=int, default=5, help="of each figure")
    parser.add_argument("--dry", action="store_true", help="print the figures and keep none")
    given = parser.parse_args()
    rows = []
    for size in SIZES:
        shown, asked = look(size), offers(1, OFFERS)
        found: list[tuple[float, float, float, float]] = []
        accepted = 0
        for _ in range(given.repeats):
            begun = process_time()
            table = shown.table()
            read = process_time() - begun
            times, accepted = judged(table, asked)
            found.append((read, sum(times), median(times), max(times)))
        read, whole, each, most = (1e3 * median(one) for one in zip(*found, strict=True))
        print(
            f"{size:>6} nodes: read in {read:.0f} ms, {OFFERS} offers judged in {whole:.0f} ms, "
            f"{each:.2f} ms each, {most:.1f} ms at most; {accepted} accepted"
        )
        rows.append(
            {
                "nodes": size,
                "reading, ms": round(read, 1),
                "all answers, ms": round(whole, 1),
                "an answer, ms": round(each, 3),
                "longest answer, ms": round(most, 1),
                "offers": OFFERS,
                "accepted": accepted,
            }
        )
    if not given.dry:
        said = {"commit": source_commit(), "python": platform.python_version()}
        keep(OUTPUT, {**said, "rows": rows})


if __name__ == "__main__":
    main()
