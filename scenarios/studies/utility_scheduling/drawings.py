"""The bars of the study's page, in the manner of the paper's figures."""

from collections.abc import Sequence

from matplotlib.ticker import FixedFormatter, FixedLocator

from lrms_sim.report import svg
from lrms_sim.report.parts import HALF
from scenarios.studies.common.charts import bare

Bars = Sequence[tuple[str, float, float]]
"""Name, value and half of the interval."""


def bar_chart(bars: Bars, *, key: str, title: str, digits: int, least: float) -> str:
    """Draws Figure 2 or 3: one bar for each policy, beginning at `least` instead of 0.

    `key` is unique within the page; figures have so many `digits` after the point.
    """
    height = 34 + 24 * len(bars)
    room = HALF - 170
    most = max(value + half for _, value, half in bars)
    with svg.drawing():
        figure = svg.new_figure(HALF, height)
        axes = figure.add_axes((124 / HALF, 6 / height, room / HALF, (height - 40) / height))
        bare(axes)
        axes.set_xlim(least, most + 0.02 * (most - least))
        axes.set_ylim(len(bars) - 0.5, -0.5)
        for place, (name, value, half) in enumerate(bars):
            shade = "alone" if place == 0 else "gain" if "learned" in name else "federated"
            axes.barh(place, value - least, 0.66, left=least, color=svg.color(shade), linewidth=0)
            axes.plot([value - half, value + half], [place, place], color=svg.color("ink"))
            axes.text(
                1.02,
                place,
                f"{value:.{digits}f}",
                transform=axes.get_yaxis_transform(),
                va="center",
                color=svg.color("ink"),
            )
        axes.yaxis.set_major_locator(FixedLocator(range(len(bars))))
        axes.yaxis.set_major_formatter(FixedFormatter([name for name, _, _ in bars]))
        axes.xaxis.set_major_locator(FixedLocator([]))
        svg.heading(axes, title, height=height - 40)
        text = "; ".join(f"{name}: {value:.{digits}f}" for name, value, _ in bars)
        return svg.render(figure, key=key, title=title, description=text)
