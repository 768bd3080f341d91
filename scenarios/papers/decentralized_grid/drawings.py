"""The charts of the study's page."""

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes

from scenarios.papers.decentralized_grid.study import Spread
from scenarios.report import svg, words
from scenarios.report.svg import WIDE

_ROW = 19.0
_GROUP_GAP = 13.0
_LEFT = 92.0
_RIGHT = 128.0
_TOP = 30.0


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar of a chart.

    Attributes:
        color: a name of `scenarios.report.svg.color`.
        spread: of the figure, shares of 1.
        label: what it is, for the legend.
    """

    color: str
    spread: Spread
    label: str


def improvement_chart(
    groups: Sequence[tuple[str, Sequence[Bar]]], *, key: str, heading: str
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
    height = _TOP + inner + 8 + 18
    with svg.drawing():
        figure = svg.new_figure(WIDE, height)
        box = (_LEFT / WIDE, 26 / height, (WIDE - _LEFT - _RIGHT) / WIDE, inner / height)
        axes = figure.add_axes(box)
        _bare(axes, groups, inner)
        place = 0.0
        for name, bars in groups:
            place += _GROUP_GAP
            middle = place + _ROW * len(bars) / 2
            axes.text(
                -8 / (WIDE - _LEFT - _RIGHT),
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
        axes.text(
            0,
            1 + 14 / inner,
            heading,
            transform=axes.transAxes,
            color=svg.color("ink"),
            fontweight="bold",
        )
        text = "; ".join(
            f"{name}, {bar.label}: {words.change(bar.spread.median)}"
            for name, bars in groups
            for bar in bars
        )
        return svg.render(figure, key=key, title=heading, description=text)


def _bare(axes: Axes, groups: Sequence[tuple[str, Sequence[Bar]]], inner: float) -> None:
    values = [end for _, bars in groups for b in bars for end in (b.spread.low, b.spread.high)]
    low, high = min(0.0, *values), max(0.0, *values)
    span = (high - low) or 0.01
    axes.set_xlim(low - 0.02 * span, high + 0.02 * span)
    axes.set_ylim(inner, 0)
    axes.set_yticks([])
    axes.tick_params(length=0, labelcolor=svg.color("muted"), labelsize=svg.FONT_SIZE, pad=4)
    axes.xaxis.set_major_formatter(lambda value, _: f"{100 * value:+.0f}%" if value else "0")
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.grid(axis="x", color=svg.color("grid"), linewidth=0.8)
    axes.set_axisbelow(True)
    axes.set_facecolor("none")


def _bar(axes: Axes, bar: Bar, place: float) -> None:
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
        1 + 8 / (WIDE - _LEFT - _RIGHT),
        place,
        text,
        transform=axes.get_yaxis_transform(),
        va="center",
        color=svg.color("ink"),
    )


def _legend(axes: Axes, legend: Sequence[tuple[str, str]], inner: float) -> None:
    if len(legend) < 2:
        return
    right = 1.0 + _RIGHT / (WIDE - _LEFT - _RIGHT)
    unit = 1 / (WIDE - _LEFT - _RIGHT)
    for label, color in reversed(legend):
        axes.text(
            right,
            1 + 14 / inner,
            label,
            transform=axes.transAxes,
            ha="right",
            color=svg.color("muted"),
        )
        right -= (6.4 * len(label) + 6) * unit
        axes.text(
            right,
            1 + 14 / inner,
            "■",
            transform=axes.transAxes,
            ha="right",
            color=svg.color(color),
        )
        right -= 22 * unit


@dataclass(frozen=True, slots=True)
class DotRow:
    """One row of a dot chart.

    Attributes:
        name: of the row.
        values: one dot each, shares of 1.
    """

    name: str
    values: Sequence[float]


def dot_chart(rows: Sequence[DotRow], *, key: str, heading: str) -> str:
    """Draws every seed as a dot, with the median as a line; 0 is the paper's value."""
    inner = 26.0 * len(rows)
    height = _TOP + inner + 26
    low = min(0.0, *(min(row.values) for row in rows))
    high = max(0.0, *(max(row.values) for row in rows))
    with svg.drawing():
        figure = svg.new_figure(WIDE, height)
        axes = figure.add_axes(
            (_LEFT / WIDE, 26 / height, (WIDE - _LEFT - _RIGHT) / WIDE, inner / height)
        )
        axes.set_xlim(low - 0.05 * (high - low), high + 0.05 * (high - low))
        axes.set_ylim(inner, 0)
        axes.set_yticks([])
        axes.tick_params(length=0, labelcolor=svg.color("muted"), labelsize=svg.FONT_SIZE, pad=4)
        axes.xaxis.set_major_formatter(
            lambda value, _: f"{100 * value:+.1f}%" if abs(value) > 1e-9 else "paper"
        )
        for spine in axes.spines.values():
            spine.set_visible(False)
        axes.grid(axis="x", color=svg.color("grid"), linewidth=0.8)
        axes.set_axisbelow(True)
        axes.set_facecolor("none")
        axes.axvline(0.0, color=svg.color("ink"), linewidth=1.2)
        for index, row in enumerate(rows):
            place = 26.0 * index + 13
            spread = Spread.of(row.values)
            axes.scatter(
                row.values,
                [place] * len(row.values),
                s=30,
                color=svg.color("federated"),
                alpha=0.55,
                linewidths=0,
            )
            axes.plot(
                [spread.median] * 2,
                [place - 8, place + 8],
                color=svg.color("federated"),
                linewidth=2.4,
            )
            axes.text(
                -8 / (WIDE - _LEFT - _RIGHT),
                place,
                row.name,
                transform=axes.get_yaxis_transform(),
                ha="right",
                va="center",
                color=svg.color("ink"),
                fontweight="bold",
            )
            axes.text(
                1 + 8 / (WIDE - _LEFT - _RIGHT),
                place,
                f"median {100 * spread.median:+.2f}%".replace("-", "−"),
                transform=axes.get_yaxis_transform(),
                va="center",
                color=svg.color("ink"),
            )
        axes.text(
            0,
            1 + 14 / inner,
            heading,
            transform=axes.transAxes,
            color=svg.color("ink"),
            fontweight="bold",
        )
        text = "; ".join(
            f"{row.name}: median {100 * Spread.of(row.values).median:+.2f} percent" for row in rows
        )
        return svg.render(figure, key=key, title=heading, description=text)
