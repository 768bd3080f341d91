"""The study as one HTML page: statements, waits by share, what they cost, and what it does not show."""

from collections.abc import Sequence
from typing import Any

from lrms_sim.malleable.options import Speedup, speedup_of
from lrms_sim.malleable.policies import SENTENCES
from lrms_sim.report.parts import Figure, Page, Points, Section, Stacked, Table, Words, made
from scenarios.studies.common.charts import Line, line_chart
from scenarios.studies.common.page_parts import judgement
from scenarios.studies.common.samples import Spread
from scenarios.studies.common.verdicts import Statement, counted
from scenarios.studies.malleability.statements import (
    FAMILIES,
    SOURCE,
    changes,
    logs,
    statements,
    values,
    variant,
)
from scenarios.studies.malleability.study import EASY, PERFECT, POLICIES, SHARES, Study

TITLE = "What malleable jobs bring"
WEAK = """\
A job never gets more processors than it asks for. In the publication it may, and running jobs shrink to let others in; here only replanning takes processors from a running job, and only from one at a time. The published figures are of other logs and other machines.
Every job runs to its end. Policies that may suspend do so with rigid jobs as well, at no cost of time or memory; so does resizing.
Jobs arrive when the log says, however soon others end: the makespan can hardly change, and utilization as little.
The logs do not say which jobs are malleable, nor how their speed depends on processors: both are assumed.
Every part begins on an empty machine and ends when its last job has ended.
Where the best of several policies is judged, it was chosen by the runs that judge it, in favour of the claim.
Value functions are learned on one part, in one pass.
""".strip().splitlines()
"""Limits of these figures."""

_SHARES = [f"{share} %" for share in SHARES]


def page_of(study: Study) -> Page:
    """Returns the page; equal studies give equal documents."""
    every = list(statements(study))
    about = (
        "Recorded logs are replayed on a machine that may run malleable jobs on fewer processors than they ask for, by the "
        "policies of Vengerov’s utility-based scheduling, with 0 to 100 % of malleable jobs. Waits are the time in which a "
        "job holds no processors, suspensions included. Changes are in percent of EASY with the users’ estimates on the "
        "same jobs: negative is shorter. EASY with perfect run times, for which nothing has to be malleable, is the measure. "
        "Medians over the parts of a log, and the least and the greatest; within a part the mean over seeds."
    )
    return Page(
        TITLE,
        "study malleability",
        [
            Section(
                "Statements",
                _judged(study, every),
                about=f"The mean over the parts of a log, with its interval, is held against the bound. Published ranges: {SOURCE}.",
            ),
            *(_log(study, log, number) for number, log in enumerate(logs(study))),
            Section("What this does not show", [Points(WEAK)]),
            _made(study),
        ],
        headline=counted([each.holds for each in every]),
        about=[about],
    )


def _judged(study: Study, every: Sequence[Statement]) -> list[Table]:
    """Returns the statements, a table for each kind of policies with a column for each log."""
    names = logs(study)
    found = {tuple(each.claim.split(": ", 1)): each for each in every}
    tables = []
    for kind, policies in FAMILIES.items():
        rows: list[list[Words]] = []
        for where, claim in found:
            if where == f"{names[0]}, {kind}":
                cells = (judgement(found[f"{log}, {kind}", claim]) for log in names)
                rows.append([claim[0].upper() + claim[1:], *cells])
        caption = f"{kind.capitalize()}: the best of {', '.join(policies)}"
        columns = set(range(1, len(names) + 1))
        tables.append(Table(("statement", *names), rows, caption, name=kind, words=columns))
    return tables


def _number(value: float, digits: int = 1) -> str:
    return f"{round(value, digits) + 0.0:,.{digits}f}".replace("-", "−")


def _spread(found: Sequence[float], digits: int = 1) -> Stacked:
    value = Spread.of(found)
    return Stacked(
        _number(value.median, digits),
        f"{_number(value.low, digits)} … {_number(value.high, digits)}",
    )


def _log(study: Study, log: str, number: int) -> Section:
    return Section(log, [_chart(study, log, number), _shares(study, log), *_all(study, log)])


def _chart(study: Study, log: str, number: int) -> Figure:
    lines = [
        Line(
            policy,
            color,
            [
                (place, *_ends(changes(study, "wait", log, policy=policy, share=share, **variant(study))))
                for place, share in enumerate(SHARES)
            ],
        )
        for color, policy in enumerate(POLICIES)
    ]  # fmt: skip
    known = _ends(changes(study, "wait", log, policy=PERFECT))
    lines.append(Line(PERFECT, 7, [(place, *known) for place in range(len(SHARES))]))
    drawing = line_chart(
        lines,
        _SHARES,
        key=f"waits-{number}",
        title=f"{log}: change of the mean wait",
        below="share of malleable jobs",
        inner=250.0,
        scale=(None, None),
        unit=" %",
    )
    return Figure(drawing, label=f"{log}: waits by share")


def _ends(found: Sequence[float]) -> tuple[float, float, float]:
    value = Spread.of(found)
    return value.median, value.low, value.high


def _shares(study: Study, log: str) -> Table:
    rows: list[list[Words]] = []
    for policy in POLICIES:
        each = (
            changes(study, "wait", log, policy=policy, share=share, **variant(study))
            for share in SHARES
        )
        rows.append([policy, *map(_spread, each)])
    known = _spread(changes(study, "wait", log, policy=PERFECT))
    rows.append([PERFECT, known, *[""] * (len(SHARES) - 1)])
    caption = "Change of the mean wait by share of malleable jobs, percent"
    return Table(("policy", *_SHARES), rows, caption, name=f"{log}: waits by share")


_FIGURES: list[tuple[str, str, float, int]] = [
    ("wait", "mean wait, h", 3600.0, 2),
    ("longest_wait", "longest, h", 3600.0, 0),
    ("response", "response, h", 3600.0, 2),
    ("slowdown", "slowdown", 1.0, 1),
    ("utilization", "utilization, %", 0.01, 1),
    ("utility", "utility, %", 0.01, 1),
]
"""Of a run, its head, what it is divided by, and digits."""

_HEADS = ("policy", *(head for _, head, _, _ in _FIGURES), "suspensions")


def _all(study: Study, log: str) -> list[Table]:
    own = variant(study)
    rows: list[Sequence[Words]] = [
        _row(study, log, EASY, policy=EASY),
        _row(study, log, PERFECT, policy=PERFECT),
    ]
    for share, words in ((0, "No job malleable"), (100, "All jobs malleable")):
        rows.append((words,))
        rows += [_row(study, log, policy, policy=policy, share=share, **own) for policy in POLICIES]
    caption = "All jobs malleable, or none; suspensions of a hundred jobs"
    tables = [Table(_HEADS, rows, caption, name=f"{log}: all jobs malleable, or none")]
    every = dict.fromkeys((case.speedup, case.least) for case, _ in study.runs if case.share == 100)
    others = [each for each in every if each != (own["speedup"], own["least"])]
    if others:
        told: list[Sequence[Words]] = []
        for law, least in others:
            told.append((f"{law_words(speedup_of(law))}; {least_words(least)}",))
            told += [
                _row(study, log, policy, policy=policy, share=100, speedup=law, least=least)
                for policy in POLICIES
            ]
        caption = "All jobs malleable: other speed-ups, other least widths"
        tables.append(Table(_HEADS, told, caption, name=f"{log}: {caption.lower()}"))
    return tables


def _row(study: Study, log: str, words: str, **wanted: Any) -> list[Words]:
    cells: list[Words] = [words]
    for figure, _, over, digits in _FIGURES:
        found = values(study, figure, log=log, **wanted)
        cells.append(_spread([value / over for value in found], digits))
    counts = values(study, "suspensions", log=log, **wanted)
    jobs = values(study, "jobs", log=log, **wanted)
    rates = [100.0 * count / of for count, of in zip(counts, jobs, strict=True)]
    return [*cells, _spread(rates, 0)]


def law_words(speedup: Speedup) -> str:
    """Returns a speed-up in words, with its source."""
    if speedup.law == "amdahl":
        return f"Amdahl’s law (1967), {100 * speedup.serial:g} % serial"
    if speedup.law == "downey":
        return (
            f"Downey’s model (A model for speedup of parallel programs, 1997), average parallelism "
            f"{speedup.parallelism:g} times the width, variance {speedup.variance:g}"
        )
    return "linear: half the processors, half the speed (Vengerov)"


def least_words(least: float) -> str:
    """Returns a least width in words."""
    return f"at least {100 * least:g} % of the width" if least else "one processor is enough"


def _made(study: Study) -> Section:
    own = variant(study)
    seeds = ", ".join(str(seed) for seed in study.options["seeds"])
    rows = [
        ("Runs", f"{len(study.runs):,}"),
        ("Parts", f"{study.options['parts']} of equal time, of each log"),
        ("Seeds", f"{seeds}: they draw which jobs are malleable"),
        ("Speed-up", law_words(speedup_of(own["speedup"]))),
        ("Malleable jobs", f"{least_words(own['least'])}; squeezed ones grow into free processors before others start"),
        ("Utilities", "full for an hour beyond the request, gone a day after twice the request; no job leaves the queue"),
        ("Learning", "policies by value learn on the part that follows, that of the last on the first, with the same share"),
        *((policy, SENTENCES[policy]) for policy in POLICIES),
    ]  # fmt: skip
    return made(rows, study.version)
