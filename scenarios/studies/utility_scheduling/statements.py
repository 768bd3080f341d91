"""What the paper says of its figures, each held against paired differences of what was measured."""

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from statistics import fmean
from typing import Final

from scenarios.studies.common.verdicts import Found, Margin, Statement, counted, every, judged
from scenarios.studies.utility_scheduling.experiments import Run
from scenarios.studies.utility_scheduling.reference import (
    BEST_FIT,
    RATE,
    RATES,
    READINGS,
    SEVEN,
    SHAPES,
)
from scenarios.studies.utility_scheduling.study import BOTH, OVER, Study

NEAR_ONE: Final = 0.9
"""Utilization from which on it counts as near 1."""


Judge = Callable[[Study, str], Found | None]
"""Judges the measurements under a reading; nothing if there are too few."""


def _of_figure_2(look: Callable[[list[dict[str, Run]]], Found]) -> Judge:
    def judge(study: Study, reading: str) -> Found | None:
        found = study.of("figure-2", reading)
        return look(found) if len(found) > 1 else None

    return judge


def _more(left: str, right: str) -> Judge:
    def look(found: list[dict[str, Run]]) -> Found:
        gap = Margin.of(run[left].productivity - run[right].productivity for run in found)
        return f"{gap.words()} k", gap.above()

    return _of_figure_2(look)


def _all(gaps: Iterable[Margin]) -> bool | None:
    return every(gap.above() for gap in gaps)


def _greatest_use(found: list[dict[str, Run]]) -> Found:
    others = [name for name in SEVEN if name != OVER]
    gaps = {
        name: Margin.of(run[OVER].utilization - run[name].utilization for run in found)
        for name in others
    }
    nearest = min(others, key=lambda name: gaps[name].mean)
    return f"{gaps[nearest].words(4)} against {SEVEN[nearest]}", _all(gaps.values())


def _sweep(study: Study, reading: str) -> dict[float, list[dict[str, Run]]]:
    found = {rate: study.of("figure-4", reading, rate) for rate in RATES}
    return {rate: runs for rate, runs in found.items() if len(runs) > 1}


def _best_fit_falls(study: Study, reading: str) -> Found | None:
    sweep = {rate: runs for rate, runs in _sweep(study, reading).items() if rate <= 0.5}
    if len(sweep) < 2:
        return None
    series = {rate: [run[BEST_FIT].productivity for run in runs] for rate, runs in sweep.items()}
    peak = max(series, key=lambda rate: fmean(series[rate]))
    last = max(series)
    gap = Margin.between(series[peak], series[last])
    text = f"peak at λ {peak:g}; at {last:g} {gap.words()} k below it"
    return text, gap.above() if peak != last else False


def _grows(value: Callable[[dict[str, Run]], float], unit: str) -> Judge:
    def judge(study: Study, reading: str) -> Found | None:
        sweep = _sweep(study, reading)
        if len(sweep) < 2:
            return None
        series = [[value(run) for run in runs] for runs in sweep.values()]
        gaps = [Margin.between(after, before) for before, after in pairwise(series)]
        first, last = fmean(series[0]), fmean(series[-1])
        text = f"{first:.1f} to {last:.1f} {unit}, λ {min(sweep):g} to {max(sweep):g}"
        return text, _all(gaps)

    return judge


def _gain(run: dict[str, Run]) -> float:
    return 100 * (run[BOTH].productivity / run[BEST_FIT].productivity - 1)


def _use_near_one(study: Study, reading: str) -> Found | None:
    sweep = _sweep(study, reading)
    if len(sweep) < 2:
        return None
    use = {rate: [run[BOTH].utilization for run in runs] for rate, runs in sweep.items()}
    last = max(use)
    text = f"{fmean(use[min(use)]):.2f} at λ {min(use):g}, {fmean(use[last]):.2f} at {last:g}"
    rises = [Margin.between(after, before).above() for before, after in pairwise(use.values())]
    return text, every([*rises, Margin.of(use[last]).at_least(NEAR_ONE)])


def _convexity(study: Study, reading: str) -> Found | None:
    found = {shape: study.of("figure-5", reading, RATE, shape) for shape in SHAPES}
    if min(map(len, found.values())) < 2:
        return None
    gains = {shape: [_gain(run) for run in runs] for shape, runs in found.items()}
    gaps = [Margin.between(gains[high], gains[low]) for low, high in pairwise(SHAPES)]
    text = "gain " + ", ".join(f"{fmean(gains[s]):.1f} % {s}" for s in SHAPES)
    return text, _all(gaps)


def slopes(p: Sequence[float]) -> tuple[float, float, float]:
    """Returns how the value changes from small to large x1, x2, x3, over the mean of the rest."""
    return (
        sum(p[4:]) - sum(p[:4]),
        sum(p[i] for i in (2, 3, 6, 7)) - sum(p[i] for i in (0, 1, 4, 5)),
        sum(p[1::2]) - sum(p[::2]),
    )


def _sign(place: int, wanted: int) -> Judge:
    def look(runs: list[dict[str, Run]]) -> Found:
        found = [slopes(run[BOTH].p)[place] * wanted for run in runs]
        share = sum(value > 0 for value in found) / len(found)
        return f"in {100 * share:.0f} % of the experiments", Margin.of(found).above()

    return _of_figure_2(look)


_SMALLEST: Final = "aggressive: the smallest job is better than that of highest utility"

_JUDGES: Final[tuple[tuple[str, Judge], ...]] = (
    ("over, learned, is above best fit", _more("over-value", BEST_FIT)),
    ("pre, learned, is above best fit", _more("pre-value", BEST_FIT)),
    ("over: learned above aggressive", _more("over-value", OVER)),
    ("pre: learned above aggressive", _more("pre-value", "pre-aggressive")),
    ("both: learned above aggressive", _more(BOTH, "both-aggressive")),
    ("both, learned, is above over, learned", _more(BOTH, "over-value")),
    ("both, learned, is above pre, learned", _more(BOTH, "pre-value")),
    ("utilization is greatest for over, aggressive", _of_figure_2(_greatest_use)),
    (f"over, {_SMALLEST}", _more(OVER, "over-highest")),
    (f"pre, {_SMALLEST}", _more("pre-aggressive", "pre-highest")),
    (f"both, {_SMALLEST}", _more("both-aggressive", "both-highest")),
    ("best fit falls at high rates", _best_fit_falls),
    ("the gain of both, learned, grows with the rate", _grows(_gain, "%")),
    ("both, learned, grows throughout", _grows(lambda run: run[BOTH].productivity, "k")),
    ("utilization of both, learned, comes near 1 at high rates", _use_near_one),
    ("the gain grows with convexity", _convexity),
    ("the learned value rises with x1", _sign(0, 1)),
    ("the learned value rises with x2", _sign(1, 1)),
    ("the learned value falls with free processors", _sign(2, -1)),
)


def statements(study: Study, reading: str) -> list[Statement]:
    """Returns every statement with what was measured under a reading."""
    return [judged(claim, judge(study, reading)) for claim, judge in _JUDGES]


def verdict(study: Study) -> str:
    """Returns the outcome in a sentence, computed from the statements and the table below them."""
    first = next(iter(READINGS))
    told = [each.holds for each in statements(study, first) if each.run]
    text = f"Read as “{READINGS[first].name}”, {counted(told, 'of the paper')}."
    behind = behind_replan(study)
    if behind:
        rates = [100 * each for each in behind.values()]
        better = all(each > 0 for each in rates)
        text += (
            f" Replanning at every event, which learns nothing, "
            f"{'beats' if better else 'does not always beat'} the learned policy: it is "
            f"{min(rates):.1f} to {max(rates):.1f} % above it where squeezing is allowed."
        )
    return text


def behind_replan(study: Study) -> dict[float, float]:
    """Returns by which share replanning is above the learned policy, by rate; with growth."""
    found = {}
    for rate in RATES:
        runs = study.of("reachable", "growth", rate)
        if runs:
            own = sum(run[BOTH].productivity for run in runs)
            found[rate] = sum(run["replan"].productivity for run in runs) / own - 1
    return found
