"""The pictures of the study's page: every site, every month, as a mark on one scale."""

from collections.abc import Sequence

from lrms_sim.report import svg
from scenarios.studies.common.charts import RowChart, percent

LEFT = 172.0
RIGHT = 150.0
_ROW = 30.0
LOWEST = -40.0
"""Percent at which marks end; larger losses are drawn there, with words."""


def strip_chart(rows: Sequence[tuple[str, Sequence[float]]], *, key: str, title: str) -> str:
    """Draws a row of marks for each policy, a mark for each site: gains right of 0, losses left.

    `rows` are names with values in percent, at least one; `key` is unique within the page.
    """
    inner = _ROW * len(rows)
    high = max(max(values) for _, values in rows)
    low = max(min(0.0, *(min(values) for _, values in rows)), LOWEST)
    with svg.drawing():
        chart = RowChart(
            inner,
            above=34,
            left=LEFT,
            right=RIGHT,
            scale=(low - 2.0, high + 2.0),
            tick=lambda value: percent(value / 100) or "0",
        )
        axes = chart.axes
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
            chart.name(middle, name, weight="normal")
            chart.value(middle, f"{below} of {len(values)} lose", color="loss" if below else "ink")
        axes.axvline(0.0, color=svg.color("ink"), linewidth=0.9)
        svg.heading(axes, title, height=inner)
        text = "; ".join(
            f"{name}: {sum(values) / len(values):.1f} % on the average, worst {min(values):.1f} %"
            for name, values in rows
        )
        return svg.render(chart.figure, key=key, title=title, description=text)
