"""The sites of the study, and what their users ask for: drawn for recorded logs, or as a table of pods says."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from lrms_sim.machine.nodes import Demands, NodeKind, NodeMachine, misfits
from lrms_sim.workload.accounting.importing import import_table
from lrms_sim.workload.accounting.records import Import
from lrms_sim.workload.accounting.table import Layout
from lrms_sim.workload.jobs import Int32Array, JobTable, window_by_days
from lrms_sim.workload.preparation import prepare
from lrms_sim.workload.requests import Gpus, Memory, Request
from lrms_sim.workload.swf import read_swf
from scenarios.spec.traces import TRACES, require_trace
from scenarios.util.errors import ScenarioError

GIB: Final = 1024
LOGS_DRAWN: Final = "logs"
PODS: Final = "pods"

THIN: Final = NodeKind("thin", 1, 16, 64 * GIB)
LARGE: Final = NodeKind("large memory", 1, 16, 512 * GIB)
GPU: Final = NodeKind("GPU", 1, 16, 128 * GIB, 4)

SHARES: Final = {
    "throughput": ("ctc", (0.8, 0.1, 0.1)),
    "large memory": ("kth", (0.45, 0.45, 0.1)),
    "GPU": ("sdsc00", (0.4, 0.1, 0.5)),
}
"""By site: its log, and which part of its nodes is thin, has much memory, has GPUs."""

DAYS: Final = 60
"""Of each log, from its beginning; enough for 1,800 jobs at the smallest site."""

SILENT: Final = 0.5
LARGE_SHARE: Final = 0.15
GPU_SHARE: Final = 0.15
"""Of the jobs: say nothing of memory, ask for much of it, ask for GPUs; the rest asks for some memory."""

SOME_MEMORY: Final = (1.5 * GIB, 0.6)
MUCH_MEMORY: Final = (14.0 * GIB, 0.4)
"""Median in MiB and σ of the lognormal distribution of memory for each core."""

CORES_PER_GPU: Final = 4

POD_KINDS: Final = {
    "throughput": (("thin", 3, 64, 256, 0), ("GPU", 1, 128, 768, 8)),
    "large memory": (("thin", 1, 64, 256, 0), ("large memory", 2, 96, 1024, 0), ("GPU", 1, 128, 768, 8)),
    "GPU": (("thin", 1, 64, 256, 0), ("GPU", 3, 128, 768, 8)),
}  # fmt: skip
"""By site its kinds of nodes for pods: name, nodes, cores, memory in GiB, GPUs. Each holds the largest pod."""

POD_COLUMNS: Final = {
    "submit_time": "creation_time",
    "start_time": "scheduled_time",
    "end_time": "deletion_time",
    "processors": "cpu_milli/1000",
    "memory_mib": "memory_mib",
    "memory_per": "node",
    "nodes_max": "1",
    "gpus": "num_gpu",
    "gpu_type": "gpu_spec",
    "job_id": "name",
}
"""What the columns of the table mean, as `lrms-sim import table` takes it."""

POD_SECONDS_MAX: Final = 86400.0
"""Pods that run longer are services, and are left out; so are those that had not ended."""

POD_HASTE: Final = 5.0
"""The times between submissions of pods are divided by this: the sites are as large as the largest pod needs."""


@dataclass(frozen=True, slots=True, eq=False)
class Workload:
    """A site: its machine, its jobs, and what they ask for."""

    name: str
    machine: NodeMachine
    jobs: JobTable
    demands: Demands


def machine_of(name: str, processors: int, shares: tuple[float, float, float]) -> NodeMachine:
    """Returns a machine with at least that many cores, with a node of each kind at least."""
    nodes = math.ceil(processors / THIN.cores)
    large, gpu = (max(1, round(share * nodes)) for share in shares[1:])
    thin = max(1, nodes - large - gpu)
    counts = zip((THIN, LARGE, GPU), (thin, large, gpu), strict=True)
    kinds = tuple(
        NodeKind(kind.name, count, kind.cores, kind.memory, kind.gpus) for kind, count in counts
    )
    return NodeMachine(kinds, name=name)


def read_logs() -> dict[str, JobTable]:
    """Returns the first days of each log by its key.

    Raises:
        TraceMissingError: a log is not on this machine.
    """
    return {
        log: window_by_days(
            prepare(read_swf(require_trace(log)), TRACES[log].processors).jobs, 0, DAYS
        )
        for log, _ in SHARES.values()
    }


class Logs:
    """Recorded logs, with requests drawn for each draw anew."""

    def __init__(self, jobs: Mapping[str, JobTable]) -> None:
        self._jobs = jobs

    def sites(self, draw: int) -> list[Workload]:
        """Returns the sites of a draw; the same draw is the same to the bit."""
        found = []
        for number, (name, (log, shares)) in enumerate(SHARES.items()):
            jobs = self._jobs[log]
            machine = machine_of(name, TRACES[log].processors, shares)
            rng = np.random.default_rng([draw, number])
            requests = _fitting(machine, jobs, [draw_request(rng, int(m)) for m in jobs.processors])
            found.append(workload(name, machine, jobs, requests))
        return found


def draw_request(rng: np.random.Generator, processors: int) -> Request:
    """Returns what a job of a log asks for, by the model of the study.

    A job with GPUs has tasks of four cores with a GPU each; its cores round up to that.
    """
    kind, normal = rng.random(), rng.standard_normal()
    if kind < SILENT:
        return Request(tasks=processors)
    if kind < SILENT + GPU_SHARE:
        tasks = math.ceil(processors / CORES_PER_GPU)
        memory = Memory(8 * GIB, "gpu")
        return Request(
            tasks=tasks, cores_per_task=CORES_PER_GPU, gpus=Gpus(1, "task"), memory=memory
        )
    median, sigma = MUCH_MEMORY if kind < SILENT + GPU_SHARE + LARGE_SHARE else SOME_MEMORY
    return Request(tasks=processors, memory=Memory(math.ceil(median * math.exp(sigma * normal))))


def _fitting(machine: NodeMachine, jobs: JobTable, requests: list[Request]) -> list[Request]:
    """Returns the requests; what the job's home could never hold becomes processors alone."""
    demands = Demands.of(requests)
    wrong = set(misfits(machine, demands))
    return [
        Request(tasks=int(width)) if number in wrong else request
        for request, number, width in zip(
            requests, demands.shape.tolist(), jobs.processors, strict=True
        )
    ]


def workload(name: str, machine: NodeMachine, jobs: JobTable, requests: list[Request]) -> Workload:
    """Returns a site whose jobs are as wide as what they ask for."""
    columns = jobs.columns() | {"processors": [request.processors for request in requests]}
    return Workload(name, machine, JobTable.from_columns(**columns), Demands.of(requests))


class PodsError(ScenarioError):
    """A table of pods that cannot be used."""


class Pods:
    """The pods of a table, dealt to the sites at random for each draw.

    Raises:
        PodsError: the table cannot be read, or no pod is left.
    """

    def __init__(self, path: Path) -> None:
        try:
            table = import_table(path, Layout(POD_COLUMNS), name=path.name)
        except (ValueError, OSError) as error:
            raise PodsError(str(error)) from error
        self._jobs, self._requests = _pods(table)
        if not len(self._jobs):
            raise PodsError(f"{path.name} has no pod that ended within a day")

    def sites(self, draw: int) -> list[Workload]:
        """Returns the sites of a draw."""
        names = list(POD_KINDS)
        home: Int32Array = np.random.default_rng([draw, len(names)]).integers(
            0, len(names), len(self._jobs), dtype=np.int32
        )
        found = []
        for number, (name, kinds) in enumerate(POD_KINDS.items()):
            machine = NodeMachine(
                tuple(
                    NodeKind(kind, n, cores, mem * GIB, gpus) for kind, n, cores, mem, gpus in kinds
                ),
                name=name,
            )
            rows = np.flatnonzero(home == number)
            requests = [self._requests[row] for row in rows.tolist()]
            demands = Demands.of(requests)
            fits = ~np.isin(demands.shape, misfits(machine, demands))
            rows = rows[fits]
            requests = [self._requests[row] for row in rows.tolist()]
            found.append(workload(name, machine, self._jobs.select(rows), requests))
        return found


def _pods(table: Import) -> tuple[JobTable, list[Request]]:
    log = table.log
    end = log.submit_time + np.maximum(log.wait_time, 0.0) + log.run_time
    kept = (log.run_time > 0) & (log.run_time <= POD_SECONDS_MAX) & (end < end.max(initial=0.0))
    rows = np.flatnonzero(kept)
    submit = log.submit_time[rows]
    first = float(submit.min(initial=math.inf)) if len(rows) else 0.0
    jobs = JobTable.from_columns(
        submit_time=np.round((submit - first) / POD_HASTE),
        processors=log.processors_requested[rows],
        run_time=log.run_time[rows],
        job_id=np.arange(1, len(rows) + 1),
    )
    order = jobs.job_id - 1
    asked = [
        table.requests[row] or Request(tasks=int(log.processors_requested[row]))
        for row in rows[order].tolist()
    ]
    return jobs, asked
