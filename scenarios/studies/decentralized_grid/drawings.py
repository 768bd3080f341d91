"""The charts of the study's page."""

from collections.abc import Sequence
from dataclasses import dataclass

from lrms_sim.report import svg
from scenarios.studies.common.bar_chart import LEFT, RIGHT, TOP
from scenarios.studies.common.charts import RowChart, percent
from scenarios.studies.common.samples import Spread


@dataclass(frozen=True, slots=True)
class DotRow:
    """One row of a dot chart.

    Attributes:
        values: one dot each, shares of 1.
    """

    name: str
    values: Sequence[float]


def dot_chart(rows: Sequence[DotRow], *, key: str, heading: str) -> str:
    """Draws every seed as a dot, with the median as a line; 0 is the paper's value."""
    inner = 26.0 * len(rows)
    low = min(0.0, *(min(row.values) for row in rows))
    high = max(0.0, *(max(row.values) for row in rows))
    with svg.drawing():
        chart = RowChart(
            inner,
            above=TOP,
            left=LEFT,
            right=RIGHT,
            scale=(low - 0.05 * (high - low), high + 0.05 * (high - low)),
            tick=lambda value: percent(value) or "paper",
        )
        axes = chart.axes
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
            chart.name(place, row.name)
            chart.value(place, f"median {100 * spread.median:+.2f}%".replace("-", "−"))
        svg.heading(axes, heading, height=inner)
        text = "; ".join(
            f"{row.name}: median {100 * Spread.of(row.values).median:+.2f} percent" for row in rows
        )
        return svg.render(chart.figure, key=key, title=heading, description=text)
