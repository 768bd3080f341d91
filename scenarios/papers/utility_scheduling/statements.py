"""What the paper says of its figures, each held against paired differences of what was measured."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from statistics import fmean
from typing import Final

from scenarios.papers.utility_scheduling.experiments import Run
from scenarios.papers.utility_scheduling.reference import (
    BEST_FIT,
    RATE,
    RATES,
    READINGS,
    SEVEN,
    SHAPES,
)
from scenarios.papers.utility_scheduling.study import BOTH, OVER, Study
from scenarios.papers.verdicts import Margin, Statement, counted, every

NEAR_ONE: Final = 0.9
"""From which utilization on we call it near 1."""


Judge = Callable[[Study, str], "Statement | None"]


def _more(paper: str, left: str, right: str) -> tuple[str, Judge]:
    def judge(study: Study, reading: str) -> Statement | None:
        found = study.of("figure-2", reading)
        if len(found) < 2:
            return None
        gap = Margin.of(run[left].productivity - run[right].productivity for run in found)
        return Statement(paper, f"{gap.words()} k", gap.above())

    return paper, judge


def _together(paper: str, pairs: Sequence[tuple[str, str]]) -> tuple[str, Judge]:
    def judge(study: Study, reading: str) -> Statement | None:
        found = study.of("figure-2", reading)
        if len(found) < 2:
            return None
        gaps = [
            Margin.of(run[left].productivity - run[right].productivity for run in found)
            for left, right in pairs
        ]
        return Statement(paper, ", ".join(gap.words() for gap in gaps) + " k", _all(gaps))

    return paper, judge


def _all(gaps: Iterable[Margin]) -> bool | None:
    return every(gap.above() for gap in gaps)


def _greatest_use(study: Study, reading: str) -> Statement | None:
    found = study.of("figure-2", reading)
    if len(found) < 2:
        return None
    others = [name for name in SEVEN if name != OVER]
    gaps = {
        name: Margin.of(run[OVER].utilization - run[name].utilization for run in found)
        for name in others
    }
    nearest = min(others, key=lambda name: gaps[name].mean)
    gap = gaps[nearest]
    return Statement(_USE, f"{gap.words(4)} against {SEVEN[nearest]}", _all(gaps.values()))


def _sweep(study: Study, reading: str) -> dict[float, list[dict[str, Run]]]:
    found = {rate: study.of("figure-4", reading, rate) for rate in RATES}
    return {rate: runs for rate, runs in found.items() if len(runs) > 1}


def _best_fit_falls(study: Study, reading: str) -> Statement | None:
    sweep = {rate: runs for rate, runs in _sweep(study, reading).items() if rate <= 0.5}
    if len(sweep) < 2:
        return None
    series = {rate: [run[BEST_FIT].productivity for run in runs] for rate, runs in sweep.items()}
    peak = max(series, key=lambda rate: fmean(series[rate]))
    last = max(series)
    gap = Margin.between(series[peak], series[last])
    text = f"peak at λ {peak:g}; at {last:g} {gap.words()} k below it"
    return Statement(_FALLS, text, gap.above() if peak != last else False)


def _grows(paper: str, value: Callable[[dict[str, Run]], float], unit: str) -> Judge:
    def judge(study: Study, reading: str) -> Statement | None:
        sweep = _sweep(study, reading)
        if len(sweep) < 2:
            return None
        series = [[value(run) for run in runs] for runs in sweep.values()]
        gaps = [Margin.between(after, before) for before, after in pairwise(series)]
        first, last = fmean(series[0]), fmean(series[-1])
        text = f"{first:.1f} to {last:.1f} {unit}, λ {min(sweep):g} to {max(sweep):g}"
        return Statement(paper, text, _all(gaps))

    return judge


def _gain(run: dict[str, Run]) -> float:
    return 100 * (run[BOTH].productivity / run[BEST_FIT].productivity - 1)


def _use_near_one(study: Study, reading: str) -> Statement | None:
    sweep = _sweep(study, reading)
    if len(sweep) < 2:
        return None
    use = {rate: [run[BOTH].utilization for run in runs] for rate, runs in sweep.items()}
    last = max(use)
    text = f"{fmean(use[min(use)]):.2f} at λ {min(use):g}, {fmean(use[last]):.2f} at {last:g}"
    rises = [Margin.between(after, before).above() for before, after in pairwise(use.values())]
    return Statement(_NEAR, text, every([*rises, Margin.of(use[last]).at_least(NEAR_ONE)]))


def _convexity(study: Study, reading: str) -> Statement | None:
    found = {shape: study.of("figure-5", reading, RATE, shape) for shape in SHAPES}
    if min(map(len, found.values())) < 2:
        return None
    gains = {shape: [_gain(run) for run in runs] for shape, runs in found.items()}
    gaps = [Margin.between(gains[high], gains[low]) for low, high in pairwise(SHAPES)]
    text = "gain " + ", ".join(f"{fmean(gains[s]):.1f} % {s}" for s in SHAPES)
    return Statement(_SHAPE, text, _all(gaps))


def slopes(p: Sequence[float]) -> tuple[float, float, float]:
    """Returns how the value changes from small to large x1, x2, x3, over the mean of the rest."""
    return (
        sum(p[4:]) - sum(p[:4]),
        sum(p[i] for i in (2, 3, 6, 7)) - sum(p[i] for i in (0, 1, 4, 5)),
        sum(p[1::2]) - sum(p[::2]),
    )


def _sign(paper: str, place: int, wanted: int) -> Judge:
    def judge(study: Study, reading: str) -> Statement | None:
        found = [slopes(run[BOTH].p)[place] * wanted for run in study.of("figure-2", reading)]
        if len(found) < 2:
            return None
        share = sum(value > 0 for value in found) / len(found)
        text = f"in {100 * share:.0f} % of the experiments"
        return Statement(paper, text, Margin.of(found).above())

    return judge


_USE: Final = "utilization is greatest for over, aggressive"
_FALLS: Final = "best fit falls at high rates"
_NEAR: Final = "utilization of both, learned, comes near 1 at high rates"
_SHAPE: Final = "the gain grows with convexity"


def _judges() -> Iterator[tuple[str, Judge]]:
    yield _more("over, learned, is above best fit", "over-value", BEST_FIT)
    yield _more("pre, learned, is above best fit", "pre-value", BEST_FIT)
    yield _more("over: learned above aggressive", "over-value", OVER)
    yield _more("pre: learned above aggressive", "pre-value", "pre-aggressive")
    yield _more("both: learned above aggressive", BOTH, "both-aggressive")
    yield _more("both, learned, is above over, learned", BOTH, "over-value")
    yield _more("both, learned, is above pre, learned", BOTH, "pre-value")
    yield _USE, _greatest_use
    for kind in ("over", "pre", "both"):
        paper = f"{kind}, aggressive: the smallest job is better than that of highest utility"
        yield _together(paper, [(f"{kind}-aggressive", f"{kind}-highest")])
    yield _FALLS, _best_fit_falls
    grows = "the gain of both, learned, grows with the rate"
    yield grows, _grows(grows, _gain, "%")
    rises = "both, learned, grows throughout"
    yield rises, _grows(rises, lambda run: run[BOTH].productivity, "k")
    yield _NEAR, _use_near_one
    yield _SHAPE, _convexity
    for name, place, wanted in (("x1", 0, 1), ("x2", 1, 1), ("free processors", 2, -1)):
        way = "rises" if wanted > 0 else "falls"
        paper = f"the learned value {way} with {name}"
        yield paper, _sign(paper, place, wanted)


def statements(study: Study, reading: str) -> list[Statement]:
    """Returns every statement with what was measured under a reading."""
    return [judge(study, reading) or Statement.not_run(paper) for paper, judge in _judges()]


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
