"""The tables of the page: results, exchange, waits, and what became of the workloads."""

from collections.abc import Callable, Sequence
from html import escape

from lrms_sim.pages.markup import cells, column_heads, heading, scrolling, site_cell
from scenarios.report import words
from scenarios.report.selection import (
    FLOWS_MAX,
    ROWS_MAX,
    important,
    largest_flows,
    left_out,
    notes_together,
)
from scenarios.run.results import ScenarioResult, SiteResult
from scenarios.run.user_groups import GroupResult

_BOTH = ("alone", "federated")


def summary(result: ScenarioResult) -> str:
    """Returns the section with the main tables: what users got, what machines did."""
    users = _table(
        "<b>Users.</b> How long the site's own jobs take, wherever they run. A positive improvement is better.",
        (
            ("", ("Own jobs",)),
            ("AWRT, seconds", _BOTH),
            ("", ("Improvement",)),
            ("Own jobs that were", ("kept", "given")),
        ),
        result,
        _user_cells,
    )
    machines = _table(
        "<b>Machines.</b> What each of them ran, whoever sent it.",
        (
            ("", ("Jobs taken",)),
            ("Utilization U", _BOTH),
            ("", ("ΔSA",)),
            ("C<sub>max</sub>, seconds", _BOTH),
        ),
        result,
        _machine_cells,
    )
    groups = _user_groups(result) if result.user_groups else ""
    return (
        f"<section>\n{heading('Results')}\n{scrolling(users, 'Results for users')}"
        f"{scrolling(machines, 'Results for machines')}{groups}</section>"
    )


def _user_groups(result: ScenarioResult) -> str:
    """Returns the table of what the user groups of each site got."""
    heads = column_heads(("Group", "Jobs", "AWRT alone", "federated", "Improvement"))
    rows = []
    for index in important(result, ROWS_MAX):
        name = result.sites[index].name
        rows += [
            f"<tr>{site_cell(name, index)}"
            + cells(
                (
                    str(one.group),
                    words.count(one.jobs),
                    words.seconds(one.awrt_alone),
                    words.seconds(one.awrt),
                    f'<strong class="{tone(one)}">{words.change(one.awrt_improvement)}</strong>',
                )
            )
            + "</tr>"
            for one in result.user_groups
            if one.site == name
        ]
    table = (
        "<table><caption><b>User groups.</b> Group 1 uses more than 8 % of its site's work, group 5 "
        "less than 0.1 %. AWRT in seconds.</caption><thead><tr>"
        f'<th class="left" scope="col">Site</th>{heads}</tr></thead><tbody>\n'
        + "\n".join(rows)
        + "\n</tbody></table>"
    )
    return scrolling(table, "Results for user groups")


def _table(
    caption: str,
    columns: Sequence[tuple[str, Sequence[str]]],
    result: ScenarioResult,
    row: Callable[[SiteResult], str],
) -> str:
    """Returns a table with a row for each site.

    Args:
        caption: HTML.
        columns: groups of columns: the group's heading, HTML, and those of its columns.
        result: the run.
        row: gives the cells of a site.
    """
    groups = "".join(
        f'<th class="group" colspan="{len(names)}" scope="colgroup"><span>{group}</span></th>'
        if group
        else f'<td colspan="{len(names)}"></td>'
        for group, names in columns
    )
    heads = column_heads([name for _, names in columns for name in names])
    chosen = important(result, ROWS_MAX)
    rows = "\n".join(
        f"<tr>{site_cell(result.sites[index].name, index)}{row(result.sites[index])}</tr>"
        for index in chosen
    )
    caption = " ".join(filter(None, (caption, escape(left_out(result, len(chosen))))))
    return (
        f"<table><caption>{caption}</caption><thead><tr><td></td>{groups}</tr>\n"
        f'<tr><th class="left" scope="col">Site</th>{heads}</tr></thead><tbody>\n{rows}\n'
        "</tbody></table>"
    )


def _user_cells(site: SiteResult) -> str:
    return cells(
        (
            words.count(site.jobs),
            words.seconds(site.awrt_alone),
            words.seconds(site.awrt),
            f'<strong class="{tone(site)}">{words.change(site.awrt_improvement)}</strong>',
            words.count(site.jobs_kept),
            words.count(site.jobs_given),
        )
    )


def _machine_cells(site: SiteResult) -> str:
    return cells(
        (
            words.count(site.jobs_taken),
            words.share(site.utilization_alone),
            words.share(site.utilization),
            words.change(site.squashed_area_change),
            words.seconds(site.makespan_alone, 0),
            words.seconds(site.makespan, 0),
        )
    )


def _wait_cells(site: SiteResult) -> str:
    return cells(
        (
            words.duration(site.mean_wait_time_alone),
            words.duration(site.mean_wait_time),
            words.factor(site.mean_slowdown_alone),
            words.factor(site.mean_slowdown),
            words.factor(site.mean_bounded_slowdown_alone),
            words.factor(site.mean_bounded_slowdown),
        )
    )


def tone(site: SiteResult | GroupResult) -> str:
    """Returns "gain", "loss" or nothing: the class that colours a site's improvement."""
    if site.awrt_improvement >= words.UNCHANGED:
        return "gain"
    return "loss" if site.awrt_improvement <= -words.UNCHANGED else ""


def matrix(result: ScenarioResult) -> str:
    """Returns the matrix of who gave how many jobs, and how much work, to whom."""
    names = [site.name for site in result.sites]
    most = max(
        (
            float(result.flow_jobs[i, j])
            for i in range(len(names))
            for j in range(len(names))
            if i != j
        ),
        default=0.0,
    )
    rows = []
    for i, name in enumerate(names):
        row = [site_cell(name, i)]
        for j in range(len(names)):
            jobs, area = int(result.flow_jobs[i, j]), float(result.flow_area[i, j])
            of = f'<span class="of">{area / 3600:,.0f}</span>'
            if i == j:
                row.append(f'<td class="home">{words.count(jobs)}{of}</td>')
            elif jobs:
                shade = jobs / most
                row.append(f'<td style="--w:{shade:.3f}">{words.count(jobs)}{of}</td>')
            else:
                row.append(f"<td>{words.NOTHING}</td>")
        rows.append(f"<tr>{''.join(row)}</tr>")
    head = '<th class="left" scope="col">Submitted at</th>' + column_heads(
        [f"ran at {escape(words.shorten(name, 24))}" for name in names]
    )
    caption = (
        "Number of jobs and, below it, the processor hours in them. Rows gave, columns took; jobs "
        "that stayed at home are grey."
    )
    # A page is not wide enough for many columns at full size.
    size = " compact" if len(names) > 6 else ""
    table = (
        f'<table class="matrix{size}"><caption>{caption}</caption><thead><tr>{head}</tr></thead><tbody>\n'
        + "\n".join(rows)
        + "\n</tbody></table>"
    )
    return scrolling(table, "Who gave work to whom")


def flows(result: ScenarioResult) -> str:
    """Returns the list of the largest flows between two sites, by number of jobs."""
    found = largest_flows(result, FLOWS_MAX)
    rows = "\n".join(
        f"<tr>{site_cell(result.sites[i].name, i)}"
        f'<td class="left">{escape(result.sites[j].name)}</td><td>{words.count(jobs)}</td>'
        f"<td>{result.flow_area[i, j] / 3600:,.0f}</td></tr>"
        for jobs, i, j in found
    )
    head = (
        '<tr><th class="left" scope="col">Given by</th><th class="left" scope="col">Taken by</th>'
        '<th scope="col">Jobs</th><th scope="col">Processor hours</th></tr>'
    )
    table = (
        f"<table><caption>The {len(found)} largest flows, by number of jobs.</caption>"
        f"<thead>{head}</thead><tbody>\n{rows}\n</tbody></table>"
    )
    return scrolling(table, "The largest flows")


def waits(result: ScenarioResult) -> str:
    """Returns the section on waits and slowdowns."""
    table = _table(
        "The site's own jobs, wherever they ran; every job counts once.",
        (("Mean wait", _BOTH), ("Mean slowdown", _BOTH), ("Mean bounded slowdown", _BOTH)),
        result,
        _wait_cells,
    )
    title = heading("Waits and slowdowns")
    return f'<section class="keep">\n{title}\n{scrolling(table, "Waits and slowdowns")}</section>'


def workloads(result: ScenarioResult) -> str:
    """Returns the section on dropped and altered records; empty where there were none."""
    if len(result.sites) > ROWS_MAX:
        return _workloads_together(result)
    rows = [
        f"<tr>{site_cell(site.name, index)}"
        f'<td class="words">{escape(note.reason)}</td><td>{words.count(note.count)}</td>'
        f'<td class="words">{escape(note.treatment)}</td></tr>'
        for index, (site, notes) in enumerate(zip(result.sites, result.workload_notes, strict=True))
        for note in notes
    ]
    if not rows:
        return ""
    head = (
        '<tr><th class="left" scope="col">Site</th><th class="left" scope="col">Records</th>'
        '<th scope="col">Number</th><th class="left" scope="col">Treatment</th></tr>'
    )
    caption = "Records of the workloads that were left out or altered, or are odd."
    table = (
        f"<table><caption>{caption}</caption><thead>{head}</thead><tbody>\n"
        + "\n".join(rows)
        + "\n</tbody></table>"
    )
    return f"<section>\n{heading('Workloads')}\n{scrolling(table, 'Workloads')}</section>"


def _workloads_together(result: ScenarioResult) -> str:
    """Returns the same section with a row for each reason, of many sites."""
    rows = [
        f'<tr><th class="left" scope="row">{escape(reason)}</th><td>{words.count(records)}</td>'
        f'<td>{words.count(sites)}</td><td class="words">{escape(treatment)}</td></tr>'
        for reason, treatment, records, sites in notes_together(result)
    ]
    if not rows:
        return ""
    head = (
        '<tr><th class="left" scope="col">Records</th><th scope="col">Number</th>'
        '<th scope="col">Sites</th><th class="left" scope="col">Treatment</th></tr>'
    )
    caption = "Records of the workloads that were left out or altered, or are odd."
    table = (
        f"<table><caption>{caption}</caption><thead>{head}</thead><tbody>\n"
        + "\n".join(rows)
        + "\n</tbody></table>"
    )
    return f"<section>\n{heading('Workloads')}\n{scrolling(table, 'Workloads')}</section>"
