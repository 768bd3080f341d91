"""The charts of the studies' pages."""

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.ticker import MaxNLocator

from scenarios.report import svg
from scenarios.report.svg import WIDE

_HEIGHT = 420.0
_KINDS = (("fcfs", "work", "FCFS"), ("easy", "federated", "EASY"), ("clairvoyant", "alone", "EASY, true run times"), ("learned", "ink", "learned"))  # fmt: skip


def scatter(
    points: Sequence[Mapping[str, Any]],
    marked: Sequence[tuple[str, float, float]],
    *,
    key: str,
    title: str,
) -> str:
    """Draws AWRT₂ over AWRT₁, as the papers' Pareto charts.

    Args:
        points: of `cloud`, as plain values; those that another dominates are paler.
        marked: name, AWRT₁ and AWRT₂ of what is to be found in the cloud.
        key: unique within the page.
        title: above the chart.
    """
    with svg.drawing():
        figure = svg.new_figure(WIDE, _HEIGHT)
        axes = figure.add_axes((0.1, 0.14, 0.66, 0.76))
        svg.bare(axes)
        for kind, shade, label in _KINDS:
            for front in (False, True):
                chosen = [p for p in points if p["kind"] == kind and p["front"] == front]
                axes.scatter(
                    [p["seven"][2] for p in chosen],
                    [p["seven"][3] for p in chosen],
                    s=14,
                    color=svg.color(shade),
                    alpha=0.8 if front else 0.25,
                    linewidths=0,
                    label=label if front else None,
                )
        for place, (name, x, y) in enumerate(marked):
            axes.scatter([x], [y], s=46, marker="D", color=svg.color("ink"), linewidths=0)
            axes.annotate(
                name,
                (x, y),
                xytext=(8, 6 if place % 2 == 0 else -12),
                textcoords="offset points",
                color=svg.color("ink"),
            )
        axes.xaxis.set_major_locator(MaxNLocator(6))
        axes.yaxis.set_major_locator(MaxNLocator(6))
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        axes.set_xlabel("AWRT of group 1, s", color=svg.color("muted"))
        axes.set_ylabel("AWRT of group 2, s", color=svg.color("muted"))
        axes.legend(
            frameon=False,
            loc="center left",
            bbox_to_anchor=(1.02, 0.5),
            labelcolor=svg.color("ink"),
        )
        axes.set_title(title, loc="left", color=svg.color("ink"), fontweight="bold", fontsize=11)
        text = "; ".join(f"{name}: {x:,.0f} s, {y:,.0f} s" for name, x, y in marked)
        return svg.render(figure, key=key, title=title, description=text)
