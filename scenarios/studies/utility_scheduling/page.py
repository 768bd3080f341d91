"""The study as one HTML page: the paper's figures, its statements, and what it leaves out."""

from collections.abc import Sequence
from statistics import fmean, median
from typing import Any

from lrms_sim.malleable.policies import SENTENCES
from lrms_sim.malleable.value import PAPER_P, RULES
from lrms_sim.report.parts import Figure, Page, Section, Stacked, Table, Words, made
from scenarios.studies.common.charts import Line, line_chart
from scenarios.studies.common.page_parts import judgement
from scenarios.studies.common.verdicts import LEVEL, Margin
from scenarios.studies.utility_scheduling import drawings
from scenarios.studies.utility_scheduling.experiments import Run, median_p
from scenarios.studies.utility_scheduling.federations import GRIDS, TRANSFERS
from scenarios.studies.utility_scheduling.federations import POLICIES as GRID_POLICIES
from scenarios.studies.utility_scheduling.recorded import RULES as LOG_RULES
from scenarios.studies.utility_scheduling.reference import (
    BEST_FIT,
    LEARN_DAYS,
    LOG_POLICIES,
    LOG_SEEDS,
    LOGS,
    POSSIBLE,
    RATE,
    RATES,
    REACHABLE,
    REACHABLE_RATES,
    READINGS,
    SEVEN,
    SHAPE_RATES,
    SHAPES,
    TEST_DAYS,
)
from scenarios.studies.utility_scheduling.statements import statements, verdict
from scenarios.studies.utility_scheduling.study import BOTH, Study

TITLE = "Utility-based scheduling, measured again"

Runs = Sequence[dict[str, Run]]


def render(study: Study) -> str:
    """Returns the page; equal studies give equal documents."""
    about = (
        (
            "D. Vengerov: A Reinforcement Learning Framework for Utility-Based "
            "Scheduling in Resource-Constrained Systems. One machine of 24 processors, jobs of 4 to 20 "
            "processors and 5 to 10 steps, a utility that is full until the ideal run time has passed "
            "since arrival and gone after twice that time."
        ),
        (
            "The paper prints its figures without numbers and leaves open whether "
            "squeezed jobs grow and what its average reward is of. Every statement of its text is "
            "therefore held against three readings. A difference counts where its interval "
            f"at {100 * LEVEL:.0f} %, of paired differences, is on one side of 0."
        ),
    )
    page = Page(
        TITLE,
        "paper utility-scheduling",
        [
            _statements(study),
            _figures_2_and_3(study),
            _learned(study),
            _figure_4(study),
            _figure_5(study),
            _reachable(study),
            _logs(study),
            _federations(study),
            _made(study),
        ],
        headline=verdict(study),
        about=about,
    )
    return str(page)


def _statements(study: Study) -> Section:
    columns = [statements(study, reading) for reading in READINGS]
    table = Table(
        ("The paper", *(reading.name for reading in READINGS.values())),
        [
            (each[0].claim, *(judgement(found) for found in each))
            for each in zip(*columns, strict=True)
        ],
        "What the paper says, under three readings.",
        words=range(1, 1 + len(columns)),
        kind="statements",
    )
    return Section(
        "Statements",
        [table],
        about=f"k: 1000 utility units, of {POSSIBLE:g} k that are "
        f"possible; intervals at {100 * LEVEL:.0f} %.",
    )


def _bars(runs: Runs, value: str) -> list[tuple[str, float, float]]:
    found = []
    for name, words in SEVEN.items():
        each = Margin.of(getattr(run[name], value) for run in runs)
        found.append((words, each.mean, each.half))
    return found


def _figures_2_and_3(study: Study) -> Section:
    parts = []
    for reading in ("never", "growth"):
        runs = study.of("figure-2", reading)
        if len(runs) < 2:
            continue
        bars = _bars(runs, "productivity")
        charts = drawings.bar_chart(
            bars,
            key=f"productivity-{reading}",
            title="Figure 2: productivity, k",
            digits=1,
            least=0.85 * min(mean for _, mean, _ in bars),
        )
        charts += drawings.bar_chart(
            _bars(runs, "utilization"),
            key=f"utilization-{reading}",
            title="Figure 3: utilization",
            digits=3,
            least=0.28,
        )
        name = READINGS[reading].name
        caption = f"{name}; {len(runs)} experiments. Bars do not begin at 0."
        parts.append(Figure(charts, caption, "pair"))
    return Section(
        "Figures 2 and 3: productivity and utilization",
        parts,
        about="Arrival rate 0.1. over: oversubscription, jobs are squeezed; pre: preemption, jobs are "
        "suspended.",
    )


def _learned(study: Study) -> Words:
    runs = study.of("figure-2", "never")
    if not runs:
        return ""
    rows = [["the paper's run", *(f"{p:.2f}" for p in PAPER_P)]]
    for reading in READINGS:
        p = median_p(study.of("figure-2", reading), BOTH)
        rows.append([READINGS[reading].name, *(f"{each:.1f}" for each in p)])
    own = study.of("paper-p", "never")
    text = ""
    if len(own) > 1:
        same = runs[: len(own)]
        paper = Margin.of(run[BOTH].productivity for run in own)
        ours = Margin.of(run[BOTH].productivity for run in same)
        best = Margin.of(run[BEST_FIT].productivity for run in own)
        text = (
            f"With the paper’s own p the policy brings {paper.mean:.1f} k on the jobs of "
            f"{len(own)} experiments, with ours {ours.mean:.1f} k, best fit {best.mean:.1f} k. "
            "The scale of p changes no decision."
        )
    caption = "p of both, learned; ours are medians."
    return Section("What was learned", [Table(("", *RULES), rows, caption)], about=text)


def _figure_4(study: Study) -> Section:
    parts: list[Words] = []
    for reading in ("never", "growth"):
        lines = []
        for color, (name, words) in enumerate(SEVEN.items()):
            points = []
            for place, rate in enumerate(RATES):
                runs = [run for run in study.of("figure-4", reading, rate) if name in run]
                if len(runs) > 1:
                    each = Margin.of(run[name].productivity for run in runs)
                    points.append((place, each.mean, each.mean - each.half, each.mean + each.half))
            if points:
                lines.append(Line(words, color, points))
        if not lines:
            continue
        title = f"Productivity, k, by arrival rate; {READINGS[reading].name}"
        chart = line_chart(
            lines,
            [f"{rate:g}" for rate in RATES],
            key=f"sweep-{reading}",
            title=title,
            inner=212.0,
        )
        rows = [[line.name, *(f"{y:.1f}" for _, y, _, _ in line.points)] for line in lines]
        heads = ["rate", *(f"{RATES[place]:g}" for place, *_ in lines[0].points)]
        parts += [Figure(chart), Table(heads, rows, title)]
    return Section("Figure 4: arrival rates", parts)


def _figure_5(study: Study) -> Words:
    rows: list[list[Words]] = []
    for reading in ("never", "growth"):
        for rate in SHAPE_RATES:
            values = []
            for shape in SHAPES:
                runs = study.of("figure-5", reading, rate, shape)
                if len(runs) < 2:
                    continue
                gains = [run[BOTH].productivity / run[BEST_FIT].productivity - 1 for run in runs]
                mean = fmean(run[BOTH].productivity for run in runs)
                values.append(Stacked(f"{100 * median(gains):+.1f} %", f"{mean:.1f} k"))
            if values:
                rows.append([f"{READINGS[reading].name}; rate {rate:g}", *values])
    if not rows:
        return ""
    caption = "Median gain of both, learned, over best fit; below it its mean productivity."
    return Section(
        "Figure 5: shapes of the utility",
        [Table(("", *SHAPES), rows, caption)],
        about="“Performance increases” as "
        "utilities become more convex can only mean the gain: productivity itself falls.",
    )


def _reachable(study: Study) -> Words:
    rates = [rate for rate in REACHABLE_RATES if study.of("reachable", "growth", rate)]
    if not rates:
        return ""
    rows: list[list[Words]] = []
    for name, words in REACHABLE.items():
        values = []
        for rate in rates:
            runs = study.of("reachable", "growth", rate)
            mean = sum(run[name].productivity for run in runs) / len(runs)
            stops = median(run[name].suspensions for run in runs)
            values.append(Stacked(f"{mean:.1f}", f"{stops:,.0f}"))
        rows.append([words, *values])
    caption = "Mean productivity, k, by arrival rate; below it the median number of suspensions."
    return Section(
        "What else is reachable",
        [Table(["rate", *(f"{rate:g}" for rate in rates)], rows, caption)],
        about="Squeezed jobs grow. Replan places "
        "all jobs anew at every event, by final utility over remaining processor-steps; its evolved "
        "order weighs eight features, found by CMA-ES.",
    )


def _logs(study: Study) -> Section:
    parts = []
    for log in LOGS:
        rows = []
        for name in LOG_POLICIES:
            values: list[Words] = []
            for rules in LOG_RULES:
                figures = study.of_log(log, rules, name)
                values += _log_cells(figures) if figures else []
            if values:
                rows.append([name, *values])
        if rows:
            heads = [f"{rules}: {what}" for rules in LOG_RULES for what in ("share", "suspensions")]
            caption = f"{log.upper()}: share of the possible utility."
            parts.append(Table(["", *heads], rows, caption))
    kinds = " ".join(f"{name}: {SENTENCES[name].lower()}" for name in ("density", "edf"))
    return Section(
        "Recorded logs",
        parts,
        about=f"Learned on days {LEARN_DAYS[0]:g} to "
        f"{LEARN_DAYS[1]:g}, judged on days {TEST_DAYS[0]:g} to {TEST_DAYS[1]:g}; medians and range "
        f"of {LOG_SEEDS} training runs. Lenient: full until an hour after the request, gone a day "
        "after twice the request; tight: the paper’s utility. All jobs can be squeezed, and "
        f"suspensions cost nothing. {kinds}",
    )


def _log_cells(figures: list[dict[str, Any]]) -> list[Words]:
    shares = [100 * each["share"] for each in figures]
    share: Words = f"{median(shares):.1f} %"
    if len(shares) > 1:
        share = Stacked(share, f"{min(shares):.1f} to {max(shares):.1f}")
    return [share, f"{median(each['suspensions'] for each in figures):,.0f}"]


def _federations(study: Study) -> Section:
    words = {"keep": "alone", "awf": "accept when fit", "value": "by value"}
    parts = []
    for grid in GRIDS:
        for rules in LOG_RULES:
            rows = []
            for policy in GRID_POLICIES:
                for transfer in TRANSFERS:
                    found = study.of_federation(grid, rules, policy, transfer)
                    if found is not None:
                        name = f"{policy}: {words[transfer]}"
                        rows.append([name, *_federation_cells(found)])
            if rows:
                heads = ["machines: sites", *(log.upper() for log in grid), "all", "suspensions"]
                caption = f"{', '.join(log.upper() for log in grid)}; {rules} utilities."
                parts.append(Table(heads, rows, caption))
    return Section(
        "Sites that exchange jobs",
        parts,
        about="Share of the possible utility that "
        "each site’s users got; below it jobs given and taken. By value: a site runs a job, its own "
        "or a partner’s, if the learned value of its machine’s state rises by that. Nobody learns "
        f"anything but yes or no. {_federation_verdict(study)}",
    )


def _federation_verdict(study: Study) -> str:
    better = total = 0
    for case, found in study.federations:
        if case.transfer == "value":
            other = study.of_federation(case.grid, case.rules, case.policy, "awf")
            if other is not None:
                total += len(found["shares"])
                pairs = zip(found["shares"], other["shares"], strict=True)
                better += sum(own > awf for own, awf in pairs)
    return (
        f"In {better} of {total} cases a site’s users got more by value than by accept when fit."
        if total
        else ""
    )


def _federation_cells(found: dict[str, Any]) -> list[Words]:
    shares = [
        Stacked(f"{100 * share:.1f} %", f"{given:,} / {taken:,}")
        for share, given, taken in zip(found["shares"], found["given"], found["taken"], strict=True)
    ]
    return [*shares, f"{100 * found['total']:.1f} %", f"{sum(found['suspensions']):,}"]


def _made(study: Study) -> Section:
    options = study.options
    rows = (
        ("Figures 2, 3 and 5", f"{options['experiments']} experiments each"),
        ("Figure 4", f"{options['sweep']} experiments at each rate"),
        ("Other policies", f"{options['reachable']} experiments at each rate"),
        ("An experiment", "25,000 steps to learn, 20,000 other steps to test, p frozen"),
        ("Rate of Figures 2 and 3", f"{RATE:g}"),
    )
    return made(rows, study.version)
