import io
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from lrms_sim.report.terminal import print_page
from scenarios.studies.questions_and_delays import command
from scenarios.studies.questions_and_delays.options import StudyOptions
from scenarios.studies.questions_and_delays.page import page_of
from scenarios.studies.questions_and_delays.study import Study
from tests.scenarios.studies.questions_and_delays.measured import as_stated, small_study


def test_the_outcome_is_printed_in_80_columns() -> None:
    """Every table, statement and verdict."""
    out = io.StringIO()
    study = small_study(lambda case: as_stated(case) - 20.0 - 0.1 * case.delay, worst=30.0)
    print_page(Console(file=out, width=80), page_of(study))
    text = out.getvalue()
    for words in (
        "Nine sites, ten days: by partners asked",
        "Six sites, half a year: by delay",
        "FCFS + rounds",
        "±30",
        "no",
        "of 48 statements hold",
    ):
        assert words in text, words
    assert max(map(len, text.splitlines())) <= 80


def test_page_and_figures_are_written(tmp_path: Path) -> None:
    """Where the folder is; what was measured is asked of the study alone."""

    def measured(_: StudyOptions, _console: Console) -> Study:
        return replace(small_study(), runs=())

    console = Console(file=io.StringIO(), width=80)
    page = replace(command.run_command, run=measured)(
        StudyOptions(tmp_path / "out"), console, console
    )
    assert page == tmp_path / "out" / "study.html"
    assert {path.name for path in page.parent.iterdir()} == {
        "study.html",
        "study.json",
        "statements.md",
    }
