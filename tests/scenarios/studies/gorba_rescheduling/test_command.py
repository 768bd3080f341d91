import io
import json
from pathlib import Path

from rich.console import Console

from scenarios.studies.common.study_folder import PAGE, RESULT
from scenarios.studies.gorba_rescheduling.command import print_study, run_command
from scenarios.studies.gorba_rescheduling.options import StudyOptions
from tests.scenarios.studies.gorba_rescheduling.measured import paper_study


def console() -> Console:
    return Console(file=io.StringIO(), width=120)


def text_of(found: Console) -> str:
    assert isinstance(found.file, io.StringIO)
    return found.file.getvalue()


def options(folder: Path) -> StudyOptions:
    return StudyOptions(
        folder,
        runs=1,
        sizes=(20,),
        parts=("sweep",),
        evaluations=20,
        first_evaluations=20,
        workers=1,
    )


def test_a_study_writes_its_page_and_figures(tmp_path: Path) -> None:
    """The folder is made; the outcome is printed."""
    out = console()
    page = run_command(options(tmp_path / "new" / "folder"), out, console())
    assert page == tmp_path / "new" / "folder" / PAGE
    assert "</html>" in page.read_text()
    assert json.loads((page.parent / RESULT).read_text())["options"]["runs"] == 1
    assert "statements of the paper hold" in text_of(out)
    assert "lRlD" in text_of(out)


def test_the_outcome_is_printed_with_the_sweep() -> None:
    """Statements first, then success by load."""
    out = console()
    print_study(out, paper_study())
    text = text_of(out)
    assert "What the paper says" in text
    assert (
        "12 of 12 statements of the paper hold, 0 do not, 0 are open in what was measured." in text
    )
    assert "1,600" in text
    out = console()
    print_study(out, paper_study(parts=("settings",)))
    assert "Success, and violated" not in text_of(out)
