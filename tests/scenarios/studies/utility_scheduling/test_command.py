import io
from pathlib import Path

import pytest
from rich.console import Console

from scenarios.cli import main
from scenarios.studies.utility_scheduling.command import print_study
from tests.scenarios.studies.utility_scheduling.measured import small_study


def test_the_study_is_one_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The smallest one writes its figures and its page where it says; a second time at once."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HANSE_TRACES", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    words = ["--experiments", "2", "--sweep", "2", "--reachable", "0"]
    for _ in range(2):
        assert main.run_command(["paper", "utility-scheduling", *words]) == 0
        text = capsys.readouterr().out
        assert text.endswith("Written to out/utility-scheduling/study.html\n")
        assert "scenario fetch kth ctc" in text
    folder = tmp_path / "out" / "utility-scheduling"
    assert {path.name for path in folder.iterdir()} == {
        "study.html",
        "study.json",
        "statements.md",
        "runs.jsonl",
    }


def test_the_outcome_is_printed() -> None:
    """Figure 2, every statement, and the verdict, in 80 columns too."""
    for width in (80, 120):
        out = io.StringIO()
        print_study(Console(file=out, width=width), small_study())
        assert "both, learned" in out.getvalue()
        assert "statements of the paper hold" in " ".join(out.getvalue().split())
        assert max(map(len, out.getvalue().splitlines())) <= width
