"""What `scenario study nobody-loses` does, apart from its command line."""

from pathlib import Path

from rich.console import Console
from rich.table import Table

from scenarios.papers.frame import carry_out, text_table
from scenarios.papers.nobody_loses.options import StudyOptions
from scenarios.papers.nobody_loses.page import render
from scenarios.papers.nobody_loses.reference import CENTRAL, ROUNDS, SETS
from scenarios.papers.nobody_loses.statements import (
    Line,
    adoption_lines,
    grid_lines,
    headroom_lines,
    jitter_line,
    month_lines,
    rogue_lines,
    verdict,
)
from scenarios.papers.nobody_loses.study import Study, run_study


def run_command(options: StudyOptions, console: Console, progress: Console) -> Path:
    """Runs the study, prints its outcome and writes its files, see `carry_out`; returns the page."""
    return carry_out(
        options.folder,
        lambda: run_study(options, progress),
        console,
        render=render,
        show=print_study,
    )


def _table(title: str, name: str, *figures: str) -> Table:
    return text_table(title, (name,), figures, narrow=True)


def _both(each: Line) -> str:
    other = "" if each.other is None else f"\n{each.other[0]:.2f} {each.other[1]:.2f}"
    return f"{each.mean:.2f} {each.worst:.2f}{other}"


def print_study(console: Console, study: Study) -> None:
    """Prints the tables and the verdict, 80 columns wide."""
    lines = grid_lines(study)
    if lines:
        table = _table(
            "Mean and worst site, % of AWRT alone; below it the independent program",
            "policy",
            *SETS.values(),
            "verdicts",
        )
        for row in lines.values():
            cells = [_both(row[window]) if window in row else "" for window in SETS]
            table.add_row(
                next(iter(row.values())).name, *cells, "\n".join(e.verdict for e in row.values())
            )
        for name, windows in CENTRAL.items():
            table.add_row(name, *(f"\n{windows[w][0]:.2f} {windows[w][1]:.2f}" for w in SETS), "")
        console.print(table)
        table = _table("Months from day 150", "policy", "below 0", "below -5 %", "worst", "verdict")
        for each in month_lines(study):
            below, far, worst = each.values
            table.add_row(
                each.name, f"{below:.1f} %", f"{far:.1f} %", f"{worst:.1f} %", each.verdict
            )
        console.print(table)
    _print_rest(console, study)
    console.print(verdict(study), highlight=False)


def _print_rest(console: Console, study: Study) -> None:
    rogues = [each for each in rogue_lines(study) if each.policy == ROUNDS]
    if rogues:
        table = _table(
            "One rogue among fair exchange with rounds",
            "rogue",
            "others: mean worst",
            "its own",
            "independent",
            "verdict",
        )
        for each in rogues:
            other = each.honest.other
            table.add_row(
                each.honest.name,
                f"{each.honest.mean:.1f} {each.honest.worst:.1f}",
                f"{each.own:.1f}",
                "" if other is None else f"{other[0]:.1f} {other[1]:.1f}",
                each.honest.verdict,
            )
        console.print(table)
    chance = jitter_line(study)
    more = [*adoption_lines(study), *([chance] if chance else [])]
    if more:
        table = _table("Adoption and chance", "who", "mean worst", "independent", "verdict")
        for one in more:
            other = one.other
            table.add_row(
                one.name,
                f"{one.mean:.1f} {one.worst:.1f}",
                "" if other is None else f"{other[0]:.1f} {other[1]:.1f}",
                one.verdict,
            )
        console.print(table)
    tried = headroom_lines(study)
    if tried:
        table = _table(
            "Headroom beside guests: mean and worst",
            "share",
            "days 0–150",
            "from day 150",
            "months < -5 %",
            "worst",
            "filled",
        )
        for row in tried:
            table.add_row(
                row.name,
                *(_both(row.windows[window]) for window in "56"),
                f"{row.months.values[1]:.1f} %",
                f"{row.months.values[2]:.1f}",
                _both(row.filled),
            )
        console.print(table)
