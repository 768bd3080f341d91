"""What `scenario paper utility-scheduling` does, apart from its command line."""

from rich.console import Console

from lrms_sim.report.parts import Table
from lrms_sim.report.terminal import print_table
from lrms_sim.report.text_tables import markdown
from scenarios.studies.common.frame import StudyCommand, print_statements
from scenarios.studies.common.verdicts import Margin
from scenarios.studies.utility_scheduling.page import render
from scenarios.studies.utility_scheduling.recorded import missing_logs
from scenarios.studies.utility_scheduling.reference import READINGS, SEVEN
from scenarios.studies.utility_scheduling.statements import statements, verdict
from scenarios.studies.utility_scheduling.study import Study, run_study


def statements_table(study: Study) -> str:
    """Returns the paper's statements under each reading, as a table in Markdown."""
    columns = [statements(study, reading) for reading in READINGS]
    rows = [
        (each[0].claim, *(f"{f.word}: {f.measured}" if f.run else "not run" for f in each))
        for each in zip(*columns, strict=True)
        if each[0].run
    ]
    return markdown(("the paper", *(reading.name for reading in READINGS.values())), rows)


def print_study(console: Console, study: Study) -> None:
    """Prints Figure 2 as a table, and the paper's statements with what was measured."""
    rows = []
    for name, words in SEVEN.items():
        row = []
        for reading in READINGS:
            each = Margin.of(run[name].productivity for run in study.of("figure-2", reading))
            row.append(f"{each.mean:.1f} ± {each.half:.1f}")
        rows.append((words, *row))
    heads = ("policy", *(each.name for each in READINGS.values()))
    print_table(console, Table(heads, rows, "Figure 2: productivity, k"))
    first = next(iter(READINGS))
    title = f"What the paper says; {READINGS[first].name}"
    print_statements(console, title, statements(study, first))
    console.print()
    console.print(verdict(study), highlight=False)
    if study.options["logs"] and (missing := missing_logs()):
        console.print(
            f"Not run, as their logs are not there: {', '.join(missing)}. "
            f"scenario fetch {' '.join(missing)} gets them.",
            highlight=False,
        )


run_command = StudyCommand(run_study, render, print_study, statements_table)
