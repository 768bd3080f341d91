"""Comparison of learned policies with constants.

Within constraints the constraints alone, a policy that always agrees within them, come for free. So that is the
constant which anything learned has to beat, on workloads it was not chosen by. Without constraints the
constant is accept when fit.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from lrms_sim.report.parts import Table
from lrms_sim.util.messages import listed

TIE: Final = 5e-5
"""Parts of an AWRT that are shown as 0.00 %, and count as equal."""


@dataclass(frozen=True, slots=True)
class ComparedRow:
    """AWRT of one site in one replay.

    Attributes:
        case: the replay, for display.
        alone: without cooperation, seconds; nan for a site without jobs.
        constant: with the constant policy, seconds.
        learned: with the learned policy, seconds.
        evolved: whether a rule base of this site is in it.
        unseen: whether it is a test workload.
    """

    case: str
    site: str
    alone: float
    constant: float
    learned: float
    evolved: bool
    unseen: bool

    @property
    def over_constant(self) -> float:
        """By which part AWRT is shorter than with the constant; more than 0 is a gain."""
        return 1.0 - self.learned / self.constant


@dataclass(frozen=True, slots=True)
class Assessment:
    """Whether learning beats the constant on test workloads, `None` without any, and the same in words."""

    beaten: bool | None
    text: str


def headings(constant: str) -> tuple[str, ...]:
    """Returns the headings of a table of such rows."""
    return ("replay", "site", "alone, s", constant, "learned", "gain", "over that")


def cells(row: ComparedRow) -> tuple[str, ...]:
    """Returns a row of that table as text."""
    site = f"{row.site}{' *' if row.evolved else ''}"
    if math.isnan(row.alone):
        return (row.case, site, "no jobs", "", "", "", "")
    return (
        row.case,
        site,
        f"{row.alone:,.0f}",
        f"{row.constant:,.0f}",
        f"{row.learned:,.0f}",
        f"{100 * (1 - row.learned / row.alone):+.2f}%",
        f"{100 * row.over_constant:+.2f}%",
    )


def verdict(rows: Sequence[ComparedRow], constant: str) -> Assessment:
    """Returns whether what was learned beats the constant: a gain on the average, and no site worse."""
    judged = [row for row in rows if row.unseen and not math.isnan(row.alone)]
    if not judged:
        return Assessment(
            None,
            f"Whether this beats {constant} alone is not known: these are the workloads it was chosen "
            f"by. Name others with --unseen before using it.",
        )
    gains = [row.over_constant for row in judged]
    mean = sum(gains) / len(gains)
    worse = [
        f"{row.site} {100 * row.over_constant:+.2f} %" for row in judged if row.over_constant < -TIE
    ]
    if mean > TIE and not worse:
        return Assessment(
            True,
            f"Beats {constant} alone on unseen workloads: {100 * mean:+.2f} % on the average, and no site "
            f"is worse off. One seed is chance: look at several.",
        )
    why = f"worse for {listed(worse)}" if worse else f"{100 * mean:+.2f} % on the average"
    return Assessment(
        False,
        f"Does not beat {constant} alone on unseen workloads: {why}. Use {constant} alone.",
    )


def comparison_table(rows: Sequence[ComparedRow], constant: str, of: str) -> Table:
    """Returns the comparison table of a page; `of` names the replays, for screen readers."""
    label = f"{of}: average weighted response times"
    return Table(headings(constant), [cells(row) for row in rows], name=label, words={1})
