"""What the charts of the studies' pages have in common."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, NullLocator

from lrms_sim.report import svg
from lrms_sim.report.parts import WIDE

_MARKERS = "osD^vP"


def bare(axes: Axes, *, grid: Literal["x", "y"] | None = None) -> None:
    """Removes frame and tick marks; the content covers the grid."""
    svg.bare(axes)
    if grid is not None:
        axes.grid(axis=grid, color=svg.color("grid"), linewidth=0.8)
    axes.set_axisbelow(True)


def legend(axes: Axes, names: Sequence[tuple[str, int]], inner: float) -> int:
    """Writes a legend above axes as wide as the page; returns the number of rows, one or two.

    `names` come with the numbers of their colours; `inner` is the height of the axes.
    """
    unit = 1 / (WIDE - 62)
    widths = [(6.6 * len(name) + 40) * unit for name, _ in names]
    rows = 2 if sum(widths) > 1 else 1
    place, row = 0.0, rows - 1
    for (name, color), width in zip(names, widths, strict=True):
        if place + width > 1:
            place, row = 0.0, 0
        y = 1 + (10 + 17 * row) / inner
        axes.text(place, y, "●", transform=axes.transAxes, color=svg.site_color(color))
        axes.text(place + 14 * unit, y, name, transform=axes.transAxes, color=svg.color("muted"))
        place += width
    return rows


class RowChart:
    """A chart of rows as wide as the page: names at the left, a scale below, figures at the right.

    Attributes:
        axes: the part with the scale; rows begin at 0, downward, in units.
    """

    def __init__(
        self,
        inner: float,
        *,
        above: float,
        left: float,
        right: float,
        scale: tuple[float, float],
        tick: Callable[[float], str],
    ) -> None:
        height = above + inner + 26
        self._width = WIDE - left - right
        self.figure: Figure = svg.new_figure(WIDE, height)
        box = (left / WIDE, 26 / height, self._width / WIDE, inner / height)
        self.axes: Axes = self.figure.add_axes(box)
        self.axes.set_xlim(*scale)
        self.axes.set_ylim(inner, 0)
        self.axes.set_yticks([])
        self.axes.xaxis.set_major_locator(MaxNLocator(8, steps=[1, 2, 5, 10]))
        self.axes.xaxis.set_major_formatter(lambda value, _: tick(value))
        bare(self.axes, grid="x")

    def name(self, place: float, words: str, *, weight: str = "bold") -> None:
        """Writes the name of a row, or of several, left of a place."""
        self.axes.text(
            -8 / self._width,
            place,
            words,
            transform=self.axes.get_yaxis_transform(),
            ha="right",
            va="center",
            color=svg.color("ink"),
            fontweight=weight,
        )

    def value(self, place: float, words: str, *, color: str = "ink") -> None:
        """Writes the figure of a row right of a place, in a colour of `svg.color`."""
        self.axes.text(
            1 + 8 / self._width,
            place,
            words,
            transform=self.axes.get_yaxis_transform(),
            va="center",
            color=svg.color(color),
        )


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a chart.

    Attributes:
        name: in the legend.
        color: number of its colour.
        points: number of a place, value there, and ends of its interval.
    """

    name: str
    color: int
    points: Sequence[tuple[int, float, float, float]]


def line_chart(
    lines: Sequence[Line],
    places: Sequence[str],
    *,
    key: str,
    title: str,
    below: str = "",
    inner: float = 180.0,
    scale: tuple[float | None, float | None] = (0.0, None),
    unit: str = "",
    logarithmic: bool = False,
) -> str:
    """Draws at least one line over places at equal distances, each point with its interval.

    `key` is unique within the page; `inner` is the height of the axes, in units; `scale` has the
    ends of the vertical axis, by default those of the values.
    """
    under = 40 if below else 26
    height = 66 + inner + under
    with svg.drawing():
        figure = svg.new_figure(WIDE, height)
        axes = figure.add_axes((54 / WIDE, under / height, (WIDE - 62) / WIDE, inner / height))
        bare(axes, grid="y")
        for number, line in enumerate(lines):
            # Beside each other, that no interval hides another.
            apart = 0.07 * (number - (len(lines) - 1) / 2)
            across = [place + apart for place, *_ in line.points]
            _, values, lows, highs = zip(*line.points, strict=True)
            ink = svg.site_color(line.color)
            axes.vlines(across, lows, highs, color=ink, linewidth=1.1, alpha=0.6)
            marker = _MARKERS[number % len(_MARKERS)]
            axes.plot(across, values, marker=marker, markersize=4.3, color=ink, linewidth=1.5)
        axes.set_xlim(-0.5, len(places) - 0.5)
        axes.set_xticks(range(len(places)), places)
        axes.set_xlabel(below, color=svg.color("muted"))
        if logarithmic:
            axes.set_yscale("log")
            axes.yaxis.set_minor_locator(NullLocator())
        else:
            axes.set_ylim(*scale)
            axes.yaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 2.5, 5, 10]))
            axes.yaxis.set_major_formatter(lambda value, _: _signed(f"{value:g}{unit}"))
            if axes.get_ylim()[0] < 0 < axes.get_ylim()[1]:
                axes.axhline(0.0, color=svg.color("ink"), linewidth=0.9)
        rows = legend(axes, [(line.name, line.color) for line in lines], inner)
        svg.heading(axes, title, height=inner, rows=rows + 1)
        text = "; ".join(
            f"{line.name}: "
            + ", ".join(f"{places[place]}: {value:.4g}{unit}" for place, value, *_ in line.points)
            for line in lines
        )
        return svg.render(figure, key=key, title=title, description=text)


def _signed(text: str) -> str:
    return text.replace("-", "\N{MINUS SIGN}")


def percent(value: float) -> str:
    """Returns a tick's share of 1 as percent; nothing for 0."""
    return _signed(f"{100 * value:+.4g}%") if abs(value) > 1e-9 else ""
