"""The charts of the studies' pages."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from matplotlib.ticker import MaxNLocator

from lrms_sim.report import svg
from lrms_sim.report.parts import WIDE

_HEIGHT = 480.0
_KINDS = (
    ("users", "site-4", "NSGA-II, a key for each user", 6),
    ("judged", "site-3", "judged while learning", 6),
    ("fcfs", "work", "FCFS by group", 14),
    ("easy", "federated", "EASY by group", 14),
    ("clairvoyant", "alone", "EASY, true run times", 14),
    ("learned", "ink", "learned", 14),
)
KIND_WORDS = {kind: label for kind, _, label, _ in _KINDS}
CELLS: Final = 160
"""Of individuals in the same of so many parts of both axes one is drawn."""

_LABEL_PLACES = ((8, 6), (8, -12), (-8, -12), (-8, 6))
"""In turn, as learned policies often lie together."""

_MARGIN = 0.05
"""As a share of the range."""


Ranges = tuple[tuple[float, float], tuple[float, float]]
"""Ranges of AWRT₁ and of AWRT₂."""

Marked = Sequence[tuple[str, float, float]]
"""Name, AWRT₁ and AWRT₂ of a point to be marked."""


def view(points: Sequence[Mapping[str, Any]], marked: Marked) -> Ranges:
    """Returns what a picture shows: all constants, what was learned, what is marked, what is better.

    A search also judges what is hopeless, up to a multiple of EASY's: to show that would leave no
    room for the rest.
    """
    ranges = []
    for column in (2, 3):
        names = [one[column - 1] for one in marked]
        everything = [one["seven"][column] for one in points]
        shown = [
            one["seven"][column] for one in points if one["groups"] or one["kind"] == "learned"
        ]
        least, most = min(*everything, *names), max(*shown, *names)
        room = _MARGIN * max(most - least, 1.0)
        ranges.append((float(least - room), float(most + room)))
    return ranges[0], ranges[1]


def beyond(points: Sequence[Mapping[str, Any]], marked: Marked) -> int:
    """Returns how many points lie outside of `view`."""
    return len(points) - len(_within(points, view(points, marked)))


def _within(points: Sequence[Mapping[str, Any]], ranges: Ranges) -> list[Mapping[str, Any]]:
    across, up = ranges
    return [one for one in points if one["seven"][2] <= across[1] and one["seven"][3] <= up[1]]


def thinned(points: Sequence[Mapping[str, Any]], ranges: Ranges) -> list[Mapping[str, Any]]:
    """Returns the points without individuals near others of their kind.

    A picture of ten thousand points has few distinct places. Constants and learned policies are all
    kept; of the others one for each cell of a grid, preferably one that is not dominated.
    """
    kept: dict[object, Mapping[str, Any]] = {}
    for number, one in enumerate(_within(points, ranges)):
        key: object = number
        if one["kind"] in {"judged", "users"}:
            places = (
                int((one["seven"][column] - least) / (most - least) * CELLS)
                for column, (least, most) in zip((2, 3), ranges, strict=True)
            )
            key = (one["kind"], *places)
        if key not in kept or (one["front"] and not kept[key]["front"]):
            kept[key] = one
    return list(kept.values())


def lower_edge(points: Sequence[Mapping[str, Any]]) -> list[tuple[float, float]]:
    """Returns the lower edge, in AWRT₁ and AWRT₂, of schedules a provider can have.

    It goes by rising AWRT₁ and falling AWRT₂.
    """
    pairs = sorted(
        (float(one["seven"][2]), float(one["seven"][3]))
        for one in points
        if one["kind"] != "clairvoyant"
    )
    edge: list[tuple[float, float]] = []
    for across, up in pairs:
        if not edge or up < edge[-1][1]:
            edge.append((across, up))
    return edge


def scatter(
    points: Sequence[Mapping[str, Any]],
    marked: Marked,
    *,
    key: str,
    title: str,
) -> str:
    """Draws AWRT₂ over AWRT₁, as the papers' Pareto charts.

    `points` are of `cloud`, as plain values, with at least one order of groups; dominated ones are
    paler. `key` is unique within the page.
    """
    with svg.drawing():
        figure = svg.new_figure(WIDE, _HEIGHT)
        axes = figure.add_axes((0.1, 0.27, 0.86, 0.65))
        svg.bare(axes)
        ranges = view(points, marked)
        some = thinned(points, ranges)
        axes.set_xlim(*ranges[0])
        axes.set_ylim(*ranges[1])
        for kind, shade, label, size in _KINDS:
            named = False
            for front in (True, False):
                chosen = [p for p in some if p["kind"] == kind and p["front"] == front]
                if not chosen:
                    continue
                axes.scatter(
                    [p["seven"][2] for p in chosen],
                    [p["seven"][3] for p in chosen],
                    s=size,
                    color=svg.color(shade),
                    alpha=0.8 if front else 0.25,
                    linewidths=0,
                    label=None if named else label,
                )
                named = True
        edge = lower_edge(points)
        axes.step(
            [x for x, _ in edge],
            [y for _, y in edge],
            where="post",
            color=svg.color("muted"),
            linewidth=1.2,
            label="best of both, without true run times",
        )
        for place, (name, x, y) in enumerate(marked):
            axes.scatter([x], [y], s=46, marker="D", color=svg.color("ink"), linewidths=0)
            axes.annotate(
                name,
                (x, y),
                xytext=_LABEL_PLACES[place % len(_LABEL_PLACES)],
                textcoords="offset points",
                ha="right" if place % len(_LABEL_PLACES) >= 2 else "left",
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
            loc="upper left",
            bbox_to_anchor=(-0.02, -0.17),
            ncols=3,
            labelcolor=svg.color("ink"),
        )
        axes.set_title(title, loc="left", color=svg.color("ink"), fontweight="bold", fontsize=11)
        text = "; ".join(f"{name}: {x:,.0f} s, {y:,.0f} s" for name, x, y in marked)
        return svg.render(figure, key=key, title=title, description=text)
