"""Bars of a figure over seeds: the median, and a whisker from the least to the greatest."""

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from lrms_sim.pages import svg
from lrms_sim.pages.svg import WIDE
from scenarios.papers.charts import bare
from scenarios.papers.samples import Spread
from scenarios.report import words

LEFT = 92.0
"""Room for the names of rows, pixels."""

RIGHT = 150.0
"""Room for the figures beside them."""

TOP = 30.0
"""Room for the heading."""

_ROW = 19.0
_GROUP_GAP = 13.0


@dataclass(frozen=True, slots=True)
class SpreadBar:
    """One bar of a chart.

    Attributes:
        color: a name of `lrms_sim.pages.svg.color`.
        spread: of the figure, shares of 1.
        label: what it is, for the legend.
    """

    color: str
    spread: Spread
    label: str


def improvement_chart(
    groups: Sequence[tuple[str, Sequence[SpreadBar]]], *, key: str, heading: str
) -> str:
    """Draws ΔAWRT as horizontal bars with a whisker from the least to the greatest seed.

    Args:
        groups: a name, such as a site's, and its bars.
        key: unique within the page.
        heading: what the chart shows.
    """
    rows = sum(len(bars) for _, bars in groups)
    inner = _ROW * rows + _GROUP_GAP * len(groups)
    legend = list({bar.label: bar.color for _, bars in groups for bar in bars}.items())
    # Where the legend leaves no room beside it, the heading has a row of its own.
    rows_above = 2 if _width(legend) + 7.2 * len(heading) > WIDE - LEFT else 1
    height = TOP + 18 * (rows_above - 1) + inner + 8 + 18
    with svg.drawing():
        figure = svg.new_figure(WIDE, height)
        box = (LEFT / WIDE, 26 / height, (WIDE - LEFT - RIGHT) / WIDE, inner / height)
        axes = figure.add_axes(box)
        _bare(axes, groups, inner)
        place = 0.0
        for name, bars in groups:
            place += _GROUP_GAP
            middle = place + _ROW * len(bars) / 2
            axes.text(
                -8 / (WIDE - LEFT - RIGHT),
                middle,
                words.shorten(name, 14),
                transform=axes.get_yaxis_transform(),
                ha="right",
                va="center",
                color=svg.color("ink"),
                fontweight="bold",
            )
            for bar in bars:
                _bar(axes, bar, place + _ROW / 2)
                place += _ROW
        axes.axvline(0.0, color=svg.color("ink"), linewidth=0.9)
        _legend(axes, legend, inner)
        svg.heading(axes, heading, height=inner, rows=rows_above)
        text = "; ".join(
            f"{name}, {bar.label}: {words.change(bar.spread.median)}"
            for name, bars in groups
            for bar in bars
        )
        return svg.render(figure, key=key, title=heading, description=text)


def _bare(axes: Axes, groups: Sequence[tuple[str, Sequence[SpreadBar]]], inner: float) -> None:
    values = [end for _, bars in groups for b in bars for end in (b.spread.low, b.spread.high)]
    high = max(0.0, *values)
    # A single disaster of minus some thousand percent would flatten everything else.
    low = max(min(0.0, *values), -max(high, 0.1))
    span = (high - low) or 0.01
    axes.set_xlim(low - 0.02 * span, high + 0.02 * span)
    axes.set_ylim(inner, 0)
    axes.set_yticks([])
    axes.xaxis.set_major_locator(MaxNLocator(8, steps=[1, 2, 5, 10]))
    axes.xaxis.set_major_formatter(lambda value, _: percent(value) or "0")
    bare(axes, grid="x")


def percent(value: float) -> str:
    """Returns a tick's share of 1 as percent; nothing for 0."""
    return f"{100 * value:+.4g}%".replace("-", "\N{MINUS SIGN}") if abs(value) > 1e-9 else ""


def _bar(axes: Axes, bar: SpreadBar, place: float) -> None:
    spread = bar.spread
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
    text = words.change(spread.median)
    if spread.count > 1:
        text += f"  ({100 * spread.low:+.1f} … {100 * spread.high:+.1f})".replace("-", "−")
    axes.text(
        1 + 8 / (WIDE - LEFT - RIGHT),
        place,
        text,
        transform=axes.get_yaxis_transform(),
        va="center",
        color=svg.color("ink"),
    )


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
