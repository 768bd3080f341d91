"""What `scenario paper greedy-criteria` and `genetic-fuzzy` do, apart from their command line."""

from rich.console import Console

from lrms_sim.report.parts import Table
from lrms_sim.report.terminal import print_table
from scenarios.studies.common.frame import StudyCommand
from scenarios.studies.common.samples import Spread
from scenarios.studies.common.verdicts import statements_markdown
from scenarios.studies.queue_strategies.page import render
from scenarios.studies.queue_strategies.reference import METHODS, printed
from scenarios.studies.queue_strategies.statements import statements, verdict
from scenarios.studies.queue_strategies.study import (
    MANY,
    Study,
    best_constant,
    learned_gain,
    run_study,
)


def statements_table(study: Study) -> str:
    """Returns the statements with what was measured, as a table in Markdown."""
    return statements_markdown("what is said", statements(study))


def print_study(console: Console, study: Study) -> None:
    """Prints the objective: paper, constants and what was learned, and the verdict."""
    rows = []
    for log in study.options["jobs"]:
        for method in (*METHODS[study.options["paper"]], MANY):
            runs = study.of(log, method)
            if runs:
                paper = printed(method, log)
                columns = ["" if paper is None else f"{paper[0]:+.1f}"]
                for part in ("training", "unseen"):
                    constant = best_constant(runs[0], part)
                    columns.append("" if constant is None else f"{constant[1][0]:+.1f}")
                    columns.append(_spread(learned_gain(runs, part)))
                rows.append((f"{log} {method}", *columns))
    heads = ("log, method", "paper", "const.", "learned", "c. unseen", "l. unseen")
    print_table(console, Table(heads, rows, "Improvement of the objective over EASY, %"))
    console.print()
    console.print(verdict(study), highlight=False)


def _spread(spread: Spread | None) -> str:
    if spread is None:
        return ""
    if spread.count == 1:
        return f"{spread.median:+.1f}"
    return f"{spread.median:+.1f}\n{spread.low:.1f} … {spread.high:.1f}"


run_command = StudyCommand(run_study, render, print_study, statements_table)
