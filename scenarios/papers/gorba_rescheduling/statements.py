"""What the paper's text says of its figures, held against what was measured.

Every verdict is computed of the figures that stand beside it, rounded as they are shown there, by a
rule that is shown with it.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from scenarios.papers.gorba_rescheduling.figures import (
    SettingFigures,
    largest_solved,
    load_of,
    settings_of,
    table_4_1,
)
from scenarios.papers.gorba_rescheduling.reference import CLASSES, HARD
from scenarios.papers.gorba_rescheduling.study import GLEAM, MEMETIC, OWN, SEARCHED, Study


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement of the paper.

    Attributes:
        paper: what it says.
        measured: what was found.
        holds: whether that agrees; None where it was not measured.
        rule: what has to be found for the statement to hold, with what is tolerated.
    """

    paper: str
    measured: str
    holds: bool | None
    rule: str


def statements(study: Study) -> list[Statement]:
    """Returns every statement with what was measured."""
    settings = settings_of(study)
    found = [_judged(text, rule, settings, judge) for text, rule, judge in _OF_SETTINGS]
    found += _of_table(study)
    found += _of_sweep(study)
    return found


Judge = Callable[[Sequence[SettingFigures]], tuple[str, bool | None]]

SETTINGS: Final = 32
"""Settings of Figure 4.1."""

VIOLATED: Final = 6
"""Settings of these in which the paper has a violated limit."""

VIOLATED_TOLERANCE: Final = 2
"""So many settings more or fewer still count as the paper's number."""

POOR: Final = 0.5
"""What is less than this share of another is poor beside it; the paper's figures are at most 0.05."""


def _judged(text: str, rule: str, settings: Sequence[SettingFigures], judge: Judge) -> Statement:
    if not settings:
        return Statement(text, "", None, rule)
    return Statement(text, *judge(settings), rule)


def _improve(settings: Sequence[SettingFigures]) -> tuple[str, bool | None]:
    better = sum(each.is_improved for each in settings)
    higher = sum(each.gleam.mean > each.best_heuristic for each in settings)
    text = (
        f"GLEAM is better on average in {higher} of {len(settings)} settings, significantly (the "
        f"heuristic below the 99 % interval) in {better}."
    )
    return text, better == len(settings)


def _few_new(settings: Sequence[SettingFigures]) -> tuple[str, bool | None]:
    mine = [each for each in settings if each.new == 0.10]
    clean = sum(each.violations == 0 for each in mine)
    return f"{clean} of {len(mine)} are without violated limits in every run.", (
        clean == len(mine) if mine else None
    )


def _many_new(settings: Sequence[SettingFigures]) -> tuple[str, bool | None]:
    mine = sum(each.violations > 0 for each in settings)
    text = f"{mine} of {len(settings)} settings have a violated limit in some run."
    # Of fewer settings than the paper's nobody knows how many it means.
    known = len(settings) == SETTINGS
    return text, abs(mine - VIOLATED) <= VIOLATED_TOLERANCE if known else None


def _replanning_at_half(settings: Sequence[SettingFigures]) -> tuple[str, bool | None]:
    def ahead(new: float) -> float:
        mine = [each for each in settings if each.new == new and each.basic > 0]
        return round(sum(each.replanning / each.basic for each in mine) / max(1, len(mine)), 2)

    few, many = ahead(0.10), ahead(0.50)
    text = (
        f"The best replanning heuristic has {few:.2f} times the fitness of the best other one with "
        f"10 % new tasks, {many:.2f} times with 50 %."
    )
    return text, many < few


_OF_SETTINGS: Sequence[tuple[str, str, Judge]] = (
    (
        "Figure 4.1: all GLEAM runs improve on the best heuristic significantly.",
        "Significantly in every setting.",
        _improve,
    ),
    (
        "With 10 % new tasks all eight scenarios perform well, without violated limits.",
        "All of them.",
        _few_new,
    ),
    (
        "With more new tasks limits are violated in six of the 32 settings.",
        f"In {VIOLATED - VIOLATED_TOLERANCE} to {VIOLATED + VIOLATED_TOLERANCE} of all 32.",
        _many_new,
    ),
    (
        "More new tasks lower the contribution of the replanning heuristics.",
        "Less with 50 % than with 10 %, by 0.01 at least.",
        _replanning_at_half,
    ),
)


def _of_table(study: Study) -> Iterator[Statement]:
    table = table_4_1(study)
    texts = (
        "Table 4.1: of the resource allocation strategies, RAS-3 performs best with replanning.",
        "Replanning heuristics are better than planning anew by the same rules.",
        "The six old heuristics that sort by short working times perform poorly.",
    )
    rules = (
        "None of the others has more.",
        "More, by 0.01 at least.",
        f"Less than {POOR:g} times what those by due time have.",
    )
    if not table:
        for text, rule in zip(texts, rules, strict=True):
            yield Statement(text, "", None, rule)
        return
    average = {name: row[-1] for name, row in table.items()}

    def mean(*parts: str, replanning: bool) -> float:
        mine = [
            value
            for name, value in average.items()
            if name.startswith("replanning: ") == replanning and all(part in name for part in parts)
        ]
        return round(sum(mine) / len(mine), 2)

    by_strategy = {ras: mean(ras, replanning=True) for ras in ("RAS-1", "RAS-2", "RAS-3")}
    said = ", ".join(f"{ras} {value:.2f}" for ras, value in by_strategy.items())
    best = max(by_strategy.values()) == by_strategy["RAS-3"]
    yield Statement(texts[0], f"{said}.", best, rules[0])
    new, old = mean(replanning=True), mean(replanning=False)
    yield Statement(texts[1], f"{new:.2f} against {old:.2f} on average.", new > old, rules[1])
    # Both rules have as many heuristics.
    short = round((mean("task", replanning=False) + mean("workflow", replanning=False)) / 2, 2)
    due = mean("due", replanning=False)
    yield Statement(texts[2], f"{short:.2f}, by due time {due:.2f}.", short < POOR * due, rules[2])


def _of_sweep(study: Study) -> Iterator[Statement]:
    yield _solved(study, CLASSES, 400, "Figure 4.2: up to 400 tasks GLEAM violates no limit.")
    large = tuple(name for name in CLASSES if name.startswith("lR"))
    yield _solved(study, large, 1000, "With large freedom of resources up to 1000 tasks.")
    yield _always_better(study)
    yield _memetic(study)
    yield _fewer(study)


def _solved(study: Study, classes: Sequence[str], tasks: int, text: str) -> Statement:
    rule = f"GLEAM up to {tasks:,} tasks in each of the classes."
    if not study.sizes:
        return Statement(text, "", None, rule)
    parts = []
    for method in (GLEAM, OWN):
        limits = [f"{name} {largest_solved(study, name, method):,}" for name in classes]
        parts.append(f"{'GLEAM' if method == GLEAM else 'ours'}: {', '.join(limits)}")
    reach = [size for size in study.sizes if size <= tasks]
    said = f"Tasks up to which every run was a success: {'; '.join(parts)}."
    if not reach:
        return Statement(text, "", None, rule)
    holds = all(largest_solved(study, name, GLEAM) >= reach[-1] for name in classes)
    # Smaller loads alone can refute the statement, but not confirm it.
    return Statement(text, said, None if holds and reach[-1] < tasks else holds, rule)


def _always_better(study: Study) -> Statement:
    text = "Up to the largest load, the search improves on the best heuristic."
    rule = "By 0.01 times at least, in all of them."
    found = [
        each
        for name in CLASSES
        for size in study.sizes
        if (each := load_of(study, name, size, GLEAM)) is not None
    ]
    if not found:
        return Statement(text, "", None, rule)
    better = sum(round(each.factor.mean, 2) > 1 for each in found)
    said = f"GLEAM is better in {better} of {len(found)} classes and loads"
    least = min(found, key=lambda each: each.factor.mean)
    said += f"; least {least.factor.mean:.2f} times, at {least.benchmark}, {least.tasks:,} tasks."
    return Statement(text, said, better == len(found), rule)


def _memetic(study: Study) -> Statement:
    text = "Figures 4.3 and 4.4: a tendency in favour of the memetic algorithms, by success."
    rule = "One of the two has more than GLEAM, by 1 % at least."
    rates: dict[str, list[float]] = {}
    for method in SEARCHED:
        for name in HARD:
            for size in study.sizes:
                found = load_of(study, name, size, method)
                if found is not None:
                    rates.setdefault(method, []).append(found.success)
    if MEMETIC[0] not in rates:
        return Statement(text, "", None, rule)
    means = {method: round(100 * sum(each) / len(each)) for method, each in rates.items()}
    names = {GLEAM: "GLEAM", "asma-best": "best", "asma": "adaptive", OWN: "ours"}
    said = ", ".join(f"{names[method]} {value} %" for method, value in means.items())
    holds = max(means[method] for method in MEMETIC) > means[GLEAM]
    return Statement(text, f"Success over all loads: {said}.", holds, rule)


def _fewer(study: Study) -> Statement:
    text = "Figure 4.5: evaluations fall with the load, and are fewer with large freedom R."
    rule = "With every step in every class, and large R allows less than 100 %."
    rates = {
        name: [
            each.evaluations
            for size in study.sizes
            if (each := load_of(study, name, size, GLEAM)) is not None
        ]
        for name in CLASSES
    }
    if min(map(len, rates.values())) < 2 or study.options["evaluations"]:
        return Statement(text, "", None, rule)
    falls = all(later < earlier for each in rates.values() for earlier, later in pairwise(each))
    small = sum(sum(rates[name]) for name in CLASSES if name.startswith("sR"))
    large = sum(sum(rates[name]) for name in CLASSES if name.startswith("lR"))
    share = round(100 * large / small)
    said = (
        f"They fall {'with every step' if falls else 'not with every step'}; large R allows "
        f"{share} % of what small R does."
    )
    return Statement(text, said, falls and share < 100, rule)
