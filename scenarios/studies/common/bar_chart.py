"""Bars of a figure over seeds: the median, and a whisker from the least to the greatest."""

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes

from lrms_sim.report import svg
from lrms_sim.report.parts import WIDE
from scenarios.report import wording
from scenarios.studies.common.charts import RowChart, percent
from scenarios.studies.common.samples import Spread

LEFT = 92.0
"""In pixels, for the names of rows."""

RIGHT = 150.0
"""For the figures at the right."""

TOP = 30.0
"""For the heading."""

_ROW = 19.0
_GROUP_GAP = 13.0


@dataclass(frozen=True, slots=True)
class SpreadBar:
    """One bar of a chart.

    Attributes:
        color: a name of `lrms_sim.report.svg.color`.
        spread: of the figure, shares of 1.
    """

    color: str
    spread: Spread
    label: str


def improvement_chart(
    groups: Sequence[tuple[str, Sequence[SpreadBar]]], *, key: str, heading: str
) -> str:
    """Draws ΔAWRT as horizontal bars with a whisker from the least to the greatest seed.

    `groups` are names, such as a site's, and their bars; `key` is unique within the page.
    """
    rows = sum(len(bars) for _, bars in groups)
    inner = _ROW * rows + _GROUP_GAP * len(groups)
    legend = list({bar.label: bar.color for _, bars in groups for bar in bars}.items())
    # Where the legend leaves no room beside it, the heading has a row of its own.
    rows_above = 2 if _width(legend) + 7.2 * len(heading) > WIDE - LEFT else 1
    with svg.drawing():
        chart = RowChart(
            inner,
            above=TOP + 18 * (rows_above - 1),
            left=LEFT,
            right=RIGHT,
            scale=_scale(groups),
            tick=lambda value: percent(value) or "0",
        )
        axes = chart.axes
        place = 0.0
        for name, bars in groups:
            place += _GROUP_GAP
            chart.name(place + _ROW * len(bars) / 2, wording.shorten(name, 14))
            for bar in bars:
                _bar(chart, bar, place + _ROW / 2)
                place += _ROW
        axes.axvline(0.0, color=svg.color("ink"), linewidth=0.9)
        _legend(axes, legend, inner)
        svg.heading(axes, heading, height=inner, rows=rows_above)
        text = "; ".join(
            f"{name}, {bar.label}: {wording.change(bar.spread.median)}"
            for name, bars in groups
            for bar in bars
        )
        return svg.render(chart.figure, key=key, title=heading, description=text)


def _scale(groups: Sequence[tuple[str, Sequence[SpreadBar]]]) -> tuple[float, float]:
    values = [end for _, bars in groups for b in bars for end in (b.spread.low, b.spread.high)]
    high = max(0.0, *values)
    # A single disaster of minus some thousand percent would flatten everything else.
    low = max(min(0.0, *values), -max(high, 0.1))
    span = (high - low) or 0.01
    return low - 0.02 * span, high + 0.02 * span


def _bar(chart: RowChart, bar: SpreadBar, place: float) -> None:
    axes, spread = chart.axes, bar.spread
    axes.barh(place, spread.median, height=0.74 * _ROW, color=svg.color(bar.color), linewidth=0)
    if spread.count > 1:
        axes.plot(
            [spread.low, spread.high],
            [place, place],
            color=svg.color("ink"),
            linewidth=1.4,
            solid_capstyle="butt",
        )
        for end in (spread.low, spread.high):
            axes.plot(
                [end, end],
                [place - 0.17 * _ROW, place + 0.17 * _ROW],
                color=svg.color("ink"),
                linewidth=1.4,
            )
    text = wording.change(spread.median)
    if spread.count > 1:
        text += f"  ({100 * spread.low:+.1f} … {100 * spread.high:+.1f})".replace("-", "−")
    chart.value(place, text)


def _width(legend: Sequence[tuple[str, str]]) -> float:
    return sum(6.6 * len(label) + 30 for label, _ in legend) if len(legend) > 1 else 0.0


def _legend(axes: Axes, legend: Sequence[tuple[str, str]], inner: float) -> None:
    if len(legend) < 2:
        return
    unit = 1 / (WIDE - LEFT - RIGHT)
    right = 1.0 + RIGHT * unit
    # Each swatch stands behind its label, whose end is fixed: the page's font may be any.
    for label, color in reversed(legend):
        for text, ink in (("■", color), (label, "muted")):
            axes.text(
                right,
                1 + 14 / inner,
                text,
                transform=axes.transAxes,
                ha="right",
                color=svg.color(ink),
            )
            right -= (14 if text == "■" else 6.6 * len(label) + 16) * unit
