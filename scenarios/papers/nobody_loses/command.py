"""What `scenario study nobody-loses` does, apart from its command line."""

from pathlib import Path

from rich.console import Console

from scenarios.papers.frame import carry_out
from scenarios.papers.nobody_loses.options import StudyOptions
from scenarios.papers.nobody_loses.page import page_of
from scenarios.papers.nobody_loses.study import run_study


def run_command(options: StudyOptions, console: Console, progress: Console) -> Path:
    """Runs the study, prints its outcome and writes its files, see `carry_out`; returns the page."""
    return carry_out(
        options.folder,
        lambda: run_study(options, progress),
        console,
        render=page_of,
    )
