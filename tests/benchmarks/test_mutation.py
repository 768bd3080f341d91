"""What counts as a small change of a module."""

import ast
from pathlib import Path

import pytest

from benchmarks.mutation import changed_functions, mutants_of, mutated


def changes(folder: Path, source: str) -> list[str]:
    (folder / "small.py").write_text(source, encoding="utf-8")
    return [f"{one.place}: {one.change}" for one in mutants_of("small", folder)]


@pytest.mark.parametrize(
    ("line", "change"),
    [
        ("x = a < b", "a < b → a <= b"),
        ("x = a >= b", "a >= b → a > b"),
        ("x = a == b", "a == b → a != b"),
        ("x = a is b", "a is b → a is not b"),
        ("x = a in b", "a in b → a not in b"),
        ("x = a and b", "a and b → a or b"),
        ("x = not a", "not a → a"),
        ("x = a + b", "a + b → a - b"),
        ("x = a * b", "a * b → a / b"),
        ("x = 1 if a else 2", "a → not a"),
        ("a(b)", "a(b) → pass"),
        ("x = a(b, c=1)", "a(b, c=1) → a(b)"),
        ("a.x = 1", "a.x = 1 → pass"),
        ("a += 1", "a += 1 → pass"),
        ("del a[b]", "del a[b] → pass"),
        ("return", "return → pass"),
        ("return a", "return a → return None"),
        ("return True", "return True → return False"),
    ],
)
def test_every_kind_of_change_is_found(tmp_path: Path, line: str, change: str) -> None:
    """Each kind of statement that can be changed has its one change, in the function that it is in."""
    assert changes(tmp_path, f"def f(a, b):\n    {line}\n") == [f"f: {change}"]


def test_each_argument_that_is_compared_can_be_left_out(tmp_path: Path) -> None:
    """Of three one is left out at a time; of two the other stays by itself."""
    assert changes(tmp_path, "def f(a, b, c):\n    x = min(a, b, c)\n") == [
        "f: min(a, b, c) → min(b, c)",
        "f: min(a, b, c) → min(a, c)",
        "f: min(a, b, c) → min(a, b)",
    ]
    assert changes(tmp_path, "def f(a, b):\n    x = max(a, b)\n") == [
        "f: max(a, b) → b",
        "f: max(a, b) → a",
    ]
    source = "def f(a, b):\n    return max(a, b)\n"
    assert "return a" in ast.unparse(mutated(source, 2))


@pytest.mark.parametrize(
    "line",
    [
        "assert a < b",
        "raise ValueError(a + b)",
        "import os",
        "x: Literal[1 < 2]",
        "'words'",
        "x = f'{a + b}'",
        "x = 1",
        "return None",
    ],
)
def test_what_says_nothing_about_behaviour_is_left(tmp_path: Path, line: str) -> None:
    """Asserts, errors, imports, annotations, words and names are not changed."""
    assert changes(tmp_path, f"def f(a, b):\n    {line}\n") == []


def test_parts_of_one_expression_change_one_at_a_time(tmp_path: Path) -> None:
    """Every change is made alone: the other parts of the source stay as they are."""
    source = "class C:\n    def f(self, a):\n        return a < 1 and a + 1 > 2\n"
    names = changes(tmp_path, source)
    made = [ast.unparse(mutated(source, number)).splitlines()[-1] for number in range(len(names))]
    assert [line.strip() for line in made] == [
        "return None",
        "return a < 1 or a + 1 > 2",
        "return a <= 1 and a + 1 > 2",
        "return a < 1 and a + 1 >= 2",
        "return a < 1 and a - 1 > 2",
    ]
    assert all(name.startswith("C.f: ") for name in names)


def test_only_functions_that_differ_are_exchanged(tmp_path: Path) -> None:
    """A change in a method gives that method's code; one outside functions gives none."""
    source = (
        "A = 1 < 2\n\ndef f(a):\n    return a\n\nclass C:\n    def f(self, a):\n        return a\n"
    )
    (tmp_path / "small.py").write_text(source, encoding="utf-8")
    mutants = mutants_of("small", tmp_path)
    assert [
        [(old.co_qualname, old.co_code != new.co_code) for old, new in changed_functions(one)]
        for one in mutants
    ] == [[], [("f", True)], [("C.f", True)]]
    assert [(one.line, one.last_line) for one in mutants] == [(1, 1), (4, 4), (8, 8)]
