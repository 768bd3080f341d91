"""What the charts of the studies' pages have in common."""

from collections.abc import Callable, Sequence
from typing import Literal

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from lrms_sim.pages import svg
from lrms_sim.pages.parts import WIDE


def bare(axes: Axes, *, grid: Literal["x", "y"] | None = None) -> None:
    """Takes away frame and tick marks; what is drawn covers the grid."""
    svg.bare(axes)
    if grid is not None:
        axes.grid(axis=grid, color=svg.color("grid"), linewidth=0.8)
    axes.set_axisbelow(True)


def legend(axes: Axes, names: Sequence[tuple[str, int]], inner: float) -> None:
    """Writes a legend above axes that are as wide as the page, in one row or two.

    Args:
        axes: the axes.
        names: each with the number of its colour.
        inner: height of the axes, in units.
    """
    unit = 1 / (WIDE - 62)
    widths = [(6.6 * len(name) + 40) * unit for name, _ in names]
    place, row = 0.0, int(sum(widths) > 1)
    for (name, color), width in zip(names, widths, strict=True):
        if place + width > 1:
            place, row = 0.0, 0
        y = 1 + (10 + 17 * row) / inner
        axes.text(place, y, "●", transform=axes.transAxes, color=svg.site_color(color))
        axes.text(place + 14 * unit, y, name, transform=axes.transAxes, color=svg.color("muted"))
        place += width


class RowChart:
    """A chart of rows as wide as the page: names at the left, a scale below, figures at the right.

    Attributes:
        figure: the whole of it.
        axes: the part with the scale; rows begin at 0, downward, in units.

    Args:
        inner: height of all rows, in units.
        above: room above them.
        left: room for names.
        right: room for figures.
        scale: where it begins and ends.
        tick: returns the word of a tick.
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


def percent(value: float) -> str:
    """Returns a tick's share of 1 as percent; nothing for 0."""
    return f"{100 * value:+.4g}%".replace("-", "\N{MINUS SIGN}") if abs(value) > 1e-9 else ""
