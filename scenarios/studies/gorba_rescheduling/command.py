"""What `scenario paper gorba-rescheduling` does, apart from its command line."""

from rich.console import Console

from lrms_sim.report.parts import Table
from lrms_sim.report.terminal import print_table
from scenarios.studies.common.frame import StudyCommand, print_statements
from scenarios.studies.common.verdicts import statements_markdown
from scenarios.studies.gorba_rescheduling.figures import load_of
from scenarios.studies.gorba_rescheduling.page import METHODS, render, verdict
from scenarios.studies.gorba_rescheduling.reference import CLASSES
from scenarios.studies.gorba_rescheduling.statements import statements
from scenarios.studies.gorba_rescheduling.study import Study, run_study


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


run_command = StudyCommand(run_study, render, print_study, statements_table)
