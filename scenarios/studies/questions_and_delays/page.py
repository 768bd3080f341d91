"""The study as one HTML page: curves, tables, statements with their bounds, and what it does not show."""

from collections.abc import Sequence

from lrms_sim.report.parts import Figure, Page, Points, Section, Stacked, Table, Words, made
from scenarios.studies.common.charts import Line as Curve
from scenarios.studies.common.charts import line_chart
from scenarios.studies.common.page_parts import mark
from scenarios.studies.common.samples import Spread
from scenarios.studies.common.verdicts import word
from scenarios.studies.questions_and_delays.replays import ALL, PERIOD, WINDOWS
from scenarios.studies.questions_and_delays.statements import (
    WORDS,
    Line,
    asking_words,
    clock_lines,
    delay_lines,
    family_words,
    lateness_words,
    question_lines,
    statements,
    verdict,
)
from scenarios.studies.questions_and_delays.study import Study

TITLE = "What questions, delay and clocks do to the gain"
WEAK = """\
No message is lost, and no question is given up on: the fault test of the sites has both, without a gain to measure.
A place that is held for a waiting job is held until its home site says more; a daemon gives it back after some minutes.
Every site’s messages take the same time to every other; a late answer is late by the same time.
Ten days are few: single sites lose in most draws, with delay and without it. Draws of half a year are the same jobs, shifted by days.
The logs are of three machines. Sites of one log differ in their days and in nothing else.
""".strip().splitlines()
"""Limits of these figures."""


def page_of(study: Study) -> Page:
    """Returns the page; equal studies give equal documents."""
    parts: list[Words] = [_statements(study)]
    for window in WINDOWS:
        parts += [_questions(study, window), _delays(study, window), _clocks(study, window)]
    about = (
        "Sites of the recorded logs of KTH, CTC and SDSC (DataStar) exchange jobs by fair exchange. "
        "Each asks at most so many partners about a job, and each message between two sites takes its time: an offer is "
        "decided by what the partner is when it arrives, and its job neither waits nor runs meanwhile. A site’s clock may "
        "be ahead or behind. Every figure is a change of the average response time of a site’s own users, weighted by "
        "work, against the site alone, in percent: positive is better. Medians over draws, and the least and the "
        "greatest."
    )
    return Page(
        TITLE,
        "study questions-and-delays",
        [*parts, Section("What this does not show", [Points(WEAK)]), _made(study)],
        headline=verdict(study),
        about=[about],
    )


def _number(value: float) -> str:
    return f"{round(value, 1) + 0.0:.1f}".replace("-", "−")  # no minus before nothing


def _spread(value: Spread) -> Stacked:
    return Stacked(_number(value.median), f"{_number(value.low)} … {_number(value.high)}")


def _curves(
    rows: Sequence[tuple[str, Sequence[Spread]]],
    places: Sequence[str],
    *,
    key: str,
    title: str,
    below: str,
) -> str:
    lines = [
        Curve(
            name, number, [(n, each.median, each.low, each.high) for n, each in enumerate(values)]
        )
        for number, (name, values) in enumerate(rows)
    ]
    return line_chart(
        *(lines, places),
        key=key,
        title=title,
        below=below,
        inner=250.0,
        scale=(None, None),
        unit=" %",
    )


_FIGURES = ("mean", "worst site", "ran elsewhere", "offers a hundred jobs", "draws")


def _table(caption: str, what: str, rows: Sequence[Sequence[Words]], window: str) -> Table:
    name = f"{WINDOWS[window]}: {caption.lower()}"
    return Table(("exchange", what, *_FIGURES), rows, caption, name=name, words={1})


def _figures(line: Line) -> list[Words]:
    return [
        _spread(line.mean),
        _spread(line.worst),
        f"{_number(line.moved.median)} %",
        _number(line.offers.median),
        str(line.mean.count),
    ]


def _asked(line: Line) -> str:
    return "all" if line.case.asked == ALL else str(line.case.asked)


def _statements(study: Study) -> Section:
    every = statements(study)
    tables = []
    for window, words in WINDOWS.items():
        rows: list[list[Words]] = []
        said = ""
        for each in every:
            if each.window != window:
                continue
            if each.about != said:
                said = each.about
                rows.append([said])
            rows.append([each.of, _spread(each.points), mark(each.holds, word(each.holds))])
        if rows:
            tables.append(Table(("exchange", "points missing", "verdict"), rows, words))
    return Section(
        "Statements",
        tables,
        about="What is missing is taken within each draw, on the same days; the mean over draws, with its interval, is held against the "
        "bound. A negative figure says that nothing is missing.",
    )


def _questions(study: Study, window: str) -> Words:
    found = question_lines(study, window)
    if not found:
        return ""
    rows = [
        (family_words(line.case), _asked(line), *_figures(line))
        for lines in found
        for line in lines
    ]
    places = [_asked(line) for line in max(found, key=len)]
    charts = [
        _curves(
            [
                (family_words(lines[0].case), [getattr(each, what) for each in lines])
                for lines in found
            ],
            places,
            key=key,
            title=f"{title} by partners asked",
            below="partners asked about one job, at most",
        )
        for what, key, title in (
            ("mean", f"{window}-asked", "All sites: mean gain"),
            ("worst", f"{window}-asked-worst", "Worst site: gain"),
        )
    ]
    return Section(
        f"{WINDOWS[window]}: partners asked",
        [
            Figure(charts[0], "Bars go from the least to the greatest draw."),
            Figure(charts[1]),
            _table("By partners asked", "asked", rows, window),
        ],
        about="Messages take no time here. Partners are asked in the order of what a site has learned of them.",
    )


def _delays(study: Study, window: str) -> Words:
    found = delay_lines(study, window)
    if not found:
        return ""
    rows = [
        (asking_words(line.case), f"{line.case.delay:g} s", *_figures(line))
        for lines in found
        for line in lines
    ]
    places = [f"{line.case.delay:g} s" for line in max(found, key=len)]
    charts = []
    for discipline, words in WORDS.items():
        chosen = [lines for lines in found if lines[0].case.discipline == discipline]
        for what, title in (("mean", "mean gain"), ("worst", "gain of the worst site")):
            if chosen:
                drawn = _curves(
                    [
                        (asking_words(lines[0].case), [getattr(line, what) for line in lines])
                        for lines in chosen
                    ],
                    places,
                    key=f"{window}-delay-{discipline}-{what}",
                    title=f"{words}: {title} by delay",
                    below="each message takes",
                )
                charts.append(Figure(drawn))
    return Section(
        f"{WINDOWS[window]}: delay",
        [*charts, _table("By delay", "delay", rows, window)],
        about="Bars go from the least to the greatest draw; no delay has the same draws here.",
    )


def _clocks(study: Study, window: str) -> Words:
    found = clock_lines(study, window)
    if not found:
        return ""
    rows = [(family_words(line.case), lateness_words(line.case), *_figures(line)) for line in found]
    return Section(
        f"{WINDOWS[window]}: late answers, clocks apart",
        [
            (
                f"Messages take {found[0].case.delay:g} s, and all partners are asked. Which answers are late and how far each "
                "clock is ahead or behind is drawn anew in every draw."
            ),
            _table("Late answers and clocks", "what is late", rows, window),
        ],
    )


def _made(study: Study) -> Section:
    options = study.options
    draws = f"{options['draws']} with delays, {options['more_draws']} without"
    half = options["half_year_draws"]
    rows = (
        (
            "Replays",
            f"{len(study.runs):,}, without delay by the federation kernel, with delay by the states of sites",
        ),
        ("Draws", draws + (f"; of half a year {half} with delays" if half else "; no half year")),
        ("Seeds", "the number of the draw, from 1, with the name of what is drawn"),
        (
            "Ten days",
            "of each log three spans that do not overlap, drawn; the first draw has those from day 20, 60 and 100",
        ),
        (
            "Half a year",
            "of each log the days 20 to 179 and 179 to 338, from the second draw on shifted by up to 13 days",
        ),
        ("Rounds", f"every {PERIOD / 60:g} minutes, spared questions, in the order of the queue"),
    )
    return made(rows, study.version)
