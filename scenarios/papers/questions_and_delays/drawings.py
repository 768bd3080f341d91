"""The pictures of the study's page: a gain as a curve, with the draws' ends around each point."""

from collections.abc import Sequence

from lrms_sim.pages import svg
from lrms_sim.pages.parts import WIDE
from scenarios.papers.charts import bare, legend
from scenarios.papers.samples import Spread

_INNER = 250.0
_BELOW = 40.0
_LEFT = 48.0
_MARKERS = "osD^vP"

Curve = tuple[str, Sequence[Spread]]
"""A name, and a figure at each place, percent."""


def curves(
    rows: Sequence[Curve], places: Sequence[str], *, key: str, title: str, below: str
) -> str:
    """Draws curves over places at equal distances; a bar goes from the least to the greatest draw.

    Args:
        rows: the curves, at least one, each as long as `places` or shorter.
        places: names of the places.
        key: unique within the page.
        title: above the chart.
        below: what the places are.
    """
    names = [(name, number) for number, (name, _) in enumerate(rows)]
    height = 34 + 46 + _INNER + _BELOW
    with svg.drawing():
        figure = svg.new_figure(WIDE, height)
        width = WIDE - _LEFT - 14
        axes = figure.add_axes((_LEFT / WIDE, _BELOW / height, width / WIDE, _INNER / height))
        for number, (_, values) in enumerate(rows):
            # Beside each other, that no bar hides another.
            apart = 0.07 * (number - (len(rows) - 1) / 2)
            across = [place + apart for place in range(len(values))]
            medians = [value.median for value in values]
            color = svg.site_color(number)
            axes.vlines(
                across,
                [value.low for value in values],
                [value.high for value in values],
                color=color,
                linewidth=1.0,
                alpha=0.55,
            )
            axes.plot(
                across,
                medians,
                color=color,
                marker=_MARKERS[number % len(_MARKERS)],
                markersize=4.5,
                linewidth=1.4,
            )
        axes.set_xticks(range(len(places)), places)
        axes.set_xlim(-0.5, len(places) - 0.5)
        axes.set_xlabel(below, color=svg.color("muted"))
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:g} %".replace("-", "−"))
        low, high = axes.get_ylim()
        if low < 0 < high:
            axes.axhline(0.0, color=svg.color("ink"), linewidth=0.9)
        bare(axes, grid="y")
        legend(axes, names, _INNER)
        svg.heading(axes, title, height=_INNER, rows=3)
        text = "; ".join(
            f"{name}: "
            + ", ".join(
                f"{value.median:.1f} % at {place}"
                for place, value in zip(places, values, strict=False)
            )
            for name, values in rows
        )
        return svg.render(figure, key=key, title=title, description=f"Medians over draws. {text}")
