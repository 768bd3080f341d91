"""The charts of a report: improvements, and every site over time.

Each function takes the result and returns an `<svg>` element. Two colours carry one meaning
throughout: grey is the site alone, blue the site in the federation.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from lrms_sim.report import curves, series, svg
from lrms_sim.report.curves import Curve
from lrms_sim.report.parts import HALF
from lrms_sim.report.svg import NAME_LENGTH
from lrms_sim.workload.jobs import FloatArray
from scenarios.report import wording
from scenarios.run.results import ScenarioResult

_ALONE = Curve("alone", area=0.42, name="alone")
_FEDERATED = Curve("federated", line=1.5, name="federated")


def improvement_bars(result: ScenarioResult) -> str:
    """Draws the improvement of AWRT of every site as horizontal bars."""
    values = [site.awrt_improvement for site in result.sites]
    colors = [svg.color("gain" if value >= 0 else "loss") for value in values]
    text = "; ".join(
        f"{site.name} {wording.change(site.awrt_improvement)}" for site in result.sites
    )
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
        f"{site.name} {wording.change(site.squashed_area_change)}" for site in result.sites
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
                wording.shorten(site.name, NAME_LENGTH),
                transform=axes.get_yaxis_transform(),
                ha="right",
                va="center",
                color=svg.color("ink"),
            )
            axes.text(
                value + 0.015 * span * (-1 if value < 0 else 1),
                row,
                wording.change(values[row]),
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
    edges = series.bin_edges(*time_span(result))
    return curves.load(
        [(result.schedule_alone, _ALONE), (result.schedule, _FEDERATED)],
        site,
        edges,
        since="the scenario's time 0",
        key=f"time-{site}",
        title=f"{info.name}: queue and utilization over time",
        description=(
            f"Means per {series.width_in_words(edges)}, alone and federated. Utilization over "
            f"the run is {wording.share(info.utilization_alone)} alone and "
            f"{wording.share(info.utilization)} in the federation."
        ),
    )


def time_span(result: ScenarioResult) -> tuple[float, float]:
    """Returns the first submission and the last completion of both runs, in seconds."""
    if not result.jobs:
        return 0.0, 1.0
    begin = float(result.schedule.jobs.submit_time[0])
    end = max(result.schedule.end_time.max(), result.schedule_alone.end_time.max())
    return begin, float(end)


def response_times(result: ScenarioResult, site: int) -> str:
    """Draws the distribution of response times of a site's own jobs, alone and federated.

    The site has at least one own job.
    """
    info = result.sites[site]
    own = result.schedule.submitted_to == site
    alone = result.schedule_alone.response_time[own]
    federated = result.schedule.response_time[own]
    medians = [
        wording.duration(series.weighted_quantile(each, np.ones(len(each)), 0.5))
        for each in (alone, federated)
    ]
    return curves.within(
        [(alone, replace(_ALONE, line=3.0, area=0.0)), (federated, _FEDERATED)],
        result.schedule.jobs.resource_consumption[own],
        lambda weights: _limits((alone, federated), weights),
        verb="finished",
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
