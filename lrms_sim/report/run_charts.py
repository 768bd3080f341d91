"""The charts of the page on one run: load and queue, processors by job, waits."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from lrms_sim.analysis import metrics
from lrms_sim.machine.nodes import NodeSchedule
from lrms_sim.report import curves, series
from lrms_sim.report.curves import INNER, LEFT, Curve
from lrms_sim.report.gantt import Bar, Gantt, Row, packed
from lrms_sim.report.parts import WIDE
from lrms_sim.report.time_axis import Axis
from lrms_sim.util import messages
from lrms_sim.workload.schedule import Schedule

GANTT_JOBS_MAX: Final = 1_500
"""Most jobs that are drawn one by one; more are no picture any more, and no small page."""

GANTT_BARS_MAX: Final = 4_000
"""Most bars; a job on scattered processors has several."""


def span(schedule: Schedule) -> tuple[float, float]:
    """Returns the first submission and the last end, in seconds."""
    return float(schedule.jobs.submit_time.min()), float(schedule.end_time.max())


def over_time(schedule: Schedule) -> str:
    """Draws queue and utilization of the one machine, means over equal bins; needs a job."""
    edges = series.bin_edges(*span(schedule))
    return curves.load(
        [(schedule, Curve("site-0", 1.4, 0.35))],
        0,
        edges,
        since="time 0",
        key="over-time",
        title="Queue and utilization over time",
        description=(
            f"Means per {series.width_in_words(edges)}. Over the run the utilization is "
            f"{messages.share(metrics.utilization(schedule, 0))}."
        ),
    )


def gantt(schedule: Schedule) -> str:
    """Draws the processors of each job, coloured by user; "" for too many jobs."""
    if len(schedule) > GANTT_JOBS_MAX:
        return ""
    jobs = schedule.jobs
    size = schedule.machines[0].processors
    start, end = schedule.start_time.tolist(), schedule.end_time.tolist()
    counts = jobs.processors.tolist()
    bars = [
        Bar(
            start[row],
            end[row],
            title=f"job {number}: {counts[row]:,} processor{'s' * (counts[row] != 1)} for "
            f"{messages.duration(end[row] - start[row])}, after a wait of {messages.duration(wait)}",
            color=max(0, user),
            kind="deep",
        )
        for row, (number, user, wait) in enumerate(
            zip(jobs.job_id.tolist(), jobs.user.tolist(), schedule.wait_time.tolist(), strict=True)
        )
    ]
    placed = [bar for pieces in packed(bars, counts, size) for bar in pieces]
    if len(placed) > GANTT_BARS_MAX:
        return ""
    # The same axis as the curves above it.
    edges = series.bin_edges(*span(schedule))
    axis = Axis(float(edges[0]), float(edges[-1]), LEFT, LEFT + INNER, 0.0)
    row = Row("", 240.0, placed, size, sized=True)
    title = (
        f"Gantt chart: {len(schedule):,} jobs on {size:,} processors; time to the right, processors "
        "upward. A schedule does not say which processors a job has; here it has the lowest "
        "that are free."
    )
    return str(Gantt("gantt", title, axis, [row], WIDE, gap=4.0, heading="Processors"))


def node_gantt(found: NodeSchedule) -> str:
    """Draws which cores of which nodes each job had, a row for each kind; "" where that is not known."""
    schedule, jobs = found.schedule, found.schedule.jobs
    if found.places is None:
        return ""
    start, end = schedule.start_time.tolist(), schedule.end_time.tolist()
    on_node: dict[int, list[tuple[Bar, int]]] = {}
    for row, (number, user, place) in enumerate(
        zip(jobs.job_id.tolist(), jobs.user.tolist(), found.places, strict=True)
    ):
        request = found.demands.requests[found.demands.shape[row]]
        title = f"job {number}: {request}, for {messages.duration(end[row] - start[row])}"
        bar = Bar(start[row], end[row], title=title, color=max(0, user), kind="deep")
        for node, cores in place:
            on_node.setdefault(node, []).append((bar, cores))
    rows, first, bars = [], 0, 0
    for kind in found.machine.kinds:
        drawn = [
            replace(piece, top=piece.top + number * kind.cores)
            for number in range(kind.nodes)
            for pieces in _on_node(on_node.get(first + number, []), kind.cores)
            for piece in pieces
        ]
        first += kind.nodes
        bars += len(drawn)
        units = kind.nodes * kind.cores
        below = f"{kind.nodes:,} × {kind.cores:,} cores"
        rows.append(
            Row(kind.name, max(48.0, min(240.0, 6.0 * kind.nodes)), drawn, units, below=below)
        )
    if bars > GANTT_BARS_MAX:
        return ""
    edges = series.bin_edges(*span(schedule))
    axis = Axis(float(edges[0]), float(edges[-1]), 2 * LEFT, LEFT + INNER, 0.0)
    title = (
        f"Gantt chart: {len(schedule):,} jobs on the nodes that they had; time to the right, a row for each kind, "
        "its first node at the top, and in a node its cores."
    )
    return str(Gantt("node-gantt", title, axis, rows, WIDE, gap=6.0, heading="Nodes"))


def _on_node(held: Sequence[tuple[Bar, int]], cores: int) -> list[list[Bar]]:
    return packed([bar for bar, _ in held], [count for _, count in held], cores)


def waits(schedule: Schedule) -> str:
    """Draws which part of all jobs, and of all work, has waited at most so long; needs a job."""
    # Who starts within a second has not waited; the axis is logarithmic.
    values = np.maximum(schedule.wait_time, 1.0)
    high = max(1.05 * float(values.max()), 60.0)
    at_once = float(np.mean(schedule.wait_time < 1.0))
    return curves.within(
        [(values, Curve("site-0", 1.6))],
        schedule.jobs.resource_consumption,
        lambda _: (1.0, high),
        verb="started",
        key="waits",
        title="Waits of the jobs",
        description=(
            f"Cumulative distributions on a logarithmic scale. {messages.share(at_once)} of the "
            f"jobs start within a second, half of all within "
            f"{messages.duration(float(np.median(schedule.wait_time)))}."
        ),
    )
