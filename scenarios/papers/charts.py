"""What the charts of the studies' pages have in common."""

from collections.abc import Sequence
from typing import Literal

from matplotlib.axes import Axes

from lrms_sim.pages import svg
from lrms_sim.pages.svg import WIDE


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
