"""Parts of the pages on rule bases that were learned: maps, and the comparison with a constant."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final

from grms.learning.transfer.comparison import ComparedRow, comparison_table, verdict
from grms.learning.transfer.decision_map import decision_map_svg, usual_request
from grms.learning.transfer.recorded import StateVisits
from grms.policy.features import REQUESTED_TIME, STARTS_NOW
from grms.policy.transfer import RuleBase
from lrms_sim.report.parts import Figure, Group, Note, Section, Words
from lrms_sim.util.messages import duration

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
        parts.append(Figure(one.picture))
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
