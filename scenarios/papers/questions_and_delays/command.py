"""What `scenario study questions-and-delays` does, apart from its command line."""

from pathlib import Path

from rich.console import Console

from scenarios.papers.frame import carry_out
from scenarios.papers.questions_and_delays.options import StudyOptions
from scenarios.papers.questions_and_delays.page import page_of
from scenarios.papers.questions_and_delays.replays import WINDOWS
from scenarios.papers.questions_and_delays.statements import statements
from scenarios.papers.questions_and_delays.study import Study, run_study
from scenarios.papers.verdicts import Margin, markdown, word


def run_command(options: StudyOptions, console: Console, progress: Console) -> Path:
    """Runs the study, prints its outcome and writes its files, see `carry_out`; returns the page."""
    return carry_out(
        options.folder,
        lambda: run_study(options, progress),
        console,
        render=page_of,
        table=statements_table,
    )


def statements_table(study: Study) -> str:
    """Returns the statements with what was measured, as a table in Markdown."""
    return markdown(
        ("window", "statement", "exchange", "points missing", "holds"),
        [
            (
                WINDOWS[each.window],
                each.about,
                each.of,
                Margin.of(each.missing).words(),
                word(each.holds),
            )
            for each in statements(study)
        ],
    )
