"""The page on one run: its figures, its charts, and what was done with the log. It needs no network."""

from collections.abc import Sequence

from lrms_sim.report import run_charts, series
from lrms_sim.report.parts import Card, Figure, Html, Page, Section, Table, Words
from lrms_sim.report.run_report import (
    REQUEST_CLASSES,
    RunReport,
    figure_rows,
    group_rows,
    kind_words,
    resource_rows,
    seconds_and_words,
    wait_rows,
)
from lrms_sim.util import messages
from lrms_sim.util.version import __version__


def render_run(report: RunReport) -> str:
    """Returns the page of a run with at least one job as HTML; equal runs give equal documents.

    Long runs are shown in some hundred bins and points, so that the page of 100,000 jobs is no
    larger than that of 1,000.
    """
    metrics, schedule = report.metrics, report.schedule
    name = messages.printable(metrics.machine)
    begin, end = run_charts.span(schedule)
    groups = [(name.replace("  ", ": "), jobs, awrt) for name, awrt, jobs in group_rows(report)]
    page = Page(
        name,
        f"lrms-sim run, {__version__}",
        [
            Section(
                "Figures", [_table("Figures of the run", ("", "value", ""), figure_rows(report))]
            ),
            Section("Over time", _charts(report)),
            Section(
                "Users",
                [
                    Figure(
                        run_charts.waits(schedule),
                        "Waits below a second stand at its left end. Work is processors times run time.",
                    ),
                    _table("User groups", ("user group", "jobs", "AWRT"), groups),
                ],
            ),
            Section("Nodes", _nodes(report)),
            Section("Repetitions", _repetitions(report)),
            Section("What was done with the log", _preparation(report)),
        ],
        headline=(
            f"{metrics.jobs_executed:,} jobs on {metrics.processors:,} processors "
            f"under {report.discipline}, in {messages.duration(end - begin)}."
        ),
        cards=[
            Card(_duration(metrics.awrt_s), "average weighted response time"),
            Card(_duration(metrics.mean_wait_time_s), "mean wait"),
            Card(messages.share(metrics.utilization), "utilization"),
        ],
        cards_of="Key figures",
        window=f"{name}, {report.discipline}",
    )
    return str(page)


def _duration(seconds: float) -> str:
    _, words = seconds_and_words(seconds)
    return words or messages.duration(seconds)


def _table(name: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    return Table(heads, rows, name=name, words={len(heads) - 1})


def _charts(report: RunReport) -> list[Words]:
    schedule = report.schedule
    width = series.width_in_words(series.bin_edges(*run_charts.span(schedule)))
    by_nodes = "" if report.on_nodes is None else run_charts.node_gantt(report.on_nodes)
    if by_nodes:
        figure = Figure(
            by_nodes, "A bar is a job on a node that it had, in the colour of its user."
        )
        return [Figure(run_charts.over_time(schedule), f"Means per {width}."), figure]
    drawn = run_charts.gantt(schedule)
    gantt: Words = Html(
        f"<p>A Gantt chart has up to {run_charts.GANTT_JOBS_MAX:,} jobs. "
        '<span style="white-space: nowrap">--window-days</span> and '
        '<span style="white-space: nowrap">--first-jobs</span> choose some.</p>\n'
    )
    if drawn:
        gantt = Figure(
            drawn,
            "A bar is a job, in the colour of its user. A schedule does not say which processors a job "
            "has; here it has the lowest that are free.",
        )
    return [Figure(run_charts.over_time(schedule), f"Means per {width}."), gantt]


def _nodes(report: RunReport) -> list[Words]:
    found = report.on_nodes
    if found is None:
        return []
    return [
        f"{kind_words(found)}; {found.machine.placement}.",
        _table("Resources", ("resource", "held", ""), resource_rows(found)),
        *(
            _table(words.capitalize(), (words, "mean wait", ""), wait_rows(found, class_of))
            for _, words, class_of in REQUEST_CLASSES
        ),
    ]


def _repetitions(report: RunReport) -> list[Words]:
    again = report.repetitions
    if again is None:
        return []
    rows = [
        (name, f"{mean:,.4f}", f"{low:,.4f} to {high:,.4f}")
        for name, (mean, low, high) in again.figures.items()
    ]
    return [
        f"{again.repeat} repetitions, arrivals shifted by up to {again.seconds:g} s.",
        _table("Repetitions", ("figure", "mean", "95 % confidence"), rows),
    ]


def _preparation(report: RunReport) -> list[Words]:
    done = report.preparation
    text = (
        f"{done.records_read:,} records read, {done.records_dropped:,} dropped, "
        f"{done.jobs_prepared:,} jobs prepared."
    )
    rows = [(words, f"{count:,}", treatment) for words, count, treatment in done.rows()]
    return [text, _table("Rules", ("rule", "records", "treatment"), rows)] if rows else [text]
