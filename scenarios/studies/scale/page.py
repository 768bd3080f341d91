"""The study as one HTML page: what a job costs, what few questions reach, and what it does not show."""

from collections.abc import Sequence

from lrms_sim.report.parts import Figure, Page, Points, Section, Stacked, Table, Words, made
from scenarios.studies.common.charts import Line, line_chart
from scenarios.studies.common.page_parts import judgement
from scenarios.studies.common.samples import Spread
from scenarios.studies.common.verdicts import counted
from scenarios.studies.scale.statements import counts, network_words, parts, statements, values
from scenarios.studies.scale.study import (
    ABSENCE_H,
    ALL,
    ASKED,
    AT_ONCE,
    AWAY,
    COMMON,
    DISCIPLINE,
    KNOWN,
    LOADS,
    MEDIAN_S,
    NETWORKS,
    POLICY,
    PRESENCE_SHAPE,
    SIZES,
    SPREAD,
    USUAL,
    Study,
)

TITLE = "What exchange costs and brings among very many sites"
WEAK = """\
Questions are answered at once and none is lost, except where messages take time. There each question is lost by itself; failures that last, or that many sites have at one time, are absences. A daemon goes on asking a partner what became of an offer without an answer; here it goes to the next one after the time-out.
A site that is away has left the exchange; it has not crashed. Its own jobs and its guests run on, and a question to it counts as one without an answer.
Where sites are more than a site’s questions, nearly every question goes to a partner that was never asked before: what a site has seen of others then decides little.
Workloads are of a model, all sites alike but for size, load and time zone; recorded logs vary more.
A job’s cost is processor time on a machine that may have other work, which shares its caches.
""".strip().splitlines()
"""Limits of these figures."""


def page_of(study: Study) -> Page:
    """Returns the page; equal studies give equal documents."""
    every = list(statements(study))
    about = (
        f"Sites of {SIZES[0]} to {SIZES[-1]} processors, each with a workload by the model of Lublin and Feitelson, exchange jobs "
        "by fair exchange. A site asks at most so many partners about a job, in the order of what it has seen of them itself: nobody "
        "has a list of loads. Gains are changes of the average response time of all jobs, weighted by work, against all "
        "sites alone, in percent: positive is better. Medians over draws, and the least and the greatest."
    )
    rows = [(each.claim, judgement(each)) for each in every]
    said = Table(("statement", "here"), rows, "Statements", words={1})
    return Page(
        TITLE,
        "study scale",
        [
            Section(
                "Statements",
                [said],
                about="The mean over draws, with its interval, is held against the bound.",
            ),
            _costs(study),
            _reached(study),
            _crowded(study),
            _away(study),
            _networks(study),
            Section("What this does not show", [Points(WEAK)]),
            _made(study),
        ],
        headline=counted([each.holds for each in every]),
        about=[about],
    )


def _number(value: float, digits: int = 1) -> str:
    return f"{round(value, digits) + 0.0:,.{digits}f}".replace("-", "−")


def _spread(found: Sequence[float], digits: int = 1) -> Stacked:
    value = Spread.of(found)
    ends = f"{_number(value.low, digits)} … {_number(value.high, digits)}"
    return Stacked(_number(value.median, digits), ends)


def _points(found: Sequence[Sequence[float]]) -> list[tuple[int, float, float, float]]:
    spreads = [Spread.of(each) for each in found]
    return [(n, each.median, each.low, each.high) for n, each in enumerate(spreads)]


def _asked(asked: int) -> str:
    return "all" if asked == ALL else str(asked)


def _costs(study: Study) -> Section:
    every = counts(study)
    lines = [
        Line(
            f"{_asked(asked)} asked",
            number,
            _points([values(study, "microseconds", sites=sites, asked=asked) for sites in every]),
        )
        for number, asked in enumerate((2, USUAL, ALL))
    ]
    chart = line_chart(
        lines,
        [f"{sites:,}" for sites in every],
        key="cost",
        title="Processor time of a job, µs",
        below="sites",
    )
    rows: list[list[Words]] = [
        [
            f"{sites:,}",
            _asked(asked),
            _spread(values(study, "microseconds", sites=sites, asked=asked), 2),
            _spread(values(study, "offers", sites=sites, asked=asked), 2),
            _spread(values(study, "megabytes", sites=sites, asked=asked), 0),
        ]
        for sites in every
        for asked in ASKED
    ]
    head = ("sites", "asked", "µs a job", "questions a job", "MB")
    return Section(
        "What a job costs",
        [
            Figure(chart, "Bars go from the least to the greatest draw."),
            Table(head, rows, "Processor time and memory", words={0, 1}),
        ],
        about="Set-up included. Memory is the most that the process ever had, with the workload and the "
        "interpreter. A site keeps records of those partners alone that it has met.",
    )


def _reached(study: Study) -> Section:
    every = counts(study)
    bounded = [asked for asked in ASKED if asked != ALL]
    lines = [
        Line(f"{sites:,} sites", number, _points([parts(study, sites, asked) for asked in bounded]))
        for number, sites in enumerate(every)
    ]
    chart = line_chart(
        lines,
        [_asked(asked) for asked in bounded],
        key="reached",
        title="Part of the gain that is reached",
        below="partners asked about one job, at most",
        unit=" %",
    )
    rows: list[list[Words]] = [
        [
            f"{sites:,}",
            _asked(asked),
            _spread(values(study, "gain", sites=sites, asked=asked)),
            _spread(parts(study, sites, asked)),
            _spread(values(study, "losing", sites=sites, asked=asked)),
            _spread(values(study, "moved", sites=sites, asked=asked)),
        ]
        for sites in every
        for asked in ASKED
    ]
    head = (
        "sites",
        "asked",
        "gain, %",
        "of that with all, %",
        "sites that lose, %",
        "ran elsewhere, %",
    )
    return Section(
        "What few questions reach",
        [Figure(chart), Table(head, rows, "Gain by partners asked", words={0, 1})],
        about="With all partners asked every site that would take a job is found: full knowledge of who would. A site loses "
        "if its own users’ response times are more than 1 % longer than alone.",
    )


def _crowded(study: Study) -> Section:
    rows: list[list[Words]] = [
        [
            f"{sites:,}",
            _asked(asked),
            "one for all" if common else "own",
            _spread(values(study, "gain", sites=sites, asked=asked, common=common)),
            _spread(parts(study, sites, asked, common=common)),
            _spread(values(study, "offers", sites=sites, asked=asked, common=common), 2),
        ]
        for sites in counts(study)
        for asked in COMMON
        for common in (False, True)
    ]
    head = ("sites", "asked", "order", "gain, %", "of that with all, %", "questions a job")
    return Section(
        "An order of its own, and one order for all",
        [Table(head, rows, "Gain by order of partners", words={0, 1, 2})],
        about="Partners of which a site has seen equally much, above all those it has never asked, come in some order. With an order "
        "of its own a site begins with the one behind itself and goes round; with one order for all everybody begins with "
        "the same few sites, which then are full.",
    )


def _away(study: Study) -> Section:
    rows: list[list[Words]] = []
    for sites in counts(study):
        kinds: list[tuple[str, dict[str, int]]] = [("nobody away", {})]
        kinds += [(f"each away {away} % of the time", {"away": away}) for away in AWAY]
        if sites > KNOWN:
            kinds.append((f"each knows {KNOWN}", {"known": KNOWN}))
        for name, wanted in kinds:
            figures = (
                values(study, what, sites=sites, **wanted) for what in ("gain", "losing", "offers")
            )
            rows.append([f"{sites:,}", name, *(_spread(each) for each in figures)])
    head = ("sites", f"{USUAL} asked", "gain, %", "sites that lose, %", "questions a job")
    return Section(
        "Sites that come and go, and sites that know few others",
        [Table(head, rows, "Absences and acquaintances", words={0, 1})],
    )


def _networks(study: Study) -> Section:
    rows: list[list[Words]] = []
    for sites in counts(study):
        for network in (AT_ONCE, *NETWORKS):
            figures = (
                values(study, what, sites=sites, network=network)
                for what in ("gain", "losing", "offers")
            )
            rows.append(
                [f"{sites:,}", network_words(network), *(_spread(each, 2) for each in figures)]
            )
    head = ("sites", f"{USUAL} asked", "gain, %", "sites that lose, %", "questions a job")
    return Section(
        "Messages that take time, and questions that are lost",
        [Table(head, rows, "Delays and losses", words={0, 1})],
        about="A question, its answer and the report of an end each take half a round trip. The job is in no queue meanwhile; an "
        "offer is decided by what the partner is when it arrives. A lost question counts as declined after the time-out.",
    )


def _made(study: Study) -> Section:
    options = study.options
    rows = (
        ("Replays", f"{len(study.runs):,}, each in a process of its own, and each with all sites alone"),
        ("Draws", f"{options['draws']}; seeds are the numbers of the draws, from 1"),
        ("Jobs", f"{options['jobs']:,} of each site"),
        ("Sites", f"sizes {', '.join(map(str, SIZES))}, as likely each; load alone uniform in {LOADS[0]:g} to {LOADS[1]:g}; any time zone"),
        ("Policy", f"{POLICY}, {DISCIPLINE} everywhere; jobs are offered on arrival alone"),
        (
            "Absences",
            (f"exponential, mean {ABSENCE_H:g} h (network errors at three grid sites: Alsoghayer and Djemame); times between them Weibull "
            f"with shape {PRESENCE_SHAPE:g} (Schroeder and Gibson 2006: 0.7 to 0.8)"),
        ),
        (
            "Messages",
            (f"round trips of each pair log-normal: median {MEDIAN_S:g} s (about that between 1,740 name servers: King, Gummadi and others 2002; Dabek and others "
            f"2004), standard deviation of the logarithms {SPREAD:g} (assumed); lost are 1.5 % (failed web accesses, CoNEXT 2006), 5.6 % (broadband hosts out of reach, "
            "Gummadi and others 2004) or 20 % of the questions"),
        ),
        ("Order", "by average response time of own jobs completed there; without any, by how often asked; then round, from the site behind itself"),
        ("Acquaintances", f"each site names {KNOWN // 2} others by chance, and is known to them"),
    )  # fmt: skip
    return made(rows, study.version)
