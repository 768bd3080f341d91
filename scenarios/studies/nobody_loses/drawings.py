"""The pictures of the study's page: every site, every month, as a mark on one scale."""

from collections.abc import Sequence

from lrms_sim.report import svg
from lrms_sim.report.parts import WIDE
from scenarios.studies.common.charts import RowChart, bare, percent

LEFT = 190.0
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


HIGHEST = 100.0
_TALL = 190.0
_LABELS = 34.0


def rank_chart(rows: Sequence[tuple[str, Sequence[float]]], *, key: str, title: str) -> str:
    """Draws a panel for each policy with a dot for each value: gain upward, by rank from the worst on.

    `rows` are names with values in percent, one to four, none of them empty; losers have the colour of
    losses and larger dots. `key` is unique within the page.
    """
    width = (WIDE - _LABELS) / len(rows)
    height = _TALL + 76
    with svg.drawing():
        figure = svg.new_figure(WIDE, height)
        for number, (name, values) in enumerate(rows):
            left = (_LABELS + number * width) / WIDE
            axes = figure.add_axes((left, 26 / height, (width - 14) / WIDE, _TALL / height))
            ranked = sorted(values)
            below = sum(value < 0 for value in ranked)
            for tone, size, chosen in (
                ("gain", 2.0, range(below, len(ranked))),
                ("loss", 4.5, range(below)),
            ):
                axes.plot(
                    [place + 1 for place in chosen],
                    [max(ranked[place], LOWEST) for place in chosen],
                    "o",
                    color=svg.color(tone),
                    markersize=size,
                    markeredgewidth=0,
                )
            bare(axes, grid="y")
            axes.set_ylim(LOWEST - 4, HIGHEST)
            axes.set_xlim(-0.02 * len(ranked), 1.02 * len(ranked) + 1)
            axes.set_xticks([1, len(ranked)] if number + 1 == len(rows) else [1])
            axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
            axes.set_yticks([-40, -20, 0, 20, 40, 60, 80, 100])
            if number:
                axes.set_yticklabels([])
            axes.axhline(0.0, color=svg.color("ink"), linewidth=0.9)
            worst = f"worst {ranked[0]:.1f} %".replace("-", "−")
            svg.heading(axes, name, height=_TALL, rows=2)
            axes.text(
                0,
                1 + 8 / _TALL,
                f"{below} of {len(ranked):,} lose, {worst}",
                transform=axes.transAxes,
                color=svg.color("loss" if below else "muted"),
            )
        text = f"{title}. " + "; ".join(
            f"{name}: {sum(value < 0 for value in values)} of {len(values)} below 0, worst {min(values):.1f} %"
            for name, values in rows
        )
        return svg.render(figure, key=key, title=title, description=text)
