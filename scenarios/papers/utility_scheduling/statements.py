"""What the paper says of its figures, each held against paired differences of what was measured."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
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

SURE: Final = 2.0
"""A difference counts when it is more than so many of its standard errors."""

NEAR_ONE: Final = 0.9
"""From which utilization on we call it near 1."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A mean of paired differences.

    Attributes:
        mean: of the differences.
        error: its standard error.
    """

    mean: float
    error: float

    @property
    def holds(self) -> bool | None:
        """True where it is more than 0 beyond chance, False where less, None within chance."""
        if abs(self.mean) <= SURE * self.error or not math.isfinite(self.mean):
            return None
        return self.mean > 0

    def __str__(self) -> str:
        return f"{self.mean:+.2f} ± {SURE * self.error:.2f}"


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement of the paper under one reading.

    Attributes:
        paper: what it says.
        measured: what was found.
        holds: whether that agrees; None where the difference is within chance.
        run: whether anything was measured for it.
    """

    paper: str
    measured: str
    holds: bool | None
    run: bool = True


def difference(values: Sequence[float]) -> Difference:
    """Returns mean and standard error of differences; no number for fewer than two."""
    count = len(values)
    if count < 2:
        return Difference(math.nan, math.nan)
    mean = math.fsum(values) / count
    square = math.fsum((value - mean) ** 2 for value in values) / (count - 1)
    return Difference(mean, math.sqrt(square / count))


Judge = Callable[[Study, str], "Statement | None"]


def _more(paper: str, left: str, right: str) -> tuple[str, Judge]:
    def judge(study: Study, reading: str) -> Statement | None:
        found = study.of("figure-2", reading)
        if len(found) < 2:
            return None
        gap = difference([run[left].productivity - run[right].productivity for run in found])
        return Statement(paper, f"{gap} k", gap.holds)

    return paper, judge


def _together(paper: str, pairs: Sequence[tuple[str, str]]) -> tuple[str, Judge]:
    def judge(study: Study, reading: str) -> Statement | None:
        found = study.of("figure-2", reading)
        if len(found) < 2:
            return None
        gaps = [
            difference([run[left].productivity - run[right].productivity for run in found])
            for left, right in pairs
        ]
        return Statement(paper, ", ".join(f"{gap}" for gap in gaps) + " k", _all(gaps))

    return paper, judge


def _all(gaps: Sequence[Difference]) -> bool | None:
    verdicts = [gap.holds for gap in gaps]
    return False if False in verdicts else None if None in verdicts else True


def _greatest_use(study: Study, reading: str) -> Statement | None:
    found = study.of("figure-2", reading)
    if len(found) < 2:
        return None
    others = [name for name in SEVEN if name != OVER]
    gaps = {
        name: difference([run[OVER].utilization - run[name].utilization for run in found])
        for name in others
    }
    nearest = min(others, key=lambda name: gaps[name].mean)
    gap = gaps[nearest]
    text = f"{gap.mean:+.4f} ± {SURE * gap.error:.4f} against {SEVEN[nearest]}"
    return Statement(_USE, text, _all(list(gaps.values())))


def _sweep(study: Study, reading: str) -> dict[float, list[dict[str, Run]]]:
    found = {rate: study.of("figure-4", reading, rate) for rate in RATES}
    return {rate: runs for rate, runs in found.items() if len(runs) > 1}


def _best_fit_falls(study: Study, reading: str) -> Statement | None:
    sweep = {rate: runs for rate, runs in _sweep(study, reading).items() if rate <= 0.5}
    if len(sweep) < 2:
        return None
    series = {
        rate: difference([run[BEST_FIT].productivity for run in runs])
        for rate, runs in sweep.items()
    }
    peak = max(series, key=lambda rate: series[rate].mean)
    last = max(series)
    gap = Difference(
        series[peak].mean - series[last].mean,
        math.hypot(series[peak].error, series[last].error) if peak != last else 0.0,
    )
    text = f"peak at λ {peak:g}; at {last:g} {gap} k below it"
    return Statement(_FALLS, text, gap.holds if peak != last else False)


def _grows(paper: str, value: Callable[[dict[str, Run]], float], unit: str) -> Judge:
    def judge(study: Study, reading: str) -> Statement | None:
        sweep = _sweep(study, reading)
        if len(sweep) < 2:
            return None
        series = [difference([value(run) for run in runs]) for runs in sweep.values()]
        gaps = [
            Difference(after.mean - before.mean, math.hypot(before.error, after.error))
            for before, after in pairwise(series)
        ]
        text = f"{series[0].mean:.1f} to {series[-1].mean:.1f} {unit}, λ {min(sweep):g} to {max(sweep):g}"
        return Statement(paper, text, _all(gaps))

    return judge


def _gain(run: dict[str, Run]) -> float:
    return 100 * (run[BOTH].productivity / run[BEST_FIT].productivity - 1)


def _use_near_one(study: Study, reading: str) -> Statement | None:
    sweep = _sweep(study, reading)
    if len(sweep) < 2:
        return None
    use = {
        rate: difference([run[BOTH].utilization for run in runs]).mean
        for rate, runs in sweep.items()
    }
    last = max(use)
    text = f"{use[min(use)]:.2f} at λ {min(use):g}, {use[last]:.2f} at {last:g}"
    rises = all(after > before for before, after in pairwise(use.values()))
    return Statement(_NEAR, text, rises and use[last] >= NEAR_ONE)


def _convexity(study: Study, reading: str) -> Statement | None:
    found = {shape: study.of("figure-5", reading, RATE, shape) for shape in SHAPES}
    if min(map(len, found.values())) < 2:
        return None
    gains = {shape: [_gain(run) for run in runs] for shape, runs in found.items()}
    gaps = [
        difference([b - a for a, b in zip(gains[low], gains[high], strict=True)])
        for low, high in pairwise(SHAPES)
    ]
    text = "gain " + ", ".join(f"{difference(gains[s]).mean:.1f} % {s}" for s in SHAPES)
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
        return Statement(paper, text, difference(found).holds)

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
        word = "rises" if wanted > 0 else "falls"
        paper = f"the learned value {word} with {name}"
        yield paper, _sign(paper, place, wanted)


def statements(study: Study, reading: str) -> list[Statement]:
    """Returns every statement with what was measured under a reading."""
    return [
        judge(study, reading) or Statement(paper, "", None, run=False) for paper, judge in _judges()
    ]


def verdict(study: Study) -> str:
    """Returns the outcome in a sentence, computed from the statements and the table below them."""
    first = next(iter(READINGS))
    told = [each for each in statements(study, first) if each.run]
    holding = sum(each.holds is True for each in told)
    text = (
        f"Read as “{READINGS[first].name}”, {holding} of {len(told)} statements of the paper hold."
    )
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
