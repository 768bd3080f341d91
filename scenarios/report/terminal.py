"""The report in the terminal: a headline and three tables that fit 80 columns.

Written for eyes and for pipes: without colours nothing is lost, and where the terminal does not
speak UTF-8 the few special characters give way to ASCII.
"""

from collections.abc import Sequence

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from lrms_sim.spelling import shorten
from scenarios.report import words
from scenarios.report.selection import ROWS_MAX, important, largest_flows, left_out, notes_together
from scenarios.report.workflows import sentence
from scenarios.run.broker_result import BrokerResult
from scenarios.run.results import ScenarioResult, SiteResult
from scenarios.run.user_groups import GroupResult

NAME_LENGTH = 14
"""Longer names of sites are cut in tables; the headline has them in full."""

PAIRS_MAX = 20
"""Most lines of the list that stands in for a matrix too wide for the terminal."""

_ASCII = str.maketrans(
    {
        "Δ": "d",
        "→": ">",
        "–": "-",
        "±": "~",
        "…": "~",
        "·": "-",
        "\N{MINUS SIGN}": "-",
    }
)


def print_result(console: Console, result: ScenarioResult) -> None:
    """Prints who gained what: headline, users, machines, and who gave work to whom.

    Args:
        console: where to; its width is kept to, down to 80 columns.
        result: the run.
    """
    _Printer(console).print(result)


class _Printer:
    """Prints one result.

    Attributes:
        console: where to.
        speaks_utf8: whether it takes any character.
    """

    def __init__(self, console: Console) -> None:
        self.console = console
        self.speaks_utf8 = not console.options.ascii_only

    def print(self, result: ScenarioResult) -> None:
        """Prints everything."""
        say = self.console.print
        say()
        say(self.text(words.headline(result), style="bold"))
        say(self.text(words.exchange_sentence(result)))
        which = left_out(result, len(self.shown(result)))
        if which:
            say(self.text(f"Below: {which}"))
        self.titled("Users: average weighted response time (s) and jobs", self.users(result))
        self.titled("Machines: utilization, work done, makespan (s)", self.machines(result))
        if result.user_groups:
            self.titled("User groups: average weighted response time (s)", self.groups(result))
        if result.jobs_exchanged:
            self.exchange(result)
        if result.broker is not None:
            self.broker(result.broker)
        notes = self.notes(result)
        if notes:
            self.titled("Workload records that were left out or altered, or are odd", *notes)

    def titled(self, title: str, *parts: Table | Text) -> None:
        """Prints an empty line, a title, and what stands below it."""
        self.console.print()
        self.console.print(self.text(title, style="bold"))
        for part in parts:
            self.console.print(part)

    def text(self, text: str, style: str = "") -> Text:
        """Returns text in characters the terminal has; markup in it is not obeyed."""
        if not self.speaks_utf8:
            encoding = self.console.encoding
            text = text.translate(_ASCII).encode(encoding, "replace").decode(encoding)
        return Text(text, style=style)

    def table(self, columns: Sequence[str]) -> Table:
        """Returns an empty table: site names on the left, figures on the right."""
        table = Table(
            box=box.SIMPLE_HEAD,
            show_edge=False,
            pad_edge=False,
            collapse_padding=True,
            header_style="dim",
        )
        for index, column in enumerate(columns):
            table.add_column(
                self.text(column), justify="right" if index else "left", overflow="fold"
            )
        return table

    def name(self, site: SiteResult) -> Text:
        """Returns a site's name as it stands in tables."""
        name = self.text(site.name)
        # Counts cells, not characters: some scripts take two cells for each.
        name.truncate(NAME_LENGTH, overflow="ellipsis" if self.speaks_utf8 else "crop")
        return name

    def shown(self, result: ScenarioResult) -> list[SiteResult]:
        """Returns the sites that tables have a row for."""
        return [result.sites[index] for index in important(result, ROWS_MAX)]

    def users(self, result: ScenarioResult) -> Table:
        """Returns the table of what a site's own users got."""
        table = self.table(
            ("Site", "AWRT alone", "federated", "improved", "own jobs", "kept", "given")
        )
        for site in self.shown(result):
            table.add_row(
                self.name(site),
                self.text(words.seconds(site.awrt_alone)),
                self.text(words.seconds(site.awrt)),
                self.text(words.change(site.awrt_improvement), style=_style(site)),
                words.count(site.jobs),
                words.count(site.jobs_kept),
                words.count(site.jobs_given),
            )
        return table

    def groups(self, result: ScenarioResult) -> Table:
        """Returns the table of what the user groups of each site got."""
        table = self.table(("Site", "group", "jobs", "AWRT alone", "federated", "improved"))
        for site in self.shown(result):
            for one in result.user_groups:
                if one.site == site.name:
                    table.add_row(
                        self.name(site),
                        str(one.group),
                        words.count(one.jobs),
                        self.text(words.seconds(one.awrt_alone)),
                        self.text(words.seconds(one.awrt)),
                        self.text(words.change(one.awrt_improvement), style=_style(one)),
                    )
        return table

    def machines(self, result: ScenarioResult) -> Table:
        """Returns the table of what the machines did."""
        table = self.table(("Site", "U alone", "fed.", "ΔSA", "C_max alone", "federated", "taken"))
        for site in self.shown(result):
            table.add_row(
                self.name(site),
                self.text(words.share(site.utilization_alone)),
                self.text(words.share(site.utilization)),
                self.text(words.change(site.squashed_area_change)),
                self.text(words.seconds(site.makespan_alone, 0)),
                self.text(words.seconds(site.makespan, 0)),
                words.count(site.jobs_taken),
            )
        return table

    def exchange(self, result: ScenarioResult) -> None:
        """Prints who gave how many jobs to whom; a list of pairs where a matrix is too wide."""
        # No column is narrower than two cells, so many sites need not be tried.
        if 3 * len(result.sites) <= self.console.width:
            matrix = self.matrix(result)
            # Asked in a wide room, the table says how wide it would like to be.
            room = self.console.options.update_width(100 * (len(result.sites) + 1))
            if self.console.measure(matrix, options=room).maximum <= self.console.width:
                self.titled("Jobs: submitted at (rows), ran at (columns)", matrix)
                return
        flows = np.count_nonzero(result.flow_jobs) - np.count_nonzero(result.flow_jobs.diagonal())
        more = f": the {PAIRS_MAX} largest of {flows:,} flows" if flows > PAIRS_MAX else ""
        self.titled(
            f"Jobs given and taken{more}", self.pairs(result, largest_flows(result, PAIRS_MAX))
        )

    def matrix(self, result: ScenarioResult) -> Table:
        """Returns the jobs that each row's users submitted and each column's machine ran."""
        table = self.table(("", *(self.name(site).plain for site in result.sites)))
        for i, site in enumerate(result.sites):
            row = [
                words.count(int(jobs)) if jobs else words.NOTHING for jobs in result.flow_jobs[i]
            ]
            table.add_row(
                self.name(site),
                *(self.text(cell, "dim" if i == j else "") for j, cell in enumerate(row)),
            )
        return table

    def pairs(self, result: ScenarioResult, pairs: Sequence[tuple[int, int, int]]) -> Table:
        """Returns exchanges, given as (jobs, giver, taker), one to a line."""
        table = self.table(("from", "jobs", "to"))
        table.columns[2].justify = "left"
        for jobs, i, j in pairs:
            table.add_row(self.name(result.sites[i]), words.count(jobs), self.name(result.sites[j]))
        return table

    def broker(self, broker: BrokerResult) -> None:
        """Prints what workflows got, and what that cost the batch users."""
        self.console.print()
        self.console.print(self.text(sentence(broker), style="bold"))
        table = self.table(
            ("Site", "batch", "reservable", "in use", "AWRT without", "with broker", "improved")
        )
        for site in broker.batch:
            times = (site.awrt_without, site.awrt_with)
            table.add_row(
                self.text(shorten(site.name, NAME_LENGTH)),
                words.count(site.processors),
                words.count(site.reservable),
                self.text("–" if site.reserved_share is None else words.share(site.reserved_share)),
                *(self.text("–" if each is None else words.seconds(each)) for each in times),
                self.text(words.change(site.improvement)),
            )
        self.titled("Batch users beside the broker: processors and AWRT (s)", table)

    def notes(self, result: ScenarioResult) -> list[Text]:
        """Returns what preparing the workloads did to records, a line for each reason."""
        if len(result.sites) > ROWS_MAX:
            return [
                self.text(
                    f"{words.count(records)} {treatment} at {words.count(sites)} "
                    f"site{'' if sites == 1 else 's'}: {reason}"
                )
                for reason, treatment, records, sites in notes_together(result)
            ]
        return [
            self.text(f"{site.name}: {words.count(note.count)} {note.treatment}: {note.reason}")
            for site, notes in zip(result.sites, result.workload_notes, strict=True)
            for note in notes
        ]


def _style(site: SiteResult | GroupResult) -> str:
    if site.awrt_improvement >= words.UNCHANGED:
        return "green"
    return "red" if site.awrt_improvement <= -words.UNCHANGED else ""
