"""Comparison of learned policies with constants, on training and test workloads.

Within constraints the constraints alone, a policy that always agrees within them, come for free. So that is the
constant which anything learned has to beat, on workloads it was not chosen by. Without constraints the
constant is accept when fit.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from grms.federation.federation import Site
from grms.learning.evolution.genes import Genome
from grms.learning.evolution.strategies import Evaluation
from grms.learning.transfer.fitness import Fitness, MatchFitness, SourceError
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


def compared(
    fitness: Fitness, case_names: Sequence[str], found: Evaluation, *, unseen: bool = False
) -> list[ComparedRow]:
    """Returns a row for each site of each case of a fitness, with the policy of one genome."""
    return [
        ComparedRow(name, site.name, alone, constant, learned, site.name == case.site, unseen)
        for name, case, alones, constants, afters in zip(
            case_names,
            fitness.cases,
            fitness.alone,
            fitness.constant(),
            found.figures,
            strict=True,
        )
        for site, alone, constant, learned in zip(
            case.federation.sites, alones, constants, afters, strict=True
        )
    ]


def compared_match(
    fitness: MatchFitness, case_names: Sequence[str], genome: Genome, *, unseen: bool = False
) -> list[ComparedRow]:
    """Returns a row for each site of each case of a fitness, with the rule bases of a match."""
    return [
        ComparedRow(name, site, alone, constant, learned, True, unseen)
        for name, alones, constants, afters in zip(
            case_names, fitness.alone, fitness.constant, fitness.awrt(genome), strict=True
        )
        for site, alone, constant, learned in zip(
            fitness.names, alones, constants, afters, strict=True
        )
    ]


def check_same_sites(learned: Sequence[Site], others: Sequence[Site], scenario: str) -> None:
    """Refuses test workloads whose machines differ from the training ones.

    Raises:
        SourceError: sizes differ.
    """
    sizes = {site.name: site.processors for site in learned}
    for site in others:
        if sizes.get(site.name) != site.processors:
            raise SourceError(
                f"scenario {scenario}, which --unseen names: site {site.name} has {site.processors} "
                f"processors; it has learned with {sizes.get(site.name)}. Name one of the same machines"
            )
