"""The study as one HTML page: tables beside the independent program's, pictures, and where it is weak."""

from grms.federation.sites import BYZANTINE_PARTNERS
from lrms_sim.report.parts import (
    Facts,
    Figure,
    Html,
    Page,
    Points,
    Section,
    Stacked,
    Table,
    Together,
    Words,
    made,
)
from scenarios.spec.spec import OVERLOADED
from scenarios.studies.common.page_parts import mark
from scenarios.studies.nobody_loses.drawings import strip_chart
from scenarios.studies.nobody_loses.reference import CENTRAL, NEAR, POLICIES, ROUNDS, SAME, SETS
from scenarios.studies.nobody_loses.statements import (
    Line,
    adoption_lines,
    byzantine_lines,
    gains,
    grid_lines,
    headroom_lines,
    headroom_verdict,
    jitter_line,
    month_lines,
    months_of,
    verdict,
)
from scenarios.studies.nobody_loses.strict_lines import strict_verdict
from scenarios.studies.nobody_loses.strict_page import strict_sections
from scenarios.studies.nobody_loses.study import Found, Study, window_of

TITLE = "Does anybody lose?"
WEAK = """\
Half a year is not a month: single months lose, see above, and nothing here bounds how much: a case of four jobs \
(docs/fair-exchange.md) takes a site’s response times to eight times what they are alone, with all rules kept.
The numbers of the rules were chosen on days 0 to 150 of these logs. Days from 150 on are other days of the same \
machines and users.
Over 444 results of sites (these logs from day 150 on, four logs held out, and both together) the independent \
program found the worst site at +0.01 %. That figure is partly selected. The four logs are not read here.
On three further logs that nobody had looked at before, one site lost 5.1 %, 19 of 195 results were below 0 and 6 below −1 %: there \
a few jobs of own users needed nearly the whole machine and waited half a day for small guests.
Under stress sites lose: a partner with four times as much to do takes more than it can give back.
A partner that never starts what it takes costs honest sites far more than one that is merely bad: in a replay \
nobody takes jobs back, and what it holds stays there until the end.
""".strip().splitlines()
"""Limits of these figures."""

_AGREES = {"the same": True, "near": True, "differs": False}


def page_of(study: Study) -> Page:
    """Returns the page; equal studies give equal documents."""
    about = (
        "Recorded logs of KTH, CTC, SDSC (DataStar) and SDSC (SP2): six pairs, four "
        "triples and all four, with FCFS, EASY, and FCFS at the smaller half. Every figure is a change of "
        "the average response time of a site’s own users, weighted by work, against the site alone: "
        "positive is better. An independent program measured the same rules on the same logs. "
        f"Two figures are the same within {SAME:g}, near within {NEAR:g} points."
    )
    return Page(
        TITLE,
        "study nobody-loses",
        [
            *strict_sections(study),
            _grids(study),
            _months(study),
            _byzantine(study),
            _chance(study),
            _headroom(study),
            Section("Where this is weak", [Points(WEAK)]),
            _made(study),
        ],
        headline=_headline(study),
        about=[about],
    )


def _headline(study: Study) -> str:
    strict = strict_verdict(study)
    return f"{strict}{verdict(study)}" if study.of("grids") or not strict else strict.strip()


def _mark(word: str) -> Words:
    return mark(_AGREES[word], word) if word else "–"


def _both(each: Line) -> Words:
    own = _pair(each.mean, each.worst)
    return own if each.other is None else Stacked(own, _pair(*each.other))


def _pair(mean: float, worst: float) -> str:
    return f"{mean:.2f} / {worst:.2f}".replace("-", "−")


def _one(value: float | None, digits: int = 1) -> str:
    return "–" if value is None else f"{value:.{digits}f}".replace("-", "−")


def _grids(study: Study) -> Words:
    lines = grid_lines(study)
    if not lines:
        return ""
    rows: list[list[Words]] = []
    for by_window in lines.values():
        values = [
            Together((_both(by_window[window]), _mark(by_window[window].verdict)))
            if window in by_window
            else ""
            for window in SETS
        ]
        rows.append([next(iter(by_window.values())).name, *values])
    for name, windows in CENTRAL.items():
        others = [Stacked("", _pair(*windows[window])) for window in SETS]
        rows.append([name, *(Together((other, "not measured")) for other in others)])
    chart = strip_chart(
        [
            (words, list(gains(_in(study, policy, "6"))))
            for policy, words in POLICIES.items()
            if policy in lines
        ],
        key="grids",
        title="From day 150: every site of every grid",
    )
    return Section(
        "Half a year",
        [
            Table(("policy", *SETS.values()), rows, "Policies and windows"),
            Figure(chart, "Marks left of −40 % stand there."),
        ],
        about="Mean and worst of all sites, percent; below them the independent program’s. The numbers of the "
        "rules were chosen on days 0 to 150. Under stress one site of a pair has four times as much to do.",
    )


def _in(study: Study, policy: str, window: str) -> Found:
    return tuple(run for run in study.of("grids", policy=policy) if window_of(run[0]) == window)


def _months(study: Study) -> Words:
    lines = month_lines(study)
    if not lines:
        return ""
    rows = [
        [
            each.name,
            *(
                f"{_one(own)} %" if other is None else Stacked(f"{_one(own)} %", _one(other))
                for own, other in zip(each.values, each.other or (None,) * 3, strict=True)
            ),
            _mark(each.verdict),
        ]
        for each in lines
    ]
    chart = strip_chart(
        [
            (words, found)
            for policy, words in POLICIES.items()
            if (found := months_of(study, policy))
        ],
        key="months",
        title="Every month of every site",
    )
    return Section(
        "Single months",
        [
            Table(
                ("policy", "below 0", "below −5 %", "worst", "verdict"), rows, "Months from day 150"
            ),
            Figure(chart, "Marks left of −40 % stand there."),
        ],
        about=f"The jobs of each 30 days from day 150 on by themselves, {lines[0].count} months of sites. "
        "Nobody promises a month: a site that gives much in one gets it back in another.",
    )


def _byzantine(study: Study) -> Words:
    lines = byzantine_lines(study)
    if not lines:
        return ""
    parts = []
    for policy in dict.fromkeys(each.policy for each in lines):
        rows = [
            [
                each.honest.name,
                _both(each.honest),
                Stacked(_one(each.own), _one(each.own_other)) if each.own_other else _one(each.own),
                _mark(each.honest.verdict),
            ]
            for each in lines
            if each.policy == policy
        ]
        heads = ("rogue", "others: mean / worst", "the Byzantine partner’s own gain", "verdict")
        parts.append(Table(heads, rows, f"The others: {POLICIES[policy]}"))
    words = {name: rogue.text for name, rogue in BYZANTINE_PARTNERS.items()}
    words[OVERLOADED] = "is honest; its users submit every job twice"
    chart = strip_chart(
        [
            (
                rogue or "none",
                [
                    gain
                    for case, found in study.of("rogues", policy=ROUNDS, rogue=rogue)
                    for site, gain in enumerate(found["gain"])
                    if site != case.who
                ],
            )
            for rogue in dict.fromkeys(each.rogue for each in lines)
            if study.of("rogues", policy=ROUNDS, rogue=rogue)
        ]
        or [("none", [0.0])],
        key="rogues",
        title="Honest sites beside one Byzantine partner, fair exchange with rounds",
    )
    return Section(
        "Byzantine partners",
        [Facts(list(words.items())), *parts, Figure(chart)],
        about=Html(
            "Each site of KTH, CTC, SDSC05 and of all four in turn, both windows, FCFS and EASY. "
            "Words are those of a scenario’s <code>rogue</code>. The independent program lets one that takes all offer in "
            "rounds; here it never gives. Rounds spare questions here, which changes nothing within constraints and little beside Byzantine partners. How its overloaded site was made is not known, so that line is no comparison."
        ),
    )


def _chance(study: Study) -> Words:
    chance = jitter_line(study)
    lines = [*adoption_lines(study), *([chance] if chance else [])]
    if not lines:
        return ""
    rows = [
        [each.name, _both(each), f"{each.below} of {each.count}", _mark(each.verdict)]
        for each in lines
    ]
    return Section(
        "Adoption and chance",
        [Table(("who", "mean / worst", "lose", "verdict"), rows, "Adoption and chance")],
        about="What a site has that alone takes up fair exchange with rounds among sites that accept when "
        "fit, and what becomes of all grids when every arrival comes up to ten minutes later, at "
        "random.",
    )


def _headroom(study: Study) -> Words:
    lines = headroom_lines(study)
    if not lines:
        return ""
    rows = [
        [
            each.name,
            *(_both(each.windows[window]) for window in "56"),
            f"{_one(each.months.values[1])} %",
            _one(each.months.values[2]),
            _both(each.filled),
            f"{each.filled.below} of {each.filled.count}",
        ]
        for each in lines
    ]
    heads = ("days 0–150", "from day 150", "months below −5 %", "worst month", "filled", "lose")
    return Section(
        "A rule that might mend it: headroom",
        [Table(("share", *heads), rows, "Fair exchange with rounds and headroom: mean / worst")],
        about="An experiment. Beside a guest a site keeps processors free: a share of the mean width of its own "
        "users’ jobs, by work, in days 0 to 150. In the last columns one site of each pair "
        "has, every week, a job of its own that needs the whole machine for five hours; what is shown is that site, with EASY; before that FCFS and EASY. "
        f"{headroom_verdict(study)}",
    )


def _made(study: Study) -> Section:
    options = study.options
    rows = (
        ("Replays", f"{len(study.runs):,}"),
        ("Rounds", "every 15 minutes, spared questions, in the order of the queue"),
        (
            "Shifted arrivals",
            f"of 0 to 600 s; draws for each federation: {options.get('draws', 0)}",
        ),
    )
    return made(rows, study.version)
