"""Pictures of many sites: a heat map of who gave work to whom, and the spread of improvements.

The map is one grey picture that masks a rectangle of the page's colour, so that a thousand sites
take as little room as forty and the page's dark mode holds for it too.
"""

import base64
import io
import math
from typing import Final

import numpy as np
from matplotlib.image import imsave

from lrms_sim.report import svg
from lrms_sim.report.parts import WIDE
from lrms_sim.report.templates import filled
from lrms_sim.workload.jobs import FloatArray
from scenarios.report import wording
from scenarios.run.results import ScenarioResult

CELLS_MAX: Final = 200
"""Most cells on a side; beyond, neighbours in the order of work share one."""

NAMED_MAX: Final = 40
"""With at most so many sites each line of the map has its site's name."""

_LEFT: Final = 110.0
_TOP: Final = 34.0
_SIDE: Final = 560.0
_FAINTEST: Final = 0.14
_SPAN_MAX: Final = 1e4
"""Ratio of the darkest to the faintest cell; smaller values are as faint."""


def flow_map(result: ScenarioResult) -> str:
    """Draws the processor time that each site's users had run at each other site.

    Sites are in the order of the work that their users submitted, the most first. Jobs that stayed
    at home are left out; at least one was exchanged.
    """
    own = result.flow_area.sum(axis=1)
    order = np.lexsort((np.arange(len(own)), -own))
    flow = result.flow_area[np.ix_(order, order)].copy()
    np.fill_diagonal(flow, 0.0)
    group = math.ceil(len(order) / CELLS_MAX)
    starts = np.arange(0, len(order), group)
    cells = np.add.reduceat(np.add.reduceat(flow, starts, axis=0), starts, axis=1)
    most = float(cells.max())
    least = max(float(cells[cells > 0].min()), most / _SPAN_MAX)
    names = [result.sites[k].name for k in order]
    parts = [1.0 - number / 4 for number in range(5)] if most > least else [1.0]
    return filled(
        "scenarios.report",
        "heat_map.html",
        about=_about(result, names, group),
        data=_picture(cells, least, most),
        labels=_labels(names, group),
        step=_SIDE / len(starts),
        named=len(names) <= NAMED_MAX,
        shades=[
            (_FAINTEST + (1 - _FAINTEST) * part, _hours(least * (most / least) ** part))
            for part in parts
        ],
        left=_LEFT,
        top=_TOP,
        side=_SIDE,
        wide=WIDE,
    )


def _about(result: ScenarioResult, names: list[str], group: int) -> str:
    cell = (
        "each cell is a pair of sites" if group == 1 else f"each cell is {group} by {group} sites"
    )
    pairs = np.count_nonzero(result.flow_jobs) - np.count_nonzero(np.diagonal(result.flow_jobs))
    return (
        f"{wording.count(len(names))} sites in the order of their users' work, from {names[0]} to "
        f"{names[-1]}; {cell}. Jobs went between {wording.count(int(pairs))} of "
        f"{wording.count(len(names) * (len(names) - 1))} pairs of sites."
    )


def _picture(cells: FloatArray, least: float, most: float) -> str:
    """Returns the map itself, PNG as base64: a logarithmic scale of greys behind which the colour shows."""
    span = math.log(most / least) or 1.0
    shade = _FAINTEST + (1.0 - _FAINTEST) * np.log(np.maximum(cells, least) / least) / span
    shade = np.where(cells > 0, shade if most > least else 1.0, 0.0)
    out = io.BytesIO()
    imsave(out, shade, format="png", cmap="gray", vmin=0.0, vmax=1.0, metadata={"Software": ""})
    return base64.b64encode(out.getvalue()).decode("ascii")


def _labels(names: list[str], group: int) -> list[tuple[int, str]]:
    if len(names) <= NAMED_MAX:
        return [(row, wording.shorten(name, 15)) for row, name in enumerate(names)]
    ticks = sorted({0, *(round(len(names) * part / 5) - 1 for part in range(1, 6))})
    return [(rank // group, f"{wording.count(rank + 1)}.") for rank in ticks]


def _hours(processor_s: float) -> str:
    hours = processor_s / 3600
    return f"{hours:,.0f}" if hours >= 10 else f"{hours:.2g}"


def improvement_spread(result: ScenarioResult) -> str:
    """Draws the improvement of every site with own jobs, ranked, and the size of its machine."""
    values = np.array([site.awrt_improvement for site in result.sites])
    sizes = np.array([site.processors for site in result.sites], dtype=np.float64)
    known = np.isfinite(values)
    values, sizes = values[known], sizes[known]
    ranked = np.sort(values)[::-1]
    low = float(min(0.0, max(ranked[-1], -1.0)))
    high = float(max(ranked[0], 0.05))
    below = int(np.count_nonzero(ranked < low))
    height = 250.0
    cut = f"; {wording.count(below)} below {wording.change(low)} stand at the edge" if below else ""
    about = (
        f"{wording.count(int((ranked >= wording.UNCHANGED).sum()))} of {wording.count(len(ranked))} sites "
        f"gain, {wording.count(int((ranked <= -wording.UNCHANGED).sum()))} lose; median "
        f"{wording.change(float(np.median(ranked)))}{cut}."
    )
    with svg.drawing():
        figure = svg.new_figure(WIDE, height)
        for column, heading in enumerate(("Sites, best first", "Sites by size (processors)")):
            x = 58.0 + column * (WIDE / 2 + 8)
            axes = figure.add_axes((x / WIDE, 34 / height, (WIDE / 2 - 66) / WIDE, 176 / height))
            svg.bare(axes)
            axes.grid(color=svg.color("grid"), linewidth=0.8)
            axes.set_axisbelow(True)
            axes.set_ylim(low - 0.03 * (high - low), high + 0.03 * (high - low))
            axes.yaxis.set_major_formatter(
                lambda value, _: f"{100 * value:+.0f}%".replace("+0%", "0%")
            )
            axes.axhline(0.0, color=svg.color("ink"), linewidth=0.9)
            if column:
                axes.set_xscale("log", base=2)
                axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
                x_values, y_values = sizes, values
            else:
                x_values, y_values = np.arange(1.0, len(ranked) + 1), ranked
            y_values = np.maximum(y_values, low)
            for name, mask in (("gain", y_values >= 0), ("loss", y_values < 0)):
                axes.plot(
                    x_values[mask],
                    y_values[mask],
                    linestyle="none",
                    marker="o",
                    markersize=3.2,
                    markeredgewidth=0,
                    color=svg.color(name),
                    alpha=0.7,
                )
            svg.heading(axes, heading, x=-50 / (WIDE / 2 - 66), height=176)
        return svg.render(
            figure, key="spread", title="Improvement of every site", description=about
        )
