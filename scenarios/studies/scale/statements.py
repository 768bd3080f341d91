"""What the study says, with the figures by which each statement is judged; draw by draw."""

from collections.abc import Iterator
from typing import Any, Final

from scenarios.studies.common.frame import having
from scenarios.studies.common.verdicts import Margin, Statement, judged
from scenarios.studies.scale.study import (
    ALL,
    ASKED,
    AT_ONCE,
    AWAY,
    COMMON,
    KNOWN,
    NETWORKS,
    USUAL,
    Study,
)

FLAT: Final = 3.0
"""Most times that a job may cost what it does with the fewest sites."""

PROPORTIONAL: Final = 1.5
"""Same for memory by site and job, of the second most sites."""

PARTS: Final = {2: 50.0, 4: 70.0, 8: 85.0, 16: 95.0}
"""Part of the gain that so many questions reach at least, percent of that with all."""

AWAY_COSTS: Final = 1.0
"""Most points of the gain for each twentieth of the time away."""

KNOWN_COSTS: Final = 3.0
"""Most points of the gain that it may cost to know few."""


NETWORK_COSTS: Final = {"delay": 0.5, "usual": 0.5, "poor": 1.0}
"""Most points of the gain that messages over such a network cost."""


def counts(study: Study) -> list[int]:
    """Returns the numbers of sites, ascending."""
    return sorted({case.sites for case, _ in study.runs})


def values(study: Study, name: str, **wanted: object) -> list[float]:
    """Returns a figure of the cases with these attributes, in order of draws."""
    usual: dict[str, Any] = {
        "asked": USUAL, "known": ALL, "away": 0, "common": False, "network": AT_ONCE,
    }  # fmt: skip
    found = sorted(having(study.runs, **usual | wanted), key=lambda run: run[0].draw)
    return [float(figures[name]) for _, figures in found]


def parts(study: Study, sites: int, asked: int, *, common: bool = False) -> list[float]:
    """Returns which part of the gain with all partners so many questions reach, percent, in each draw."""
    some = values(study, "gain", sites=sites, asked=asked, common=common)
    every = values(study, "gain", sites=sites, asked=ALL)
    return [100.0 * one / most for one, most in zip(some, every, strict=True)]


def _ratios(one: list[float], other: list[float]) -> list[float]:
    return [left / right for left, right in zip(one, other, strict=True)]


def _by_row(study: Study, sites: int) -> list[float]:
    jobs = int(study.options["jobs"])
    return [1e6 * value / (sites * (1 + jobs)) for value in values(study, "megabytes", sites=sites)]


def statements(study: Study) -> Iterator[Statement]:
    """Yields the statements with what was found."""
    yield from _of_costs(study)
    yield from _of_questions(study)
    yield from _of_absences(study)
    yield from _of_networks(study)


def _of_costs(study: Study) -> Iterator[Statement]:
    every = counts(study)
    fewest, most = every[0], every[-1]
    for sites in every[1:]:
        margin = Margin.of(
            _ratios(
                values(study, "microseconds", sites=sites),
                values(study, "microseconds", sites=fewest),
            )
        )
        claim = f"{sites:,} sites: a job costs at most {FLAT:g} times what it costs with {fewest:,}"
        yield judged(claim, (f"{margin.words()} times", margin.at_most(FLAT)))
    if len(every) > 1:
        margin = Margin.of(_ratios(_by_row(study, most), _by_row(study, every[-2])))
        claim = (
            f"{most:,} sites: memory for each site and job is at most {PROPORTIONAL:g} times that with "
            f"{every[-2]:,}"
        )
        yield judged(claim, (f"{margin.words()} times", margin.at_most(PROPORTIONAL)))


def _of_questions(study: Study) -> Iterator[Statement]:
    every = counts(study)
    for sites in every:
        for asked in ASKED:
            if asked in PARTS:
                margin = Margin.of(parts(study, sites, asked))
                claim = f"{sites:,} sites: {asked} questions reach {PARTS[asked]:g} % of the gain with all"
                yield judged(claim, (f"{margin.words(1)} %", margin.at_least(PARTS[asked])))
    for sites in every:
        for asked in COMMON:
            margin = Margin.between(
                parts(study, sites, asked), parts(study, sites, asked, common=True)
            )
            claim = (
                f"{sites:,} sites: {asked} questions reach more of the gain where each site has an order of partners "
                "of its own"
            )
            yield judged(claim, (f"{margin.words(1)} points more", margin.above()))


def _of_absences(study: Study) -> Iterator[Statement]:
    every = counts(study)
    for sites in every:
        usual = values(study, "gain", sites=sites)
        for away in AWAY:
            margin = Margin.between(usual, values(study, "gain", sites=sites, away=away))
            bound = AWAY_COSTS * away / 5
            claim = f"{sites:,} sites, each away {away} % of the time: that costs at most {bound:g} {'points' if bound > 1 else 'point'} of the gain"
            yield judged(claim, (f"{margin.words()} points", margin.at_most(bound)))
    for sites in every:
        if sites > KNOWN:
            margin = Margin.between(
                values(study, "gain", sites=sites), values(study, "gain", sites=sites, known=KNOWN)
            )
            claim = f"{sites:,} sites: to know {KNOWN} partners alone costs at most {KNOWN_COSTS:g} points of the gain"
            yield judged(claim, (f"{margin.words()} points", margin.at_most(KNOWN_COSTS)))


def network_words(network: str) -> str:
    """Returns what a network does to messages."""
    if network == AT_ONCE:
        return "messages arrive at once"
    wide = NETWORKS[network]
    trips = f"round trips of {wide.median:g} s"
    if not wide.lost:
        return trips
    return f"{trips}, {100 * wide.lost:g} % of questions lost, time-out {wide.timeout:g} s"


def _of_networks(study: Study) -> Iterator[Statement]:
    for sites in counts(study):
        usual = values(study, "gain", sites=sites)
        for network, bound in NETWORK_COSTS.items():
            margin = Margin.between(usual, values(study, "gain", sites=sites, network=network))
            claim = (
                f"{sites:,} sites, {network_words(network)}: that costs at most {bound:g} "
                f"{'point' if bound == 1 else 'points'} of the gain"
            )
            yield judged(claim, (f"{margin.words()} points", margin.at_most(bound)))
