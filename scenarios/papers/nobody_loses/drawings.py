"""The pictures of the study's page: every site, every month, as a mark on one scale."""

from collections.abc import Sequence

from matplotlib.ticker import MaxNLocator

from lrms_sim.pages import svg
from lrms_sim.pages.svg import WIDE
from scenarios.papers.bar_chart import percent
from scenarios.papers.charts import bare

LEFT = 172.0
RIGHT = 150.0
_ROW = 30.0
LOWEST = -40.0
"""Percent at which marks end: whoever lost more stands there, and is told in words."""


def strip_chart(rows: Sequence[tuple[str, Sequence[float]]], *, key: str, title: str) -> str:
    """Draws one row of marks for each policy, one mark for each site: gains right of 0, losses left.

    Args:
        rows: a name, and values in percent, at least one.
        key: unique within the page.
        title: above the chart.
    """
    inner = _ROW * len(rows)
    height = 34 + inner + 26
    high = max(max(values) for _, values in rows)
    low = max(min(0.0, *(min(values) for _, values in rows)), LOWEST)
    with svg.drawing():
        figure = svg.new_figure(WIDE, height)
        width = WIDE - LEFT - RIGHT
        axes = figure.add_axes((LEFT / WIDE, 26 / height, width / WIDE, inner / height))
        axes.set_xlim(low - 2.0, high + 2.0)
        axes.set_ylim(inner, 0)
        axes.set_yticks([])
        axes.xaxis.set_major_locator(MaxNLocator(8, steps=[1, 2, 5, 10]))
        axes.xaxis.set_major_formatter(lambda value, _: percent(value / 100) or "0")
        bare(axes, grid="x")
        for number, (name, values) in enumerate(rows):
            middle = _ROW * (number + 0.5)
            for tone, chosen in (
                ("gain", [value for value in values if value >= 0]),
                ("loss", [max(value, low) for value in values if value < 0]),
            ):
                axes.plot(
                    chosen,
                    [middle] * len(chosen),
                    "|",
                    color=svg.color(tone),
                    markersize=15,
                    markeredgewidth=1.1,
                    alpha=0.65,
                )
            below = sum(value < 0 for value in values)
            axes.text(
                -8 / width,
                middle,
                name,
                transform=axes.get_yaxis_transform(),
                ha="right",
                va="center",
                color=svg.color("ink"),
            )
            axes.text(
                1 + 8 / width,
                middle,
                f"{below} of {len(values)} lose",
                transform=axes.get_yaxis_transform(),
                va="center",
                color=svg.color("loss" if below else "ink"),
            )
        axes.axvline(0.0, color=svg.color("ink"), linewidth=0.9)
        svg.heading(axes, title, height=inner)
        text = "; ".join(
            f"{name}: {sum(values) / len(values):.1f} % on the average, worst {min(values):.1f} %"
            for name, values in rows
        )
        return svg.render(figure, key=key, title=title, description=text)
