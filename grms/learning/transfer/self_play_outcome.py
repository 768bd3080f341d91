"""What self-play hands over: a rule base for each site, and one page on all of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grms.learning.evolution.self_play import parted
from grms.learning.plots import convergence_svg
from grms.learning.training import TrainingResult
from grms.learning.transfer.comparison import ComparedRow
from grms.learning.transfer.drawn_map import (
    DrawnMap,
    compared_section,
    decision_maps,
    facts_within,
    map_parts,
)
from grms.learning.transfer.encoding import decode
from grms.learning.transfer.fingerprint import describe_matches
from grms.learning.transfer.outcome import (
    CONVERGENCE,
    PAGE,
    provenance_of,
    rule_base_file,
    unseen_of,
)
from grms.learning.transfer.recorded import recorded_decisions
from grms.learning.transfer.self_play import MatchFitness
from grms.policy.files import save_rule_base
from grms.policy.transfer import RuleBase
from lrms_sim.report import templates
from lrms_sim.report.parts import Facts, Figure, Group, Page, Section
from lrms_sim.util.files import write_text

UNIT = "AWRT / AWRT within constraints alone + penalty"


@dataclass(frozen=True, slots=True)
class SelfPlayOutcome:
    """Result of self-play: rule bases by site, each for all the others, and AWRT next to the constraints alone."""

    rule_bases: Mapping[str, RuleBase]
    compared: tuple[ComparedRow, ...]
    constant: str
    result: TrainingResult

    def files(self) -> dict[str, str]:
        """Returns the names of the rule bases' files by site."""
        sites = tuple(self.rule_bases)
        return {site: rule_base_file(site, [s for s in sites if s != site]) for site in sites}


def make_self_play_outcome(
    fitness: MatchFitness,
    result: TrainingResult,
    compared: Sequence[ComparedRow],
    *,
    constant: str,
    case_names: Sequence[str],
    settings: Mapping[str, Any],
    origins: Sequence[Mapping[str, Mapping[str, Any]]],
    commit: str | None,
) -> SelfPlayOutcome:
    """Builds the rule bases with their provenance."""
    described = describe_matches(fitness)
    learned = [row for row in compared if not row.unseen]
    for case, name, origin in zip(described["cases"], case_names, origins, strict=True):
        case["scenario"] = name
        for site in case["sites"]:
            row = next(r for r in learned if (r.case, r.site) == (name, site["name"]))
            site["awrt_alone_s"], site["awrt_after_s"] = row.alone, row.learned
            site["awrt_constant_s"] = row.constant
            site["origin"] = dict(origin.get(site["name"], {}))
    provenance = provenance_of(described, result, settings, commit) | unseen_of(compared, constant)
    parts = parted(result.best.genome, len(fitness.names))
    rule_bases = {
        name: decode(
            part, name=f"{name} in self-play", further=fitness.settings.further, **provenance
        )
        for name, part in zip(fitness.names, parts, strict=True)
    }
    return SelfPlayOutcome(rule_bases, tuple(compared), constant, result)


def write_self_play(folder: Path, fitness: MatchFitness, outcome: SelfPlayOutcome) -> None:
    """Writes the rule bases, the pictures and the page; `OSError` if a file cannot be written."""
    federation = fitness.federations[0]
    pairs = {
        (site.name, partner): outcome.rule_bases[site.name]
        for site in federation.sites
        for partner in site.transfer_policies
    }
    visits = recorded_decisions(federation, pairs, fitness.rails)
    files = outcome.files()
    maps = {
        site: decision_maps(
            outcome.rule_bases[site], seen, site, f"map-{files[site].removesuffix('.json')}"
        )
        for site, seen in visits.items()
    }
    convergence = convergence_svg(outcome.result.history, UNIT)
    write_text(folder / CONVERGENCE, templates.alone(convergence))
    for one in (one for drawn in maps.values() for one in drawn):
        write_text(folder / one.file, templates.alone(one.picture))
    write_text(folder / PAGE, self_play_page(outcome, convergence, maps))
    # Written last: where the rule bases are, the files that explain them are complete.
    for site, file in files.items():
        save_rule_base(outcome.rule_bases[site], folder / file)


def self_play_page(
    outcome: SelfPlayOutcome, convergence: str, maps: Mapping[str, Sequence[DrawnMap]]
) -> str:
    """Returns a self-contained HTML page on a run of self-play."""
    result = outcome.result
    files = outcome.files()
    provenance = next(iter(outcome.rule_bases.values())).provenance
    strategy = provenance["strategy"]
    facts = [
        ("sites", ", ".join(outcome.rule_bases)),
        *facts_within(provenance),
        ("strategy", strategy["name"]),
        ("archive", f"{strategy['self_play']['archive']} sets"),
        ("seed", strategy["seed"]),
        ("objective", provenance["objective"].replace("_", "-")),
        *result.facts(UNIT),
        ("matches", f"{result.evaluations:,} in {result.elapsed_s:,.1f} s"),
        ("stopped because", result.reason),
        ("rule bases", ", ".join(files.values())),
    ]
    drawn = [Group(site, map_parts(pictures)) for site, pictures in maps.items()]
    page = Page(
        f"Self-play of {', '.join(outcome.rule_bases)}",
        "grms train",
        [
            Facts(facts),
            compared_section(outcome.compared, outcome.constant),
            Section("Convergence", [Figure(convergence)], about=_CONVERGENCE),
            Section("What the policies do", drawn, about=_MAPS),
        ],
    )
    return str(page)


_CONVERGENCE = (
    "The value of the best meeting so far: 1 is what the constraints alone bring, on the workloads learned "
    "from."
)
_MAPS = (
    "Left to right the queue gets longer, bottom to top the job wider. The constraints decide first; shaded "
    "is what was left to the rules in the first replay."
)
