"""The picture of who gave work to whom: ribbons from givers on the left to takers on the right."""

from collections.abc import Sequence
from typing import Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import PathPatch, Rectangle
from matplotlib.path import Path

from lrms_sim.report import svg
from lrms_sim.report.parts import HALF
from lrms_sim.report.svg import NAME_LENGTH
from lrms_sim.workload.jobs import FloatArray
from scenarios.report import wording
from scenarios.run.results import ScenarioResult


def flow_ribbons(result: ScenarioResult, *, by_area: bool) -> str:
    """Draws who gave work to whom: givers on the left, takers on the right.

    At least one job was exchanged. With `by_area` ribbons measure processor time instead of jobs.
    """
    flow = (result.flow_area if by_area else result.flow_jobs).astype(np.float64).copy()
    np.fill_diagonal(flow, 0.0)
    key, heading = ("flow-area", "Processor time") if by_area else ("flow-jobs", "Jobs")

    def amount(value: float) -> str:
        return _processor_time(value) if by_area else wording.count(round(value))

    names = [site.name for site in result.sites]
    pairs = [(i, j) for i in range(len(names)) for j in range(len(names)) if flow[i, j] > 0]
    described = "; ".join(f"{names[i]} gave {names[j]} {amount(flow[i, j])}" for i, j in pairs)
    height = max(226.0, 86.0 + 42.0 * len(names))
    with svg.drawing():
        figure = svg.new_figure(HALF, height)
        axes = figure.add_axes((0.0, 0.0, 1.0, (height - 50) / height))
        axes.set_axis_off()
        axes.set_xlim(0, HALF)
        axes.set_ylim(height - 50, 0)
        scale, gap = _scale(flow, height - 52)
        giving = _stack(flow.sum(axis=1), scale, gap)
        taking = _stack(flow.sum(axis=0), scale, gap)
        _ribbons(axes, flow, giving, taking, scale)
        labels = [wording.shorten(name, NAME_LENGTH) for name in names]
        given, taken = flow.sum(axis=1), flow.sum(axis=0)
        _nodes(axes, "left", giving, list(zip(labels, map(amount, given), strict=True)))
        _nodes(axes, "right", taking, list(zip(labels, map(amount, taken), strict=True)))
        figure.text(0, 1 - 12 / height, heading, fontweight="bold")
        for x, text, align in ((96.0, "given by", "right"), (HALF - 96.0, "taken by", "left")):
            figure.text(x / HALF, 1 - 34 / height, text, ha=align, color=svg.color("muted"))
        return svg.render(
            figure,
            key=key,
            title=f"{heading}: who gave to whom",
            description=f"{described}.",
        )


def _scale(flow: FloatArray, height: float) -> tuple[float, float]:
    """Returns units for each job (or processor-second), and units between two sites' blocks."""
    gaps = max(len(flow) - 1, 1)
    gap = min(26.0, height * 0.5 / gaps)
    return (height - gap * gaps - 12) / float(flow.sum()), gap


def _stack(totals: FloatArray, scale: float, gap: float) -> list[tuple[float, float]]:
    blocks, y = [], 6.0
    for total in totals:
        blocks.append((y, y + float(total) * scale))
        y += float(total) * scale + gap
    return blocks


def _ribbons(
    axes: Axes,
    flow: FloatArray,
    giving: Sequence[tuple[float, float]],
    taking: Sequence[tuple[float, float]],
    scale: float,
) -> None:
    left, right = 112.0, HALF - 112.0
    middle = (left + right) / 2
    start = [top for top, _ in giving]
    stop = [top for top, _ in taking]
    for i, j in np.ndindex(*flow.shape):
        width = flow[i, j] * scale
        if width <= 0:
            continue
        a, b = start[i], stop[j]
        start[i] += width
        stop[j] += width
        upper = [(left, a), (middle, a), (middle, b), (right, b)]
        lower = [(right, b + width), (middle, b + width), (middle, a + width), (left, a + width)]
        outline = Path(
            np.array([*upper, *lower, (left, a)]),
            [Path.MOVETO, *[Path.CURVE4] * 3, Path.LINETO, *[Path.CURVE4] * 3, Path.CLOSEPOLY],
        )
        # A thin edge keeps the narrowest ribbon visible.
        axes.add_patch(
            PathPatch(
                outline,
                facecolor=svg.site_color(i),
                edgecolor=svg.site_color(i),
                linewidth=0.5,
                alpha=0.62,
            )
        )


def _nodes(
    axes: Axes,
    side: Literal["left", "right"],
    nodes: Sequence[tuple[float, float]],
    labels: Sequence[tuple[str, str]],
) -> None:
    x = 104.0 if side == "left" else HALF - 112.0
    for index, (top, bottom) in enumerate(nodes):
        axes.add_patch(
            Rectangle(
                (x, top - 0.5),
                8,
                bottom - top + 1,
                facecolor=svg.site_color(index),
                linewidth=0,
            )
        )
        text_x = x - 8 if side == "left" else x + 16
        align: Literal["left", "right"] = "right" if side == "left" else "left"
        centre = (top + bottom) / 2
        name, amount = labels[index]
        axes.text(text_x, centre - 6.5, name, ha=align, va="center", fontweight="bold")
        axes.text(text_x, centre + 6.5, amount, ha=align, va="center", color=svg.color("muted"))


def _processor_time(value: float) -> str:
    """Returns processor-seconds in processor-hours, the unit sites account in."""
    hours = value / 3600
    return f"{hours:,.0f} ph" if hours >= 10 else f"{hours:.2g} ph"
