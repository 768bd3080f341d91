"""Figures as words: the spelling of numbers and the sentences that terminal and page share."""

import math
from collections.abc import Sequence

from scenarios.results import ScenarioResult, SiteResult

NOTHING = "–"
"""Stands where a figure has no meaning."""

UNCHANGED = 0.0005
"""Changes of AWRT below this share print as 0.0 % or 0.1 % by accident; they count as none."""

SITES_SPELLED_OUT = 4
"""Up to this many sites, a sentence gives every site's figure."""

_UNITS = (("d", 86400), ("h", 3600), ("min", 60), ("s", 1))


def count(number: int) -> str:
    """Returns a whole number with commas between thousands."""
    return f"{number:,}"


def seconds(value: float, digits: int = 2) -> str:
    """Returns seconds with commas between thousands, without a unit."""
    return f"{value:,.{digits}f}" if math.isfinite(value) else NOTHING


def factor(value: float) -> str:
    """Returns a ratio such as a slowdown, with fewer digits the larger it is."""
    if not math.isfinite(value):
        return NOTHING
    return f"{value:,.0f}" if value >= 1000 else f"{value:,.1f}" if value >= 10 else f"{value:.2f}"


def share(value: float) -> str:
    """Returns a share of 1 as percent with one digit."""
    return f"{100 * value:,.1f}%" if math.isfinite(value) else NOTHING


def change(value: float) -> str:
    """Returns a share of 1 as percent with its sign, "±0.0%" where it rounds to nothing."""
    if not math.isfinite(value):
        return NOTHING
    digits = f"{abs(100 * value):,.1f}%"
    sign = "±" if digits == "0.0%" else "+" if value > 0 else "\N{MINUS SIGN}"
    return sign + digits


def duration(value: float) -> str:
    """Returns seconds as people say them: the two largest units that matter, down to ms."""
    if not math.isfinite(value):
        return NOTHING
    sign = "\N{MINUS SIGN}" if value < 0 else ""
    rest = abs(value)
    # Each bound is where rounding reaches the next unit: 59.96 s is 1 min, not 60.0 s.
    if 0 < rest < 0.9995:
        return f"{sign}{1000 * rest:.0f} ms"
    if rest < 59.95:
        return f"{sign}{rest:.1f} s".replace(".0 s", " s")
    rest = max(rest, 60.0)
    first = next(i for i, (_, size) in enumerate(_UNITS) if rest >= size)
    (big_name, big), (small_name, small) = _UNITS[first], _UNITS[first + 1]
    # Round first, carry afterwards: 3599.9 s is 1 h, not 59 min 60 s.
    steps = round(rest / small)
    if first > 0 and steps * small >= _UNITS[first - 1][1]:
        return sign + f"1 {_UNITS[first - 1][0]}"
    whole, left = divmod(steps, big // small)
    return sign + (f"{whole} {big_name} {left} {small_name}" if left else f"{whole} {big_name}")


def shorten(text: str, length: int) -> str:
    """Returns the text, cut to `length` characters with an ellipsis where it is longer."""
    return text if len(text) <= length else text[: length - 1].rstrip() + "…"


def listed(parts: Sequence[str]) -> str:
    """Returns "a", "a and b", "a, b and c"."""
    if len(parts) < 2:
        return "".join(parts)
    return f"{', '.join(parts[:-1])} and {parts[-1]}"


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
