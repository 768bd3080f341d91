"""Tables in the documentation, and the examples beside it, say what stays true."""

import re
from pathlib import Path

import pytest

from broker.cli.main import run_command

DOCS = Path(__file__).resolve().parents[2] / "docs"


def twice(text: str) -> list[str]:
    """Returns the keys that a table has in two rows, each with its line."""
    found: list[str] = []
    seen: set[str] = set()
    for number, line in enumerate(text.splitlines(), 1):
        if not line.startswith("|"):
            seen.clear()
            continue
        key = line.split("|")[1].strip()
        if re.fullmatch(r"`[\w.-]+`", key):
            if key in seen:
                found.append(f"{number}: {key}")
            seen.add(key)
    return found


def test_no_table_says_a_key_twice() -> None:
    """A reader would not know which row holds."""
    assert twice("| `a` | x |\n| `b` | y |\n| `a` | z |\n\n| `a` | u |") == ["3: `a`"]
    for page in sorted(DOCS.rglob("*.md")):
        assert twice(page.read_text(encoding="utf-8")) == [], page


def test_the_example_of_a_workflow_is_of_no_date(capsys: pytest.CaptureFixture[str]) -> None:
    """Its due date is in the same distance whenever somebody plans it."""
    files = (str(DOCS / "examples/workflow.toml"), "-r", str(DOCS / "examples/pool-20.toml"))
    assert run_command(["plan", *files, "--evaluations", "30", "--workers", "1"]) == 0
    assert "its limits are kept" in capsys.readouterr().out
