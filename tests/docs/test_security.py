"""The page on security: each claim has its test."""

import ast
import re
from pathlib import Path

from tests.source_imports import ROOT

PAGE = ROOT / "docs" / "security.md"
NAMED = re.compile(r"`((?:tests|benchmarks)/[\w/]+\.py)(?:::(\w+))?`")


def missing(text: str) -> list[str]:
    """The tests that the page names and that are not there."""
    return [
        f"{path}::{name}" for path, name in NAMED.findall(text) if not is_there(ROOT / path, name)
    ]


def is_there(path: Path, name: str) -> bool:
    if not path.exists():
        return False
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return not name or any(
        isinstance(node, functions) and node.name == name for node in ast.walk(tree)
    )


def test_every_claim_names_a_test_that_is_there() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert missing(text) == []
    claims = text.split("## Claims, fences, tests")[1].split("\n## ")[0]
    rows = [
        line
        for line in claims.splitlines()
        if line.startswith("| ") and not line.startswith("| claim")
    ]
    assert len(rows) > 30
    assert [row for row in rows if not NAMED.search(row)] == []


def test_a_test_that_has_gone_is_found() -> None:
    assert missing("`tests/docs/test_security.py::test_nothing_of_this_name`") != []
    assert missing("`tests/docs/no_such_file.py`") != []
    assert missing("`tests/docs/test_security.py::test_a_test_that_has_gone_is_found`") == []
