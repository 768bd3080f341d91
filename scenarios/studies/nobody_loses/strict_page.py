"""What the page of the study says of strict exchange: tables with verdicts, and a mark for every site-month."""

from lrms_sim.report.parts import Figure, Section, Stacked, Table, Together, Words
from scenarios.studies.common.page_parts import mark
from scenarios.studies.nobody_loses.drawings import strip_chart
from scenarios.studies.nobody_loses.reference import SETS
from scenarios.studies.nobody_loses.statements import Line, gains
from scenarios.studies.nobody_loses.strict import HALF_YEAR_WORST, MONTH_WORST
from scenarios.studies.nobody_loses.strict_lines import (
    StrictLine,
    adoption_of_strict,
    own_lines,
    random_lines,
    rogue_lines,
    words_of,
)
from scenarios.studies.nobody_loses.study import Study


def strict_sections(study: Study) -> list[Words]:
    """Returns the sections; empty if nothing of strict exchange was measured."""
    return [section for section in (_random(study), _own(study), _partners(study)) if section != ""]


def _pair(mean: float, worst: float) -> str:
    return f"{mean:.2f} / {worst:.2f}".replace("-", "−")


def _verdict(each: StrictLine) -> Words:
    if each.keeps is None:
        return "–"
    said = f"{'yes' if each.keeps else 'no'}, by {abs(each.margin):.2f} points"
    return mark(each.keeps, said)


def _random(study: Study) -> Words:
    lines = random_lines(study)
    if not lines:
        return ""
    rows: list[list[Words]] = [
        [
            each.half_years.name,
            _pair(each.half_years.mean, each.half_years.worst),
            f"{each.below} of {each.half_years.count:,}",
            f"{each.months_below} of {len(each.months):,}",
            f"{each.month_worst:.1f}".replace("-", "−"),
            f"{each.preempted:.1f} %, {each.lost:.1f} %",
            _verdict(each),
        ]
        for each in lines
    ]
    heads = (
        "rule",
        "half a year: mean / worst",
        "below −1 %",
        "months below −5 %",
        "worst month",
        "sent home, work lost",
        "keeps",
    )
    months = strip_chart(
        [(each.half_years.name, list(each.months)) for each in lines if each.months]
        or [("none", [0.0])],
        key="random-months",
        title="Federations by chance: every full month of every site",
    )
    halves = strip_chart(
        [
            (words_of(each.policy), list(gains(study.of("random", policy=each.policy))))
            for each in lines
        ],
        key="random-halves",
        title="Federations by chance: every half year of every site",
    )
    return Section(
        "Federations by chance",
        [
            Table(heads, rows, "Rules on federations by chance"),
            Figure(halves, "Marks left of −40 % stand there."),
            Figure(months, "Marks left of −40 % stand there."),
        ],
        about=f"{study.options.get('federations', 0)} federations of 2 to 6 sites, seed {study.options.get('seed', 0)}: "
        "165 days from any day of a log, and workloads after Lublin and Feitelson; FCFS or EASY, sizes and loads by chance. "
        "Months are those of 30 full days and at least 100 own jobs. A strict rule keeps to what is expected if no half year is "
        f"below {HALF_YEAR_WORST:g} % and no month below {MONTH_WORST:g} %; the margin is that of the half year.".replace(
            "-", "−"
        ),
    )


def _own(study: Study) -> Words:
    lines = own_lines(study)
    if not lines:
        return ""
    rows: list[list[Words]] = []
    for policy, by_window in lines.items():
        values: list[Words] = []
        for window in SETS:
            if window not in by_window:
                values.append("")
                continue
            each = by_window[window].half_years
            own = _pair(each.mean, each.worst)
            both: Words = own if each.other is None else Stacked(own, _pair(*each.other))
            agrees = each.verdict in {"the same", "near"}
            values.append(Together((both, mark(agrees, each.verdict))))
        rows.append([words_of(policy), *values])
    return Section(
        "Strict exchange on the four logs",
        [Table(("rule", *SETS.values()), rows, "Strict rules and windows")],
        about="Mean and worst of all sites, percent; below them the independent program’s. With checkpoints these jobs keep "
        "their state every hour, which costs nothing here.",
    )


def _partners(study: Study) -> Words:
    rogues, adopted = rogue_lines(study), adoption_of_strict(study)
    if not rogues and not adopted:
        return ""
    tables: list[Words] = []
    if rogues:
        rows: list[list[Words]] = [
            [
                each.name,
                _pair(each.mean, each.worst),
                f"{own:.1f}".replace("-", "−"),
                mark(each.worst >= HALF_YEAR_WORST, f"{each.worst - HALF_YEAR_WORST:+.2f} points"),
            ]
            for each, own in rogues
        ]
        heads = ("partner", "honest: mean / worst", "its own gain", "margin")
        tables.append(Table(heads, rows, "Byzantine partners of strict sites"))
    if adopted:
        tables.append(_lines(adopted))
    return Section(
        "Strict exchange among others",
        tables,
        about="No job keeps its state. Each site of KTH, CTC, SDSC05 and of all four in turn is the one that differs; both "
        f"windows, FCFS and EASY. Expected is that no honest site is below {HALF_YEAR_WORST:g} %.".replace(
            "-", "−"
        ),
    )


def _lines(lines: list[Line]) -> Words:
    rows: list[list[Words]] = [
        [each.name, _pair(each.mean, each.worst), f"{each.below} of {each.count}"] for each in lines
    ]
    return Table(("who", "mean / worst", "lose"), rows, "Adoption of strict exchange")
