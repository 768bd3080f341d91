"""The studies in docs/notebooks run as they are, and are short."""

import ast
import runpy
import sys
from pathlib import Path

import pytest

from tests.programs import run_program

NOTEBOOKS = sorted((Path(__file__).parents[2] / "docs" / "notebooks").glob("*.py"))
OF_THEIR_OWN = {"sweep"}
"""Those that start processes, and so run in one of their own."""


def code_lines(path: Path) -> list[str]:
    """Returns the lines that compute: no imports, no text, nothing empty."""
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    left_out: set[int] = set()
    for node in ast.walk(tree):
        is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if is_text or isinstance(node, ast.Import | ast.ImportFrom):
            assert isinstance(node, ast.stmt)
            left_out |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    lines = enumerate(text.splitlines(), start=1)
    return [line for number, line in lines if line.split("#")[0].strip() and number not in left_out]


def test_there_are_five_short_studies() -> None:
    """Each does what it says in at most twelve lines, and is a notebook for jupytext."""
    assert len(NOTEBOOKS) == 5
    for path in NOTEBOOKS:
        assert len(code_lines(path)) <= 12, path.name
        assert path.read_text(encoding="utf-8").startswith("# %% [markdown]\n")


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_study_runs(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It prints a result or draws a picture."""
    monkeypatch.chdir(tmp_path)
    if path.stem in OF_THEIR_OWN:
        command = [sys.executable, str(path)]
        done = run_program(command, timeout=120, check=True)
        assert len(done.stdout.splitlines()) > 5
        return
    runpy.run_path(str(path))
    pictures = list(tmp_path.glob("*.png"))
    assert pictures or capsys.readouterr().out.strip()
