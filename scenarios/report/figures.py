"""The charts of a report: improvements, and every site over time.

Each function takes the result and returns an `<svg>` element. Two colours carry one meaning
throughout: grey is the site alone, blue the site in the federation.
"""

from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator, StrMethodFormatter

from lrms_sim import occupancy
from lrms_sim.jobs import FloatArray, Int64Array
from lrms_sim.pages import series, svg
from lrms_sim.pages.parts import HALF, WIDE
from lrms_sim.pages.svg import NAME_LENGTH
from lrms_sim.schedule import Schedule
from scenarios.report import words
from scenarios.run.results import ScenarioResult

_ALONE_ALPHA = 0.42


def improvement_bars(result: ScenarioResult) -> str:
    """Draws the improvement of AWRT of every site as horizontal bars."""
    values = [site.awrt_improvement for site in result.sites]
    colors = [svg.color("gain" if value >= 0 else "loss") for value in values]
    text = "; ".join(f"{site.name} {words.change(site.awrt_improvement)}" for site in result.sites)
    return _bars(
        result,
        values,
        colors,
        key="improvement",
        heading="Improvement of AWRT: positive is better",
        description=f"Improvement of average weighted response time over each site alone: {text}.",
    )


def area_bars(result: ScenarioResult) -> str:
    """Draws ΔSA of every site as horizontal bars."""
    values = [site.squashed_area_change for site in result.sites]
    text = "; ".join(
        f"{site.name} {words.change(site.squashed_area_change)}" for site in result.sites
    )
    return _bars(
        result,
        values,
        [svg.color("work")] * len(values),
        key="area",
        heading="ΔSA, change of work: more than the own users' is positive",
        description=f"Change of the work each machine did over each site alone: {text}.",
    )


def _bars(
    result: ScenarioResult,
    values: Sequence[float],
    colors: Sequence[str],
    *,
    key: str,
    heading: str,
    description: str,
) -> str:
    count = len(values)
    height = 44.0 + 30.0 * count
    with svg.drawing():
        figure = svg.new_figure(HALF, height)
        axes = figure.add_axes((92 / HALF, 8 / height, (HALF - 100) / HALF, 30 * count / height))
        svg.bare(axes)
        finite = np.nan_to_num(np.asarray(values, dtype=np.float64))
        low, high = min(0.0, float(finite.min())), max(0.0, float(finite.max()))
        span = (high - low) or 0.01
        # Room for the labels at the ends of the bars.
        axes.set_xlim(low - (0.32 * span if low < 0 else 0.0), high + 0.26 * span)
        axes.set_ylim(count - 0.5, -0.5)
        axes.set_xticks([])
        axes.set_yticks([])
        axes.barh(range(count), finite, height=0.56, color=colors, linewidth=0)
        axes.axvline(0.0, color=svg.color("ink"), linewidth=0.9)
        for row, (site, value) in enumerate(zip(result.sites, finite, strict=True)):
            axes.text(
                -10 / (HALF - 100),
                row,
                words.shorten(site.name, NAME_LENGTH),
                transform=axes.get_yaxis_transform(),
                ha="right",
                va="center",
                color=svg.color("ink"),
            )
            axes.text(
                value + 0.015 * span * (-1 if value < 0 else 1),
                row,
                words.change(values[row]),
                ha="right" if value < 0 else "left",
                va="center",
                color=svg.color("ink"),
                fontweight="bold",
            )
        svg.heading(axes, heading, x=-92 / (HALF - 100), height=30.0 * count)
        return svg.render(figure, key=key, title=heading, description=description)


def site_over_time(result: ScenarioResult, site: int) -> str:
    """Draws queue and utilization of a site over time, alone and federated."""
    info = result.sites[site]
    begin, end = time_span(result)
    edges = series.bin_edges(begin, end)
    height = 262.0
    with svg.drawing():
        figure = svg.new_figure(WIDE, height)
        queue = figure.add_axes((58 / WIDE, 148 / height, (WIDE - 66) / WIDE, 84 / height))
        usage = figure.add_axes((58 / WIDE, 34 / height, (WIDE - 66) / WIDE, 70 / height))
        for axes, measure, factor in (
            (queue, occupancy.waiting_processors, 1.0),
            (usage, occupancy.busy_processors, 1.0 / info.processors),
        ):
            alone = _binned(measure, result.schedule_alone, site, edges) * factor
            federated = _binned(measure, result.schedule, site, edges) * factor
            _before_after(axes, edges, alone, federated)
            axes.set_xlim(edges[0], edges[-1])
        unit, size, ticks = series.time_axis(float(edges[0]), float(edges[-1]))
        for axes in (queue, usage):
            axes.set_xticks(ticks, [f"{tick / size:g}" for tick in ticks])
        queue.set_xticklabels([])
        queue.set_ylim(0, max(queue.get_ylim()[1], 1.0))
        queue.yaxis.set_major_locator(MaxNLocator(4, integer=True))
        queue.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
        usage.set_ylim(0, 1.02)
        usage.set_yticks([0, 0.5, 1], ["0%", "50%", "100%"])
        usage.set_xlabel(f"{unit} since the scenario's time 0", color=svg.color("muted"))
        svg.heading(queue, "Processors the waiting jobs ask for", x=-50 / (WIDE - 66), height=84)
        svg.heading(usage, "Utilization of the machine", x=-50 / (WIDE - 66), height=70)
        _legend(queue, height=84)
        return svg.render(
            figure,
            key=f"time-{site}",
            title=f"{info.name}: queue and utilization over time",
            description=(
                f"Means per {series.width_in_words(edges)}, alone and federated. Utilization over "
                f"the run is {words.share(info.utilization_alone)} alone and "
                f"{words.share(info.utilization)} in the federation."
            ),
        )


def time_span(result: ScenarioResult) -> tuple[float, float]:
    """Returns the first submission and the last completion of both runs, in seconds."""
    if not result.jobs:
        return 0.0, 1.0
    begin = float(result.schedule.jobs.submit_time[0])
    end = max(result.schedule.end_time.max(), result.schedule_alone.end_time.max())
    return begin, float(end)


def _binned(
    measure: Callable[[Schedule, int], tuple[FloatArray, Int64Array]],
    schedule: Schedule,
    site: int,
    edges: FloatArray,
) -> FloatArray:
    times, values = measure(schedule, site)
    return series.binned_mean(times, values.astype(np.float64), edges)


def _before_after(axes: Axes, edges: FloatArray, alone: FloatArray, federated: FloatArray) -> None:
    svg.bare(axes)
    axes.grid(color=svg.color("grid"), linewidth=0.8)
    axes.set_axisbelow(True)
    axes.stairs(alone, edges, fill=True, color=svg.color("alone"), alpha=_ALONE_ALPHA, linewidth=0)
    axes.stairs(federated, edges, baseline=None, color=svg.color("federated"), linewidth=1.5)
    axes.axhline(0.0, color=svg.color("muted"), linewidth=0.8)


def response_times(result: ScenarioResult, site: int) -> str:
    """Draws the distribution of the response times of a site's own jobs, alone and federated.

    Args:
        result: the run.
        site: index of a site with at least one own job.
    """
    info = result.sites[site]
    own = result.schedule.submitted_to == site
    alone = result.schedule_alone.response_time[own]
    federated = result.schedule.response_time[own]
    work = result.schedule.jobs.resource_consumption[own]
    height = 208.0
    with svg.drawing():
        figure = svg.new_figure(WIDE, height)
        width = (WIDE - 58 - 8 - 46) / 2
        for column, (heading, weights) in enumerate(
            (
                ("Share of jobs finished within", np.ones(len(work))),
                ("Share of work finished within", work),
            )
        ):
            x = 58 + column * (width + 46)
            low, high = _limits((alone, federated), weights)
            axes = figure.add_axes((x / WIDE, 30 / height, width / WIDE, 140 / height))
            svg.bare(axes)
            axes.set_xscale("log")
            axes.set_xlim(low, high)
            axes.set_ylim(0, 1.02)
            axes.grid(color=svg.color("grid"), linewidth=0.8)
            for values, name, line in ((alone, "alone", 3.0), (federated, "federated", 1.5)):
                places, shares = series.distribution(values, weights)
                axes.step(
                    [low, *places, high],
                    [0.0, *shares, 1.0],
                    where="post",
                    color=svg.color(name),
                    linewidth=line,
                )
            ticks = series.log_time_ticks(1.2 * low, high)
            axes.minorticks_off()
            axes.set_xticks([place for place, _ in ticks], [label for _, label in ticks])
            axes.set_yticks([0, 0.5, 1], ["0%", "50%", "100%"])
            svg.heading(axes, heading, x=-50 / width if column == 0 else -38 / width, height=140)
            if column:
                _legend(axes, height=140, alone="line")
        medians = [
            words.duration(series.weighted_quantile(v, np.ones(len(v)), 0.5))
            for v in (alone, federated)
        ]
        return svg.render(
            figure,
            key=f"response-{site}",
            title=f"{info.name}: response times of its own jobs",
            description=(
                f"Cumulative distributions on a logarithmic scale. Median response time "
                f"{medians[0]} alone, {medians[1]} in the federation."
            ),
        )


def _limits(samples: Sequence[FloatArray], weights: FloatArray) -> tuple[float, float]:
    """Returns the range of an axis that leaves out the lowest half percent of the weight."""
    low = min(series.weighted_quantile(values, weights, 0.005) for values in samples)
    high = max(float(values.max()) for values in samples)
    return max(low, 1e-3), 1.05 * max(high, 10 * low, 1e-2)


def _legend(axes: Axes, *, height: float, alone: Literal["area", "line"] = "area") -> None:
    """Writes which colour is which at the right end of the heading's line."""
    y = 1 + 12 / height
    width = axes.get_position().width * WIDE
    for right, name, text in ((0.0, "federated", "federated"), (84.0, "alone", "alone")):
        end = 1 - right / width
        axes.text(end, y, text, transform=axes.transAxes, ha="right", color=svg.color("ink"))
        swatch = end - (72.0 if name == "federated" else 46.0) / width
        tall, alpha = (3.0, 1.0) if alone == "line" else (9.0, _ALONE_ALPHA)
        if name == "federated":
            tall, alpha = 2.0, 1.0
        axes.add_patch(
            Rectangle(
                (swatch, y + (4.0 - tall / 2) / height),
                12 / width,
                tall / height,
                transform=axes.transAxes,
                facecolor=svg.color(name),
                alpha=alpha,
                linewidth=0,
                clip_on=False,
            )
        )
