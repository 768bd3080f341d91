"""What the page of the study says of strict exchange: tables with verdicts, and a dot for every site-month."""

from typing import Final

from grms.federation.sites import BYZANTINE_PREEMPTING
from lrms_sim.report.parts import Facts, Figure, Section, Stacked, Table, Together, Words
from scenarios.studies.common.page_parts import mark
from scenarios.studies.nobody_loses.drawings import rank_chart, strip_chart
from scenarios.studies.nobody_loses.reference import ROUNDS, SETS
from scenarios.studies.nobody_loses.statements import Line, gains
from scenarios.studies.nobody_loses.strict import (
    ALL,
    HALF_YEAR_WORST,
    MONTH_WORST,
    NO_CHECKPOINTS,
    RUN,
)
from scenarios.studies.nobody_loses.strict_lines import (
    StrictLine,
    adoption_of_strict,
    jitter_of_strict,
    own_lines,
    random_lines,
    restart_lines,
    rogue_lines,
    words_of,
)
from scenarios.studies.nobody_loses.study import Study

_RANKED: Final = (ROUNDS, RUN, NO_CHECKPOINTS, ALL)
"""Rules that have a picture by rank: the first cannot bound losses, the second cannot preempt."""

_HEADS: Final = (
    "rule",
    "mean / worst",
    "below −1 %",
    "months below −5 %",
    "worst month",
    "sent home, lost",
    "keeps",
)


def strict_sections(study: Study) -> list[Words]:
    """Returns the sections; empty if nothing of strict exchange was measured."""
    made = (
        _random(study),
        _short(study),
        _restarts(study),
        _own(study),
        _rogues(study),
        _adoption(study),
    )
    return [section for section in made if section != ""]


def _pair(mean: float, worst: float) -> str:
    return _signed(f"{mean:.2f} / {worst:.2f}")


def _signed(text: str) -> str:
    return text.replace("-", "−")


def _beside(each: Line) -> Words:
    own = _pair(each.mean, each.worst)
    return own if each.other is None else Stacked(own, _pair(*each.other))


def _verdict(each: StrictLine) -> Words:
    if each.keeps is None:
        return "–"
    return mark(each.keeps, _signed(f"{'yes' if each.keeps else 'no'}, {each.margin:+.2f}"))


def _rows(lines: list[StrictLine], *, months: bool) -> list[list[Words]]:
    return [
        [
            each.half_years.name,
            _pair(each.half_years.mean, each.half_years.worst),
            f"{each.below} of {each.half_years.count:,}",
            *(
                (
                    f"{each.months_below} of {len(each.months):,}",
                    _signed(f"{each.month_worst:.1f}"),
                )
                if months
                else ()
            ),
            f"{each.preempted:.1f}, {each.lost:.1f} %" if each.preempted else "–",
            *((_verdict(each),) if months else ()),
        ]
        for each in lines
    ]


def _random(study: Study) -> Words:
    lines = random_lines(study)
    if not lines:
        return ""
    by_policy = {each.policy: each for each in lines}
    ranked = [
        (by_policy[policy].half_years.name, list(by_policy[policy].months))
        for policy in _RANKED
        if policy in by_policy and by_policy[policy].months
    ]
    parts: list[Words] = [
        Table(_HEADS, _rows(lines, months=True), "Rules on federations by chance")
    ]
    if ranked:
        chart = rank_chart(
            ranked,
            key="random-ranks",
            title="Every full month of every site, from the worst to the best",
        )
        parts.append(Figure(chart, "A dot for each site-month; those below −40 % stand there."))
    halves = strip_chart(
        [
            (each.half_years.name, list(gains(study.of("random", policy=each.policy))))
            for each in lines
        ],
        key="random-halves",
        title="Every half year of every site",
    )
    parts.append(Figure(halves, "Marks left of −40 % stand there."))
    return Section(
        "Federations by chance",
        parts,
        about=_signed(
            f"{study.options.get('federations', 0)} federations of 2 to 6 sites, seed {study.options.get('seed', 0)}: "
            "165 days from any day of a log, and workloads after Lublin and Feitelson; FCFS or EASY, sizes and loads by chance. "
            "Months are those of 30 full days and at least 100 own jobs. A strict rule keeps to what is expected if no half year is "
            f"below {HALF_YEAR_WORST:g} % and no month below {MONTH_WORST:g} %; the margin is that of the half year. None, half, all: of the "
            "jobs of each site that keep their state, every hour. Sent home: of all jobs, each time counted; lost: of all work."
        ),
    )


def _short(study: Study) -> Words:
    lines = random_lines(study, "short")
    if not lines:
        return ""
    heads = (*_HEADS[:3], _HEADS[5])
    return Section(
        "Federations of 30 days",
        [Table(heads, _rows(lines, months=False), "Rules on federations of 30 days")],
        about="Others, drawn in the same way. Each begins with empty machines and accounts that know nothing, and ends "
        "before what was given has come back: no rule promises a lone month.",
    )


def _restarts(study: Study) -> Words:
    lines = restart_lines(study)
    if not lines:
        return ""
    rows: list[list[Words]] = [
        [
            each.half_years.name,
            f"{each.minutes} min",
            _pair(each.half_years.mean, each.half_years.worst),
            _pair(each.months.mean, each.months.worst),
        ]
        for each in lines
    ]
    heads = ("rule", "more after each return", "half a year", "30 days")
    return Section(
        "What a new start costs",
        [Table(heads, rows, "Cost of a new start")],
        about="After each return a job runs, and requests, so much longer: it loads its data again. The same federations by chance.",
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
            agrees = each.verdict in {"the same", "near"}
            said = "" if each.other is None else mark(agrees, each.verdict)
            values.append(Together((_beside(each), said)))
        rows.append([words_of(policy), *values])
    return Section(
        "Strict exchange on the four logs",
        [Table(("rule", *SETS.values()), rows, "Strict rules and windows")],
        about="Mean and worst of all sites, percent; below them the independent program’s. With checkpoints these jobs keep "
        "their state every hour, which costs nothing here.",
    )


def _rogues(study: Study) -> Words:
    lines = rogue_lines(study)
    if not lines:
        return ""
    heads = ("partner", "honest: mean / worst", "its own gain", "margin", "verdict")
    tables: list[Words] = []
    for rule in dict.fromkeys(each.rule for each in lines):
        rows: list[list[Words]] = [
            [
                each.honest.name,
                _beside(each.honest),
                f"{each.own:.1f}"
                if each.own_other is None
                else Stacked(f"{each.own:.1f}", f"{each.own_other:.1f}"),
                mark(each.margin >= 0, _signed(f"{each.margin:+.2f} points")),
                each.honest.verdict or "–",
            ]
            for each in lines
            if each.rule == rule
        ]
        tables.append(Table(heads, rows, f"The others: {words_of(rule)}"))
    words = {each.name: each.text for each in BYZANTINE_PREEMPTING.values()}
    return Section(
        "Byzantine partners of strict sites",
        [Facts(list(words.items())), *tables],
        about=_signed(
            "Each site of KTH, CTC, SDSC05 and of all four in turn; both windows, FCFS and EASY. Jobs of the Byzantine partner keep "
            "no state, but where it hides that they do. Below each figure the independent program’s; it has no partner that starts nothing, and none that "
            f"lies. Expected is that no honest site is below {HALF_YEAR_WORST:g} %."
        ),
    )


def _adoption(study: Study) -> Words:
    lines = adoption_of_strict(study)
    chance = jitter_of_strict(study)
    lines += [] if chance is None else [chance]
    if not lines:
        return ""
    rows: list[list[Words]] = [
        [each.name, _beside(each), f"{each.below} of {each.count}", each.verdict or "–"]
        for each in lines
    ]
    heads = ("who", "mean / worst", "lose", "verdict")
    return Section(
        "Adoption of strict exchange, and chance",
        [Table(heads, rows, "Adoption of strict exchange")],
        about="One site of each federation keeps to another rule than all others; below each figure the independent program’s. The last line has "
        "all grids of the four logs, with every arrival up to ten minutes later, at random.",
    )
