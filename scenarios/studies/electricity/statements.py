"""What the study says, with the figures by which each statement is judged; part by part of a grid."""

from collections.abc import Callable, Iterator
from statistics import fmean
from typing import Any, Final

from scenarios.studies.common.frame import having
from scenarios.studies.common.verdicts import Margin, Statement, every
from scenarios.studies.electricity.study import (
    ALONE,
    BOTH,
    CHEAPER,
    DEFERRED,
    FAIR,
    FREELY,
    GREENER,
    IDLE,
    IDLE_SHARES,
    ONLY,
    SPREAD,
    SPREADS,
    UNBOUND,
    Study,
)

SOURCE: Final = (
    "Hossain, Abubeker, Islam, Ahmed: Power-Aware Scheduling for Multi-Center HPC Electricity Cost Optimization, "
    "arXiv 2503.11011, 2025"
)
"""Costs 10 to 20 % lower with several sites, and up to 18 % lower by shifting jobs in time."""

SOURCE_BOTH: Final = "Murali, Vadhiyar: Metascheduling of HPC Jobs in Day-Ahead Electricity Markets, arXiv 1712.10201, 2017"
"""Cost and mean response time fall together, without being unfair to users of the local batch systems."""

SITES_LEAST: Final = -10.0
DEFERRAL_MOST: Final = -18.0

PLACE: Final = IDLE_SHARES.index(IDLE)

Figure = Callable[[dict[str, Any]], float]
"""Of one replay."""


def grids(study: Study) -> list[str]:
    """Returns the grids, in order."""
    return list(dict.fromkeys(case.grid for case, _ in study.runs))


def cost(found: dict[str, Any]) -> float:
    """Returns the bill of all sites, idle nodes being on."""
    return float(found["cost"][PLACE])


def cost_off(found: dict[str, Any]) -> float:
    """Returns the bill of all sites, idle nodes being off."""
    return float(found["cost_off"])


def carbon(found: dict[str, Any]) -> float:
    """Returns the carbon dioxide of all sites, idle nodes being on."""
    return float(found["carbon"][PLACE])


def carbon_off(found: dict[str, Any]) -> float:
    """Returns the carbon dioxide of all sites, idle nodes being off."""
    return float(found["carbon_off"])


def at_idle_share(place: int) -> Figure:
    """Returns the bill of all sites at one of `IDLE_SHARES`, idle nodes being on."""
    return lambda found: float(found["cost"][place])


def worst_delay(found: dict[str, Any]) -> float:
    """Returns by how much the mean wait is longer than alone, at the site where that is most, hours."""
    return float(max(found["delay"])) / 3600


def worst_longer(found: dict[str, Any]) -> float:
    """Returns by how much the mean response is longer than alone, at the site where that is most, hours."""
    return float(max(found["longer"])) / 3600


def values(
    study: Study, grid: str, policy: str, figure: Figure, spread: float = SPREAD
) -> list[float]:
    """Returns a figure for each part of a grid, in order; the mean over seeds."""
    by_part: dict[int, list[float]] = {}
    for case, found in having(study.runs, grid=grid, policy=policy, spread=spread):
        by_part.setdefault(case.part, []).append(figure(found))
    return [fmean(by_part[part]) for part in sorted(by_part)]


def changes(
    study: Study,
    grid: str,
    policy: str,
    figure: Figure,
    *,
    against: str = ALONE,
    spread: float = SPREAD,
) -> list[float]:
    """Returns what a figure changes against another policy, percent, for each part.

    Seeds, which say where it is cheap, count by what they amount to: their mean is taken first.
    """
    base = values(study, grid, against, figure, spread)
    found = values(study, grid, policy, figure, spread)
    return [100.0 * (value / start - 1.0) for value, start in zip(found, base, strict=True)]


def saved_part(study: Study, grid: str, policy: str) -> list[float]:
    """Returns what is saved with idle nodes on, as a share of what is saved with idle nodes off, by part."""
    on = zip(values(study, grid, ALONE, cost), values(study, grid, policy, cost), strict=True)
    off = zip(
        values(study, grid, ALONE, cost_off), values(study, grid, policy, cost_off), strict=True
    )
    return [
        (alone - found) / (alone_off - found_off)
        for (alone, found), (alone_off, found_off) in zip(on, off, strict=True)
    ]


def statements(study: Study) -> Iterator[Statement]:
    """Yields the statements with what was found, for each grid."""
    for grid in grids(study):
        yield from _of(study, grid)


def _of(study: Study, grid: str) -> Iterator[Statement]:
    def change(policy: str, figure: Figure, **how: Any) -> Margin:
        return Margin.of(changes(study, grid, policy, figure, **how))

    def said(claim: str, found: Margin, holds: bool | None, unit: str, rule: str) -> Statement:
        return Statement(f"{grid}: {claim}", f"{found.words()} {unit}", holds, rule)

    for words, figure in (("idle nodes on", cost), ("idle nodes off", cost_off)):
        for spread in (SPREAD, max(SPREADS)):
            found = change(UNBOUND, figure, spread=spread)
            yield said(
                f"several sites cost 10 to 20 % less, mean prices ±{100 * spread:g} %, {words}",
                found,
                found.at_most(SITES_LEAST),
                "%",
                f"{UNBOUND} against alone; at least 10 %",
            )
    for words, figure in (("idle nodes on", cost), ("idle nodes off", cost_off)):
        found = change(DEFERRED, figure)
        yield said(
            f"shifting jobs in time costs 18 % less, {words}",
            found,
            found.at_most(DEFERRAL_MOST),
            "%",
            f"{DEFERRED} against alone; 18 % is the best of the publication",
        )
    lower = change(FREELY, cost_off)
    found = Margin.of(values(study, grid, FREELY, worst_longer))
    yield Statement(
        f"{grid}: cost and response times fall together, at every site",
        f"{lower.words()} %; {found.words()} h",
        every((lower.below(0.0), found.at_most(0.0))),
        f"{FREELY} against alone: cost with idle nodes off; mean response of the worst site",
    )
    for policy in (CHEAPER, ONLY):
        for against in (ALONE, FAIR):
            found = change(policy, cost_off, against=against)
            yield said(
                f"{policy} costs less than {against}",
                found,
                found.below(0.0),
                "%",
                "within fair exchange; idle nodes off",
            )
        delay = Margin.of(values(study, grid, policy, worst_delay))
        yield said(
            f"{policy}: no site waits longer than alone",
            delay,
            delay.at_most(0.0),
            "h",
            "mean wait of the worst site",
        )
    more = Margin.between(
        values(study, grid, CHEAPER, worst_delay), values(study, grid, FAIR, worst_delay)
    )
    yield said(
        f"{CHEAPER}: the worst site waits no longer than with fair exchange",
        more,
        more.at_most(0.0),
        "h",
        "its mean wait against alone, less the same of fair exchange",
    )
    balance = Margin.between(
        changes(study, grid, ONLY, cost_off), changes(study, grid, UNBOUND, cost_off)
    )
    yield said(
        "balance and short guests cost at least half of the saving",
        balance,
        balance.at_least(-0.5 * fmean(changes(study, grid, UNBOUND, cost_off))),
        "points",
        f"{ONLY} less {UNBOUND}; idle nodes off",
    )
    green = change(GREENER, carbon_off, against=FAIR)
    yield said(
        f"{GREENER} emits less than fair exchange",
        green,
        green.below(0.0),
        "%",
        "carbon dioxide; idle nodes off",
    )
    even = change(UNBOUND, cost_off, spread=0.0)
    yield said(
        "exchange saves as well where mean prices are the same everywhere",
        even,
        even.below(0.0),
        "%",
        f"{UNBOUND}: hours and days alone; idle nodes off",
    )
    both = change(BOTH, cost_off, against=DEFERRED)
    yield said(
        "exchange by cost saves as well where jobs wait for cheap hours",
        both,
        both.below(0.0),
        "%",
        f"{BOTH} against {DEFERRED}; idle nodes off",
    )
    part = Margin.of(saved_part(study, grid, UNBOUND))
    yield said(
        "with idle nodes on, moving work saves the busy-minus-idle part of its power and no more",
        part,
        part.within(1 - IDLE - 1e-3, 1 - IDLE + 1e-3),
        "of the money that is saved with idle nodes off",
        f"{UNBOUND}; idle power is {IDLE:g} of busy power",
    )
