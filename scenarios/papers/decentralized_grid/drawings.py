"""The charts of the study's page."""

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.ticker import MaxNLocator

from lrms_sim.pages import svg
from lrms_sim.pages.svg import WIDE
from scenarios.papers.bar_chart import LEFT, RIGHT, TOP, percent
from scenarios.papers.charts import bare
from scenarios.papers.samples import Spread


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
    height = TOP + inner + 26
    low = min(0.0, *(min(row.values) for row in rows))
    high = max(0.0, *(max(row.values) for row in rows))
    with svg.drawing():
        figure = svg.new_figure(WIDE, height)
        axes = figure.add_axes(
            (LEFT / WIDE, 26 / height, (WIDE - LEFT - RIGHT) / WIDE, inner / height)
        )
        axes.set_xlim(low - 0.05 * (high - low), high + 0.05 * (high - low))
        axes.set_ylim(inner, 0)
        axes.set_yticks([])
        axes.xaxis.set_major_locator(MaxNLocator(8, steps=[1, 2, 5, 10]))
        axes.xaxis.set_major_formatter(lambda value, _: percent(value) or "paper")
        bare(axes, grid="x")
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
                -8 / (WIDE - LEFT - RIGHT),
                place,
                row.name,
                transform=axes.get_yaxis_transform(),
                ha="right",
                va="center",
                color=svg.color("ink"),
                fontweight="bold",
            )
            axes.text(
                1 + 8 / (WIDE - LEFT - RIGHT),
                place,
                f"median {100 * spread.median:+.2f}%".replace("-", "−"),
                transform=axes.get_yaxis_transform(),
                va="center",
                color=svg.color("ink"),
            )
        svg.heading(axes, heading, height=inner)
        text = "; ".join(
            f"{row.name}: median {100 * Spread.of(row.values).median:+.2f} percent" for row in rows
        )
        return svg.render(figure, key=key, title=heading, description=text)
