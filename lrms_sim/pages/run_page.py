"""The page on one run: its figures, its charts, and what was done with the log. It needs no network."""

from collections.abc import Sequence
from html import escape

from lrms_sim import spelling
from lrms_sim.pages import run_charts, series
from lrms_sim.pages.markup import brand, cells, document, figure, heading, scrolling
from lrms_sim.run_report import RunReport, figure_rows, group_rows, seconds_and_words
from lrms_sim.version import __version__


def render_run(report: RunReport) -> str:
    """Returns the page as an HTML document; equal runs give equal documents.

    Long runs are shown as means over some hundred bins and curves of some hundred points, so that the
    page of 100,000 jobs is not larger than that of 1,000.

    Args:
        report: the run, with at least one job.
    """
    name = spelling.printable(report.metrics.machine)
    parts = [
        _head(report, name),
        _section("Figures", _table("Figures of the run", ("", "value", ""), figure_rows(report))),
        _charts(report),
        _waits(report),
        _repetitions(report),
        _preparation(report),
    ]
    return document(f"{name}, {report.discipline}", parts)


def _head(report: RunReport, name: str) -> str:
    metrics = report.metrics
    cards = "".join(
        f'<li class="card" style="--site:var(--site-0)"><p class="figure">{value}</p>'
        f'<p class="meaning">{meaning}</p></li>\n'
        for value, meaning in (
            (_duration(metrics.awrt_s), "average weighted response time"),
            (_duration(metrics.mean_wait_time_s), "mean wait"),
            (spelling.share(metrics.utilization), "utilization"),
        )
    )
    begin, end = run_charts.span(report.schedule)
    return (
        f"<header>\n{brand(f'lrms-sim run, {__version__}')}\n<h1>{escape(name)}</h1>\n"
        f'<p class="headline">{metrics.jobs_executed:,} jobs on {metrics.processors:,} processors '
        f"under {escape(report.discipline)}, in {spelling.duration(end - begin)}.</p>\n"
        f'<ul class="cards" aria-label="Key figures">{cards}</ul>\n</header>'
    )


def _duration(seconds: float) -> str:
    """Returns what the table says in words, or in seconds where they are few."""
    _, words = seconds_and_words(seconds)
    return words or spelling.duration(seconds)


def _section(title: str, body: str) -> str:
    return f"<section>\n{heading(title)}\n{body}</section>"


def _table(name: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Returns a table: a heading for each row, and a value; words in the last column."""
    body = "".join(
        f'<tr><th scope="row">{escape(row[0])}</th>{cells([escape(cell) for cell in row[1:-1]])}'
        f'<td class="words">{escape(row[-1])}</td></tr>\n'
        for row in rows
    )
    # A column without a heading has none for those who listen either.
    places = (' class="left"', *[""] * (len(heads) - 2), ' class="left"')
    head = "".join(
        f'<th scope="col"{place}>{escape(each)}</th>' if each else "<td></td>"
        for each, place in zip(heads, places, strict=True)
    )
    return scrolling(f"<table><thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody></table>", name)


def _charts(report: RunReport) -> str:
    schedule = report.schedule
    width = series.width_in_words(series.bin_edges(*run_charts.span(schedule)))
    body = figure(run_charts.over_time(schedule), f"Means per {width}.", "wide")
    drawn = run_charts.gantt(schedule)
    if drawn:
        caption = (
            "A bar is a job, in the colour of its user. A schedule does not say which processors a job "
            "has; here it has the lowest that are free."
        )
        body += figure(drawn, caption, "wide")
    else:
        body += (
            f"<p>A Gantt chart has up to {run_charts.GANTT_JOBS_MAX:,} jobs. "
            f"{_whole('--window-days')} and {_whole('--first-jobs')} choose some.</p>\n"
        )
    return _section("Over time", body)


def _whole(option: str) -> str:
    return f'<span style="white-space: nowrap">{option}</span>'


def _waits(report: RunReport) -> str:
    rows = [(name.replace("  ", ": "), jobs, awrt) for name, awrt, jobs in group_rows(report)]
    return _section(
        "Users",
        figure(
            run_charts.waits(report.schedule),
            "Waits below a second stand at its left end. Work is processors times run time.",
            "wide",
        )
        + _table("User groups", ("user group", "jobs", "AWRT"), rows),
    )


def _repetitions(report: RunReport) -> str:
    again = report.repetitions
    if again is None:
        return ""
    rows = [
        (name, f"{mean:,.4f}", f"{low:,.4f} to {high:,.4f}")
        for name, (mean, low, high) in again.figures.items()
    ]
    words = f"{again.repeat} repetitions, arrivals shifted by up to {again.seconds:g} s"
    table = _table("Repetitions", ("figure", "mean", "95 % confidence"), rows)
    return _section("Repetitions", f"<p>{words}.</p>\n{table}")


def _preparation(report: RunReport) -> str:
    done = report.preparation
    text = (
        f"<p>{done.records_read:,} records read, {done.records_dropped:,} dropped, "
        f"{done.jobs_prepared:,} jobs prepared.</p>\n"
    )
    rows = [(words, f"{count:,}", treatment) for words, count, treatment in done.rows()]
    table = _table("Rules", ("rule", "records", "treatment"), rows) if rows else ""
    return _section("What was done with the log", text + table)
