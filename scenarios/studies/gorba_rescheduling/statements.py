"""Statements of the paper about its figures, checked against the measurements.

Every verdict is computed by a rule that is shown with it. Means are compared in pairs: the same
events, or the same loads and seeds, under both; the verdict is open if the interval of the
differences has both signs.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from statistics import fmean
from typing import Any, Final

from scenarios.studies.common.verdicts import LEVEL, Found, Margin, Statement, every, judged, some
from scenarios.studies.gorba_rescheduling.figures import (
    SettingFigures,
    heuristic_shares,
    largest_solved,
    load_of,
    settings_of,
)
from scenarios.studies.gorba_rescheduling.reference import CLASSES, HARD
from scenarios.studies.gorba_rescheduling.study import GLEAM, MEMETIC, OWN, SEARCHED, Study


def statements(study: Study) -> list[Statement]:
    """Returns every statement with what was measured."""
    settings = settings_of(study)
    found = [
        judged(text, judge(settings) if settings else None, rule)
        for text, rule, judge in _OF_SETTINGS
    ]
    shares = heuristic_shares(study)
    of_table = _of_table(shares) if shares else [None] * len(_TABLE_4_1)
    found += [
        judged(text, each, rule) for (text, rule), each in zip(_TABLE_4_1, of_table, strict=True)
    ]
    return found + [judged(text, judge(study), rule) for text, rule, judge in _OF_SWEEP]


_PAIRS: Final = f"beyond chance at {100 * LEVEL:.0f} %, pair by pair"

SETTINGS: Final = 32
"""Settings of Figure 4.1."""

VIOLATED: Final = 6
"""Of these, settings in which the paper has a violated limit."""

VIOLATED_TOLERANCE: Final = 2
"""So many settings more or fewer still count as the paper's number."""

POOR: Final = 0.5
"""Less than this share of another is poor in comparison; the paper's figures are at most 0.05."""


def _improve(settings: Sequence[SettingFigures]) -> Found:
    better = sum(each.is_improved for each in settings)
    higher = sum(each.gleam.mean > each.best_heuristic for each in settings)
    text = (
        f"GLEAM is better on average in {higher} of {len(settings)} settings, significantly (the "
        f"heuristic below the 99 % interval) in {better}."
    )
    return text, every(
        True if each.is_improved else False if each.is_worse else None for each in settings
    )


def _few_new(settings: Sequence[SettingFigures]) -> Found:
    mine = [each for each in settings if each.new == 0.10]
    clean = sum(each.violations == 0 for each in mine)
    return f"{clean} of {len(mine)} are without violated limits in every run.", (
        clean == len(mine) if mine else None
    )


def _many_new(settings: Sequence[SettingFigures]) -> Found:
    violated = [float(each.violations > 0) for each in settings]
    share = Margin.of(violated)
    low, high = max(0.0, SETTINGS * share.low), min(SETTINGS, SETTINGS * share.high)
    text = (
        f"{sum(violated):.0f} of {len(settings)} settings have a violated limit in some run: of 32 such "
        f"events {low:.0f} to {high:.0f}."
    )
    # Of fewer settings than the paper's nobody knows how many it means.
    if len(settings) != SETTINGS:
        return text, None
    least, most = VIOLATED - VIOLATED_TOLERANCE, VIOLATED + VIOLATED_TOLERANCE
    if least <= sum(violated) <= most:
        return text, True
    return text, False if low > most or high < least else None


def _replanning_at_half(settings: Sequence[SettingFigures]) -> Found:
    def ahead(new: float) -> dict[tuple[str, int, float], float]:
        mine = [each for each in settings if each.new == new and each.basic > 0]
        return {(e.benchmark, e.tasks, e.finished): e.replanning / e.basic for e in mine}

    few, many = ahead(0.10), ahead(0.50)
    both = [key for key in few if key in many]
    if not both:
        return "There are no events to compare.", None
    fewer = Margin.between([few[key] for key in both], [many[key] for key in both])
    text = (
        f"The best replanning heuristic has {_mean(few):.2f} times the fitness of the best other one with "
        f"10 % new tasks, {_mean(many):.2f} times with 50 %; difference {fewer.words()}, {len(both)} pairs."
    )
    return text, fewer.above()


def _mean(values: Mapping[Any, float]) -> float:
    return sum(values.values()) / len(values)


_OF_SETTINGS: Sequence[tuple[str, str, Callable[[Sequence[SettingFigures]], Found]]] = (
    (
        "Figure 4.1: all GLEAM runs improve on the best heuristic significantly.",
        "The heuristic below the interval in every setting; not where it is above one.",
        _improve,
    ),
    (
        "With 10 % new tasks all eight scenarios perform well, without violated limits.",
        "All of them.",
        _few_new,
    ),
    (
        "With more new tasks limits are violated in six of the 32 settings.",
        f"In {VIOLATED - VIOLATED_TOLERANCE} to {VIOLATED + VIOLATED_TOLERANCE} of all 32; no if the interval is beyond.",
        _many_new,
    ),
    (
        "More new tasks lower the contribution of the replanning heuristics.",
        f"Less with 50 % than with 10 %, {_PAIRS}.",
        _replanning_at_half,
    ),
)


_TABLE_4_1: Final = (
    (
        "Table 4.1: of the resource allocation strategies, RAS-3 performs best with replanning.",
        f"More than each of the others, {_PAIRS}; not where one of them has more.",
    ),
    (
        "Replanning heuristics are better than planning anew by the same rules.",
        f"More, {_PAIRS}.",
    ),
    (
        "The six old heuristics that sort by short working times perform poorly.",
        f"Less than {POOR:g} times what those by due time have, {_PAIRS}.",
    ),
)


def _of_table(shares: Sequence[Mapping[str, float]]) -> Iterator[Found]:
    def of(*parts: str, replanning: bool) -> list[float]:
        # In each event, the mean of some heuristics.
        return [
            fmean(
                value
                for name, value in each.items()
                if name.startswith("replanning: ") == replanning
                and all(part in name for part in parts)
            )
            for each in shares
        ]

    strategies = {ras: of(ras, replanning=True) for ras in ("RAS-1", "RAS-2", "RAS-3")}
    third = strategies["RAS-3"]
    others = {ras: strategies[ras] for ras in ("RAS-1", "RAS-2")}
    leads = [Margin.between(third, values) for values in others.values()]
    best = [max(values) for values in zip(*strategies.values(), strict=True)]
    firsts = {
        ras: sum(one == most for one, most in zip(values, best, strict=True))
        for ras, values in strategies.items()
    }
    said = "; ".join(
        f"{ras} {fmean(values):.3f}, best in {firsts[ras]} of {len(shares)}"
        for ras, values in strategies.items()
    )
    ahead = " and ".join(
        f"{each.words(3)} over {ras}" for ras, each in zip(others, leads, strict=True)
    )
    yield f"{said}. RAS-3 is {ahead}.", every(each.above() for each in leads)
    new, old = of(replanning=True), of(replanning=False)
    more = Margin.between(new, old)
    yield f"{fmean(new):.2f} against {fmean(old):.2f} on average: {more.words()}.", more.above()
    # Both rules have as many heuristics.
    pairs = zip(of("task", replanning=False), of("workflow", replanning=False), strict=True)
    short = [(task + workflow) / 2 for task, workflow in pairs]
    due = of("due", replanning=False)
    poorer = Margin.between(short, [POOR * each for each in due])
    yield (
        f"{fmean(short):.2f}, by due time {fmean(due):.2f}; against half of that {poorer.words()}.",
        poorer.below(),
    )


def _solved(study: Study, classes: Sequence[str], tasks: int) -> Found | None:
    reach = [size for size in study.sizes if size <= tasks]
    if not reach:
        return None
    parts = []
    for method in (GLEAM, OWN):
        limits = [f"{name} {largest_solved(study, name, method):,}" for name in classes]
        parts.append(f"{'GLEAM' if method == GLEAM else 'ours'}: {', '.join(limits)}")
    said = f"Tasks up to which every run was a success: {'; '.join(parts)}."
    holds = all(largest_solved(study, name, GLEAM) >= reach[-1] for name in classes)
    # Smaller loads alone can refute the statement, but not confirm it.
    return said, None if holds and reach[-1] < tasks else holds


def _always_better(study: Study) -> Found | None:
    found = [
        each
        for name in CLASSES
        for size in study.sizes
        if (each := load_of(study, name, size, GLEAM)) is not None
    ]
    if not found:
        return None
    better = sum(each.factor.mean > 1 for each in found)
    sure = sum(each.factor.count > 1 and each.factor.low > 1 for each in found)
    said = f"GLEAM is better in {better} of {len(found)} classes and loads, beyond chance in {sure}"
    least = min(found, key=lambda each: each.factor.mean)
    said += f"; least {least.factor.mean:.2f} times, at {least.benchmark}, {least.tasks:,} tasks."
    # As a search begins with the heuristic, it is never worse: equal in every run is no improvement.
    holds = every(
        None
        if each.factor.count < 2
        else True
        if each.factor.low > 1
        else False
        if each.factor.high <= 1
        else None
        for each in found
    )
    return said, holds


def _memetic(study: Study) -> Found | None:
    rates: dict[str, list[float]] = {}
    for method in SEARCHED:
        for name in HARD:
            for size in study.sizes:
                runs = study.of("sweep", method, benchmark=name, tasks=size)
                rates.setdefault(method, []).extend(float(e.keeps_all_limits) for e in runs)
    if not all(rates.get(method) for method in SEARCHED):
        return None
    names = {GLEAM: "GLEAM", "asma-best": "best", "asma": "adaptive", OWN: "ours"}
    said = ", ".join(f"{names[method]} {100 * fmean(each):.0f} %" for method, each in rates.items())
    more = {method: Margin.between(rates[method], rates[GLEAM]) for method in MEMETIC}
    apart = ", ".join(f"{names[method]} {each.words()}" for method, each in more.items())
    return (
        f"Success over all loads: {said}. Relative to GLEAM, of 1: {apart}.",
        some(each.above() for each in more.values()),
    )


def _fewer(study: Study) -> Found | None:
    rates = {
        name: {
            size: [each.rate for each in study.of("sweep", GLEAM, benchmark=name, tasks=size)]
            for size in study.sizes
        }
        for name in CLASSES
    }
    every_rate = [rate for each in rates.values() for some in each.values() for rate in some]
    if len(study.sizes) < 2 or not every_rate or any(map(math.isnan, every_rate)):
        return None
    steps = [
        Margin.between(each[before], each[after])
        for each in rates.values()
        for before, after in pairwise(study.sizes)
    ]
    falls = every(each.above() for each in steps)
    pairs = [
        (small, large)
        for name in CLASSES
        if name.startswith("sR")
        for size in study.sizes
        for small, large in zip(rates[name][size], rates[f"l{name[1:]}"][size], strict=True)
    ]
    fewer = Margin.of(1.0 - large / small for small, large in pairs)
    said = (
        f"They fall with {sum(each.above() is True for each in steps)} of {len(steps)} steps, and rise with "
        f"{sum(each.below() is True for each in steps)}; large R allows {100 * (1 - fewer.mean):.0f} % of what small R does."
    )
    return said, every((falls, fewer.above()))


_LARGE: Final = tuple(name for name in CLASSES if name.startswith("lR"))
_OF_SWEEP: Sequence[tuple[str, str, Callable[[Study], Found | None]]] = (
    (
        "Figure 4.2: up to 400 tasks GLEAM violates no limit.",
        "GLEAM up to 400 tasks in each of the classes.",
        lambda study: _solved(study, CLASSES, 400),
    ),
    (
        "With large freedom of resources up to 1000 tasks.",
        "GLEAM up to 1,000 tasks in each of the classes.",
        lambda study: _solved(study, _LARGE, 1000),
    ),
    (
        "Up to the largest load, the search improves on the best heuristic.",
        "The interval of its fitness is above the heuristic in each of them; not where it is below one.",
        _always_better,
    ),
    (
        "Figures 4.3 and 4.4: a tendency in favour of the memetic algorithms, by success.",
        f"One of the two has more than GLEAM, {_PAIRS}; not where neither has.",
        _memetic,
    ),
    (
        "Figure 4.5: evaluations fall with the load, and are fewer with large freedom R.",
        f"So many a second of processor time: fewer with every step in every class, and with large R, {_PAIRS}.",
        _fewer,
    ),
)
