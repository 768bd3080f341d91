"""The study as one HTML page: every figure and table of the paper, beside what it states."""

import math
from collections.abc import Sequence

from lrms_sim.report.parts import Cell, Figure, Group, Page, Section, Stacked, Table, Words, made
from scenarios.report import wording as words
from scenarios.studies.common.page_parts import mark
from scenarios.studies.common.verdicts import counted
from scenarios.studies.gorba_rescheduling import drawings
from scenarios.studies.gorba_rescheduling.figures import (
    LoadFigures,
    load_of,
    settings_of,
    table_4_1,
)
from scenarios.studies.gorba_rescheduling.reference import (
    CLASSES,
    COLUMNS,
    FINISHED,
    HARD,
    NEW,
    TABLE_4_1,
    TASKS,
    shown_heuristic,
)
from scenarios.studies.gorba_rescheduling.statements import statements
from scenarios.studies.gorba_rescheduling.study import GLEAM, HEURISTICS, OWN, SEARCHED, Study

TITLE = "Fast Multi-Objective Rescheduling of Workflows, measured again"

METHODS = {
    HEURISTICS: "best heuristic",
    GLEAM: "GLEAM",
    "asma-best": "ASMA, best improvement",
    "asma": "ASMA, adaptive all-improvement",
    OWN: "ASMA, guided (ours)",
}


def render(study: Study) -> str:
    """Returns the page; equal studies give equal documents."""
    options = study.options
    budget = (
        f"{words.count(options['evaluations'])} schedules"
        if options["seconds"] is None
        else f"{options['seconds']:g} s"
    )
    about = (
        (
            "W. Jakob, F. Möser, A. Quinte, K.-U. Stucky, W. Süß: Fast "
            "Multi-Objective Rescheduling of Workflows to Constrained Resources Using Heuristics and "
            "Memetic Evolution, Scalable Computing 11 (2010)."
        ),
        (
            f"Each search had {options['runs']} runs of {budget} on every event; the "
            "paper gave each 50 runs of three minutes, with the best of several population sizes. "
            "Intervals are at 99 %."
        ),
    )
    page = Page(
        TITLE,
        "paper gorba-rescheduling",
        [
            _statements(study),
            _settings(study),
            _table(study),
            _sweep(study),
            _memetic(study),
            _evaluations(study),
            _made(study),
        ],
        headline=verdict(study),
        about=about,
    )
    return str(page)


def verdict(study: Study) -> str:
    """Returns the outcome in a sentence."""
    told = [each.holds for each in statements(study) if each.run]
    return f"{counted(told, 'of the paper')} in what was measured."


def _statements(study: Study) -> Section:
    table = Table(
        ("The paper", "Here", "It holds if", ""),
        [
            (each.claim, each.measured, each.rule, mark(each.holds, each.word or "not measured"))
            for each in statements(study)
        ],
        "What the paper says, what came out here, and what has to come out for the statement to hold.",
        name="Statements",
        words={1, 2},
        kind="statements",
    )
    return Section("Statements", [table])


def _settings(study: Study) -> Words:
    settings = settings_of(study)
    if not settings:
        return ""
    charts = []
    for benchmark in HARD:
        for tasks in TASKS:
            mine = [e for e in settings if (e.benchmark, e.tasks) == (benchmark, tasks)]
            if mine:
                key = f"settings-{benchmark}-{tasks}"
                title = f"{benchmark}, {tasks} tasks"
                charts.append(drawings.settings_chart(mine, key=key, title=title))
    caption = (
        "A share of the tasks has ended, new workflows arrive. lv: limits are violated in "
        "plans of GLEAM."
    )
    return Section(
        "Figure 4.1: 32 events",
        [Figure("".join(charts), caption, "pair")],
        about="Normalised end fitness, percent: the best planning heuristic (grey), the best "
        "replanning heuristic (blue), GLEAM (green).",
    )


def _table(study: Study) -> Words:
    measured = table_4_1(study)
    if not measured:
        return ""
    best = [max(row[n] for row in measured.values()) for n in range(len(COLUMNS) + 1)]
    rows: list[list[Words]] = []
    for name, paper in TABLE_4_1.items():
        rows.append([shown_heuristic(name)])
        for value, other, most in zip(measured[name], paper, best, strict=True):
            weight = 1.0 if value >= most else 0.4 if value >= 0.9 * most else 0.0
            rows[-1].append(Cell(Stacked(f"{value:.2f}", f"{other:.2f}"), shade=weight))
    matrix = Table(
        ("Heuristic", *(f"{100 * new:.0f} % new" for _, new in COLUMNS), "Average"),
        rows,
        "Fitness of each heuristic relative to the best one, "
        "averaged over two classes and two sizes; the paper’s figure below. Dark: the best of a "
        "column; light: at least 90 % of it.",
        name="Table 4.1",
        groups=[*((f"{100 * share:.0f} % finished", len(NEW)) for share in FINISHED), ("", 1)],
        kind="matrix",
    )
    return Section(
        "Table 4.1: the heuristics",
        [matrix],
        about="RH: replanning heuristic. SDT: shortest due time. SWT: shortest working time, of the "
        "task (GJ) or the workflow (AJ).",
    )


def _series(study: Study, pairs: Sequence[tuple[str, str, str]]) -> drawings.Series:
    found = []
    for color, (name, benchmark, method) in enumerate(pairs):
        figures = [load_of(study, benchmark, tasks, method) for tasks in study.sizes]
        there = [each for each in figures if each is not None]
        if there:
            found.append((name, color, there))
    return found


def _sweep(study: Study) -> Section:
    parts: list[Words] = []
    for method in (GLEAM, OWN):
        series = _series(study, [(name, name, method) for name in CLASSES])
        if not series:
            continue
        parts += _pair(study, series, f"sweep-{method}", METHODS[method])
        parts.append(_loads(series, METHODS[method]))
    return Section(
        "Figure 4.2: increasing load",
        parts,
        about="10 % of the tasks have finished, 10 % are new; a tenth as many resources as tasks. "
        "Success is a plan without a violated limit.",
    )


def _memetic(study: Study) -> Section:
    parts = []
    easy = [name for name in CLASSES if name not in HARD]
    for number, benchmark in enumerate((*HARD, *easy)):
        series = _series(study, [(METHODS[m], benchmark, m) for m in SEARCHED])
        if not series:
            continue
        figure_of = f"Figure 4.{3 + number}: " if benchmark in HARD else ""
        everything = [(name, benchmark, method) for method, name in METHODS.items()]
        shown = [
            *_pair(study, series, f"memetic-{benchmark}", benchmark),
            _loads(_series(study, everything), benchmark),
        ]
        parts.append(Group(f"{figure_of}{benchmark}", shown))
    return Section(
        "Figures 4.3 and 4.4: local search",
        parts,
        about="The hard classes first, then those of which the paper has no figure, with both of the "
        "paper’s memetic variants and our own search beside the best heuristic.",
    )


def _pair(study: Study, series: drawings.Series, key: str, name: str) -> list[Figure]:
    sizes = study.sizes
    success = drawings.load_chart(
        series,
        sizes,
        lambda each: (100 * each.success,) * 3,
        key=f"{key}-success",
        title=f"{name}: success rate, percent, by tasks",
        top=105.0,
    )
    factor = drawings.load_chart(
        series,
        sizes,
        lambda each: (each.factor.mean, each.factor.low, each.factor.high),
        key=f"{key}-factor",
        title=f"{name}: fitness over that of the best heuristic, by tasks",
    )
    return [Figure(success), Figure(factor)]


def _loads(series: drawings.Series, name: str) -> Table:
    rows = [(label, *_load_figures(each)) for label, _, figures in series for each in figures]
    heads = ("Tasks", "Success", "Violations", "Fitness, %", "± 99 %", "× heuristic", "Schedules")
    return Table(("", *heads), rows, name)


def _load_figures(each: LoadFigures) -> tuple[str, ...]:
    known = each.fitness.count > 1
    return (
        words.count(each.tasks),
        f"{100 * each.success:.0f}%",
        f"{each.violations:.1f}",
        f"{each.fitness.mean:.1f}",
        f"{each.fitness.half:.1f}" if known else words.NOTHING,
        words.factor(each.factor.mean),
        words.count(round(each.evaluations)),
    )


def _evaluations(study: Study) -> Words:
    series = _series(study, [(name, name, GLEAM) for name in CLASSES])
    if not series or any(math.isnan(each.rate) for _, _, figures in series for each in figures):
        return ""
    chart = drawings.load_chart(
        series,
        study.sizes,
        lambda each: (each.rate,) * 3,
        logarithmic=True,
        key="evaluations",
        title="Schedules that GLEAM builds in a second of processor time, by tasks",
    )
    return Section(
        "Figure 4.5: evaluations",
        [Figure(chart)],
        about="Both axes grow by factors. What a run can build in a time falls with the load; the paper shows so many in three minutes.",
    )


def _made(study: Study) -> Section:
    options = study.options
    limits = (
        "what the heuristics achieve on average, times what the best of them just keeps, less "
        f"{100 * options['reduction']:g} %"
    )
    rows = (
        ("Runs", f"{options['runs']} of each search on each event"),
        ("Limits", limits),
        ("Plan from before", f"GLEAM, {words.count(options['first_evaluations'])} schedules"),
        ("Population", "60; 30 beyond 1,000 tasks"),
        ("Loads", ", ".join(words.count(size) for size in study.sizes) or "not run"),
    )
    return made(rows, study.version)
