"""Pictures of what a rule base decides, and their places on pages."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from grms.learning.plots import drawn
from grms.learning.transfer.comparison import ComparedRow, comparison_table, verdict
from grms.learning.transfer.recorded import StateVisits
from grms.policy.transfer import REQUESTED_TIME, STARTS_NOW, RuleBase
from lrms_sim.report.parts import Figure as PageFigure
from lrms_sim.report.parts import Group, Note, Section, Words
from lrms_sim.util.messages import duration

ACCEPT = (0.13, 0.40, 0.67)
"""Colour of states in which the site runs a job itself; red, green and blue from 0 to 1."""

DECLINE = (0.85, 0.45, 0.10)
"""Colour of states in which it lets a job go."""

NWP_CELLS = 120
"""Cells of the decision map along NWP."""

NJP_CELLS = 50
"""Cells along NJP: 2 % each."""

NAME_LENGTH_MAX = 20
_PALE = 0.22  # how strong the colour of a cell is that no decision has visited
REQUEST_SHOWN = 3600.0
"""The requested time that a map is drawn for where nothing was asked, seconds."""


def decision_map(
    rule_base: RuleBase,
    nwp: npt.NDArray[np.float64],
    njp: npt.NDArray[np.float64],
    *,
    requested_time: float = REQUEST_SHOWN,
    starts_now: bool = False,
) -> npt.NDArray[np.bool_]:
    """Returns the decisions of a rule base on a grid, shape (b, a); True if the site runs the job itself.

    Args:
        rule_base: the policy.
        nwp: shape (a,), values of the normalized waiting parallelism.
        njp: shape (b,), values of the normalized job parallelism, percent.
        requested_time: of the job, seconds, if the rules use it.
        starts_now: whether the job would start at once, if the rules use it.
    """
    output = rule_base.compiled.output
    return np.array(
        [
            [
                output(x, y, requested_time=requested_time, starts_now=starts_now) > 0
                for x in nwp.tolist()
            ]
            for y in njp.tolist()
        ]
    )


def usual_request(visits: StateVisits) -> float:
    """Returns the requested time that a map is drawn for, seconds: the median of those asked about."""
    return float(np.median(visits.requested_time)) if len(visits) else REQUEST_SHOWN


def decision_map_svg(
    rule_base: RuleBase,
    visits: StateVisits,
    site: str,
    *,
    starts_now: bool = False,
    key: str = "decision-map",
) -> str:
    """Draws the decisions of a rule base over NWP × NJP, emphasized at the visits of a replay.

    For a rule base with more features this is one section: for the usual request of its questions,
    and either own jobs or guests.
    """
    edge = float(max(1.0, np.quantile(visits.nwp, 0.999))) if len(visits) else 10.0
    nwp_edges = np.linspace(0.0, edge, NWP_CELLS + 1)
    njp_edges = np.linspace(0.0, 100.0, NJP_CELLS + 1)
    accepted = decision_map(
        rule_base,
        (nwp_edges[:-1] + nwp_edges[1:]) / 2,
        (njp_edges[:-1] + njp_edges[1:]) / 2,
        requested_time=usual_request(visits),
        starts_now=starts_now,
    )
    count = np.histogram2d(visits.njp, visits.nwp, (njp_edges, nwp_edges))[0]
    strength = np.where(
        count > 0, 0.5 + 0.5 * np.log1p(count) / np.log1p(max(count.max(), 1)), _PALE
    )
    color = np.where(accepted[..., None], np.array(ACCEPT), np.array(DECLINE))
    image = np.concatenate([color, strength[..., None]], axis=2)

    shown = site if len(site) <= NAME_LENGTH_MAX else site[: NAME_LENGTH_MAX - 1] + "…"

    def draw(figure: Figure) -> None:
        axes = figure.add_subplot()
        axes.imshow(
            image, origin="lower", aspect="auto", interpolation="nearest", extent=(0, edge, 0, 100)
        )
        axes.set_xlabel(f"NWP: processors the queue of {shown} asks for / its processors")
        axes.set_ylabel("NJP: processors the job asks for, % of the site's")
        axes.legend(
            handles=[
                Patch(color=ACCEPT, label=f"runs at {shown}"),
                Patch(color=DECLINE, label="is let go"),
                Patch(color="0.55", label="shaded: where decisions were taken"),
            ],
            frameon=False,
            ncols=3,
            loc="lower left",
            bbox_to_anchor=(0, 1),
        )

    about = "Accepting and declining over waiting and job parallelism"
    return drawn(key, "Decision map", about, draw)


DECISION_MAP: Final = "decision-map"


@dataclass(frozen=True, slots=True)
class DrawnMap:
    """A picture of a rule base's decisions; the caption is empty if rules use queue and width alone."""

    file: str
    caption: str
    picture: str


def decision_maps(
    rule_base: RuleBase, visits: StateVisits, site: str, stem: str = DECISION_MAP
) -> tuple[DrawnMap, ...]:
    """Returns pictures of what a rule base decides: one, or one each for own jobs and guests."""
    if STARTS_NOW.name not in rule_base.further:
        picture = decision_map_svg(rule_base, visits, site, key=stem)
        return (DrawnMap(f"{stem}.svg", _caption(rule_base, visits, ""), picture),)
    drawn = []
    for word, own in (("own", True), ("guests", False)):
        chosen = _of_kind(visits, own=own)
        text = (
            "Own jobs that would not start now"
            if own
            else "Guests that would start now, and that the constraints let in"
        )
        drawn.append(
            DrawnMap(
                f"{stem}-{word}.svg",
                _caption(rule_base, chosen, text),
                decision_map_svg(rule_base, chosen, site, starts_now=not own, key=f"{stem}-{word}"),
            )
        )
    return tuple(drawn)


def map_parts(maps: Sequence[DrawnMap]) -> list[Words]:
    """Returns maps as parts of a page."""
    parts: list[Words] = []
    for one in maps:
        if one.caption:
            parts.append(one.caption)
        parts.append(PageFigure(one.picture))
    return parts


def facts_within(provenance: Mapping[str, Any]) -> list[tuple[str, object]]:
    """Returns constraints and features of a rule base's provenance; nothing as in the paper."""
    if "rails" not in provenance:
        return []
    return [
        ("rails", provenance["rails"]["rules"]),
        ("features", ", ".join(provenance["features"])),
    ]


def compared_section(rows: Sequence[ComparedRow], constant: str) -> Words:
    """Returns the comparison with what needs no learning; nothing where there is none."""
    if not rows:
        return ""
    found = verdict(rows, constant)
    parts: list[Words] = [found.text if found.beaten else Note(found.text)]
    for unseen, heading in ((True, "Unseen workloads"), (False, "Workloads learned from")):
        chosen = [row for row in rows if row.unseen == unseen]
        if chosen:
            parts.append(Group(heading, [comparison_table(chosen, constant, heading)]))
    return Section(f"Beside {constant} alone", parts)


def _of_kind(visits: StateVisits, *, own: bool) -> StateVisits:
    chosen = visits.own == own
    return StateVisits(*(getattr(visits, each.name)[chosen] for each in fields(StateVisits)))


def _caption(rule_base: RuleBase, visits: StateVisits, text: str) -> str:
    if REQUESTED_TIME.name not in rule_base.further:
        return f"{text}." if text else ""
    return (
        f"{text or 'Jobs'}; drawn for a request of {duration(usual_request(visits))}, the median."
    )
