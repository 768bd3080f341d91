"""The tables of the page: results, exchange, waits, and what became of the workloads."""

import math
from collections.abc import Callable, Sequence

from lrms_sim.report.parts import Cell, Html, Named, Section, Stacked, Strong, Table, Words
from scenarios.report import wording as words
from scenarios.report.selection import (
    FLOWS_MAX,
    ROWS_MAX,
    important,
    largest_flows,
    left_out,
    notes_together,
)
from scenarios.run.electricity import SiteElectricity
from scenarios.run.results import ScenarioResult, SiteResult

_BOTH = ("alone", "federated")


def summary(result: ScenarioResult) -> Section:
    """Returns the section with the main tables: what users got, what machines did."""
    users = _of_sites(
        result,
        (
            ("", ("Own jobs",)),
            ("AWRT, seconds", _BOTH),
            ("", ("Improvement",)),
            ("Own jobs that were", ("kept", "given")),
        ),
        lambda site: (
            words.count(site.jobs),
            words.seconds(site.awrt_alone),
            words.seconds(site.awrt),
            changed(site.awrt_improvement),
            words.count(site.jobs_kept),
            words.count(site.jobs_given),
        ),
        "How long the site's own jobs take, wherever they run. A positive improvement is better.",
        title="Users.",
        name="Results for users",
    )
    machines = _of_sites(
        result,
        (
            ("", ("Jobs taken",)),
            ("Utilization U", _BOTH),
            ("", ("ΔSA",)),
            (Html("C<sub>max</sub>, seconds"), _BOTH),
        ),
        lambda site: (
            words.count(site.jobs_taken),
            words.share(site.utilization_alone),
            words.share(site.utilization),
            words.change(site.squashed_area_change),
            words.seconds(site.makespan_alone, 0),
            words.seconds(site.makespan, 0),
        ),
        "What each of them ran, whoever sent it.",
        title="Machines.",
        name="Results for machines",
    )
    groups = [_user_groups(result)] if result.user_groups else []
    bills = [electricity(result)] if result.electricity else []
    return Section("Results", [users, machines, *groups, *bills])


def electricity(result: ScenarioResult) -> Table:
    """Returns the table of what sites with a price have used, paid and emitted; all together where several."""
    index = {site.name: number for number, site in enumerate(result.sites)}
    shown = {result.sites[number].name for number in important(result, ROWS_MAX)}
    rows = [
        (Named(one.name, index[one.name]), *_used([one]))
        for one in result.electricity
        if one.name in shown
    ]
    if len(result.electricity) > 1:
        rows.append((Strong("all"), *_used(result.electricity)))
    heads = (
        "Site",
        "Energy alone, MWh",
        "federated",
        "Cost alone",
        "federated",
        "Change",
        "CO₂ alone, t",
        "federated",
    )
    return Table(
        heads,
        rows,
        "From the first submission of all to the last end; idle nodes included. The site that runs a job pays for it.",
        title="Electricity.",
        name="Electricity",
    )


def _used(several: Sequence[SiteElectricity]) -> tuple[Words, ...]:
    def total(name: str) -> float:
        return sum(float(getattr(one, name)) for one in several)

    before, after = total("cost_alone"), total("cost")
    change = (before - after) / abs(before) if before else 0.0
    return (
        f"{total('energy_kwh_alone') / 1000:,.2f}",
        f"{total('energy_kwh') / 1000:,.2f}",
        f"{before:,.2f}",
        f"{after:,.2f}",
        Strong(words.change(-change), words.tone(change)),
        *(
            words.NOTHING if math.isnan(total(name)) else f"{total(name) / 1000:,.3f}"
            for name in ("carbon_kg_alone", "carbon_kg")
        ),
    )


def _user_groups(result: ScenarioResult) -> Table:
    rows = [
        (
            Named(one.site, index),
            str(one.group),
            words.count(one.jobs),
            words.seconds(one.awrt_alone),
            words.seconds(one.awrt),
            changed(one.awrt_improvement),
        )
        for index in important(result, ROWS_MAX)
        for one in result.user_groups
        if one.site == result.sites[index].name
    ]
    return Table(
        ("Site", "Group", "Jobs", "AWRT alone", "federated", "Improvement"),
        rows,
        "Group 1 uses more than 8 % of its site's work, group 5 less than 0.1 %. AWRT in seconds.",
        title="User groups.",
        name="Results for user groups",
    )


def _of_sites(
    result: ScenarioResult,
    columns: Sequence[tuple[Words, Sequence[str]]],
    row: Callable[[SiteResult], Sequence[Words]],
    caption: str,
    *,
    title: str = "",
    name: str,
) -> Table:
    chosen = important(result, ROWS_MAX)
    sites = [(index, result.sites[index]) for index in chosen]
    return Table(
        ("Site", *(head for _, heads in columns for head in heads)),
        [(Named(site.name, index), *row(site)) for index, site in sites],
        " ".join(filter(None, (caption, left_out(result, len(chosen))))),
        title=title,
        name=name,
        groups=[(group, len(heads)) for group, heads in columns],
    )


def changed(improvement: float) -> Strong:
    """Returns an improvement of AWRT in its colour."""
    return Strong(words.change(improvement), words.tone(improvement))


def matrix(result: ScenarioResult) -> Table:
    """Returns the matrix of who gave how many jobs, and how much work, to whom."""
    names = [site.name for site in result.sites]
    count = range(len(names))
    flow = result.flow_jobs
    most = max((float(flow[i, j]) for i in count for j in count if i != j), default=0.0)

    def cell(i: int, j: int) -> Words:
        if i != j and not flow[i, j]:
            return words.NOTHING
        shown = Stacked(words.count(int(flow[i, j])), f"{result.flow_area[i, j] / 3600:,.0f}")
        return Cell(shown, "home") if i == j else Cell(shown, shade=flow[i, j] / most)

    return Table(
        ("Submitted at", *(f"ran at {words.shorten(name, 24)}" for name in names)),
        [(Named(name, i), *(cell(i, j) for j in count)) for i, name in enumerate(names)],
        "Number of jobs and, below it, the processor hours in them. Rows gave, columns took; jobs "
        "that stayed at home are grey.",
        name="Who gave work to whom",
        # A page is not wide enough for many columns at full size.
        kind="matrix compact" if len(names) > 6 else "matrix",
    )


def flows(result: ScenarioResult) -> Table:
    """Returns the list of the largest flows between two sites, by number of jobs."""
    rows = [
        (
            Named(result.sites[i].name, i),
            result.sites[j].name,
            words.count(jobs),
            f"{result.flow_area[i, j] / 3600:,.0f}",
        )
        for jobs, i, j in largest_flows(result, FLOWS_MAX)
    ]
    return Table(
        ("Given by", "Taken by", "Jobs", "Processor hours"),
        rows,
        f"The {len(rows)} largest flows, by number of jobs.",
        name="The largest flows",
        words={1},
    )


def waits(result: ScenarioResult) -> Section:
    """Returns the section on waits and slowdowns."""
    table = _of_sites(
        result,
        (("Mean wait", _BOTH), ("Mean slowdown", _BOTH), ("Mean bounded slowdown", _BOTH)),
        lambda site: (
            words.duration(site.mean_wait_time_alone),
            words.duration(site.mean_wait_time),
            words.factor(site.mean_slowdown_alone),
            words.factor(site.mean_slowdown),
            words.factor(site.mean_bounded_slowdown_alone),
            words.factor(site.mean_bounded_slowdown),
        ),
        "The site's own jobs, wherever they ran; every job counts once.",
        name="Waits and slowdowns",
    )
    return Section("Waits and slowdowns", [table], whole=True)


def workloads(result: ScenarioResult) -> Words:
    """Returns the section on dropped and altered records; nothing if there were none."""
    heads: tuple[str, ...]
    rows: list[tuple[Words, ...]]
    if len(result.sites) > ROWS_MAX:
        heads, wordy = ("Records", "Number", "Sites", "Treatment"), {3}
        rows = [
            (reason, words.count(records), words.count(sites), treatment)
            for reason, treatment, records, sites in notes_together(result)
        ]
    else:
        heads, wordy = ("Site", "Records", "Number", "Treatment"), {1, 3}
        rows = [
            (Named(site.name, index), note.reason, words.count(note.count), note.treatment)
            for index, (site, notes) in enumerate(
                zip(result.sites, result.workload_notes, strict=True)
            )
            for note in notes
        ]
    caption = "Records of the workloads that were left out or altered, or are odd."
    table = Table(heads, rows, caption, name="Workloads", words=wordy)
    return Section("Workloads", [table]) if rows else ""
