"""What the jobs of a log ask of a machine of nodes. The rules are in docs/nodes.md."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal

import numpy as np
import numpy.typing as npt

from lrms_sim.machine.demand_options import DemandOptions
from lrms_sim.machine.node_kinds import NodeMachine
from lrms_sim.machine.nodes import Demands, misfits
from lrms_sim.workload.jobs import BoolArray, Int32Array, JobTable
from lrms_sim.workload.preparation import Prepared
from lrms_sim.workload.preparation_report import PreparationEntry, Treatment
from lrms_sim.workload.requests import MEMORY_MAX, Memory, Request
from lrms_sim.workload.swf_log import SwfLog

KIB: Final = 1024.0


@dataclass(frozen=True, slots=True)
class PreparedOnNodes:
    """Jobs that a machine of nodes can run, and what they ask of it.

    Attributes:
        prepared: the jobs, and how they were prepared.
        demands: rows as in `prepared.jobs`.
    """

    prepared: Prepared
    demands: Demands

    def of(self, jobs: JobTable) -> Demands:
        """Returns the demands of some of the jobs."""
        ids = self.prepared.jobs.job_id
        order = np.argsort(ids, kind="stable")
        return self.demands.select(order[np.searchsorted(ids[order], jobs.job_id)])


def on_nodes(
    log: SwfLog,
    prepared: Prepared,
    machine: NodeMachine,
    options: DemandOptions,
    requests: Mapping[int, Request],
    *,
    too_wide: Literal["drop", "error"] = "drop",
) -> PreparedOnNodes:
    """Prepares a log that has been prepared for as many processors for a machine of nodes.

    Args:
        log: the records.
        prepared: of this log.
        machine: its nodes.
        options: the rules.
        requests: by the number of a job, what it asks for; others ask for their processors, and for the
            memory that the log tells.
        too_wide: what becomes of jobs that do not fit on the empty machine.

    Raises:
        ValueError: a job does not fit, and that is an error.
    """
    jobs = prepared.jobs
    memory, from_other_field = _memory(log, prepared, options)
    demands = _demands(jobs, memory, requests)
    widths = np.array([request.processors for request in demands.requests], np.int64)
    width = widths[demands.shape]
    wrong = np.isin(demands.shape, misfits(machine, demands))
    if too_wide == "error" and wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(
            f"{log.path}: job {jobs.job_id[row]} asks for {demands.requests[demands.shape[row]]}, which "
            f"machine {machine.name!r} does not have even when it is empty "
            f"({np.count_nonzero(wrong)} such jobs; too_wide = 'drop' leaves them out)"
        )
    given = np.isin(jobs.job_id, np.fromiter(requests, np.int64, len(requests)))
    entries = list(prepared.report.entries)

    def note(reason: str, description: str, rows: BoolArray, treatment: Treatment) -> None:
        if count := int(np.count_nonzero(rows)):
            entries.append(PreparationEntry(reason, description, count, treatment))

    note("too-wide-for-nodes", "more than the machine's nodes have", wrong, "dropped")
    note("request", "request taken from the file of requests", given & ~wrong, "altered")
    changed = (width != jobs.processors) & ~wrong
    note("request-width", "processors unlike the request's, the latter taken", changed, "altered")
    if options.memory_from != "none":
        of_log = ~given & ~wrong
        other = "used" if options.memory_from == "requested" else "requested"
        words = f"{options.memory_from} memory unknown, {other} taken"
        note("memory-from-other-field", words, from_other_field & of_log, "altered")
        note("memory-unknown", "memory unknown, none taken", (memory == 0) & of_log, "kept")
    unused = np.ones(len(requests) - int(np.count_nonzero(given)), np.bool_)
    note("request-without-job", "requests of jobs that are not there", unused, "ignored")
    rows = np.flatnonzero(~wrong)
    kept = replace(jobs, processors=width.astype(np.int32)).select(rows)
    report = replace(prepared.report, jobs_prepared=len(rows), entries=tuple(entries))
    return PreparedOnNodes(Prepared(kept, report, prepared.records[rows]), demands.select(rows))


def _memory(
    log: SwfLog, prepared: Prepared, options: DemandOptions
) -> tuple[npt.NDArray[np.int64], BoolArray]:
    """Returns the memory of each job, MiB for each processor, and whether it came from the other field."""
    rows = prepared.records
    if options.memory_from == "none":
        return np.zeros(len(rows), np.int64), np.zeros(len(rows), np.bool_)
    first, second = log.memory_requested[rows], log.memory_used[rows]
    if options.memory_from == "used":
        first, second = second, first
    kib = np.where(first > 0, first, np.maximum(second, 0.0))
    mib = np.minimum(np.ceil(kib / KIB), float(MEMORY_MAX)).astype(np.int64)
    return mib, (first <= 0) & (second > 0)


def _demands(
    jobs: JobTable, memory: npt.NDArray[np.int64], requests: Mapping[int, Request]
) -> Demands:
    pairs, shape = np.unique(
        np.column_stack([jobs.processors.astype(np.int64), memory]), axis=0, return_inverse=True
    )
    known = [
        Request(tasks=width, memory=Memory(mib) if mib else None) for width, mib in pairs.tolist()
    ]
    shapes: Int32Array = shape.reshape(-1).astype(np.int32)
    numbers: dict[Request, int] = {}
    for row, job in enumerate(jobs.job_id.tolist() if requests else ()):
        request = requests.get(job)
        if request is not None:
            number = numbers.setdefault(request, len(known))
            if number == len(known):
                known.append(request)
            shapes[row] = number
    return Demands(tuple(known), shapes)
