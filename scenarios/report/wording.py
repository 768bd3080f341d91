"""Figures as words: the spelling of numbers and the sentences that terminal and page share."""

from lrms_sim.util.messages import (
    NOTHING,
    change,
    count,
    duration,
    factor,
    listed,
    seconds,
    share,
    shorten,
)
from scenarios.run.results import ScenarioResult, SiteResult

__all__ = [
    "NOTHING",
    "SITES_SPELLED_OUT",
    "UNCHANGED",
    "change",
    "count",
    "duration",
    "exchange_sentence",
    "factor",
    "gainers",
    "headline",
    "listed",
    "losers",
    "seconds",
    "share",
    "shorten",
    "tone",
]

UNCHANGED = 0.0005
"""Changes of AWRT below this share print as 0.0 % or 0.1 % by accident; they count as none."""

SITES_SPELLED_OUT = 4
"""Up to this many sites, a sentence gives every site's figure."""


def tone(improvement: float) -> str:
    """Returns "gain", "loss" or nothing: the class that colours an improvement of AWRT."""
    if improvement >= UNCHANGED:
        return "gain"
    return "loss" if improvement <= -UNCHANGED else ""


def gainers(result: ScenarioResult) -> list[SiteResult]:
    """Returns the sites whose users wait less in the federation, in site order."""
    return [site for site in result.sites if site.awrt_improvement >= UNCHANGED]


def losers(result: ScenarioResult) -> list[SiteResult]:
    """Returns the sites whose users wait longer in the federation, in site order."""
    return [site for site in result.sites if site.awrt_improvement <= -UNCHANGED]


def headline(result: ScenarioResult) -> str:
    """Returns who gained what, in a sentence."""
    sites = result.sites
    if not result.jobs:
        return "There was no job to run."
    if len(sites) == 1:
        site = sites[0]
        return (
            f"{site.name} works alone: its jobs take {duration(site.awrt)} on average, weighted "
            f"by the work in them."
        )
    if result.jobs_exchanged == 0:
        return "No job was exchanged: every site served its users as it does alone."
    better, worse = gainers(result), losers(result)
    if not better and not worse:
        return "Jobs were exchanged, but no site's average weighted response time changed."
    parts = [_moved("falls", better)] if better else []
    if worse:
        parts.append(_moved("rises", worse))
    return f"{_who(result, better, worse)}: average weighted response time {' and '.join(parts)}."


def _who(result: ScenarioResult, better: list[SiteResult], worse: list[SiteResult]) -> str:
    """Returns the beginning of the headline, such as "Every site gains"."""
    total = len(result.sites)
    if len(better) == total:
        return "Both sites gain" if total == 2 else f"All {total} sites gain"
    if len(worse) == total:
        return "Both sites lose" if total == 2 else f"All {total} sites lose"
    if total > SITES_SPELLED_OUT:
        return f"{len(better)} of {total} sites gain" if better else "No site gains"
    clauses = []
    for verb, group in (("gain", better), ("lose", worse)):
        if group:
            names = listed([site.name for site in group])
            clauses.append(f"{names} {verb}{'s' if len(group) == 1 else ''}")
    return ", ".join(clauses)


def _moved(verb: str, group: list[SiteResult]) -> str:
    """Returns "falls by 81.2% at KTH and 17.0% at SDSC05", or the range of a large group."""
    ranked = sorted(group, key=lambda site: -abs(site.awrt_improvement))
    if len(ranked) <= SITES_SPELLED_OUT:
        each = [f"{share(abs(site.awrt_improvement))} at {site.name}" for site in ranked]
        return f"{verb} by {listed(each)}"
    most, least = ranked[0], ranked[-1]
    return (
        f"{verb} by between {share(abs(least.awrt_improvement))} ({least.name}) and "
        f"{share(abs(most.awrt_improvement))} ({most.name})"
    )


def exchange_sentence(result: ScenarioResult) -> str:
    """Returns how many jobs ran away from home, in a sentence."""
    if len(result.sites) == 1 or not result.jobs:
        return f"{_jobs(result.jobs)} on {_sites(len(result.sites))}."
    away = result.jobs_exchanged
    if not away:
        return f"All {_jobs(result.jobs)} ran at home."
    area = float(result.flow_area.sum())
    area_away = area - float(result.flow_area.trace())
    return (
        f"{count(away)} of {_jobs(result.jobs)} ({share(away / result.jobs)}) ran at another "
        f"site, with {share(area_away / area)} of all processor time."
    )


def _jobs(number: int) -> str:
    return f"{count(number)} job" if number == 1 else f"{count(number)} jobs"


def _sites(number: int) -> str:
    return f"{number} site" if number == 1 else f"{number} sites"
