"""What `scenario paper gorba-rescheduling` does, apart from its command line."""

from pathlib import Path

from rich.console import Console

from lrms_sim.pages.parts import Table
from lrms_sim.pages.terminal import print_table
from scenarios.papers.frame import carry_out, print_statements
from scenarios.papers.gorba_rescheduling.figures import load_of
from scenarios.papers.gorba_rescheduling.options import StudyOptions
from scenarios.papers.gorba_rescheduling.page import METHODS, render, verdict
from scenarios.papers.gorba_rescheduling.reference import CLASSES
from scenarios.papers.gorba_rescheduling.statements import statements
from scenarios.papers.gorba_rescheduling.study import Study, run_study
from scenarios.papers.verdicts import statements_markdown


def run_command(options: StudyOptions, console: Console, progress: Console) -> Path:
    """Runs the study, prints its outcome and writes its files, see `carry_out`; returns the page."""
    return carry_out(
        options.folder,
        lambda: run_study(options, progress),
        console,
        render=render,
        show=print_study,
        table=statements_table,
    )


def statements_table(study: Study) -> str:
    """Returns the paper's statements with what was measured, as a table in Markdown."""
    return statements_markdown("the paper", statements(study))


def print_study(console: Console, study: Study) -> None:
    """Prints the paper's statements with what was measured, and the load sweep."""
    print_statements(console, "What the paper says", statements(study))
    if study.sizes:
        print_table(console, _sweep(study))
    console.print()
    console.print(verdict(study), highlight=False)


def _sweep(study: Study) -> Table:
    rows = []
    for benchmark in CLASSES:
        for method, name in METHODS.items():
            row = []
            for size in study.sizes:
                found = load_of(study, benchmark, size, method)
                row.append(
                    "" if found is None else f"{100 * found.success:.0f}% {found.violations:.1f}"
                )
            if any(row):
                rows.append((benchmark, name, *row))
    heads = ("class", "method", *(f"{size:,}" for size in study.sizes))
    return Table(heads, rows, "Success, and violated limits on average, by tasks", words={1})
