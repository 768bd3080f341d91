"""Measures machines of nodes: jobs a second of each discipline on 1,000 nodes of three kinds.

Run as `python -m benchmarks.nodes`; figures go to benchmarks/figures-nodes.json. The workload is drawn from a
seed: 400 shapes of requests (processors alone with memory, whole nodes, GPUs, much memory), lognormal run
times, requests up to five times as long, at loads from half the machine to more than all of it. The
machine of processors is measured in turn, in one process.
"""

import platform
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import process_time

import numpy as np

from benchmarks.frame import keep, options_of
from lrms_sim.analysis.node_metrics import fragmentation, utilization
from lrms_sim.machine.machine import simulate
from lrms_sim.machine.nodes import Demands, NodeKind, NodeMachine, NodeSchedule, simulate_on_nodes
from lrms_sim.scheduling.disciplines import discipline_by_name
from lrms_sim.util.provenance import source_commit
from lrms_sim.workload.jobs import JobTable
from lrms_sim.workload.requests import Gpus, Memory, Request

OUTPUT = Path(__file__).with_name("figures-nodes.json")
GIB = 1024
MACHINE = NodeMachine(
    (
        NodeKind("thin", 700, 32, 128 * GIB),
        NodeKind("large memory", 200, 64, 1024 * GIB),
        NodeKind("GPU", 100, 64, 512 * GIB, 4, "a100"),
    )
)
SHAPES = 400
LOADS = (0.5, 0.7, 0.85, 1.1)
SEED = 1


def request(rng: np.random.Generator) -> Request:
    """Returns one of the requests that jobs make."""

    def one_of(*numbers: int) -> int:
        return int(rng.choice(numbers))

    kind = rng.random()
    if kind < 0.5:
        return Request(
            tasks=one_of(1, 2, 4, 8, 16, 32, 64, 128), memory=Memory(one_of(1, 2, 4, 8) * GIB)
        )
    if kind < 0.7:
        nodes = one_of(1, 2, 4, 8, 16)
        return Request(
            tasks=nodes,
            cores_per_task=one_of(8, 16, 32),
            nodes_min=nodes,
            nodes_max=nodes,
            tasks_per_node=1,
            memory=Memory(one_of(32, 64, 100) * GIB, "node"),
        )
    if kind < 0.85:
        return Request(
            cores_per_task=one_of(1, 4, 8, 16),
            gpus=Gpus(one_of(1, 2, 4)),
            memory=Memory(32 * GIB, "node"),
        )
    return Request(
        cores_per_task=one_of(8, 16, 64), memory=Memory(one_of(256, 400, 512) * GIB, "node")
    )


def workload(jobs: int, load: float) -> tuple[JobTable, Demands]:
    """Returns jobs that would keep that share of all cores busy."""
    rng = np.random.default_rng(SEED)
    shapes = tuple(request(rng) for _ in range(SHAPES))
    shape = rng.integers(0, SHAPES, jobs).astype(np.int32)
    processors = np.array([one.processors for one in shapes])[shape]
    run_time = np.exp(rng.normal(7.5, 1.5, jobs)).clip(10, 86400).round()
    span = float((processors * run_time).sum()) / MACHINE.processors / load
    table = JobTable.from_columns(
        submit_time=np.sort(rng.uniform(0, span, jobs)).round(),
        processors=processors,
        run_time=run_time,
        requested_time=(run_time * rng.choice([1, 1.5, 2, 5], jobs)).round(),
        user=rng.integers(0, 100, jobs),
    )
    return table, Demands(shapes, shape)


def jobs_a_second(run: Callable[[], object], jobs: int, repeats: int) -> float:
    """Returns the median over repeats, in jobs a second of processor time."""
    found = []
    for _ in range(repeats):
        begun = process_time()
        run()
        found.append(jobs / (process_time() - begun))
    return median(found)


def measure(name: str, load: float, count: int, repeats: int) -> dict[str, float | str]:
    """Returns and prints the figures of a discipline at a load."""
    table, demands = workload(count, load)
    # A tenth of them for those that take longer.
    kept = count if name in ("fcfs", "list", "easy") else count // 10
    jobs = table.select(np.arange(count) < kept)
    own = Demands(demands.requests, demands.shape[:kept])

    def on_nodes() -> NodeSchedule:
        return simulate_on_nodes(jobs, MACHINE, name, demands=own)

    def on_processors() -> object:
        return simulate(jobs, MACHINE.processors, discipline_by_name(name))

    found = on_nodes()
    speed = jobs_a_second(on_nodes, kept, repeats)
    plain = jobs_a_second(on_processors, kept, repeats)
    print(f"load {load:4}  {name:15} {speed:>9,.0f} jobs/s on nodes, {plain:>10,.0f} on processors")
    return {
        "discipline": name,
        "load": load,
        "jobs": kept,
        "on nodes, jobs a second": speed,
        "on processors, jobs a second": plain,
        "mean wait, s": float((found.schedule.start_time - jobs.submit_time).mean()),
        "cores held": utilization(found).cores,
        "fragmentation": fragmentation(found),
    }


def main() -> None:
    """Measures and writes the figures."""
    parser = options_of(__doc__)
    parser.add_argument("--jobs", type=int, default=200_000, help="of each workload")
    parser.add_argument("--repeats", type=int, default=5, help="of each figure")
    parser.add_argument("--dry", action="store_true", help="print the figures and keep none")
    given = parser.parse_args()
    rows = [
        row
        for load in LOADS
        for name in ("fcfs", "list", "easy", "easy-plus-plus", "conservative")
        # The last two look at every job that waits, or at the plan of every node.
        if load < 0.8 or name in ("fcfs", "list", "easy")
        for row in [measure(name, load, given.jobs, given.repeats)]
    ]
    if not given.dry:
        keep(
            OUTPUT,
            {
                "commit": source_commit(),
                "python": platform.python_version(),
                "machine": platform.machine(),
                "nodes": sum(kind.nodes for kind in MACHINE.kinds),
                "rows": rows,
            },
        )


if __name__ == "__main__":
    main()
