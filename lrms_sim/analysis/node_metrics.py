"""Figures of a schedule on a machine of nodes: utilization by resource, fragmentation, waits by class."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lrms_sim.machine.node_kinds import NodeMachine
from lrms_sim.machine.nodes import Demands, NodeSchedule
from lrms_sim.workload.jobs import FloatArray
from lrms_sim.workload.requests import Request, size_text
from lrms_sim.workload.schedule import Schedule


@dataclass(frozen=True, slots=True)
class Utilization:
    """Shares of the machine that jobs held on average, 0 to 1; None of what there is none of.

    The time is that from the first submission to the last end.

    Attributes:
        licences: by name, of those of which there is one.
    """

    cores: float
    memory: float | None
    gpus: float | None
    licences: dict[str, float]


@dataclass(frozen=True, slots=True)
class WaitsOfClass:
    """How long the jobs of a class waited.

    Attributes:
        name: as people read it.
        jobs: how many there are.
        mean: seconds; nan where there is no job.
        median: same.
    """

    name: str
    jobs: int
    mean: float
    median: float


def utilization(found: NodeSchedule) -> Utilization:
    """Returns what share of cores, memory, GPUs and licences was held."""
    schedule, machine = found.schedule, found.machine
    span = 0.0
    if len(schedule):
        span = float(schedule.end_time.max() - schedule.jobs.submit_time[0])
    held = schedule.end_time - schedule.start_time

    def share(amount: npt.NDArray[np.int64], whole: int) -> float | None:
        if not whole:
            return None
        return float((amount * held).sum() / (whole * span)) if span > 0 else 0.0

    def taken(name: str) -> npt.NDArray[np.int64]:
        counts = [
            sum(count for licence, count in request.licences if licence == name)
            for request in found.demands.requests
        ]
        return np.array(counts, np.int64)[found.demands.shape]

    return Utilization(
        share(found.cores, machine.processors) or 0.0,
        share(found.memory, machine.memory),
        share(found.gpus, machine.gpus),
        {name: share(taken(name), count) or 0.0 for name, count in machine.licences if count},
    )


def dominant_share(request: Request, machine: NodeMachine) -> float:
    """Returns the largest share of the machine's cores, memory and GPUs that a request asks for.

    After Ghodsi et al., "Dominant Resource Fairness" (NSDI 2011). What there is none of has no share.
    """
    return max(
        request.processors / machine.processors,
        request.memory_least / machine.memory if machine.memory else 0.0,
        request.gpus_least / machine.gpus if machine.gpus else 0.0,
    )


def dominant_shares(demands: Demands, machine: NodeMachine) -> FloatArray:
    """Returns the dominant share of each job, shape (n,)."""
    shares = [dominant_share(request, machine) for request in demands.requests]
    return np.array(shares, np.float64)[demands.shape]


def weighted_response_time(schedule: Schedule, weights: FloatArray) -> float:
    """Returns the mean response time of jobs weighted by these numbers times their run times, seconds.

    With dominant shares as weights a job counts by the resource of which it takes most, where AWRT counts its
    processors: a job on one core and all GPUs is no small one. nan without a job.
    """
    work = schedule.jobs.run_time * weights
    total = float(work.sum())
    response = schedule.end_time - schedule.jobs.submit_time
    return float((work * response).sum()) / total if total > 0 else math.nan


def fragmentation(found: NodeSchedule) -> float:
    """Returns the share of the machine's core-seconds that were idle although somebody waited for no more.

    At a moment at which the job that came first of those who wait asks for no more cores than are free
    altogether, the free cores are of no use to it where they are: other nodes, or memory, GPUs or licences
    that are taken. The time is that from the first submission to the last end.
    """
    schedule = found.schedule
    count = len(schedule)
    if count == 0:
        return 0.0
    moments, changes = _steps(schedule.start_time, schedule.end_time, found.cores)
    # All are free before the first start.
    moments, changes = np.append(-np.inf, moments), np.append(0, changes)
    free = found.machine.processors - np.cumsum(changes)
    # The job at the head at a moment: rows are in order of arrival.
    wasted = 0.0
    waiting = np.flatnonzero(schedule.start_time > schedule.jobs.submit_time)
    head_until = -np.inf
    for row in waiting.tolist():
        begin = max(float(schedule.jobs.submit_time[row]), head_until)
        end = float(schedule.start_time[row])
        if end <= begin:
            continue
        head_until = end
        first = int(np.searchsorted(moments, begin, side="right")) - 1
        last = int(np.searchsorted(moments, end, side="left"))
        edges = np.clip(moments[first : last + 1], begin, end)
        lengths = np.diff(np.append(edges, end))[: last - first + 1]
        idle = free[first : last + 1][: len(lengths)]
        wasted += float((lengths * np.where(idle >= found.cores[row], idle, 0)).sum())
    span = float(schedule.end_time.max() - schedule.jobs.submit_time[0])
    return wasted / (found.machine.processors * span) if span > 0 else 0.0


def _steps(
    start: FloatArray, end: FloatArray, cores: npt.NDArray[np.int64]
) -> tuple[FloatArray, npt.NDArray[np.int64]]:
    times = np.concatenate([start, end])
    moments, inverse = np.unique(times, return_inverse=True)
    changes = np.zeros(len(moments), np.int64)
    np.add.at(changes, inverse, np.concatenate([cores, -cores]))
    return moments, changes


class RequestClass(NamedTuple):
    """A class of requests: its place among others, and its name."""

    order: float
    name: str


def waits_by(
    found: NodeSchedule, class_of: Callable[[Request], RequestClass]
) -> list[WaitsOfClass]:
    """Returns the waits of classes of jobs, in their order.

    Args:
        found: the schedule.
        class_of: the class of a request, such as `gpu_class` and `memory_class`.
    """
    classes = [class_of(request) for request in found.demands.requests]
    wait = found.schedule.start_time - found.schedule.jobs.submit_time
    rows = []
    for one in sorted(set(classes)):
        shapes = np.array([other == one for other in classes])
        chosen = wait[shapes[found.demands.shape]]
        if len(chosen):
            rows.append(
                WaitsOfClass(one.name, len(chosen), float(chosen.mean()), float(np.median(chosen)))
            )
    return rows


def gpu_class(request: Request) -> RequestClass:
    """Returns the class of the GPUs that a job asks for."""
    if request.gpus is None:
        return RequestClass(0, "no GPU")
    return RequestClass(request.gpus.count, str(request.gpus))


def memory_class(request: Request) -> RequestClass:
    """Returns the class of the memory for each core of a job: up to the next power of two."""
    if request.memory is None:
        return RequestClass(0, "no memory")
    mib = 1 << (-(-request.memory_least // request.processors) - 1).bit_length()
    return RequestClass(mib, f"up to {size_text(mib)} a core")
