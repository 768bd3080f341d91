"""What `scenario paper gorba-rescheduling` does, apart from its command line."""

from pathlib import Path

from rich.console import Console
from rich.table import Table

from scenarios.papers.gorba_rescheduling.figures import load_of
from scenarios.papers.gorba_rescheduling.page import METHODS, render, verdict
from scenarios.papers.gorba_rescheduling.reference import CLASSES
from scenarios.papers.gorba_rescheduling.statements import statements
from scenarios.papers.gorba_rescheduling.study import Study, StudyOptions, run_study
from scenarios.papers.study_folder import make_folder, write_study
from scenarios.papers.verdicts import markdown


def run_command(options: StudyOptions, console: Console, progress: Console) -> Path:
    """Runs the study, prints its outcome and writes its files.

    Args:
        options: what a user asks for.
        console: for the result.
        progress: for how far it is.

    Returns:
        The page.

    Raises:
        OutputError: a file cannot be written, or the runs from before cannot be read.
        KeyboardInterrupt: the user has enough; the same options go on from there.
    """
    make_folder(options.folder)
    study = run_study(options, progress)
    page = write_study(options.folder, study.to_json(), render(study), statements_table(study))
    print_study(console, study)
    return page


def statements_table(study: Study) -> str:
    """Returns the paper's statements with what was measured, as a table in Markdown."""
    return markdown(
        ("the paper", "here", "holds"),
        [(each.paper, each.measured, each.word) for each in statements(study) if each.measured],
    )


def print_study(console: Console, study: Study) -> None:
    """Prints the paper's statements with what was measured, and the load sweep."""
    table = Table(title="What the paper says", title_justify="left")
    for name in ("the paper", "here", "holds"):
        table.add_column(name)
    for each in statements(study):
        table.add_row(each.paper, each.measured, each.word)
    console.print(table)
    if study.sizes:
        console.print(_sweep(study))
    console.print(verdict(study), highlight=False)


def _sweep(study: Study) -> Table:
    table = Table(title="Success, and violated limits on average, by tasks", title_justify="left")
    table.add_column("class")
    table.add_column("method")
    for size in study.sizes:
        table.add_column(f"{size:,}", justify="right")
    for benchmark in CLASSES:
        for method, name in METHODS.items():
            row = []
            for size in study.sizes:
                found = load_of(study, benchmark, size, method)
                row.append(
                    "" if found is None else f"{100 * found.success:.0f}% {found.violations:.1f}"
                )
            if any(row):
                table.add_row(benchmark, name, *row)
    return table
