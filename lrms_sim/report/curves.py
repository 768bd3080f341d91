"""Curves as wide as the page: queue and utilization over time, and how many have waited at most so long."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator, StrMethodFormatter

from lrms_sim.analysis import occupancy
from lrms_sim.report import series, svg
from lrms_sim.report.parts import WIDE
from lrms_sim.workload.jobs import FloatArray
from lrms_sim.workload.schedule import Schedule

LEFT: Final = 58.0

INNER: Final = WIDE - LEFT - 8.0
"""Width of the plotting area."""


@dataclass(frozen=True, slots=True)
class Curve:
    """How a run is drawn.

    Attributes:
        color: a name of `svg.color`.
        line: width of its line; 0 for none.
        area: opacity of the area below it, 0 to 1; 0 for none.
        name: in the legend; none if empty.
    """

    color: str
    line: float = 0.0
    area: float = 0.0
    name: str = ""


def load(
    runs: Sequence[tuple[Schedule, Curve]],
    machine: int,
    edges: FloatArray,
    *,
    since: str,
    key: str,
    title: str,
    description: str,
) -> str:
    """Draws the queue and the utilization of a machine over time, means over equal bins.

    Runs are drawn from the bottom up. `edges` of the bins are in seconds, `since` names the origin
    of the axis, `key` is unique within the page, and `title` and `description` are for screen
    readers.
    """
    size = runs[0][0].machines[machine].processors
    height = 262.0
    with _figure(height) as figure:
        queue = figure.add_axes((LEFT / WIDE, 148 / height, INNER / WIDE, 84 / height))
        usage = figure.add_axes((LEFT / WIDE, 34 / height, INNER / WIDE, 70 / height))
        unit, length, ticks = series.time_axis(float(edges[0]), float(edges[-1]))
        for axes, measure, factor in (
            (queue, occupancy.waiting_processors, 1.0),
            (usage, occupancy.busy_processors, 1.0 / size),
        ):
            svg.bare(axes)
            axes.grid(color=svg.color("grid"), linewidth=0.8)
            axes.set_axisbelow(True)
            for schedule, curve in runs:
                times, values = measure(schedule, machine)
                mean = series.binned_mean(times, values.astype(np.float64), edges) * factor
                ink = svg.color(curve.color)
                if curve.area:
                    axes.stairs(mean, edges, fill=True, color=ink, alpha=curve.area, linewidth=0)
                if curve.line:
                    axes.stairs(mean, edges, baseline=None, color=ink, linewidth=curve.line)
            axes.axhline(0.0, color=svg.color("muted"), linewidth=0.8)
            axes.set_xlim(edges[0], edges[-1])
            axes.set_xticks(ticks, [f"{tick / length:g}" for tick in ticks])
        queue.set_xticklabels([])
        queue.set_ylim(0, max(queue.get_ylim()[1], 1.0))
        queue.yaxis.set_major_locator(MaxNLocator(4, integer=True))
        queue.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
        usage.set_ylim(0, 1.02)
        usage.set_yticks([0, 0.5, 1], ["0%", "50%", "100%"])
        usage.set_xlabel(f"{unit} since {since}", color=svg.color("muted"))
        svg.heading(queue, "Processors the waiting jobs ask for", x=-50 / INNER, height=84)
        svg.heading(usage, "Utilization of the machine", x=-50 / INNER, height=70)
        _legend(queue, [curve for _, curve in runs], INNER, 84)
        return svg.render(figure, key=key, title=title, description=description)


def within(
    times: Sequence[tuple[FloatArray, Curve]],
    work: FloatArray,
    limits: Callable[[FloatArray], tuple[float, float]],
    *,
    verb: str,
    key: str,
    title: str,
    description: str,
) -> str:
    """Draws which part of all jobs, and of all work, has been through within a time.

    Times are in seconds, more than 0, of the same jobs in each run. `limits` returns the ends of
    the axis for the weights of the jobs, and `verb` says what they have been through.
    """
    height = 208.0
    width = (INNER - 46) / 2
    with _figure(height) as figure:
        for column, (what, weights) in enumerate((("jobs", np.ones(len(work))), ("work", work))):
            left = LEFT + column * (width + 46)
            low, high = limits(weights)
            axes = figure.add_axes((left / WIDE, 30 / height, width / WIDE, 140 / height))
            svg.bare(axes)
            axes.set_xscale("log")
            axes.set_xlim(low, high)
            axes.set_ylim(0, 1.02)
            axes.grid(color=svg.color("grid"), linewidth=0.8)
            for values, curve in times:
                places, shares = series.distribution(values, weights)
                axes.step(
                    [low, *places, high],
                    [0.0, *shares, 1.0],
                    where="post",
                    color=svg.color(curve.color),
                    linewidth=curve.line,
                )
            ticks = series.log_time_ticks(low, high)
            axes.minorticks_off()
            axes.set_xticks([place for place, _ in ticks], [label for _, label in ticks])
            axes.set_yticks([0, 0.5, 1], ["0%", "50%", "100%"])
            shift = -50 / width if column == 0 else -38 / width
            svg.heading(axes, f"Share of {what} {verb} within", x=shift, height=140)
            if column:
                _legend(axes, [curve for _, curve in times], width, 140)
        return svg.render(figure, key=key, title=title, description=description)


@contextmanager
def _figure(height: float) -> Iterator[Figure]:
    with svg.drawing():
        yield svg.new_figure(WIDE, height)


def _legend(axes: Axes, curves: Sequence[Curve], width: float, height: float) -> None:
    """Writes the legend at the right end of the heading's line."""
    y = 1 + 12 / height
    end = 1.0
    for curve in reversed(curves):
        if not curve.name:
            continue
        axes.text(end, y, curve.name, transform=axes.transAxes, ha="right", color=svg.color("ink"))
        swatch = end - (6.4 * len(curve.name) + 14.0) / width
        tall = 9.0 if curve.area else max(curve.line, 2.0)
        axes.add_patch(
            Rectangle(
                (swatch, y + (4.0 - tall / 2) / height),
                12 / width,
                tall / height,
                transform=axes.transAxes,
                facecolor=svg.color(curve.color),
                alpha=curve.area or 1.0,
                linewidth=0,
                clip_on=False,
            )
        )
        end = swatch - 12 / width
