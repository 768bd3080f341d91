"""The charts of the page on one run: load and queue over time, who holds which processors, waits."""

from typing import Final

import numpy as np
from matplotlib.ticker import MaxNLocator, StrMethodFormatter

from lrms_sim import metrics, occupancy, spelling
from lrms_sim.pages import series, svg
from lrms_sim.pages.gantt import Bar, Gantt, Row, packed
from lrms_sim.pages.parts import WIDE
from lrms_sim.pages.time_axis import Axis
from lrms_sim.schedule import Schedule

GANTT_JOBS_MAX: Final = 1_500
"""Most jobs that are drawn one by one; more are no picture any more, and no small page."""

GANTT_BARS_MAX: Final = 4_000
"""Most bars; a job on scattered processors has several."""

_LEFT, _RIGHT = 58.0, 8.0
_INNER: Final = WIDE - _LEFT - _RIGHT
_COLOR: Final = "site-0"


def span(schedule: Schedule) -> tuple[float, float]:
    """Returns the first submission and the last end, in seconds."""
    return float(schedule.jobs.submit_time.min()), float(schedule.end_time.max())


def over_time(schedule: Schedule) -> str:
    """Draws the queue and the utilization of the machine, means over equal bins.

    Args:
        schedule: of one machine, with at least one job.
    """
    size = schedule.machines[0].processors
    edges = series.bin_edges(*span(schedule))
    height = 262.0
    with svg.drawing():
        figure = svg.new_figure(WIDE, height)
        queue = figure.add_axes((_LEFT / WIDE, 148 / height, _INNER / WIDE, 84 / height))
        usage = figure.add_axes((_LEFT / WIDE, 34 / height, _INNER / WIDE, 70 / height))
        for axes, measure, factor in (
            (queue, occupancy.waiting_processors, 1.0),
            (usage, occupancy.busy_processors, 1.0 / size),
        ):
            times, values = measure(schedule, 0)
            mean = series.binned_mean(times, values.astype(np.float64), edges) * factor
            svg.bare(axes)
            axes.grid(color=svg.color("grid"), linewidth=0.8)
            axes.set_axisbelow(True)
            axes.stairs(mean, edges, fill=True, color=svg.color(_COLOR), alpha=0.35, linewidth=0)
            axes.stairs(mean, edges, baseline=None, color=svg.color(_COLOR), linewidth=1.4)
            axes.axhline(0.0, color=svg.color("muted"), linewidth=0.8)
            axes.set_xlim(edges[0], edges[-1])
        unit, length, ticks = series.time_axis(float(edges[0]), float(edges[-1]))
        for axes in (queue, usage):
            axes.set_xticks(ticks, [f"{tick / length:g}" for tick in ticks])
        queue.set_xticklabels([])
        queue.set_ylim(0, max(queue.get_ylim()[1], 1.0))
        queue.yaxis.set_major_locator(MaxNLocator(4, integer=True))
        queue.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
        usage.set_ylim(0, 1.02)
        usage.set_yticks([0, 0.5, 1], ["0%", "50%", "100%"])
        usage.set_xlabel(f"{unit} since time 0", color=svg.color("muted"))
        svg.heading(queue, "Processors the waiting jobs ask for", x=-50 / _INNER, height=84)
        svg.heading(usage, "Utilization of the machine", x=-50 / _INNER, height=70)
        return svg.render(
            figure,
            key="over-time",
            title="Queue and utilization over time",
            description=(
                f"Means per {series.width_in_words(edges)}. Over the run the utilization is "
                f"{spelling.share(metrics.utilization(schedule, 0))}."
            ),
        )


def gantt(schedule: Schedule) -> str:
    """Draws which processors each job holds when, in the colour of its user; "" for too many jobs.

    Args:
        schedule: of one machine, with at least one job.
    """
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
            f"{spelling.duration(end[row] - start[row])}, after a wait of {spelling.duration(wait)}",
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
    axis = Axis(float(edges[0]), float(edges[-1]), _LEFT, WIDE - _RIGHT, 0.0)
    row = Row("", 240.0, placed, size, sized=True)
    title = (
        f"Gantt chart: {len(schedule):,} jobs on {size:,} processors; time to the right, processors "
        "upward. A schedule does not say which processors a job has; here it has the lowest "
        "that are free."
    )
    return str(Gantt("gantt", title, axis, [row], WIDE, gap=4.0, heading="Processors"))


def waits(schedule: Schedule) -> str:
    """Draws which part of all jobs, and of all work, has waited at most so long.

    Args:
        schedule: with at least one job.
    """
    # Who starts within a second has not waited; the axis is logarithmic.
    values = np.maximum(schedule.wait_time, 1.0)
    work = schedule.jobs.resource_consumption
    low, high = 1.0, max(1.05 * float(values.max()), 60.0)
    height = 208.0
    with svg.drawing():
        figure = svg.new_figure(WIDE, height)
        width = (_INNER - 46) / 2
        for column, (heading, weights) in enumerate(
            (
                ("Share of jobs started within", np.ones(len(work))),
                ("Share of work started within", work),
            )
        ):
            left = _LEFT + column * (width + 46)
            axes = figure.add_axes((left / WIDE, 30 / height, width / WIDE, 140 / height))
            svg.bare(axes)
            axes.set_xscale("log")
            axes.set_xlim(low, high)
            axes.set_ylim(0, 1.02)
            axes.grid(color=svg.color("grid"), linewidth=0.8)
            x, y = series.distribution(values, weights)
            axes.step([*x, high], [*y, 1.0], where="post", color=svg.color(_COLOR), linewidth=1.6)
            ticks = series.log_time_ticks(low, high)
            axes.minorticks_off()
            axes.set_xticks([place for place, _ in ticks], [label for _, label in ticks])
            axes.set_yticks([0, 0.5, 1], ["0%", "50%", "100%"])
            svg.heading(axes, heading, x=-50 / width if column == 0 else -38 / width, height=140)
        at_once = float(np.mean(schedule.wait_time < 1.0))
        return svg.render(
            figure,
            key="waits",
            title="Waits of the jobs",
            description=(
                f"Cumulative distributions on a logarithmic scale. {spelling.share(at_once)} of the "
                f"jobs start within a second, half of all within "
                f"{spelling.duration(float(np.median(schedule.wait_time)))}."
            ),
        )
