"""The report in the terminal: a headline and three tables that fit 80 columns."""

from collections.abc import Iterator

import numpy as np
from rich.console import Console

from lrms_sim.report import terminal
from lrms_sim.report.parts import Cell, Table, Words
from lrms_sim.util.messages import shorten
from scenarios.report import wording as words
from scenarios.report.selection import ROWS_MAX, important, largest_flows, left_out, notes_together
from scenarios.report.tables import changed, electricity
from scenarios.report.workflows import sentence
from scenarios.run.broker_result import BrokerResult
from scenarios.run.results import ScenarioResult, SiteResult

NAME_LENGTH = 14
"""Longer names of sites are cut in tables; the headline has them in full."""

PAIRS_MAX = 20
"""Most lines of the list that replaces a matrix too wide for the terminal."""


def print_result(console: Console, result: ScenarioResult) -> None:
    """Prints who gained what: headline, users, machines, and who gave work to whom.

    The output is as wide as `console`, but at least 80 columns.
    """
    _Printer(console).print(result)


class _Printer:
    """Prints one result."""

    def __init__(self, console: Console) -> None:
        self.console = console

    def print(self, result: ScenarioResult) -> None:
        self.console.print()
        self.say(words.headline(result), "bold")
        self.say(words.exchange_sentence(result))
        sites = [result.sites[index] for index in important(result, ROWS_MAX)]
        which = left_out(result, len(sites))
        if which:
            self.say(f"Below: {which}")
        terminal.print_table(self.console, self.users(sites))
        terminal.print_table(self.console, self.machines(sites))
        if result.user_groups:
            terminal.print_table(self.console, self.groups(result, sites))
        if result.electricity:
            terminal.print_table(self.console, electricity(result))
        if result.jobs_exchanged:
            terminal.print_table(self.console, self.exchange(result))
        if result.broker is not None:
            self.console.print()
            self.say(sentence(result.broker), "bold")
            terminal.print_table(self.console, _broker(result.broker))
        notes = list(_notes(result))
        if notes:
            self.console.print()
            self.say("Workload records that were left out or altered, or are odd", "bold")
            for note in notes:
                self.say(note)

    def say(self, text: str, style: str = "") -> None:
        self.console.print(terminal.text(self.console, text, style))

    def name(self, site: SiteResult) -> str:
        name = terminal.text(self.console, site.name)
        # Counts cells, not characters: some scripts take two cells for each.
        ascii_only = self.console.options.ascii_only
        name.truncate(NAME_LENGTH, overflow="crop" if ascii_only else "ellipsis")
        return name.plain

    def users(self, sites: list[SiteResult]) -> Table:
        rows = [
            (
                self.name(site),
                words.seconds(site.awrt_alone),
                words.seconds(site.awrt),
                changed(site.awrt_improvement),
                words.count(site.jobs),
                words.count(site.jobs_kept),
                words.count(site.jobs_given),
            )
            for site in sites
        ]
        heads = ("Site", "AWRT alone", "federated", "improved", "own jobs", "kept", "given")
        return Table(heads, rows, "Users: average weighted response time (s) and jobs")

    def groups(self, result: ScenarioResult, sites: list[SiteResult]) -> Table:
        rows = [
            (
                self.name(site),
                str(one.group),
                words.count(one.jobs),
                words.seconds(one.awrt_alone),
                words.seconds(one.awrt),
                changed(one.awrt_improvement),
            )
            for site in sites
            for one in result.user_groups
            if one.site == site.name
        ]
        heads = ("Site", "group", "jobs", "AWRT alone", "federated", "improved")
        return Table(heads, rows, "User groups: average weighted response time (s)")

    def machines(self, sites: list[SiteResult]) -> Table:
        rows = [
            (
                self.name(site),
                words.share(site.utilization_alone),
                words.share(site.utilization),
                words.change(site.squashed_area_change),
                words.seconds(site.makespan_alone, 0),
                words.seconds(site.makespan, 0),
                words.count(site.jobs_taken),
            )
            for site in sites
        ]
        heads = ("Site", "U alone", "fed.", "ΔSA", "C_max alone", "federated", "taken")
        return Table(heads, rows, "Machines: utilization, work done, makespan (s)")

    def exchange(self, result: ScenarioResult) -> Table:
        """Returns who gave how many jobs to whom; a list of pairs if a matrix is too wide."""
        # No column is narrower than two cells, so many sites need not be tried.
        if 3 * len(result.sites) <= self.console.width:
            matrix = self.matrix(result)
            # Asked in a wide room, the table says how wide it would like to be.
            room = self.console.options.update_width(100 * (len(result.sites) + 1))
            drawn = terminal.drawn(self.console, matrix)
            if self.console.measure(drawn, options=room).maximum <= self.console.width:
                return matrix
        flows = np.count_nonzero(result.flow_jobs) - np.count_nonzero(result.flow_jobs.diagonal())
        more = f": the {PAIRS_MAX} largest of {flows:,} flows" if flows > PAIRS_MAX else ""
        rows = [
            (self.name(result.sites[i]), words.count(jobs), self.name(result.sites[j]))
            for jobs, i, j in largest_flows(result, PAIRS_MAX)
        ]
        return Table(("from", "jobs", "to"), rows, f"Jobs given and taken{more}", words={2})

    def matrix(self, result: ScenarioResult) -> Table:
        """Returns the jobs that each row's users submitted and each column's machine ran."""
        names = [self.name(site) for site in result.sites]
        rows: list[tuple[Words, ...]] = [
            (
                names[i],
                *(
                    Cell(words.count(int(jobs)) if jobs else words.NOTHING, "home" * (i == j))
                    for j, jobs in enumerate(row)
                ),
            )
            for i, row in enumerate(result.flow_jobs)
        ]
        return Table(("", *names), rows, "Jobs: submitted at (rows), ran at (columns)")


def _broker(broker: BrokerResult) -> Table:
    def shown(value: float | None) -> str:
        return words.NOTHING if value is None else words.seconds(value)

    rows = [
        (
            shorten(site.name, NAME_LENGTH),
            words.count(site.processors),
            words.count(site.reservable),
            words.NOTHING if site.reserved_share is None else words.share(site.reserved_share),
            shown(site.awrt_without),
            shown(site.awrt_with),
            words.change(site.improvement),
        )
        for site in broker.batch
    ]
    heads = ("Site", "batch", "reservable", "in use", "AWRT without", "with broker", "improved")
    return Table(heads, rows, "Batch users beside the broker: processors and AWRT (s)")


def _notes(result: ScenarioResult) -> Iterator[str]:
    if len(result.sites) > ROWS_MAX:
        for reason, treatment, records, sites in notes_together(result):
            yield (
                f"{words.count(records)} {treatment} at {words.count(sites)} "
                f"site{'' if sites == 1 else 's'}: {reason}"
            )
        return
    for site, notes in zip(result.sites, result.workload_notes, strict=True):
        for note in notes:
            yield f"{site.name}: {words.count(note.count)} {note.treatment}: {note.reason}"
