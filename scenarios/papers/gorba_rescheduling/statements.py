"""What the paper's text says of its figures, held against what was measured."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

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
    """

    paper: str
    measured: str
    holds: bool | None


def statements(study: Study) -> list[Statement]:
    """Returns every statement with what was measured."""
    settings = settings_of(study)
    found = [_judged(text, settings, judge) for text, judge in _OF_SETTINGS]
    found += _of_table(study)
    found += _of_sweep(study)
    return found


Judge = Callable[[Sequence[SettingFigures]], tuple[str, bool]]


def _judged(text: str, settings: Sequence[SettingFigures], judge: Judge) -> Statement:
    if not settings:
        return Statement(text, "", None)
    return Statement(text, *judge(settings))


def _improve(settings: Sequence[SettingFigures]) -> tuple[str, bool]:
    better = sum(each.is_improved for each in settings)
    higher = sum(each.gleam.mean > each.best_heuristic for each in settings)
    text = (
        f"GLEAM is better on average in {higher} of {len(settings)} settings, significantly (the "
        f"heuristic below the 99 % interval) in {better}."
    )
    return text, higher == len(settings)


def _few_new(settings: Sequence[SettingFigures]) -> tuple[str, bool]:
    mine = [each for each in settings if each.new == 0.10]
    clean = sum(each.violations == 0 for each in mine)
    return f"{clean} of {len(mine)} are without violated limits in every run.", clean == len(mine)


def _many_new(settings: Sequence[SettingFigures]) -> tuple[str, bool]:
    mine = [each for each in settings if each.violations]
    few = [each for each in mine if each.new == 0.10]
    return (
        f"{len(mine)} of {len(settings)} settings have a violated limit in some run.",
        len(mine) > 0 and len(few) <= len(mine) / 2,
    )


def _replanning_at_half(settings: Sequence[SettingFigures]) -> tuple[str, bool]:
    def ahead(new: float) -> float:
        mine = [each for each in settings if each.new == new and each.basic > 0]
        return sum(each.replanning / each.basic for each in mine) / max(1, len(mine))

    few, many = ahead(0.10), ahead(0.50)
    text = (
        f"The best replanning heuristic has {few:.2f} times the fitness of the best other one with "
        f"10 % new tasks, {many:.2f} times with 50 %."
    )
    return text, many < few


_OF_SETTINGS: Sequence[tuple[str, Judge]] = (
    ("Figure 4.1: all GLEAM runs improve on the best heuristic significantly.", _improve),
    ("With 10 % new tasks all eight scenarios perform well, without violated limits.", _few_new),
    ("With more new tasks limits are violated in six of the 32 settings.", _many_new),
    ("More new tasks lower the contribution of the replanning heuristics.", _replanning_at_half),
)


def _of_table(study: Study) -> Iterator[Statement]:
    table = table_4_1(study)
    texts = (
        "Table 4.1: of the resource allocation strategies, RAS-3 performs best with replanning.",
        "Replanning heuristics are better than planning anew by the same rules.",
        "The six old heuristics that sort by short working times perform poorly.",
    )
    if not table:
        for text in texts:
            yield Statement(text, "", None)
        return
    average = {name: row[-1] for name, row in table.items()}

    def mean(*parts: str, replanning: bool) -> float:
        mine = [
            value
            for name, value in average.items()
            if name.startswith("replanning: ") == replanning and all(part in name for part in parts)
        ]
        return sum(mine) / len(mine)

    by_strategy = {ras: mean(ras, replanning=True) for ras in ("RAS-1", "RAS-2", "RAS-3")}
    said = ", ".join(f"{ras} {value:.2f}" for ras, value in by_strategy.items())
    yield Statement(texts[0], f"{said}.", max(by_strategy.values()) == by_strategy["RAS-3"])
    new, old = mean(replanning=True), mean(replanning=False)
    yield Statement(texts[1], f"{new:.2f} against {old:.2f} on average.", new > old)
    short = (mean("task", replanning=False) + mean("workflow", replanning=False)) / 2
    due = mean("due", replanning=False)
    yield Statement(texts[2], f"{short:.2f}, by due time {due:.2f}.", short < due / 2)


def _of_sweep(study: Study) -> Iterator[Statement]:
    yield _solved(study, CLASSES, 400, "Figure 4.2: up to 400 tasks GLEAM violates no limit.")
    large = tuple(name for name in CLASSES if name.startswith("lR"))
    yield _solved(study, large, 1000, "With large freedom of resources up to 1000 tasks.")
    yield _always_better(study)
    yield _memetic(study)
    yield _fewer(study)


def _solved(study: Study, classes: Sequence[str], tasks: int, text: str) -> Statement:
    if not study.sizes:
        return Statement(text, "", None)
    parts = []
    for method in (GLEAM, OWN):
        limits = [f"{name} {largest_solved(study, name, method):,}" for name in classes]
        parts.append(f"{'GLEAM' if method == GLEAM else 'ours'}: {', '.join(limits)}")
    reach = [size for size in study.sizes if size <= tasks]
    if not reach:
        return Statement(text, "", None)
    holds = all(largest_solved(study, name, GLEAM) >= reach[-1] for name in classes)
    return Statement(text, f"Tasks up to which every run was a success: {'; '.join(parts)}.", holds)


def _always_better(study: Study) -> Statement:
    text = "Up to the largest load, the search improves on the best heuristic."
    found = [
        each
        for name in CLASSES
        for size in study.sizes
        if (each := load_of(study, name, size, GLEAM)) is not None
    ]
    if not found:
        return Statement(text, "", None)
    better = sum(each.factor.mean > 1 for each in found)
    said = f"GLEAM is better in {better} of {len(found)} classes and loads"
    least = min(found, key=lambda each: each.factor.mean)
    said += f"; least {least.factor.mean:.2f} times, at {least.benchmark}, {least.tasks:,} tasks."
    return Statement(text, said, better == len(found))


def _memetic(study: Study) -> Statement:
    text = "Figures 4.3 and 4.4: a tendency in favour of the memetic algorithms, by success."
    rates: dict[str, list[float]] = {}
    for method in SEARCHED:
        for name in HARD:
            for size in study.sizes:
                found = load_of(study, name, size, method)
                if found is not None:
                    rates.setdefault(method, []).append(found.success)
    if MEMETIC[0] not in rates:
        return Statement(text, "", None)
    means = {method: sum(each) / len(each) for method, each in rates.items()}
    names = {GLEAM: "GLEAM", "asma-best": "best", "asma": "adaptive", OWN: "ours"}
    said = ", ".join(f"{names[method]} {100 * value:.0f} %" for method, value in means.items())
    holds = max(means[method] for method in MEMETIC) >= means[GLEAM]
    return Statement(text, f"Success over all loads: {said}.", holds)


def _fewer(study: Study) -> Statement:
    text = "Figure 4.5: evaluations fall with the load, and are fewer with large freedom R."
    rates = {
        name: [
            each.evaluations
            for size in study.sizes
            if (each := load_of(study, name, size, GLEAM)) is not None
        ]
        for name in CLASSES
    }
    if min(map(len, rates.values())) < 2 or study.options["evaluations"]:
        return Statement(text, "", None)
    falls = all(later < earlier for each in rates.values() for earlier, later in pairwise(each))
    small = sum(sum(rates[name]) for name in CLASSES if name.startswith("sR"))
    large = sum(sum(rates[name]) for name in CLASSES if name.startswith("lR"))
    said = (
        f"They fall {'with every step' if falls else 'not with every step'}; large R allows "
        f"{100 * large / small:.0f} % of what small R does."
    )
    return Statement(text, said, falls and large < small)
