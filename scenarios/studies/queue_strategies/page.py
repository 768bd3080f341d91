"""The studies as HTML pages: what the paper prints, constants, and what was learned."""

from collections.abc import Mapping, Sequence
from typing import Any

from lrms_sim.report.parts import Figure, Page, Section, Stacked, Strong, Table, Words, made
from scenarios.studies.common.bar_chart import SpreadBar, improvement_chart
from scenarios.studies.common.page_parts import judgement
from scenarios.studies.common.samples import Spread
from scenarios.studies.queue_strategies.drawings import KIND_WORDS, beyond, scatter
from scenarios.studies.queue_strategies.reference import GREEDY, METHODS, ROWS, TITLES, printed
from scenarios.studies.queue_strategies.statements import statements, verdict
from scenarios.studies.queue_strategies.study import (
    MANY,
    Study,
    best_constant,
    learned_gain,
    transfer_gain,
)

NOTHING = "–"


def render(study: Study) -> str:
    """Returns the page; equal studies give equal documents."""
    logs = list(study.options["jobs"])
    paper = study.options["paper"]
    about = (
        "C. Franke, J. Lepping, U. Schwiegelshohn (2007). One machine serves five "
        "groups of users; the objective is 10·AWRT1 + 4·AWRT2. It gives all jobs of a group one "
        "ratio of weight to work, so a constant order of groups serves it well without any "
        "learning: such constants stand beside everything that was learned."
    )
    page = Page(
        TITLES[paper],
        f"paper {paper}",
        [
            _statements(study),
            *(_log(study, log) for log in logs),
            _transfers(study, logs),
            _cloud(study),
            _made(study),
        ],
        headline=verdict(study),
        about=[about],
    )
    return str(page)


def _statements(study: Study) -> Section:
    rows = [(one.claim, judgement(one)) for one in statements(study)]
    heads = ("what is said", "measured here")
    return Section("Statements", [Table(heads, rows, name="Statements", words={1})])


def _methods(study: Study) -> list[str]:
    return [*METHODS[study.options["paper"]], MANY]


def _log(study: Study, log: str) -> Section:
    parts: list[Words] = [_jobs(study, log)]
    bars = []
    for method in _methods(study):
        runs = study.of(log, method)
        if runs:
            parts.append(_gains_table(log, method, runs))
            bars.append((method, _bars(log, method, runs)))
    chart = improvement_chart(
        bars, key=f"gains-{log}", heading=f"{log.upper()}: objective, against EASY"
    )
    parts.append(Figure(chart, "Medians; whiskers from the least to the greatest seed."))
    return Section(log.upper(), parts)


def _jobs(study: Study, log: str) -> str:
    jobs, processors = study.options["jobs"][log], study.options["processors"][log]
    if study.options["scaled"]:
        return (
            f"{jobs:,} jobs, scaled to {processors:,} processors as in the paper; none is unseen."
        )
    return (
        f"Learned on the first {jobs:,} jobs on {processors:,} processors; all later jobs are "
        "unseen. The paper learns and judges on the whole log, scaled to 1,024 processors."
    )


def _bars(log: str, method: str, runs: list[Any]) -> list[SpreadBar]:
    bars = []
    paper = printed(method, log)
    if paper is not None:
        bars.append(SpreadBar("alone", Spread.of([paper[0] / 100]), "paper"))
    for part, shade, other in (
        ("training", "federated", "work"),
        ("unseen", "gain", "site-3"),
    ):
        constant = best_constant(runs[0], part)
        learned = learned_gain(runs, part)
        if constant is not None and learned is not None:
            bars.append(SpreadBar(other, Spread.of([constant[1][0] / 100]), f"constant, {part}"))
            spread = Spread(
                learned.median / 100, learned.low / 100, learned.high / 100, learned.count
            )
            bars.append(SpreadBar(shade, spread, f"learned, {part}"))
    return bars


def _gains_table(log: str, method: str, runs: list[Any]) -> Table:
    paper = printed(method, log)
    seen, other = best_constant(runs[0], "training"), best_constant(runs[0], "unseen")
    rows = []
    for place, name in enumerate(ROWS):
        columns: tuple[Words, ...] = (
            NOTHING if paper is None else f"{paper[place]:+.2f}",
            NOTHING if seen is None else f"{seen[1][place]:+.2f}",
            _spread(learned_gain(runs, "training", place)),
            NOTHING if other is None else f"{other[1][place]:+.2f}",
            _spread(learned_gain(runs, "unseen", place)),
        )
        rows.append((name, *columns))
    names = [one[0] for one in (seen, other) if one is not None]
    heads = (
        "objective",
        "paper",
        "constant, training",
        "learned, training",
        "constant, unseen",
        "learned, unseen",
    )
    caption = (
        f"{method}: improvement over EASY, percent; best constant {', '.join(names)}; "
        f"{len(runs)} seed{'s' if len(runs) > 1 else ''}, {runs[0]['evaluations']:,} evaluations each."
    )
    return Table(heads, rows, caption, name=f"{log} {method}", kind="compact")


def _spread(spread: Spread | None) -> Words:
    if spread is None:
        return NOTHING
    median = Strong(f"{spread.median:+.2f}")
    return (
        Stacked(median, f"{spread.low:+.2f} … {spread.high:+.2f}") if spread.count > 1 else median
    )


def _transfers(study: Study, logs: list[str]) -> Words:
    if len(logs) < 2:
        return ""
    first, *others = logs
    rows = []
    for method in METHODS[study.options["paper"]]:
        gains = (transfer_gain(study, log, method) for log in others)
        columns = [NOTHING if gain is None else f"{gain:+.2f}" for gain in gains]
        rows.append((method, *columns))
    constants = {one["log"]: one["constant"] for one in study.transfers}
    columns = [f"{constants[log]:+.2f}" for log in others]
    rows.append(("FCFS by group, nothing learned", *columns))
    number = "Figure 2" if study.options["paper"] == GREEDY else "Figure 7"
    name = "Used on other logs"
    return Section(
        f"{number}: used on other logs",
        [Table((f"learned on {first}", *others), rows, name=name, kind="compact")],
        about="Improvement over EASY in percent on "
        "the first jobs of each, medians over seeds; a dash where a replay was given up at 20 times "
        "EASY’s value.",
    )


def _cloud(study: Study) -> Section:
    parts: list[Words] = []
    for log, points in study.clouds.items():
        marked = []
        for method in METHODS[study.options["paper"]]:
            runs = study.of(log, method)
            if runs:
                best = min(runs, key=lambda run: float(run["parts"]["training"][-1]["value"]))
                found = best["parts"]["training"][-1]["objectives"]
                marked.append((method, found["awrt_1"], found["awrt_2"]))
        if study.of(log, METHODS[study.options["paper"]][0]):
            rows = study.of(log, METHODS[study.options["paper"]][0])[0]["parts"]["training"]
            easy = next(one for one in rows if one["name"] == "easy-arrival")["objectives"]
            marked.append(("EASY", easy["awrt_1"], easy["awrt_2"]))
        title = f"{log.upper()}: orders of groups and users, and what was learned"
        drawn = scatter(points, marked, key=f"cloud-{log}", title=title)
        parts += [Figure(drawn, _caption(points, beyond(points, marked))), _best(points)]
    return Section("What can be had at the same time", parts)


def _caption(points: Sequence[Mapping[str, Any]], hidden: int) -> str:
    front = sum(bool(point["front"]) for point in points)
    return (
        f"{front:,} of {len(points):,} schedules are dominated by none of the others in all seven "
        "objectives; the pale ones are dominated. Of individuals that lie together one is drawn"
        + (f"; {hidden:,} lie beyond the picture" if hidden else "")
        + ". True run times are known to nobody. NSGA-II begins with the 120 orders of groups and knows "
        "all jobs beforehand: it learns and is judged on the same ones."
    )


def _best(points: Sequence[Mapping[str, Any]]) -> Table:
    """Returns a table of each kind of schedule: how many, and the least of AWRT₁, of AWRT₂ and of f."""
    rows = []
    for kind, word in KIND_WORDS.items():
        seven = [point["seven"] for point in points if point["kind"] == kind]
        if seven:
            front = sum(bool(p["front"]) for p in points if p["kind"] == kind)
            numbers = (
                len(seven),
                front,
                *(min(each[column] for each in seven) for column in (2, 3)),
                min(10 * each[2] + 4 * each[3] for each in seven),
            )
            rows.append([word, *(f"{number:,.0f}" for number in numbers)])
    heads = ("kind", "schedules", "not dominated", "least AWRT1, s", "least AWRT2, s", "least f, s")
    name = "What each kind of schedule reaches"
    return Table(heads, rows, name=name, kind="compact")


def _made(study: Study) -> Section:
    options = study.options
    rows = (
        ("Seeds", ", ".join(map(str, options["seeds"]))),
        (
            "Generations",
            f"{options['generations']} of criteria, the paper’s are 100; begun "
            + (
                "at random, as in the paper"
                if options["start"] == "random"
                else "with the constant order of groups among the first"
            ),
        ),
        ("Machine", study.machine),
    )
    return made(rows, study.version + (f", {study.commit}" if study.commit else ""))
