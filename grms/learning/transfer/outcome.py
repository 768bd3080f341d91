"""What a training run hands over: rule bases with their provenance, pictures and a page."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from grms.learning.evolution.self_play import parted
from grms.learning.plots import convergence_svg
from grms.learning.training import TrainingResult, program
from grms.learning.transfer.comparison import ComparedRow, verdict
from grms.learning.transfer.decision_map import (
    DrawnMap,
    compared_section,
    decision_maps,
    facts_within,
    map_parts,
)
from grms.learning.transfer.encoding import decode
from grms.learning.transfer.fitness import Fitness, MatchFitness, describe_fitness, describe_matches
from grms.learning.transfer.options import rule_base_file
from grms.learning.transfer.recorded import StateVisits, recorded_decisions
from grms.policy.files import save_rule_base
from grms.policy.transfer import RuleBase
from lrms_sim.report import templates
from lrms_sim.report.parts import Facts, Figure, Group, Page, Section, Table
from lrms_sim.util.files import write_text

CONVERGENCE = "convergence.svg"
PAGE = "training.html"


@dataclass(frozen=True, slots=True)
class AwrtRow:
    """AWRT of one site in one training replay.

    Attributes:
        case: the replay, for display.
        alone: without cooperation, seconds; nan for a site without jobs.
        after: with the learned policy, seconds.
        evolved: whether it is the site that learned.
    """

    case: str
    site: str
    alone: float
    after: float
    evolved: bool

    @property
    def improvement(self) -> float:
        """By which part AWRT is shorter than alone; more than 0 is a gain."""
        return 1.0 - self.after / self.alone


@dataclass(frozen=True, slots=True)
class TrainingOutcome:
    """Result of a training run.

    Attributes:
        rows: AWRT of every site in every training replay.
        unit: of a fitness value, for display.
        compared: comparison with the constant, on test workloads too; empty if not requested.
        constant: the word of the constant.
    """

    rule_base: RuleBase
    rows: tuple[AwrtRow, ...]
    result: TrainingResult
    unit: str
    compared: tuple[ComparedRow, ...] = ()
    constant: str = ""


def make_outcome(
    fitness: Fitness,
    result: TrainingResult,
    *,
    case_names: Sequence[str],
    settings: Mapping[str, Any],
    origins: Sequence[Mapping[str, Mapping[str, Any]]],
    commit: str | None,
    compared: tuple[ComparedRow, ...] = (),
    constant: str = "",
) -> TrainingOutcome:
    """Builds the rule base, its provenance and the table of AWRT."""
    best = result.best
    rows = tuple(
        AwrtRow(name, site.name, alone, after, evolved=site.name == case.site)
        for name, case, alones, afters in zip(
            case_names, fitness.cases, fitness.alone, best.evaluation.figures, strict=True
        )
        for site, alone, after in zip(case.federation.sites, alones, afters, strict=True)
    )
    described = describe_fitness(fitness)
    for name, case, origin, alones, afters in zip(
        case_names,
        described["cases"],
        origins,
        fitness.alone,
        best.evaluation.figures,
        strict=True,
    ):
        case["scenario"] = name
        for site, alone, after in zip(case["sites"], alones, afters, strict=True):
            site["awrt_alone_s"] = _or_none(alone)
            site["awrt_after_s"] = _or_none(after)
            site["origin"] = dict(origin.get(site["name"], {}))
    provenance = provenance_of(described, result, settings, commit) | unseen_of(compared, constant)
    partners = list(dict.fromkeys(p for case in fitness.cases for p in case.partners))
    name = f"{fitness.cases[0].site} for {', '.join(partners)}"
    unit = "AWRT, s" if fitness.objective == "egoistic" else "AWRT / AWRT alone + penalty"
    learned = decode(best.genome, name=name, further=fitness.further, **provenance)
    return TrainingOutcome(learned, rows, result, unit, compared, constant)


def provenance_of(
    described: Mapping[str, Any],
    result: TrainingResult,
    settings: Mapping[str, Any],
    commit: str | None,
) -> dict[str, Any]:
    """Returns the provenance in a rule base's file."""
    within = ("rails", "features", "self_play")
    return {
        **program(commit),
        "strategy": dict(settings),
        **{key: described[key] for key in within if key in described},
        "objective": described["objective"],
        "fitness": result.best.evaluation.value,
        **result.noted,
        "cases": described["cases"],
    }


def unseen_of(rows: Sequence[ComparedRow], constant: str) -> dict[str, Any]:
    """Returns the test results in a rule base's file; empty without any."""
    unseen = [row for row in rows if row.unseen]
    if not unseen:
        return {}
    return {
        "unseen": {
            "constant": constant,
            "beaten": verdict(rows, constant).beaten,
            "sites": [
                {
                    "scenario": row.case,
                    "name": row.site,
                    "awrt_alone_s": _or_none(row.alone),
                    "awrt_constant_s": _or_none(row.constant),
                    "awrt_learned_s": _or_none(row.learned),
                }
                for row in unseen
            ],
        }
    }


def visited_states(fitness: Fitness, rule_base: RuleBase) -> StateVisits:
    """Returns the states in which the policy is asked in all training replays."""
    found = [
        recorded_decisions(
            case.federation,
            dict.fromkeys(((case.site, partner) for partner in case.partners), rule_base),
            fitness.rails,
        )[case.site]
        for case in fitness.cases
    ]
    columns = ([getattr(one, each.name) for one in found] for each in fields(StateVisits))
    return StateVisits(*map(np.concatenate, columns))


def write_outcome(folder: Path, file: str, outcome: TrainingOutcome, visits: StateVisits) -> None:
    """Writes the rule base, both pictures and the page; `OSError` if a file cannot be written."""
    site = next(row.site for row in outcome.rows if row.evolved)
    convergence = convergence_svg(outcome.result.history, outcome.unit)
    maps = decision_maps(outcome.rule_base, visits, site)
    write_text(folder / CONVERGENCE, templates.alone(convergence))
    for one in maps:
        write_text(folder / one.file, templates.alone(one.picture))
    write_text(folder / PAGE, page(outcome, convergence, maps, file))
    # Written last: where the rule base is, the files that explain it are complete.
    save_rule_base(outcome.rule_base, folder / file)


def page(outcome: TrainingOutcome, convergence: str, maps: Sequence[DrawnMap], file: str) -> str:
    """Returns a self-contained HTML page on a training run."""
    result, provenance = outcome.result, outcome.rule_base.provenance
    strategy = provenance["strategy"]
    rate = result.evaluations / result.elapsed_s if result.elapsed_s > 0 else math.nan
    facts = [
        ("strategy", strategy["name"]),
        ("seed", strategy["seed"]),
        *facts_within(provenance),
        ("objective", provenance["objective"].replace("_", "-")),
        *result.facts(outcome.unit),
        ("evaluations", f"{result.evaluations:,} in {result.elapsed_s:,.1f} s, {rate:,.0f} per s"),
        ("stopped because", result.reason),
        ("rule base", file),
    ]
    rows = [
        (row.case, row.site + (" (learned)" if row.evolved else ""), *awrt_words(row))
        for row in outcome.rows
    ]
    replays = Table(_COLUMNS, rows, name="Average weighted response times", words={1})
    shown = Page(
        outcome.rule_base.name,
        "grms train",
        [
            Facts(facts),
            Section(
                "Average weighted response time on the training replays", [replays], about=_UNSEEN
            ),
            compared_section(outcome.compared, outcome.constant),
            Section("Convergence", [Figure(convergence)]),
            Section("What the policy does", map_parts(maps), about=_MAP),
        ],
    )
    return str(shown)


def awrt_words(row: AwrtRow) -> tuple[str, str, str]:
    """Returns AWRT alone, AWRT after and the improvement as text."""
    if math.isnan(row.alone):
        return "no jobs", "no jobs", ""
    return f"{row.alone:,.2f}", f"{row.after:,.2f}", f"{100 * row.improvement:+.2f}%"


def _or_none(value: float) -> float | None:
    return None if math.isnan(value) else value


_COLUMNS = ("replay", "site", "alone, s", "after, s", "improvement")

_UNSEEN = (
    "An improvement is positive where the site's users wait less than alone. These are the "
    "workloads the policy was chosen by; unseen ones tell what it is worth."
)

_MAP = (
    "Left to right the queue gets longer, bottom to top the job wider. The site asks the policy of "
    "its own users' jobs and of those that partners offer."
)


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
