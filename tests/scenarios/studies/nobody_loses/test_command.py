import io
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from lrms_sim.report.terminal import print_page
from scenarios.studies.nobody_loses import command
from scenarios.studies.nobody_loses.options import StudyOptions
from scenarios.studies.nobody_loses.page import page_of
from scenarios.studies.nobody_loses.study import Study
from tests.scenarios.studies.nobody_loses.measured import small_study


def test_the_outcome_is_printed_in_80_columns() -> None:
    """Every table, with verdicts beside the figures."""
    out = io.StringIO()
    print_page(Console(file=out, width=80), page_of(small_study()))
    text = out.getvalue()
    for words in ("accept when fit", "black-hole", "Months from day 150", "headroom", "differs"):
        assert words in text
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= 80


def test_page_and_figures_are_written(tmp_path: Path) -> None:
    """Where the folder is; what was measured is asked of the study alone."""

    def measured(options: StudyOptions, _: Console) -> Study:
        return small_study(options.parts)

    console = Console(file=io.StringIO(), width=80)
    options = StudyOptions(tmp_path / "out", parts=("adoption",))
    page = replace(command.run_command, run=measured)(options, console, console)
    assert page == tmp_path / "out" / "study.html"
    assert {path.name for path in page.parent.iterdir()} == {"study.html", "study.json"}
